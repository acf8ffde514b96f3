/* csv_rules_test.c - columns that are chosen, rules for missing values, forms that are asked. */
#include "source/csv_rules.h"

#include "source/numbering.h"
#include "written.h"

typedef struct asked {
    const char *columns, *na, *csv, *missing;
    ls_missing all;
    bool skips;
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
    ls_status s = ls_csv_rules_read_csv(a->csv ? a->csv : "", "c", 1, &r, e);
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
    assert_int_equal(s->ndamaged, 1);
    ls_source_close(s);
    ls_buf_free(&b);
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
        {"{separator: ab}", "separator is one character"},
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
    refuses(path, &(asked){.columns = "x"}, "are for CSV files");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_missing), cmocka_unit_test(test_mean),
                                       cmocka_unit_test(test_form), cmocka_unit_test(test_index)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
