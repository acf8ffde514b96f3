/* ops.h - every operation on every type of integers, as one worker calls and checks it: for groups
 * of threads, of processes, and under mpirun. Floats are in algorithm_test.c, and combine_test.c
 * has the elements. */
#ifndef LS_TEST_OPS_H
#define LS_TEST_OPS_H

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "lockstep/group.h"
#include "tensor/dtype.h"

enum { OPS_MOST = 700 };

/* Is it a type of signed integers? */
static inline bool ops_is_signed(ls_dtype t) {
    return t == LS_I64 || t == LS_I32 || t == LS_I16 || t == LS_I8;
}

/* Random bits, often 0 or small, so that logical operations have both results. */
static inline uint64_t ops_value(int worker, size_t i, ls_dtype t) {
    uint32_t w[4];
    ls_random_words(5, LS_STREAM_SAMPLE, (uint64_t)worker, i, w);
    uint64_t u = (uint64_t)w[0] << 32 | w[1];
    uint64_t x = w[2] % 4 == 0 ? 0 : w[2] % 4 == 1 ? w[3] % 3 : u;
    size_t size = ls_dtype_size(t);
    if (t == LS_BOOL) return x % 2;
    return size == 8 ? x : x & (((uint64_t)1 << 8 * size) - 1);
}

static inline int64_t ops_signed(ls_dtype t, uint64_t x) {
    int shift = 64 - 8 * (int)ls_dtype_size(t);
    return (int64_t)(x << shift) >> shift;
}

static inline uint64_t ops_fold(ls_dtype t, ls_op op, uint64_t a, uint64_t b) {
    bool less = ops_is_signed(t) ? ops_signed(t, a) < ops_signed(t, b) : a < b;
    int bits = 8 * (int)ls_dtype_size(t);
    uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    switch (op) {
    case LS_SUM: return (a + b) & mask;
    case LS_PROD: return (a * b) & mask;
    case LS_MIN: return less ? a : b;
    case LS_MAX: return less ? b : a;
    case LS_LAND: return a && b;
    case LS_LOR: return a || b;
    case LS_LXOR: return !a != !b;
    case LS_BAND: return a & b;
    case LS_BOR: return a | b;
    default: return a ^ b;
    }
}

/* The reduction of workers [0, end). */
static inline uint64_t ops_reduced(ls_dtype t, ls_op op, int end, size_t i) {
    uint64_t x = ops_value(0, i, t);
    for (int k = 1; k < end; k++) x = ops_fold(t, op, x, ops_value(k, i, t));
    return x;
}

typedef union ops_block {
    uint64_t align;
    unsigned char bytes[OPS_MOST * 8];
} ops_block;

static inline void ops_fill(ls_dtype t, int worker, size_t n, ops_block *b) {
    size_t size = ls_dtype_size(t);
    for (size_t i = 0; i < n; i++) {
        uint64_t x = ops_value(worker, i, t);
        memcpy(b->bytes + i * size, &x, size); /* little-endian */
    }
}

/* out [n] holds the reduction of workers [0, end), elements from `first` on. */
static inline ls_status ops_check(const ls_group *g, ls_dtype t, ls_op op, int end, size_t first,
                                  size_t n, const ops_block *out, const char *what, ls_error *e) {
    size_t size = ls_dtype_size(t);
    for (size_t i = 0; i < n; i++) {
        uint64_t got = 0, want = ops_reduced(t, op, end, first + i);
        memcpy(&got, out->bytes + i * size, size);
        if (got != want)
            return ls_fail(e, LS_EIO,
                           "%s %s %s, worker %d of %d: element %zu of %zu is %llx, not %llx", what,
                           ls_dtype_name(t), ls_op_name(op), ls_group_rank(g), ls_group_size(g), i,
                           n, (unsigned long long)got, (unsigned long long)want);
    }
    return LS_OK;
}

static inline ls_status ops_one(ls_group *g, ls_dtype t, ls_op op, size_t count, ls_error *e) {
    static _Thread_local ops_block in, out;
    int r = ls_group_rank(g), n = ls_group_size(g), root = n / 2;
    size_t block = count / (size_t)n;
    ops_fill(t, r, count, &in);
    LS_TRY(ls_all_reduce(g, &in, &out, count, t, op, e));
    LS_TRY(ops_check(g, t, op, n, 0, count, &out, "all_reduce", e));
    LS_TRY(ls_reduce(g, &in, &out, count, t, op, root, e));
    if (r == root) LS_TRY(ops_check(g, t, op, n, 0, count, &out, "reduce", e));
    LS_TRY(ls_reduce_scatter(g, &in, &out, block, t, op, e));
    LS_TRY(ops_check(g, t, op, n, (size_t)r * block, block, &out, "reduce_scatter", e));
    LS_TRY(ls_scan(g, &in, &out, count, t, op, e));
    LS_TRY(ops_check(g, t, op, r + 1, 0, count, &out, "scan", e));
    LS_TRY(ls_exscan(g, &in, r ? &in : NULL, count, t, op, e));
    return r ? ops_check(g, t, op, r, 0, count, &in, "exscan", e) : LS_OK;
}

