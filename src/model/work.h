/* work.h - the work of a layer's passes, for prices (perf/price.h): matrix products, and passes
 * over memory. */
#ifndef LS_MODEL_WORK_H
#define LS_MODEL_WORK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ls_work_kind {
    /* [M, K] . [K, N] */
    LS_WORK_PRODUCT,
    LS_WORK_PRODUCT_DX, /* the second operand is transposed: gradient of the input */
    LS_WORK_PRODUCT_DW, /* the first operand is transposed, and the product is added: gradient of a
                         * weight */
    /* These products in bf16 (tensor/gemm.h). Layers declare those above; ls_work_in_bf16() turns
     * them into these. */
    LS_WORK_PRODUCT_BF16,
    LS_WORK_PRODUCT_DX_BF16,
    LS_WORK_PRODUCT_DW_BF16,
    LS_NPRODUCTS,
    /* Passes over memory: kernels of tensor/kernels.h. */
    LS_WORK_NORM = LS_NPRODUCTS,
    LS_WORK_NORM_DX,
    LS_WORK_NORM_DPARAMS,
    LS_WORK_COLUMN_SUM,
    LS_WORK_GELU,
    LS_WORK_GELU_BACK,
    LS_WORK_SOFTMAX, /* counts the elements that are not masked */
    LS_WORK_SOFTMAX_AGAIN,
    LS_WORK_SOFTMAX_DX,
    LS_WORK_LOSS,
    LS_WORK_LOSS_DX,
    LS_WORK_ADD,
    LS_WORK_WIDEN,  /* from 16 bits to f32 */
    LS_WORK_NARROW, /* from f32 to 16 bits */
    /* Work of the step, not of a layer: */
    LS_WORK_SQUARES,
    LS_WORK_UPDATE, /* of AdamW */
    LS_WORK_PAGES,  /* elements whose pages are given back to the system and faulted in again */
    LS_NWORK_KINDS
} ls_work_kind;

enum { LS_LAYER_MAX_WORKS = 16 };

typedef struct ls_work {
    ls_work_kind kind;
    int64_t M, N, K; /* of a product; 0: the number of rows of the call */
    double times;    /* per sample; 0: once, for all samples of the call together */
    double elements; /* of a pass over memory, each time; if times is 0: per sample */
    bool in_f32;     /* a product that is in f32 also with train.compute bf16 */
} ls_work;

/* The kind of a product if it is in bf16. */
static inline ls_work_kind ls_work_in_bf16(ls_work_kind k) {
    return k < LS_WORK_PRODUCT_BF16 ? (ls_work_kind)(k + LS_WORK_PRODUCT_BF16) : k;
}

typedef struct ls_works {
    ls_work list[LS_LAYER_MAX_WORKS];
    /* Bit i: the work computes the gradient of the layer's parameter i. It is left out if all of
     * these are frozen. */
    unsigned grads[LS_LAYER_MAX_WORKS];
    int n;
} ls_works;

/* The latest work computes the gradients of these parameters. */
static inline void ls_works_grads(ls_works *w, unsigned params) { w->grads[w->n - 1] = params; }

static inline void ls_works_product(ls_works *w, ls_work_kind kind, int64_t M, int64_t N,
                                    int64_t K) {
    w->list[w->n++] = (ls_work){.kind = kind, .M = M, .N = N, .K = K};
}

static inline void ls_works_pass(ls_works *w, ls_work_kind kind, int64_t elements) {
    w->list[w->n++] = (ls_work){.kind = kind, .elements = (double)elements};
}

/* Adds a product with weights [in, out], the layer's parameter number w: its forward, and its
 * backward with the bias, the next parameter. */
static inline void ls_works_linear(ls_works *forward, ls_works *backward, int w, int64_t T,
                                   int64_t in, int64_t out) {
    ls_works_product(forward, LS_WORK_PRODUCT, 0, out, in);
    ls_works_product(backward, LS_WORK_PRODUCT_DX, 0, in, out);
    ls_works_product(backward, LS_WORK_PRODUCT_DW, in, out, 0);
    ls_works_grads(backward, 1u << w);
    ls_works_pass(backward, LS_WORK_COLUMN_SUM, T * out);
    ls_works_grads(backward, 2u << w);
}

/* Adds the layer norm with which a layer begins, with its first two parameters. */
static inline void ls_works_norm(ls_works *forward, ls_works *backward, int64_t T, int64_t C) {
    ls_works_pass(forward, LS_WORK_NORM, T * C);
    ls_works_pass(backward, LS_WORK_NORM_DPARAMS, T * C);
    ls_works_grads(backward, 3);
    ls_works_pass(backward, LS_WORK_NORM_DX, T * C);
}

/* Numbers that a layer's own functions convert, of operands in bf16 that they take as they are
 * stored: some at a time, from cache to cache. */
typedef struct ls_conversion {
    unsigned operand; /* counts only if this is taken as stored (LS_OPERAND_X ..., layer.h) */
    bool rounds;      /* f32 to bf16; false: bf16 to f32 */
    bool for_dx;      /* only if gradients of inputs are wanted */
    bool adds;        /* only if the gradient of the first input is added to one that is begun */
    unsigned grads;   /* only if one of these parameters is trained (bit i: number i); 0: always */
    int64_t numbers;  /* per sample */
} ls_conversion;

enum { LS_LAYER_MAX_CONVERSIONS = 8 };

typedef struct ls_conversions {
    ls_conversion list[LS_LAYER_MAX_CONVERSIONS];
    int n;
} ls_conversions;

static inline void ls_conversions_add(ls_conversions *c, ls_conversion x) { c->list[c->n++] = x; }

#endif
