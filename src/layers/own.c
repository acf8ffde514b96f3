/* own.c - a layer of a user's program: calls its functions, sample by sample or split over threads.
 *
 * A parameter's gradient is a chain over samples, in order. backward is called for one sample at a
 * time, so that sums within a sample do not depend on the micro-batch:
 *   few parameters   threads compute samples at the same time, each sample's gradient in memory of
 *                    its own (`sums`); these are then added in the order of the samples
 *   many             one thread adds each sample to the gradient itself
 *
 * work: for each sample: the user's | sums | gradients of inputs that are not wanted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/builder.h"

_Static_assert((int)LS_OWN_INPUTS == LS_LAYER_MAX_INPUTS, "all inputs of a layer");
_Static_assert((int)LS_OWN_PARAMS == LS_LAYER_MAX_PARAMS, "all parameters of a layer");

typedef struct own {
    const ls_layer_kind *kind;
    const void *user;
    const ls_value *in[LS_OWN_INPUTS];
    size_t user_work, sums; /* floats a sample; sums 0: no memory of its own for each sample */
} own;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static size_t params_of(const ls_layer *l) {
    size_t sum = 0;
    for (int p = 0; p < l->nparams; p++) sum += l->counts[p];
    return sum;
}

static size_t inputs_of(const ls_layer *l) {
    size_t sum = 0;
    for (int k = 0; k < l->ninputs; k++) sum += l->input_floats[k];
    return sum;
}

/* What forward and backward read, for samples [i, i + n) of the call. */
static ls_layer_args args_of(const job *j, int64_t i, int64_t n) {
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    const own *o = &LS_LAYER_OWN_OF(own, l);
    ls_layer_args a = {.samples = n, .own = o->user};
    for (int k = 0; k < l->ninputs; k++) {
        ls_operand *in = &a.in[k];
        in->count = (int64_t)l->input_floats[k];
        in->data = (const float *)c->x[k] + i * in->count;
        memcpy(in->dims, o->in[k]->dims.of, sizeof in->dims);
    }
    for (int p = 0; p < l->nparams; p++)
        a.param[p] = (ls_operand){.data = ls_layer_param(l, c, p), .count = (int64_t)l->counts[p]};
    if (l->memory.saved) a.saved = (float *)c->saved + i * (int64_t)l->memory.saved;
    if (o->user_work) a.work = c->work + i * (int64_t)o->user_work;
    return a;
}

static void forward_share(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    if (i == end) return;
    ls_layer_args a = args_of(j, i, end - i);
    a.out = (float *)j->c->y + i * (int64_t)j->l->y_floats;
    LS_LAYER_OWN_OF(own, j->l).kind->forward(&a);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, forward_share, &(job){l, c});
}

/* Sample i's part of `sums`. */
static float *sums_at(const job *j, int64_t i) {
    const own *o = &LS_LAYER_OWN_OF(own, j->l);
    return j->c->work + (size_t)j->c->n * o->user_work + (size_t)i * o->sums;
}

/* grads: the parameters' gradients go there, one after the other; NULL: to the call's. */
static void back(const job *j, int64_t i, int64_t n, float *grads) {
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    const own *o = &LS_LAYER_OWN_OF(own, l);
    ls_layer_args a = args_of(j, i, n);
    float *spare = c->work + (size_t)c->n * (o->user_work + o->sums);
    a.dout = (const float *)c->dy + i * (int64_t)l->y_floats;
    for (int k = 0; k < l->ninputs; k++) {
        a.din[k] = (c->dx[k] ? (float *)c->dx[k] : spare) + i * (int64_t)l->input_floats[k];
        spare += (size_t)c->n * l->input_floats[k];
    }
    for (int p = 0; p < l->nparams; p++) {
        float *own_grad = ls_layer_grad(l, c, p); /* NULL: it is frozen */
        a.dparam[p] = own_grad && grads ? grads : own_grad;
        if (grads) grads += l->counts[p];
    }
    o->kind->backward(&a);
}

