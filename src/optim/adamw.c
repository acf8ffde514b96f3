/* adamw.c - see adamw.h. */
#include "optim/adamw.h"

#include "base/math.h"

ls_adamw_step ls_adamw_at(const ls_adamw *a, int64_t step, double lr, double grad_scale) {
    uint64_t t = (uint64_t)step + 1;
    return (ls_adamw_step){
        .lr = (float)lr,
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .eps = (float)a->eps,
        .weight_decay = (float)a->weight_decay,
        .correct1 = (float)(1.0 / (1.0 - ls_math_pow_int(a->beta1, t))),
        .correct2 = (float)(1.0 / (1.0 - ls_math_pow_int(a->beta2, t))),
        .grad_scale = (float)grad_scale,
    };
}

typedef struct job {
    const ls_compute *c;
    const ls_model *model;
    ls_adamw_step decay, plain; /* for parameters with and without decay */
    size_t first, end;
    const float *grads;
    float *params, *m, *v;
} job;

static void update_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)(j->end - j->first), 16, thread, nthreads, &a, &b);
    size_t first = j->first + (size_t)a, end = j->first + (size_t)b;
    for (int i = 0; i < j->model->nparams; i++) {
        const ls_param *p = &j->model->params[i];
        size_t from = p->offset > first ? p->offset : first;
        size_t to = p->offset + p->count < end ? p->offset + p->count : end;
        if (from >= to) continue;
        j->c->k->adamw((int64_t)(to - from), p->decay ? &j->decay : &j->plain, j->grads + from,
                       j->params + from, j->m + from, j->v + from);
    }
}

void ls_adamw_run(const ls_compute *c, const ls_model *model, const ls_adamw_step *step,
                  size_t first, size_t end, const float *grads, float *params, float *m, float *v) {
    job j = {c, model, *step, *step, first, end, grads, params, m, v};
    j.plain.weight_decay = 0;
    ls_pool_run(c->pool, update_run, &j);
}
