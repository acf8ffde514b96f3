/* row_update_test.c - one row under each optimizer, beside figures computed in double precision. */
#include "table/row_update.h"

#include <math.h>

#include "test.h"

static ls_table_config config(ls_row_optimizer o, int width) {
    return (ls_table_config){
        .optimizer = o, .width = width, .eps = 1e-10, .beta1 = 0.9, .beta2 = 0.999};
}

static void run(const ls_table_config *c, const ls_row *row, int64_t clock, double lr,
                const float *g) {
    float sum[32];
    memcpy(sum, g, (size_t)c->width * sizeof *g);
    ls_row_update u = ls_row_update_at(c, clock, lr);
    ls_row_update_run(&u, row, sum);
}

static void test_sgd(void **state) {
    (void)state;
    ls_table_config c = config(LS_ROW_SGD, 2);
    float w[2] = {1, -2};
    const float g[2] = {0.5f, 4};
    run(&c, &(ls_row){.values = w}, 0, 0.5, g);
    assert_true(w[0] == 0.75f && w[1] == -4);
    c.weight_decay = 0.5; /* g = (0.5 + 0.375, 4 - 2) */
    run(&c, &(ls_row){.values = w}, 1, 0.5, g);
    assert_true(w[0] == 0.75f - 0.4375f && w[1] == -5);
}

/* G += mean g^2; w -= lr g / (sqrt G + eps). */
static void test_adagrad(void **state) {
    (void)state;
    enum { WIDTH = 21 };
    ls_table_config c = config(LS_ROW_ADAGRAD, WIDTH);
    c.lr_decay = 0.25;
    float w[WIDTH], G = 0, g[WIDTH];
    double want[WIDTH], sum = 0;
    for (int i = 0; i < WIDTH; i++) want[i] = w[i] = (float)i / 8;
    for (int t = 0; t < 5; t++) {
        double mean = 0;
        for (int i = 0; i < WIDTH; i++) {
            g[i] = (float)((i * 7 + t * 5) % 11 - 5) / 4;
            mean += (double)g[i] * (double)g[i] / WIDTH;
        }
        sum += mean;
        for (int i = 0; i < WIDTH; i++)
            want[i] -= 0.1 / (1 + t * 0.25) * (double)g[i] / (sqrt(sum) + 1e-10);
        run(&c, &(ls_row){.values = w, .states = &G}, t, 0.1, g);
    }
    assert_true(fabs((double)G - sum) < 1e-5);
    for (int i = 0; i < WIDTH; i++) assert_true(fabs((double)w[i] - want[i]) < 1e-6);
}

/* Its first step is lr sign g; then as Kingma and Ba write it. */
static void test_adam(void **state) {
    (void)state;
    ls_table_config c = config(LS_ROW_ADAM, 1);
    c.eps = 1e-8;
    float w = 0, mv[2] = {0, 0};
    double m = 0, v = 0, want = 0;
    for (int t = 1; t <= 20; t++) {
        float g = (float)(t % 3) - 0.5f;
        double x = (double)g;
        m = 0.9 * m + 0.1 * x;
        v = 0.999 * v + 0.001 * x * x;
        want -= 0.01 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * m / (sqrt(v) + 1e-8);
        run(&c, &(ls_row){.values = &w, .states = mv}, t - 1, 0.01, &g);
        assert_true(fabs((double)w - want) < 1e-6);
        if (t == 1) assert_true(fabs((double)w + 0.01) < 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_adagrad),
        cmocka_unit_test(test_adam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
