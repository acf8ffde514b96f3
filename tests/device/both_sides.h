/* both_sides.h - layers of models that tests build: forward and backward on a device have the bits
 * of the host. */
#ifndef LS_TEST_BOTH_SIDES_H
#define LS_TEST_BOTH_SIDES_H

#include "device/on_device.h"
#include "layers/layers.h"
#include "model/frozen.h"
#include "model/mixed.h"
#include "model/mixed_device.h"

enum { N = 3, PARAMS = 12, CONSTANTS = 4 };

/* A model is built from fields whose integers are below `below`; those of field 0 may be
 * negative. */
typedef struct built {
    void (*build)(ls_model *);
    uint32_t below;
} built;

/* What all layers of a model use, and one layer's operands. */
typedef struct shared {
    pair samples, params, grads, losses, notes, weights, frozen[PARAMS], constants[CONSTANTS];
    ls_frozen_value values[2][PARAMS]; /* of the host, of the device */
    const float *there[CONSTANTS];
} shared;
typedef struct operands {
    pair x[LS_LAYER_MAX_INPUTS], dx[LS_LAYER_MAX_INPUTS], y, saved, work, dy;
} operands;

static inline pair floats_of(sides *s, size_t n) { return pair_numbers(s, (int64_t)n, 2); }

/* Some of the first field's integers stand for none: all of a sample's, too. */
static inline pair samples_of(sides *s, const ls_model *m, uint32_t below) {
    int64_t each = (int64_t)(m->sample_nbytes / sizeof(int32_t));
    pair p = pair_integers(s, N * each, below);
    int32_t *field = p.host;
    size_t n = m->inputs[0].nbytes / sizeof *field;
    for (int64_t i = 0; i < N; i++, field += each)
        for (size_t k = 0; m->padded[0] && k < n; k++)
            if (i == 1 || (i + (int64_t)k) % 3 == 0) field[k] = -1;
    pair_send(s, &p);
    return p;
}

static inline shared shared_of(sides *s, const ls_model *m, uint32_t below) {
    shared h = {.samples = samples_of(s, m, below),
                .params = floats_of(s, m->nfloats),
                .grads = floats_of(s, m->nfloats),
                .losses = pair_empty(s, N * (size_t)(m->nlosses + 1) * sizeof(double)),
                .notes = pair_empty(s, N * (size_t)(m->nnotes + 1) * sizeof(double)),
                .weights = pair_of(s, N * sizeof(double))};
    int n = 0;
    const ls_constants *list = ls_model_constants(m, &n);
    assert_true(n <= CONSTANTS && m->nparams <= PARAMS);
    for (int i = 0; i < N; i++) ((double *)h.weights.host)[i] = 0.7 + i;
    pair_send(s, &h.weights);
    for (int i = 0; i < n; i++) {
        h.constants[i] = pair_of(s, list[i].n * sizeof(float));
        memcpy(h.constants[i].host, list[i].p, h.constants[i].nbytes);
        pair_send(s, &h.constants[i]);
        h.there[i] = h.constants[i].device;
    }
    for (int i = 0; i < m->nparams; i++) {
        if (!m->params[i].frozen) continue;
        h.frozen[i] = floats_of(s, m->params[i].count);
        h.values[0][i] = (ls_frozen_value){.data = h.frozen[i].host, .type = LS_BLOCK_F32};
        h.values[1][i] = (ls_frozen_value){.data = h.frozen[i].device, .type = LS_BLOCK_F32};
    }
    return h;
}

static inline void shared_free(const sides *s, shared *h) {
    pair *all[] = {&h->samples, &h->params, &h->grads, &h->losses, &h->notes, &h->weights};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pair_free(s, all[i]);
    for (int i = 0; i < PARAMS; i++)
        if (h->frozen[i].host) pair_free(s, &h->frozen[i]);
    for (int i = 0; i < CONSTANTS; i++)
        if (h->constants[i].host) pair_free(s, &h->constants[i]);
}

