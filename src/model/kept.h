/* kept.h - keys and values of all positions so far, kept for generating token by token.
 *
 * The keys of a head are in strips of 16 positions, [strips][D][16], so that scores of 16 keys are
 * chains in the lanes of a vector, read one strip after the other; then its values [T, D]. Attention
 * over them has the bits of ls_heads_forward() over the whole text.
 */
#ifndef LS_MODEL_KEPT_H
#define LS_MODEL_KEPT_H

#include "tensor/compute.h"

typedef struct ls_kept {
    float *p;            /* [ls_kept_floats()] */
    int64_t T, heads, D; /* the most positions; heads of keys and values, of size D */
} ls_kept;

size_t ls_kept_floats(int64_t T, int64_t heads, int64_t D);

/* Keeps position t's key and value [D] of a head. */
void ls_kept_put(const ls_kept *, int64_t head, int64_t t, const float *key, const float *value);

/* A query at position t, which sees keys first to t. */
typedef struct ls_kept_query {
    int64_t head; /* of the keys and values */
    int64_t first, t;
    const float *q; /* [D] */
    float *room;    /* [t + 1] */
    float *y;       /* [D] */
} ls_kept_query;

void ls_kept_attend(const ls_kept *, const ls_kernels *, const ls_kept_query *);

#endif
