/* bpr.c - the loss of Bayesian personalized ranking: what a user has chosen should have a larger
 * score than what the user has not.
 *
 * A sample has V scores x and as many targets t; the loss is the mean over all pairs i, j with
 * t[i] > 1/2 and t[j] <= 1/2 of log(1 + e^-(x[i] - x[j])): the binary cross-entropy of the
 * difference with target 1, whose kernels it uses. Gradients are summed over i, then over j.
 *
 * Source: Rendle, Freudenthaler, Gantner & Schmidt-Thieme, "BPR: Bayesian personalized ranking from
 * implicit feedback", UAI 2009. */
#include <math.h>
#include <string.h>

#include "layers/layers.h"
#include "lockstep/infer.h"

typedef struct options {
    float factor;
    ls_dtype type; /* of the targets */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* Floats of work memory for a sample: differences, ones, numbers of scores. */
static size_t work_floats(int64_t V) { return (size_t)(3 * V); }

static bool is_chosen(const job *j, int64_t sample, int64_t i) {
    const void *field = ls_layer_field(j->l, j->c, 0, sample);
    switch (LS_LAYER_OWN_OF(options, j->l).type) {
    case LS_U8: return ((const unsigned char *)field)[i] > 0;
    case LS_I32: return ((const int32_t *)field)[i] > 0;
    default: return ((const float *)field)[i] > 0.5F;
    }
}

/* A sample's scores; the others, which are not chosen, by their numbers. */
typedef struct scored {
    const float *x;  /* [V] */
    float *dx;       /* [V]; NULL: no gradient is wanted */
    float *work;     /* [n] differences to one score, then V ones from `V` on */
    int32_t *others; /* [n] */
    int64_t n;
    float weight; /* of a pair */
} scored;

/* The pairs of score i with the others: returns their losses, and adds the gradients. */
static double compare(const job *j, const scored *s, int64_t i) {
    double loss = 0;
    for (int64_t k = 0; k < s->n; k++) s->work[k] = s->x[i] - s->x[s->others[k]];
    ls_loss_rows rows = {.rows = 1,
                         .n = s->n,
                         .x = s->work,
                         .target = s->work + j->l->V,
                         .losses = &loss,
                         .scale = j->c->loss_scale,
                         .weight = &s->weight};
    j->c->compute->k->loss[LS_LOSS_BINARY](&rows);
    if (!s->dx) return loss;
    rows.dx = s->work;
    j->c->compute->k->loss_dx[LS_LOSS_BINARY](&rows);
    for (int64_t k = 0; k < s->n; k++) {
        s->dx[i] += s->work[k];
        s->dx[s->others[k]] -= s->work[k];
    }
    return loss;
}

static double loss_of(const job *j, int64_t sample, float *dx) {
    const ls_layer_call *c = j->c;
    int64_t V = j->l->V;
    float *work = c->work + (size_t)sample * work_floats(V);
    scored s = {.x = (const float *)c->x[0] + sample * V,
                .dx = dx,
                .work = work,
                .others = (int32_t *)(void *)(work + 2 * V)};
    double factor = (double)LS_LAYER_OWN_OF(options, j->l).factor, loss = 0;
    for (int64_t i = 0; i < V; i++) {
        work[V + i] = 1;
        if (!is_chosen(j, sample, i)) s.others[s.n++] = (int32_t)i;
    }
    if (dx) memset(dx, 0, (size_t)V * sizeof *dx);
    double pairs = (double)s.n * (double)(V - s.n);
    if (pairs == 0) return 0;
    s.weight = (float)(factor * (c->weights ? c->weights[sample] : 1) / pairs);
    for (int64_t i = 0; i < V; i++)
        if (is_chosen(j, sample, i)) loss += compare(j, &s, i);
    return factor * (loss / pairs);
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++)
        j->c->losses[i] = loss_of(j, i, j->c->dx[0] ? (float *)j->c->dx[0] + i * j->l->V : NULL);
}

static void launch(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    LS_LAUNCH(c->compute, LS_KERNEL_bpr, c->n, 1, {.l = l->V}, {.from = c->x[0]},
              {.from = ls_layer_field(l, c, 0, 0)}, {.l = ls_layers_device_type(o->type)},
              {.l = (int64_t)c->sample_nbytes}, {.f = o->factor}, {.from = c->weights},
              {.f = c->loss_scale}, {.p = c->dx[0]}, {.p = c->losses});
}

static void compute(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "bpr", .forward = compute, .backward = compute};

void(ls_bpr)(ls_model *m, ls_value *scores, ls_value *chosen, ls_loss_options o) {
    ls_layer *l = ls_build_layer(m, "bpr", o.name, &scores, 1);
    if (!l) return;
    if (!isfinite(o.factor) || o.factor < 0 || o.smoothing > 0 || o.ignore)
        ls_build_fail(m, "factor is %g; it is above 0, or 0 for 1, and there are no other options",
                      (double)o.factor);
    else if (!chosen || chosen->field < 0 || chosen->layer >= 0)
        ls_build_fail(m, "the targets are no field");
    else if (ls_value_count(scores) != ls_value_count(chosen) || ls_value_count(scores) < 2)
        ls_build_fail(m, "the scores are %s, and the targets %s; 2 or more of each are needed",
                      ls_dims_write(scores->dims).text, ls_dims_write(chosen->dims).text);
    if (!ls_build_is_good(m)) return;
    LS_LAYER_OWN_AS(options, l) = (options){o.factor > 0 ? o.factor : 1, chosen->type};
    l->ops = &ops;
    l->V = ls_value_count(scores);
    l->traits.loss = l->traits.on_device = true;
    l->end.predicts = LS_SCORES;
    l->memory.work = work_floats(l->V);
    ls_build_field(m, l, chosen);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->V);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS_DX, l->V);
    m->targets = 1;
}
