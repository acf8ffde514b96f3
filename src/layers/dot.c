/* dot.c - dot products: of a vector with each of several rows, and of all pairs of rows.
 *
 * A dot product is summed in 16 lanes, then by a fixed tree. Gradients of a row are one chain over
 * the products that it is part of, in their order. */
#include <string.h>

#include "layers/layers.h"

enum { LANES = 16 };

float ls_dot_product(const float *a, const float *b, int64_t n) {
    float lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += a[i + k] * b[i + k];
    for (int k = 0; i + k < n; k++) lane[k] += a[i + k] * b[i + k];
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++) lane[k] += lane[k + width];
    return lane[0];
}

static void add_scaled(int64_t n, float by, const float *x, float *sum) {
    for (int64_t i = 0; i < n; i++) sum[i] += by * x[i];
}

static void set_scaled(int64_t n, float by, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] = by * x[i];
}

static const ls_layer_ops rows_ops;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static const float *input(const job *j, int k, int64_t sample) {
    return (const float *)j->c->x[k] + (size_t)sample * j->l->input_floats[k];
}

static float *input_gradient(const job *j, int k, int64_t sample) {
    if (!j->c->dx[k]) return NULL;
    return (float *)j->c->dx[k] + (size_t)sample * j->l->input_floats[k];
}

static float *output(const job *j, int64_t sample) {
    return (float *)j->c->y + (size_t)sample * j->l->y_floats;
}

static const float *output_gradient(const job *j, int64_t sample) {
    return (const float *)j->c->dy + (size_t)sample * j->l->y_floats;
}

/* ---- on the call's device ---- */

enum { ITEMS = 256, PRODUCTS = 16 }; /* of a group */

/* A kernel that writes n numbers, of which a group has `each`, and its arrays. */
static void launch(const job *j, ls_device_kernel kernel, int64_t n, int64_t each,
                   const ls_device_arg arrays[3]) {
    int64_t rows = j->l->ops == &rows_ops ? (int64_t)j->l->y_floats : j->l->V;
    LS_LAUNCH(j->c->compute, kernel, ls_device_groups(n, each), 1, {.l = n}, {.l = rows},
              {.l = j->l->C}, arrays[0], arrays[1], arrays[2]);
}

/* ---- a vector with each row: x[0] [C], x[1] [rows, C] ---- */

static void rows_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, C = j->l->C;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *a = input(j, 0, i), *b = input(j, 1, i);
        float *y = output(j, i);
        for (size_t r = 0; r < j->l->y_floats; r++) y[r] = ls_dot_product(a, b + (int64_t)r * C, C);
    }
}

static void rows_backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, C = j->l->C;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *a = input(j, 0, i), *b = input(j, 1, i), *dy = output_gradient(j, i);
        float *da = input_gradient(j, 0, i), *db = input_gradient(j, 1, i);
        if (da) memset(da, 0, (size_t)C * sizeof *da);
        for (size_t r = 0; r < j->l->y_floats; r++) {
            if (da) add_scaled(C, dy[r], b + (int64_t)r * C, da);
            if (db) set_scaled(C, dy[r], a, db + (int64_t)r * C);
        }
    }
}

static void rows_launch_back(const job *j) {
    const ls_layer_call *c = j->c;
    int64_t n = c->n * j->l->C;
    if (c->dx[0])
        launch(j, LS_KERNEL_dot_rows_da, n, ITEMS,
               (const ls_device_arg[3]){{.from = c->x[1]}, {.from = c->dy}, {.p = c->dx[0]}});
    if (c->dx[1])
        launch(j, LS_KERNEL_dot_rows_db, n * (int64_t)j->l->y_floats, ITEMS,
               (const ls_device_arg[3]){{.from = c->x[0]}, {.from = c->dy}, {.p = c->dx[1]}});
}

static void rows_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch(&(job){l, c}, LS_KERNEL_dot_rows, c->n * (int64_t)l->y_floats, PRODUCTS,
               (const ls_device_arg[3]){{.from = c->x[0]}, {.from = c->x[1]}, {.p = c->y}});
    else
        ls_pool_run(c->compute->pool, rows_forward_run, &(job){l, c});
}

