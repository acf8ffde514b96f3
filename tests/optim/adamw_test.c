/* adamw_test.c - AdamW with clipping against a plain loop in double precision, and the promise. */
#include "optim/adamw.h"

#include <math.h>

#include "base/mem.h"
#include "optim/norm.h"
#include "test.h"

enum { STEPS = 20 };

static const ls_adamw settings = {0.9, 0.95, 1e-8, 0.1};
static const double LR = 1e-2, LIMIT = 3.0;

typedef struct setup {
    ls_model model;
    size_t n;
    float *first; /* [n] the weights before the first step */
} setup;

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1.0;
}

static int set_up(void **state) {
    static setup s;
    ls_error e = {0};
    ls_gpt_config c = {1, 20, 2, 9, 31};
    assert_ls_ok(ls_gpt_create(&c, &s.model, &e), e);
    s.n = s.model.nfloats;
    s.first = LS_NEW_ARRAY(float, s.n);
    uint64_t r = 1;
    for (size_t i = 0; i < s.n; i++) s.first[i] = (float)uniform(&r);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    setup *s = *state;
    ls_model_free(&s->model);
    free(s->first);
    return 0;
}

static void compute_open(ls_compute *c, int nthreads, const char *cpu) {
    ls_error e = {0};
    setenv("LOCKSTEP_CPU", cpu, 1);
    assert_ls_ok(ls_compute_init(c, nthreads, 16, &e), e);
    unsetenv("LOCKSTEP_CPU");
}

/* Gradients of step t: zero in the padding, of changing size, some steps above the clip's limit. */
static void gradients(const setup *s, int t, float *g) {
    uint64_t r = (uint64_t)t + 100;
    memset(g, 0, s->n * sizeof *g);
    for (int i = 0; i < s->model.nparams; i++)
        for (size_t k = 0; k < s->model.params[i].count; k++)
            g[s->model.params[i].offset + k] = (float)(0.02 * (1 + t % 5) * uniform(&r));
}

static double clip_factor(const ls_compute *c, const float *g, size_t n) {
    double *sums = LS_NEW_ARRAY(double, n / LS_BLOCK);
    ls_norm_blocks(c, LS_F32, g, 0, n, sums);
    double factor = ls_clip_factor(ls_norm_total(sums, n / LS_BLOCK), LIMIT);
    free(sums);
    return factor;
}

/* STEPS steps, each in ranges of `cut` elements; state [3][n]: weights, m, v. */
static float *run(const setup *s, int nthreads, const char *cpu, size_t cut) {
    ls_compute c;
    compute_open(&c, nthreads, cpu);
    float *state = LS_NEW_ARRAY(float, 3 * s->n), *g = LS_NEW_ARRAY(float, s->n);
    const ls_adamw_state all = {.grads_type = LS_F32,
                                .params_type = LS_F32,
                                .grads = g,
                                .params = state,
                                .m = state + s->n,
                                .v = state + 2 * s->n};
    memcpy(state, s->first, s->n * sizeof *state);
    for (int t = 0; t < STEPS; t++) {
        gradients(s, t, g);
        ls_adamw_step step = ls_adamw_at(&settings, t, LR, clip_factor(&c, g, s->n));
        for (size_t at = 0; at < s->n; at += cut)
            ls_adamw_run(&c, &s->model, &step, at, at + cut < s->n ? at + cut : s->n, &all);
    }
    free(g);
    ls_compute_close(&c);
    return state;
}

static double exact_factor(const float *g, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
    return sqrt(sum) > LIMIT ? LIMIT / sqrt(sum) : 1;
}

/* One step of algorithm 2 for one element; t from 1. */
static void exact_step(int t, double g, bool decay, double *p, double *m, double *v) {
    *m = 0.9 * *m + 0.1 * g;
    *v = 0.95 * *v + 0.05 * g * g;
    double mh = *m / (1 - pow(0.9, t)), vh = *v / (1 - pow(0.95, t));
    *p -= LR * (mh / (sqrt(vh) + 1e-8) + (decay ? 0.1 * *p : 0));
}

