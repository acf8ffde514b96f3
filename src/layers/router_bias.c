/* router_bias.c - which experts a row has, with a bias for each expert that evens the load out.
 *
 * y [T, E] is 1 for the k experts with the greatest softmax + bias, 0 for the others; of equal ones
 * those with lower numbers. No gradient comes back: weights of the chosen experts are those of the
 * logits alone (routing.h).
 *
 * inputs: logits [T, E]. params: bias [E], a running value (ls_param.balances): what a call adds to
 * its sum is E times an expert's choices less all choices, so that the sum over a batch is positive
 * if the expert has had more than an even part. These are integers: their sum is exact in any
 * order.
 *
 * Source: Wang et al., "Auxiliary-loss-free load balancing strategy for mixture-of-experts",
 * arXiv 2408.15664, with a softmax's probabilities as the scores. */
#include <string.h>

#include "layers/copy.h"
#include "layers/moe.h"
#include "layers/router_device.h"
#include "layers/routing_device.h"

enum { BIAS };

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    ls_routing r;
    float *scores; /* [rows, E] */
} job;

static int64_t experts_of(const ls_layer *l) { return l->C; }

static void score_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, E = experts_of(j->l);
    const float *bias = ls_layer_param(j->l, j->c, BIAS);
    ls_pool_share(j->r.rows, 16, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        float *score = j->scores + i * E;
        j->c->compute->k->softmax(1, E, (const float *)j->c->x[0] + i * E, score);
        for (int64_t e = 0; e < E; e++) score[e] += bias[e];
    }
}

static job choose(const ls_layer *l, const ls_layer_call *c) {
    job j = {.l = l, .c = c};
    j.r = (ls_routing){
        .rows = c->n * c->T, .experts = experts_of(l), .k = LS_LAYER_OWN_OF(int64_t, l)};
    j.scores = ls_routing_place(&j.r, c->work);
    if (c->compute->device)
        ls_routing_device_softmax(c->compute, j.r.rows, j.r.experts, c->x[0],
                                  ls_layer_param(l, c, BIAS), j.scores);
    else
        ls_pool_run_sized(c->compute->pool, j.r.rows * j.r.experts * 4, score_run, &j);
    ls_routing_choose(c->compute, c->x[0], j.scores, &j.r);
    return j;
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = choose(l, c);
    float *y = c->y;
    if (c->compute->device) {
        ls_router_device_chosen(c->compute, &j.r, y);
        return;
    }
    memset(y, 0, (size_t)(j.r.rows * j.r.experts) * sizeof *y);
    for (int64_t i = 0; i < j.r.rows * j.r.k; i++) y[i / j.r.k * j.r.experts + j.r.expert[i]] = 1;
}

static void add_loads(const ls_layer *l, const ls_layer_call *c) {
    job j = choose(l, c);
    float *sum = ls_layer_grad(l, c, BIAS);
    int64_t E = j.r.experts, all = j.r.rows * j.r.k;
    if (c->compute->device) {
        ls_router_device_loads(c->compute, &j.r, !c->grads_start, sum);
        return;
    }
    for (int64_t e = 0; e < E; e++) {
        float more = (float)(E * (j.r.first[e + 1] - j.r.first[e]) - all);
        sum[e] = c->grads_start ? more : sum[e] + more;
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0])
        ls_copy_run(c->compute,
                    &(ls_copy){.rows = 1, .width = c->n * c->T * experts_of(l), .to = c->dx[0]});
    if (ls_layer_trains(l, BIAS)) add_loads(l, c);
}

static void describe(const ls_layer *l, ls_facts *f) {
    *f = (ls_facts){.experts = experts_of(l), .per_row = LS_LAYER_OWN_OF(int64_t, l)};
}

static const ls_layer_ops ops = {
    .kind = "router_bias", .forward = forward, .backward = backward, .describe = describe};

ls_value *ls_layers_router_bias(ls_model *m, ls_value *logits, const ls_moe_options *o) {
    ls_layer *l = ls_build_layer(m, "choice", NULL, &logits, 1);
    if (!l) return ls_build_failed(m);
    l->ops = &ops;
    l->traits.on_device = true;
    l->C = ls_value_last(logits);
    l->T = ls_value_count(logits) / l->C;
    LS_LAYER_OWN_AS(int64_t, l) = o->per_token;
    l->memory.work = ls_routing_floats(l->T, l->C, o->per_token) + (size_t)(l->T * l->C);
    ls_works_pass(&l->cost.forward, LS_WORK_LOSS, l->T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->T * l->C);
    ls_build_param(
        m, l, "bias",
        &(ls_param){.ndims = 1, .dims = {l->C}, .momentum = o->bias_rate, .balances = true});
    return ls_build_value(m, logits->dims);
}
