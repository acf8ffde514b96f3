/* add.c - y = the sum of the inputs, of one shape (of one input: a copy); or max(0, the sum of
 * two).
 *
 * They save nothing. Every input's gradient is dy; behind the maximum it is 0 where the sum, which
 * is computed again, is not positive. */
#include <string.h>

#include "layers/layers.h"
#include "model/row_ops.h"

enum { BLOCK = LS_PART };

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* The thread's numbers [*at_p, *at_p + n), n is returned. */
static int64_t share_of(const job *j, int thread, int nthreads, int64_t *at_p) {
    int64_t end = 0;
    ls_pool_share(j->c->n * j->c->T * j->l->C, 16, thread, nthreads, at_p, &end);
    return end - *at_p;
}

static int64_t part_of(int64_t n) { return n < BLOCK ? n : BLOCK; }

/* ---- the sum ---- */

/* Numbers of input i, from number `at` on. */
static const void *input_at(const job *j, int i, int64_t at) {
    return ls_matrix_from(ls_rows_x(j->l, j->c, i, 0), 0, at).p;
}

/* A sum of several is rounded once. */
static void sum_inputs(const job *j, ls_numbers y, int64_t at, int64_t n) {
    const ls_kernels *k = j->c->compute->k;
    float one[BLOCK], other[BLOCK], room[BLOCK];
    for (int64_t some; n > 0; n -= some, at += some) {
        some = part_of(n);
        float *sum = ls_part_result(y, at, room);
        const float *from = ls_part_read(k, ls_rows_x(j->l, j->c, 0, 0), 0, at, some, one);
        for (int i = 1; i < j->l->ninputs; i++, from = sum)
            k->add(some, from, ls_part_read(k, ls_rows_x(j->l, j->c, i, 0), 0, at, some, other),
                   sum);
        if (from != sum) memcpy(sum, from, (size_t)some * sizeof *sum);
        ls_part_store(k, y, at, some, sum);
    }
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    ls_numbers y = ls_rows_y(j->l, j->c);
    int64_t at = 0, n = share_of(j, thread, nthreads, &at);
    if (j->l->ninputs == 2)
        ls_part_add(j->c->compute->k, n, input_at(j, 0, at), input_at(j, 1, at),
                    ls_numbers_at(y, at));
    else
        sum_inputs(j, y, at, n);
}

/* dy and the gradients of the inputs have one type. */
static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t at = 0, n = share_of(j, thread, nthreads, &at);
    const void *dy = ls_matrix_from(ls_rows_dy(j->l, j->c, 0), 0, at).p;
    for (int i = 0; i < j->l->ninputs; i++) {
        ls_numbers dx = ls_rows_dx(j->l, j->c, i);
        if (!dx.p) continue;
        dx = ls_numbers_at(dx, at);
        if (j->c->begun >> i & 1)
            ls_part_add(j->c->compute->k, n, dx.p, dy, dx);
        else
            memcpy(dx.p, dy, (size_t)n * (dx.bf16 ? 2 : sizeof(float)));
    }
}

/* On the call's device: y = a + b, or a copy of a where b is NULL. */
static void launch(const ls_layer *l, const ls_layer_call *c, const void *a, const void *b,
                   void *y) {
    enum { ITEMS = 256 };
    int64_t n = c->n * c->T * l->C;
    ls_device_call call = {.kernel = b ? LS_KERNEL_add : LS_KERNEL_copy,
                           .groups_x = ls_device_groups(n, ITEMS),
                           .groups_y = 1,
                           .args = {{.l = n}, {.from = a}}};
    if (b) call.args[2].from = b;
    call.args[b ? 3 : 2].p = y;
    ls_compute_launch(c->compute, &call);
}

static void launch_forward(const ls_layer *l, const ls_layer_call *c) {
    if (l->ninputs == 1) launch(l, c, c->x[0], NULL, c->y);
    for (int i = 1; i < l->ninputs; i++) launch(l, c, i == 1 ? c->x[0] : c->y, c->x[i], c->y);
}

