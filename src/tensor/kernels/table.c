/* table.c - the variant's table of kernels. */
#include "tensor/kernels/variant.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

extern const ls_kernels LS_K(ls_kernels);

const ls_kernels LS_K(ls_kernels) = {
    .name = TEXT(LS_VARIANT),
    .tile_m = LS_TILE_ROWS,
    .tile_n = LS_TILE_REGS * LS_VR,
    .gemm_tile = LS_K(gemm_tile),
    .pack_a = LS_K(pack_a),
    .pack_b = LS_K(pack_b),
    .gemv = LS_K(gemv),
    .gemv_table = LS_K(gemv_table),
    .layernorm = LS_K(layernorm),
    .layernorm_dx = LS_K(layernorm_dx),
    .layernorm_dparams = LS_K(layernorm_dparams),
    .column_sum = LS_K(column_sum),
    .gelu = LS_K(gelu),
    .gelu_back = LS_K(gelu_back),
    .activation = {[LS_RELU] = LS_K(relu),
                   [LS_SIGMOID] = LS_K(sigmoid),
                   [LS_TANH] = LS_K(tanh),
                   [LS_SILU] = LS_K(silu)},
    .activation_dx = {[LS_RELU] = LS_K(relu_dx),
                      [LS_SIGMOID] = LS_K(sigmoid_dx),
                      [LS_TANH] = LS_K(tanh_dx),
                      [LS_SILU] = LS_K(silu_dx)},
    .softmax_causal = LS_K(softmax_causal),
    .softmax_causal_again = LS_K(softmax_causal_again),
    .softmax_causal_dx = LS_K(softmax_causal_dx),
    .cross_entropy = LS_K(cross_entropy),
    .cross_entropy_dx = LS_K(cross_entropy_dx),
    .add = LS_K(add),
    .multiply = LS_K(multiply),
    .affine = LS_K(affine),
    .bytes_affine = LS_K(bytes_affine),
    .dropout = LS_K(dropout),
    .sum_squares = LS_K(sum_squares),
    .update = {[LS_RULE_ADAMW] = LS_K(adamw),
               [LS_RULE_ADAM] = LS_K(adam),
               [LS_RULE_SGD] = LS_K(sgd),
               [LS_RULE_MOMENTUM] = LS_K(momentum),
               [LS_RULE_LION] = LS_K(lion)},
    .fma_peak = LS_K(fma_peak),
    .combine = LS_K(combine),
    .combine_both = LS_K(combine_both),
    .average = LS_K(average),
    .widen = LS_K(widen),
    .narrow = LS_K(narrow),
};
