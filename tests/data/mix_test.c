/* mix_test.c - exact numbers of samples an epoch, and no sample lost or repeated beyond its weight
 * over epochs. */
#include "data/mix.h"

#include "test.h"

enum { N0 = 37, N1 = 100, N2 = 8, N = N0 + N1 + N2, EPOCHS = 7 };

static ls_mix mix_of(double w0, double w1, double w2) {
    return (ls_mix){.nparts = 3, .weights = {w0, w1, w2}, .begins = {0, N0, N0 + N1, N0 + N1 + N2}};
}

/* Each range gives its number of samples to each epoch, and over all epochs so far none of its
 * samples was taken more than once more often than another. */
static void check(ls_mix m, uint64_t block) {
    ls_order o = {.seed = 3, .block = block, .window = 2};
    int taken[N] = {0};
    o.n = ls_mix_count(&m);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t of[3] = {0};
        for (uint64_t place = 0; place < o.n; place++) {
            uint64_t sample = ls_mix_at(&m, &o, epoch, ls_order_at(&o, epoch, place));
            assert_true(sample < N);
            taken[sample]++;
            of[sample < N0 ? 0 : sample < N0 + N1 ? 1 : 2]++;
        }
        for (int k = 0; k < 3; k++) {
            int least = 1 << 30, most = 0;
            assert_int_equal(of[k], m.firsts[k + 1] - m.firsts[k]);
            for (uint64_t i = m.begins[k]; i < m.begins[k + 1]; i++) {
                if (taken[i] < least) least = taken[i];
                if (taken[i] > most) most = taken[i];
            }
            assert_true(most - least <= 1);
        }
    }
}

static void test_quotas(void **state) {
    (void)state;
    ls_mix m = mix_of(1, 0.25, 2.5);
    assert_int_equal(ls_mix_count(&m), 37 + 25 + 20);
    static const double weights[][3] = {{1, 1, 1},   {1, 0.25, 2.5}, {0.3, 3, 0.001},
                                        {0.1, 2, 7}, {1.5, 0.75, 1}, {0.01, 0.01, 1000}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        for (uint64_t block = 0; block <= 8; block += 4)
            check(mix_of(weights[i][0], weights[i][1], weights[i][2]), block);
}

/* Whole weights take passes in their order: an epoch's numbers are the samples. */
static void test_whole(void **state) {
    (void)state;
    ls_mix m = mix_of(1, 1, 1);
    ls_order o = {.n = ls_mix_count(&m), .seed = 1};
    assert_int_equal(o.n, N);
    for (uint64_t i = 0; i < N; i++) assert_int_equal(ls_mix_at(&m, &o, 5, i), i);
}

/* What an epoch takes of a pass is a random part, and the next epoch takes another one. */
static void test_part(void **state) {
    (void)state;
    ls_mix m = {.nparts = 1, .weights = {0.5}, .begins = {0, 1000}};
    ls_order o = {.n = ls_mix_count(&m), .seed = 1};
    int low = 0;
    char seen[1000] = {0};
    for (uint64_t epoch = 0; epoch < 2; epoch++)
        for (uint64_t i = 0; i < 500; i++) {
            uint64_t sample = ls_mix_at(&m, &o, epoch, i);
            assert_int_equal(seen[sample]++, 0);
            low += epoch == 0 && sample < 500;
        }
    assert_in_range(low, 180, 320); /* 250 */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quotas), cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
