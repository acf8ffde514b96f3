/* csv_table_test.c - what all rows of a CSV file show: its separator and line ends, whether its
 * first line is a header, what each column has, and missing values. */
#include <sys/mman.h>

#include "source/csv.h"
#include "source/samples.h"
#include "source/tables/csv_cell.h"
#include "source/tables/csv_table.h"

static const char *put_text(const char *name, const char *text) {
    put_file(name, text, strlen(text));
    return name;
}

static double value_of(const ls_source *s, uint64_t i, const char *name) {
    const ls_field *f = ls_source_field(s, name);
    if (!f) fail_msg("no field %s", name);
    uint8_t *sample = sample_of(s, i);
    int32_t whole = 0;
    float real = 0;
    memcpy(&whole, sample + f->offset, sizeof whole);
    memcpy(&real, sample + f->offset, sizeof real);
    free(sample);
    return f->type == LS_I32 ? whole : (double)real;
}

/* The same table in each form. */
static void test_forms(void **state) {
    (void)state;
    static const char separators[] = {',', '\t', ';', '|'};
    static const char *const names[] = {"commas", "tabs", "semicolons", "|"};
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    static const char *const end_names[] = {"lines end in LF,", "in CR LF,", "in CR,"};
    for (int k = 0; k < 4; k++)
        for (int e = 0; e < 3; e++) {
            char text[256];
            char c = separators[k];
            snprintf(text, sizeof text, "a%cb%clabel%s1%c2.5%c\"x%c%s\"\"y\"%s3%c4%cz%s%s5%c6%cz%s",
                     c, c, ends[e], c, c, c, ends[e], ends[e], c, c, ends[e], ends[e], c, c,
                     e == 1 ? "" : ends[e]);
            ls_source *s = opened(put_text("@form.csv", text), NULL);
            assert_non_null(strstr(s->form, names[k]));
            assert_non_null(strstr(s->form, end_names[e]));
            assert_non_null(strstr(s->form, "the first line is a header"));
            assert_int_equal(s->count, 3);
            assert_true(value_of(s, 0, "b") == 2.5 && value_of(s, 2, "a") == 5);
            char first[32];
            snprintf(first, sizeof first, "x%c%s\"y", c, ends[e]);
            assert_string_equal(s->classes[0], first);
            assert_int_equal((int)value_of(s, 1, "label"), 1);
            ls_source_close(s);
        }
}

/* Separators that also stand in cells, and decimal commas. */
static void test_separators(void **state) {
    (void)state;
    ls_source *s = opened(put_text("@a.csv", "id,tags\n1,a;b\n2,c;d\n"), NULL);
    assert_true(s->nfields == 2 && value_of(s, 1, "id") == 2);
    ls_source_close(s);
    s = opened(put_text("@a.csv", "name;text\nx;one, two\ny;three, four\n"), NULL);
    assert_true(s->nfields == 2 && ls_source_field(s, "text"));
    ls_source_close(s);
    s = opened(put_text("@a.csv", "only\n1\n2\n"), NULL);
    assert_true(s->nfields == 1 && value_of(s, 1, "only") == 2);
    ls_source_close(s);
    s = opened(put_text("@a.tsv", "a\tb\n1\t2\n"), NULL);
    assert_true(s->nfields == 2);
    ls_source_close(s);
    refuses(put_text("@a.csv", "a;b\n1,5;2\n2,5;3\n"), NULL,
            "a.csv:2: column 1, 'a', has '1,5'; write decimal points in place of commas");
}

