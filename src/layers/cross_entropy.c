/* cross_entropy.c - the loss of a classifier: cross-entropy of V logits and a class, an int32 of the
 * sample.
 *
 * forward: losses [n], or the logits if the call has no losses.
 * backward: losses, dx. The data's reader has checked that the class is one of 0 to V - 1. */
#include <string.h>

#include "base/math.h"
#include "model/builder.h"
#include "model/rows.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static int32_t class_of(const job *j, int64_t sample) {
    int32_t x = 0;
    memcpy(&x, ls_layer_field(j->l, j->c, 0, sample), sizeof x);
    return x;
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    const ls_kernels *k = c->compute->k;
    int64_t i = 0, end = 0, V = j->l->V;
    ls_pool_share(c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        const float *x = (const float *)c->x[0] + i * V;
        float stat[2], *dx = c->dx[0] ? (float *)c->dx[0] + i * V : NULL;
        double sum = (double)k->cross_entropy(V, x, stat);
        c->losses[i] = ls_math_log(sum) + (double)stat[0] - (double)x[class_of(j, i)];
        if (!dx) continue;
        memcpy(dx, x, (size_t)V * sizeof(float));
        k->cross_entropy_dx(V, dx, stat, class_of(j, i), c->loss_scale);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->losses)
        ls_pool_run(c->compute->pool, run, &(job){l, c});
    else
        memcpy(c->y, c->x[0], (size_t)(c->n * l->V) * sizeof(float));
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "cross_entropy", .forward = forward, .backward = backward};

void(ls_cross_entropy)(ls_model *m, ls_value *logits, ls_value *label, ls_loss_options o) {
    ls_layer *l = ls_build_layer(m, "cross_entropy", o.name, &logits, 1);
    if (!l) return;
    int64_t V = ls_value_count(logits);
    if (!label || label->layer >= 0 || label->type != LS_I32 || ls_value_count(label) != 1) {
        ls_build_fail(m, "the label is no field of one i32");
        return;
    }
    if (logits->ndims != 1) {
        ls_build_fail(m, "the logits are %s; a vector, one number a class, is needed",
                      ls_dims_write(logits->dims).text);
        return;
    }
    l->ops = &ops;
    l->C = l->V = V;
    l->loss = true;
    ls_build_field(m, l, label);
    ls_works_pass(&l->backward_work, LS_WORK_LOSS, V);
    ls_works_pass(&l->backward_work, LS_WORK_LOSS_DX, V);
    m->targets = 1;
    ls_build_classes(m, label, V, false);
}
