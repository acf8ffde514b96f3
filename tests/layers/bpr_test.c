/* bpr_test.c - the loss of ranking in pairs against its formula in double precision, and its
 * gradient against central differences. */
#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "model/builder.h"
#include "test.h"

enum { SAMPLES = 7, V = 6 };

/* A sample as the model reads it: the targets alone, since the scores are given to the loss. */
typedef struct setup {
    ls_model model;
    char *samples; /* [SAMPLES][sample_nbytes] */
    float x[SAMPLES * V];
    double weights[SAMPLES];
} setup;

static bool is_chosen(int64_t sample, int64_t i) {
    if (sample == 0) return false;
    return sample == 1 || (i + sample) % 3 == 0;
}

static setup make(float factor) {
    setup s = {0};
    ls_error e = {0};
    ls_model *m = &s.model;
    ls_value *x = ls_affine(m, ls_input(m, "x", LS_F32, LS_DIMS(V)), 1, 0);
    ls_bpr(m, x, ls_input(m, "clicked", LS_F32, LS_DIMS(V)), .factor = factor);
    assert_ls_ok(ls_build_finish(m, &e), e);
    s.samples = ls_alloc(SAMPLES * m->sample_nbytes);
    for (int64_t i = 0; i < SAMPLES; i++) {
        char *sample = s.samples + (size_t)i * m->sample_nbytes;
        float *t = (float *)(void *)(sample + m->inputs[1].offset);
        s.weights[i] = 0.5 + (double)i / 4;
        for (int64_t k = 0; k < V; k++) {
            t[k] = is_chosen(i, k);
            s.x[i * V + k] =
                (float)(6 * ls_random_uniform(3, LS_STREAM_FAKE, 1, (uint64_t)(i * V + k)) - 3);
        }
    }
    return s;
}

static double reference(int64_t sample, const double *x) {
    double sum = 0, pairs = 0;
    for (int64_t i = 0; i < V; i++)
        for (int64_t j = 0; j < V; j++) {
            if (!is_chosen(sample, i) || is_chosen(sample, j)) continue;
            sum += log(1 + exp(-(x[i] - x[j])));
            pairs++;
        }
    return pairs > 0 ? sum / pairs : 0;
}

/* losses [SAMPLES], dx [SAMPLES * V]; of the samples in parts of `micro`, on all variants. */
static void compute(const setup *s, const ls_kernels *k, int64_t micro, int threads, double *losses,
                    float *dx) {
    const ls_layer *l = &s->model.layers[s->model.nlayers - 1];
    ls_compute c;
    ls_error e = {0};
    assert_ls_ok(ls_compute_init(&c, threads, ls_model_scratch_floats(&s->model), &e), e);
    if (k) c.k = k;
    float *work = LS_NEW_ARRAY(float, ls_layer_work_floats(l, micro, false) + 2);
    for (int64_t i = 0; i < SAMPLES; i += micro) {
        ls_layer_call call = {.compute = &c,
                              .n = SAMPLES - i < micro ? SAMPLES - i : micro,
                              .T = l->T,
                              .samples = s->samples + (size_t)i * s->model.sample_nbytes,
                              .sample_nbytes = s->model.sample_nbytes,
                              .type = LS_F32,
                              .x = {s->x + i * V},
                              .dx = {dx + i * V},
                              .work = work,
                              .loss_scale = 0.25F,
                              .losses = losses + i,
                              .weights = s->weights + i};
        l->ops->backward(l, &call);
    }
    free(work);
    ls_compute_close(&c);
}

static void assert_near(double is, double wanted) { assert_true(fabs(is - wanted) < 1e-6); }

static void test_values(void **state) {
    (void)state;
    setup s = make(2);
    double losses[SAMPLES];
    float dx[SAMPLES * V];
    compute(&s, NULL, 3, 1, losses, dx);
    for (int64_t i = 0; i < SAMPLES; i++) {
        double x[V];
        for (int64_t k = 0; k < V; k++) x[k] = (double)s.x[i * V + k];
        assert_near(losses[i], 2 * reference(i, x));
        for (int64_t k = 0; k < V; k++) {
            const double step = 1e-5, at = x[k];
            x[k] = at + step;
            double up = reference(i, x);
            x[k] = at - step;
            double slope = (up - reference(i, x)) / (2 * step);
            x[k] = at;
            assert_near((double)dx[i * V + k], 0.25 * 2 * s.weights[i] * slope);
        }
    }
    assert_true(losses[0] == 0 && losses[1] == 0 && losses[2] > 0); /* no pairs; some */
    ls_model_free(&s.model);
    free(s.samples);
}

static void test_bits(void **state) {
    (void)state;
    setup s = make(0);
    double want[SAMPLES], losses[SAMPLES];
    float want_dx[SAMPLES * V], dx[SAMPLES * V];
    compute(&s, NULL, SAMPLES, 1, want, want_dx);
    for (int i = 0; i == 0 || ls_kernels_at(i - 1); i++)
        for (int64_t micro = 1; micro <= SAMPLES; micro += 2) {
            compute(&s, i ? ls_kernels_at(i - 1) : NULL, micro, 1 + (int)micro % 3, losses, dx);
            assert_memory_equal(losses, want, sizeof want);
            assert_memory_equal(dx, want_dx, sizeof want_dx);
        }
    ls_model_free(&s.model);
    free(s.samples);
}

static void test_refused(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(3));
    ls_bpr(&m, x, ls_input(&m, "t", LS_F32, LS_DIMS(2)), .factor = 1);
    assert_ls_fails(ls_build_finish(&m, &e), LS_EINVAL,
                    "the scores are [3], and the targets [2]; 2 or more of each are needed", e);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
