/* check.c - see check.h. */
#include "model/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "model/check_call.h"
#include "model/check_gradient.h"
#include "model/frozen.h"
#include "model/mixed.h"

enum { ALL = LS_CHECK_SAMPLES, SEED = 29, REPEATS = 8 };

/* ---- samples, parameters, values ---- */

static uint32_t random_word(uint64_t which, uint64_t i) {
    uint32_t words[4];
    ls_random_words(SEED, LS_STREAM_FAKE, which, i, words);
    return words[0];
}

static void fill_field(const ls_model *m, int field, int sample, unsigned char *at) {
    const ls_field *f = &m->inputs[field];
    size_t count = f->nbytes / ls_dtype_size(f->type);
    uint64_t first = (uint64_t)sample * count, which = 100 + (uint64_t)field;
    if (f->type == LS_F32)
        ls_random_normal((ls_random_place){SEED, LS_STREAM_FAKE, which, first}, count, 1,
                         (float *)(void *)at);
    uint32_t classes = m->classes[field] ? (uint32_t)m->classes[field] : 2;
    for (size_t i = 0; f->type != LS_F32 && i < count; i++) {
        uint32_t word = random_word(which, first + i);
        if (f->type == LS_U8) at[i] = (unsigned char)word;
        if (f->type == LS_U32) ((uint32_t *)(void *)at)[i] = word % classes;
        if (f->type == LS_I32) ((int32_t *)(void *)at)[i] = (int32_t)(word % classes);
    }
}

static void fill_samples(ls_check *c) {
    const ls_model *m = c->model;
    for (int i = 0; i < ALL; i++) {
        unsigned char *sample = c->samples + (size_t)i * m->sample_nbytes;
        for (int f = 0; f < m->ninputs; f++) fill_field(m, f, i, sample + m->inputs[f].offset);
    }
}

/* Constants are moved, so that a gradient that ignores a parameter of 0 or 1 is seen. */
static void fill_params(ls_check *c) {
    const ls_model *m = c->model;
    ls_model_init(m, SEED, 0, m->nfloats, c->params);
    ls_frozen_init(m, SEED, c->frozen_params);
    ls_frozen_place(m, LS_F32, c->frozen_params, c->frozen);
    for (int p = 0; p < m->nparams; p++) {
        const ls_param *q = &m->params[p];
        float *x = (q->frozen ? c->frozen_params : c->params) + q->offset;
        if (q->init.std > 0) continue;
        ls_random_place place = {SEED, LS_STREAM_FAKE, 10000 + (uint64_t)p, 0};
        ls_random_normal(place, q->count, 0.2f, x);
        for (size_t i = 0; i < q->count; i++) x[i] += q->init.value;
        for (size_t i = 0; q->momentum > 0 && i < q->count; i++) x[i] = fabsf(x[i]); /* variances */
    }
}

/* Computes the outputs of all layers, which are the others' inputs. */
static void fill_values(ls_check *c) {
    const ls_model *m = c->model;
    for (int i = 0; i < m->nlayers + m->nlate; i++) {
        const ls_layer *l = &m->layers[i];
        c->values[i] = LS_NEW_ARRAY(float, ALL * l->y_floats + 1);
        if (l->traits.loss) continue;
        ls_layer_call a = {.compute = &c->compute[0],
                           .n = ALL,
                           .T = l->T,
                           .samples = c->samples,
                           .sample_nbytes = m->sample_nbytes,
                           .type = LS_F32,
                           .grads_type = LS_F32,
                           .params = c->params,
                           .frozen = c->frozen,
                           .y = c->values[i]};
        for (int k = 0; k < l->ninputs; k++) a.x[k] = c->values[l->inputs[k]];
        a.saved = ls_alloc(ls_mixed_saved_nbytes(l, ALL, LS_F32) + 1);
        a.work = ls_alloc(ls_mixed_work_nbytes(l, ALL, LS_F32, LS_F32, false) + 1);
        ls_mixed_forward(l, &a);
        free(a.saved);
        free(a.work);
    }
}

