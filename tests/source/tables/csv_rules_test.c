/* csv_rules_test.c - columns that are chosen, rules for missing values, forms that are asked. */
#include "source/tables/csv_rules.h"

#include <math.h>

#include "source/formats/open.h"
#include "source/numbering.h"
#include "source/tables/clicks.h"
#include "source/tables/ratings.h"
#include "source/written.h"

typedef struct asked {
    const char *columns, *na, *csv, *missing;
    ls_missing all;
    bool skips;
    const char *ratings, *clicks; /* trees; NULL: the files have samples */
    const ls_ids *ids;
} asked;

static ls_status open_asked(const char *path, const asked *a, bool indexed, ls_source **s_p,
                            ls_error *e) {
    char cache[64];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    ls_csv_rules r = ls_csv_rules_of(a->columns ? a->columns : "", a->na ? a->na : "");
    ls_source_options o = {.csv = &r,
                           .missing = a->all,
                           .skip_damaged = a->skips,
                           .cache = cache,
                           .index_nbytes = indexed ? 1 : 0};
    ls_ratings_wanted ratings;
    ls_clicks_wanted clicks;
    ls_status s = ls_csv_rules_read_csv(a->csv ? a->csv : "", "c", 1, &r, e);
    if (s == LS_OK && a->ratings) s = ls_ratings_read(a->ratings, "c", 1, 0.25, &ratings, e);
    if (s == LS_OK && a->clicks) s = ls_clicks_read(a->clicks, "c", 1, &clicks, e);
    if (a->ratings) o.ratings = &ratings;
    if (a->clicks) o.clicks = &clicks;
    o.ids = a->ids;
    if (s == LS_OK) s = ls_csv_rules_read_missing(a->missing ? a->missing : "", "c", 1, &r, e);
    if (s == LS_OK) s = ls_source_open(path, &o, s_p, e);
    ls_csv_rules_free(&r);
    return s;
}

static ls_source *opened(const char *path, const asked *a) {
    ls_error e = {0};
    ls_source *s = NULL;
    assert_ls_ok(open_asked(path, a, false, &s, &e), e);
    return s;
}

static void refuses(const char *path, const asked *a, const char *says) {
    ls_error e;
    ls_source *s = NULL;
    assert_ls_fails(open_asked(path, a, false, &s, &e), LS_EINVAL, says, e);
}

/* What is not chosen is neither checked nor a field; of hundreds of columns of texts, too. */
static void test_columns(void **state) {
    (void)state;
    ls_buf b = {0};
    for (int row = -1; row < 4; row++)
        for (int i = 0; i < 300; i++)
            ls_buf_printf(&b,
                          row < 0 ? "c%d%s"
                          : i % 3 ? "t%d%s"
                                  : "%d%s",
                          row < 0 ? i : row + i, i < 299 ? "," : "\n");
    const char *path = write_text("wide.csv", b.data);
    ls_source *s = opened(path, &(asked){.columns = "c299\nc1\nc3"});
    assert_int_equal(s->nfields, 3);
    assert_string_equal(s->fields[0].name, "c1");
    assert_string_equal(s->fields[2].name, "c299");
    assert_float_equal(value_of(s, 2, "c3", 0), 5, 0);
    ls_source_close(s);
    path = write_text("d.csv", "a,label,bad\n1,x,1\n2,y,oops\n,x,3\n");
    refuses(path, &(asked){.columns = "a\nnone"}, "there is no 'none'; it has 'a', 'label', 'bad'");
    s = opened(path, &(asked){.columns = "label"});
    assert_int_equal(s->count, 3);
    assert_int_equal(s->nclasses, 2);
    ls_source_close(s);
    s = opened(path, &(asked){.columns = "bad", .skips = true});
    assert_int_equal(s->count, 2);
    assert_int_equal(s->damage.n, 1);
    ls_source_close(s);
    ls_buf_free(&b);
    path = write_text("t.csv", "label,x,y,x,label\n1,2,3,4,0\n0,3,4,5,1\n");
    refuses(path, &(asked){0}, "t.csv: two columns are named 'label'; rename one");
    path = write_text("w.csv", "x,y,x\n2,3,4\n3,4,5\n");
    refuses(path, &(asked){.columns = "x"}, "w.csv: two columns are named 'x'; rename one");
    s = opened(path, &(asked){.columns = "y"});
    assert_int_equal(s->nfields, 1);
    ls_source_close(s);
}

