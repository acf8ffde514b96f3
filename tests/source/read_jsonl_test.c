/* read_jsonl_test.c - JSON lines that Python's json module wrote, and damaged ones. */
#include "written.h"

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

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        int nleft;
    } bad[] = {
        {"{\"a\":1}\n{\"a\":\n{\"a\":2}\n", "bad.jsonl:2: is not valid JSON", 2},
        {"{\"a\":1}\n[1]\n", "bad.jsonl:2: is not a JSON object", 1},
        {"{\"a\":1}\n{\"a\":\"x\"}\n", "bad.jsonl:2: 'a' has no number where one is expected", 1},
        {"{\"a\":1}\n{\"a\":null}\n", "bad.jsonl:2: 'a' has no number", 1},
        {"{\"a\":1}\n{\"a\":[1]}\n", "bad.jsonl:2: 'a' has no number", 1},
        {"{\"a\":[1,2.5]}\n{\"a\":[1]}\n", "bad.jsonl:2: 'a' has another shape", 1},
        {"{\"a\":[1,2]}\n{\"a\":[1,[2]]}\n", "bad.jsonl:2: 'a' has no number", 1},
        {"{\"a\":[[1],[2]]}\n{\"a\":[[1],[2,3]]}\n", "bad.jsonl:2: 'a' has another shape", 1},
        {"{\"a\":1,\"b\":2}\n{\"a\":1}\n", "bad.jsonl:2: 'b' is missing", 1},
        {"{\"a\":1}\n{\"a\":1,\"b\":2}\n", "bad.jsonl:2: 'b' is not in the first line", 1},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