static ls_status check_open(ls_check *c, const ls_model *m, ls_error *e) {
    static const int threads[LS_CHECK_POOLS] = {1, 2, 3, 5};
    *c = (ls_check){.model = m};
    for (int i = 0; i < LS_CHECK_POOLS; i++) {
        LS_TRY(ls_compute_init(&c->compute[i], threads[i], ls_model_scratch_floats(m), e));
        ls_pool_share_cores(c->compute[i].pool);
    }
    c->samples = ls_alloc(ALL * m->sample_nbytes + 1);
    c->params = LS_NEW_ARRAY(float, m->nfloats + 1);
    c->frozen_params = LS_NEW_ARRAY(float, m->frozen_floats + 1);
    c->frozen = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams + 1);
    c->values = LS_NEW_ARRAY(float *, (size_t)(m->nlayers + m->nlate));
    fill_samples(c);
    fill_params(c);
    fill_values(c);
    return LS_OK;
}

static void check_close(ls_check *c) {
    for (int i = 0; i < LS_CHECK_POOLS; i++) ls_compute_close(&c->compute[i]);
    for (int i = 0; c->values && i < c->model->nlayers + c->model->nlate; i++) free(c->values[i]);
    free(c->samples);
    free(c->params);
    free(c->frozen_params);
    free(c->frozen);
    free(c->values);
}

/* ---- results of two runs ---- */

/* The first result that has other bits: n samples from i on in one run, from j on in the other, and
 * the parameters' gradients. False: all have the same; else the result's name. */
typedef struct pair {
    const ls_check_run *a, *b;
    int i, j, n;
    bool grads;
} pair;

static bool differs(const void *a, const void *b, const pair *p, size_t nbytes) {
    return a && b &&
           memcmp((const char *)a + (size_t)p->i * nbytes, (const char *)b + (size_t)p->j * nbytes,
                  (size_t)p->n * nbytes) != 0;
}

static bool find_difference(const ls_check *c, const pair *p, char name[96]) {
    const ls_layer *l = c->layer;
    bool found = !l->traits.loss && differs(p->a->y, p->b->y, p, l->y_floats * sizeof(float));
    if (l->traits.loss) found = differs(p->a->losses, p->b->losses, p, sizeof(double));
    if (found) snprintf(name, 96, l->traits.loss ? "the loss" : "the output");
    for (int k = 0; !found && k < l->ninputs; k++) {
        found = differs(p->a->dx[k], p->b->dx[k], p, l->input_floats[k] * sizeof(float));
        if (found) snprintf(name, 96, "the gradient of input %d", k);
    }
    for (int q = 0; !found && p->grads && p->a->grads && q < l->nparams; q++) {
        if (l->link.frozen[q]) continue;
        size_t nbytes = l->counts[q] * sizeof(float);
        found =
            memcmp(p->a->grads + l->link.offsets[q], p->b->grads + l->link.offsets[q], nbytes) != 0;
        if (found) snprintf(name, 96, "the gradient of parameter '%s'", ls_check_param_name(c, q));
    }
    return found;
}

/* ---- memory ---- */

/* The first element that is no number; -1: none. */
static int64_t find_nan(const float *x, size_t n) {
    for (size_t i = 0; x && i < n; i++)
        if (isnan(x[i])) return (int64_t)i;
    return -1;
}

static bool say_nan(char *wrong, const char *name, int64_t element) {
    if (element >= 0)
        snprintf(wrong, LS_CHECK_TEXT,
                 "%s has no number at element %lld: the layer has not written it, or has computed "
                 "it from memory that it has not written",
                 name, (long long)element);
    return element >= 0;
}

