/* activations.c - activation functions, element by element: GELU, ReLU, sigmoid, tanh, SiLU.
 *
 * They save nothing: backward reads x, and computes y again where the derivative is one of y. */
#include "model/builder.h"
#include "model/row_ops.h"

/* ---- GELU ---- */

/* The number of elements at the call's positions, which may be fewer than T a sample. */
static int64_t count_of(const ls_layer *l, const ls_layer_call *c) {
    return c->n * c->T * ((int64_t)l->y_floats / l->T);
}

static void gelu_forward(const ls_layer *l, const ls_layer_call *c) {
    int64_t n = count_of(l, c);
    ls_rows_gelu(c->compute, n, ls_matrix_of(c->x[0], n), ls_numbers_f32(c->y));
}

typedef struct gelu_job {
    const ls_kernels *k;
    int64_t n;
    const float *x, *dy;
    float *dx;
} gelu_job;

/* The kernel computes the output again, which is not used. */
static void gelu_back_run(void *arg, int thread, int nthreads) {
    const gelu_job *j = arg;
    float y[LS_PART];
    int64_t i = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &i, &end);
    for (int64_t n; i < end; i += n) {
        n = end - i < LS_PART ? end - i : LS_PART;
        j->k->gelu_back(n, j->x + i, j->dy + i, j->dx + i, y);
    }
}

static void gelu_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0])
        ls_pool_run(c->compute->pool, gelu_back_run,
                    &(gelu_job){c->compute->k, count_of(l, c), c->x[0], c->dy, c->dx[0]});
}

static const ls_layer_ops gelu_ops = {
    .kind = "gelu", .forward = gelu_forward, .backward = gelu_backward};

ls_value *(ls_gelu)(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, "gelu", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t count = ls_value_count(x);
    l->ops = &gelu_ops;
    l->T = count / ls_value_last(x);
    ls_works_pass(&l->cost.forward, LS_WORK_GELU, count);
    ls_works_pass(&l->cost.backward, LS_WORK_GELU_BACK, count);
    return ls_build_value(m, x->dims);
}

/* ---- the others ---- */

typedef struct job {
    const ls_kernels *k;
    ls_activation which;
    int64_t n;
    const float *x, *dy;
    float *y; /* or dx */
} job;

static job share_of(const job *j, int thread, int nthreads) {
    int64_t first = 0, end = 0;
    ls_pool_share(j->n, 16, thread, nthreads, &first, &end);
    job part = *j;
    part.n = end - first;
    part.x += first, part.y += first;
    if (part.dy) part.dy += first;
    return part;
}

static void forward_run(void *arg, int thread, int nthreads) {
    job j = share_of(arg, thread, nthreads);
    j.k->activation[j.which](j.n, j.x, j.y);
}

/* SiLU's derivative is one of x; so is ReLU's, which is positive where y is. */
static void backward_run(void *arg, int thread, int nthreads) {
    enum { BLOCK = 4096 }; /* floats of y that stay in the first-level cache */
    job j = share_of(arg, thread, nthreads);
    bool of_x = j.which == LS_SILU || j.which == LS_RELU;
    for (int64_t i = 0; i < j.n; i += BLOCK) {
        int64_t n = j.n - i < BLOCK ? j.n - i : BLOCK;
        if (!of_x) j.k->activation[j.which](n, j.x + i, j.y + i);
        j.k->activation_dx[j.which](n, (of_x ? j.x : j.y) + i, j.dy + i, j.y + i);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = {c->compute->k,
             LS_LAYER_OWN_OF(ls_activation, l),
             c->n * (int64_t)l->y_floats,
             c->x[0],
             NULL,
             c->y};
    ls_pool_run(c->compute->pool, forward_run, &j);
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    job j = {c->compute->k,
             LS_LAYER_OWN_OF(ls_activation, l),
             c->n * (int64_t)l->y_floats,
             c->x[0],
             c->dy,
             c->dx[0]};
    ls_pool_run(c->compute->pool, backward_run, &j);
}

static const ls_layer_ops ops[LS_NACTIVATIONS] = {
    [LS_RELU] = {.kind = "relu", .forward = forward, .backward = backward},
    [LS_SIGMOID] = {.kind = "sigmoid", .forward = forward, .backward = backward},
    [LS_TANH] = {.kind = "tanh", .forward = forward, .backward = backward},
    [LS_SILU] = {.kind = "silu", .forward = forward, .backward = backward},
};

static ls_value *add(ls_model *m, ls_value *x, ls_activation which) {
    ls_layer *l = ls_build_layer(m, ops[which].kind, NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t count = ls_value_count(x);
    bool cheap = which == LS_RELU;
    l->ops = &ops[which];
    LS_LAYER_OWN_AS(ls_activation, l) = which;
    ls_works_pass(&l->cost.forward, cheap ? LS_WORK_ADD : LS_WORK_GELU, count);
    ls_works_pass(&l->cost.backward, cheap ? LS_WORK_ADD : LS_WORK_GELU_BACK, count);
    return ls_build_value(m, x->dims);
}

ls_value *(ls_relu)(ls_model *m, ls_value *x) { return add(m, x, LS_RELU); }
ls_value *(ls_sigmoid)(ls_model *m, ls_value *x) { return add(m, x, LS_SIGMOID); }
ls_value *(ls_tanh)(ls_model *m, ls_value *x) { return add(m, x, LS_TANH); }
ls_value *(ls_silu)(ls_model *m, ls_value *x) { return add(m, x, LS_SILU); }
