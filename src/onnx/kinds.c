/* kinds.c - see kinds.h. */
#include "onnx/kinds.h"

#include <string.h>

static const ls_onnx_kind kinds[] = {
    {.name = "add", .write = ls_onnx_write_add, .by_rows = true},
    {.name = "add_relu", .write = ls_onnx_write_add_relu, .by_rows = true},
    {.name = "affine", .write = ls_onnx_write_affine, .by_rows = true},
    {.name = "attention", .write = ls_onnx_write_attention, .by_rows = true},
    {.name = "attention", .write = ls_onnx_write_gpt_attention, .is_gpt = true, .by_rows = true},
    {.name = "average_pool", .write = ls_onnx_write_average_pool},
    {.name = "batch_norm", .write = ls_onnx_write_batch_norm},
    {.name = "concat", .write = ls_onnx_write_concat},
    {.name = "conv2d", .write = ls_onnx_write_conv2d},
    {.name = "conv2d_transposed", .write = ls_onnx_write_conv2d_transposed},
    {.name = "dot", .write = ls_onnx_write_dot},
    {.name = "dropout", .write = ls_onnx_write_dropout, .by_rows = true},
    {.name = "embedding", .write = ls_onnx_write_embedding, .by_rows = true},
    {.name = "embedding", .write = ls_onnx_write_gpt_embedding, .is_gpt = true, .by_rows = true},
    {.name = "experts", .write = ls_onnx_write_experts, .by_rows = true},
    {.name = "gelu", .write = ls_onnx_write_gelu, .by_rows = true},
    {.name = "gelu_gate", .write = ls_onnx_write_gelu_gate, .by_rows = true},
    {.name = "group_norm", .write = ls_onnx_write_group_norm},
    {.name = "head", .write = ls_onnx_write_gpt_head, .is_gpt = true, .by_rows = true},
    {.name = "input", .write = ls_onnx_write_input},
    {.name = "interaction", .write = ls_onnx_write_interaction},
    {.name = "layer_norm", .write = ls_onnx_write_layer_norm, .by_rows = true},
    {.name = "learned", .write = ls_onnx_write_learned},
    {.name = "linear", .write = ls_onnx_write_linear, .by_rows = true},
    {.name = "linear_cross_entropy", .write = ls_onnx_write_logits, .by_rows = true},
    {.name = "max_pool", .write = ls_onnx_write_max_pool},
    {.name = "mean", .write = ls_onnx_write_mean},
    {.name = "mean_pool", .write = ls_onnx_write_mean_pool},
    {.name = "mlp", .write = ls_onnx_write_gpt_mlp, .is_gpt = true, .by_rows = true},
    {.name = "multiply", .write = ls_onnx_write_multiply, .by_rows = true},
    {.name = "normalize", .write = ls_onnx_write_normalize},
    {.name = "patches", .write = ls_onnx_write_patches},
    {.name = "positions", .write = ls_onnx_write_positions},
    {.name = "relu", .write = ls_onnx_write_relu, .by_rows = true},
    {.name = "rms_norm", .write = ls_onnx_write_rms_norm, .by_rows = true},
    {.name = "rope", .write = ls_onnx_write_rope, .by_rows = true},
    {.name = "router", .write = ls_onnx_write_router, .by_rows = true},
    {.name = "router_bias", .write = ls_onnx_write_router_bias, .by_rows = true},
    {.name = "scale", .write = ls_onnx_write_scale, .by_rows = true},
    {.name = "sigmoid", .write = ls_onnx_write_sigmoid, .by_rows = true},
    {.name = "silu", .write = ls_onnx_write_silu, .by_rows = true},
    {.name = "silu_gate", .write = ls_onnx_write_silu_gate, .by_rows = true},
    {.name = "slice", .write = ls_onnx_write_slice},
    {.name = "softmax", .write = ls_onnx_write_softmax, .by_rows = true},
    {.name = "standardize", .write = ls_onnx_write_standardize},
    {.name = "tanh", .write = ls_onnx_write_tanh, .by_rows = true},
};

const ls_onnx_kind *ls_onnx_kind_of(const ls_layer *l) {
    bool is_gpt = ls_layer_facts(l).is_gpt;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, l->ops->kind) == 0 && kinds[i].is_gpt == is_gpt) return &kinds[i];
    return NULL;
}
