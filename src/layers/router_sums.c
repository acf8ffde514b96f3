/* router_sums.c - one auxiliary loss of all routers together, by which their experts get an even
 * load.
 *
 * Each router adds to sums [2, E] that pass from layer to layer: of each expert f, its number of
 * choices for each row, and p, the mean over the rows of its softmax. The loss of a sample is
 * factor * E * sum(f p) / L^2 over the experts, of the sums of all L routers: k if the load is
 * even. f is a constant for the gradient: dp = factor * E * f / L^2, and of each row of each router
 * dlogit = softmax / T * (dp - sum(dp softmax)). The loss is auxiliary (layer.h).
 *
 * inputs of the sums: logits [T, E], scores [T, E] if a bias chooses, the sums of the routers
 * before unless this is the first. They have no rows, and nothing reads them in a pass without
 * losses.
 *
 * Source: load_balancing_loss_func() of Hugging Face's Mixtral, of one sample. router_balance.c has
 * a loss of each router by itself. */
#include <string.h>

#include "layers/copy.h"
#include "layers/moe.h"
#include "layers/router_device.h"
#include "layers/routing_device.h"

typedef struct options {
    int64_t rows, k; /* rows of a sample, choices of a row */
    int before;      /* the number of that input; -1: none */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    const options *o;
    ls_routing r;
    float *p; /* [rows, E] */
} job;

static job job_of(const ls_layer *l, const ls_layer_call *c) {
    job j = {.l = l, .c = c, .o = &LS_LAYER_OWN_OF(options, l)};
    j.r = (ls_routing){.rows = c->n * j.o->rows, .experts = l->C, .k = j.o->k};
    j.p = ls_routing_place(&j.r, c->work);
    return j;
}

/* The softmax of a sample's rows. */
static const float *weigh(const job *j, int64_t sample) {
    int64_t n = j->o->rows * j->l->C;
    float *p = j->p + sample * n;
    j->c->compute->k->softmax(j->o->rows, j->l->C, (const float *)j->c->x[0] + sample * n, p);
    return p;
}

static void add_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t E = j->l->C, T = j->o->rows, i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *p = weigh(j, i);
        int32_t counts[LS_EXPERTS_MOST] = {0};
        float *y = (float *)j->c->y + i * 2 * E;
        for (int64_t k = 0; k < T * j->o->k; k++) counts[j->r.expert[i * T * j->o->k + k]]++;
        for (int64_t e = 0; e < E; e++) {
            double sum = 0;
            for (int64_t t = 0; t < T; t++) sum += (double)p[t * E + e];
            y[e] = (float)counts[e] / (float)T;
            y[E + e] = (float)(sum / (double)T);
        }
        if (j->o->before < 0) continue;
        const float *before = (const float *)j->c->x[j->o->before] + i * 2 * E;
        for (int64_t e = 0; e < 2 * E; e++) y[e] += before[e];
    }
}

static bool has_scores(const ls_layer *l, const options *o) {
    return l->ninputs > 1 + (o->before >= 0);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = job_of(l, c);
    if (!c->training && !c->losses) return;
    ls_routing_choose(c->compute, c->x[0], has_scores(l, j.o) ? c->x[1] : NULL, &j.r);
    if (!c->compute->device) {
        ls_pool_run(c->compute->pool, add_run, &j);
        return;
    }
    ls_routing_device_softmax(c->compute, j.r.rows, l->C, c->x[0], NULL, j.p);
    ls_router_device_sums(c, &j.r, j.o->rows, j.p, j.o->before < 0 ? NULL : c->x[j.o->before]);
}

