/* squares.c - see squares.h. */
#include "exec/squares.h"

#include <stdlib.h>

#include "optim/gradient_norm.h"

_Static_assert((int)LS_NOISE_SIGNS == (int)LS_BLOCK, "a sign for each element of a block");

void ls_squares_open(ls_squares *s, const ls_share *sh) {
    size_t most = 0;
    s->step = -1;
    if (!sh->noise) return;
    for (int k = 0; k < sh->nbuckets; k++) {
        size_t nblocks = (sh->buckets[k].end - sh->buckets[k].first) / LS_BLOCK;
        if (nblocks > most) most = nblocks;
    }
    s->blocks = ls_alloc_array(most, sizeof *s->blocks);
    s->numbers = LS_NEW_ARRAY(double, (size_t)sh->V *LS_NOISE_NUMBERS);
}

void ls_squares_close(ls_squares *s) {
    free(s->blocks);
    free(s->numbers);
}

/* Blocks of all buckets together. */
static size_t nblocks_of(const ls_share *sh) { return sh->floats / LS_BLOCK; }

typedef struct job {
    const ls_squares *s;
    const ls_compute *c;
    const ls_squares_input *in;
    size_t first, nblocks;
} job;

static void blocks_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_share *sh = j->in->share;
    const ls_norm_input in = {sh->model, sh->reduce, j->in->grads};
    size_t turns = ls_noise_turns(nblocks_of(sh));
    int64_t b = 0, end = 0;
    int param = 0;
    ls_pool_share((int64_t)j->nblocks, 1, thread, nthreads, &b, &end);
    for (; b < end; b++) {
        size_t block = j->first + (size_t)b;
        float room[LS_BLOCK];
        if (!ls_noise_takes(turns, block, j->in->step)) continue;
        const float *x = ls_norm_read_block(j->c->k, &in, block, &param, room);
        j->c->k->squares_and_dot(LS_BLOCK, x, j->s->signs.signs, j->s->blocks[b]);
    }
}

void ls_squares_bucket(ls_squares *s, const ls_compute *c, const ls_squares_input *in, int bucket,
                       double bins[LS_NOISE_SUMS]) {
    const ls_bucket *k = &in->share->buckets[bucket];
    size_t nblocks = nblocks_of(in->share), turns = ls_noise_turns(nblocks);
    job j = {s, c, in, k->first / LS_BLOCK, (k->end - k->first) / LS_BLOCK};
    if (s->step != in->step) ls_noise_draw(in->seed, in->step, &s->signs);
    s->step = in->step;
    ls_pool_run_sized(c->pool, (int64_t)(j.nblocks * LS_BLOCK), blocks_run, &j);
    for (size_t b = 0; b < j.nblocks; b++)
        if (ls_noise_takes(turns, j.first + b, in->step))
            ls_noise_add_block(&s->signs, nblocks, j.first + b, s->blocks[b], bins);
}

void ls_squares_finish(const ls_squares *s, const ls_squares_sums *in, ls_noise_step *out) {
    const ls_share *sh = in->share;
    const double *bins = ls_share_scalars(sh, in->sums).noise;
    ls_noise_sums n = {
        .V = sh->V, .numbers = s->numbers, .scale = in->scale, .samples = in->samples};
    size_t nblocks = nblocks_of(sh), turns = ls_noise_turns(nblocks);
    for (int v = 0; v < sh->V; v++)
        ls_noise_add_up(bins + v * LS_NOISE_SUMS, s->numbers + v * LS_NOISE_NUMBERS);
    for (size_t b = 0; b < nblocks; b++)
        if (ls_noise_takes(turns, b, in->step)) n.whole += in->sums[b];
    ls_noise_of(&n, out);
}