static void test_headers(void **state) {
    (void)state;
    static const struct {
        const char *text, *field; /* the name of the first field */
        int count;
    } tables[] = {
        {"age,2019,2020\n1,2,3\n4,5,6\n", "age", 2}, /* numbers among the names */
        {"name,2020\nbob,yes\nann,no\n", "name", 2},
        {",0,1\n0,5,6\n1,7,8\n", "column1", 2}, /* pandas' index */
        {"0,1,2,3\n9,8,7,6\n", "0", 1},
        {"1,2,3\n9,8,7\n", "column1", 2},
        {"1,x\n2,y\n", "column1", 2},
        {"NA,cat\n1.5,dog\n2.5,cat\n", "column1", 3}, /* a missing value is no name */
        {",cat\n1.5,dog\n2.5,cat\n", "column1", 3},   /* nor is a text that comes again */
        {"red,cat\nblue,dog\nred,dog\n", "column1", 3},
        {"colour,animal\nblue,dog\nred,dog\n", "colour", 2},
        {"v\n[1]\n[2]\n", "v", 2},
        {"\"a b\"\n1\n", "a b", 1},
        {",0\n1821,269\n1822,321\n", "column1", 2}, /* a column of pandas with its index */
        {",0\n1821,269\n,321\n", "column1", 3},     /* here rows lack the first value */
        {"name,place,1999,2000,2001,2002\na,b,1,2,3,4\nc,d,5,6,7,8\n", "name", 2}, /* years */
        {"name,place,1,2,3,4\na,b,1,2,3,4\nc,d,5,6,7,8\n", "column1", 3},
    };
    const ls_source_options mean = {.missing = LS_MISSING_MEAN};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        ls_source *s = opened(put_text("@h.csv", tables[i].text), &mean);
        if (strcmp(s->fields[0].name, tables[i].field) != 0 ||
            s->count != (uint64_t)tables[i].count)
            fail_msg("%s: %s, %d rows", tables[i].text, s->fields[0].name, (int)s->count);
        bool has = strcmp(tables[i].field, "column1") != 0 || i == 2 || i == 12;
        assert_non_null(strstr(s->form, has ? "the first line is a header" : "there is no header"));
        ls_source_close(s);
    }
}

/* A text above texts that come again and again is a name, though another one occurs below
 * itself. */
static void test_header_above_classes(void **state) {
    (void)state;
    for (int with = 0; with < 2; with++) {
        ls_buf b = {0};
        ls_buf_printf(&b, "Group,%s\n", "I7");
        for (int i = 0; i < 40; i++)
            ls_buf_printf(&b, "%s,I%d\n", i % 2 ? "north" : with ? "Group" : "south", i);
        put_file("@h.csv", b.data, b.len);
        ls_source *s = opened("@h.csv", NULL);
        assert_int_equal(s->count, with ? 41 : 40);
        ls_source_close(s);
        ls_buf_free(&b);
    }
}

/* Any number of blanks, as numpy.savetxt() and R's write.table() write them. */
static void test_blanks(void **state) {
    (void)state;
    static const char *const texts[] = {
        "a b label\n1 2.5 0\n3 4 1\n", "  a   b label  \r\n\r\n 1 2.5    0\r\n   \r\n 3\t4 1 ",
        "a b \"label\"\n\"1\" 2.5 0\n3 4 1", "a b label\r1 2.5 0\r3 4 1\r"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_source *s = opened(put_text("@b.csv", texts[i]), NULL);
        assert_non_null(strstr(s->form, "cells are separated by blanks"));
        assert_int_equal(s->count, 2);
        assert_true(value_of(s, 0, "b") == 2.5 && value_of(s, 1, "a") == 3);
        assert_int_equal((int)value_of(s, 1, "label"), 1);
        ls_source_close(s);
    }
    /* one column of texts of several words, and of dates with a time */
    static const char *const single[] = {"city\nNew York\nLos Angeles\n", "New York\nLos Angeles\n",
                                         "when\n2020-01-01 12:00\n2020-01-02 12:30\n"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) {
        ls_source *s = opened(put_text("@b.csv", single[i]), NULL);
        assert_int_equal(s->nfields, 1);
        ls_source_close(s);
    }
}

/* A header that has no cell for the first column, with the rows' names; and an index without a
 * name. */
static void test_row_names(void **state) {
    (void)state;
    const ls_source_options named = {.named = "column1"};
    static const char *const texts[] = {
        "\"b\" \"label\"\n\"1\" 2.5 0\n\"2\" 4 1\n\"3\" 5 1\n", "b,label\n1,2.5,0\n2,4,1\n3,5,1\n",
        "   b  label\n0  2.5  0\n1  4.0  1\n2  5 1\n", ",b,label\n0,2.5,0\n1,4,1\n2,5,1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_source *s = opened(put_text("@r.csv", texts[i]), NULL);
        assert_int_equal(s->count, 3);
        assert_true(s->nfields == 2 && value_of(s, 1, "b") == 4);
        ls_source *again = opened("@r.csv", &named); /* what a model names is read */
        assert_true(again->nfields == 3 && ls_source_field(again, "column1"));
        assert_int_equal(ls_source_follow(s, again->numbering, "r.csv", NULL), LS_OK);
        assert_int_equal(s->nfields, 3); /* as the training data have it */
        ls_source_close(again);
        ls_source_close(s);
    }
    ls_source *s = opened(put_text("@r.csv", ",b\n0,1\n2,4\n3,5\n"), NULL); /* no count of rows */
    assert_non_null(ls_source_field(s, "column1"));
    ls_source_close(s);
    refuses(
        put_text("@r.csv", "569,30\n1,2,3,4\n5,6,7,8\n"), NULL,
        "r.csv:2: has 4 columns, the first line 2, and so has no other line; if it is no part of "
        "the table, set data.csv: {skip: 1}");
}

