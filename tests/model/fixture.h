/* fixture.h - a small model with random weights, and one layer's forward and backward on it.
 *
 * Every buffer has exactly the size that the layer declares, so that the address sanitizer sees a
 * step over its end, and begins as NaN, so that a value that nobody wrote shows in the result.
 */
#ifndef LS_TEST_FIXTURE_H
#define LS_TEST_FIXTURE_H

#include <math.h>

#include "base/mem.h"
#include "model/reference.h"
#include "networks/gpt2.h"
#include "test.h"

/* A small random generator for the tests. Uniform in [-1, 1). */
static inline double fix_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (double)(1 << 23) - 1.0;
}

static inline float *fix_floats(size_t n, double value, double spread, uint64_t seed) {
    float *p = LS_NEW_ARRAY(float, n);
    for (size_t i = 0; i < n; i++) p[i] = (float)(value + spread * fix_random(&seed));
    return p;
}

static inline float *fix_nans(size_t n) { return fix_floats(n, NAN, 0, 0); }

static inline uint32_t *fix_tokens(size_t n, int64_t vocab, uint64_t seed) {
    uint32_t *p = LS_NEW_ARRAY(uint32_t, n);
    for (size_t i = 0; i < n; i++) p[i] = (uint32_t)((fix_random(&seed) + 1) / 2 * (double)vocab);
    return p;
}

/* Weights large enough that every gradient counts; norms near 1, biases near 0. NaN between. */
static inline float *fix_params(const ls_model *m, uint64_t seed) {
    float *p = fix_nans(m->nfloats);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *q = &m->params[i];
        double spread = q->ndims == 1 ? 0.2 : 0.5;
        for (size_t j = 0; j < q->count; j++)
            p[q->offset + j] = (float)((double)q->init.value + spread * fix_random(&seed));
    }
    return p;
}

static inline double *fix_doubles(const float *x, size_t n) {
    double *p = LS_NEW_ARRAY(double, n);
    for (size_t i = 0; i < n; i++) p[i] = (double)x[i];
    return p;
}

/* The tensors of layer l within a flat buffer. */
static inline ref_tensors fix_tensors(const ls_layer *l, double *flat) {
    ref_tensors t = {.rate = 0};
    for (int i = 0; i < l->nparams; i++) t.t[i] = flat + l->link.offsets[i];
    return t;
}

static inline void fix_compute(ls_compute *c, const ls_model *m, int nthreads, const char *cpu) {
    ls_error e = {0};
    if (cpu) setenv("LOCKSTEP_CPU", cpu, 1);
    assert_ls_ok(ls_compute_init(c, nthreads, ls_model_scratch_floats(m), &e), e);
    unsetenv("LOCKSTEP_CPU");
    ls_pool_share_cores(c->pool); /* spinning threads took most of the time of some tests */
}

/* The largest work memory of any layer, for n samples. */
static inline size_t fix_work_floats(const ls_model *m, int64_t n) {
    size_t most = 0;
    for (int i = 0; i < m->nlayers; i++) {
        size_t floats = ls_layer_work_floats(&m->layers[i], n, false);
        if (floats > most) most = floats;
    }
    return most;
}

/* Largest |got - want| over the largest |want|; NaN if any is NaN. */
static inline double fix_distance(const float *got, const double *want, size_t n) {
    double most = 1e-30, off = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(want[i]));
        double d = fabs((double)got[i] - want[i]);
        if (isnan(d)) return d;
        off = fmax(off, d);
    }
    return off / most;
}

#endif
