/* multiply.c - y = a b, by element. */
#include "model/builder.h"

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
                &(job){c->compute, c->n * (int64_t)l->y_floats, c->x[0], c->x[1], c->y});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    for (int k = 0; k < 2; k++)
        if (c->dx[k])
            ls_pool_run(
                c->compute->pool, run,
                &(job){c->compute, c->n * (int64_t)l->y_floats, c->dy, c->x[1 - k], c->dx[k]});
}

static const ls_layer_ops ops = {.kind = "multiply", .forward = forward, .backward = backward};

ls_value *(ls_multiply)(ls_model *m, ls_value *a, ls_value *b) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, "multiply", NULL, x, 2);
    if (!l) return ls_build_failed(m);
    if (!ls_value_same_dims(a, b))
        return ls_build_fail(m, "the inputs have different shapes: %s and %s",
                             ls_dims_write(a->dims).text, ls_dims_write(b->dims).text);
    l->ops = &ops;
    ls_works_pass(&l->forward_work, LS_WORK_ADD, ls_value_count(a));
    for (int k = 0; k < 2; k++) ls_works_pass(&l->backward_work, LS_WORK_ADD, ls_value_count(a));
    return ls_build_value(m, a->dims);
}
