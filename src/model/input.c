/* input.c - y = scale x + shift, for the bytes x of a field of the samples. */
#include <math.h>

#include "model/rows.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    float values[256]; /* of each byte */
} job;

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer *l = j->l;
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const unsigned char *x =
            (const unsigned char *)j->c->samples + l->field_at + (size_t)i * j->c->sample_nbytes;
        float *y = (float *)j->c->y + i * l->C;
        for (int64_t k = 0; k < l->C; k++) y[k] = j->values[x[k]];
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    job j = {.l = l, .c = c};
    for (int i = 0; i < 256; i++) j.values[i] = fmaf((float)i, l->scale, l->shift);
    ls_pool_run(c->compute->pool, run, &j);
}

static const ls_layer_ops ops = {.kind = "input", .forward = forward};

void ls_input_declare(ls_layer *l, int64_t C, size_t field_at, float scale, float shift) {
    l->ops = &ops;
    l->T = 1;
    l->C = C;
    l->field_at = field_at;
    l->scale = scale;
    l->shift = shift;
    l->y_floats = (size_t)C;
    ls_works_pass(&l->forward_work, LS_WORK_ADD, C);
}
