/* activations_test.c - activation functions as layers. */
#include "layers/layer_check.h"

enum { COUNT = 37 };

typedef struct function {
    const char *name;
    ls_value *(*add)(ls_model *, ls_value *);
    double (*at)(double);
} function;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    return ((const function *)arg)->add(m, x[0]);
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    (void)params;
    for (int i = 0; i < COUNT; i++) y[i] = ((const function *)arg)->at(x[0][i]);
}

static double relu(double x) { return x > 0 ? x : 0; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void test_activations(void **state) {
    (void)state;
    static const function functions[] = {{"relu", (ls_relu), relu},
                                         {"sigmoid", (ls_sigmoid), sigmoid},
                                         {"tanh", (ls_tanh), tanh},
                                         {"silu", (ls_silu), silu},
                                         {"gelu", (ls_gelu), gelu}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        layer_check(&(layer_case){.name = functions[i].name,
                                  .arg = &functions[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(COUNT)}},
                                  .nfields = 1,
                                  .build = build,
                                  .reference = reference});
}

/* ---- behind a sum: of two values, and of a value and itself ---- */

static ls_value *build_sum(ls_model *m, ls_value **x, const void *arg) {
    return ls_add_relu(m, x[0], x[*(const bool *)arg ? 0 : 1]);
}

static void reference_sum(const void *arg, double *const *x, double *const *params, double *y) {
    (void)params;
    bool twice = *(const bool *)arg;
    for (int i = 0; i < COUNT; i++) y[i] = relu(x[0][i] + x[twice ? 0 : 1][i]);
}

static void test_add_relu(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const bool twice = i;
        layer_check(&(layer_case){.name = twice ? "x + x" : "a + b",
                                  .arg = &twice,
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(COUNT)},
                                             {.type = LS_F32, .dims = LS_DIMS(COUNT)}},
                                  .nfields = twice ? 1 : 2,
                                  .build = build_sum,
                                  .reference = reference_sum});
    }
}

static void with_shapes(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_add_relu(m, x, ls_linear(m, x, .out = 4));
}

static void test_errors(void **state) {
    (void)state;
    layer_refused(with_shapes, "add_relu': the inputs have other shapes: [3] and [4]");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_activations),
                                       cmocka_unit_test(test_add_relu),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
