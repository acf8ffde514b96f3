/* router_balance.c - the auxiliary loss of a router, by which its experts get an even load.
 *
 * The loss of a sample is factor * E * sum(f p) over the experts, where f is an expert's number of
 * choices for each row, and p the mean over the rows of its softmax; the sum is k / E if the load
 * is even. f is a constant for the gradient: dlogit = factor * E / T * p (f - sum(f p)) in each
 * row. Every row of a sample counts. The loss is auxiliary (layer.h).
 *
 * notes: what ls_layers_note_loads() has asked for, the parts of this router. With several routers
 * their parts are added up: the one that runs first in a pass begins the sum.
 *
 * Source: Fedus, Zoph & Shazeer, "Switch transformers", JMLR 2022, for k choices as in Hugging
 * Face's Mixtral, but by sample and layer: there f and p are means over all layers and samples of a
 * call. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/copy.h"
#include "layers/moe.h"
#include "layers/router_device.h"
#include "layers/routing_device.h"

static const double UNIT = 1099511627776; /* 2^40 */

typedef struct options {
    int64_t k;
    bool normalized;
    float factor;
    int64_t capacity; /* of an expert, of a sample's choices; 0: none */
    int notes;        /* the first number that it notes; -1: none */
    int dropped;      /* the number of the note of what is over the capacity */
    int routers;      /* of the model that see a sample */
    bool first, last; /* of all */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    const options *o;
    ls_routing r;
    float *p; /* [rows, E] */
    bool begins;
} job;

static job job_of(const ls_layer *l, const ls_layer_call *c) {
    job j = {.l = l, .c = c, .o = &LS_LAYER_OWN_OF(options, l)};
    j.r = (ls_routing){
        .rows = c->n * c->T, .experts = l->V, .k = j.o->k, .normalized = j.o->normalized};
    j.p = ls_routing_place(&j.r, c->work);
    return j;
}

/* counts [E]: the choices of a sample. */
static void count(const job *j, int64_t sample, int32_t *counts) {
    int64_t n = j->c->T * j->o->k;
    memset(counts, 0, (size_t)j->l->V * sizeof *counts);
    for (int64_t i = 0; i < n; i++) counts[j->r.expert[sample * n + i]]++;
}

/* The loss of a sample, without its factor. */
static double balance_of(const job *j, int64_t sample, const int32_t *counts) {
    int64_t E = j->l->V, T = j->c->T;
    double sum = 0;
    for (int64_t e = 0; e < E; e++) {
        double p = 0;
        for (int64_t t = 0; t < T; t++) p += (double)j->p[(sample * T + t) * E + e];
        sum += (double)counts[e] / (double)T * (p / (double)T);
    }
    return (double)E * sum;
}

/* In place of a sample's probabilities, if gradients are wanted. */
static void write_gradient(const job *j, int64_t sample, const int32_t *counts) {
    const ls_layer_call *c = j->c;
    int64_t E = j->l->V, T = c->T;
    double weight = c->weights ? c->weights[sample] : 1;
    float scale = c->loss_scale * (float)(weight * (double)j->o->factor * (double)E / (double)T);
    for (int64_t t = 0; t < T; t++) {
        const float *p = j->p + (sample * T + t) * E;
        float *dx = (float *)c->dx[0] + (sample * T + t) * E, mean = 0;
        for (int64_t e = 0; e < E; e++) mean += (float)counts[e] / (float)T * p[e];
        for (int64_t e = 0; e < E; e++) dx[e] = scale * p[e] * ((float)counts[e] / (float)T - mean);
    }
}

/* Parts are multiples of 1 / UNIT, so that their sum is the same in any order: with pipelines other
 * workers have other routers. */
static void note(const job *j, int64_t sample, int number, double value) {
    double *to = &j->c->notes[(j->o->notes + number) * j->c->notes_stride + sample];
    *to = (j->begins ? 0 : *to) + nearbyint(value / (double)j->o->routers * UNIT) / UNIT;
}

static void write_notes(const job *j, int64_t sample, double balance, const int32_t *counts) {
    double over = 0, all = (double)(j->c->T * j->o->k);
    if (!j->c->notes || j->o->notes < 0) return;
    note(j, sample, 0, balance);
    for (int64_t e = 0; e < j->l->V; e++) note(j, sample, 1 + (int)e, (double)counts[e] / all);
    for (int64_t e = 0; e < j->l->V; e++)
        if (counts[e] > j->o->capacity) over += (double)(counts[e] - j->o->capacity);
    if (j->o->capacity) note(j, sample, j->o->dropped, over / all);
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int32_t counts[LS_EXPERTS_MOST];
    int64_t i = 0, end = 0, n = j->c->T * j->l->V;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        j->c->compute->k->softmax(j->c->T, j->l->V, (const float *)j->c->x[0] + i * n,
                                  j->p + i * n);
        count(j, i, counts);
        double balance = balance_of(j, i, counts);
        j->c->losses[i] = (double)j->o->factor * balance;
        write_notes(j, i, balance, counts);
        if (j->c->dx[0]) write_gradient(j, i, counts);
    }
}

