/* multiply.c - products by element: y = a b, and y = SiLU(gate) x. */
#include "model/builder.h"

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

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, run,
                &(job){c->compute, numbers_of(l, c), c->x[0], c->x[1], c->y});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    for (int k = 0; k < 2; k++)
        if (c->dx[k])
            ls_pool_run(c->compute->pool, run,
                        &(job){c->compute, numbers_of(l, c), c->dy, c->x[1 - k], c->dx[k]});
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
    l->T = a->ndims == 2 ? a->dims.of[0] : 1; /* positions, if these are rows */
    return l;
}

ls_value *(ls_multiply)(ls_model *m, ls_value *a, ls_value *b) {
    ls_layer *l = add_layer(m, &ops, a, b);
    if (!l) return ls_build_failed(m);
    ls_works_pass(&l->forward_work, LS_WORK_ADD, ls_value_count(a));
    for (int k = 0; k < 2; k++) ls_works_pass(&l->backward_work, LS_WORK_ADD, ls_value_count(a));
    return ls_build_value(m, a->dims);
}

/* ---- SiLU(gate) x ---- */

typedef struct gate_job {
    const ls_compute *compute;
    int64_t n;
    const float *gate, *x, *dy;
    float *y, *dgate, *dx;
} gate_job;

static void gate_run(void *arg, int thread, int nthreads) {
    const gate_job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    j->compute->k->silu_gate(end - i, j->gate + i, j->x + i, j->y + i);
}

static void gate_dx_run(void *arg, int thread, int nthreads) {
    const gate_job *j = arg;
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    j->compute->k->silu_gate_dx(end - i, j->gate + i, j->x + i, j->dy + i, j->dgate + i, j->dx + i);
}

static void gate_forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t n = numbers_of(l, c);
    ls_pool_run_sized(
        c->compute->pool, n, gate_run,
        &(gate_job){.compute = c->compute, .n = n, .gate = c->x[0], .x = c->x[1], .y = c->y});
}

/* work: a gradient that is not wanted. */
static void gate_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0] && !c->dx[1]) return;
    ls_pool_run(c->compute->pool, gate_dx_run,
                &(gate_job){.compute = c->compute,
                            .n = numbers_of(l, c),
                            .gate = c->x[0],
                            .x = c->x[1],
                            .dy = c->dy,
                            .dgate = c->dx[0] ? c->dx[0] : c->work,
                            .dx = c->dx[1] ? c->dx[1] : c->work});
}

static const ls_layer_ops gate_ops = {
    .kind = "silu_gate", .forward = gate_forward, .backward = gate_backward};

ls_value *(ls_silu_gate)(ls_model *m, ls_value *gate, ls_value *x) {
    ls_layer *l = add_layer(m, &gate_ops, gate, x);
    if (!l) return ls_build_failed(m);
    l->work_floats = (size_t)ls_value_count(x);
    ls_works_pass(&l->forward_work, LS_WORK_GELU, ls_value_count(x));
    ls_works_pass(&l->backward_work, LS_WORK_GELU_BACK, ls_value_count(x));
    return ls_build_value(m, x->dims);
}