/* A step moves a weight by about LR = 1e-2; 20 of them agree to 2e-6. */
static void test_against_double(void **arg) {
    const setup *s = *arg;
    float *got = run(s, 1, "portable", s->n), *g = LS_NEW_ARRAY(float, s->n);
    double *p = LS_NEW_ARRAY(double, s->n);
    double *m = LS_NEW_ARRAY(double, s->n), *v = LS_NEW_ARRAY(double, s->n);
    int clipped = 0;
    for (size_t i = 0; i < s->n; i++) p[i] = (double)s->first[i];
    for (int t = 0; t < STEPS; t++) {
        gradients(s, t, g);
        double factor = exact_factor(g, s->n);
        clipped += factor < 1;
        for (int i = 0; i < s->model.nparams; i++) {
            const ls_param *q = &s->model.params[i];
            for (size_t k = q->offset; k < q->offset + q->count; k++)
                exact_step(t + 1, factor * (double)g[k], q->ndims == 2, &p[k], &m[k], &v[k]);
        }
    }
    assert_in_range(clipped, 1, STEPS - 1); /* both cases of clipping occurred */
    for (size_t i = 0; i < s->n; i++) {
        assert_true(fabs((double)got[i] - p[i]) <= 2e-6);
        assert_true(fabs((double)got[s->n + i] - m[i]) <= 1e-6 * 0.1);
        assert_true(fabs((double)got[2 * s->n + i] - v[i]) <= 1e-5 * v[i]);
    }
    free(got), free(g), free(p), free(m), free(v);
}

/* Ranges need not end where parameters or vectors do. */
static void test_same_bits(void **arg) {
    const setup *s = *arg;
    const ls_kernels *k = NULL;
    static const size_t cuts[] = {7, 100, 1024, 5000, SIZE_MAX / 2};
    float *want = run(s, 1, "portable", s->n);
    for (int v = 0; (k = ls_kernels_at(v)); v++)
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            float *got = run(s, 1 + (int)i % 3, k->name, cuts[i]);
            assert_memory_equal(got, want, 3 * s->n * sizeof *got);
            free(got);
        }
    free(want);
}

/* With no gradient only decay changes a weight: vectors and padding don't change. */
static void test_decay(void **arg) {
    const setup *s = *arg;
    ls_compute c;
    compute_open(&c, 2, "portable");
    float *p = LS_NEW_ARRAY(float, s->n), *zero = LS_NEW_ARRAY(float, s->n);
    float *m = LS_NEW_ARRAY(float, s->n), *v = LS_NEW_ARRAY(float, s->n);
    memcpy(p, s->first, s->n * sizeof *p);
    ls_adamw_step step = ls_adamw_at(&settings, 0, 0.5, 1);
    const ls_adamw_state all = {
        .grads_type = LS_F32, .params_type = LS_F32, .grads = zero, .params = p, .m = m, .v = v};
    ls_adamw_run(&c, &s->model, &step, 0, s->n, &all);
    for (int i = 0; i < s->model.nparams; i++) {
        const ls_param *q = &s->model.params[i];
        for (size_t k = q->offset; k < q->offset + q->count; k++) {
            double want = (double)s->first[k] * (q->ndims == 2 ? 1 - 0.5 * 0.1 : 1.0);
            assert_true(fabs((double)p[k] - want) <= 1e-7);
            p[k] = s->first[k];
        }
    }
    assert_memory_equal(p, s->first, s->n * sizeof *p);
    free(p), free(zero), free(m), free(v);
    ls_compute_close(&c);
}

/* The first step's corrections make it a step of lr against the sign of the gradient. */
static void test_first_step(void **state) {
    (void)state;
    ls_adamw_step step = ls_adamw_at(&settings, 0, LR, 0.25);
    assert_true(fabs((double)step.correct1 - 10) < 1e-5);
    assert_true(fabs((double)step.correct2 - 20) < 1e-5);
    assert_true(step.grad_scale == 0.25f);
    float g = -3, p = 1, m = 0, v = 0;
    step.weight_decay = 0;
    ls_kernels_named("portable")->adamw(1, &step, &g, &p, &m, &v);
    assert_true(fabs((double)p - (1 + LR)) < 1e-6);
    step = ls_adamw_at(&settings, 999999, LR, 1);
    assert_true(step.correct1 == 1 && step.correct2 == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_decay),
        cmocka_unit_test(test_first_step),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
