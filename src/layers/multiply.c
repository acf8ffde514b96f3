/* multiply.c - products by element: y = a b, y = SiLU(gate) x, and y = GELU(gate) x. */
#include <string.h>

#include "layers/layers.h"
#include "model/row_ops.h"

static int64_t numbers_of(const ls_layer *l, const ls_layer_call *c) {
    return c->n * c->T * ((int64_t)l->y_floats / l->T);
}

/* ---- a b ---- */

typedef struct job {
    const ls_compute *compute;
    int64_t n;
    const float *a, *b;
    float *out;
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    j->compute->k->multiply(end - i, j->a + i, j->b + i, j->out + i);
}

/* On the call's device: a kernel of n numbers, and its arrays (NULL: not wanted). */
static void launch(const ls_compute *c, ls_device_kernel kernel, int64_t n,
                   const ls_device_arg arrays[5]) {
    enum { ITEMS = 256 };
    ls_device_call call = {.kernel = kernel,
                           .groups_x = ls_device_groups(n, ITEMS),
                           .groups_y = 1,
                           .args = {{.l = n}}};
    memcpy(call.args + 1, arrays, 5 * sizeof *arrays);
    ls_compute_launch(c, &call);
}

static void multiply(const ls_layer *l, const ls_layer_call *c, const void *a, const void *b,
                     void *out) {
    int64_t n = numbers_of(l, c);
    if (c->compute->device)
        launch(c->compute, LS_KERNEL_multiply, n,
               (const ls_device_arg[5]){{.from = a}, {.from = b}, {.p = out}});
    else
        ls_pool_run(c->compute->pool, run, &(job){c->compute, n, a, b, out});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    multiply(l, c, c->x[0], c->x[1], c->y);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    for (int k = 0; k < 2; k++)
        if (c->dx[k]) multiply(l, c, c->dy, c->x[1 - k], c->dx[k]);
}

static const ls_layer_ops ops = {.kind = "multiply", .forward = forward, .backward = backward};

static ls_layer *add_layer(ls_model *m, const ls_layer_ops *which, ls_value *a, ls_value *b) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, which->kind, NULL, x, 2);
    if (!l) return NULL;
    if (!ls_value_same_dims(a, b)) {
        ls_build_fail(m, "the inputs have different shapes: %s and %s", ls_dims_write(a->dims).text,
                      ls_dims_write(b->dims).text);
        return NULL;
    }
    l->ops = which;
    l->traits.on_device = true;
    l->T = a->ndims == 2 ? a->dims.of[0] : 1; /* positions, if these are rows */
    return l;
}

ls_value *(ls_multiply)(ls_model *m, ls_value *a, ls_value *b) {
    ls_layer *l = add_layer(m, &ops, a, b);
    if (!l) return ls_build_failed(m);
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(a));
    for (int k = 0; k < 2; k++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(a));
    return ls_build_value(m, a->dims);
}

/* ---- SiLU(gate) x, GELU(gate) x ---- */

/* Operands are one row each. */
typedef struct gate_job {
    const ls_compute *compute;
    bool gelu;
    int64_t n;
    ls_matrix gate, x, dy;
    ls_numbers y, dgate, dx; /* p NULL: it is not wanted */
} gate_job;

static int64_t part_of(int64_t i, int64_t end) { return end - i < LS_PART ? end - i : LS_PART; }

static void gated(const gate_job *j, int64_t n, const float *gate, const float *x, float *y) {
    const ls_kernels *k = j->compute->k;
    float room[LS_PART];
    if (!j->gelu) {
        k->silu_gate(n, gate, x, y);
        return;
    }
    k->gelu(n, gate, room);
    k->multiply(n, room, x, y);
}

/* dgate and dx may be where dy is. */
typedef struct gate_grads {
    const float *gate, *x, *dy;
    float *dgate, *dx;
} gate_grads;

static void gated_dx(const gate_job *j, int64_t n, gate_grads g) {
    const ls_kernels *k = j->compute->k;
    float y[LS_PART], room[LS_PART];
    if (!j->gelu) {
        k->silu_gate_dx(n, g.gate, g.x, g.dy, g.dgate, g.dx);
        return;
    }
    k->multiply(n, g.dy, g.x, room);
    k->gelu_back(n, g.gate, room, room, y);
    k->multiply(n, g.dy, y, g.dx);
    memcpy(g.dgate, room, (size_t)n * sizeof *room);
}

