/* own_loss_test.c - a loss that layers of a program compute: values, gradients, and a loss of one's
 * own against the library's. */
#include <math.h>

#include "base/mem.h"
#include "model/builder.h"
#include "test.h"

enum { SAMPLES = 5, V = 3 };

typedef struct results {
    double losses[SAMPLES];
    float dx[SAMPLES * V];
} results;

/* The model's last layer, of samples in parts of `micro`. */
static void compute(const ls_model *m, const float *x, int64_t micro, int threads, results *r) {
    static const double weights[SAMPLES] = {1, 0.5, 0, 2, 3};
    const ls_layer *l = &m->layers[m->nlayers - 1];
    ls_compute c;
    ls_error e = {0};
    assert_ls_ok(ls_compute_init(&c, threads, ls_model_scratch_floats(m), &e), e);
    float *work = LS_NEW_ARRAY(float, ls_layer_work_floats(l, micro, false) + 2);
    for (int64_t i = 0; i < SAMPLES; i += micro) {
        ls_layer_call call = {.compute = &c,
                              .n = SAMPLES - i < micro ? SAMPLES - i : micro,
                              .T = l->T,
                              .type = LS_F32,
                              .x = {x + i * V},
                              .dx = {r->dx + i * V},
                              .work = work,
                              .loss_scale = 0.25F,
                              .losses = r->losses + i,
                              .weights = weights + i};
        l->ops->backward(l, &call);
    }
    free(work);
    ls_compute_close(&c);
}

static void test_values(void **state) {
    static const double weights[SAMPLES] = {1, 0.5, 0, 2, 3};
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    results r, other;
    float x[SAMPLES * V];
    ls_own_loss(&m, ls_affine(&m, ls_input(&m, "x", LS_F32, LS_DIMS(V)), 1, 0), .factor = 2);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    for (int i = 0; i < SAMPLES * V; i++) x[i] = (float)(i * i % 11) - 4.25F;
    compute(&m, x, SAMPLES, 1, &r);
    for (int i = 0; i < SAMPLES; i++) {
        double sum = 0;
        for (int k = 0; k < V; k++) sum += (double)x[i * V + k];
        assert_true(fabs(r.losses[i] - 2 * sum / V) < 1e-12);
        for (int k = 0; k < V; k++)
            assert_true(fabs((double)r.dx[i * V + k] - 0.25 * 2 * weights[i] / V) < 1e-7);
    }
    for (int64_t micro = 1; micro < SAMPLES; micro++) {
        compute(&m, x, micro, 3, &other);
        assert_memory_equal(other.losses, r.losses, sizeof r.losses);
        assert_memory_equal(other.dx, r.dx, sizeof r.dx);
    }
    ls_model_free(&m);
}

static void test_refused(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_own_loss(&m, ls_input(&m, "x", LS_F32, LS_DIMS(V)), .ignore = 3);
    assert_ls_fails(ls_build_finish(&m, &e), LS_EINVAL, "there are no other options", e);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
