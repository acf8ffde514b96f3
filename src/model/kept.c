/* kept.c - see kept.h. */
#include "model/kept.h"

#include <math.h>
#include <string.h>

enum { STRIP = 16 };

static int64_t whole(int64_t n) { return (n + STRIP - 1) / STRIP * STRIP; }

size_t ls_kept_floats(int64_t T, int64_t heads, int64_t D) {
    return (size_t)(heads * 2 * whole(T) * D);
}

static float *keys_of(const ls_kept *k, int64_t head) {
    return k->p + head * 2 * whole(k->T) * k->D;
}
static float *values_of(const ls_kept *k, int64_t head) {
    return keys_of(k, head) + whole(k->T) * k->D;
}

void ls_kept_put(const ls_kept *k, int64_t head, int64_t t, const float *key, const float *value) {
    float *strip = keys_of(k, head) + t / STRIP * STRIP * k->D + t % STRIP;
    for (int64_t i = 0; i < k->D; i++) strip[i * STRIP] = key[i];
    memcpy(values_of(k, head) + t * k->D, value, (size_t)k->D * sizeof *value);
}

/* A score that does not count is set as ls_heads_forward() sets it, before and after the softmax. */
void ls_kept_attend(const ls_kept *k, const ls_kernels *kernels, const ls_kept_query *a) {
    const float *keys = keys_of(k, a->head), *values = values_of(k, a->head);
    int64_t D = k->D, seen = a->t + 1;
    float stat[2], *s = a->room;
    memset(s, 0, (size_t)seen * sizeof *s);
    for (int64_t i = 0; i < seen; i += STRIP)
        kernels->gemv(LS_F32, D, seen - i < STRIP ? seen - i : STRIP, a->q, keys + i * D, STRIP,
                      s + i);
    for (int64_t i = 0; i < a->first; i++) s[i] = -INFINITY;
    kernels->softmax_causal(1, seen, a->t, 1.0f / sqrtf((float)D), s, stat);
    for (int64_t i = 0; i < a->first; i++) s[i] = 0;
    memset(a->y, 0, (size_t)D * sizeof *a->y);
    kernels->gemv(LS_F32, seen, D, s, values, D, a->y);
}
