/* check_call.c - see check_call.h. */
#include "model/check_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/round_up.h"
#include "model/mixed.h"

enum { GUARD = 1024, GUARD_BYTE = 0xa5 };
static const float LOSS_SCALE = 0.25f;

/* ---- guarded memory ---- */

static void *at(const ls_guarded *g) { return (unsigned char *)g->base + GUARD; }

static ls_guarded guarded(size_t nbytes, unsigned char fill) {
    size_t all = ls_round_up(2 * GUARD + nbytes, 64);
    ls_guarded g = {.base = ls_alloc(all + 64), .nbytes = nbytes};
    memset(g.base, GUARD_BYTE, all);
    memset(at(&g), fill, nbytes);
    return g;
}

static bool is_guard(const unsigned char *p) {
    return p[0] == GUARD_BYTE && memcmp(p, p + 1, GUARD - 1) == 0;
}

static bool is_whole(const ls_guarded *g) {
    const unsigned char *before = g->base;
    return is_guard(before) && is_guard(before + GUARD + g->nbytes);
}

__attribute__((format(printf, 2, 3))) static void note(ls_check_run *r, const char *fmt, ...) {
    if (*r->broke) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->broke, sizeof r->broke, fmt, ap);
    va_end(ap);
}

/* ---- operands ---- */

bool ls_check_has_backward(const ls_layer *l) { return !l->link.is_constant && l->ops->backward; }

/* The operands of a call: samples, x and dy of the chosen samples. */
typedef struct operands {
    ls_guarded samples, x[LS_LAYER_MAX_INPUTS], dy;
} operands;

/* Copies rows of `floats` numbers in the order of the call. */
static ls_guarded gather(const ls_check_way *w, const void *from, size_t nbytes) {
    ls_guarded g = guarded((size_t)w->n * nbytes, 0);
    for (int i = 0; i < w->n; i++)
        memcpy((char *)at(&g) + (size_t)i * nbytes,
               (const char *)from + (size_t)w->which[i] * nbytes, nbytes);
    return g;
}

static operands make_operands(const ls_check *c, const ls_check_way *w) {
    const ls_layer *l = c->layer;
    operands o = {.samples = gather(w, c->samples, c->model->sample_nbytes)};
    for (int k = 0; k < l->ninputs; k++)
        o.x[k] = gather(w, c->x[k], l->input_floats[k] * sizeof(float));
    o.dy = gather(w, c->dy, l->y_floats * sizeof(float));
    return o;
}

/* Is the copy what it was? */
static bool is_same(const ls_check_way *w, const ls_guarded *g, const void *from, size_t nbytes) {
    for (int i = 0; i < w->n; i++)
        if (memcmp((char *)at(g) + (size_t)i * nbytes,
                   (const char *)from + (size_t)w->which[i] * nbytes, nbytes) != 0)
            return false;
    return is_whole(g);
}

static void check_operands(const ls_check *c, ls_check_run *r, operands *o) {
    const ls_layer *l = c->layer;
    if (!is_same(&r->way, &o->samples, c->samples, c->model->sample_nbytes)) note(r, "the samples");
    for (int k = 0; k < l->ninputs; k++)
        if (!is_same(&r->way, &o->x[k], c->x[k], l->input_floats[k] * sizeof(float)))
            note(r, "its input %d", k);
    if (!is_same(&r->way, &o->dy, c->dy, l->y_floats * sizeof(float)))
        note(r, "the gradient of its output");
    free(o->samples.base);
    for (int k = 0; k < l->ninputs; k++) free(o->x[k].base);
    free(o->dy.base);
}

/* ---- results ---- */

static void *result(ls_check_run *r, size_t nbytes) {
    r->all[r->nall] = guarded(nbytes, r->way.fill);
    return at(&r->all[r->nall++]);
}

/* A parameter that a later layer has, too: that layer's gradient, here 0, is added to. */
static void begin_shared(const ls_check *c, ls_check_run *r) {
    const ls_model *m = c->model;
    for (int i = c->number + 1; i < m->nlayers; i++)
        for (int q = 0; q < m->layers[i].nparams; q++)
            for (int p = 0; p < c->layer->nparams; p++)
                if (c->layer->params[p] == m->layers[i].params[q] && !c->layer->link.frozen[p])
                    memset(r->grads + c->layer->link.offsets[p], 0,
                           c->layer->counts[p] * sizeof(float));
}

