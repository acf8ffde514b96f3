/* dropout.c - masks of zeros at random (dropout.h), and the layer dropout: y = x with a mask; y = x
 * outside of training.
 *
 * The number of a layer's mask is that of the layer among those of dropout, unless a model says
 * another. */
#include "layers/dropout.h"

#include <string.h>

#include "base/random.h"
#include "layers/layers.h"
#include "model/row_ops.h"

/* Numbers of a sample that a thread computes at a time, a multiple of the kernel's block. */
enum { PART = 4096 };

typedef struct job {
    const ls_dropout_mask *mask;
    const ls_layer_call *c;
    int64_t count, parts; /* of a sample */
    ls_matrix x;
    float *y;
} job;

bool ls_dropout_acts(const ls_dropout_mask *mask, const ls_layer_call *c) {
    return c->training && mask->rate > 0;
}

ls_dropout_place ls_dropout_place_of(const ls_dropout_mask *mask, const ls_layer_call *c,
                                     int64_t sample) {
    int64_t of = mask->together ? sample * mask->together + mask->which : sample;
    return (ls_dropout_place){.seed = c->seed,
                              .step = (uint32_t)c->step,
                              .sample = (uint32_t)(c->first_sample + (uint64_t)of),
                              .layer = mask->number,
                              .p = mask->rate};
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    bool acts = ls_dropout_acts(j->mask, j->c);
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n * j->parts, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t sample = i / j->parts, first = i % j->parts * PART, left = j->count - first;
        int64_t n = left < PART ? left : PART;
        float *y = j->y + sample * j->count + first;
        const float *x = ls_part_read(k, j->x, 0, sample * j->count + first, n, y);
        ls_dropout_place place = ls_dropout_place_of(j->mask, j->c, sample);
        if (acts)
            k->dropout(&place, j->mask->first + first, n, x, y);
        else if (x != y)
            memcpy(y, x, (size_t)n * sizeof *y);
    }
}

/* On the call's device. */
static void launch(const ls_dropout_mask *mask, const ls_layer_call *c, int64_t count,
                   const float *x, float *y) {
    enum { GROUP = 1024 };                                             /* numbers */
    int64_t first = mask->first / LS_DROPOUT_BLOCK * LS_DROPOUT_BLOCK; /* of a block */
    int64_t parts = ls_device_groups(mask->first + count - first, GROUP);
    ls_dropout_place place = ls_dropout_place_of(mask, c, 0);
    uint64_t key = ls_random_key(place.seed, LS_STREAM_DROPOUT);
    LS_LAUNCH(c->compute, LS_KERNEL_dropout, c->n * parts, 1, {.l = parts}, {.l = count},
              {.l = mask->first}, {.l = (int64_t)key}, {.l = place.step}, {.l = place.sample},
              {.l = mask->together ? mask->together : 1}, {.l = place.layer},
              {.l = ls_dropout_limit(&place)}, {.f = ls_dropout_scale(&place)}, {.from = x},
              {.p = y});
}

static void launch_copy(const ls_layer_call *c, int64_t n, const float *x, float *y) {
    enum { ITEMS = 256 };
    if (x == y) return;
    LS_LAUNCH(c->compute, LS_KERNEL_copy, ls_device_groups(n, ITEMS), 1, {.l = n}, {.from = x},
              {.p = y});
}

void ls_dropout_run(const ls_dropout_mask *mask, const ls_layer_call *c, int64_t count, ls_matrix x,
                    float *y) {
    if (c->compute->device) {
        if (ls_dropout_acts(mask, c))
            launch(mask, c, count, x.p, y);
        else
            launch_copy(c, c->n * count, x.p, y);
        return;
    }
    job j = {mask, c, count, (count + PART - 1) / PART, x, y};
    ls_pool_run_sized(c->compute->pool, c->n * count, run, &j);
}

void ls_dropout_rows(const ls_layer_call *c, const ls_dropout_mask *mask, int64_t C, float *y) {
    if (ls_dropout_acts(mask, c)) ls_dropout_run(mask, c, c->T * C, ls_matrix_of(y, C), y);
}

ls_matrix ls_dropout_of_dy(const ls_layer *l, const ls_layer_call *c, const ls_dropout_mask *mask,
                           float *room) {
    ls_matrix dy = ls_rows_dy(l, c, l->C);
    if (!ls_dropout_acts(mask, c)) return dy;
    ls_dropout_run(mask, c, c->T * l->C, dy, room);
    return ls_matrix_of(room, l->C);
}

void ls_dropout_declare_rows(ls_layer *l) {
    int64_t n = l->T * l->C;
    l->memory.work += (size_t)n;
    ls_works_dropout(&l->cost.forward, n);
    ls_works_dropout(&l->cost.backward, n);
    ls_conversions_add(&l->cost.backward_converts,
                       (ls_conversion){.operand = LS_OPERAND_DY, .numbers = n});
}

/* ---- the layer ---- */

static void drop(const ls_layer *l, const ls_layer_call *c, const float *x, float *y) {
    int64_t count = (int64_t)l->y_floats;
    ls_dropout_run(&LS_LAYER_OWN_OF(ls_dropout_mask, l), c, count, ls_matrix_of(x, count), y);
}

static void forward(const ls_layer *l, const ls_layer_call *c) { drop(l, c, c->x[0], c->y); }

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0]) drop(l, c, c->dy, c->dx[0]);
}

static const ls_layer_ops ops = {.kind = "dropout", .forward = forward, .backward = backward};

static ls_value *add_layer(ls_model *m, ls_value *x, const char *name, ls_dropout_mask mask) {
    ls_layer *l = ls_build_layer(m, "dropout", name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (!(mask.rate >= 0 && mask.rate < 1))
        return ls_build_fail(m, "rate is %g; it is from 0 to below 1", (double)mask.rate);
    l->ops = &ops;
    l->traits.on_device = true;
    ls_build_unread(l);
    LS_LAYER_OWN_AS(ls_dropout_mask, l) = mask;
    ls_works_dropout(&l->cost.forward, ls_value_count(x));
    ls_works_dropout(&l->cost.backward, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

ls_value *(ls_dropout)(ls_model *m, ls_value *x, ls_dropout_options o) {
    uint32_t number = 0;
    for (int i = 0; i < m->nlayers; i++) number += m->layers[i].ops == &ops;
    return add_layer(m, x, o.name, (ls_dropout_mask){.rate = o.rate, .number = number});
}

ls_value *ls_layers_dropout(ls_model *m, ls_value *x, ls_dropout_mask mask) {
    return add_layer(m, x, NULL, mask);
}
