/* base64_test.c - the vectors of RFC 4648, all bytes, and text that is not base64. */
#include "base/base64.h"

#include "test.h"

static void test_vectors(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t n = 99;
        char *text = ls_base64_encode(pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
        char *back = ls_base64_decode(text, &n);
        assert_int_equal(n, strlen(pairs[i][0]));
        assert_string_equal(back, pairs[i][0]);
        free(text);
        free(back);
    }
}

static void test_bytes(void **state) {
    (void)state;
    unsigned char bytes[256 * 3];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t n = 0; n <= sizeof bytes; n += n < 9 ? 1 : 253) {
        size_t nback = 0;
        char *text = ls_base64_encode(bytes, n), *back = ls_base64_decode(text, &nback);
        assert_int_equal(strlen(text), (n + 2) / 3 * 4);
        assert_int_equal(nback, n);
        assert_memory_equal(back, bytes, n);
        free(text);
        free(back);
    }
}

static void test_others(void **state) {
    (void)state;
    static const char *const bad[] = {
        "A",    "AA",   "AAA",   "AAAAA", "A===",       "====",     "=AAA",  "A=AA",     "AA=A",
        " AAA", "AAA ", "AAA\n", "AA-_",  "AA\xc3\xa4", "AA==AA==", "AAAA=", "AAAA====", "AA=\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = 77;
        assert_null(ls_base64_decode(bad[i], &n));
        assert_int_equal(n, 77);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
