/* kept.h - keys and values of all positions so far, kept for generating token by token.
 *
 * They are in pages of LS_KEPT_PAGE positions (tensor/kernels.h), so memory is used only as the
 * text grows: a page has for each head its keys, transposed, so that scores of 16 keys are chains
 * in the lanes of a vector; then its values. Attention over them has the bits of ls_heads_forward()
 * over the whole text. For products in bf16 they are kept rounded, in f32.
 *
 * In fewer bits (ls_kept_type) they take less memory, and results differ; each vector is rounded by
 * itself, so results do not depend on how a text was cut into calls. Products are then in f32.
 */
#ifndef LS_LAYERS_KEPT_H
#define LS_LAYERS_KEPT_H

#include "tensor/gemm.h"

typedef struct ls_kept {
    float *p;         /* [ls_kept_floats()] */
    int64_t heads, D; /* of keys and values: their number, and the size of one */
    bool bf16;   /* keys, values and queries are rounded to bf16; products of F32 are in bf16 */
    size_t page; /* floats from one page to the next */
    ls_kept_type type;
} ls_kept;

size_t ls_kept_floats(int64_t T, int64_t heads, int64_t D); /* in F32 */
/* The factors of 8 bits among those of a page. */
static inline size_t ls_kept_factors(int64_t heads, int64_t D) {
    return (size_t)(heads * 2 * LS_KEPT_PAGE * ls_kept_blocks(D));
}
/* Of pages that follow each other. */
static inline size_t ls_kept_page(int64_t heads, int64_t D) {
    return ls_kept_floats(LS_KEPT_PAGE, heads, D);
}

/* Position t's key and value [D] of a head. */
typedef struct ls_kept_position {
    int64_t head, t;
    ls_matrix key, value; /* a row */
} ls_kept_position;

void ls_kept_put(const ls_kept *, const ls_kernels *, const ls_kept_position *);

/* The queries of position t, which see keys first to t. As many heads of queries, one after the
 * other, share each head of keys and values. */
typedef struct ls_kept_query {
    int64_t heads; /* of queries */
    int64_t first, t;
    const float *q; /* [heads, D] */
    float *room;    /* [ls_kept_room(heads, t + 1, D)] */
    float *y;       /* [heads, D] */
} ls_kept_query;

size_t ls_kept_room(int64_t heads, int64_t T, int64_t D);

/* For one of the heads of keys and values, in one thread: the query's q, room and y are those of
 * the heads that share it. */
void ls_kept_attend_head(const ls_kept *, const ls_kernels *, int64_t head, const ls_kept_query *);

/* Uses all threads of the worker. Must not be called inside ls_pool_run(). */
void ls_kept_attend(const ls_kept *, const ls_compute *, const ls_kept_query *);

#endif
