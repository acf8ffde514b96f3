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

/* A walk over the running values among the numbers [first, first + LS_BLOCK), those of one
 * parameter [from, to) at a time. It begins at parameter i; done_p counts the parameters that end
 * in the block or before it. */
typedef struct running_walk {
    const ls_model *m;
    size_t first, from, to;
    int i, *done_p;
} running_walk;

static bool next_running(running_walk *w) {
    size_t end = w->first + LS_BLOCK;
    while (w->i < w->m->nparams) {
        const ls_param *p = &w->m->params[w->i++];
        if (p->frozen) continue;
        if (p->offset >= end) return false;
        size_t to = p->offset + p->count;
        if (to <= end) *w->done_p = w->i;
        if (p->momentum == 0 || to <= w->first) continue;
        w->from = p->offset > w->first ? p->offset : w->first;
        w->to = to < end ? to : end;
        return true;
    }
    return false;
}

const float *ls_norm_read_block(const ls_kernels *k, const ls_norm_input *in, size_t block,
                                int *param_p, float *room) {
    size_t first = block * LS_BLOCK;
    running_walk w = {.m = in->model, .first = first, .i = *param_p, .done_p = param_p};
    const float *x = ls_flat_at(in->type, in->x, first);
    if (ls_dtype_is_half(in->type)) {
        k->widen(in->type, LS_BLOCK, x, room);
        x = room;
    }
    while (next_running(&w)) {
        if (x != room) memcpy(room, x, LS_BLOCK * sizeof *room);
        memset(room + (w.from - first), 0, (w.to - w.from) * sizeof *room);
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

/* Which of the block's numbers from `first` on are running values: a bit for each 16, as parameters
 * begin at multiples of 16, and no two have some of the same. *param_p: as in
 * ls_norm_read_block(). */
static uint64_t running_in(const ls_model *m, size_t first, int *param_p) {
    running_walk w = {.m = m, .first = first, .i = *param_p, .done_p = param_p};
    uint64_t bits = 0;
    _Static_assert(LS_BLOCK / 16 == 64, "a block has as many as a word has bits");
    while (next_running(&w))
        for (size_t at = w.from; at < w.to; at += 16) bits |= (uint64_t)1 << (at - first) / 16;
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
        ls_pool_run_sized(c->pool, (int64_t)(end - first), blocks_run, &j);
}

double ls_norm_total(const double *sums, size_t n) {
    double total = 0.0;
    for (size_t i = 0; i < n; i++) total += sums[i];
    return sqrt(total);
}

double ls_clip_factor(double norm, double limit) {
    return limit > 0 && norm > limit ? limit / norm : 1.0;
}
