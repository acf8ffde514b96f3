/* run_c.c - the kernels as C: a group's items one after the other (dialect.h). */
#include "device/run_c.h"

#include "device/dialect.h"

#include "device/kernels/math.k"
#include "device/kernels/sigmoid.k"

#include "device/kernels/activations.k"
#include "device/kernels/adam_ratio.k"
#include "device/kernels/product.k"
#include "device/kernels/random.k"

#include "device/kernels/blocks.k"
#include "device/kernels/rows.k"

#include "device/kernels/conv_windows.k"
#include "device/kernels/exact.k"
#include "device/kernels/experts.k"
#include "device/kernels/fields.k"
#include "device/kernels/halves.k"
#include "device/kernels/heads.k"
#include "device/kernels/label_place.k"
#include "device/kernels/packed.k"
#include "device/kernels/pooling.k"
#include "device/kernels/softmax_rows.k"

#include "device/kernels/activation.k"
#include "device/kernels/activation_dx.k"
#include "device/kernels/adagrad.k"
#include "device/kernels/adam.k"
#include "device/kernels/adamw.k"
#include "device/kernels/add.k"
#include "device/kernels/add_relu.k"
#include "device/kernels/add_relu_dx.k"
#include "device/kernels/affine.k"
#include "device/kernels/average_pooling.k"
#include "device/kernels/average_pooling_dx.k"
#include "device/kernels/batch_norm_dx.k"
#include "device/kernels/binary_cross_entropy.k"
#include "device/kernels/binary_cross_entropy_dx.k"
#include "device/kernels/bpr.k"
#include "device/kernels/column_sum.k"
#include "device/kernels/columns_multiply.k"
#include "device/kernels/conv.k"
#include "device/kernels/conv_dw.k"
#include "device/kernels/conv_dx.k"
#include "device/kernels/copy.k"
#include "device/kernels/copy_rows.k"
#include "device/kernels/cross_entropy.k"
#include "device/kernels/cross_entropy_dx.k"
#include "device/kernels/cross_entropy_part_dx.k"
#include "device/kernels/dot_rows.k"
#include "device/kernels/dot_rows_da.k"
#include "device/kernels/dot_rows_db.k"
#include "device/kernels/dpo_losses.k"
#include "device/kernels/dpo_sums.k"
#include "device/kernels/dropout.k"
#include "device/kernels/ema.k"
#include "device/kernels/embedding.k"
#include "device/kernels/embedding_dwpe.k"
#include "device/kernels/embedding_dwte.k"
#include "device/kernels/expert_activate.k"
#include "device/kernels/expert_activate_dx.k"
#include "device/kernels/expert_gather.k"
#include "device/kernels/expert_gemm.k"
#include "device/kernels/expert_gemm_blocks.k"
#include "device/kernels/expert_gemm_dw.k"
#include "device/kernels/expert_gemm_dw_blocks.k"
#include "device/kernels/expert_gemm_rows.k"
#include "device/kernels/expert_gemm_rows_blocks.k"
#include "device/kernels/expert_gemm_some.k"
#include "device/kernels/expert_gemm_some_blocks.k"
#include "device/kernels/expert_scatter.k"
#include "device/kernels/gelu.k"
#include "device/kernels/gelu_back.k"
#include "device/kernels/gelu_gate.k"
#include "device/kernels/gelu_gate_dx.k"
#include "device/kernels/gemm.k"
#include "device/kernels/gemm_blocks.k"
#include "device/kernels/gemm_rows.k"
#include "device/kernels/gemm_rows_blocks.k"
#include "device/kernels/gemm_small.k"
#include "device/kernels/gemm_some.k"
#include "device/kernels/gemm_some_blocks.k"
#include "device/kernels/gradient_add.k"
#include "device/kernels/group_norm_dx.k"
#include "device/kernels/heads_dkv.k"
#include "device/kernels/heads_dkv_blocks.k"
#include "device/kernels/heads_dot.k"
#include "device/kernels/heads_dot_blocks.k"
#include "device/kernels/heads_dq.k"
#include "device/kernels/heads_dq_blocks.k"
#include "device/kernels/heads_few.k"
#include "device/kernels/heads_few_blocks.k"
#include "device/kernels/heads_few_packed.k"
#include "device/kernels/heads_forward.k"
#include "device/kernels/heads_forward_blocks.k"
#include "device/kernels/heads_keep.k"
#include "device/kernels/heads_keep_packed.k"
#include "device/kernels/heads_pages.k"
#include "device/kernels/heads_pages_blocks.k"
#include "device/kernels/heads_pages_packed.k"
#include "device/kernels/input.k"
#include "device/kernels/interaction.k"
#include "device/kernels/interaction_dx.k"
#include "device/kernels/label_counts.k"
#include "device/kernels/label_losses.k"
#include "device/kernels/label_rows.k"
#include "device/kernels/layernorm.k"
#include "device/kernels/layernorm_dparams.k"
#include "device/kernels/layernorm_dx.k"
#include "device/kernels/lion.k"
#include "device/kernels/lora_norms.k"
#include "device/kernels/loss_samples.k"
#include "device/kernels/loss_weights.k"
#include "device/kernels/max_pooling.k"
#include "device/kernels/max_pooling_dx.k"
#include "device/kernels/mean.k"
#include "device/kernels/mean_dx.k"
#include "device/kernels/mean_pooling.k"
#include "device/kernels/mean_pooling_dx.k"
#include "device/kernels/momentum.k"
#include "device/kernels/multiply.k"
#include "device/kernels/narrow.k"
#include "device/kernels/norm_apply.k"
#include "device/kernels/norm_join.k"
#include "device/kernels/norm_sums.k"
#include "device/kernels/norm_sums_back.k"
#include "device/kernels/normalize_channel.k"
#include "device/kernels/normalize_channel_dx.k"
#include "device/kernels/patches.k"
#include "device/kernels/rms_norm.k"
#include "device/kernels/rms_norm_dparams.k"
#include "device/kernels/rms_norm_dx.k"
#include "device/kernels/rope.k"
#include "device/kernels/round_to.k"
#include "device/kernels/router_balance.k"
#include "device/kernels/router_chosen.k"
#include "device/kernels/router_loads.k"
#include "device/kernels/router_loss.k"
#include "device/kernels/router_sums.k"
#include "device/kernels/router_sums_dx.k"
#include "device/kernels/routing.k"
#include "device/kernels/routing_back.k"
#include "device/kernels/routing_drop.k"
#include "device/kernels/routing_places.k"
#include "device/kernels/rows_gather.k"
#include "device/kernels/rows_scatter.k"
#include "device/kernels/running.k"
#include "device/kernels/schedule_free.k"
#include "device/kernels/sgd.k"
#include "device/kernels/silu_gate.k"
#include "device/kernels/silu_gate_dx.k"
#include "device/kernels/smoothed_cross_entropy.k"
#include "device/kernels/smoothed_cross_entropy_dx.k"
#include "device/kernels/softmax.k"
#include "device/kernels/squared_error.k"
#include "device/kernels/squared_error_dx.k"
#include "device/kernels/squares.k"
#include "device/kernels/standardize.k"
#include "device/kernels/sum_losses.k"
#include "device/kernels/vocabulary_join.k"
#include "device/kernels/vocabulary_join_dx.k"
#include "device/kernels/vocabulary_loss.k"
#include "device/kernels/widen.k"

