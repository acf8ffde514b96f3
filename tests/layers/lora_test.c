/* lora_test.c - linear layers with an adapter: LoRA, rsLoRA, DoRA, dropout. */
#include "layers/layer_check.h"

enum { ROWS = 3, IN = 18, OUT = 7, RANK = 4 };

/* The norms of DoRA are constants for the gradient: those of the first call. */
typedef struct options {
    ls_lora lora;
    int rows;
    bool no_bias;
    double scale;
    double *norms; /* [OUT] 0: not known yet */
} options;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const options *o = arg;
    return ls_linear(m, x[0], .out = OUT, .no_bias = o->no_bias, .out_in = true, .lora = o->lora);
}

/* w + scale b . a */
static double weight(const options *o, const double *w, const double *a, const double *b, int k,
                     int i) {
    double sum = w[k * IN + i];
    for (int r = 0; r < RANK; r++) sum += o->scale * b[k * RANK + r] * a[r * IN + i];
    return sum;
}

static double factor(const options *o, const double *w, const double *a, const double *b,
                     const double *magnitude, int k) {
    double squares = 0;
    for (int i = 0; i < IN; i++) squares += pow(weight(o, w, a, b, k, i), 2);
    if (o->norms[k] == 0) o->norms[k] = sqrt(squares);
    return magnitude[k] / o->norms[k];
}

static void reference(const void *arg, double *const *x, double *const *p, double *y) {
    const options *o = arg;
    const double *w = p[0], *bias = o->no_bias ? NULL : *++p, *a = p[1], *b = p[2];
    for (int r = 0; r < o->rows; r++)
        for (int k = 0; k < OUT; k++) {
            double sum = 0;
            for (int i = 0; i < IN; i++) sum += x[0][r * IN + i] * weight(o, w, a, b, k, i);
            if (o->lora.dora) sum *= factor(o, w, a, b, p[3], k);
            y[r * OUT + k] = sum + (bias ? bias[k] : 0);
        }
}

static void check_rows(const char *name, ls_lora lora, int rows, bool no_bias, double scale) {
    double norms[OUT] = {0};
    const options o = {lora, rows, no_bias, scale, norms};
    layer_check(&(layer_case){.name = name,
                              .arg = &o,
                              .fields = {{.type = LS_F32, .dims = LS_DIMS(rows, IN)}},
                              .nfields = 1,
                              .build = build,
                              .reference = lora.dropout > 0 ? NULL : reference,
                              .tolerance = 2e-5,
                              .half_units = 8});
}

static void check(const char *name, ls_lora lora, bool no_bias, double scale) {
    check_rows(name, lora, ROWS, no_bias, scale);
}

static void test_lora(void **state) {
    (void)state;
    check("lora", (ls_lora){.rank = RANK}, false, 2);
    check("lora without bias", (ls_lora){.rank = RANK, .alpha = 2}, true, 0.5);
    check("rslora", (ls_lora){.rank = RANK, .alpha = 3, .rs = true}, true, 1.5);
    check_rows("lora of one row", (ls_lora){.rank = RANK}, 1, false, 2);
    check("lora with dropout", (ls_lora){.rank = RANK, .dropout = 0.4f}, false, 2);
    check_rows("lora of more rows than a block of a sum", (ls_lora){.rank = RANK}, 33, true, 2);
}

static void test_dora(void **state) {
    (void)state;
    check("dora", (ls_lora){.rank = RANK, .dora = true}, false, 2);
    check("rsdora", (ls_lora){.rank = RANK, .alpha = 1, .rs = true, .dora = true}, true, 0.5);
    check_rows("dora of one row", (ls_lora){.rank = RANK, .dora = true}, 1, false, 2);
    check("dora with dropout", (ls_lora){.rank = RANK, .dora = true, .dropout = 0.2f}, true, 2);
}

/* ---- parameters ---- */

