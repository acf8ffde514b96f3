/* dialect.h - the dialect of kernels, as C: what dialect.cl and dialect.cu say for OpenCL and CUDA.
 *
 * A kernel is run by groups of items. What all items of a group do between two barriers stands in a
 * block ITEMS(n) { ... }, with n the number of items of kernels.h: there ITEM is the item's number.
 * At its end is a barrier: what one item has written in LOCAL or GLOBAL memory, others of its group
 * read in the next block. Outside of these blocks a kernel has only what all items do alike.
 *
 * C runs the items of a block one after the other, forwards or backwards: where the result depends
 * on that, an ITEMS is missing. A group's own function is the same C as its caller's, so sanitizers
 * see its memory.
 *
 * The condition of a loop around such blocks is one comparison: pocl 3.1 runs such a loop with &&
 * in its condition wrongly. PRIVATE arrays are indexed by numbers that are known when they are
 * compiled, as in loops of a fixed length: CUDA keeps others in memory (tests/device/nvrtc_test.c).
 *
 * A kernel's name is none of OpenCL's own functions, such as dot and normalize.
 *
 *   KERNEL(name)(long n, GLOBAL float *x) { ... }   parameters: long, float, pointers
 *   KERNEL128(name)       the same, of groups of 128 items, which have more registers
 *   KERNEL128_2(name)     the same, with as many as there are: two groups of 128 on a
 *                         multiprocessor
 *   GLOBAL LOCAL          memory of all groups; of one
 *   IN_LOCAL              before a helper's parameter that points to LOCAL memory
 *   PRIVATE(n, type, x, size)   an array of each item that lives from block to block: MINE(x)[i]
 *   GROUP_X GROUP_Y       the group's number, a long
 *   ALIGNED               before an array in LOCAL memory: at a multiple of 16 bytes
 *   LOAD4(space, p, r), STORE4(space, p, r)   four floats r from or to an address in `space`,
 *                                             GLOBAL or
 *                         IN_LOCAL, that is a multiple of 16
 *   COPY(to, from), COPY4(to, from)   begin to copy a float, or four at multiples of 16 bytes, from
 *                                     GLOBAL
 *                         to LOCAL memory
 *   COPIED()              waits for the item's copies, at the end of the block that began them
 *   FRESH(i)              an int, of which a GPU's compiler forgets where it comes from: what is
 *                         computed from it here is not kept in registers since an earlier place
 *   UNROLL, ROLLED        before a loop of a fixed length that a GPU is to have as straight code;
 *                         that is to stay a loop
 *   FMA(a, b, c)          one rounding; the compiler makes none of its own
 *   DIV(a, b), SQRT(x)    of floats, as IEEE says, as + - * are; a plain / is for doubles and
 *                         integers
 *   BITS(x), FLOAT(u)     of a float as unsigned, and back
 *   BITS64(x), DOUBLE(u)  the same of a double, as uint64_t
 *   HELPER                before a function that kernels call
 */
#ifndef LS_DEVICE_DIALECT_H
#define LS_DEVICE_DIALECT_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Set by who runs a group. */
static _Thread_local long group_x, group_y;
static _Thread_local bool backwards;

#define KERNEL(name)      static void name##_kernel
#define KERNEL128(name)   static void name##_kernel
#define KERNEL128_2(name) static void name##_kernel
#define HELPER            static inline
#define GLOBAL
#define LOCAL
#define IN_LOCAL
#define PRIVATE(n, type, x, size) type x[n][size]
#define MINE(x)                   x[ITEM]
#define ITEM                      item_
#define GROUP_X                   group_x
#define GROUP_Y                   group_y
#define ALIGNED                   _Alignas(16)
#define LOAD4(space, p, r)        (check_four(p), memcpy(r, p, 4 * sizeof(float)))
#define STORE4(space, p, r)       (check_four(p), memcpy(p, r, 4 * sizeof(float)))
#define COPY(to, from)            (*(to) = *(from))
#define COPY4(to, from)           (check_four(to), check_four(from), memcpy(to, from, 4 * sizeof(float)))
#define COPIED()                  ((void)0)
#define UNROLL
#define ROLLED
#define FRESH(i)  ((void)0)
#define FMA       fmaf
#define DIV(a, b) ((a) / (b))
#define SQRT      sqrtf
#define BITS      bits_of_float
#define FLOAT     float_of_bits
#define BITS64    bits_of_double
#define DOUBLE    double_of_bits

#define ITEMS(n)                                                                                   \
    for (int turn_ = 0; turn_ < (n); turn_++)                                                      \
        for (int item_ = backwards ? (n)-1 - turn_ : turn_, once_ = 1; once_; once_ = 0)

/* A GPU loses its context where four floats are elsewhere than at a multiple of 16 bytes. */
static inline void check_four(const float *p) {
    assert((uintptr_t)p % 16 == 0);
    (void)p;
}

static inline uint32_t bits_of_float(float x) {
    uint32_t u = 0;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float float_of_bits(uint32_t u) {
    float x = 0;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t bits_of_double(double x) {
    uint64_t u = 0;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline double double_of_bits(uint64_t u) {
    double x = 0;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
