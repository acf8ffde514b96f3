/* read_jsonl_test.c - JSON lines that Python's json module wrote, and damaged ones. */
#include "source/options.h"
#include "source/written.h"

static void test_python(void **state) {
    (void)state;
    run_python(
        "import json\n"
        "with open('a.jsonl', 'w') as f:\n"
        "    for i in range(300):\n"
        "        o = {'x': [[i / 3, 1], [2, i]], 'age': i, 'big': i == 7, 'class': 'ab'[i % 2]}\n"
        "        o = dict(sorted(o.items(), reverse=i % 2))\n"
        "        print(json.dumps(o), file=f, end='\\r\\n\\n' if i % 3 else '\\n')\n");
    ls_source *s = open_source(path_of("a.jsonl"));
    assert_string_equal(s->format, "jsonl");
    assert_int_equal(s->count, 300);
    const ls_field *x = field_of(s, "x");
    assert_true(x->type == LS_F32 && x->ndims == 2 && x->dims[0] == 2 && x->dims[1] == 2);
    assert_int_equal(field_of(s, "age")->type, LS_I32);
    assert_int_equal(field_of(s, "big")->type, LS_I32);
    assert_int_equal(s->nclasses, 2);
    assert_string_equal(s->classes[1], "b");
    for (int i = 299; i >= 0; i -= 13) {
        float third = (float)(i / 3.0);
        assert_float_equal(value_of(s, (uint64_t)i, "x", 0), third, 0);
        assert_float_equal(value_of(s, (uint64_t)i, "x", 3), i, 0);
        assert_int_equal((int)value_of(s, (uint64_t)i, "age", 0), i);
        assert_int_equal((int)value_of(s, (uint64_t)i, "label", 0), i % 2);
    }
    assert_int_equal((int)value_of(s, 7, "big", 0), 1);
    ls_source_close(s);
}

/* The same objects one a line, as elements of an array, and over several lines each. */
static void test_forms(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"a\": 1, \"label\": \"x{\"}\n{\"a\": 2.5, \"label\": \"y\\\"}\"}\n",
        "[{\"a\": 1, \"label\": \"x{\"}, {\"a\": 2.5, \"label\": \"y\\\"}\"}]",
        "\n[\n  {\n    \"a\": 1,\n \"label\": \"x{\"\n},\n{\"a\": 2.5, \"label\": \"y\\\"}\"}\n]\n",
        "{\n  \"a\": 1,\n  \"label\": \"x{\"\n}\n{\n  \"a\": 2.5, \"label\": \"y\\\"}\"\n}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_source *s = open_source(write_text("form.json", texts[i]));
        assert_string_equal(s->format, "jsonl");
        assert_int_equal(s->count, 2);
        assert_string_equal(s->classes[0], "x{");
        uint8_t *sample = ls_alloc(s->nbytes);
        assert_int_equal(s->read(s, 1, sample, NULL), LS_OK);
        float a = 0;
        memcpy(&a, sample + ls_source_field(s, "a")->offset, sizeof a);
        assert_true(a == 2.5f);
        free(sample);
        ls_source_close(s);
    }
    static const struct {
        const char *text, *message;
        int nleft;
    } bad[] = {
        {"[{\"a\":1},\n{\"a\":\"x\"}, {\"a\":2}]", "bad.json:2: element 2 'a' has no number", 1},
        {"[{\"a\":1}, {\"a\":2}", "bad.json:1: the array of objects has no end", 1},
        {"[{\"a\":1}, [3]]", "bad.json:1: element 2 is not a JSON object", 1},
        {"{\n\"a\":1}\n{\n\"a\":\"x\"}\n", "bad.json:3: 'a' has no number", 1},
        {"{\n\"a\":1}\n3\n", "bad.json:3: is not valid JSON: an object begins with {", 1},
        {"{\n\"a\":1}\n{\"a\":\n", "bad.json:3: is not valid JSON", 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = write_text("bad.json", bad[i].text);
        assert_refused(path, bad[i].message);
        assert_skips(path, (uint64_t)(i ? 1 : 2) + (i == 1), (uint64_t)bad[i].nleft);
    }
}

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        int nleft;
    } bad[] = {
        {"{\"a\":1}\n{\"a\":\n{\"a\":2}\n", "bad.jsonl:2: is not valid JSON", 2},
        {"{\"a\":1}\n[1]\n", "bad.jsonl:2: is not a JSON object", 1},
        {"{\"a\":1}\n{\"a\":\"x\"}\n", "bad.jsonl:2: 'a' has no number where one is expected", 1},
        {"{\"a\":1}\n{\"a\":null}\n", "bad.jsonl:2: 'a' is null, or", 1},
        {"{\"a\":1}\n{\"a\":[1]}\n", "bad.jsonl:2: 'a' has no number", 1},
        {"{\"a\":[1,2.5]}\n{\"a\":[1]}\n", "bad.jsonl:2: 'a' has another shape", 1},
        {"{\"a\":[1,2]}\n{\"a\":[1,[2]]}\n", "bad.jsonl:2: 'a' has no number", 1},
        {"{\"a\":[[1],[2]]}\n{\"a\":[[1],[2,3]]}\n", "bad.jsonl:2: 'a' has another shape", 1},
        {"{\"a\":1,\"b\":2}\n{\"a\":1}\n", "bad.jsonl:2: 'b' is missing", 1},
        {"{\"a\":1}\n{\"a\":1,\"b\":2}\n", "bad.jsonl:2: 'b' is not in the first object", 1},
        {"{\"a\":1}\n{\"a\":1e39}\n", "a number that no f32 can hold", 1},
        {"{\"a\":1}\n{\"a\":1,\"a\":2}\n", "bad.jsonl:2: is not valid JSON", 1},
        {"{\"a\":\"x\"}\n{\"a\":1}\n", "bad.jsonl:2: 'a' is no text", 1},
        {"{\"a\":[[]]}\n{\"a\":1}\n", "bad.jsonl:1: 'a' is an empty array", 1},
        {"{\"a\":[{\"b\":1}]}\n{\"a\":1}\n", "'a' has objects, which are no samples; conversations",
         1},
        {"{\"a\":[[[[[1]]]]]}\n{\"a\":1}\n", "bad.jsonl:1: 'a' is an array of too many", 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = write_text("bad.jsonl", bad[i].text);
        assert_refused(path, bad[i].message);
        assert_skips(path, (uint64_t)bad[i].nleft, 1);
    }
    assert_refused(write_text("none.jsonl", "\n \n"), "none.jsonl: has no objects");
    assert_refused(write_text("empty.jsonl", "{}\n"), "empty.jsonl: no field");
}

