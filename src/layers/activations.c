/* activations.c - activation functions, element by element: GELU, ReLU, sigmoid, tanh, SiLU.
 *
 * They save nothing: backward reads x, and computes y again where the derivative is one of y. */
#include "model/builder.h"
#include "model/row_ops.h"

enum { GELU = LS_NACTIVATIONS };

/* Operands are one row each. */
typedef struct job {
    const ls_kernels *k;
    int which; /* an ls_activation, or GELU */
    int64_t n;
    ls_matrix x, dy;
    ls_numbers y; /* or dx */
} job;

static void compute(const job *j, int64_t n, const float *x, float *y) {
    if (j->which == GELU)
        j->k->gelu(n, x, y);
    else
        j->k->activation[j->which](n, x, y);
}

/* SiLU's derivative is one of x; so is ReLU's, which is positive where y is. GELU's kernel computes
 * y, too, which is not used. */
static void compute_dx(const job *j, int64_t n, const float *x, const float *dy, float *dx) {
    float y[LS_PART];
    if (j->which == GELU) {
        j->k->gelu_back(n, x, dy, dx, y);
        return;
    }
    bool of_x = j->which == LS_SILU || j->which == LS_RELU;
    if (!of_x) compute(j, n, x, y);
    j->k->activation_dx[j->which](n, of_x ? x : y, dy, dx);
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    float x_room[LS_PART], dy_room[LS_PART], room[LS_PART];
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    for (int64_t n; i < end; i += n) {
        n = end - i < LS_PART ? end - i : LS_PART;
        const float *x = ls_part_read(j->k, j->x, 0, i, n, x_room);
        float *y = ls_part_result(j->y, i, room);
        if (j->dy.p)
            compute_dx(j, n, x, ls_part_read(j->k, j->dy, 0, i, n, dy_room), y);
        else
            compute(j, n, x, y);
        ls_part_store(j->k, j->y, i, n, y);
    }
}

/* A call may have fewer positions than T. */
static job job_of(const ls_layer *l, const ls_layer_call *c, ls_numbers y) {
    int64_t n = c->n * c->T * ((int64_t)l->y_floats / l->T);
    return (job){.k = c->compute->k,
                 .which = LS_LAYER_OWN_OF(int, l),
                 .n = n,
                 .x = ls_rows_x(l, c, 0, n),
                 .y = y};
}

/* On the call's device, where `which` is the same (device/kernels/activations.k). */
static void launch(const ls_layer_call *c, const job *j) {
    enum { ITEMS = 256 };
    bool back = j->dy.p != NULL;
    ls_device_call call = {.kernel = back ? LS_KERNEL_activation_dx : LS_KERNEL_activation,
                           .groups_x = ls_device_groups(j->n, ITEMS),
                           .groups_y = 1,
                           .args = {{.l = j->which}, {.l = j->n}, {.from = j->x.p}}};
    if (back) call.args[3].from = j->dy.p;
    call.args[back ? 4 : 3].p = j->y.p;
    ls_compute_launch(c->compute, &call);
}

static void run_all(const ls_layer_call *c, job *j) {
    if (c->compute->device)
        launch(c, j);
    else
        ls_pool_run(c->compute->pool, run, j);
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = job_of(l, c, ls_rows_y(l, c));
    run_all(c, &j);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    job j = job_of(l, c, ls_rows_dx(l, c, 0));
    j.dy = ls_rows_dy(l, c, j.n);
    run_all(c, &j);
}

static const ls_layer_ops ops[] = {
    [LS_RELU] = {.kind = "relu", .forward = forward, .backward = backward},
    [LS_SIGMOID] = {.kind = "sigmoid", .forward = forward, .backward = backward},
    [LS_TANH] = {.kind = "tanh", .forward = forward, .backward = backward},
    [LS_SILU] = {.kind = "silu", .forward = forward, .backward = backward},
    [GELU] = {.kind = "gelu", .forward = forward, .backward = backward},
};

static void declare_conversions(ls_layer *l, int64_t n) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = n});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = n});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_X, .for_dx = true, .numbers = n});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_DY, .for_dx = true, .numbers = n});
    ls_conversions_add(
        b, (ls_conversion){.operand = LS_OPERAND_DX, .rounds = true, .for_dx = true, .numbers = n});
}

static ls_value *add(ls_model *m, ls_value *x, int which) {
    ls_layer *l = ls_build_layer(m, ops[which].kind, NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t count = ls_value_count(x);
    bool cheap = which == LS_RELU;
    l->ops = &ops[which];
    l->traits.on_device = true;
    LS_LAYER_OWN_AS(int, l) = which;
    if (which == GELU) l->T = count / ls_value_last(x);
    l->half.as_stored = LS_OPERAND_ALL;
    ls_works_pass(&l->cost.forward, cheap ? LS_WORK_ADD : LS_WORK_GELU, count);
    ls_works_pass(&l->cost.backward, cheap ? LS_WORK_ADD : LS_WORK_GELU_BACK, count);
    declare_conversions(l, count);
    return ls_build_value(m, x->dims);
}

ls_value *(ls_gelu)(ls_model *m, ls_value *x) { return add(m, x, GELU); }
ls_value *(ls_relu)(ls_model *m, ls_value *x) { return add(m, x, LS_RELU); }
ls_value *(ls_sigmoid)(ls_model *m, ls_value *x) { return add(m, x, LS_SIGMOID); }
ls_value *(ls_tanh)(ls_model *m, ls_value *x) { return add(m, x, LS_TANH); }
ls_value *(ls_silu)(ls_model *m, ls_value *x) { return add(m, x, LS_SILU); }