/* The fixed tree over x [lo, hi), written plainly. */
static inline float ops_tree(const float *x, int lo, int hi) {
    int half = 1;
    if (hi - lo == 1) return x[lo];
    while (half * 2 < hi - lo) half *= 2;
    return ops_tree(x, lo, lo + half) + ops_tree(x, lo + half, hi);
}

static inline float ops_fraction(int worker, size_t i) {
    return (float)(ops_value(worker, i, LS_I32) % 1000) / 7;
}

/* Scans of floats have the bits of the tree over the workers that they add up. */
static inline ls_status ops_order(ls_group *g, size_t count, ls_error *e) {
    static _Thread_local float in[OPS_MOST], up_to[OPS_MOST], before[OPS_MOST];
    int r = ls_group_rank(g);
    ls_request *q[2] = {0};
    for (size_t i = 0; i < count; i++) in[i] = ops_fraction(r, i);
    LS_TRY(ls_scan_start(g, in, up_to, count, LS_F32, LS_SUM, &q[0], e));
    LS_TRY(ls_exscan_start(g, in, before, count, LS_F32, LS_SUM, &q[1], e));
    for (int k = 0; k < 2; k++) LS_TRY(ls_wait(&q[k], -1, e));
    for (size_t i = 0; i < count; i++) {
        float x[64];
        for (int k = 0; k <= r; k++) x[k] = ops_fraction(k, i);
        float want = ops_tree(x, 0, r + 1), other = r ? ops_tree(x, 0, r) : 0;
        if (memcmp(&want, &up_to[i], sizeof want) != 0 ||
            (r && memcmp(&other, &before[i], sizeof other) != 0))
            return ls_fail(e, LS_EIO, "scan of f32, worker %d: element %zu of %zu is %a, %a", r, i,
                           count, (double)up_to[i], (double)before[i]);
    }
    return LS_OK;
}

/* One of five values, so that often several workers have the least or the greatest. */
static inline double ops_few(int worker, size_t i) {
    return (double)(ops_value(worker, i, LS_U8) % 5) - 2;
}

#define OPS_PAIRS(T, DTYPE)                                                                        \
    do {                                                                                           \
        static _Thread_local T in[OPS_MOST], out[2][OPS_MOST];                                     \
        for (size_t i = 0; i < count; i++) {                                                       \
            in[i].value = (__typeof__(in[i].value))ops_few(r, i);                                  \
            in[i].index = r * 10;                                                                  \
        }                                                                                          \
        LS_TRY(ls_all_reduce(g, in, out[0], count, DTYPE, LS_MINLOC, e));                          \
        LS_TRY(ls_scan(g, in, out[1], count, DTYPE, LS_MAXLOC, e));                                \
        for (size_t i = 0; i < count; i++) {                                                       \
            int least = 0, most = 0;                                                               \
            for (int k = 1; k < n; k++)                                                            \
                if (ops_few(k, i) < ops_few(least, i)) least = k;                                  \
            for (int k = 1; k <= r; k++)                                                           \
                if (ops_few(k, i) > ops_few(most, i)) most = k;                                    \
            if (out[0][i].index != least * 10 || (int)out[0][i].value != (int)ops_few(least, i) || \
                out[1][i].index != most * 10 || (int)out[1][i].value != (int)ops_few(most, i))     \
                return ls_fail(e, LS_EIO, "%s, worker %d of %d, element %zu is wrong", #T, r, n,   \
                               i);                                                                 \
        }                                                                                          \
    } while (0)

static inline ls_status ops_pairs(ls_group *g, size_t count, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    OPS_PAIRS(ls_f64_i64, LS_F64_I64);
    OPS_PAIRS(ls_f32_i32, LS_F32_I32);
    OPS_PAIRS(ls_i64_i64, LS_I64_I64);
    OPS_PAIRS(ls_i32_i32, LS_I32_I32);
    return LS_OK;
}

/* Lengths for each way through shared memory. *arg: bool, sums may be in any order. */
static inline ls_status ops_all(ls_group *g, void *arg, ls_error *e) {
    bool any_order = arg && *(const bool *)arg;
    static const size_t counts[] = {3, 40, OPS_MOST};
    for (int k = 0; k < 3 && !any_order; k++) LS_TRY(ops_order(g, counts[k], e));
    for (int k = 0; k < 3; k++) LS_TRY(ops_pairs(g, counts[k], e));
    for (int t = 0; t <= LS_BOOL; t++)
        for (int op = 0; op < LS_NOPS; op++)
            for (int k = 0; k < 3; k++) {
                if (ls_op_takes(LS_AVG, (ls_dtype)t) || !ls_op_takes((ls_op)op, (ls_dtype)t))
                    continue;
                LS_TRY(ops_one(g, (ls_dtype)t, (ls_op)op, counts[k], e));
            }
    return LS_OK;
}

#endif
