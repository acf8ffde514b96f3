/* kinds.h - the kinds of layers that ONNX can express, each as some nodes. */
#ifndef LS_ONNX_KINDS_H
#define LS_ONNX_KINDS_H

#include "onnx/writer.h"

typedef void ls_onnx_write_fn(ls_onnx_writer *, const ls_layer *, const ls_facts *);

typedef struct ls_onnx_kind {
    const char *name; /* of ls_layer_ops */
    ls_onnx_write_fn *write;
    bool is_gpt;  /* GPT's own layer of this kind */
    bool by_rows; /* the number of its rows may be free */
} ls_onnx_kind;

/* NULL: ONNX has no form of it. */
const ls_onnx_kind *ls_onnx_kind_of(const ls_layer *);

/* elements.c */
ls_onnx_write_fn ls_onnx_write_input, ls_onnx_write_affine, ls_onnx_write_normalize,
    ls_onnx_write_standardize, ls_onnx_write_gelu, ls_onnx_write_relu, ls_onnx_write_sigmoid,
    ls_onnx_write_tanh, ls_onnx_write_silu, ls_onnx_write_softmax, ls_onnx_write_dropout,
    ls_onnx_write_add, ls_onnx_write_add_relu, ls_onnx_write_multiply, ls_onnx_write_silu_gate,
    ls_onnx_write_gelu_gate, ls_onnx_write_scale, ls_onnx_write_learned, ls_onnx_write_positions;
/* shapes.c */
ls_onnx_write_fn ls_onnx_write_slice, ls_onnx_write_mean, ls_onnx_write_concat,
    ls_onnx_write_patches, ls_onnx_write_dot, ls_onnx_write_interaction;
/* images.c */
ls_onnx_write_fn ls_onnx_write_conv2d, ls_onnx_write_conv2d_transposed, ls_onnx_write_max_pool,
    ls_onnx_write_average_pool, ls_onnx_write_mean_pool, ls_onnx_write_group_norm,
    ls_onnx_write_batch_norm;
/* rows.c */
ls_onnx_write_fn ls_onnx_write_linear, ls_onnx_write_layer_norm, ls_onnx_write_rms_norm,
    ls_onnx_write_embedding, ls_onnx_write_logits;
/* attention.c, experts.c */
ls_onnx_write_fn ls_onnx_write_attention, ls_onnx_write_rope, ls_onnx_write_router,
    ls_onnx_write_router_bias, ls_onnx_write_experts;
/* gpt.c */
ls_onnx_write_fn ls_onnx_write_gpt_embedding, ls_onnx_write_gpt_attention, ls_onnx_write_gpt_mlp,
    ls_onnx_write_gpt_head;

/* ---- what several kinds have in common: of a tensor [N, .., C] ---- */

const char *ls_onnx_gelu(ls_onnx_writer *, const char *x);
const char *ls_onnx_silu(ls_onnx_writer *, const char *x);
/* x . weight [C, out], or that of weight [out, C], plus the bias, if it is not NULL. */
const char *ls_onnx_linear(ls_onnx_writer *, const char *x, const char *weight, bool out_in,
                           const char *bias);
const char *ls_onnx_layer_norm(ls_onnx_writer *, const char *x, const char *weight,
                               const char *bias);

/* Attention by heads, of q [N, T, Q] and k and v [N, S, K]: [N, T, Q]. */
typedef struct ls_onnx_heads {
    int64_t heads, kv_heads, D, T, window;
    bool causal;
    const char *q, *k, *v;
    const char *mask, *places; /* fields [N, S] and [N, T]; NULL: none */
} ls_onnx_heads;
const char *ls_onnx_attend(ls_onnx_writer *, const ls_onnx_heads *);

#endif
