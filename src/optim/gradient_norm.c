/* gradient_norm.c - see gradient_norm.h. */
#include "optim/gradient_norm.h"

#include <math.h>

#include <string.h>

#include "tensor/dtype.h"
#include "tensor/update_device.h"

typedef struct job {
    const ls_kernels *k;
    const ls_norm_input *in;
    size_t first, nblocks;
    double *sums;
} job;

const float *ls_norm_read_block(const ls_kernels *k, const ls_norm_input *in, size_t block,
                                int *param_p, float *room) {
    const ls_model *m = in->model;
    size_t first = block * LS_BLOCK, end = first + LS_BLOCK;
    const float *x = ls_flat_at(in->type, in->x, first);
    if (ls_dtype_is_half(in->type)) {
        k->widen(in->type, LS_BLOCK, x, room);
        x = room;
    }
    for (int i = *param_p; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen) continue;
        if (p->offset >= end) break;
        size_t from = p->offset > first ? p->offset : first, to = p->offset + p->count;
        if (to <= end) *param_p = i + 1;
        if (p->momentum == 0 || to <= first) continue;
        if (x != room) memcpy(room, x, LS_BLOCK * sizeof *room);
        memset(room + (from - first), 0, ((to < end ? to : end) - from) * sizeof *room);
        x = room;
    }
    return x;
}

static void blocks_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t b = 0, end = 0;
    int param = 0;
    ls_pool_share((int64_t)j->nblocks, 1, thread, nthreads, &b, &end);
    for (; b < end; b++) {
        size_t block = j->first + (size_t)b;
        float room[LS_BLOCK];
        const float *x = ls_norm_read_block(j->k, j->in, block, &param, room);
        j->sums[block] = (double)j->k->sum_squares(LS_BLOCK, x);
    }
}

/* Which of the block's numbers from `first` on are running values: a bit for each 16, as parameters begin at
 * multiples of 16, and no two have some of the same. *param_p: as in ls_norm_read_block(). */
static uint64_t running_in(const ls_model *m, size_t first, int *param_p) {
    size_t end = first + LS_BLOCK;
    uint64_t bits = 0;
    _Static_assert(LS_BLOCK / 16 == 64, "a block has as many as a word has bits");
    for (int i = *param_p; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (p->frozen) continue;
        if (p->offset >= end) break;
        size_t from = p->offset > first ? p->offset : first, to = p->offset + p->count;
        if (to <= end) *param_p = i + 1;
        for (; p->momentum > 0 && from < to && from < end; from += 16)
            bits |= (uint64_t)1 << (from - first) / 16;
    }
    return bits;
}

/* All blocks at once, and those with running values again. */
static void squares_there(const ls_compute *c, const ls_norm_input *in, const job *j) {
    const float *x = in->x;
    int param = 0;
    bool runs = false;
    for (int i = 0; i < in->model->nparams; i++) runs |= in->model->params[i].momentum > 0;
    ls_update_device_squares(c, &(ls_squares_call){(int64_t)j->nblocks, LS_BLOCK, 0},
                             x + j->first * LS_BLOCK, j->sums + j->first);
    for (size_t b = j->first; runs && b < j->first + j->nblocks; b++) {
        uint64_t without = running_in(in->model, b * LS_BLOCK, &param);
        if (without)
            ls_update_device_squares(c, &(ls_squares_call){1, LS_BLOCK, without}, x + b * LS_BLOCK,
                                     j->sums + b);
    }
}

void ls_norm_blocks(const ls_compute *c, const ls_norm_input *in, size_t first, size_t end,
                    double *sums) {
    job j = {c->k, in, first / LS_BLOCK, (end - first) / LS_BLOCK, sums};
    if (c->device)
        squares_there(c, in, &j);
    else
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
