/* answers_test.c - the lines of what a model writes while it trains: appended, and cut off where a
 * run resumes. */
#include "report/answers.h"

#include <string.h>

#include "folder.h"
#include "test.h"

static char *lines(void) {
    ls_buf text = {0};
    ls_error e = {0};
    char *path = ls_format("%s/" LS_ANSWERS_FILE, folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    free(path);
    return text.data;
}

static void expect_lines(const char *want) {
    char *got = lines();
    assert_string_equal(got, want);
    free(got);
}

static void write_step(int64_t step, const char *text) {
    ls_error e = {0};
    ls_answer a = {.prompt = "a\"b", .ntokens = 2, .end = "end"};
    ls_buf_printf(&a.text, "%s", text);
    assert_ls_ok(ls_answers_write(folder, step, &a, 1, &e), e);
    ls_buf_free(&a.text);
}

static int64_t cut(int64_t steps) {
    ls_error e = {0};
    int64_t step = -1;
    assert_ls_ok(ls_answers_cut(folder, steps, &step, &e), e);
    return step;
}

#define FIRST                                                                                      \
    "{\"step\": 1, \"prompt\": \"a\\\"b\", \"text\": \"x\\ny\", \"tokens\": 2, \"end\": "          \
    "\"end\"}\n"
#define SECOND                                                                                     \
    "{\"step\": 2, \"prompt\": \"a\\\"b\", \"text\": \"z\", \"tokens\": 2, \"end\": \"end\"}\n"

static void append_torn(const char *text) {
    char *path = ls_format("%s/" LS_ANSWERS_FILE, folder);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void test_lines(void **state) {
    (void)state;
    assert_int_equal(cut(9), 0); /* there is no file */
    write_step(1, "x\ny");
    write_step(2, "z");
    expect_lines(FIRST SECOND);
    assert_int_equal(cut(2), 2);
    expect_lines(FIRST SECOND);
    append_torn("{\"step\": 1, \"pro");
    assert_int_equal(cut(INT64_MAX), 2);
    expect_lines(FIRST SECOND);
    append_torn("{\"step\": 3}\nno line of ours\n");
    assert_int_equal(cut(1), 1);
    expect_lines(FIRST);
    assert_int_equal(cut(0), 0);
    expect_lines("");
}

static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_answer a = {.prompt = "a", .end = "end"};
    char *nowhere = ls_format("%s/nowhere", folder);
    assert_ls_fails(ls_answers_write(nowhere, 1, &a, 1, &e), LS_EIO, "can't be opened", e);
    free(nowhere);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