/* Are there numbers in all results of a run in memory that begins as NaN? */
static bool is_written(const ls_check *c, const ls_check_run *r, char *wrong) {
    const ls_layer *l = c->layer;
    char name[96];
    size_t n = (size_t)r->way.n;
    for (size_t i = 0; l->traits.loss && i < n; i++)
        if (isnan(r->losses[i])) return !say_nan(wrong, "the loss", (int64_t)i);
    if (!l->traits.loss && say_nan(wrong, "the output", find_nan(r->y, n * l->y_floats)))
        return false;
    for (int k = 0; k < l->ninputs; k++) {
        snprintf(name, sizeof name, "the gradient of input %d", k);
        if (say_nan(wrong, name, find_nan(r->dx[k], n * l->input_floats[k]))) return false;
    }
    for (int p = 0; r->grads && p < l->nparams; p++) {
        if (l->link.frozen[p]) continue;
        snprintf(name, sizeof name, "the gradient of parameter '%s'", ls_check_param_name(c, p));
        if (say_nan(wrong, name, find_nan(r->grads + l->link.offsets[p], l->counts[p])))
            return false;
    }
    return true;
}

/* ---- bits ---- */

/* A run, and the part of the first run that must have the same bits. */
typedef struct variation {
    ls_check_way way;
    int i, j, n; /* samples [i, i + n) of it and [j, j + n) of the first run */
    bool grads;
    const char *breaks; /* what the layer breaks if they have not */
} variation;

enum { NVARIATIONS = 14 };
static const variation variations[NVARIATIONS] = {
    {{{0, 1, 2, 3}, ALL, .fill = 0xff}, 0, 0, ALL, true, "differs when the layer is called again"},
    {{{0, 1, 2, 3}, ALL, .fill = 0x3f},
     0,
     0,
     ALL,
     true,
     "depends on memory that the layer has not written"},
    {{{0, 3, 3, 2}, ALL, .evaluates = true, .fill = 0xff},
     0,
     0,
     1,
     false,
     "depends on other samples of the call"},
    {{{1, 2, 3, 3}, ALL, .evaluates = true, .fill = 0xff},
     2,
     3,
     1,
     false,
     "depends on other samples of the call"},
    {{{3, 0, 1, 2}, ALL, .evaluates = true, .fill = 0xff},
     1,
     0,
     3,
     false,
     "depends on a sample's place among those of the call"},
    {{{0}, 1, .fill = 0xff}, 0, 0, 1, false, "depends on the number of samples in a call"},
    {{{2, 3}, 2, .fill = 0xff}, 0, 2, 2, false, "depends on the number of samples in a call"},
    {{{0, 1, 2, 3}, ALL, .micro = 1, .fill = 0xff},
     0,
     0,
     ALL,
     true,
     "depends on the size of a micro-batch"},
    {{{0, 1, 2, 3}, ALL, .micro = 3, .fill = 0xff},
     0,
     0,
     ALL,
     true,
     "depends on the size of a micro-batch"},
    {{{0, 1, 2, 3}, ALL, .as_in_step = true, .fill = 0xff},
     0,
     0,
     ALL,
     true,
     "differs when gradients of constant inputs are not wanted"},
    {{{0, 1, 2, 3}, ALL, .pool = 1, .fill = 0xff}, 0, 0, ALL, true, "depends on threads (2)"},
    {{{0, 1, 2, 3}, ALL, .pool = 2, .fill = 0xff}, 0, 0, ALL, true, "depends on threads (3)"},
    {{{0, 1, 2, 3}, ALL, .pool = 3, .fill = 0xff}, 0, 0, ALL, true, "depends on threads (5)"},
    {{{3, 2, 1, 0}, ALL, .evaluates = true, .pool = 2, .fill = 0xff},
     3,
     0,
     1,
     false,
     "depends on threads (3)"},
};

