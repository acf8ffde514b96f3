/* own_loss.c - a loss that layers of a program have computed: factor times the mean of a sample's
 * numbers, added up in double precision in their order. */
#include <math.h>

#include "layers/layers.h"

typedef struct options {
    float factor;
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t V = j->l->V, i = 0, end = 0;
    double factor = (double)LS_LAYER_OWN_OF(options, j->l).factor;
    ls_pool_share(c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *x = (const float *)c->x[0] + i * V;
        double sum = 0;
        for (int64_t k = 0; k < V; k++) sum += (double)x[k];
        c->losses[i] = factor * (sum / (double)V);
        if (!c->dx[0]) continue;
        float *dx = (float *)c->dx[0] + i * V;
        double weight = factor * (c->weights ? c->weights[i] : 1) / (double)V;
        for (int64_t k = 0; k < V; k++) dx[k] = (float)weight * c->loss_scale;
    }
}

static void compute(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "own_loss", .forward = compute, .backward = compute};

void(ls_own_loss)(ls_model *m, ls_value *x, ls_loss_options o) {
    ls_layer *l = ls_build_layer(m, "own_loss", o.name, &x, 1);
    if (!l) return;
    if (!isfinite(o.factor) || o.factor < 0 || o.smoothing > 0 || o.ignore) {
        ls_build_fail(m, "factor is %g; it is above 0, or 0 for 1, and there are no other options",
                      (double)o.factor);
        return;
    }
    LS_LAYER_OWN_AS(options, l).factor = o.factor > 0 ? o.factor : 1;
    l->ops = &ops;
    l->V = ls_value_count(x);
    l->traits.loss = true;
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->V);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS_DX, l->V);
    m->targets = 1;
}