/* All objects decide, not the first one: with damaged ones left out, what most have. */
static void test_missing(void **state) {
    (void)state;
    const char *path = write_text("null.jsonl", "{\"a\": null, \"b\": 1}\n{\"a\": 2, \"b\": 2}\n"
                                                "{\"a\": 3, \"b\": 3}\n");
    assert_refused(path, "null.jsonl:2: 'a' has a value, but is null in other objects");
    assert_skips(path, 2, 1);
    path = write_text("first.jsonl", "{\"b\": 1}\n{\"a\": 2, \"b\": 2}\n{\"b\": 4, \"a\": 3}\n");
    assert_refused(path, "first.jsonl:2: 'a' is not in the first object");
    assert_skips(path, 2, 1);
    path = write_text("text.jsonl", "{\"a\": \"NA\"}\n{\"a\": 2}\n{\"a\": 3}\n");
    assert_refused(path, "text.jsonl:2: 'a' is no text, but is one elsewhere");
    assert_skips(path, 2, 1);
    path = write_text("rare.jsonl", "{\"b\": 1}\n{\"b\": 2}\n{\"b\": 4, \"a\": 3}\n");
    assert_refused(path, "rare.jsonl:3: 'a' is not in the first object");
    assert_skips(path, 3, 0);
    ls_source *s = open_source(
        write_text("none.jsonl", "{\"a\": null, \"b\": 1, \"o\": {\"x\": 1}, \"t\": [\"x\"]}\n"
                                 "{\"a\": null, \"b\": 2, \"o\": {}, \"t\": []}\n"));
    assert_int_equal(s->nfields, 1);
    ls_source_close(s);
}

static ls_source *open_with(const char *path, const ls_source_options *o) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_source_open(path, o, &s, &e), e);
    return s;
}

static void assert_refused_with(const char *path, const ls_source_options *o, const char *message) {
    ls_source *s = NULL;
    ls_error e = {0};
    assert_int_equal(ls_source_open(path, o, &s, &e), LS_EINVAL);
    if (!strstr(e.msg, message)) fail_msg("'%s' lacks '%s'", e.msg, message);
}

/* data.missing, in lines and in an array. */
static void test_missing_values(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"a\": 1, \"b\": \"x\", \"label\": 0}\n{\"b\": \"y\", \"label\": 1}\n"
        "{\"label\": 1, \"a\": null, \"b\": \"y\"}\n{\"a\": 6, \"b\": \"y\", \"label\": 1}\n",
        "[{\"b\": \"x\", \"a\": 1, \"label\": 0}, {\"a\": null, \"b\": \"y\", \"label\": 1},\n"
        "{\"b\": \"y\", \"label\": 1}, {\"a\": 6, \"b\": \"y\", \"label\": 1}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = write_text("v.json", texts[i]);
        assert_refused(path,
                       "; write a value, or set data.missing (--missing) to drop, which leaves "
                       "such objects out, or mean");
        ls_source *s = open_with(path, &(ls_source_options){.missing = LS_MISSING_DROP});
        assert_true(s->count == 2 && s->nmissing == 2);
        assert_true((int)value_of(s, 1, "a", 0) == 6 && ls_source_record(s, 1).number == 3);
        ls_source_close(s);
        s = open_with(path, &(ls_source_options){.missing = LS_MISSING_MEAN});
        assert_true(s->count == 4 && s->nmissing == 0 && field_of(s, "a")->type == LS_F32);
        assert_float_equal(value_of(s, 1, "a", 0), 3.5, 0);
        assert_float_equal(value_of(s, 2, "a", 0), 3.5, 0);
        /* other files get the same mean, also where all lack the value */
        static const char *const others[] = {"{\"b\": \"y\", \"label\": 1}",
                                             "{\"b\": \"y\", \"label\": 1, \"a\": null}"};
        for (int k = 0; k < 2; k++) {
            ls_source_options follows = {.missing = LS_MISSING_MEAN, .follows = true};
            ls_source *other = open_with(write_text("o.json", others[k]), &follows);
            ls_error e = {0};
            assert_ls_ok(ls_source_follow(other, s->numbering, "o.json", &e), e);
            assert_float_equal(value_of(other, 0, "a", 0), 3.5, 0);
            ls_source_close(other);
        }
        ls_source_close(s);
    }
}