/* Each column by its rule, others by that for all; more marks, also numbers; texts, where asked. */
static void test_missing(void **state) {
    (void)state;
    const char *path = write_text("m.csv", "age,income,city,label\n"
                                           "1,10,a,0\n-999,20,b,1\n3,no answer,c,0\n4,40,,1\n"
                                           "-999.0,60,none,1\n");
    static const char na[] = "-999\nno answer";
    ls_source *s = opened(path, &(asked){.na = na, .missing = "{age: mean, income: drop}"});
    assert_int_equal(s->count, 4);
    assert_int_equal(s->nmissing, 1);
    assert_float_equal(value_of(s, 1, "age", 0), 2.5, 0);
    assert_float_equal(value_of(s, 3, "age", 0), 2.5, 0);
    assert_int_equal((int)value_of(s, 2, "city", 0), 0); /* a text like others: "", a, b, none */
    ls_source_close(s);
    s = opened(path, &(asked){.na = na, .missing = "{\"*\": mean, city: drop, income: drop}"});
    assert_int_equal(s->count, 2);
    assert_int_equal(s->nmissing, 3);
    assert_float_equal(value_of(s, 1, "age", 0), 1, 0);
    ls_source_close(s);
    s = opened(path, &(asked){.na = na, .all = LS_MISSING_DROP, .missing = "{age: mean}"});
    assert_int_equal(s->count, 4);
    ls_source_close(s);
    refuses(path, &(asked){.na = na, .missing = "{income: mean}"},
            "m.csv:3: column 1, 'age', has the text '-999', which stands for a missing value");
    refuses(path, &(asked){.na = na, .missing = "{age: mean, income: mean, city: refuse}"},
            "m.csv:5: column 3, 'city', is empty, but has texts elsewhere");
    refuses(path, &(asked){.missing = "{aeg: mean}"}, "data.missing: there is no column 'aeg'");
    refuses(path, &(asked){.missing = "{age: maybe}"}, "c:1: data.missing: age is refuse, drop or");
}

/* A mean of any value is the same after it was written to data.json, where it has nine digits. */
static void test_mean(void **state) {
    (void)state;
    const char *path = write_text("n.csv", "x,y\n0.1,1\n0.7,1\n,1\n0.11,2\n");
    ls_source *s = opened(path, &(asked){.all = LS_MISSING_MEAN});
    ls_json *j = ls_numbering_json(s->numbering), *back = NULL;
    ls_buf text = {0};
    ls_numbering read = {0};
    ls_error e = {0};
    ls_json_write(j, 0, &text);
    assert_ls_ok(ls_json_parse(text.data, text.len, "n", &back, &e), e);
    assert_true(ls_numbering_read(back, &read));
    assert_true(ls_numbering_same(s->numbering, &read));
    assert_float_equal(value_of(s, 2, "x", 0), (float)(0.91 / 3), 1e-7);
    ls_numbering_free(&read);
    ls_json_free(j);
    ls_json_free(back);
    ls_buf_free(&text);
    ls_source_close(s);
}

