/* facts.h - what a layer computes, for code that writes a model in another format (onnx/).
 *
 * A layer's kind, shapes and parameters are in ls_layer. Facts that only the layer's own file knows
 * are in `own`; the layer's operation `describe` gives them in this form. A layer without
 * `describe` has no such facts.
 */
#ifndef LS_MODEL_FACTS_H
#define LS_MODEL_FACTS_H

#include "tensor/conv.h"
#include "tensor/dtype.h"
#include "tensor/pooling.h"

enum { LS_FACTS_PARTS = 8 };

/* Only the members of the layer's kind are set. */
typedef struct ls_facts {
    bool
        is_gpt; /* GPT's own layer of this kind (layers/gpt.h): with its norm, and the sum behind */
    const char *user_kind; /* of a layer of a program: the name of its kind */

    /* input, affine, normalize: y = scale x + shift; standardize: y = (x - shift) scale */
    ls_dtype type; /* of the field, if it reads one itself */
    bool is_field;
    const float *scale, *shift; /* [nscales] of all numbers, or by channel */
    int64_t nscales;

    /* norms, and what is done in the same pass */
    float eps;
    bool plus_one; /* RMS norm: the weight is 1 + the parameter */
    int64_t groups;
    bool relu;

    /* linear: numbers of parameters; 0: there is none */
    bool out_in; /* the weight is [out, in] */
    int bias;

    /* images */
    const ls_conv *conv;
    const ls_pooling *pooling;

    /* slice, mean, concat: x as [outer, size, inner], and the range of the slice; concat: y is
     * [outer, width], and has `widths` numbers of each input. patches: of `size` x `size`
     * pixels. */
    int64_t outer, size, inner, first, count;
    const int64_t *widths;

    /* embedding */
    bool sums, mean, positions;
    int64_t nids;

    /* attention: queries have Q columns, keys and values K each. Fields of the layer, by number;
     * -1: none. rope: the field of positions. */
    int64_t T, S, heads, kv_heads, window, Q, K;
    bool causal;
    int mask, places;

    /* rope: for each place of T the cosines, then the sines, of D / 2 angles, of heads of `head` */
    const float *turns;
    int64_t D, head;

    /* a mixture of experts: those of each row */
    int64_t experts, per_row;
    bool normalized; /* weights are the softmax over the chosen ones alone */
} ls_facts;

#endif