static void make_results(const ls_check *c, ls_check_run *r) {
    const ls_layer *l = c->layer;
    size_t n = (size_t)r->way.n;
    r->y = result(r, n * l->y_floats * sizeof(float));
    r->losses = result(r, n * sizeof(double));
    if (!ls_check_has_backward(l) || r->way.forward_alone) return;
    r->grads = result(r, c->model->nfloats * sizeof(float));
    begin_shared(c, r);
    for (int k = 0; k < l->ninputs; k++)
        if (!r->way.as_in_step || !c->model->layers[l->inputs[k]].link.is_constant)
            r->dx[k] = result(r, n * l->input_floats[k] * sizeof(float));
}

static bool owns(const ls_layer *l, size_t i) {
    for (int p = 0; p < l->nparams; p++)
        if (!l->link.frozen[p] && i >= l->link.offsets[p] && i < l->link.offsets[p] + l->counts[p])
            return true;
    return false;
}

static void check_results(const ls_check *c, ls_check_run *r) {
    static const char *const names[] = {"its output", "its losses", "the parameters' gradients"};
    for (int i = 0; i < r->nall; i++)
        if (!is_whole(&r->all[i]) && i < 3)
            note(r, "memory beside %s", names[i]);
        else if (!is_whole(&r->all[i]))
            note(r, "memory beside the gradient of input %d", i - 3);
    if (!r->grads) return;
    float untouched;
    memset(&untouched, r->way.fill, sizeof untouched);
    for (size_t i = 0; i < c->model->nfloats; i++)
        if (memcmp(&r->grads[i], &untouched, sizeof untouched) != 0 && !owns(c->layer, i))
            note(r, "gradients of other layers");
}

/* ---- calls ---- */

/* One micro-batch: samples [first, first + n) of the run. */
static void call(const ls_check *c, ls_check_run *r, const operands *o, int first, int n) {
    const ls_layer *l = c->layer;
    size_t f = (size_t)first;
    ls_layer_call a = {.compute = &c->compute[r->way.pool],
                       .n = n,
                       .T = l->T,
                       .sample_nbytes = c->model->sample_nbytes,
                       .type = LS_F32,
                       .grads_type = LS_F32,
                       .params = c->params,
                       .frozen = c->frozen,
                       .grads = r->grads,
                       .first = first == 0,
                       .last = first + n == r->way.n,
                       .grads_start = first == 0,
                       .loss_scale = LOSS_SCALE,
                       .training = !r->way.evaluates,
                       .seed = 1,
                       .step = 1,
                       .first_sample = (uint64_t)(r->way.which[0] + first)};
    ls_guarded saved = guarded(ls_mixed_saved_nbytes(l, n, LS_F32), r->way.fill);
    ls_guarded work = guarded(ls_mixed_work_nbytes(l, n, LS_F32, LS_F32, false), r->way.fill);
    a.samples = (char *)at(&o->samples) + f * c->model->sample_nbytes;
    for (int k = 0; k < l->ninputs; k++) {
        a.x[k] = (float *)at(&o->x[k]) + f * l->input_floats[k];
        a.dx[k] = r->dx[k] ? r->dx[k] + f * l->input_floats[k] : NULL;
    }
    a.dy = (float *)at(&o->dy) + f * l->y_floats;
    a.y = r->y + f * l->y_floats;
    a.losses = l->traits.loss ? r->losses + first : NULL;
    a.saved = at(&saved);
    a.work = at(&work);
    ls_mixed_forward(l, &a);
    if (!is_whole(&work)) note(r, "memory beside its work memory, in forward");
    memset(at(&work), r->way.fill, work.nbytes);
    if (r->grads) ls_mixed_backward(l, &a);
    if (!is_whole(&saved)) note(r, "memory beside what it saves");
    if (!is_whole(&work)) note(r, "memory beside its work memory");
    free(saved.base);
    free(work.base);
}

ls_check_run ls_check_run_layer(const ls_check *c, const ls_check_way *w) {
    ls_check_run r = {.way = *w};
    int micro = w->micro ? w->micro : w->n;
    make_results(c, &r);
    operands o = make_operands(c, w);
    for (int first = 0; first < w->n; first += micro)
        call(c, &r, &o, first, w->n - first < micro ? w->n - first : micro);
    check_results(c, &r);
    check_operands(c, &r, &o);
    return r;
}

void ls_check_run_free(ls_check_run *r) {
    for (int i = 0; i < r->nall; i++) free(r->all[i].base);
    *r = (ls_check_run){0};
}
