/* order.c - see order.h. */
#include "data/order.h"

#include "base/random.h"

enum { ROUNDS = 4 };

static uint64_t permute(uint64_t seed, uint64_t epoch, int half, uint64_t x) {
    uint64_t mask = ((uint64_t)1 << half) - 1, left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t w[4];
        ls_random_words(seed, LS_STREAM_ORDER, epoch, right | round << 48, w);
        uint64_t f = ((uint64_t)w[1] << 32 | w[0]) & mask, old = right;
        right = left ^ f;
        left = old;
    }
    return left << half | right;
}

uint64_t ls_order_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t place) {
    int half = 1;
    while (((uint64_t)1 << (2 * half)) < n) half++;
    do place = permute(seed, epoch, half, place);
    while (place >= n);
    return place;
}

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