static void test_parameters(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(ROWS, IN));
    x = ls_linear(&m, x, .name = "q", .out = OUT, .out_in = true,
                  .lora = {.rank = RANK, .dora = true});
    probe_add(&m, x);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    static const char *const names[] = {"q.weight", "q.bias", "q.lora_A.weight", "q.lora_B.weight",
                                        "q.lora_magnitude_vector"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(m.params[i].name, names[i]);
        assert_int_equal(m.params[i].frozen, i < 2);
    }
    float a[RANK * IN], again[IN], b[OUT * RANK];
    double sum = 0, squares = 0, bound = 1 / sqrt(IN);
    ls_model_init_param(&m, 3, 2, 0, RANK * IN, a);
    ls_model_init_param(&m, 3, 2, IN, IN, again);
    ls_model_init_param(&m, 3, 3, 0, OUT * RANK, b);
    assert_memory_equal(again, a + IN, sizeof again);
    for (int i = 0; i < RANK * IN; i++) {
        assert_true(fabs((double)a[i]) <= bound);
        sum += (double)a[i], squares += (double)a[i] * (double)a[i];
    }
    for (int i = 0; i < OUT * RANK; i++) assert_true(b[i] == 0);
    double n = RANK * IN;
    assert_true(fabs(sum / n) < bound * 0.2);
    assert_true(fabs(squares / n - bound * bound / 3) < bound * bound * 0.1);
    ls_model_free(&m);
}

/* ---- dropout: the adapter of an input of ones, seen through it ---- */

enum { WIDE = 640 };

static ls_value *build_wide(ls_model *m, ls_value **x, const void *arg) {
    return ls_linear(m, x[0], .out = 1, .no_bias = true, .out_in = true,
                     .lora = {.rank = 1, .alpha = 1, .dropout = *(const float *)arg});
}

/* w 0, a 1, b 1, x 1: y counts the inputs that are left. */
static void test_dropout(void **state) {
    (void)state;
    const float rate = 0.25f;
    const layer_case c = {.name = "dropout",
                          .arg = &rate,
                          .nfields = 1,
                          .build = build_wide,
                          .fields = {{.type = LS_F32, .dims = LS_DIMS(WIDE)}}};
    layer_bench b;
    layer_way way = {.micro = 2, .threads = 2, .type = LS_F32, .grads = LS_F32};
    bench_open(&b, &c);
    for (size_t i = 0; i < b.model.nfloats; i++) b.params[i] = i < WIDE ? 0 : 1;
    float *x = (float *)(void *)b.samples;
    for (int64_t i = 0; i < CHECK_SAMPLES * WIDE; i++) x[i] = 1;
    layer_result r = result_of(&b, &way);
    for (int s = 0; s < CHECK_SAMPLES; s++) {
        double left = (double)r.y[s] * (1 - (double)rate), zeros = 0;
        for (int i = 0; i < WIDE; i++) zeros += r.dx[0][s * WIDE + i] == 0;
        assert_true(fabs(left - round(left)) < 1e-2);
        assert_true(fabs(left / WIDE - 0.75) < 0.08);
        if (layer_factor(s, 0) != 0) assert_true(fabs(zeros - (WIDE - round(left))) < 0.5);
        if (s) assert_true(r.y[s] != r.y[0] || r.y[1] != r.y[0]);
    }
    result_free(&r);
    bench_close(&b);
}

/* ---- what is refused ---- */

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(3)); }
static void in_out(ls_model *m) { ls_linear(m, field(m), .out = 2, .lora = {.rank = 2}); }
static void negative(ls_model *m) {
    ls_linear(m, field(m), .out = 2, .out_in = true, .lora = {.rank = -1});
}
static void alpha(ls_model *m) {
    ls_linear(m, field(m), .out = 2, .out_in = true, .lora = {.rank = 2, .alpha = -3});
}
static void all_dropped(ls_model *m) {
    ls_linear(m, field(m), .out = 2, .out_in = true, .lora = {.rank = 2, .dropout = 1});
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(in_out, "only a weight [out, in] can have an adapter; set out_in");
    layer_refused(negative, "lora: rank is -1; it is at least 1");
    layer_refused(alpha, "lora: alpha is -3;");
    layer_refused(all_dropped, "lora: dropout is 1; it is from 0 to below 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lora), cmocka_unit_test(test_dora), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_dropout), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