static bool check_variation(const ls_check *c, const ls_check_run *first, const variation *v,
                            char *wrong) {
    ls_check_run r = ls_check_run_layer(c, &v->way);
    char name[96];
    if (*r.broke)
        snprintf(wrong, LS_CHECK_TEXT, "it writes to %s", r.broke);
    else if (find_difference(c, &(pair){&r, first, v->i, v->j, v->n, v->grads}, name))
        snprintf(wrong, LS_CHECK_TEXT, "%s %s", name, v->breaks);
    ls_check_run_free(&r);
    return !*wrong;
}

/* Some layers may depend on the other samples of a call, or run backward on all of them at once. */
static bool concerns(const ls_check *c, const variation *v) {
    bool part = !v->way.evaluates && (v->way.micro || v->way.n < ALL);
    if (part && ls_model_joins(c->model, c->layer)) return false;
    return !(v->way.micro && c->layer->traits.backward_whole);
}

/* Results that depend on how threads meet differ only sometimes. */
static bool check_bits(const ls_check *c, char *wrong) {
    ls_check_way evaluates = variations[0].way;
    evaluates.evaluates = true;
    ls_check_run first = ls_check_run_layer(c, &variations[0].way);
    ls_check_run other = ls_check_run_layer(c, &evaluates);
    if (*first.broke) snprintf(wrong, LS_CHECK_TEXT, "it writes to %s", first.broke);
    bool good = !*wrong && is_written(c, &first, wrong);
    for (int i = 0; good && i < NVARIATIONS; i++) {
        int repeats = variations[i].way.pool ? REPEATS : 1;
        if (!concerns(c, &variations[i])) continue;
        for (int k = 0; good && k < repeats; k++)
            good = check_variation(c, variations[i].way.evaluates ? &other : &first, &variations[i],
                                   wrong);
    }
    ls_check_run_free(&first);
    ls_check_run_free(&other);
    return good;
}

/* ---- layers ---- */

/* Points c at a layer, with copies of its inputs. */
static void take_layer(ls_check *c, const ls_layer *l, ls_layer *alone, int number) {
    *alone = *l;
    alone->link.added_floats = 0; /* no gradient is added to that of another layer */
    c->layer = alone;
    c->number = number;
    for (int k = 0; k < l->ninputs; k++) {
        size_t n = ALL * l->input_floats[k];
        alone->link.adds[k] = false;
        c->x[k] = LS_NEW_ARRAY(float, n);
        memcpy(c->x[k], c->values[l->inputs[k]], n * sizeof(float));
    }
    c->dy = LS_NEW_ARRAY(float, ALL * l->y_floats + 1);
    ls_random_normal((ls_random_place){SEED, LS_STREAM_FAKE, 20000 + (uint64_t)number, 0},
                     ALL * l->y_floats, 1, c->dy);
    for (size_t i = 0; l->y_parts > 1 && i < ALL * l->y_floats; i++)
        if (i % (size_t)l->y_parts) c->dy[i] = 0;
}

static void leave_layer(ls_check *c) {
    for (int k = 0; k < c->layer->ninputs; k++) free(c->x[k]);
    free(c->dy);
}

ls_status ls_check_model(const ls_model *m, ls_check_report *report, void *arg,
                         ls_check_count *count_p, ls_error *e) {
    ls_check c;
    ls_check_count count = {0, 0};
    ls_status s = check_open(&c, m, e);
    for (int i = 0; s == LS_OK && i < m->nlayers + m->nlate; i++) {
        ls_check_result r = {.layer = &m->layers[i]};
        char wrong[LS_CHECK_TEXT] = "";
        ls_layer alone;
        take_layer(&c, &m->layers[i], &alone, i);
        if (check_bits(&c, wrong) && ls_check_has_backward(&alone))
            ls_check_gradients(&c, &r, wrong);
        leave_layer(&c);
        r.wrong = *wrong ? wrong : NULL;
        count.wrong += *wrong != 0;
        count.open += !*wrong && *r.open;
        report(arg, &r);
    }
    check_close(&c);
    if (s == LS_OK) *count_p = count;
    return s;
}