static void gate_run(void *arg, int thread, int nthreads) {
    const gate_job *j = arg;
    const ls_kernels *k = j->compute->k;
    float gate[LS_PART], x[LS_PART], room[LS_PART];
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    for (int64_t n; i < end; i += n) {
        n = part_of(i, end);
        float *y = ls_part_result(j->y, i, room);
        gated(j, n, ls_part_read(k, j->gate, 0, i, n, gate), ls_part_read(k, j->x, 0, i, n, x), y);
        ls_part_store(k, j->y, i, n, y);
    }
}

static void gate_dx_run(void *arg, int thread, int nthreads) {
    const gate_job *j = arg;
    const ls_kernels *k = j->compute->k;
    float gate[LS_PART], x[LS_PART], dy[LS_PART];
    float gate_room[LS_PART], x_room[LS_PART];
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    for (int64_t n; i < end; i += n) {
        n = part_of(i, end);
        float *dgate = j->dgate.p ? ls_part_result(j->dgate, i, gate_room) : gate_room;
        float *dx = j->dx.p ? ls_part_result(j->dx, i, x_room) : x_room;
        gated_dx(j, n,
                 (gate_grads){ls_part_read(k, j->gate, 0, i, n, gate),
                              ls_part_read(k, j->x, 0, i, n, x),
                              ls_part_read(k, j->dy, 0, i, n, dy), dgate, dx});
        if (j->dgate.p) ls_part_store(k, j->dgate, i, n, dgate);
        if (j->dx.p) ls_part_store(k, j->dx, i, n, dx);
    }
}

/* The operands that both passes have. */
static gate_job gate_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t n = numbers_of(l, c);
    return (gate_job){.compute = c->compute,
                      .gelu = LS_LAYER_OWN_OF(bool, l),
                      .n = n,
                      .gate = ls_rows_x(l, c, 0, n),
                      .x = ls_rows_x(l, c, 1, n)};
}

static void gate_forward(const ls_layer *l, const ls_layer_call *c) {
    gate_job j = gate_of(l, c);
    if (c->compute->device) {
        launch(c->compute, j.gelu ? LS_KERNEL_gelu_gate : LS_KERNEL_silu_gate, j.n,
               (const ls_device_arg[5]){{.from = c->x[0]}, {.from = c->x[1]}, {.p = c->y}});
        return;
    }
    j.y = ls_rows_y(l, c);
    ls_pool_run_sized(c->compute->pool, j.n, gate_run, &j);
}

static void gate_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0] && !c->dx[1]) return;
    gate_job j = gate_of(l, c);
    if (c->compute->device) {
        launch(c->compute, j.gelu ? LS_KERNEL_gelu_gate_dx : LS_KERNEL_silu_gate_dx, j.n,
               (const ls_device_arg[5]){{.from = c->x[0]},
                                        {.from = c->x[1]},
                                        {.from = c->dy},
                                        {.p = c->dx[0]},
                                        {.p = c->dx[1]}});
        return;
    }
    j.dy = ls_rows_dy(l, c, j.n);
    j.dgate = ls_rows_dx(l, c, 0);
    j.dx = ls_rows_dx(l, c, 1);
    ls_pool_run(c->compute->pool, gate_dx_run, &j);
}

static void gate_converts(ls_layer *l, int64_t n) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = 2 * n});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = n});
    ls_conversions_add(b,
                       (ls_conversion){.operand = LS_OPERAND_X, .for_dx = true, .numbers = 2 * n});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_DY, .for_dx = true, .numbers = n});
    ls_conversions_add(
        b, (ls_conversion){
               .operand = LS_OPERAND_DX, .rounds = true, .for_dx = true, .numbers = 2 * n});
}

static const ls_layer_ops silu_ops = {
    .kind = "silu_gate", .forward = gate_forward, .backward = gate_backward};
static const ls_layer_ops gelu_ops = {
    .kind = "gelu_gate", .forward = gate_forward, .backward = gate_backward};

static ls_value *add_gate(ls_model *m, const ls_layer_ops *which, ls_value *gate, ls_value *x) {
    ls_layer *l = add_layer(m, which, gate, x);
    if (!l) return ls_build_failed(m);
    LS_LAYER_OWN_AS(bool, l) = which == &gelu_ops;
    l->half.as_stored = LS_OPERAND_ALL;
    ls_works_pass(&l->cost.forward, LS_WORK_GELU, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_GELU_BACK, ls_value_count(x));
    gate_converts(l, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

ls_value *(ls_silu_gate)(ls_model *m, ls_value *gate, ls_value *x) {
    return add_gate(m, &silu_ops, gate, x);
}

ls_value *ls_layers_gelu_gate(ls_model *m, ls_value *gate, ls_value *x) {
    return add_gate(m, &gelu_ops, gate, x);
}
