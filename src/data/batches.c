/* batches.c - see batches.h. */
#include "data/batches.h"

ls_batches ls_batches_of(const ls_config *c) {
    ls_batches b = {.n = 1, .phases = {{0, (uint64_t)c->train.batch}}};
    for (int i = 0; i < c->train.nphases; i++) {
        b.phases[i].step = (uint64_t)c->train.phases[i].step;
        b.phases[i].batch = (uint64_t)c->train.phases[i].batch;
        b.n = i + 1;
    }
    return b;
}

/* The steps of phase i that come before `step`. */
static uint64_t steps_of(const ls_batches *b, int i, uint64_t step) {
    uint64_t first = b->phases[i].step;
    uint64_t end = i + 1 < b->n && b->phases[i + 1].step < step ? b->phases[i + 1].step : step;
    return end > first ? end - first : 0;
}

uint64_t ls_batches_size(const ls_batches *b, uint64_t step) {
    int i = b->n - 1;
    while (i > 0 && b->phases[i].step > step) i--;
    return b->phases[i].batch;
}

uint64_t ls_batches_sum(const ls_batches *b, uint64_t steps) {
    uint64_t sum = 0;
    for (int i = 0; i < b->n; i++) sum += steps_of(b, i, steps) * b->phases[i].batch;
    return sum;
}

/* Goes on by `steps` steps of `size` samples: first to the end of the epoch. */
static void advance(ls_batch *at, uint64_t steps, uint64_t size, uint64_t nsamples) {
    uint64_t rest = (nsamples - at->first + size - 1) / size, whole = (nsamples + size - 1) / size;
    if (steps < rest) {
        at->first += steps * size;
        return;
    }
    steps -= rest;
    at->epoch += 1 + steps / whole;
    at->first = steps % whole * size;
}

int64_t ls_batches_steps(const ls_batches *b, double want, uint64_t nsamples, int64_t most) {
    int64_t low = 0, high = most;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        ls_batch at = {.first = ls_batches_sum(b, (uint64_t)middle)};
        if (nsamples) at = ls_batches_at(b, (uint64_t)middle, nsamples);
        if ((double)at.epoch * (double)nsamples + (double)at.first >= want)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

ls_batch ls_batches_at(const ls_batches *b, uint64_t step, uint64_t nsamples) {
    ls_batch at = {0};
    for (int i = 0; i < b->n; i++) advance(&at, steps_of(b, i, step), b->phases[i].batch, nsamples);
    uint64_t size = ls_batches_size(b, step), left = nsamples - at.first;
    at.count = left < size ? left : size;
    return at;
}