/* Texts, labels, lists and arrays have no mean; a rule of a member, and data.columns. */
static void test_rules(void **state) {
    (void)state;
    ls_source_options drop = {.missing = LS_MISSING_DROP}, mean = {.missing = LS_MISSING_MEAN};
    const char *path = write_text("t.jsonl", "{\"a\": [1, null], \"b\": \"x\", \"label\": 1}\n"
                                             "{\"a\": [1, 2.5], \"b\": null, \"label\": 1}\n"
                                             "{\"a\": [1, 2.5], \"b\": \"x\"}\n"
                                             "{\"a\": [1, 2.5], \"b\": \"x\", \"label\": 2}\n");
    assert_refused_with(path, &mean, "t.jsonl:1: 'a' is null or missing, and only numbers");
    ls_source *s = open_with(path, &drop);
    assert_true(s->count == 1 && s->nmissing == 3);
    ls_source_close(s);
    ls_missing_rule of = {.column = "b", .rule = LS_MISSING_DROP};
    ls_csv_rules rules = {.columns = "b", .rules = &of, .nrules = 1};
    s = open_with(path, &(ls_source_options){.csv = &rules});
    assert_true(s->count == 3 && s->nfields == 1);
    ls_source_close(s);
    of.column = "c";
    assert_refused_with(path, &(ls_source_options){.csv = &rules},
                        "t.jsonl: data.missing: there is no column 'c'; it has 'a', 'b', 'label'");
    assert_refused_with(path, &(ls_source_options){.csv = &(ls_csv_rules){.na = "9"}},
                        "data.na and data.csv are for CSV files; this is jsonl");
    path = write_text("all.jsonl", "{\"a\": null, \"b\": 1}\n{\"a\": 1}\n");
    assert_refused_with(path, &drop, "all.jsonl: each of its 2 objects lacks a value");
}

/* Integers of 64 bits stay what they are. */
static void test_integers(void **state) {
    (void)state;
    const char *path =
        write_text("big.jsonl", "{\"id\": 9007199254740993, \"ids\": [1, 3000000001]}\n"
                                "{\"id\": -1, \"ids\": [-9223372036854775808, 0]}\n");
    ls_source *s = open_source(path);
    ls_error e = {0};
    const ls_field *id = field_of(s, "id"), *ids = field_of(s, "ids");
    assert_true(id->type == LS_I64 && ids->type == LS_I64);
    for (uint64_t i = 0; i < 2; i++) {
        char *sample = ls_alloc(s->nbytes);
        int64_t v[3];
        assert_ls_ok(s->read(s, i, sample, &e), e);
        memcpy(v, sample + id->offset, sizeof *v);
        memcpy(v + 1, sample + ids->offset, 2 * sizeof *v);
        assert_true(v[0] == (i ? -1 : 9007199254740993) && v[1] == (i ? INT64_MIN : 1) &&
                    v[2] == (i ? 0 : 3000000001));
        free(sample);
    }
    ls_source_close(s);
    assert_refused(write_text("u.jsonl", "{\"a\": 18446744073709551615}\n"),
                   "u.jsonl:1: has a number that is too large");
}

static void test_encodings(void **state) {
    (void)state;
    static const char *const texts[] = {"\xef\xbb\xbf{\"a\": 1}\r\n{\"a\": 2}\r\n",
                                        "{\"a\": 1}\r{\"a\": 2}\r", "{\"a\": 1}\r\r{\"a\": 2}",
                                        "\xef\xbb\xbf\n{\"a\": 1}\n\xef\xbb\xbf{\"a\": 2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_source *s = open_source(write_text("a.jsonl", texts[i]));
        assert_int_equal(s->count, 2);
        assert_int_equal((int)value_of(s, 0, "a", 0), 1);
        assert_int_equal((int)value_of(s, 1, "a", 0), 2);
        ls_source_close(s);
    }
    assert_refused(write_bytes("a.jsonl", "\xff\xfe{\0", 4), "a.jsonl:1: is UTF-16LE, not UTF-8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python),         cmocka_unit_test(test_forms),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_missing_values), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_integers),       cmocka_unit_test(test_encodings),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
