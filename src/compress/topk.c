/* topk.c - the k elements of largest magnitude; among equal ones, those of the lowest index.
 *
 * Message: k indexes (u32, ascending), then their k values.
 *
 * Which elements they are is found exactly, in one pass over the vector: samples give a threshold
 * that a few more than k elements exceed, these are collected, and the k-th among them is selected.
 * Where they mislead (fewer than k exceed it, or too many), the k-th magnitude is found by
 * counting its bits from the top.
 */
#include <math.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/select.h"

enum { SAMPLE = 4096, SECOND = 16 * SAMPLE, COUNTERS = 1 << 11, CACHED = 1 << 12 };

/* What work memory holds. */
typedef struct topk_work {
    uint64_t *keys;      /* [room] of the elements above the threshold, in their order */
    uint64_t *uncertain; /* [room] those of them that are not certain */
} topk_work;

static size_t room_of(const ls_compression *how, size_t n) {
    size_t room = 2 * how->k + SAMPLE + n / 128;
    return room < n && n >= 2 * SAMPLE ? room : n;
}

static size_t nwork(const ls_compression *how, size_t n) {
    size_t room = room_of(how, n) > SAMPLE ? room_of(how, n) : SAMPLE;
    return 2 * room * sizeof(uint64_t);
}

static topk_work work_of(const ls_codec_job *j) {
    size_t room = room_of(j->how, j->n) > SAMPLE ? room_of(j->how, j->n) : SAMPLE;
    return (topk_work){j->work, (uint64_t *)j->work + room};
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

/* Magnitudes about the k-th: somewhat more than k of the elements exceed `low`, and somewhat fewer
 * exceed `high`, most likely. */
typedef struct bracket {
    float low, high;
} bracket;

/* Writes the keys of a sample of `size` elements, those above `low` alone; returns their number, or
 * `room` if there may be more. keys [room] */
static size_t sample(const float *x, size_t step, size_t size, float low, uint64_t *keys,
                     size_t room) {
    size_t m = 0;
    for (size_t i = 0; i < size && m < room; i++) {
        float v = x[i * step];
        keys[m] = ls_select_key(v, 0);
        m += fabsf(v) > low;
    }
    return m;
}

/* The bracket by the greatest m elements of a sample of `size`. *b_p stays if these are too few. */
static void narrow(size_t n, size_t k, size_t size, uint64_t *keys, size_t m, bracket *b_p) {
    double share = (double)k / (double)n * (double)size, spread = 4 * sqrt(share) + 8;
    if (share + spread >= (double)m) return;
    b_p->low = ls_select_magnitude(ls_select(keys, m, (size_t)(share + spread)));
    if (share > spread)
        b_p->high = ls_select_magnitude(ls_select(keys, m, (size_t)(share - spread)));
}

/* A sample gives a first bracket. A larger one, of which only elements above that are looked at,
 * gives a closer one. Without a guess all elements exceed `low`, and none `high`. */
static bracket guess(const float *x, size_t n, size_t k, const topk_work *w, size_t room) {
    bracket b = {-1.0f, INFINITY};
    if (n / SAMPLE < 2) return b;
    sample(x, n / SAMPLE, SAMPLE, -1.0f, w->keys, SAMPLE);
    narrow(n, k, SAMPLE, w->keys, SAMPLE, &b);
    if (n / SECOND < 16) return b;
    size_t m = sample(x, n / SECOND, SECOND, b.low, w->keys, room);
    if (m < room) narrow(n, k, SECOND, w->keys, m, &b);
    return b;
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

/* Writes the k elements that counting finds. */
static void choose_by_counting(const float *x, size_t n, size_t k, uint32_t *index, float *values) {
    size_t above = 0, found = 0;
    uint32_t least = kth_magnitude(x, n, k, &above);
    size_t equal = k - above;
    for (size_t i = 0; i < n && found < k; i++) {
        uint32_t bits = ls_select_bits(x[i]);
        if (bits < least || (bits == least && equal == 0)) continue;
        if (bits == least) equal--;
        values[found] = x[i];
        index[found++] = (uint32_t)i;
    }
}

/* Writes the keys of the elements above `low`, in their order; returns their number, or `room` if
 * there may be more. Values are read again while they are in the cache. */
static size_t collect(const ls_codec_job *j, const float *x, float low, size_t room,
                      uint64_t *keys) {
    uint32_t index[CACHED + 15]; /* more than `above` finds */
    size_t found = 0;
    for (size_t at = 0; at < j->n && found < room; at += CACHED) {
        size_t n = j->n - at < CACHED ? j->n - at : CACHED, left = room - found;
        int64_t m = j->k->compress.above((int64_t)n, x + at, low, (uint32_t)at, index,
                                         (int64_t)(left < n ? left : n));
        for (int64_t i = 0; i < m; i++) keys[found++] = ls_select_key(x[index[i]], index[i]);
    }
    return found;
}

/* The k-th of m keys, where those above `high` are likely to be fewer. */
static uint64_t kth_key(const topk_work *w, size_t m, size_t k, float high) {
    uint64_t least = ls_select_key(high, 0);
    size_t certain = 0, open = 0;
    for (size_t i = 0; i < m; i++) {
        w->uncertain[open] = w->keys[i];
        open += w->keys[i] <= least;
    }
    certain = m - open;
    if (certain < k) return ls_select(w->uncertain, open, k - 1 - certain);
    memcpy(w->uncertain, w->keys, m * sizeof *w->keys);
    return ls_select(w->uncertain, m, k - 1);
}

static void choose(const ls_codec_job *j, const float *x, uint32_t *index, float *values) {
    topk_work w = work_of(j);
    size_t k = j->how->k, room = room_of(j->how, j->n), found = 0;
    bracket b = guess(x, j->n, k, &w, room);
    size_t m = collect(j, x, b.low, room, w.keys);
    if (m < k || (m == room && room < j->n)) {
        choose_by_counting(x, j->n, k, index, values);
        return;
    }
    uint64_t least = kth_key(&w, m, k, b.high);
    for (size_t i = 0; i < m && found < k; i++) {
        values[found] = ls_select_value(w.keys[i]);
        index[found] = ls_select_index(w.keys[i]);
        found += w.keys[i] >= least;
    }
}

/* ---- the codec ---- */

static void encode(const ls_codec_job *j, int round, const float *x, void *message) {
    size_t k = j->how->k;
    uint32_t *index = message;
    float *values = (float *)message + k;
    (void)round;
    if (k == j->n)
        for (size_t i = 0; i < k; i++) index[i] = (uint32_t)i, values[i] = x[i];
    else if (k)
        choose(j, x, index, values);
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