typedef ls_device_arg arg;

static void call_add(const arg *a) { add_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_column_sum(const arg *a) {
    column_sum_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].l, a[5].p);
}
static void call_copy(const arg *a) { copy_kernel(a[0].l, a[1].p, a[2].p); }
static void call_gelu(const arg *a) { gelu_kernel(a[0].l, a[1].p, a[2].p); }
static void call_gelu_back(const arg *a) { gelu_back_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_layernorm(const arg *a) {
    layernorm_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].p, a[7].p);
}
static void call_layernorm_dparams(const arg *a) {
    layernorm_dparams_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].l, a[7].p,
                             a[8].p);
}
static void call_layernorm_dx(const arg *a) {
    layernorm_dx_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].p, a[7].p, a[8].p);
}
static void call_gemm(const arg *a) {
    gemm_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l, a[9].p,
                a[10].l, a[11].l, a[12].p, a[13].l);
}
static void call_gemm_small(const arg *a) {
    gemm_small_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l,
                      a[9].p, a[10].l, a[11].l, a[12].p, a[13].l);
}
static void call_cross_entropy(const arg *a) {
    cross_entropy_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p, a[7].p, a[8].p,
                         a[9].l, a[10].p);
}
static void call_cross_entropy_dx(const arg *a) {
    cross_entropy_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p, a[7].p, a[8].f,
                            a[9].p, a[10].p);
}
static void call_cross_entropy_part_dx(const arg *a) {
    cross_entropy_part_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p, a[7].p);
}
static void call_embedding(const arg *a) {
    embedding_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p, a[7].p, a[8].p,
                     a[9].p);
}
static void call_embedding_dwpe(const arg *a) {
    embedding_dwpe_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].p);
}
static void call_embedding_dwte(const arg *a) {
    embedding_dwte_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].l, a[7].p, a[8].p);
}
static void call_heads_dkv(const arg *a) {
    heads_dkv_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p, a[9].l,
                     a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l, a[17].p,
                     a[18].p, a[19].l, a[20].p, a[21].p, a[22].p, a[23].l, a[24].l, a[25].l,
                     a[26].l, a[27].l, a[28].f);
}
static void call_heads_dot(const arg *a) {
    heads_dot_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p, a[9].l,
                     a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l, a[17].p,
                     a[18].p, a[19].l, a[20].p, a[21].l, a[22].l, a[23].l, a[24].l, a[25].l,
                     a[26].f);
}
static void call_heads_dq(const arg *a) {
    heads_dq_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p, a[9].l,
                    a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l, a[17].p, a[18].p,
                    a[19].l, a[20].p, a[21].l, a[22].l, a[23].l, a[24].l, a[25].l, a[26].f);
}
static void call_heads_forward(const arg *a) {
    heads_forward_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p,
                         a[9].l, a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l,
                         a[17].p, a[18].p, a[19].l, a[20].l, a[21].l, a[22].l, a[23].l, a[24].f);
}
static void call_heads_keep(const arg *a) {
    heads_keep_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].l, a[5].l, a[6].p, a[7].p, a[8].l);
}
static void call_heads_keep_packed(const arg *a) {
    heads_keep_packed_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].l, a[5].l, a[6].p, a[7].p, a[8].l,
                             a[9].l, a[10].l);
}
#define CALL_OF_PAGES(name)                                                                        \
    static void call_##name(const arg *a) {                                                        \
        name##_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].f, a[6].p, a[7].l, a[8].p,      \
                      a[9].l, a[10].l, a[11].p, a[12].p, a[13].p);                                 \
    }
