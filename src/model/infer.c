/* infer.c - see infer.h. Memory: two activations in turn | the largest saved | the largest work. */
#include "model/infer.h"

#include "model/head.h"

static void most_of(const ls_model *m, size_t *y_p, size_t *saved_p) {
    *y_p = *saved_p = 0;
    for (int i = 0; i < m->nlayers; i++) {
        if (m->layers[i].y_floats > *y_p) *y_p = m->layers[i].y_floats;
        if (m->layers[i].saved_floats > *saved_p) *saved_p = m->layers[i].saved_floats;
    }
}

size_t ls_infer_nbytes(const ls_model *m, int64_t n) {
    size_t y = 0, saved = 0;
    most_of(m, &y, &saved);
    return (size_t)n * (2 * y + saved + ls_model_work_floats(m)) * sizeof(float);
}

/* Layers [0, end), each from the output of the one before; returns the last output. */
static float *forward(const ls_infer *f, ls_layer_call *c, int end) {
    size_t y = 0, saved = 0, n = (size_t)f->n;
    most_of(f->model, &y, &saved);
    float *acts[2] = {f->memory, f->memory + n * y}, *x = NULL;
    c->compute = f->compute;
    c->params = f->params;
    c->saved = acts[1] + n * y;
    c->work = c->saved + n * saved;
    for (int i = 0; i < end; i++) {
        const ls_layer *l = &f->model->layers[i];
        c->x = x;
        c->y = acts[i % 2];
        l->ops->forward(l, c);
        x = c->y;
    }
    return x;
}

void ls_infer_losses(const ls_infer *f, int64_t n, const uint32_t *tokens, double *losses) {
    int64_t T = f->model->config.context;
    for (int64_t i = 0; i < n; i += f->n) {
        ls_layer_call c = {.n = n - i < f->n ? n - i : f->n,
                           .T = T,
                           .tokens = tokens + i * (T + 1),
                           .losses = losses + i};
        forward(f, &c, f->model->nlayers);
    }
}

const float *ls_infer_next(const ls_infer *f, const uint32_t *tokens, int64_t T) {
    int last = f->model->nlayers - 1;
    ls_layer_call c = {.n = 1, .T = T, .tokens = tokens};
    float *x = forward(f, &c, last);
    const ls_layer *head = &f->model->layers[last];
    c.x = x + (T - 1) * head->C; /* the head needs the last position alone */
    c.T = 1;
    head->ops->forward(head, &c);
    return ls_head_logits(&c);
}
