/* heads.h - attention by heads: y = softmax(q k^T / sqrt(D)) v, for each sample and head.
 *
 * Shapes: n samples, T queries, S keys, heads of size D; C = heads * D. With fewer heads of keys
 * and values (kv_heads), heads / kv_heads heads of queries one after the other share one of them
 * (Ainslie et al., "GQA", EMNLP 2023); its gradient is a chain over their queries, head by head.
 *
 * The T x S scores are never in memory as a whole: queries are computed in blocks, and backward
 * recomputes the probabilities from the scores and each row's maximum and sum. Dao, Fu, Ermon,
 * Rudra & Re, "FlashAttention", NeurIPS 2022, section 3.1, with blocks over queries only. Blocks
 * have a fixed size and begin at position 0, so the bits depend neither on T nor on threads.
 *
 * Where the compute has a device, the work is queued there (heads_device.h).
 */
#ifndef LS_LAYERS_HEADS_H
#define LS_LAYERS_HEADS_H

#include "layers/dropout.h"
#include "tensor/gemm.h"

typedef struct ls_heads {
    const ls_compute *compute;
    int64_t n, T, S, heads, kv_heads, D;
    bool bf16;                 /* products are in bf16 */
    bool causal;               /* query t sees keys up to t; S is T */
    int64_t window;            /* causal: query t sees at most this many keys; 0: all up to t */
    bool stored;               /* q, k, v and y are in bf16, else in f32 */
    const void *q, *k, *v;     /* [n, T, C], [n, S, kv_heads D], [n, S, kv_heads D] */
    int64_t q_row, kv_row;     /* numbers between rows of q; of k and v */
    const unsigned char *mask; /* [n][S], 0: no query sees the key; NULL: all keys count */
    size_t mask_nbytes;        /* between samples */
    const char *positions;   /* causal: i32 [n][T], the place of a position in its document: a query
                              * sees keys of its document alone; NULL: a sample is one document */
    size_t positions_nbytes; /* between samples */
    /* Dropout of the probabilities; NULL: none. The first head of queries has number drop->first
     * in the whole model, in whose mask row t of head h begins at (h T + t) S, S in multiples of
     * 64. */
    const ls_dropout_mask *drop;
    const ls_layer_call *call; /* with `drop`, or that continues texts (continued.h) */
    float *stat;               /* [n, heads, T, 2] from forward to backward */
    void *y;                   /* [n, T, C]; 0 for a query that sees no key */
    ls_matrix dy;              /* [n T, C] */
    float *dq, *dk, *dv;       /* rows as far apart as those of q, k, v */
} ls_heads;

void ls_heads_forward(const ls_heads *);
/* Computes dq, dk, dv from q, k, v, stat and dy. */
void ls_heads_backward(const ls_heads *);

/* Scratch memory of each thread. */
size_t ls_heads_scratch_floats(int64_t S, int64_t D);

/* Adds the passes' work for n = 1: T, S, heads, kv_heads, D, causal and drop count. */
void ls_heads_works(const ls_heads *, ls_works *forward, ls_works *backward);

#endif
