/* add.c - y = the sum of the inputs, which have one shape; or max(0, the sum of two).
 *
 * They save nothing. Every input's gradient is dy; behind the maximum it is 0 where the sum, which
 * is computed again, is not positive. */
#include <string.h>

#include "layers/layers.h"
#include "model/rows.h"

static void forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t floats = c->n * c->T * l->C;
    for (int k = 1; k < l->ninputs; k++) {
        const float *sum = k == 1 ? c->x[0] : c->y;
        ls_rows_add(c->compute, floats, ls_matrix_of(sum, floats), c->x[k], ls_numbers_f32(c->y));
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    size_t nbytes = (size_t)(c->n * c->T * l->C) * sizeof(float);
    for (int k = 0; k < l->ninputs; k++)
        if (c->dx[k]) memcpy(c->dx[k], c->dy, nbytes);
}

static const ls_layer_ops ops = {.kind = "add", .forward = forward, .backward = backward};

void ls_add_declare(ls_layer *l, int64_t T, int64_t C, int ninputs) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = ninputs;
    for (int k = 0; k < ninputs; k++) l->input_floats[k] = (size_t)(T * C);
    for (int k = 0; k < ninputs; k++) l->unread[k] = true;
    l->y_floats = (size_t)(T * C);
    l->forward_flops = (double)((ninputs - 1) * T * C);
    for (int k = 1; k < ninputs; k++) ls_works_pass(&l->forward_work, LS_WORK_ADD, T * C);
    for (int k = 0; k < ninputs; k++) ls_works_pass(&l->backward_work, LS_WORK_ADD, T * C);
}

static ls_value *add_two(ls_model *m, ls_value *a, ls_value *b, const ls_layer_ops *of) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, of->kind, NULL, x, 2);
    if (!l) return ls_build_failed(m);
    if (!ls_value_same_dims(a, b))
        return ls_build_fail(m, "the inputs have other shapes: %s and %s",
                             ls_dims_write(a->dims).text, ls_dims_write(b->dims).text);
    int64_t T = a->ndims == 2 ? a->dims.of[0] : 1; /* positions, if these are rows */
    ls_add_declare(l, T, ls_value_count(a) / T, 2);
    l->ops = of;
    l->unread[0] = l->unread[1] = of == &ops;
    return ls_build_value(m, a->dims);
}

ls_value *(ls_add)(ls_model *m, ls_value *a, ls_value *b) { return add_two(m, a, b, &ops); }

/* ---- the sum of two, and ReLU ---- */

enum { BLOCK = 2048 }; /* floats of each operand, which stay in the first-level cache */

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* The thread's numbers [*at_p, *at_p + n), n is returned. */
static int64_t share_of(const job *j, int thread, int nthreads, int64_t *at_p) {
    int64_t end = 0;
    ls_pool_share(j->c->n * (int64_t)j->l->y_floats, 16, thread, nthreads, at_p, &end);
    return end - *at_p;
}

static void relu_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    int64_t at = 0, n = share_of(j, thread, nthreads, &at);
    const float *a = (const float *)j->c->x[0] + at, *b = (const float *)j->c->x[1] + at;
    float *y = (float *)j->c->y + at;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t part = n - i < BLOCK ? n - i : BLOCK;
        k->add(part, a + i, b + i, y + i);
        k->activation[LS_RELU](part, y + i, y + i);
    }
}

static void relu_backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t at = 0, n = share_of(j, thread, nthreads, &at);
    const float *a = (const float *)c->x[0] + at, *b = (const float *)c->x[1] + at;
    float *dx = (float *)(c->dx[0] ? c->dx[0] : c->dx[1]) + at;
    float *other = c->dx[0] && c->dx[1] ? (float *)c->dx[1] + at : NULL;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t part = n - i < BLOCK ? n - i : BLOCK;
        c->compute->k->add(part, a + i, b + i, dx + i);
        c->compute->k->activation_dx[LS_RELU](part, dx + i, (const float *)c->dy + at + i, dx + i);
        if (other) memcpy(other + i, dx + i, (size_t)part * sizeof *dx);
    }
}

static void relu_forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, relu_forward_run, &(job){l, c});
}

static void relu_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0] || c->dx[1]) ls_pool_run(c->compute->pool, relu_backward_run, &(job){l, c});
}

static const ls_layer_ops relu_ops = {
    .kind = "add_relu", .forward = relu_forward, .backward = relu_backward};

ls_value *(ls_add_relu)(ls_model *m, ls_value *a, ls_value *b) {
    return add_two(m, a, b, &relu_ops);
}