static inline operands operands_of(sides *s, const ls_layer *l) {
    size_t y = N * l->y_floats;
    operands o = {.y = pair_empty(s, y * sizeof(float)),
                  .dy = floats_of(s, y),
                  .saved = pair_empty(s, ls_mixed_saved_nbytes(l, N, LS_F32)),
                  .work = pair_empty(s, ls_mixed_device_work_nbytes(l, N))};
    for (int k = 0; k < l->ninputs; k++) {
        o.x[k] = floats_of(s, N * l->input_floats[k]);
        o.dx[k] = floats_of(s, N * l->input_floats[k]);
    }
    return o;
}

static inline void operands_free(const sides *s, const ls_layer *l, operands *o) {
    pair_free(s, &o->y), pair_free(s, &o->dy), pair_free(s, &o->saved), pair_free(s, &o->work);
    for (int k = 0; k < l->ninputs; k++) pair_free(s, &o->x[k]), pair_free(s, &o->dx[k]);
}

static inline ls_layer_call call_of(const ls_model *m, const ls_layer *l, const ls_compute *c,
                                    shared *h, operands *o) {
    bool device = c->device;
#define AT(pair) (device ? (pair).device : (pair).host)
    ls_layer_call call = {.compute = c,
                          .n = N,
                          .T = l->T,
                          .samples = AT(h->samples),
                          .sample_nbytes = m->sample_nbytes,
                          .params = AT(h->params),
                          .frozen = h->values[device],
                          .constants = h->there,
                          .host_samples = device ? h->samples.host : NULL,
                          .grads = AT(h->grads),
                          .first = true,
                          .last = true,
                          .y = AT(o->y),
                          .saved = AT(o->saved),
                          .work = AT(o->work),
                          .dy = AT(o->dy),
                          .loss_scale = 0.37f,
                          .training = true,
                          .seed = 0x1234567890abcdefu,
                          .step = 5,
                          .first_sample = 7,
                          .losses = AT(h->losses),
                          .notes = AT(h->notes),
                          .notes_stride = N,
                          .weights = AT(h->weights)};
    for (int k = 0; k < l->ninputs; k++) call.x[k] = AT(o->x[k]), call.dx[k] = AT(o->dx[k]);
    return call;
#undef AT
}

/* starts: the gradients' chains begin. wants: the inputs' gradients. */
static inline void check_layer(sides *s, const ls_model *m, const ls_layer *l, shared *h,
                               bool starts, bool wants) {
    operands o = operands_of(s, l);
    int wrong = nwrong;
    for (int side = 0; side < 2; side++) {
        ls_layer_call c = call_of(m, l, side ? &s->device : &s->host, h, &o);
        c.grads_start = starts;
        for (int k = 0; k < l->ninputs && !wants; k++) c.dx[k] = NULL;
        ls_mixed_forward(l, &c);
        if (l->ops->backward) ls_mixed_backward(l, &c);
    }
    expect_same(s, &o.y, "y");
    expect_same(s, &h->grads, "a gradient");
    expect_same(s, &h->losses, "a loss");
    expect_same(s, &h->notes, "a note");
    for (int k = 0; k < l->ninputs; k++) expect_same(s, &o.dx[k], "dx");
    if (nwrong > wrong) print_error("  of layer %s (%s)\n", l->name, l->ops->kind);
    operands_free(s, l, &o);
}

/* block: rows of a loss that are computed at a time; 0: as it declares. */
static inline void check_model(const built *b, uint64_t seed, int64_t block) {
    ls_model m = {0};
    ls_error e = {0};
    sides s;
    int checked = 0;
    b->build(&m);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    sides_open(&s, seed, ls_model_scratch_floats(&m));
    shared h = shared_of(&s, &m, b->below);
    for (int i = 0; i < m.nlayers; i++) {
        ls_layer *l = &m.layers[i];
        if (block && l->memory.block_rows) l->memory.block_rows = block;
        if (!l->traits.on_device) continue;
        check_layer(&s, &m, l, &h, seed % 2, seed % 3);
        checked++;
    }
    assert_true(checked > 0);
    shared_free(&s, &h);
    sides_close(&s);
    ls_model_free(&m);
}

static inline void check(void (*build)(ls_model *), uint32_t below) {
    built b = {build, below};
    for (int seed = 1; seed <= ncases(3, 12); seed++)
        check_model(&b, (uint64_t)seed, seed % 2 ? 0 : 7);
    assert_none_wrong();
}

#endif