static void compute_there(const job *j) {
    const ls_layer_call *c = j->c;
    bool notes = c->notes && j->o->notes >= 0;
    ls_routing_device_softmax(c->compute, j->r.rows, j->l->V, c->x[0], NULL, j->p);
    ls_router_device_balance(c, &j->r, j->o->factor, j->p,
                             &(ls_router_notes){
                                 .to = notes ? c->notes + j->o->notes * c->notes_stride : NULL,
                                 .stride = c->notes_stride,
                                 .dropped = j->o->dropped,
                                 .routers = j->o->routers,
                                 .begins = j->begins,
                                 .capacity = j->o->capacity,
                             });
}

static void compute(job *j) {
    ls_routing_choose(j->c->compute, j->c->x[0], j->l->ninputs > 1 ? j->c->x[1] : NULL, &j->r);
    if (j->c->compute->device)
        compute_there(j);
    else
        ls_pool_run(j->c->compute->pool, run, j);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = job_of(l, c);
    j.begins = j.o->first;
    if (c->losses) compute(&j);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    job j = job_of(l, c);
    j.begins = j.o->last;
    compute(&j);
    if (l->ninputs > 1 && c->dx[1])
        ls_copy_run(c->compute, &(ls_copy){.rows = 1, .width = j.r.rows * l->V, .to = c->dx[1]});
}

static const ls_layer_ops ops = {
    .kind = "router_balance", .forward = forward, .backward = backward};

void ls_layers_router_balance(ls_model *m, ls_router_values r, const ls_moe_options *o) {
    ls_value *in[] = {r.logits, r.scores}, *logits = r.logits;
    ls_layer *l = ls_build_layer(m, "balance", NULL, in, r.scores ? 2 : 1);
    if (!l) return;
    l->ops = &ops;
    l->V = l->C = ls_value_last(logits);
    l->T = ls_value_count(logits) / l->V;
    l->traits.loss = l->traits.auxiliary = l->traits.on_device = true;
    LS_LAYER_OWN_AS(options, l) =
        (options){.k = o->per_token,
                  .normalized = o->normalize,
                  .factor = o->balance,
                  .capacity = ls_routing_capacity(o->capacity, l->T, o->experts, o->per_token),
                  .notes = -1};
    l->memory.work = ls_routing_floats(l->T, l->V, o->per_token) + (size_t)(l->T * l->V);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->T * l->V);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS_DX, l->T * l->V);
}

/* ---- notes ---- */

static bool is_balance(const ls_layer *l) { return l->ops == &ops; }

/* Adds the notes of the routers, of at most that number of experts; returns the first one's
 * number. */
static int add_notes(ls_model *m, int64_t experts, bool drops) {
    char name[LS_MEASURE_NAME];
    int first = m->nnotes;
    ls_build_note(m, "router/balance");
    for (int64_t e = 0; e < experts; e++) {
        snprintf(name, sizeof name, "router/load/%d", (int)e);
        ls_build_note(m, name);
    }
    if (drops) ls_build_note(m, "router/dropped");
    return first;
}

void ls_layers_note_loads(ls_model *m) {
    int routers = 0, all = 0, seen = 0;
    int64_t most = 0;
    bool drops = false;
    for (int i = 0; i < m->nlayers; i++) {
        if (!is_balance(&m->layers[i])) continue;
        all++;
        routers += m->layers[i].chunk == 0;
        drops = drops || LS_LAYER_OWN_AS(options, &m->layers[i]).capacity;
        if (m->layers[i].V > most) most = m->layers[i].V;
    }
    if (!all || !ls_build_is_good(m)) return;
    int first = add_notes(m, most, drops);
    for (int i = 0; i < m->nlayers; i++) {
        if (!is_balance(&m->layers[i])) continue;
        options *o = &LS_LAYER_OWN_AS(options, &m->layers[i]);
        o->notes = first;
        o->dropped = 1 + (int)most;
        o->routers = routers;
        o->first = seen++ == 0;
        o->last = seen == all;
    }
}
