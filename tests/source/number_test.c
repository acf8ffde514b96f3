/* number_test.c - numbers that a text spells are those of strtod(), to the last bit. */
#include "source/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static void check(const char *text) {
    double value = 0, expected = strtod(text, NULL);
    if (!ls_number_parse(text, strlen(text), &value)) fail_msg("'%s' is no number", text);
    if (memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("'%s' is %.17g, not %.17g", text, value, expected);
}

static void test_given(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "+7",
                                        "1.",
                                        ".5",
                                        "-.25",
                                        "00012.50",
                                        "999999999999999",
                                        "9999999999999999",
                                        "0.000000000000001",
                                        "0.0000000000000001",
                                        "123456789.123456",
                                        "12345678.12345678",
                                        "1e5",
                                        "0e99999",
                                        "9007199254740993",
                                        "9007199254740992.99999",
                                        "9007199254740993.000000000000000000000000001",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "9999999999999999999e27",
                                        "9999999999999999999e-27",
                                        "0.000000000000000000000000000123456789012345678",
                                        "000000000000000000000000000000000000000001.5",
                                        "4.9e-324",
                                        "1.7976931348623157e308",
                                        "1e22",
                                        "1e23",
                                        "8.5e-23",
                                        "-1.5E-3",
                                        "3.14159265358979323846"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i]);
    static const char *const none[] = {"",    "-",  ".",  "-.",  "1.2.3", "1-2",   "0x10", "inf",
                                       "nan", "1e", "e5", "1e+", "1e5.",  "1e999", "--1",  "+"};
    double value = 3;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(ls_number_parse(none[i], strlen(none[i]), &value));
    assert_true(value == 3);
}

/* Sebastiano Vigna's splitmix64. */
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Doubles as programs write them, to be read again, and numbers halfway between two doubles. */
static void test_doubles(void **state) {
    (void)state;
    uint64_t r = 7;
    for (int k = 0; k < 20000; k++) {
        char text[400];
        uint64_t bits = next(&r), exponent = 1023 - 90 + next(&r) % 180;
        double x = 0;
        bits = (bits & UINT64_C(0x800fffffffffffff)) | exponent << 52;
        memcpy(&x, &bits, sizeof x);
        for (int digits = 15; digits < 21; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, x);
            check(text);
        }
        snprintf(text, sizeof text, "%llu.5", (unsigned long long)(bits >> 11 | 1ULL << 52));
        check(text);
        snprintf(text, sizeof text, "%lluE%d", (unsigned long long)((bits >> 10 | 1ULL << 53) | 1),
                 (int)(bits % 40) - 20);
        check(text);
    }
}

/* Digits of any number, with a point anywhere. */
static void test_random(void **state) {
    (void)state;
    uint64_t r = 5;
    for (int k = 0; k < 20000; k++) {
        char text[40];
        uint64_t bits = next(&r);
        int n = 1 + (int)(bits % 22), point = (int)(bits / 19 % 20), at = 0;
        if (bits >> 60 & 1) text[at++] = '-';
        for (int i = 0; i < n; i++) {
            if (i == point) text[at++] = '.';
            text[at++] = (char)('0' + next(&r) % 10);
        }
        text[at] = 0;
        check(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_given), cmocka_unit_test(test_doubles),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