static void rows_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        rows_launch_back(&(job){l, c});
    else
        ls_pool_run(c->compute->pool, rows_backward_run, &(job){l, c});
}

static const ls_layer_ops rows_ops = {
    .kind = "dot", .forward = rows_forward, .backward = rows_backward};

ls_value *(ls_dot)(ls_model *m, ls_value *a, ls_value *b) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, "dot", NULL, x, 2);
    if (!l) return ls_build_failed(m);
    if (a->ndims != 1 || b->ndims < 1 || b->ndims > 2 || ls_value_last(b) != ls_value_last(a))
        return ls_build_fail(m, "the inputs are %s and %s; [C] and [C] or [rows, C] are needed",
                             ls_dims_write(a->dims).text, ls_dims_write(b->dims).text);
    l->ops = &rows_ops;
    l->traits.on_device = true;
    l->C = ls_value_last(a);
    int64_t n = ls_value_count(b);
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, n);
    for (int k = 0; k < 2; k++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, n);
    return ls_build_value(m, b->ndims == 2 ? LS_DIMS(b->dims.of[0]) : LS_DIMS(1));
}

/* ---- all pairs of rows: x[0] [rows, C] ---- */

static void pairs_forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t s = 0, end = 0, C = j->l->C, rows = j->l->V;
    ls_pool_share(j->c->n, 1, thread, nthreads, &s, &end);
    for (; s < end; s++) {
        const float *x = input(j, 0, s);
        float *y = output(j, s);
        for (int64_t r = 1; r < rows; r++)
            for (int64_t k = 0; k < r; k++) *y++ = ls_dot_product(x + r * C, x + k * C, C);
    }
}

static void pairs_backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t s = 0, end = 0, C = j->l->C, rows = j->l->V;
    ls_pool_share(j->c->n, 1, thread, nthreads, &s, &end);
    for (; s < end; s++) {
        const float *x = input(j, 0, s), *dy = output_gradient(j, s);
        float *dx = input_gradient(j, 0, s);
        memset(dx, 0, (size_t)(rows * C) * sizeof *dx);
        for (int64_t r = 1; r < rows; r++)
            for (int64_t k = 0; k < r; k++, dy++) {
                add_scaled(C, *dy, x + k * C, dx + r * C);
                add_scaled(C, *dy, x + r * C, dx + k * C);
            }
    }
}

static void pairs_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device)
        launch(&(job){l, c}, LS_KERNEL_interaction, c->n * (int64_t)l->y_floats, PRODUCTS,
               (const ls_device_arg[3]){{.from = c->x[0]}, {.p = c->y}});
    else
        ls_pool_run(c->compute->pool, pairs_forward_run, &(job){l, c});
}

static void pairs_backward(const ls_layer *l, const ls_layer_call *c) {
    if (!c->dx[0]) return;
    if (c->compute->device)
        launch(&(job){l, c}, LS_KERNEL_interaction_dx, c->n * (int64_t)l->input_floats[0], ITEMS,
               (const ls_device_arg[3]){{.from = c->x[0]}, {.from = c->dy}, {.p = c->dx[0]}});
    else
        ls_pool_run(c->compute->pool, pairs_backward_run, &(job){l, c});
}

static const ls_layer_ops pairs_ops = {
    .kind = "interaction", .forward = pairs_forward, .backward = pairs_backward};

ls_value *(ls_interaction)(ls_model *m, ls_value *x) {
    ls_layer *l = ls_build_layer(m, "interaction", NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    if (x->ndims != 2 || x->dims.of[0] < 2)
        return ls_build_fail(m, "the input is %s; [rows, C] with two rows or more is needed",
                             ls_dims_write(x->dims).text);
    int64_t rows = x->dims.of[0], pairs = rows * (rows - 1) / 2;
    l->ops = &pairs_ops;
    l->traits.on_device = true;
    l->C = x->dims.of[1];
    l->V = rows;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, pairs * l->C);
    for (int k = 0; k < 2; k++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, pairs * l->C);
    return ls_build_value(m, LS_DIMS(pairs));
}
