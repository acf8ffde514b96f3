/* hash_test.c - XXH3-128: published values, pieces against the whole, and detection of damage. */
#include "base/hash.h"

#include "test.h"

enum { N = 100000 };
static uint8_t data[N];

static int fill(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) data[i] = (uint8_t)(i * i * 31 + (i >> 8));
    return 0;
}

/* The value of the empty input is from xxHash's own tests (seed 0), the other from xxh128sum. */
static void test_known(void **state) {
    (void)state;
    char text[LS_HASH_TEXT];
    ls_hash_text(ls_hash_bytes("", 0), text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    ls_hash_text(ls_hash_bytes("abc", 3), text);
    assert_string_equal(text, "06b05ab6733a618578af5f94892f3950");
    ls_hash_text((ls_hash){1, 2}, text);
    assert_string_equal(text, "00000000000000010000000000000002");
}

/* Lengths around the borders of the algorithm's cases; pieces of uneven sizes. */
static void test_pieces(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 16, 17, 128, 129, 240, 241, 1024, 1025, N};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ls_hasher *h = ls_hasher_new();
        ls_hasher_add(h, NULL, 0);
        for (size_t at = 0, step = 1; at < sizes[i]; step = step * 3 + 1) {
            size_t n = sizes[i] - at < step ? sizes[i] - at : step;
            ls_hasher_add(h, data + at, n);
            at += n;
        }
        assert_true(ls_hash_same(ls_hasher_finish(h), ls_hash_bytes(data, sizes[i])));
    }
}

static void test_damage(void **state) {
    (void)state;
    ls_hash whole = ls_hash_bytes(data, N);
    assert_false(ls_hash_same(whole, ls_hash_bytes(data, N - 1)));
    for (size_t at = 0; at < N; at += 4999) {
        data[at] ^= 0x10;
        assert_false(ls_hash_same(whole, ls_hash_bytes(data, N)));
        data[at] ^= 0x10;
    }
    assert_true(ls_hash_same(whole, ls_hash_bytes(data, N)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