/* Spaces around quotes are no part of the cell. */
static void test_indented(void **state) {
    (void)state;
    ls_source *s =
        opened(put_text("@q.csv", "name,      label\n\"a, b\"  ,   \"x\"\n \"c\",  \"y\" \n"
                                  "\"d\",   \"x\"\n\"e\",\"y\" \r\n"),
               NULL);
    assert_true(s->count == 4 && s->nclasses == 2);
    assert_string_equal(s->classes[1], "y");
    ls_source_close(s);
    /* quotes within a cell are characters like others */
    s = opened(put_text("@q.csv", "label,n\n 6\" pipe,1\n \"so\" he said,2\n  \"open,3\n"), NULL);
    assert_int_equal(s->nclasses, 3);
    assert_string_equal(s->classes[0], "  \"open");
    ls_source_close(s);
}

/* Reading a cell reads less than eight bytes behind it, so the time for a line does not grow with
 * the square of its length. What follows here can't be read. */
static void test_reads_no_further(void **state) {
    (void)state;
    enum { PAGE = 4096, BEHIND = 7 };
    const size_t size = 6, n = 100;
    static const char *const cells[] = {" \"a\"x,", "  \"a\",", " a\"a\",", "\"abc\","};
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
        char *text = pages + PAGE - n * size - BEHIND;
        for (size_t i = 0; i < n; i++) memcpy(text + i * size, cells[k], size);
        ls_csv c =
            ls_csv_begin(text, n * size + PAGE, (ls_csv_form){.separator = ",", .quote = '"'});
        ls_csv_cell cell = {0};
        for (size_t i = 0; i < n; i++) assert_null(ls_csv_next(&c, &cell));
        assert_true(c.at == n * size && !cell.last);
    }
    munmap(pages, 2 * PAGE);
}

/* Shows rows [begin, end) of n columns. */
static ls_csv_table seen(const char *const *cells, size_t n, size_t begin, size_t end) {
    ls_csv_table t = {0};
    ls_csv_cell row[8];
    ls_csv_table_begin(&t, n);
    for (size_t r = begin; r < end; r++) {
        for (size_t i = 0; i < n; i++) {
            const char *text = cells[r * n + i];
            row[i] = (ls_csv_cell){.text = text, .nbytes = strlen(text)};
        }
        ls_csv_table_see(&t, row, &(ls_csv_form){.separator = "\t"});
    }
    return t;
}

/* Rows that are cut into parts show what all of them show, wherever they are cut. */
static void test_parts(void **state) {
    (void)state;
    enum { N = 7, ROWS = 8 };
    static const char *const cells[ROWS * N] = {
        "NA", "3", "x",  "[1]",    "$1", "1.5", "1", "0",  "4", "y", "[2]",  "b",  "1e300", "",
        "1",  "5", "x",  "[1, 2]", "",   "2",   "2", "2",  "6", "",  "[3]",  "$2", "3",     "3",
        "0",  "8", "z",  "3",      "c",  "NA",  "4", "NA", "7", "x", "",     "$3", "1,5",   "5",
        "1",  "8", "aa", "[.5]",   "b",  "4",   "6", "2",  "9", "y", "[1,,", "$4", "5",     "1"};
    for (size_t a = 0; a <= ROWS; a++)
        for (size_t b = a; b <= ROWS; b++) {
            ls_csv_table all = seen(cells, N, 0, ROWS), t = seen(cells, N, 0, a),
                         middle = seen(cells, N, a, b), last = seen(cells, N, b, ROWS);
            ls_csv_table_join(&t, &middle);
            ls_csv_table_join(&t, &last);
            for (size_t i = 0; i < N; i++) {
                const ls_csv_seen *x = &all.seen[i], *y = &t.seen[i];
                const ls_classes *c = &all.columns.list[i].classes, *d = &t.columns.list[i].classes;
                for (int k = 0; k < LS_CELL_KINDS; k++) assert_int_equal(x->n[k], y->n[k]);
                assert_true(x->ndecorated == y->ndecorated && x->ndates == y->ndates);
                assert_true(x->length == y->length);
                assert_true(x->most == y->most && x->varies == y->varies);
                assert_true(x->fractions == y->fractions && x->huge == y->huge);
                assert_true(x->counts == y->counts);
                assert_true(x->first == y->first && x->above == y->above);
                assert_int_equal(c->n, d->n);
                for (int k = 0; k < c->n; k++) assert_string_equal(c->names[k], d->names[k]);
            }
            assert_true(all.seen[0].counts && !all.seen[1].counts && all.seen[6].counts);
            ls_csv_table_free(&all);
            ls_csv_table_free(&t);
        }
}

