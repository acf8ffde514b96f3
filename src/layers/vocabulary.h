/* vocabulary.h - the end of a language model: rows times a table of tokens, and cross-entropy.
 *
 * The logits [rows, V] are the largest tensor, and are never in memory as a whole: backward
 * computes a block of rows from the input to its gradient before the next block (as in Hsu et al.,
 * "Liger Kernel", arXiv 2410.10989). Sums over rows continue from block to block, which end where
 * ls_rows_block_end() says, so the size of a block does not affect the bits.
 *
 * Shapes: a block of rows; C width, V tokens.
 */
#ifndef LS_LAYERS_VOCABULARY_H
#define LS_LAYERS_VOCABULARY_H

#include "model/layer.h"
#include "tensor/gemm.h"

/* The targets of a block of rows, for a device: row r is row n = first + r of the call or, with a
 * list, n = list[r]: position n % T of sample n / T. */
typedef struct ls_vocabulary_targets {
    const void *p; /* i32 [T] those of sample 0; NULL: no device is used */
    int64_t row;   /* between samples */
    int64_t T, first;
    int64_t token;       /* the first one of the table, of a slice */
    const int32_t *list; /* [rows] or NULL */
    const float *scales; /* [n][2] the factors of the gradients of a sample's rows, or NULL: the
                          * call's loss_scale */
    const int32_t
        *begins; /* `row` apart: the second factor is that of rows from this one on; NULL: of
                  * none */
} ls_vocabulary_targets;

typedef struct ls_vocabulary {
    const ls_layer *l;
    const ls_layer_call *c;
    int table;           /* the layer's parameter [V, C] */
    bool start;          /* the table's gradient begins with this block */
    bool end;            /* and is complete with it, as far as the call computes it */
    int64_t rows;        /* of the block */
    ls_gemm_units units; /* where sums over its rows begin a block */
    const float *h;      /* [rows, C] */
    float *dh;           /* [rows, C]; NULL: it is not wanted */
    float *stat;         /* [rows, 2] */
    float *logits;       /* [rows, V] the gradient replaces them, in bf16 for products in bf16 */
    double *losses;      /* [rows] nats */
    /* For a slice of a vocabulary: [rows, 2] the gradient of a row's log-sum-exp, and of its
     * target's logit; a target below 0 is another slice's. NULL: the gradients are those of a
     * cross-entropy. A second call finds the gradient where the first one has left it. On a device:
     * [rows, LS_ROW_SUMS], as vocabulary_slices.h has them, and what the slice knows of each row,
     * which takes the place of its loss. */
    const float *gradient;
    float *sums;
    ls_vocabulary_targets targets;
    /* The token that row r is to predict, and the factor of its gradient; on a device `targets`
     * says both. */
    int64_t (*target)(const void *arg, int64_t r);
    float (*scale)(const void *arg, int64_t r);
    const void *arg;
} ls_vocabulary;

/* logits = h . table^T */
void ls_vocabulary_logits(const ls_vocabulary *);
/* losses and stat, from the logits */
void ls_vocabulary_losses(const ls_vocabulary *);
/* The gradient of the logits, in their place; then dh, and the table's gradient, unless it is
 * frozen. */
void ls_vocabulary_back(const ls_vocabulary *);

/* Rows of a block, for `block_rows` of a layer; and what it declares for its table beside its
 * own. */
void ls_vocabulary_declare(ls_layer *, int64_t C, int64_t V);
/* The work of logits, losses and gradients, for T rows of a sample. */
void ls_vocabulary_works(ls_layer *, int table, int64_t T);

#endif
