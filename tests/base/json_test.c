/* json_test.c - JSON values: built, written, read back, looked up, and refused. */
#include "base/json.h"

#include <math.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

static ls_json *parse(const char *text) {
    ls_json *j = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_json_parse(text, strlen(text), "here", &j, &e), e);
    return j;
}

static void refuses_bytes(const char *text, size_t nbytes, const char *says) {
    ls_json *j = NULL;
    ls_error e;
    assert_ls_fails(ls_json_parse(text, nbytes, "here", &j, &e), LS_EINVAL, says, e);
    assert_null(j);
}

static void refuses(const char *text, const char *says) { refuses_bytes(text, strlen(text), says); }

static void test_look_up(void **state) {
    (void)state;
    ls_json *j = parse("{\"a\": [1, 2.5, \"x\", null], \"b\": {\"c\": -9223372036854775808},"
                       " \"t\": \"\\u00e9\"}");
    const ls_json *a = ls_json_get(j, "a");
    int64_t whole = 7;
    double real = 7;
    assert_true(ls_json_is_object(j) && !ls_json_is_array(j) && ls_json_is_array(a));
    assert_int_equal(ls_json_count(j), 3);
    assert_int_equal(ls_json_count(a), 4);
    assert_int_equal(ls_json_count(ls_json_at(a, 0)), 0);
    assert_true(ls_json_integer(ls_json_at(a, 0), &whole) && whole == 1);
    assert_true(ls_json_number(ls_json_at(a, 0), &real) && real == 1);
    assert_false(ls_json_integer(ls_json_at(a, 1), &whole));
    assert_int_equal(whole, 1); /* untouched */
    assert_true(ls_json_number(ls_json_at(a, 1), &real) && real == 2.5);
    assert_string_equal(ls_json_text(ls_json_at(a, 2)), "x");
    assert_false(ls_json_number(ls_json_at(a, 2), &real));
    assert_true(ls_json_integer(ls_json_get(ls_json_get(j, "b"), "c"), &whole));
    assert_true(whole == INT64_MIN);
    assert_string_equal(ls_json_text(ls_json_get(j, "t")), "\xc3\xa9");
    ls_json_free(j);
}

/* A look-up of a missing value, or in a value that is not a container, finds nothing. */
static void test_absent(void **state) {
    (void)state;
    ls_json *j = parse("[{}]");
    int64_t whole;
    double real;
    assert_null(ls_json_get(j, "a"));
    assert_null(ls_json_get(ls_json_at(j, 0), "a"));
    assert_null(ls_json_at(j, 1));
    assert_null(ls_json_at(ls_json_at(j, 0), 0));
    assert_null(ls_json_get(NULL, "a"));
    assert_null(ls_json_text(NULL));
    assert_int_equal(ls_json_count(NULL), 0);
    assert_false(ls_json_integer(NULL, &whole) || ls_json_number(NULL, &real));
    assert_false(ls_json_is_object(NULL) || ls_json_is_array(NULL));
    assert_false(ls_json_is_true(NULL));
    ls_json_free(j);
    j = parse("[true, false, 1]");
    assert_true(ls_json_is_true(ls_json_at(j, 0)));
    assert_false(ls_json_is_true(ls_json_at(j, 1)) || ls_json_is_true(ls_json_at(j, 2)));
    ls_json_free(j);
    j = NULL;
    ls_json_free(NULL);
}

static void test_order(void **state) {
    (void)state;
    static const char *const want[] = {"z", "a", "m", "b"};
    ls_json *j = parse("{\"z\": 0, \"a\": 1, \"m\": 2, \"b\": 3}");
    const char *key = NULL;
    const ls_json *value = NULL;
    int64_t n = 0, v = 0;
    for (void *it = NULL; (it = ls_json_next(j, it, &key, &value)); n++) {
        assert_string_equal(key, want[n]);
        assert_true(ls_json_integer(value, &v) && v == n);
    }
    assert_int_equal(n, 4);
    ls_json_free(j);
}

static void test_build(void **state) {
    (void)state;
    ls_json *j = ls_json_new_object(), *list = ls_json_new_array();
    ls_json_push(list, ls_json_new_integer(INT64_MAX));
    ls_json_push(list, ls_json_new_number(0.25));
    ls_json_push(list, ls_json_new_number(NAN));
    ls_json_push(list, ls_json_new_number(INFINITY));
    ls_json_push(list, ls_json_new_null());
    ls_json_push(list, ls_json_new_bool(true));
    ls_json_set(j, "list", list);
    ls_json_set_text(j, "text", "a\"\n");
    ls_json_set_text(j, "text", "\xc3\xa9\n"); /* replaces */
    ls_buf out = {0};
    ls_buf_printf(&out, "<");
    ls_json_write(j, 0, &out); /* appends */
    assert_string_equal(out.data,
                        "<{\"list\": [9223372036854775807, 0.25, null, null, null, true], "
                        "\"text\": \"\xc3\xa9\\n\"}");
    out.len = 0;
    ls_json_write(j, 2, &out);
    assert_non_null(strstr(out.data, "{\n  \"list\": [\n    9223372036854775807,\n"));
    ls_json *again = parse(out.data);
    assert_int_equal(ls_json_count(ls_json_get(again, "list")), 6);
    ls_json_free(again);
    ls_json_free(j);
    ls_buf_free(&out);
}

