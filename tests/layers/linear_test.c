/* linear_test.c - products with a weight, with and without a bias. */
#include "layers/layer_check.h"

enum { ROWS = 3, IN = 18, OUT = 7 };

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    return ls_linear(m, x[0], .out = OUT, .no_bias = *(const bool *)arg);
}

static void reference(const void *arg, double *const *x, double *const *p, double *y) {
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < OUT; k++) {
            y[r * OUT + k] = *(const bool *)arg ? 0 : p[1][k];
            for (int i = 0; i < IN; i++) y[r * OUT + k] += x[0][r * IN + i] * p[0][i * OUT + k];
        }
}

static void test_linear(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const bool no_bias = i;
        layer_check(&(layer_case){.name = no_bias ? "no bias" : "linear",
                                  .arg = &no_bias,
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(ROWS, IN)}},
                                  .nfields = 1,
                                  .build = build,
                                  .reference = reference});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
