/* positions.c - see positions.h. The gradient of a position's vector is one chain over samples. */
#include "layers/positions.h"

#include <string.h>

#include "layers/copy.h"
#include "model/row_device.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static int64_t first_of(const ls_layer *l) { return LS_LAYER_OWN_OF(int64_t, l); }

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t C = j->l->C, r = 0, end = 0;
    const float *weight = ls_layer_param(j->l, c, 0) + first_of(j->l) * C;
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        c->compute->k->add(C, (const float *)c->x[0] + r * C,
                           weight + ls_past_place(&c->past, r % c->T) * C, (float *)c->y + r * C);
}

/* On the call's device: a sample at a time. */
static void launch_forward(const ls_layer *l, const ls_layer_call *c) {
    const float *weight = ls_layer_param(l, c, 0) + (first_of(l) + c->past.n) * l->C;
    int64_t n = c->T * l->C;
    if (c->past.rows) {
        LS_LAUNCH(c->compute, LS_KERNEL_rows_gather, c->T, ls_device_groups(l->C, 256), {.l = l->C},
                  {.from = c->past.rows->places}, {.from = weight}, {.p = c->y});
        ls_row_device_add(c->compute, n, c->x[0], c->y, c->y);
        return;
    }
    for (int64_t i = 0; i < c->n; i++)
        ls_row_device_add(c->compute, n, (const float *)c->x[0] + i * n, weight,
                          (float *)c->y + i * n);
}

static void launch_backward(const ls_layer *l, const ls_layer_call *c) {
    float *sum = ls_layer_grad(l, c, 0);
    int64_t n = l->T * l->C;
    if (c->dx[0])
        ls_copy_run(c->compute, &(ls_copy){.rows = c->n,
                                           .width = n,
                                           .from = c->dy,
                                           .from_stride = n,
                                           .to = c->dx[0],
                                           .to_stride = n});
    if (!sum) return;
    if (c->grads_start)
        ls_device_clear(c->compute->device, LS_DEVICE_COMPUTE, sum, l->counts[0] * sizeof *sum);
    ls_row_device_column_sum(c->compute, c->n, ls_matrix_of(c->dy, n), true,
                             sum + first_of(l) * l->C);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_forward(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

/* The thread's share of the gradient = 0, in which its share of the layer's rows is. */
static void start(const job *j, int thread, int nthreads) {
    float *sum = ls_layer_grad(j->l, j->c, 0);
    int64_t from = first_of(j->l) * j->l->C, n = j->l->T * j->l->C, first = 0, end = 0;
    ls_pool_share(n, 16, thread, nthreads, &first, &end);
    memset(sum + from + first, 0, (size_t)(end - first) * sizeof *sum);
    if (thread > 0) return;
    memset(sum, 0, (size_t)from * sizeof *sum);
    memset(sum + from + n, 0, (j->l->counts[0] - (size_t)(from + n)) * sizeof *sum);
}

static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    float *sum = ls_layer_grad(j->l, c, 0);
    int64_t n = j->l->T * j->l->C, first = 0, end = 0;
    ls_pool_share(n, 16, thread, nthreads, &first, &end);
    if (c->dx[0])
        for (int64_t i = 0; i < c->n; i++)
            memcpy((float *)c->dx[0] + i * n + first, (const float *)c->dy + i * n + first,
                   (size_t)(end - first) * sizeof(float));
    if (!sum) return;
    if (c->grads_start) start(j, thread, nthreads);
    c->compute->k->column_sum(c->n, n, first, end, c->dy, sum + first_of(j->l) * j->l->C);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_backward(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
}

static void describe(const ls_layer *l, ls_facts *f) { f->first = first_of(l); }

static const ls_layer_ops ops = {
    .kind = "positions", .forward = forward, .backward = backward, .describe = describe};

ls_value *ls_layers_positions(ls_model *m, ls_value *x, ls_row_range rows, const char *name,
                              float deviation) {
    ls_layer *l = ls_build_layer(m, "positions", name, &x, 1);
    if (!l) return ls_build_failed(m);
    if (x->ndims != 2)
        return ls_build_fail(m, "the input is %s; [T, C] is needed", ls_dims_write(x->dims).text);
    l->ops = &ops;
    l->traits.on_device = true;
    l->T = x->dims.of[0];
    l->C = x->dims.of[1];
    LS_LAYER_OWN_AS(int64_t, l) = rows.first;
    ls_build_unread(l);
    ls_build_param(
        m, l, "weight",
        &(ls_param){.ndims = 2, .dims = {rows.all, l->C}, .decay = true, .init.std = deviation});
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, l->T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, l->T * l->C);
    ls_works_pass(&l->cost.backward, LS_WORK_COLUMN_SUM, l->T * l->C);
    ls_works_grads(&l->cost.backward, 1);
    return ls_build_value(m, x->dims);
}
