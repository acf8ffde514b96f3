/* linear_test.c - products with a weight, with and without a bias; of one row a sample, too, which
 * a call of one sample computes in another way than a call of several. */
#include "layers/layer_check.h"

enum { IN = 18, OUT = 7 };

typedef struct product {
    const char *name;
    int rows;
    bool no_bias;
} product;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    return ls_linear(m, x[0], .out = OUT, .no_bias = ((const product *)arg)->no_bias);
}

static void reference(const void *arg, double *const *x, double *const *p, double *y) {
    const product *of = arg;
    for (int r = 0; r < of->rows; r++)
        for (int k = 0; k < OUT; k++) {
            y[r * OUT + k] = of->no_bias ? 0 : p[1][k];
            for (int i = 0; i < IN; i++) y[r * OUT + k] += x[0][r * IN + i] * p[0][i * OUT + k];
        }
}

static void test_linear(void **state) {
    (void)state;
    const product products[] = {{"linear", 3, false},
                                {"no bias", 3, true},
                                {"one row", 1, false},
                                {"one, no bias", 1, true}};
    for (int i = 0; i < 4; i++)
        layer_check(
            &(layer_case){.name = products[i].name,
                          .arg = &products[i],
                          .fields = {{.type = LS_F32, .dims = LS_DIMS(products[i].rows, IN)}},
                          .nfields = 1,
                          .build = build,
                          .reference = reference});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
