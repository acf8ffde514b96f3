/* norm.c - see norm.h. */
#include "optim/norm.h"

#include <math.h>

#include "model/model.h"
#include "tensor/dtype.h"

typedef struct job {
    const ls_kernels *k;
    ls_dtype type;
    const void *x;
    size_t first, nblocks;
    double *sums;
} job;

static void blocks_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t b = 0, end = 0;
    ls_pool_share((int64_t)j->nblocks, 1, thread, nthreads, &b, &end);
    for (; b < end; b++) {
        size_t block = j->first + (size_t)b;
        float wide[LS_BLOCK];
        const void *x = (const char *)j->x + block * LS_BLOCK * ls_dtype_size(j->type);
        if (ls_dtype_is_half(j->type)) j->k->widen(j->type, LS_BLOCK, x, wide);
        j->sums[block] = (double)j->k->sum_squares(LS_BLOCK, ls_dtype_is_half(j->type) ? wide : x);
    }
}

void ls_norm_blocks(const ls_compute *c, ls_dtype type, const void *x, size_t first, size_t end,
                    double *sums) {
    job j = {c->k, type, x, first / LS_BLOCK, (end - first) / LS_BLOCK, sums};
    ls_pool_run(c->pool, blocks_run, &j);
}

double ls_norm_total(const double *sums, size_t n) {
    double total = 0.0;
    for (size_t i = 0; i < n; i++) total += sums[i];
    return sqrt(total);
}

double ls_clip_factor(double norm, double limit) {
    return limit > 0 && norm > limit ? limit / norm : 1.0;
}
