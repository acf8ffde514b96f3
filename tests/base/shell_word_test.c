/* shell_word_test.c - a shell reads the words as they were, also after they were escaped for a
 * terminal. */
#include "base/shell_word.h"

#include "base/escape.h"
#include "test.h"

static bool has_bash(void) { return system("bash -c : >/dev/null 2>&1") == 0; }

/* What bash makes of the word as it is printed. */
static void check(const char *word) {
    ls_buf quoted = {0}, printed = {0}, command = {0};
    char got[256];
    ls_shell_word(&quoted, word);
    ls_buf_escape(&printed, LS_ESCAPE_LINE, quoted.data, quoted.len);
    assert_string_equal(printed.data, quoted.data);
    setenv("WORD", quoted.data, 1);
    ls_buf_printf(&command, "bash -c 'eval \"printf %%s $WORD\"'");
    FILE *f = popen(command.data, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = 0;
    pclose(f);
    assert_string_equal(got, word);
    ls_buf_free(&quoted);
    ls_buf_free(&printed);
    ls_buf_free(&command);
}

static void test_words(void **state) {
    (void)state;
    static const char *const words[] = {
        "runs/a",     "a b",          "it's",         "\"",  "$(x)`y`$z",
        "a\\b",       "new\nline",    "tab\t'\\n",    "~",   "\x1b[31m",
        "\xc3\xa9 x", "\xff\xfe\x31", "\xe2\x80\xae", "*?[", "#"};
    if (!has_bash()) skip_because("words of a shell: no bash");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) check(words[i]);
}

static void test_forms(void **state) {
    (void)state;
    static const char *const forms[][2] = {
        {"runs/a", "runs/a"},       {"", "''"},
        {"a b", "'a b'"},           {"it's", "'it'\\''s'"},
        {"\xc3\xa9", "'\xc3\xa9'"}, {"a\nb'\\", "$'a\\012b\\'\\\\'"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        ls_buf quoted = {0};
        ls_shell_word(&quoted, forms[i][0]);
        assert_string_equal(quoted.data, forms[i][1]);
        ls_buf_free(&quoted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
