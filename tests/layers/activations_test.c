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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_activations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