static void back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t E = j->l->C, T = j->o->rows, i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *p = weigh(j, i), *dp = (const float *)j->c->dy + i * 2 * E + E;
        float *dx = (float *)j->c->dx[0] + i * T * E;
        for (int64_t t = 0; t < T; t++, p += E, dx += E) {
            float mean = 0;
            for (int64_t e = 0; e < E; e++) mean += dp[e] * p[e];
            for (int64_t e = 0; e < E; e++) dx[e] = p[e] / (float)T * (dp[e] - mean);
        }
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    job j = job_of(l, c);
    if (c->dx[0] && c->compute->device) {
        ls_routing_device_softmax(c->compute, j.r.rows, l->C, c->x[0], NULL, j.p);
        ls_router_device_sums_back(c, &j.r, j.o->rows, j.p);
    } else if (c->dx[0]) {
        ls_pool_run(c->compute->pool, back_run, &j);
    }
    for (int k = 1; k < l->ninputs; k++) {
        ls_copy copy = {.rows = 1, .width = j.r.rows * l->C, .to = c->dx[k]}; /* of zeros */
        if (k == j.o->before) copy.from = c->dy, copy.width = c->n * 2 * l->C;
        if (copy.to) ls_copy_run(c->compute, &copy);
    }
}

static const ls_layer_ops ops = {.kind = "router_sums", .forward = forward, .backward = backward};

ls_value *ls_layers_router_sums(ls_model *m, ls_router_values r, const ls_moe_options *o,
                                ls_value *before) {
    ls_value *in[3] = {r.logits};
    int n = 1;
    if (r.scores) in[n++] = r.scores;
    if (before) in[n++] = before;
    ls_layer *l = ls_build_layer(m, "sums", NULL, in, n);
    if (!l) return ls_build_failed(m);
    l->ops = &ops;
    l->traits.on_device = true;
    l->C = ls_value_last(r.logits);
    int64_t T = ls_value_count(r.logits) / l->C;
    LS_LAYER_OWN_AS(options, l) =
        (options){.rows = T, .k = o->per_token, .before = before ? n - 1 : -1};
    if (before) l->unread[n - 1] = true;
    l->memory.work = ls_routing_floats(T, l->C, o->per_token) + (size_t)(T * l->C);
    ls_works_pass(&l->cost.forward, LS_WORK_LOSS, T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS_DX, T * l->C);
    return ls_build_value(m, LS_DIMS(2 * l->C));
}

/* ---- the loss ---- */

typedef struct loss_options {
    double factor; /* with E / L^2 */
} loss_options;

static void lose(const ls_layer *l, const ls_layer_call *c) {
    double factor = LS_LAYER_OWN_OF(loss_options, l).factor;
    int64_t E = l->C;
    for (int64_t i = 0; i < c->n; i++) {
        const float *f = (const float *)c->x[0] + i * 2 * E;
        double sum = 0, weight = c->weights ? c->weights[i] : 1;
        float scale = c->loss_scale * (float)(weight * factor);
        for (int64_t e = 0; e < E; e++) sum += (double)f[e] * (double)f[E + e];
        c->losses[i] = factor * sum;
        if (!c->dx[0]) continue;
        float *dx = (float *)c->dx[0] + i * 2 * E;
        memset(dx, 0, (size_t)E * sizeof *dx);
        for (int64_t e = 0; e < E; e++) dx[E + e] = scale * f[e];
    }
}

static void loss_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        ls_router_device_loss(c, l->C, LS_LAYER_OWN_OF(loss_options, l).factor);
    else
        lose(l, c);
}

static void loss_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->losses) loss_backward(l, c);
}

static const ls_layer_ops loss_ops = {
    .kind = "router_loss", .forward = loss_forward, .backward = loss_backward};

void ls_layers_router_loss(ls_model *m, ls_value *sums, float factor, int64_t routers) {
    ls_layer *l = ls_build_layer(m, "router_loss", NULL, &sums, 1);
    if (!l) return;
    l->ops = &loss_ops;
    l->V = l->C = ls_value_last(sums) / 2;
    l->traits.loss = l->traits.auxiliary = l->traits.on_device = true;
    LS_LAYER_OWN_AS(loss_options, l).factor =
        (double)factor * (double)l->C / ((double)routers * (double)routers);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->C);
}
