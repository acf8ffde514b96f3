/* squares.c - see squares.h. */
#include "exec/squares.h"

#include <stdlib.h>

#include "optim/norm.h"

_Static_assert((int)LS_NOISE_SIGNS == (int)LS_BLOCK, "a sign for each element of a block");

void ls_squares_open(ls_squares *s, const ls_plan *p) {
    s->step = -1;
    if (p->c.noise) s->blocks = ls_alloc_array(ls_plan_floats(p) / LS_BLOCK, sizeof *s->blocks);
}

void ls_squares_close(ls_squares *s) { free(s->blocks); }

typedef struct job {
    const ls_squares *s;
    const ls_compute *c;
    const ls_squares_input *in;
    size_t first, nblocks;
} job;

static void blocks_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_plan *p = j->in->plan;
    const ls_norm_input in = {p->c.model, p->c.reduce, j->in->grads};
    size_t turns = ls_noise_turns(ls_plan_floats(p) / LS_BLOCK);
    int64_t b = 0, end = 0;
    int param = 0;
    ls_pool_share((int64_t)j->nblocks, 1, thread, nthreads, &b, &end);
    for (; b < end; b++) {
        size_t block = j->first + (size_t)b;
        float room[LS_BLOCK], sums[2];
        if (!ls_noise_takes(turns, block, j->in->step)) continue;
        const float *x = ls_norm_read_block(j->c->k, &in, block, &param, room);
        j->c->k->squares_and_dot(LS_BLOCK, x, j->s->signs.signs, sums);
        j->s->blocks[block][0] = (double)sums[0];
        j->s->blocks[block][1] = (double)sums[1];
    }
}

void ls_squares_bucket(ls_squares *s, const ls_compute *c, const ls_squares_input *in, int bucket) {
    const ls_bucket *b = &in->plan->buckets[bucket];
    job j = {s, c, in, b->first / LS_BLOCK, (b->end - b->first) / LS_BLOCK};
    if (s->step != in->step) ls_noise_draw(in->seed, in->step, &s->signs);
    s->step = in->step;
    ls_pool_run(c->pool, blocks_run, &j);
}

void ls_squares_sum(const ls_squares *s, const ls_squares_input *in,
                    double numbers[LS_NOISE_NUMBERS]) {
    size_t nblocks = ls_plan_floats(in->plan) / LS_BLOCK;
    ls_noise_sum(&s->signs, in->step, (const double(*)[2])s->blocks, nblocks, numbers);
}

void ls_squares_finish(const ls_plan *p, double *sums, int64_t step, double scale,
                       uint64_t samples, ls_noise_step *out) {
    ls_noise_sums n = {
        .V = p->c.V, .numbers = ls_plan_noise(p, sums), .scale = scale, .samples = samples};
    size_t nblocks = ls_plan_floats(p) / LS_BLOCK, turns = ls_noise_turns(nblocks);
    for (size_t b = 0; b < nblocks; b++)
        if (ls_noise_takes(turns, b, step)) n.whole += sums[b];
    ls_noise_of(&n, out);
}
