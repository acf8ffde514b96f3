/* embedding.c - y = token embedding + position embedding.
 *
 * params: wte [V, C] (tied: the head uses it too), wpe [T, C]
 * forward: tokens -> y [rows, C]. backward: dy -> gradients; no dx.
 *
 * Backward runs once for all samples of a virtual worker (backward_whole): wte's gradient is one
 * chain that begins with the head's product over all rows and goes on here with the rows of each
 * token, so the micro-batches of the head must all come first.
 */
#include <string.h>

#include "model/rows.h"

enum { WTE, WPE };

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t C = j->l->C, r = 0, end = 0;
    const float *wte = c->params + j->l->offsets[WTE], *wpe = c->params + j->l->offsets[WPE];
    ls_pool_share(c->n * c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        int64_t sample = r / c->T, t = r % c->T;
        int64_t token = c->tokens[sample * (c->T + 1) + t];
        c->compute->k->add(C, wte + token * C, wpe + t * C, c->y + r * C);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, forward_run, &(job){l, c});
}

/* Threads split the columns, so that every chain is over rows in order. */
static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    int64_t C = j->l->C, c0 = 0, c1 = 0;
    float *dwte = c->grads + j->l->offsets[WTE], *dwpe = c->grads + j->l->offsets[WPE];
    ls_pool_share(C, 16, thread, nthreads, &c0, &c1);
    int64_t width = c1 - c0;
    if (width == 0) return;
    for (int64_t t = 0; c->grads_start && t < c->T; t++)
        memset(dwpe + t * C + c0, 0, (size_t)width * sizeof(float));
    for (int64_t r = 0; r < c->n * c->T; r++) {
        int64_t sample = r / c->T, t = r % c->T;
        int64_t token = c->tokens[sample * (c->T + 1) + t];
        const float *dy = c->dy + r * C + c0;
        float *to_token = dwte + token * C + c0, *to_position = dwpe + t * C + c0;
        c->compute->k->add(width, to_token, dy, to_token);
        c->compute->k->add(width, to_position, dy, to_position);
    }
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, backward_run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "embedding", .forward = forward, .backward = backward};

void ls_embedding_declare(ls_layer *l, int64_t T, int64_t C, int64_t V) {
    l->ops = &ops;
    l->C = C;
    l->V = V;
    l->y_floats = (size_t)(T * C);
    l->backward_whole = true;
    l->backward_alone = true;
    ls_works_pass(&l->forward_work, LS_WORK_ADD, T * C);
    ls_works_pass(&l->backward_work, LS_WORK_ADD, 2 * T * C);
}