static void launch_backward(const ls_layer *l, const ls_layer_call *c) {
    for (int i = 0; i < l->ninputs; i++) {
        bool adds = c->begun >> i & 1;
        if (c->dx[i]) launch(l, c, adds ? c->dx[i] : c->dy, adds ? c->dy : NULL, c->dx[i]);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_forward(l, c);
        return;
    }
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, forward_run, &(job){l, c});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_backward(l, c);
        return;
    }
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, backward_run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "add", .forward = forward, .backward = backward};

/* Two are added in one pass, and backward copies. */
static void declare_conversions(ls_layer *l, int64_t n) {
    ls_conversions *f = &l->cost.forward_converts;
    if (l->ninputs == 2) return;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = l->ninputs * n});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = n});
}

void ls_add_declare(ls_layer *l, int64_t T, int64_t C, int ninputs) {
    l->ops = &ops;
    l->T = T;
    l->C = C;
    l->ninputs = ninputs;
    for (int k = 0; k < ninputs; k++) l->input_floats[k] = (size_t)(T * C);
    for (int k = 0; k < ninputs; k++) l->unread[k] = true;
    l->y_floats = (size_t)(T * C);
    l->half.as_stored = LS_OPERAND_ALL;
    l->traits.adds_itself = l->traits.on_device = true;
    l->cost.flops = (double)((ninputs - 1) * T * C);
    for (int k = 1; k < ninputs; k++) ls_works_pass(&l->cost.forward, LS_WORK_ADD, T * C);
    for (int k = 0; k < ninputs; k++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, T * C);
    declare_conversions(l, T * C);
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
    if (of != &ops) l->half.as_stored = 0;
    l->traits.adds_itself = of == &ops;
    l->unread[0] = l->unread[1] = of == &ops;
    return ls_build_value(m, a->dims);
}

ls_value *(ls_add)(ls_model *m, ls_value *a, ls_value *b) { return add_two(m, a, b, &ops); }

/* ---- the sum of two, and ReLU ---- */

static void relu_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    int64_t at = 0, n = share_of(j, thread, nthreads, &at);
    const float *a = (const float *)j->c->x[0] + at, *b = (const float *)j->c->x[1] + at;
    float *y = (float *)j->c->y + at;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t part = part_of(n - i);
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
        int64_t part = part_of(n - i);
        c->compute->k->add(part, a + i, b + i, dx + i);
        c->compute->k->activation_dx[LS_RELU](part, dx + i, (const float *)c->dy + at + i, dx + i);
        if (other) memcpy(other + i, dx + i, (size_t)part * sizeof *dx);
    }
}

static void relu_launch(const ls_layer *l, const ls_layer_call *c, bool back) {
    enum { ITEMS = 256 };
    int64_t n = c->n * c->T * l->C;
    ls_device_call call = {.kernel = back ? LS_KERNEL_add_relu_dx : LS_KERNEL_add_relu,
                           .groups_x = ls_device_groups(n, ITEMS),
                           .groups_y = 1,
                           .args = {{.l = n}, {.from = c->x[0]}, {.from = c->x[1]}}};
    if (back)
        call.args[3].from = c->dy, call.args[4].p = c->dx[0], call.args[5].p = c->dx[1];
    else
        call.args[3].p = c->y;
    ls_compute_launch(c->compute, &call);
}

static void relu_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        relu_launch(l, c, false);
        return;
    }
    ls_pool_run(c->compute->pool, relu_forward_run, &(job){l, c});
}

static void relu_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0] && !c->dx[1]) return;
    if (c->compute->device)
        relu_launch(l, c, true);
    else
        ls_pool_run(c->compute->pool, relu_backward_run, &(job){l, c});
}

static const ls_layer_ops relu_ops = {
    .kind = "add_relu", .forward = relu_forward, .backward = relu_backward};

ls_value *(ls_add_relu)(ls_model *m, ls_value *a, ls_value *b) {
    return add_two(m, a, b, &relu_ops);
}