static void backward_share(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    size_t sums = LS_LAYER_OWN_OF(own, j->l).sums;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    if (!sums && i < end) back(j, i, end - i, NULL);
    for (; sums && i < end; i++) {
        memset(sums_at(j, i), 0, sums * sizeof(float));
        back(j, i, 1, sums_at(j, i));
    }
}

/* Adds the samples' sums to a gradient, whose elements are divided among the threads. */
static void add_share(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer *l = j->l;
    size_t before = 0; /* floats of `sums` that belong to earlier parameters */
    for (int p = 0; p < l->nparams; before += l->counts[p++]) {
        float *grad = ls_layer_grad(l, j->c, p);
        int64_t first = 0, end = 0;
        if (!grad) continue;
        ls_pool_share((int64_t)l->counts[p], 16, thread, nthreads, &first, &end);
        for (int64_t k = first; j->c->n == 0 && j->c->grads_start && k < end; k++) grad[k] = 0;
        for (int64_t i = 0; i < j->c->n; i++) {
            const float *sum = sums_at(j, i) + before;
            bool start = i == 0 && j->c->grads_start;
            for (int64_t k = first; k < end; k++) grad[k] = (start ? 0 : grad[k]) + sum[k];
        }
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    job j = {l, c};
    if (l->nparams == 0 || LS_LAYER_OWN_OF(own, l).sums) {
        ls_pool_run(c->compute->pool, backward_share, &j);
        if (l->nparams) ls_pool_run(c->compute->pool, add_share, &j);
        return;
    }
    for (int p = 0; c->grads_start && p < l->nparams; p++)
        if (ls_layer_trains(l, p)) memset(ls_layer_grad(l, c, p), 0, l->counts[p] * sizeof(float));
    for (int64_t i = 0; i < c->n; i++) back(&j, i, 1, NULL);
}

/* ---- the call ---- */

/* False: the model has failed. */
static bool check_kind(ls_model *m, const ls_layer_kind *kind, const ls_own_options *o) {
    if (!ls_build_is_good(m)) return false;
    int n = 0;
    if (!kind || !kind->name || !kind->forward || !kind->backward) {
        ls_build_fail(m, "a layer's kind has a name, forward and backward; one of them is NULL");
        return false;
    }
    while (n < LS_OWN_PARAMS && o->params[n].name) n++;
    if (n == kind->nparams) return true;
    ls_build_fail(m, "%.60s: the kind's nparams is %d; the call gives %d", kind->name,
                  kind->nparams, n);
    return false;
}

static bool are_good(ls_model *m, const ls_layer_sizes *s) {
    double count = 1;
    for (int i = 0; i < LS_MAX_DIMS && s->out.of[i]; i++) {
        count *= (double)s->out.of[i];
        if (s->out.of[i] < 0) count = -1e30;
    }
    bool good = count > 0 && count < 1e9 && s->saved >= 0 && s->saved < 1000000000 &&
                s->work >= 0 && s->work < 1000000000;
    if (!good)
        ls_build_fail(m,
                      "sizes: an output of %s, %lld floats saved and %lld of work memory; each is "
                      "at least 0 and below 1e9",
                      ls_dims_write(s->out).text, (long long)s->saved, (long long)s->work);
    else if (!(s->flops >= 0 && s->flops < 1e18))
        ls_build_fail(m, "sizes: flops is %g; it is at least 0 and below 1e18", s->flops);
    return ls_build_is_good(m);
}

static bool choose_sizes(ls_model *m, const ls_layer *l, ls_layer_sizes *s) {
    const own *o = &LS_LAYER_OWN_OF(own, l);
    ls_layer_args a = {.own = o->user};
    *s = (ls_layer_sizes){.out = o->in[0]->dims};
    if (!o->kind->sizes) return true;
    for (int k = 0; k < l->ninputs; k++) {
        a.in[k].count = (int64_t)l->input_floats[k];
        memcpy(a.in[k].dims, o->in[k]->dims.of, sizeof a.in[k].dims);
    }
    const char *wrong = o->kind->sizes(&a, s);
    if (!wrong) return are_good(m, s);
    ls_build_fail(m, "%s", wrong);
    return false;
}

static bool add_params(ls_model *m, ls_layer *l, const ls_own_options *o) {
    for (int p = 0; p < LS_OWN_PARAMS && o->params[p].name; p++) {
        const ls_own_param *given = &o->params[p];
        char std[64], value[64];
        snprintf(std, sizeof std, "parameter '%.30s': std", given->name);
        snprintf(value, sizeof value, "parameter '%.30s': value", given->name);
        if (!ls_build_takes(m, std, (double)given->initial.std, 0) ||
            !ls_build_takes(m, value, (double)given->initial.value, -INFINITY))
            return false;
        ls_param param = {.init.std = given->initial.std, .init.value = given->initial.value};
        for (; param.ndims < LS_MAX_DIMS && given->dims.of[param.ndims]; param.ndims++)
            param.dims[param.ndims] = given->dims.of[param.ndims];
        param.decay = param.ndims > 1;
        double count = 1;
        for (int i = 0; i < param.ndims; i++)
            count *= param.dims[i] < 0 ? 1e30 : (double)param.dims[i];
        if (count > 1e11) {
            ls_build_fail(m, "parameter '%.30s': %s is not possible", given->name,
                          ls_dims_write(given->dims).text);
            return false;
        }
        ls_build_param(m, l, given->name, &param);
    }
    return ls_build_is_good(m);
}

/* Memory and cost. Without the number of operations the layer is priced as one pass over memory. */
static void declare(ls_layer *l, const ls_layer_sizes *s, size_t out) {
    own *o = &LS_LAYER_OWN_AS(own, l);
    size_t params = params_of(l), numbers = inputs_of(l) + out;
    o->user_work = (size_t)s->work;
    o->sums = params <= numbers ? params : 0;
    l->memory.saved = (size_t)s->saved;
    l->memory.work = o->user_work + o->sums + inputs_of(l);
    l->C = (int64_t)out;
    l->cost.flops = s->flops;
    l->cost.unknown = s->flops <= 0;
    int64_t pass = s->flops > (double)numbers ? (int64_t)s->flops : (int64_t)numbers;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, pass);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, 2 * pass + (int64_t)params);
}

