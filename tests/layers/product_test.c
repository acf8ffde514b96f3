/* product_test.c - products by element, and learned values. */
#include "layers/layer_check.h"
#include "layers/layers.h"

enum { T = 3, C = 19 };

static const layer_field MATRIX = {.type = LS_F32, .dims = {{T, C}}};

static ls_value *build_multiply(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_multiply(m, ls_multiply(m, x[0], x[1]), x[0]);
}

static void multiply(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int i = 0; i < T * C; i++) y[i] = x[0][i] * x[1][i] * x[0][i];
}

static ls_value *build_square(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_multiply(m, x[0], x[0]);
}

static void square(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int i = 0; i < T * C; i++) y[i] = x[0][i] * x[0][i];
}

static void test_multiply(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "multiply",
                              .fields = {MATRIX, MATRIX},
                              .nfields = 2,
                              .build = build_multiply,
                              .reference = multiply});
    layer_check(&(layer_case){.name = "square",
                              .fields = {MATRIX},
                              .nfields = 1,
                              .build = build_square,
                              .reference = square});
}

static ls_value *build_gate(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_silu_gate(m, x[0], x[1]);
}

static void gate(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int i = 0; i < T * C; i++) y[i] = x[0][i] / (1 + exp(-x[0][i])) * x[1][i];
}

static void test_gate(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "silu_gate",
                              .fields = {MATRIX, MATRIX},
                              .nfields = 2,
                              .build = build_gate,
                              .reference = gate});
}

static ls_value *build_gelu_gate(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_layers_gelu_gate(m, x[0], x[1]);
}

static void gelu_gate(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int i = 0; i < T * C; i++) {
        double g = x[0][i], u = sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g);
        y[i] = g / 2 * (1 + tanh(u)) * x[1][i];
    }
}

static void test_gelu_gate(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "gelu_gate",
                              .fields = {MATRIX, MATRIX},
                              .nfields = 2,
                              .build = build_gelu_gate,
                              .reference = gelu_gate});
}

static ls_value *build_scale(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_scale(m, x[0], .name = "gain");
}

static void scale(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg;
    for (int i = 0; i < T * C; i++) y[i] = x[0][i] * params[0][i % C];
}

static void test_scale(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "scale",
                              .fields = {MATRIX},
                              .nfields = 1,
                              .build = build_scale,
                              .reference = scale});
}

/* A class token in front of the rows, and positions added to all. */
static ls_value *build_learned(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    ls_value *token = ls_learned(m, LS_DIMS(1, C), .name = "token");
    ls_value *y = ls_concat(m, 0, token, x[0]);
    return ls_add(m, y, ls_learned(m, LS_DIMS(T + 1, C), LS_DEFAULTS));
}

static void learned(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg;
    for (int i = 0; i < (T + 1) * C; i++)
        y[i] = (i < C ? params[0][i] : x[0][i - C]) + params[1][i];
}

static void test_learned(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "learned",
                              .fields = {MATRIX},
                              .nfields = 1,
                              .build = build_learned,
                              .reference = learned});
}

static void build_start(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(T, C));
    x = ls_scale(m, x, .name = "gain", .start = 0.25f);
    x = ls_scale(m, x, LS_DEFAULTS);
    probe_add(m, ls_add(m, x, ls_learned(m, LS_DIMS(T, C), LS_DEFAULTS)));
}

/* What the weights are at first: a scale's are constant, a learned value's are N(0, 0.02^2). */
static void test_start(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    build_start(&m);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    float *p = LS_NEW_ARRAY(float, m.nfloats);
    double squares = 0;
    ls_model_init(&m, 1, 0, m.nfloats, p);
    assert_string_equal(m.params[0].name, "gain.weight");
    assert_string_equal(m.params[2].name, "learned.weight");
    for (int i = 0; i < C; i++)
        assert_true(p[i] == 0.25f && p[m.params[1].offset + (size_t)i] == 1);
    for (int i = 0; i < T * C; i++) squares += pow((double)p[m.params[2].offset + (size_t)i], 2);
    assert_true(fabs(sqrt(squares / (T * C)) / 0.02 - 1) < 0.3);
    free(p);
    ls_model_free(&m);
}

static void with_shapes(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(T, C));
    ls_multiply(m, x, ls_flatten(m, x));
}
static void with_dims(ls_model *m) { ls_learned(m, LS_DIMS(3, -1), LS_DEFAULTS); }
static void with_size(ls_model *m) { ls_learned(m, LS_DIMS(INT32_MAX, 2), LS_DEFAULTS); }
static void with_deviation(ls_model *m) { ls_learned(m, LS_DIMS(2), .deviation = -1); }

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_shapes,
                  "multiply 'multiply': the inputs have different shapes: [3, 19] and [57]");
    layer_refused(with_dims, "learned 'learned': its shape is [3, -1]; 1 to 2147483647 numbers");
    layer_refused(with_size, "its shape is [2147483647, 2]");
    layer_refused(with_deviation, "deviation is -1; it is at least 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiply),  cmocka_unit_test(test_gate),
        cmocka_unit_test(test_gelu_gate), cmocka_unit_test(test_scale),
        cmocka_unit_test(test_learned),   cmocka_unit_test(test_start),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
