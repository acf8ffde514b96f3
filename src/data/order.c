/* order.c - see order.h. */
#include "data/order.h"

#include "base/random.h"

enum { ROUNDS = 4 };

/* ---- a permutation of n numbers ---- */

typedef struct permutation {
    uint64_t n, seed, epoch;
    ls_stream stream;
    int half; /* bits of a half of the network's state */
} permutation;

static permutation permutation_of(uint64_t n, uint64_t seed, ls_stream stream, uint64_t epoch) {
    permutation p = {.n = n, .seed = seed, .epoch = epoch, .stream = stream, .half = 1};
    while (((uint64_t)1 << (2 * p.half)) < n) p.half++;
    return p;
}

static uint64_t scramble(const permutation *p, uint64_t half, uint64_t round) {
    uint32_t w[4];
    ls_random_words(p->seed, p->stream, p->epoch, half | round << 48, w);
    return ((uint64_t)w[1] << 32 | w[0]) & (((uint64_t)1 << p->half) - 1);
}

static uint64_t forward(const permutation *p, uint64_t x) {
    do {
        uint64_t left = x >> p->half, right = x & (((uint64_t)1 << p->half) - 1);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint64_t old = right;
            right = left ^ scramble(p, right, round);
            left = old;
        }
        x = left << p->half | right;
    } while (x >= p->n);
    return x;
}

static uint64_t inverse(const permutation *p, uint64_t x) {
    do {
        uint64_t left = x >> p->half, right = x & (((uint64_t)1 << p->half) - 1);
        for (uint64_t round = ROUNDS; round-- > 0;) {
            uint64_t old = left;
            left = right ^ scramble(p, left, round);
            right = old;
        }
        x = left << p->half | right;
    } while (x >= p->n);
    return x;
}

/* ---- blocks ---- */

/* The order of an epoch's blocks. Slot k of it has the samples [k block, (k + 1) block) of the
 * order, but those after the short block come `missing` places earlier. */
typedef struct blocks {
    const ls_order *o;
    permutation p;
    uint64_t missing; /* samples that the short block has less than others */
    uint64_t after;   /* the place after the short block's samples */
} blocks;

static blocks blocks_of(const ls_order *o, uint64_t epoch) {
    uint64_t n = (o->n - 1) / o->block + 1;
    blocks b = {.o = o,
                .p = permutation_of(n, o->seed, LS_STREAM_BLOCKS, epoch),
                .missing = n * o->block - o->n};
    b.after = (inverse(&b.p, n - 1) + 1) * o->block - b.missing;
    return b;
}

/* The place as it were if all blocks were full, and back. */
static uint64_t full_place(const blocks *b, uint64_t place) {
    return place < b->after ? place : place + b->missing;
}

static uint64_t slot_begin(const blocks *b, uint64_t slot) {
    uint64_t full = slot * b->o->block;
    return full < b->after + b->missing ? full : full - b->missing;
}

/* The numbers of blocks are permuted by a key of the epoch, the places in a window by a key of the
 * window, which is drawn. */
static uint64_t place_in_window(const blocks *b, uint64_t epoch, uint64_t place) {
    const ls_order *o = b->o;
    uint64_t window = full_place(b, place) / o->block / o->window, nwindows = b->p.n / o->window;
    if (nwindows == 0) nwindows = 1;
    if (window >= nwindows) window = nwindows - 1;
    uint64_t end = window + 1 == nwindows ? o->n : slot_begin(b, (window + 1) * o->window);
    uint64_t begin = slot_begin(b, window * o->window);
    uint32_t key[4];
    ls_random_words(o->seed, LS_STREAM_WINDOWS, epoch, window, key);
    permutation p =
        permutation_of(end - begin, (uint64_t)key[1] << 32 | key[0], LS_STREAM_ORDER, epoch);
    return begin + forward(&p, place - begin);
}

static uint64_t at_by_blocks(const ls_order *o, uint64_t epoch, uint64_t place) {
    blocks b = blocks_of(o, epoch);
    uint64_t full = full_place(&b, place_in_window(&b, epoch, place));
    return forward(&b.p, full / o->block) * o->block + full % o->block;
}

uint64_t ls_order_at(const ls_order *o, uint64_t epoch, uint64_t place) {
    if (o->block) return at_by_blocks(o, epoch, place);
    permutation p = permutation_of(o->n, o->seed, LS_STREAM_ORDER, epoch);
    return forward(&p, place);
}

/* ---- batches ---- */

ls_batch ls_batch_of(uint64_t step, uint64_t nsamples, uint64_t batch) {
    uint64_t steps = (nsamples + batch - 1) / batch; /* of an epoch */
    ls_batch b = {.epoch = step / steps, .first = step % steps * batch};
    b.count = nsamples - b.first < batch ? nsamples - b.first : batch;
    return b;
}

void ls_batch_share(uint64_t count, int V, int a, int b, uint64_t *first_p, uint64_t *end_p) {
    *first_p = count * (uint64_t)a / (uint64_t)V;
    *end_p = count * (uint64_t)b / (uint64_t)V;
}
