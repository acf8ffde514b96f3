/* predictions_test.c - rows of predictions as CSV and as JSON lines: texts that are not UTF-8 are
 * the same in both. */
#include "report/predictions.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"
#include "test.h"

/* Tokens of a language model: a comma, parts of characters, a zero, a whole character. */
static void put_token(const void *arg, int64_t class, ls_buf *b) {
    static const char *const tokens[] = {",", "\xf0\x9f", "a\xbc\"", "", "\xc3\xa9"};
    (void)arg;
    ls_buf_append(b, tokens[class], class == 3 ? 1 : strlen(tokens[class]));
}

static ls_buf row_of(bool json, int64_t class) {
    ls_predictor_output o = {.name = "next", .kind = LS_CLASSES, .count = 5, .rows = 1, .width = 5};
    ls_predictions p = {.json = json,
                        .top = 1,
                        .list = &o,
                        .n = 1,
                        .put_class = put_token,
                        .keys = {{"file", false}},
                        .nkeys = 1};
    float values[5] = {0};
    values[class] = 1;
    ls_predicted_sample s = {.number = 7, .values = {values}};
    ls_buf_append(&s.keys[0], "\xff.txt", 6);
    ls_buf row = {0};
    ls_predictions_add(&p, &s, &row);
    ls_buf_free(&s.keys[0]);
    assert_true(ls_utf8_is_valid(row.data, row.len));
    return row;
}

static void test_utf8(void **state) {
    (void)state;
    static const char *const texts[] = {"\",\"", "\xef\xbf\xbd\xef\xbf\xbd",
                                        "\"a\xef\xbf\xbd\"\"\"", "\xef\xbf\xbd", "\xc3\xa9"};
    static const char *const bare[] = {",", "\xef\xbf\xbd\xef\xbf\xbd", "a\xef\xbf\xbd\"",
                                       "\xef\xbf\xbd", "\xc3\xa9"};
    for (int64_t i = 0; i < 5; i++) {
        ls_buf csv = row_of(false, i), lines = row_of(true, i);
        char expected[64];
        snprintf(expected, sizeof expected, "7,\\xff.txt,%s,1\n", texts[i]);
        assert_string_equal(csv.data, expected);
        ls_json *j = NULL;
        assert_int_equal(ls_json_parse(lines.data, lines.len, "row", &j, NULL), LS_OK);
        const ls_json *one = ls_json_at(ls_json_get(j, "next"), 0);
        assert_string_equal(ls_json_text(ls_json_get(one, "class")), bare[i]);
        assert_string_equal(ls_json_text(ls_json_get(j, "file")), "\\xff.txt");
        ls_json_free(j);
        ls_buf_free(&csv);
        ls_buf_free(&lines);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_utf8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
