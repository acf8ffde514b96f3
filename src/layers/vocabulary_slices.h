/* vocabulary_slices.h - the end of a language model whose vocabulary is cut into slices: each slice
 * has the logits of some tokens, and only two numbers a row leave it.
 *
 *     x[k] -> part k: logits of its tokens -> log-sum-exp, and the target's logit if it is its own
 *          -> joins: a binary tree (fork.h) -> loss: log-sum-exp - target's logit
 *
 * What the layers between them pass on must not be rounded where activations are in 16 bits: a
 * number is three numbers of 8 bits each that sum to it (ls_exact_put()). So is its gradient, which
 * is the sum of theirs. */
#ifndef LS_LAYERS_VOCABULARY_SLICES_H
#define LS_LAYERS_VOCABULARY_SLICES_H

#include <string.h>

#include "model/builder.h"

enum { LS_EXACT = 3, LS_ROW_SUMS = 2 * LS_EXACT }; /* numbers of a number, and of a row */

/* The upper 16 bits of x: what bf16 can have. */
static inline float ls_exact_upper(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}
static inline void ls_exact_put(float x, float out[LS_EXACT]) {
    for (int i = 0; i < LS_EXACT; i++, x -= out[i - 1]) out[i] = ls_exact_upper(x);
}
static inline float ls_exact_get(const float x[LS_EXACT]) { return x[0] + (x[1] + x[2]); }

typedef struct ls_vocabulary_slices {
    int n;                /* slices */
    int64_t classes;      /* of all */
    ls_value **tied;      /* [n] slices of an embedding, whose weights these use; NULL: none */
    const char *name;     /* "lm_head": that of slice k is "lm_head.slice.k" */
    ls_value *all_labels; /* of a sample, if the rows are a chunk of it; NULL: they are all */
} ls_vocabulary_slices;

/* The loss of ls_linear_cross_entropy(), of n slices: slice k has tokens [classes k / n,
 * classes (k + 1) / n), and reads x[k]. Rows without a label cost as much as the others. */
void ls_layers_vocabulary(ls_model *, ls_value *const *x, ls_value *label,
                          const ls_vocabulary_slices *);

/* The first layer of that loss: the sums of slice k, y [T, LS_ROW_SUMS]. */
ls_value *ls_vocabulary_part(ls_model *, ls_value *x, ls_value *label, const ls_vocabulary_slices *,
                             int k);

#endif
