/* linear_head.h - a linear layer fused with its loss, at the end of a model whose first field is
 * what it reads: all samples in parts of any size.
 *
 * Before it: enum { SAMPLES, ROWS, WIDTH, CLASSES, NOTES }. */
#ifndef LS_TEST_LAYERS_LINEAR_HEAD_H
#define LS_TEST_LAYERS_LINEAR_HEAD_H

#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "layers/layer_check.h"
#include "layers/layers.h"
#include "model/check.h"

static const float LOSS_SCALE = 0.25f;

typedef struct setup {
    ls_model model;
    float *params;
    unsigned char *samples;
    double weights[SAMPLES];
    ls_dpo_options o; /* of linear_dpo */
} setup;

/* What a call gives, for all samples. */
typedef struct result {
    double losses[SAMPLES], forward[SAMPLES], notes[NOTES + 1][SAMPLES];
    float dx[SAMPLES][ROWS][WIDTH], dw[CLASSES][WIDTH], logits[SAMPLES][ROWS][CLASSES];
} result;

static void *field_of(const setup *s, int64_t sample, int field) {
    return s->samples + (size_t)sample * s->model.sample_nbytes + s->model.inputs[field].offset;
}

static void close_setup(setup *s) {
    ls_model_free(&s->model);
    free(s->params), free(s->samples);
}

static void *nans(size_t nbytes) {
    void *p = malloc(nbytes + 1);
    memset(p, 0xff, nbytes);
    return p;
}

/* Samples [i, i + n): losses and logits forward, and backward. */
static void run_part(const setup *s, const ls_compute *compute, int64_t i, int64_t n, float *grads,
                     result *r) {
    const ls_layer *l = &s->model.layers[s->model.nlayers - 1];
    float x[SAMPLES][ROWS][WIDTH];
    for (int64_t k = 0; k < n; k++) memcpy(x[k], field_of(s, i + k, 0), sizeof x[k]);
    void *work = nans(ls_mixed_work_nbytes(l, n, LS_F32, LS_F32, false));
    ls_layer_call c = {.compute = compute,
                       .n = n,
                       .T = l->T,
                       .samples = s->samples + (size_t)i * s->model.sample_nbytes,
                       .sample_nbytes = s->model.sample_nbytes,
                       .params = s->params,
                       .grads = grads,
                       .grads_start = i == 0,
                       .x = {x},
                       .work = work,
                       .y = r->logits[i],
                       .loss_scale = LOSS_SCALE,
                       .notes = NOTES ? &r->notes[0][i] : NULL,
                       .notes_stride = SAMPLES,
                       .weights = s->weights + i};
    ls_mixed_forward(l, &c);
    c.y = NULL;
    c.losses = r->forward + i;
    ls_mixed_forward(l, &c);
    c.losses = r->losses + i;
    c.dx[0] = r->dx[i];
    ls_mixed_backward(l, &c);
    free(work);
}

static result *run(const setup *s, int64_t micro, int threads, const ls_kernels *k) {
    result *r = LS_NEW(result);
    ls_compute compute;
    ls_error e = {0};
    float *grads = nans(s->model.nfloats * sizeof *grads);
    assert_ls_ok(ls_compute_init(&compute, threads, ls_model_scratch_floats(&s->model), &e), e);
    ls_pool_share_cores(compute.pool);
    if (k) compute.k = k;
    for (int64_t i = 0; i < SAMPLES; i += micro)
        run_part(s, &compute, i, SAMPLES - i < micro ? SAMPLES - i : micro, grads, r);
    memcpy(r->dw, grads + s->model.params[0].offset, sizeof r->dw);
    ls_compute_close(&compute);
    free(grads);
    return r;
}

/* The same bits with each variant of the kernels. */
static void check_variants(const setup *s, const result *one) {
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        result *r = run(s, 1 + i, 1 + i % 2 * 2, k);
        assert_memory_equal(r, one, sizeof *r);
        free(r);
    }
}

static void count_wrong(void *arg, const ls_check_result *r) {
    if (r->wrong) print_error("%s: %s\n", r->layer->name, r->wrong);
    *(int64_t *)arg += r->comparisons;
}

/* By differences, all layers of a finished model. */
static void check_all_layers(ls_model *m) {
    ls_error e = {0};
    int64_t comparisons = 0;
    ls_check_count count = {0, 0};
    assert_ls_ok(ls_check_model(m, count_wrong, &comparisons, &count, &e), e);
    assert_int_equal(count.wrong + count.open, 0);
    assert_true(comparisons > 100);
}

#endif