CALL_OF_PAGES(heads_few)
CALL_OF_PAGES(heads_few_blocks)
CALL_OF_PAGES(heads_pages)
CALL_OF_PAGES(heads_pages_blocks)
#define CALL_OF_PACKED(name)                                                                       \
    static void call_##name(const arg *a) {                                                        \
        name##_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].f, a[6].p, a[7].l, a[8].p,      \
                      a[9].l, a[10].l, a[11].p, a[12].p, a[13].p, a[14].l, a[15].l);               \
    }
CALL_OF_PACKED(heads_few_packed)
CALL_OF_PACKED(heads_pages_packed)
static void call_multiply(const arg *a) { multiply_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_rms_norm(const arg *a) {
    rms_norm_kernel(a[0].l, a[1].l, a[2].f, a[3].p, a[4].p, a[5].l, a[6].p, a[7].p);
}
static void call_rms_norm_dparams(const arg *a) {
    rms_norm_dparams_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].l, a[6].p);
}
static void call_rms_norm_dx(const arg *a) {
    rms_norm_dx_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].l, a[6].p, a[7].l, a[8].p);
}
static void call_rope(const arg *a) {
    rope_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].f, a[5].p, a[6].l, a[7].p, a[8].l, a[9].p,
                a[10].p);
}
static void call_gelu_gate(const arg *a) { gelu_gate_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_gelu_gate_dx(const arg *a) {
    gelu_gate_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].p, a[4].p, a[5].p);
}
static void call_silu_gate(const arg *a) { silu_gate_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_silu_gate_dx(const arg *a) {
    silu_gate_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].p, a[4].p, a[5].p);
}
static void call_label_counts(const arg *a) {
    label_counts_kernel(a[0].l, a[1].p, a[2].l, a[3].p, a[4].f, a[5].p);
}
static void call_label_losses(const arg *a) {
    label_losses_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].l, a[6].l, a[7].p);
}
static void call_label_rows(const arg *a) {
    label_rows_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].p);
}
static void call_rows_gather(const arg *a) { rows_gather_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_rows_scatter(const arg *a) { rows_scatter_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_affine(const arg *a) { affine_kernel(a[0].l, a[1].p, a[2].f, a[3].f, a[4].p); }
static void call_columns_multiply(const arg *a) {
    columns_multiply_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].p);
}
static void call_dpo_losses(const arg *a) {
    dpo_losses_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].f, a[5].p, a[6].p, a[7].p, a[8].l,
                      a[9].p, a[10].p, a[11].p, a[12].l, a[13].p);
}
static void call_dpo_sums(const arg *a) {
    dpo_sums_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].l, a[6].l, a[7].p, a[8].p);
}
static void call_dropout(const arg *a) {
    dropout_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l, a[9].f,
                   a[10].p, a[11].p);
}
static void call_lora_norms(const arg *a) {
    lora_norms_kernel(a[0].l, a[1].l, a[2].l, a[3].f, a[4].p, a[5].p, a[6].p, a[7].p, a[8].p,
                      a[9].p);
}
static void call_standardize(const arg *a) {
    standardize_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].p);
}
static void call_sum_losses(const arg *a) {
    sum_losses_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p);
}
static void call_softmax(const arg *a) { softmax_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p); }
static void call_routing(const arg *a) {
    routing_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].p, a[5].p, a[6].p, a[7].p);
}
static void call_routing_drop(const arg *a) { routing_drop_kernel(a[0].l, a[1].l, a[2].p, a[3].p); }
static void call_routing_places(const arg *a) {
    routing_places_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p);
}
static void call_routing_back(const arg *a) {
    routing_back_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].p, a[5].p, a[6].p, a[7].p, a[8].p);
}
static void call_expert_gather(const arg *a) {
    expert_gather_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].p);
}
static void call_expert_scatter(const arg *a) {
    expert_scatter_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].p, a[5].p, a[6].p, a[7].p, a[8].p);
}
static void call_expert_activate(const arg *a) {
    expert_activate_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].p, a[7].p);
}
static void call_expert_activate_dx(const arg *a) {
    expert_activate_dx_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].p, a[7].p,
                              a[8].p, a[9].p, a[10].p);
}
static void call_expert_gemm(const arg *a) {
    expert_gemm_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l, a[8].p,
                       a[9].l, a[10].l);
}
static void call_expert_gemm_blocks(const arg *a) {
    expert_gemm_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l,
                              a[8].p, a[9].l, a[10].l);
}
static void call_expert_gemm_rows(const arg *a) {
    expert_gemm_rows_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l, a[8].p,
                            a[9].l);
}
static void call_expert_gemm_some(const arg *a) {
    expert_gemm_some_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l, a[8].p,
                            a[9].l);
}
static void call_expert_gemm_rows_blocks(const arg *a) {
    expert_gemm_rows_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l,
                                   a[8].p, a[9].l);
}
static void call_expert_gemm_some_blocks(const arg *a) {
    expert_gemm_some_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l,
                                   a[8].p, a[9].l);
}
static void call_expert_gemm_dw(const arg *a) {
    expert_gemm_dw_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l);
}
static void call_expert_gemm_dw_blocks(const arg *a) {
    expert_gemm_dw_blocks_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p, a[5].p, a[6].l, a[7].l,
                                 a[8].l, a[9].p);
}
static void call_router_balance(const arg *a) {
    router_balance_kernel(a[0].l, a[1].l, a[2].l, a[3].f, a[4].f, a[5].p, a[6].p, a[7].p, a[8].p,
                          a[9].p, a[10].l, a[11].l, a[12].l, a[13].l, a[14].l, a[15].p);
}
static void call_router_sums(const arg *a) {
    router_sums_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p, a[6].p);
}
static void call_router_sums_dx(const arg *a) {
    router_sums_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p);
}
static void call_router_loss(const arg *a) {
    router_loss_kernel(a[0].l, a[1].l, a[2].l, a[3].f, a[4].p, a[5].p, a[6].p, a[7].p);
}
static void call_router_chosen(const arg *a) {
    router_chosen_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p);
}
static void call_router_loads(const arg *a) {
    router_loads_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].p);
}
static void call_adamw(const arg *a) {
    adamw_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].f, a[6].f, a[7].f, a[8].f, a[9].f,
                 a[10].f, a[11].p, a[12].p, a[13].p, a[14].p);
}
static void call_adam(const arg *a) {
    adam_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].f, a[6].f, a[7].f, a[8].f, a[9].f,
                a[10].f, a[11].p, a[12].p, a[13].p, a[14].p);
}
static void call_sgd(const arg *a) { sgd_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].p, a[5].p); }
static void call_momentum(const arg *a) {
    momentum_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].l, a[6].p, a[7].p, a[8].p);
}
static void call_lion(const arg *a) {
    lion_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].f, a[6].f, a[7].f, a[8].p, a[9].p,
                a[10].p);
}
static void call_adagrad(const arg *a) {
    adagrad_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].p, a[6].p, a[7].p);
}
static void call_schedule_free(const arg *a) {
    schedule_free_kernel(a[0].l, a[1].f, a[2].f, a[3].f, a[4].f, a[5].f, a[6].f, a[7].f, a[8].f,
                         a[9].f, a[10].l, a[11].p, a[12].p, a[13].p, a[14].p, a[15].p);
}
static void call_ema(const arg *a) { ema_kernel(a[0].l, a[1].f, a[2].l, a[3].p, a[4].p); }
static void call_squares(const arg *a) { squares_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p); }
static void call_running(const arg *a) {
    running_kernel(a[0].l, a[1].f, a[2].f, a[3].l, a[4].p, a[5].p);
}
static void call_activation(const arg *a) { activation_kernel(a[0].l, a[1].l, a[2].p, a[3].p); }
static void call_activation_dx(const arg *a) {
    activation_dx_kernel(a[0].l, a[1].l, a[2].p, a[3].p, a[4].p);
}
static void call_add_relu(const arg *a) { add_relu_kernel(a[0].l, a[1].p, a[2].p, a[3].p); }
static void call_add_relu_dx(const arg *a) {
    add_relu_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].p, a[4].p, a[5].p);
}
static void call_average_pooling(const arg *a) {
    average_pooling_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l,
                           a[9].l, a[10].l, a[11].l, a[12].l, a[13].p, a[14].p);
}
static void call_average_pooling_dx(const arg *a) {
    average_pooling_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l,
                              a[8].l, a[9].l, a[10].l, a[11].l, a[12].l, a[13].p, a[14].p);
}
static void call_batch_norm_dx(const arg *a) {
    batch_norm_dx_kernel(a[0].l, a[1].l, a[2].f, a[3].l, a[4].p, a[5].p, a[6].p, a[7].p, a[8].p,
                         a[9].p, a[10].p, a[11].p);
}
static void call_binary_cross_entropy(const arg *a) {
    binary_cross_entropy_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p);
}
static void call_binary_cross_entropy_dx(const arg *a) {
    binary_cross_entropy_dx_kernel(a[0].l, a[1].l, a[2].f, a[3].p, a[4].p, a[5].l, a[6].l, a[7].l,
                                   a[8].p, a[9].p);
}
static void call_conv(const arg *a) {
    conv_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l, a[9].l,
                a[10].l, a[11].l, a[12].p, a[13].p, a[14].p, a[15].p);
}
static void call_conv_dw(const arg *a) {
    conv_dw_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l, a[9].l,
                   a[10].l, a[11].l, a[12].l, a[13].p, a[14].p, a[15].p);
}
static void call_conv_dx(const arg *a) {
    conv_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l, a[9].l,
                   a[10].l, a[11].l, a[12].l, a[13].l, a[14].p, a[15].p, a[16].p, a[17].p);
}
static void call_copy_rows(const arg *a) {
    copy_rows_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].p, a[5].l, a[6].l);
}
static void call_gradient_add(const arg *a) {
    gradient_add_kernel(a[0].l, a[1].f, a[2].p, a[3].l, a[4].p);
}
static void call_group_norm_dx(const arg *a) {
    group_norm_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].f, a[4].l, a[5].p, a[6].p, a[7].p, a[8].p,
                         a[9].p, a[10].p, a[11].p, a[12].p);
}
static void call_input(const arg *a) {
    input_kernel(a[0].l, a[1].l, a[2].p, a[3].l, a[4].l, a[5].f, a[6].f, a[7].p);
}
static void call_loss_samples(const arg *a) {
    loss_samples_kernel(a[0].l, a[1].p, a[2].l, a[3].f, a[4].p, a[5].p);
}
static void call_loss_weights(const arg *a) {
    loss_weights_kernel(a[0].l, a[1].p, a[2].l, a[3].l, a[4].l, a[5].f, a[6].p, a[7].p, a[8].p);
}
static void call_max_pooling(const arg *a) {
    max_pooling_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l,
                       a[9].l, a[10].l, a[11].l, a[12].p, a[13].p, a[14].p);
}
static void call_max_pooling_dx(const arg *a) {
    max_pooling_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].l, a[8].l,
                          a[9].l, a[10].l, a[11].l, a[12].p, a[13].p, a[14].p);
}
static void call_mean(const arg *a) { mean_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p); }
static void call_mean_dx(const arg *a) { mean_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p); }
static void call_mean_pooling(const arg *a) {
    mean_pooling_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p);
}
static void call_mean_pooling_dx(const arg *a) {
    mean_pooling_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p);
}
static void call_norm_apply(const arg *a) {
    norm_apply_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].p, a[6].p, a[7].p, a[8].p,
                      a[9].p, a[10].p);
}
static void call_norm_join(const arg *a) {
    norm_join_kernel(a[0].l, a[1].l, a[2].l, a[3].f, a[4].l, a[5].f, a[6].p, a[7].l, a[8].p);
}
static void call_norm_sums(const arg *a) {
    norm_sums_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].f, a[5].p, a[6].p, a[7].p, a[8].l);
}
static void call_norm_sums_back(const arg *a) {
    norm_sums_back_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].p, a[6].p, a[7].p, a[8].p,
                          a[9].p, a[10].p, a[11].p);
}
static void call_normalize_channel(const arg *a) {
    normalize_channel_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].p, a[5].l, a[6].l, a[7].f, a[8].f,
                             a[9].p);
}
static void call_normalize_channel_dx(const arg *a) {
    normalize_channel_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].f, a[5].p);
}
static void call_patches(const arg *a) {
    patches_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].p, a[7].p);
}
static void call_smoothed_cross_entropy(const arg *a) {
    smoothed_cross_entropy_kernel(a[0].l, a[1].l, a[2].f, a[3].p, a[4].p, a[5].p, a[6].p);
}
static void call_smoothed_cross_entropy_dx(const arg *a) {
    smoothed_cross_entropy_dx_kernel(a[0].l, a[1].l, a[2].f, a[3].f, a[4].p, a[5].p, a[6].p, a[7].p,
                                     a[8].p);
}
static void call_squared_error(const arg *a) {
    squared_error_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].l, a[6].p);
}
static void call_squared_error_dx(const arg *a) {
    squared_error_dx_kernel(a[0].l, a[1].l, a[2].f, a[3].p, a[4].p, a[5].l, a[6].l, a[7].l, a[8].p,
                            a[9].p);
}
static void call_bpr(const arg *a) {
    bpr_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].l, a[5].f, a[6].p, a[7].f, a[8].p, a[9].p);
}
static void call_dot_rows(const arg *a) {
    dot_rows_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p);
}
static void call_dot_rows_da(const arg *a) {
    dot_rows_da_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p);
}
static void call_dot_rows_db(const arg *a) {
    dot_rows_db_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p);
}
static void call_interaction(const arg *a) {
    interaction_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p);
}
static void call_interaction_dx(const arg *a) {
    interaction_dx_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].p, a[5].p);
}
static void call_vocabulary_join(const arg *a) {
    vocabulary_join_kernel(a[0].l, a[1].p, a[2].p, a[3].p);
}
static void call_vocabulary_join_dx(const arg *a) {
    vocabulary_join_dx_kernel(a[0].l, a[1].p, a[2].p, a[3].p, a[4].p);
}
static void call_vocabulary_loss(const arg *a) {
    vocabulary_loss_kernel(a[0].l, a[1].p, a[2].p, a[3].l, a[4].p, a[5].p, a[6].p);
}
static void call_gemm_blocks(const arg *a) {
    gemm_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l,
                       a[9].p, a[10].l, a[11].l, a[12].p, a[13].l, a[14].l, a[15].l, a[16].p);
}
static void call_heads_dkv_blocks(const arg *a) {
    heads_dkv_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p,
                            a[9].l, a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l,
                            a[17].p, a[18].p, a[19].l, a[20].p, a[21].p, a[22].p, a[23].l, a[24].l,
                            a[25].l, a[26].l, a[27].l, a[28].f);
}
static void call_heads_dot_blocks(const arg *a) {
    heads_dot_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p,
                            a[9].l, a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l,
                            a[17].p, a[18].p, a[19].l, a[20].p, a[21].l, a[22].l, a[23].l, a[24].l,
                            a[25].l, a[26].f);
}
static void call_heads_dq_blocks(const arg *a) {
    heads_dq_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f, a[8].p,
                           a[9].l, a[10].p, a[11].p, a[12].l, a[13].p, a[14].l, a[15].p, a[16].l,
                           a[17].p, a[18].p, a[19].l, a[20].p, a[21].l, a[22].l, a[23].l, a[24].l,
                           a[25].l, a[26].f);
}
static void call_heads_forward_blocks(const arg *a) {
    heads_forward_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].l, a[4].l, a[5].l, a[6].l, a[7].f,
                                a[8].p, a[9].l, a[10].p, a[11].p, a[12].l, a[13].p, a[14].l,
                                a[15].p, a[16].l, a[17].p, a[18].p, a[19].l, a[20].l, a[21].l,
                                a[22].l, a[23].l, a[24].f);
}
static void call_narrow(const arg *a) { narrow_kernel(a[0].l, a[1].l, a[2].p, a[3].p); }
static void call_round_to(const arg *a) { round_to_kernel(a[0].l, a[1].l, a[2].p); }
static void call_widen(const arg *a) { widen_kernel(a[0].l, a[1].l, a[2].p, a[3].p); }
static void call_gemm_rows(const arg *a) {
    gemm_rows_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l, a[9].p,
                     a[10].l, a[11].l, a[12].p);
}
static void call_gemm_some(const arg *a) {
    gemm_some_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l, a[9].p,
                     a[10].l, a[11].l, a[12].p);
}
static void call_gemm_rows_blocks(const arg *a) {
    gemm_rows_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l,
                            a[9].p, a[10].l, a[11].l, a[12].p);
}
static void call_gemm_some_blocks(const arg *a) {
    gemm_some_blocks_kernel(a[0].l, a[1].l, a[2].l, a[3].p, a[4].l, a[5].l, a[6].p, a[7].l, a[8].l,
                            a[9].p, a[10].l, a[11].l, a[12].p);
}

static void (*const calls[LS_NDEVICE_KERNELS])(const arg *) = {
#define LS_DEVICE_KERNEL_CALL(name, items, params) [LS_KERNEL_##name] = call_##name,
    LS_DEVICE_KERNELS(LS_DEVICE_KERNEL_CALL)
#undef LS_DEVICE_KERNEL_CALL
};

void ls_run_c(const ls_device_call *l, bool last_first) {
    int64_t n = l->groups_x * l->groups_y;
    backwards = last_first;
    for (int64_t i = 0; i < n; i++) {
        int64_t group = last_first ? n - 1 - i : i;
        group_x = group % l->groups_x;
        group_y = group / l->groups_x;
        calls[l->kernel](l->args);
    }
}
