/* random_test.c - published values of Philox, the moments of the numbers, and that a number depends
 * on its place alone. */
#include "base/random.h"

#include <math.h>

#include "test.h"

enum { N = 200000 };
static float values[N];

/* The seed whose key in stream INIT is `key`: the stream is xored into the key. */
static uint64_t seed_of(uint64_t key) { return key ^ ((uint64_t)LS_STREAM_INIT << 56); }

/* Random123, kat_vectors: philox 4 32, 10 rounds. The counter's words come lowest first. */
static void test_known(void **state) {
    (void)state;
    static const struct {
        uint64_t index, substream, key;
        uint32_t want[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88,
         0x0370734413198a2e,
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t w[4];
        ls_random_words(seed_of(known[i].key), LS_STREAM_INIT, known[i].substream, known[i].index,
                        w);
        assert_memory_equal(w, known[i].want, sizeof w);
    }
}

/* A change of any one argument changes the words. */
static void test_streams(void **state) {
    (void)state;
    uint32_t w[5][4];
    ls_random_words(1, LS_STREAM_INIT, 2, 3, w[0]);
    ls_random_words(2, LS_STREAM_INIT, 2, 3, w[1]);
    ls_random_words(1, LS_STREAM_ORDER, 2, 3, w[2]);
    ls_random_words(1, LS_STREAM_INIT, 3, 3, w[3]);
    ls_random_words(1, LS_STREAM_INIT, 2, 4, w[4]);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++) assert_memory_not_equal(w[i], w[j], sizeof w[i]);
}

static void test_uniform(void **state) {
    (void)state;
    double sum = 0, squares = 0;
    int bins[16] = {0};
    for (uint64_t i = 0; i < N; i++) {
        double u = ls_random_uniform(5, LS_STREAM_ORDER, 0, i);
        assert_true(u >= 0 && u < 1);
        bins[(int)(u * 16)]++;
        sum += u;
        squares += u * u;
    }
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1 / 12.0 / N));
    assert_true(fabs(squares / N - 1 / 3.0) < 5 * sqrt(4 / 45.0 / N));
    double chi2 = 0, want = N / 16.0;
    for (int i = 0; i < 16; i++) chi2 += (bins[i] - want) * (bins[i] - want) / want;
    assert_true(chi2 < 50); /* 15 degrees of freedom: above 50 once in 10^5 */
}

/* Mean 0, variance 1, skewness 0, kurtosis 3, each within 5 standard errors; neighbours are not
 * correlated. */
static void test_normal(void **state) {
    (void)state;
    ls_random_normal((ls_random_place){7, LS_STREAM_INIT, 1, 0}, N, 2.0f, values);
    double m[5] = {0}, neighbours = 0;
    int beyond = 0;
    for (int i = 0; i < N; i++) {
        double z = (double)values[i] / 2, power = 1;
        for (int k = 1; k <= 4; k++) m[k] += (power *= z) / N;
        if (i) neighbours += z * (double)values[i - 1] / 2 / N;
        beyond += fabs(z) > 3;
    }
    assert_true(fabs(m[1]) < 5 * sqrt(1.0 / N));
    assert_true(fabs(m[2] - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(m[3]) < 5 * sqrt(15.0 / N));
    assert_true(fabs(m[4] - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(neighbours) < 5 * sqrt(1.0 / N));
    assert_true(abs(beyond - 540) < 5 * 23); /* 0.0027 N */
}

/* Filled at once or in pieces from any place, the bits are the same. */
static void test_places(void **state) {
    (void)state;
    enum { SOME = 1000 };
    float pieces[SOME];
    static const uint64_t firsts[] = {0, 1, ((uint64_t)1 << 33) + 7};
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        ls_random_normal((ls_random_place){3, LS_STREAM_INIT, 9, firsts[f]}, SOME, 0.02f, values);
        for (size_t step = 1; step <= SOME; step = step * 2 + 1) {
            memset(pieces, 0, sizeof pieces);
            for (size_t at = 0; at < SOME; at += step) {
                size_t n = SOME - at < step ? SOME - at : step;
                ls_random_normal((ls_random_place){3, LS_STREAM_INIT, 9, firsts[f] + at}, n, 0.02f,
                                 pieces + at);
            }
            assert_memory_equal(pieces, values, sizeof pieces);
        }
    }
    ls_random_normal((ls_random_place){3, LS_STREAM_INIT, 9, 0}, 0, 1.0f, NULL); /* nothing */
}

/* The same words as one place at a time, also where the index passes 2^32. */
static void test_words16(void **state) {
    (void)state;
    uint32_t many[4][16], one[4];
    for (uint64_t index = 0xfffffff5u; index < 0xfffffff8u; index++) {
        ls_random_words16((ls_random_place){9, LS_STREAM_DROPOUT, 1ull << 40 | 7, index}, many);
        for (uint64_t i = 0; i < 16; i++) {
            ls_random_words(9, LS_STREAM_DROPOUT, 1ull << 40 | 7, index + i, one);
            for (int k = 0; k < 4; k++) assert_int_equal(many[k][i], one[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words16), cmocka_unit_test(test_known),
        cmocka_unit_test(test_streams), cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),  cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