static void test_refusals(void **state) {
    (void)state;
    refuses("", "here:");
    refuses("{\"a\": 1,\n \"a\": 2}", "here:2: is not valid JSON: duplicate");
    refuses("{\"a\": 1", "is not valid JSON");
    refuses("[1, 2,]", "is not valid JSON");
    refuses("[1] x", "is not valid JSON");
    refuses("[NaN]", "is not valid JSON: it has NaN or Infinity, which is no number of JSON");
    refuses("{\"a\": Infinity}", "write null");
    refuses("[Nan]", "is not valid JSON: invalid token");
    refuses("[01]", "is not valid JSON");
    refuses("[1e999]", "here:1: has a number that is too large");
    refuses("[1,\n99999999999999999999]", "here:2: has a number that is too large");
    refuses("[\"\xff\"]", "is not valid JSON");
    refuses("[\"\\ud800\"]", "is not valid JSON");
    refuses("[1,\n\"a\\u0000b\"]", "here:2: is not valid JSON: it has \\u0000, a zero byte");
    refuses_bytes("[1\0]", 4, "it has a zero byte"); /* Jansson by itself skips it */
    refuses_bytes("[\0001\0,\0002\0,\0003\0]\0\n\0", 16,
                  "here: is UTF-16LE, not UTF-8; convert it");
    refuses_bytes("{\"\"::{\0{q{\"::{\0{q{\"\"*{}\"u[\0#9\4\0{66666666666666666666666666666666", 67,
                  "it has a zero byte"); /* the first of its bytes look like UTF-16 */
    refuses_bytes("\xfe\xff\0[\0]", 6, "here: is UTF-16BE, not UTF-8; convert it");
}

static void test_mark(void **state) {
    (void)state;
    ls_json *j = parse("\xef\xbb\xbf[1]");
    assert_int_equal(ls_json_count(j), 1);
    ls_json_free(j);
    refuses("\xef\xbb\xbf", "is not valid JSON");
}

/* A text that nests too deeply is refused before the stack overflows. */
static void test_depth(void **state) {
    (void)state;
    size_t n = 1000000;
    char *text = ls_alloc(n);
    memset(text, '[', n);
    refuses_bytes(text, n, "maximum parsing depth");
    for (size_t i = 0; i + 5 <= n; i += 5) memcpy(text + i, "{\"\": ", 5);
    refuses_bytes(text, n, "maximum parsing depth");
    free(text);
}

/* A whole number of more than 64 bits in a file is a real one, but not in a text. */
static void test_long_numbers(void **state) {
    (void)state;
    static const char text[] =
        "{\"model_max_length\": 1000000000000000019884624838656, \"a\": [-9223372036854775808,"
        "9223372036854775807, 9223372036854775808,-99999999999999999999], \"t\": "
        "\"\\\"99999999999999999999\"}";
    ls_json *j = NULL;
    ls_error e = {0};
    char *path = ls_format("%s/long.json", folder);
    int64_t whole = 0;
    double real[3];
    assert_ls_ok(ls_file_write(path, text, sizeof text - 1, &e), e);
    assert_ls_ok(ls_json_read(path, 1000, &j, &e), e);
    const ls_json *a = ls_json_get(j, "a");
    assert_false(ls_json_integer(ls_json_get(j, "model_max_length"), &whole));
    assert_true(ls_json_number(ls_json_get(j, "model_max_length"), &real[0]) && real[0] == 1e30);
    assert_true(ls_json_integer(ls_json_at(a, 1), &whole) && whole == INT64_MAX);
    assert_true(ls_json_number(ls_json_at(a, 0), &real[0]) && real[0] == -0x1p63);
    assert_true(ls_json_number(ls_json_at(a, 2), &real[1]) && real[1] == 0x1p63);
    assert_true(ls_json_number(ls_json_at(a, 3), &real[2]) && real[2] == -1e20);
    assert_string_equal(ls_json_text(ls_json_get(j, "t")), "\"99999999999999999999");
    ls_json_free(j);
    assert_ls_ok(ls_file_replace(path, "[1e999]", 7, &e), e);
    assert_ls_fails(ls_json_read(path, 1000, &j, &e), LS_EINVAL, "long.json:1: has a number", e);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_look_up),  cmocka_unit_test(test_absent),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_build),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_mark),     cmocka_unit_test(test_long_numbers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