/* A file that all cores read, and one whose quoted cells have line breaks, which one reads: each
 * row but the damaged one is found, and row numbers that go on from part to part are seen. */
static void test_large(void **state) {
    (void)state;
    enum { ROWS = 60000, BAD = 41234 };
    static const ls_source_options skip = {.skip_damaged = true};
    static const char *const cities[] = {"city", "\"ci\nty\""};
    for (int quoted = 0; quoted < 2; quoted++) {
        ls_buf b = {0};
        ls_buf_printf(&b, ",a,city,number\n");
        for (int i = 0; i < ROWS; i++) {
            if (i == BAD) ls_buf_printf(&b, "1,x\n");
            ls_buf_printf(&b, "%d,%d.25,%s,1%029d\n", i, i * 7, cities[quoted], i);
        }
        put_file("@large.csv", b.data, b.len);
        ls_source *s = opened("@large.csv", &skip);
        assert_int_equal(s->count, ROWS);
        assert_int_equal(s->damage.n, 1);
        assert_int_equal(s->nfields, 3); /* without column1 */
        for (int i = 0; i < ROWS; i += 307)
            assert_true(value_of(s, (uint64_t)i, "a") == (float)(i * 7 + 0.25));
        ls_source_close(s);
        ls_buf_free(&b);
    }
}

/* Marks of missing values, also in the first row. */
static void test_missing(void **state) {
    (void)state;
    static const char *const marks[] = {"",     "NA",   "nan", "NaN", "null", "NULL", "N/A",
                                        "#N/A", "<NA>", "?",   "-",   "None", " ",    "\\N"};
    ls_source_options drop = {.missing = LS_MISSING_DROP}, mean = {.missing = LS_MISSING_MEAN};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (int row = 0; row < 3; row++) {
            char text[256];
            const char *v[3] = {"1", "2", "6"};
            v[row] = marks[i];
            snprintf(text, sizeof text, "x,name,label\n%s,NA,0\n%s,b,1\n%s,b,1\n", v[0], v[1],
                     v[2]);
            put_text("@m.csv", text);
            refuses("@m.csv", NULL,
                    "set data.missing (--missing) to drop, which leaves such rows out");
            ls_source *s = opened("@m.csv", &drop);
            assert_int_equal(s->count, 2);
            assert_int_equal(s->nmissing, 1);
            assert_int_equal(ls_source_field(s, "x")->type, LS_F32);
            assert_true(value_of(s, 0, "x") == (row == 0 ? 2 : 1));
            ls_source_close(s);
            s = opened("@m.csv", &mean);
            assert_int_equal(s->count, 3);
            assert_true(value_of(s, (uint64_t)row, "x") == (row == 0 ? 4 : row == 1 ? 3.5 : 1.5));
            assert_int_equal((int)value_of(s, 0, "name"), 0); /* texts stay texts */
            ls_source_close(s);
        }
    put_text("@m.csv", "x,label\n1,0\n2,\n3,1\n");
    refuses("@m.csv", &mean,
            "m.csv:3: column 2, 'label', is empty, but has numbers elsewhere; "
            "write one, or set data.missing (--missing) to drop");
    put_text("@m.csv", "x,none,label\n1,,0\n2,NA,1\n");
    ls_source *s = opened("@m.csv", NULL); /* a column without values is left out */
    assert_true(s->count == 2 && !ls_source_field(s, "none"));
    ls_source_close(s);
}

