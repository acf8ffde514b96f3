/* adamw.c - see adamw.h. */
#include "optim/adamw.h"

#include "base/math.h"
#include "tensor/dtype.h"

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
    const ls_adamw_state *s;
} job;

/* Updates elements [from, to) of one parameter, at most LS_BLOCK. */
static void update_range(const job *j, const ls_adamw_step *step, size_t from, size_t to) {
    const ls_adamw_state *s = j->s;
    const ls_kernels *k = j->c->k;
    bool half_grads = ls_dtype_is_half(s->grads_type), half = ls_dtype_is_half(s->params_type);
    float wide[LS_BLOCK], *master = half ? s->master : s->params;
    size_t n = to - from;
    const void *grads = ls_flat_at(s->grads_type, s->grads, from);
    if (half_grads) k->widen(s->grads_type, n, grads, wide);
    k->adamw((int64_t)n, step, half_grads ? wide : grads, master + from, s->m + from, s->v + from);
    if (half) k->narrow(s->params_type, n, master + from, (uint16_t *)s->params + from);
}

/* Updates elements [first, end), at most LS_BLOCK. *param_p: the first parameter that may have
 * elements in the range, on return that of the next block. */
static void update_block(const job *j, size_t first, size_t end, int *param_p) {
    int i = *param_p;
    for (; i < j->model->nparams && j->model->params[i].offset < end; i++) {
        const ls_param *p = &j->model->params[i];
        size_t from = p->offset > first ? p->offset : first;
        size_t to = p->offset + p->count < end ? p->offset + p->count : end;
        if (from < to) update_range(j, p->decay ? &j->decay : &j->plain, from, to);
        if (p->offset + p->count <= end) *param_p = i + 1;
    }
}

static void update_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_adamw_state *s = j->s;
    float *master = ls_dtype_is_half(s->params_type) ? s->master : s->params;
    const ls_journal_state state = {master, s->m, s->v};
    int64_t a = 0, b = 0;
    ls_pool_share((int64_t)(j->end - j->first), LS_BLOCK, thread, nthreads, &a, &b);
    size_t first = j->first + (size_t)a, end = j->first + (size_t)b;
    int param = 0;
    for (size_t at = first; at < end; at += LS_BLOCK) {
        if (s->journal && ls_journal_has(s->journal, at, s->steps)) continue;
        if (s->journal) ls_journal_begin(s->journal, thread, at, &state);
        update_block(j, at, end - at < LS_BLOCK ? end : at + LS_BLOCK, &param);
        if (s->journal) ls_journal_end(s->journal, at, s->steps);
    }
}

void ls_adamw_run(const ls_compute *c, const ls_model *model, const ls_adamw_step *step,
                  size_t first, size_t end, const ls_adamw_state *s) {
    job j = {c, model, *step, *step, first, end, s};
    j.plain.weight_decay = 0;
    ls_pool_run(c->pool, update_run, &j);
}
