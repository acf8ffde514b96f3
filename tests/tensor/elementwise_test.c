/* elementwise_test.c - products, affine functions and dropout, against formulas. */
#include "tensor/kernels.h"

#include "tensor/check_group.h"
#include "tensor/layer_groups.h"

/* The mask, one word at a time: see kernels/dropout.c. */
static float dropped(const ls_dropout_place *d, int64_t i, float x) {
    uint32_t w[4];
    uint64_t index = (uint64_t)(i / 64 * 16 + i % 16) + ((uint64_t)d->layer << 40);
    ls_random_words(d->seed, LS_STREAM_DROPOUT, ((uint64_t)d->step << 32) + d->sample, index, w);
    return (double)w[i / 16 % 4] / 4294967296.0 < (double)d->p ? 0.0f : x * (1 / (1 - d->p));
}

static void check_elements(int64_t n, const values *v) {
    for (int64_t i = 0; i < n; i++) {
        float x = v->in[0][i], product = x * v->in[1][i], square = x * x;
        float small = fmaf(x, 0.3f, -7.0f), large = fmaf(x, 1e3f, 0.1f);
        float kept = dropped(&DROPOUT, 29 + i, x);
        assert_memory_equal(&v->out[0][i], &product, sizeof x);
        assert_memory_equal(&v->out[1][i], &square, sizeof x);
        assert_memory_equal(&v->out[2][i], &small, sizeof x);
        assert_memory_equal(&v->out[3][i], &large, sizeof x);
        assert_memory_equal(&v->out[5][i], &kept, sizeof x);
        assert_memory_equal(&v->out[6][i], &kept, sizeof x);
    }
    for (int64_t i = 0; i < CHANNELS * n; i++) {
        float want = fmaf((float)(uint8_t)(i * 37), v->in[1][i % CHANNELS], v->in[2][i % CHANNELS]);
        assert_memory_equal(&v->out[4][i], &want, sizeof want);
    }
    for (int i = 0; i < 7; i++) assert_untouched(v, i, i == 4 ? CHANNELS * n : n);
}

static void test_elements(void **state) {
    (void)state;
    each(do_elements_f32, check_elements);
}

/* Any number of channels: one, a row's whole length, and more than are repeated. */
static void test_channels(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 2, 16, 17, 127, 128, 129, 300};
    enum { MOST = 5 * 300 };
    static uint8_t x[MOST];
    static float scale[MOST], shift[MOST], y[MOST + 1];
    for (int i = 0; i < MOST; i++) {
        x[i] = (uint8_t)(i * 91), scale[i] = 0.01f * (float)i, shift[i] = (float)(i % 7);
    }
    const ls_kernels *k = NULL;
    for (int which = 0; (k = ls_kernels_at(which)); which++)
        for (int c = 0; c < 8; c++) {
            int64_t C = counts[c], pixels = MOST / C;
            y[pixels * C] = UNTOUCHED;
            k->bytes_affine(pixels, C, x, scale, shift, y);
            for (int64_t i = 0; i < pixels * C; i++)
                assert_true(y[i] == fmaf((float)x[i], scale[i % C], shift[i % C]));
            assert_true(y[pixels * C] == UNTOUCHED);
        }
}

/* The mask of a sample does not depend on how it is split; another place has another mask; the
 * share of zeros is p; a dropped NaN is 0. */
static void test_dropout(void **state) {
    (void)state;
    enum { N = 40000 };
    static float x[N], whole[N], parts[N];
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (int i = 0; i < N; i++) x[i] = 1.0f + (float)i;
    k->dropout(&DROPOUT, 0, N, x, whole);
    for (int64_t i = 0, step = 1; i < N; i += step, step = step * 3 % 101)
        k->dropout(&DROPOUT, i, N - i < step ? N - i : step, x + i, parts + i);
    assert_memory_equal(whole, parts, sizeof whole);
    int zeros = 0;
    for (int i = 0; i < N; i++) zeros += whole[i] == 0;
    assert_true(abs(zeros - 12000) < 400); /* 4 standard deviations */
    for (int other = 0; other < 4; other++) {
        ls_dropout_place d = DROPOUT;
        d.seed += other == 0, d.step += other == 1, d.sample += other == 2, d.layer += other == 3;
        k->dropout(&d, 0, N, x, parts);
        int both = 0;
        for (int i = 0; i < N; i++) both += whole[i] == 0 && parts[i] == 0;
        assert_true(abs(both - 3600) < 300);
    }
    for (int i = 0; i < N; i++) x[i] = NAN;
    k->dropout(&DROPOUT, 0, N, x, parts);
    for (int i = 0; i < N; i++) assert_true(whole[i] == 0 ? parts[i] == 0 : isnan(parts[i]));
    const ls_dropout_place none = {.seed = 1};
    k->dropout(&none, 0, N, whole, parts);
    assert_memory_equal(whole, parts, sizeof whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
