/* topk.c - the k elements of largest magnitude; among equal ones, those of the lowest index.
 *
 * Message: k indexes (u32, ascending), then their k values.
 *
 * Which elements they are is found exactly, in one pass over the vector: a sample gives a threshold
 * that a few more than k elements exceed, these are collected, and the k-th among them is selected.
 * Where the sample misleads (fewer than k exceed it, or too many), the k-th magnitude is found by
 * counting its bits from the top.
 */
#include <math.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/select.h"

enum { SAMPLE = 4096, COUNTERS = 1 << 11 };

/* What work memory holds. */
typedef struct topk_work {
    uint64_t *keys;   /* [room] */
    uint32_t *places; /* [room] */
} topk_work;

static size_t room_of(const ls_compression *how, size_t n) {
    size_t room = 2 * how->k + SAMPLE + n / 128;
    return room < n && n >= 2 * SAMPLE ? room : n;
}

static size_t nwork(const ls_compression *how, size_t n) {
    size_t room = room_of(how, n) > SAMPLE ? room_of(how, n) : SAMPLE;
    return room * (sizeof(uint64_t) + sizeof(uint32_t));
}

static topk_work work_of(const ls_codec_job *j) {
    size_t room = room_of(j->how, j->n) > SAMPLE ? room_of(j->how, j->n) : SAMPLE;
    return (topk_work){j->work, (uint32_t *)((uint64_t *)j->work + room)};
}

static size_t nbytes(const ls_compression *how, size_t n, int round) {
    (void)n, (void)round;
    return how->k * (sizeof(uint32_t) + sizeof(float));
}

static size_t unit(const ls_compression *how) {
    (void)how;
    return 1;
}

/* ---- selection ---- */

/* A magnitude that somewhat more than k of the elements exceed, most likely; -1: all do. */
static float guess(const float *x, size_t n, size_t k, uint64_t *keys) {
    size_t step = n / SAMPLE;
    if (step < 2) return -1.0f;
    for (size_t i = 0; i < SAMPLE; i++) keys[i] = ls_select_key(x[i * step], 0);
    double share = (double)k / (double)n * SAMPLE;
    size_t rank = (size_t)(share + 4 * sqrt(share)) + 8;
    if (rank >= SAMPLE) return -1.0f;
    return ls_select_magnitude(ls_select(keys, SAMPLE, rank));
}

/* The k-th greatest magnitude's bits: 11, 10 and 10 bits at a time. *above_p: how many elements are
 * above it. */
static uint32_t kth_magnitude(const float *x, size_t n, size_t k, size_t *above_p) {
    static const int shifts[] = {20, 10, 0};
    uint32_t prefix = 0, mask = 0;
    size_t left = k;
    for (int s = 0; s < 3; s++) {
        uint32_t count[COUNTERS] = {0}, digits = s ? 0x3ff : 0x7ff;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = ls_select_bits(x[i]);
            count[bits >> shifts[s] & digits] += (bits & mask) == prefix;
        }
        uint32_t d = digits;
        while (count[d] < left) left -= count[d--];
        prefix |= d << shifts[s];
        mask |= digits << shifts[s];
    }
    *above_p = k - left;
    return prefix;
}

/* Writes the k indexes by counting. */
static void choose_by_counting(const float *x, size_t n, size_t k, uint32_t *index) {
    size_t above = 0, found = 0;
    uint32_t least = kth_magnitude(x, n, k, &above);
    size_t equal = k - above;
    for (size_t i = 0; i < n && found < k; i++) {
        uint32_t bits = ls_select_bits(x[i]);
        if (bits < least || (bits == least && equal == 0)) continue;
        if (bits == least) equal--;
        index[found++] = (uint32_t)i;
    }
}

static void choose(const ls_codec_job *j, const float *x, uint32_t *index) {
    topk_work w = work_of(j);
    size_t k = j->how->k, room = room_of(j->how, j->n);
    float threshold = guess(x, j->n, k, w.keys);
    size_t m =
        (size_t)j->k->compress.above((int64_t)j->n, x, threshold, 0, w.places, (int64_t)room);
    bool complete = m < room || room == j->n;
    if (m < k || !complete) {
        choose_by_counting(x, j->n, k, index);
        return;
    }
    for (size_t i = 0; i < m; i++) w.keys[i] = ls_select_key(x[w.places[i]], w.places[i]);
    uint64_t least = ls_select(w.keys, m, k - 1);
    size_t found = 0;
    for (size_t i = 0; i < m && found < k; i++)
        if (ls_select_key(x[w.places[i]], w.places[i]) >= least) index[found++] = w.places[i];
}

/* ---- the codec ---- */

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    size_t k = j->how->k;
    uint32_t *index = message;
    float *values = (float *)message + k;
    (void)round;
    if (k == j->n)
        for (size_t i = 0; i < k; i++) index[i] = (uint32_t)i;
    else if (k)
        choose(j, x, index);
    for (size_t i = 0; i < k; i++) values[i] = x[index[i]];
}

/* The number of indexes below `first`. */
static size_t lower(const uint32_t *index, size_t k, size_t first) {
    size_t lo = 0, hi = k;
    while (lo < hi) {
        size_t middle = (lo + hi) / 2;
        if (index[middle] < first)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* A message may come from another worker: an index that is out of order is not followed. */
static void decode(const ls_codec_job *j, const void *message, size_t first, size_t count,
                   float *out) {
    size_t k = j->how->k;
    const uint32_t *index = message;
    const float *values = (const float *)message + k;
    memset(out, 0, count * sizeof *out);
    for (size_t i = lower(index, k, first); i < k && index[i] < first + count; i++)
        if (index[i] >= first) out[index[i] - first] = values[i];
}

const ls_codec ls_codec_topk = {.name = "topk",
                                .nshared = ls_codec_none,
                                .nwork = nwork,
                                .nbytes = nbytes,
                                .unit = unit,
                                .prepare = ls_codec_prepare_nothing,
                                .encode = encode,
                                .absorb = ls_codec_absorb_nothing,
                                .decode = decode};