static void describe(const ls_layer *l, ls_facts *f) {
    f->user_kind = LS_LAYER_OWN_OF(own, l).kind->name;
}

static const ls_layer_ops ops = {
    .kind = "own", .forward = forward, .backward = backward, .describe = describe};

ls_value *(ls_own_layer)(ls_model *m, const ls_layer_kind *kind, ls_value *x, ls_own_options o) {
    ls_value *in[LS_OWN_INPUTS] = {x};
    int n = 1;
    if (!check_kind(m, kind, &o)) return ls_build_failed(m);
    for (int k = 0; k < LS_OWN_INPUTS - 1 && o.more[k]; k++) in[n++] = o.more[k];
    ls_layer *l = ls_build_layer(m, kind->name, o.name, in, n);
    if (!l) return ls_build_failed(m);
    own *a = &LS_LAYER_OWN_AS(own, l);
    *a = (own){.kind = kind, .user = o.own};
    for (int k = 0; k < n; k++) a->in[k] = in[k];
    l->ops = &ops;
    l->traits.trains_all = !kind->may_freeze;
    ls_layer_sizes s;
    if (!choose_sizes(m, l, &s) || !add_params(m, l, &o)) return ls_build_failed(m);
    ls_value *y = ls_build_value(m, s.out);
    declare(l, &s, l->y_floats);
    return y;
}