/* Separator, quotes, decimal commas, header, texts and lines before the first row. */
static void test_form(void **state) {
    (void)state;
    const char *path = write_text("f.csv", "a title; 'of any form\n\n"
                                           "01;'it''s; 1,5';1,5\n02;'x';-2\n1.5;y;3,25\n");
    ls_source *s = opened(path, &(asked){.csv = "{separator: \";\", quote: \"'\", decimal: \",\", "
                                                "header: no, skip: 2, texts: [column1]}"});
    assert_int_equal(s->count, 3);
    assert_int_equal(field_of(s, "column1")->type, LS_I32);
    assert_int_equal((int)value_of(s, 2, "column1", 0), 2);
    assert_int_equal((int)value_of(s, 0, "column2", 0), 0); /* before x, y */
    assert_float_equal(value_of(s, 0, "column3", 0), 1.5, 0);
    assert_float_equal(value_of(s, 2, "column3", 0), 3.25, 0);
    ls_source_close(s);
    path = write_text("h.csv", "3:4\n1:\"2\n5:6\n");
    s = opened(path,
               &(asked){.csv = "{separator: \":\", header: yes, quote: none}", .skips = true});
    assert_int_equal(s->count, 1);
    assert_float_equal(value_of(s, 0, "3", 0), 5, 0);
    ls_source_close(s);
    path = write_text("p.csv", "x;y\n1.5;1\n2;1\n3,5;1\n");
    refuses(path, &(asked){.csv = "{decimal: \",\"}"},
            "p.csv:2: column 1, 'x', has the text '1.5'");
    static const char *const wrong[][2] = {
        {"{sep: x}", "there is no 'sep'"},
        {"{separator: abcdefgh}", "separator is one character"},
        {"{separator: \"\"}", "separator is one character"},
        {"{separator: \"\\\"\"}", "the separator has the quote's character"},
        {"{quote: ab}", "quote is one character"},
        {"{header: maybe}", "header is yes or no"},
        {"{decimal: x}", "decimal is \".\" or \",\""},
        {"{skip: -1}", "skip is a number of lines"},
        {"{texts: x}", "texts is a list of columns"},
        {"{texts: [q]}", "texts: there is no column 'q'"},
        {"{separator: \",\", decimal: \",\"}", "separator and decimal are both a comma"},
        {"[x]", "data.csv is a map"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(path, &(asked){.csv = wrong[i][0]}, wrong[i][1]);
    path = write_text("j.jsonl", "{\"x\": 1}\n");
    refuses(path, &(asked){.na = "9"}, "data.na and data.csv are for CSV files; this is jsonl");
}

/* A separator of several characters, of which a part is text. */
static void test_long_separator(void **state) {
    (void)state;
    const char *path = write_text("m.csv", "1::a:b::5\n2::\"x::y\"::4:\n3::c:::3\r\n");
    static const char form[] = "{separator: \"::\", header: no}";
    ls_source *s =
        opened(path, &(asked){.csv = form, .skips = true, .columns = "column1\ncolumn2"});
    assert_int_equal(s->count, 3);
    assert_non_null(strstr(s->form, "cells are separated by ::, lines end in LF, there is no"));
    char *const *names = NULL;
    assert_int_equal(ls_source_classes(s, "column2", &names), 3);
    assert_string_equal(names[(int)value_of(s, 1, "column2", 0)], "x::y");
    ls_source_close(s);
    s = opened(write_text("m.data", "7 8 x\n9 10 y\n"), &(asked){.csv = "{separator: \" \"}"});
    assert_string_equal(s->format, "csv"); /* so it was asked, and no other format is known */
    assert_int_equal(s->nfields, 3);
    ls_source_close(s);
    s = opened(path, &(asked){.csv = form, .ratings = "{user: column1, item: column2}"});
    assert_int_equal(s->ids->columns[1].ids.n, 3);
    assert_string_equal(ls_id_name(&s->ids->columns[1].ids, 0), "a:b");
    assert_string_equal(ls_id_name(&s->ids->columns[1].ids, 1), "x::y");
    assert_string_equal(ls_id_name(&s->ids->columns[1].ids, 2), "c");
    ls_source_close(s);
}

/* What users have rated is read by the same rules, whatever else the files have. */
static void test_ratings(void **state) {
    (void)state;
    static const char named[] = "{user: u, item: i, rating: r, time: t}";
    const char *path = write_text("r.csv", "exported by x\n t ;u;r; i ;u2\n"
                                           "1;'ann';4,5;7;x\n2;bob;;7;x\n3;-;2,0;9;x\n"
                                           "4;ann;n. a.;9;x\n5;'it''s';\"3,0\";NA;x\n");
    asked a = {.csv = "{separator: \";\", quote: \"'\", decimal: \",\", skip: 1}",
               .ratings = named,
               .na = "-\nn. a.",
               .all = LS_MISSING_DROP,
               .skips = true};
    ls_source *s = opened(path, &a);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->nmissing, 3);
    assert_int_equal(s->damage.n, 1); /* of another quote */
    assert_float_equal(value_of(s, 0, "rating", 0), 4.5, 0);
    assert_non_null(strstr(s->form,
                           "separated by semicolons, lines end in LF, numbers have decimal "
                           "commas, the first line is a header"));
    ls_source_close(s);
    path = write_text("s.csv", "u,i,r,t\nann,7,4,1\nann,NA,3,2\nbob,,2,3\n");
    refuses(path, &(asked){.ratings = named},
            "s.csv:4: column 'i' is empty; set data.missing to d");
    s = opened(path, &(asked){.ratings = named, .all = LS_MISSING_DROP});
    assert_int_equal(s->ids->columns[1].ids.n, 2); /* NA is an id */
    ls_source_close(s);
    s = opened(path, &(asked){.ratings = named, .missing = "{i: drop}"});
    assert_int_equal(s->ids->columns[1].ids.n, 1);
    assert_int_equal(s->nmissing, 2);
    ls_source_close(s);
    static const asked bad[] = {
        {.csv = "{header: no}",
         .columns = "s.csv: has no column 'u'; its first line is u, i, r, t: "
                    "name columns column1, column2, ... (data.csv: header"},
        {.csv = "{texts: [u]}", .columns = "data.csv: texts: data.ratings says which"},
        {.missing = "{x: drop}", .columns = "'x' is no column that data.ratings names"},
        {.missing = "{i: mean}", .columns = "s.csv:3: column 'i' has no value, and texts have no"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        asked wrong = bad[i];
        wrong.ratings = named;
        wrong.columns = NULL;
        refuses(path, &wrong, bad[i].columns);
    }
    refuses(path, &(asked){.columns = "u", .ratings = named}, "data.columns: data.ratings names");
    path = write_text("u.csv", "u,i,u\n1,2,3\n");
    refuses(path, &(asked){.ratings = "{user: u, item: i}"}, "columns 1 and 3 are both named 'u'");
    path = write_text("v.csv", "u,i,r\n1,2,\"3,5\"\n");
    refuses(path, &(asked){.csv = "{separator: \",\"}", .ratings = "{user: u, item: i, rating: r}"},
            "column 'r' has '3,5', which is no number");
}

/* Numbers beside clicks have means, which those who follow take over. */
static void test_clicks(void **state) {
    (void)state;
    static const char tree[] = "{clicked: c, ids: [i], numbers: [x, y], scale: log}";
    const char *path = write_text("c.tsv", "c\ti\tx\ty\n1\ta\t0\t1\n0\tb\t?\t3\n1\ta\t3\t-1\n");
    refuses(path, &(asked){.clicks = tree},
            "c.tsv:3: column 'x' has '?', which stands for a missing value; set data.missing to "
            "drop, which leaves such rows out, or mean");
    asked a = {.clicks = tree, .na = "-1", .all = LS_MISSING_MEAN};
    ls_source *s = opened(path, &a);
    assert_int_equal(s->count, 3);
    assert_float_equal(value_of(s, 1, "x", 0), log(4) / 2, 1e-6);
    assert_float_equal(value_of(s, 2, "x", 1), (log(2) + log(4)) / 2, 1e-6);
    a.ids = s->ids;
    ls_source *t = opened(write_text("d.tsv", "i\tx\ty\nb\t7\tNA\na\t\t1\n"), &a);
    assert_float_equal(value_of(t, 1, "x", 0), log(4) / 2, 1e-6);
    assert_float_equal(value_of(t, 0, "x", 1), (log(2) + log(4)) / 2, 1e-6);
    ls_source_close(t);
    ls_source_close(s);
    a = (asked){.clicks = "{clicked: c, ids: [i], numbers: [x, y], scale: standard}",
                .na = "-1",
                .missing = "{x: mean, y: drop}"};
    s = opened(path, &a);
    assert_int_equal(s->count, 2);
    assert_float_equal(value_of(s, 1, "x", 0), 0, 0); /* one number and its mean */
    ls_source_close(s);
    path = write_text("e.tsv", "c\ti\tx\n1\ta\t\n0\tb\t\n");
    refuses(path,
            &(asked){.clicks = "{clicked: c, ids: [i], numbers: [x]}", .all = LS_MISSING_MEAN},
            "e.tsv: column 'x' has no values");
    path = write_text("f.tsv", "c\ti\tx\n1\ta\t1e39\n");
    refuses(path, &(asked){.clicks = "{clicked: c, ids: [i], numbers: [x]}"},
            "column 'x' has '1e39', which no f32 can hold");
}

/* An index is of these rules alone, and says the same. */
static void test_index(void **state) {
    (void)state;
    const char *path = write_text("i.csv", "a,b,label\n1,2,x\n-1,3,y\n5,4,x\n");
    const asked one = {.columns = "a\nlabel", .na = "-1", .missing = "{a: mean}"};
    const asked other = {.columns = "b"};
    for (int round = 0; round < 2; round++) {
        ls_error e = {0};
        ls_source *s = NULL, *t = NULL;
        assert_ls_ok(open_asked(path, &one, true, &s, &e), e);
        assert_ls_ok(open_asked(path, &other, true, &t, &e), e);
        assert_int_equal(s->index_use, round ? LS_INDEX_USED : LS_INDEX_MADE);
        assert_int_equal(t->index_use, round ? LS_INDEX_USED : LS_INDEX_MADE);
        assert_int_equal(s->nfields, 2);
        assert_float_equal(value_of(s, 1, "a", 0), 3, 0);
        assert_int_equal(t->nfields, 1);
        assert_float_equal(value_of(t, 1, "b", 0), 3, 0);
        ls_source_close(s);
        ls_source_close(t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_mean),           cmocka_unit_test(test_form),
        cmocka_unit_test(test_long_separator), cmocka_unit_test(test_ratings),
        cmocka_unit_test(test_clicks),         cmocka_unit_test(test_index)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
