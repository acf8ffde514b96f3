/* vec_probe.h - calls each function of vec.h alone; vec_probe.c is compiled once for each
 * variant. */
#ifndef LS_TEST_VEC_PROBE_H
#define LS_TEST_VEC_PROBE_H

enum {
    PROBE_EXACT =
        7 * 16, /* max, min, select, over, pow2, the greatest lane: exact bits, also of NaNs */
    PROBE_SUMS = 11 * 16, /* the other functions: any NaN matches any other */
    PROBE_PACKED = 128,   /* transposed, rows of 16 or of 4 */
    PROBE_FLOATS = PROBE_EXACT + PROBE_SUMS + 2 * PROBE_PACKED
};

/* a, b, c [16], rows [64] -> out [PROBE_FLOATS]. */
typedef void vec_probe_fn(const float *a, const float *b, const float *c, const float *rows,
                          float *out);

#endif
