/* compressed_sums.h - compressed sums on the workers of a group: out and all of the state must have
 * the bits of one worker that has all contributions. */
#ifndef LS_TEST_COMPRESSED_SUMS_H
#define LS_TEST_COMPRESSED_SUMS_H

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "lockstep/compress.h"
#include "test.h"

enum { COMPRESSED_V = 8, COMPRESSED_STEPS = 3 };

static const ls_compression COMPRESSED[] = {
    {.kind = LS_COMPRESS_TOPK, .ratio = 0.05},
    {.kind = LS_COMPRESS_TOPK, .k = 7, .feedback = LS_FEEDBACK_EF21, .op = LS_AVG},
    {.kind = LS_COMPRESS_ONEBIT, .block = 64},
    {.kind = LS_COMPRESS_ONEBIT, .two_hops = true, .feedback = LS_FEEDBACK_NONE},
    {.kind = LS_COMPRESS_ONEBIT, .sign_scale = LS_SCALE_ROOT, .two_hops = true, .op = LS_AVG},
    {.kind = LS_COMPRESS_INT8, .op = LS_AVG},
    {.kind = LS_COMPRESS_INT8, .block = 32, .two_hops = true, .decay = 0.25f},
    {.kind = LS_COMPRESS_INT4, .feedback = LS_FEEDBACK_EF21},
    {.kind = LS_COMPRESS_INT4, .two_hops = true},
    {.kind = LS_COMPRESS_BF16, .op = LS_AVG},
    {.kind = LS_COMPRESS_BF16, .two_hops = true},
    {.kind = LS_COMPRESS_POWERSGD, .rank = 2, .op = LS_AVG},
    {.kind = LS_COMPRESS_POWERSGD, .rows = 13, .rank = 5},
};
enum { NCOMPRESSED = sizeof COMPRESSED / sizeof *COMPRESSED };

static inline void compressed_fill(float *x, int v, size_t count, uint64_t step) {
    ls_random_normal((ls_random_place){7, LS_STREAM_SAMPLE, step * 100 + (uint64_t)v, 0}, count,
                     1.0f, x);
}

/* The state of one worker, from zeros. */
static inline ls_compression_state compressed_state(const ls_compression *how, size_t own,
                                                    size_t count) {
    return (ls_compression_state){
        .errors = how->feedback == LS_FEEDBACK_NONE ? NULL : calloc(own * count + 1, sizeof(float)),
        .shared = calloc(ls_compression_shared(how, count) + 1, sizeof(float)),
        .sums = calloc(count + 1, sizeof(float))};
}
static inline void compressed_state_free(ls_compression_state *s) {
    free(s->errors);
    free(s->shared);
    free(s->sums);
}

/* A number for all bits of results: the same for any number of workers. */
static inline ls_status compressed_hash(ls_group *g, const ls_compression *how, size_t count,
                                        uint64_t *hash_p, ls_error *e) {
    int n = ls_group_size(g), rank = ls_group_rank(g);
    size_t a = (size_t)rank * COMPRESSED_V / (size_t)n;
    size_t b = (size_t)(rank + 1) * COMPRESSED_V / (size_t)n, own = b - a;
    float *in = malloc(own * count * sizeof *in + 1), *out = malloc(count * sizeof *out + 1);
    ls_compression c = *how;
    ls_compression_state state = compressed_state(how, own, count);
    ls_status s = LS_OK;
    uint64_t bits = 0, mine = 0, all = 0;
    c.virtual_workers = COMPRESSED_V;
    for (; c.step < COMPRESSED_STEPS && s == LS_OK; c.step++) {
        for (size_t i = 0; i < own; i++)
            compressed_fill(in + i * count, (int)(a + i), count, c.step);
        s = ls_all_reduce_compressed(g, in, out, count, &c, &state, e);
        bits = 31 * bits + ls_hash_bytes(out, count * sizeof *out).lo;
    }
    for (size_t i = 0; state.errors && i < own; i++)
        mine ^= (a + i + 1) * ls_hash_bytes(state.errors + i * count, count * sizeof(float)).lo;
    size_t nshared = ls_compression_shared(how, count);
    bits = 31 * bits + ls_hash_bytes(state.shared, nshared * sizeof(float)).lo;
    if (s == LS_OK) s = ls_all_reduce(g, &mine, &all, 1, LS_U64, LS_BXOR, e);
    /* Zeros outside of the own range. */
    if (s == LS_OK) s = ls_all_reduce(g, state.sums, state.sums, count, LS_F32, LS_SUM, e);
    for (size_t i = 0; i < count; i++) state.sums[i] += 0.0f;
    bits = 31 * bits + ls_hash_bytes(state.sums, count * sizeof(float)).lo;
    *hash_p = 31 * bits + all;
    free(in);
    free(out);
    compressed_state_free(&state);
    return s;
}

/* A count, and the bits of one worker for each of COMPRESSED. */
typedef struct compressed_sums {
    size_t count;
    uint64_t want[NCOMPRESSED];
} compressed_sums;

static inline ls_status compressed_alone(size_t count, compressed_sums *x, ls_error *e) {
    ls_group *alone = NULL;
    ls_status s = ls_group_open_threads(1, NULL, &alone, e);
    x->count = count;
    for (int i = 0; i < NCOMPRESSED && s == LS_OK; i++)
        s = compressed_hash(alone, &COMPRESSED[i], count, &x->want[i], e);
    ls_group_close(alone);
    return s;
}

/* arg: a compressed_sums. */
static inline ls_status compressed_all(ls_group *g, void *arg, ls_error *e) {
    const compressed_sums *x = arg;
    for (int i = 0; i < NCOMPRESSED; i++) {
        uint64_t got = 0;
        LS_TRY(compressed_hash(g, &COMPRESSED[i], x->count, &got, e));
        if (got != x->want[i])
            return ls_fail(e, LS_EINVAL, "settings %d (%s), %zu elements, %d workers: other bits",
                           i, ls_compression_name(COMPRESSED[i].kind), x->count, ls_group_size(g));
    }
    return LS_OK;
}

#endif
