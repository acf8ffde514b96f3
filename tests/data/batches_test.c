/* batches_test.c - batches that grow in a run: every epoch takes each sample once, in order. */
#include "data/batches.h"

#include "config/config.h"
#include "test.h"

/* Goes through a run step by step. */
static void check_run(const ls_batches *b, uint64_t nsamples, uint64_t steps) {
    uint64_t epoch = 0, first = 0, sum = 0;
    int phase = 0;
    for (uint64_t step = 0; step < steps; step++) {
        if (phase + 1 < b->n && b->phases[phase + 1].step == step) phase++;
        uint64_t size = b->phases[phase].batch, left = nsamples - first;
        ls_batch at = ls_batches_at(b, step, nsamples);
        assert_int_equal(ls_batches_size(b, step), size);
        assert_int_equal(ls_batches_sum(b, step), sum);
        assert_int_equal(at.epoch, epoch);
        assert_int_equal(at.first, first);
        assert_int_equal(at.count, left < size ? left : size);
        sum += size;
        first += at.count;
        if (first < nsamples) continue;
        first = 0;
        epoch++;
    }
}

static void test_runs(void **state) {
    (void)state;
    static const ls_batches runs[] = {
        {.n = 1, .phases = {{0, 7}}},
        {.n = 2, .phases = {{0, 4}, {10, 8}}},
        {.n = 3, .phases = {{0, 1}, {1, 16}, {2, 3}}},
        {.n = 4, .phases = {{0, 2}, {5, 50}, {6, 1}, {30, 12}}},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        for (uint64_t nsamples = 1; nsamples <= 40; nsamples++) check_run(&runs[i], nsamples, 70);
}

static void test_of_config(void **state) {
    (void)state;
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    ls_batches b = ls_batches_of(&c);
    assert_true(b.n == 1 && ls_batches_size(&b, 1000) == 16);
    assert_ls_ok(ls_config_set(&c, "train.batch=[[0, 8], [5, 32], [9, 16]]", &e), e);
    b = ls_batches_of(&c);
    assert_int_equal(b.n, 3);
    assert_int_equal(ls_batches_size(&b, 4), 8);
    assert_int_equal(ls_batches_size(&b, 5), 32);
    assert_int_equal(ls_batches_size(&b, 900), 16);
    assert_int_equal(ls_batches_sum(&b, 10), 5 * 8 + 4 * 32 + 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_of_config)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
