/* text_output_test.c - characters of several tokens, special tokens and stops. */
#include "infer/text_output.h"

#include "chat/small_chat.h"
#include "test.h"

enum { OPEN = 256, CLOSE = 257 };

static uint32_t token_of(const ls_tokenizer *t, char byte) {
    size_t n = 0;
    uint32_t i = 0;
    while (*(const char *)ls_tokenizer_bytes(t, i, &n) != byte) i++;
    return i;
}

/* Adds text, a token for each byte; A and R stand for special tokens. Compares what may be given
 * out after each with released: a digit each. */
static void check(bool special, const char *text, const char *released, const char *wanted) {
    ls_tokenizer *t = small_chat_tokenizer();
    static const char *const stops[] = {"xy"};
    ls_text_output x = {.special = special, .stops = stops, .nstops = 1};
    bool stopped = false;
    x.decoding = (ls_decoding){.tokenizer = t, .begun = true};
    for (size_t i = 0; text[i]; i++) {
        uint32_t token = text[i] == 'A' ? OPEN : text[i] == 'R' ? CLOSE : token_of(t, text[i]);
        size_t n = ls_text_output_add(&x, token, &stopped);
        if ((size_t)(released[i] - '0') != n)
            fail_msg("%s: after %zu tokens %zu bytes", text, i + 1, n);
    }
    assert_int_equal(stopped, strstr(text, "xy") != NULL);
    if (!stopped) assert_int_equal(ls_text_output_end(&x), strlen(wanted));
    assert_memory_equal(x.held.data, wanted, strlen(wanted));
    ls_buf_free(&x.held);
    ls_tokenizer_free(t);
}

static void test_output(void **state) {
    (void)state;
    for (int special = 0; special < 2; special++) {
        check(special, "a\xc3\xa9", "113", "a\xc3\xa9");
        check(special, "\xf0\x9f\x98\x80z", "00045", "\xf0\x9f\x98\x80z");
        check(special, "\xc3z", "02", "\xc3z"); /* belongs to no character */
        check(special, "ax\xc3\xa9", "1114", "ax\xc3\xa9");
        check(special, "axy", "111", "a");
    }
    check(false, "aAb", "112", "ab");
    check(false, "Aab", "012", "ab");
    check(true, "aAb", "167", "a<|a|>b");
    check(true, "\xc3Rb", "067", "\xc3<|r|>b");
    check(false, "\xc3R\xa9", "002", "\xc3\xa9");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_output)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