/* A column of numbers and texts has texts, but for a few cells. */
static void test_mixed(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_buf_printf(&b, "ticket,number\n");
    for (int i = 0; i < 40; i++) ls_buf_printf(&b, i % 4 ? "%d,%d\n" : "A/%d,%d\n", i % 3, i);
    put_file("@t.csv", b.data, b.len);
    ls_source *s = opened("@t.csv", NULL);
    assert_int_equal(ls_source_field(s, "ticket")->type, LS_I32);
    assert_int_equal((int)value_of(s, 1, "ticket"), 1); /* 0, 1, 2, A/0, A/1, A/2 */
    assert_int_equal((int)value_of(s, 4, "ticket"), 4);
    ls_source_close(s);
    ls_buf_printf(&b, "1,4O\n2,5I\n");
    put_file("@t.csv", b.data, b.len);
    refuses("@t.csv", NULL,
            "t.csv:42: column 2, 'number', has the text '4O', but numbers elsewhere");
    s = opened("@t.csv", &(ls_source_options){.skip_damaged = true});
    assert_true(s->count == 40 && s->damage.n == 2);
    ls_source_close(s);
    ls_buf_free(&b);
}

/* Numbers with signs are texts, which a remark says. */
static void test_decorated(void **state) {
    (void)state;
    static const char *const are[] = {"$1,234.50",      "12%",        "-3.5 %",
                                      "1,234",          "12 345 678", "1'000",
                                      "5 \xe2\x82\xac", "EUR 7",      "1\xc2\xa0\x32\x33\x34,567"},
                             *const are_not[] = {"1.5",  "1,5",        "a%",    "$",
                                                 "%",    "2024-01-05", "1,23",  "1,2345x",
                                                 ",123", "",           "$1.2.3"};
    for (size_t i = 0; i < sizeof are / sizeof *are; i++)
        assert_true(ls_csv_is_decorated(&(ls_csv_cell){.text = are[i], .nbytes = strlen(are[i])}));
    for (size_t i = 0; i < sizeof are_not / sizeof *are_not; i++)
        assert_false(
            ls_csv_is_decorated(&(ls_csv_cell){.text = are_not[i], .nbytes = strlen(are_not[i])}));
}

/* Dates are texts, and are counted, for a line that says so. */
static void test_dates(void **state) {
    (void)state;
    static const char *const cells[] = {"2024-05-01", "2024-05-01T12:30:00Z", "1999-12-31 23:59",
                                        "2024-5-1",   "2024-05-011",          "2024-05"};
    ls_csv_table t = seen(cells, 1, 0, sizeof cells / sizeof *cells);
    assert_true(t.seen[0].ndates == 3 && t.seen[0].n[LS_CELL_TEXT] == 6);
    ls_csv_table_free(&t);
}

/* Texts of other encodings are refused in columns that are read. */
static void test_encoding(void **state) {
    (void)state;
    static const char what[] = "e.csv: is not UTF-8 at byte 12 (line 2); convert it";
    put_text("@e.csv", "city,label\nK\xf6ln,0\nBonn,1\n");
    refuses("@e.csv", NULL, what);
    ls_csv_rules rules = {.columns = "label"};
    ls_source *s = opened("@e.csv", &(ls_source_options){.csv = &rules});
    assert_int_equal(s->nfields, 1);
    ls_source_close(s);
    refuses(put_text("@e.csv", "K\xf6ln,label\n0,0\n2,1\n"), NULL,
            "is not UTF-8 at byte 1 (line 1)");
}

/* A column that the config names keeps its name; one named x may be joined in the field x. */
static void test_names(void **state) {
    (void)state;
    ls_source_options o = {.named = "Class\nx"};
    ls_source *s = opened(put_text("@n.csv", "a,Class\n1,u\n2,v\n"), &o);
    assert_true(ls_source_field(s, "Class") && !ls_source_field(s, "label"));
    ls_source_close(s);
    s = opened(
        put_text("@n.csv", "a,b,c,d,e,f,g,h,x,Class\n1,2,3,4,5,6,7,8,9,0\n1,2,3,4,5,6,7,8,9,1\n"),
        &o);
    const ls_field *x = ls_source_field(s, "x");
    assert_true(s->nfields == 2 && x && x->ndims == 1 && x->dims[0] == 9);
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_separators),
        cmocka_unit_test(test_headers),   cmocka_unit_test(test_header_above_classes),
        cmocka_unit_test(test_blanks),    cmocka_unit_test(test_row_names),
        cmocka_unit_test(test_indented),  cmocka_unit_test(test_reads_no_further),
        cmocka_unit_test(test_missing),   cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_decorated), cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_parts),
        cmocka_unit_test(test_large),     cmocka_unit_test(test_dates)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
