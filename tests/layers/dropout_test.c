/* dropout_test.c - zeros at random: the same for any micro-batch, in backward, and none in
 * evaluation. */
#include "layers/layer_check.h"

#include "infer/infer.h"

enum { COUNT = 4200 }; /* more than a part that a thread computes */
static const float RATES[] = {0.3f, 0.6f};

/* The mask of dropout `layer`, one word at a time: see tensor/kernels/dropout.c. */
static float dropped(int layer, int64_t sample, int64_t i, float x) {
    uint32_t w[4];
    uint64_t index = (uint64_t)(i / 64 * 16 + i % 16) + ((uint64_t)layer << 40);
    ls_random_words(CHECK_SEED, LS_STREAM_DROPOUT, ((uint64_t)CHECK_STEP << 32) + (uint64_t)sample,
                    index, w);
    bool zero = (double)w[i / 16 % 4] / 4294967296.0 < (double)RATES[layer];
    return zero ? 0.0f : x * (1 / (1 - RATES[layer]));
}

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    ls_value *y = ls_dropout(m, x[0], .rate = RATES[0]);
    return ls_dropout(m, ls_add(m, y, x[0]), .name = "second", .rate = RATES[1]);
}

static const layer_case CASE = {.name = "dropout",
                                .fields = {{.type = LS_F32, .dims = {{COUNT}}}},
                                .nfields = 1,
                                .build = build};

static void test_bits(void **state) {
    (void)state;
    layer_check(&CASE);
}

/* y = the second dropout of x + the first dropout of x. */
static void test_mask(void **state) {
    (void)state;
    layer_bench b;
    layer_way way = {.micro = 2, .threads = 2, .type = LS_F32, .grads = LS_F32};
    bench_open(&b, &CASE);
    layer_result r = result_of(&b, &way);
    int zeros = 0;
    for (int64_t s = 0; s < CHECK_SAMPLES; s++) {
        const float *x =
            (const float *)(const void *)(b.samples + (size_t)s * b.model.sample_nbytes);
        for (int64_t i = 0; i < COUNT; i++) {
            float y = dropped(1, s, i, x[i] + dropped(0, s, i, x[i]));
            float dy = layer_factor(s, i), dsum = dropped(1, s, i, dy);
            float dx = dsum + dropped(0, s, i, dsum);
            assert_true(r.y[s * COUNT + i] == y);
            assert_true(r.dx[0][s * COUNT + i] == dx);
            zeros += dsum == 0 && dy != 0;
        }
    }
    double rate = zeros / (CHECK_SAMPLES * COUNT * 16.0 / 17);
    assert_true(fabs(rate - (double)RATES[1]) < 0.02);
    result_free(&r);
    bench_close(&b);
}

/* The loss of a forward alone is that of x + x. */
static void test_evaluation(void **state) {
    (void)state;
    layer_bench b;
    ls_compute c;
    ls_error e = {0};
    double losses[CHECK_SAMPLES];
    bench_open(&b, &CASE);
    assert_ls_ok(ls_compute_init(&c, 1, ls_model_scratch_floats(&b.model), &e), e);
    ls_infer f = {.model = &b.model, .compute = &c, .dtype = LS_F32, .params = b.params, .n = 2};
    f.memory = ls_alloc(ls_infer_nbytes(f.model, LS_F32, f.n));
    ls_infer_losses(&f, CHECK_SAMPLES, b.samples, losses);
    for (size_t s = 0; s < CHECK_SAMPLES; s++) {
        const float *x = (const float *)(const void *)(b.samples + s * b.model.sample_nbytes);
        double want = 0;
        for (int64_t i = 0; i < COUNT; i++)
            want += (double)layer_factor((int64_t)s % f.n, i) * (double)(x[i] + x[i]);
        assert_true(fabs(losses[s] - want) < 1e-9);
    }
    free(f.memory);
    ls_compute_close(&c);
    bench_close(&b);
}

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(3)); }
static void with_one(ls_model *m) { ls_dropout(m, field(m), .rate = 1); }
static void with_less(ls_model *m) { ls_dropout(m, field(m), .rate = -0.1f); }
static void with_nan(ls_model *m) { ls_dropout(m, field(m), .rate = NAN); }

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_one, "dropout 'dropout': rate is 1; it is from 0 to below 1");
    layer_refused(with_less, "rate is -0.1;");
    layer_refused(with_nan, "rate is nan;");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_mask),
                                       cmocka_unit_test(test_evaluation),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
