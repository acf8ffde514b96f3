/* dropout.c - y = x with zeros at random, the rest times 1 / (1 - rate); y = x outside of training.
 *
 * The mask of an element is a function of the run's seed, the step, the sample's place in the
 * step's batch, the number of the layer among those of dropout, and the element's index
 * (tensor/kernels/dropout.c). So nothing is saved: a Recompute and Backward compute it again. */
#include "layers/dropout.h"

#include "layers/copy.h"

/* Elements of a sample that a thread computes at a time, a multiple of the kernel's block. */
enum { PART = 4096 };

typedef struct options {
    float rate;
    uint32_t number; /* of the layer */
} options;

typedef struct job {
    const ls_layer_call *c;
    ls_dropout_place place; /* of the first sample */
    int64_t count, parts;   /* of a sample */
    const float *x;
    float *y;
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n * j->parts, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t sample = i / j->parts, first = i % j->parts * PART, n = j->count - first;
        int64_t at = sample * j->count + first;
        ls_dropout_place place = j->place;
        place.sample += (uint32_t)sample;
        j->c->compute->k->dropout(&place, first, n < PART ? n : PART, j->x + at, j->y + at);
    }
}

void ls_dropout_run(const ls_layer_call *c, uint32_t number, float rate, int64_t count,
                    const float *x, float *y) {
    ls_dropout_place place = {.seed = c->seed,
                              .step = (uint32_t)c->step,
                              .sample = (uint32_t)c->first_sample,
                              .layer = number,
                              .p = rate};
    if (c->training)
        ls_pool_run(c->compute->pool, run,
                    &(job){c, place, count, (count + PART - 1) / PART, x, y});
    else
        ls_copy_run(c->compute, &(ls_copy){.rows = 1, .width = c->n * count, .from = x, .to = y});
}

static void drop(const ls_layer *l, const ls_layer_call *c, const float *x, float *y) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    ls_dropout_run(c, o->number, o->rate, (int64_t)l->y_floats, x, y);
}

static void forward(const ls_layer *l, const ls_layer_call *c) { drop(l, c, c->x[0], c->y); }

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) drop(l, c, c->dy, c->dx[0]);
}

static const ls_layer_ops ops = {.kind = "dropout", .forward = forward, .backward = backward};

ls_value *(ls_dropout)(ls_model *m, ls_value *x, ls_dropout_options o) {
    uint32_t number = 0;
    for (int i = 0; i < m->nlayers; i++) number += m->layers[i].ops == &ops;
    ls_layer *l = ls_build_layer(m, "dropout", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (!(o.rate >= 0 && o.rate < 1))
        return ls_build_fail(m, "rate is %g; it is from 0 to below 1", (double)o.rate);
    l->ops = &ops;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(options, l) = (options){o.rate, number};
    /* the kernel takes as long as 2.5 of GELU's: random numbers */
    ls_works_pass(&l->forward_work, LS_WORK_GELU, ls_value_count(x) * 5 / 2);
    ls_works_pass(&l->backward_work, LS_WORK_GELU, ls_value_count(x) * 5 / 2);
    return ls_build_value(m, x->dims);
}
