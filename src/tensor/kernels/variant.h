/* variant.h - the names of a variant: LS_K(gelu) is gelu_avx2 in the AVX2 build. */
#ifndef LS_TENSOR_KERNELS_VARIANT_H
#define LS_TENSOR_KERNELS_VARIANT_H

#include "tensor/kernels.h"
#include "tensor/vec.h"

#define LS_K__(name, variant) name##_##variant
#define LS_K_(name, variant)  LS_K__(name, variant)
#define LS_K(name)            LS_K_(name, LS_VARIANT)

/* The numbers of IQ4_NL and IQ4_XS, -127 to 113, as bytes of i8. */
static const uint8_t LS_IQ4_TABLE[16] = {129, 152, 173, 191, 207, 221, 234, 246,
                                         1,   13,  25,  38,  53,  69,  89,  113};

extern const ls_kernels LS_K(ls_kernels); /* table.c */

void LS_K(gemm_tile)(int64_t K, const float *a, int64_t rs, int64_t cs, const float *b,
                     const float *start, float *c, int64_t ldc);
void LS_K(pack_a)(int64_t M, int64_t K, const float *a, int64_t rs, int64_t cs, float *out);
void LS_K(pack_b)(int64_t K, int64_t N, const float *b, int64_t rs, int64_t cs, float *out);
void LS_K(pack_a_bf16)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out);
void LS_K(pack_b_bf16)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out);
int64_t LS_K(bf16_words)(int64_t K);
void LS_K(bf16_tiles)(const ls_gemm_tiles *x);
void LS_K(blocks_tile)(int64_t K, const float *a, const float *b, const float *start, float *c,
                       int64_t ldc);
void LS_K(conv_tile)(const ls_conv_tile *w, const float *a, const float *b, float *c);
void LS_K(conv_each)(const ls_conv_tile *w, const float *a, const float *b, float *c);
void LS_K(gemv)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                float *y);
void LS_K(gemv_table)(const ls_gemv_table_job *j);
void LS_K(gemv_few)(const ls_gemv_few_job *j);
void LS_K(gemm_some)(const ls_gemm_some_job *j);
void LS_K(gemv_strips)(ls_block_type type, int64_t V, int64_t C, const uint8_t *from, uint8_t *to);
void LS_K(unpack_strips)(const ls_strip_part *part, float *out);
/* The same with strips that are not in groups. */
void LS_K(lanes_some)(const ls_gemm_some_job *j);
void LS_K(unpack_lanes)(const ls_strip_part *part, float *out);
void LS_K(kept_scores)(const ls_gemv_kept_job *j, int64_t first, int64_t end);
void LS_K(kept_mix)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end);
#ifdef V_PAIRS
/* Replaces products in bf16 by those of the instruction for pairs. */
void LS_K(use_pairs)(ls_kernels *k);
int64_t LS_K(pairs_words)(int64_t K);
float LS_K(pairs_peak)(int64_t rounds);
void LS_K(pairs_to_bf16)(int64_t n, const float *x, void *y);
void LS_K(pairs_pack_a)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out);
void LS_K(pairs_pack_b)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out);
void LS_K(pairs_tiles)(const ls_gemm_tiles *x);
void LS_K(pairs_tile)(int64_t K, const float *a, const float *b, const float *start, float *c,
                      int64_t ldc);
void LS_K(pairs_gemv_table)(const ls_gemv_table_job *j);
/* Replaces products in bf16 and of int8 by those of the matrix unit. */
void LS_K(use_amx)(ls_kernels *k);
int64_t LS_K(amx_words)(int64_t K);
float LS_K(amx_peak)(int64_t rounds);
void LS_K(amx_pack_a)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out);
void LS_K(amx_pack_b)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out);
void LS_K(amx_tiles)(const ls_gemm_tiles *x);
void LS_K(int8_rows_amx)(const ls_int8_job *j);
#endif
/* These are in blocks of LS_SUM_BLOCK. */
void LS_K(gemv_in_blocks)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w,
                          int64_t ld, float *y);
void LS_K(gemv_table_in_blocks)(const ls_gemv_table_job *j);
void LS_K(kept_scores_in_blocks)(const ls_gemv_kept_job *j, int64_t first, int64_t end);
void LS_K(kept_mix_in_blocks)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end);
void LS_K(gemv_bf16)(ls_dtype type, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                     float *y);
void LS_K(gemv_table_bf16)(const ls_gemv_table_job *j);
void LS_K(kept_scores_bf16)(const ls_gemv_kept_job *j, int64_t first, int64_t end);
void LS_K(kept_mix_bf16)(const ls_gemv_kept_job *j, int64_t seen, int64_t first, int64_t end);
void LS_K(round_bf16)(int64_t n, const float *x, float *y);
void LS_K(to_bf16)(int64_t n, const float *x, void *y);
void LS_K(int8_quantize)(int64_t C, const float *x, ls_int8_block *out, int64_t stride);
void LS_K(int8_rows)(const ls_int8_job *j);
void LS_K(layernorm)(int64_t rows, int64_t C, const float *x, const float *gamma, const float *beta,
                     float *y, float *mean, float *rstd);
void LS_K(layernorm_dx)(int64_t rows, int64_t C, const float *dy, const float *x,
                        const float *gamma, const float *mean, const float *rstd,
                        const float *residual, float *dx);
void LS_K(layernorm_dparams)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *dy,
                             const float *x, const float *mean, const float *rstd, float *dgamma,
                             float *dbeta);
void LS_K(group_norm)(const ls_group_norm_job *g);
void LS_K(group_norm_dx)(const ls_group_norm_job *g);
void LS_K(rms_norm)(const ls_rms_norm_job *m);
void LS_K(rms_norm_dx)(const ls_rms_norm_job *m);
void LS_K(rms_norm_dparams)(const ls_rms_norm_job *m);
void LS_K(batch_norm_stats)(const ls_batch_norm_job *b);
void LS_K(batch_norm_rstd)(const ls_batch_norm_job *b);
void LS_K(batch_norm_apply)(const ls_batch_norm_job *b);
void LS_K(batch_norm_sums)(const ls_batch_norm_job *b);
void LS_K(batch_norm_dx)(const ls_batch_norm_job *b);
void LS_K(max_pooling)(const ls_pooling *p, const float *x, float *y, uint16_t *place);
void LS_K(max_pooling_dx)(const ls_pooling *p, const float *dy, const uint16_t *place, float *dx);
void LS_K(average_pooling)(const ls_pooling *p, const float *x, float *y);
void LS_K(average_pooling_dx)(const ls_pooling *p, const float *dy, float *dx);
void LS_K(mean_pooling)(int64_t samples, int64_t pixels, int64_t C, const float *x, float *y);
void LS_K(mean_pooling_dx)(int64_t samples, int64_t pixels, int64_t C, const float *dy, float *dx);
void LS_K(column_sum)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *x, float *sum);
void LS_K(gelu)(int64_t n, const float *x, float *y);
void LS_K(gelu_back)(int64_t n, const float *x, const float *dy, float *dx, float *y);
ls_activation_kernel LS_K(relu), LS_K(sigmoid), LS_K(tanh), LS_K(silu);
ls_activation_dx_kernel LS_K(relu_dx), LS_K(sigmoid_dx), LS_K(tanh_dx), LS_K(silu_dx);
void LS_K(silu_gate)(int64_t n, const float *gate, const float *x, float *y);
void LS_K(silu_gate_dx)(int64_t n, const float *gate, const float *x, const float *dy, float *dgate,
                        float *dx);
void LS_K(rope)(int64_t heads, int64_t D, const float *turn, bool back, const float *x, float *y);
void LS_K(softmax_causal)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                          float *stat);
void LS_K(softmax_causal_again)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                                const float *stat);
void LS_K(softmax_causal_dx)(int64_t rows, int64_t width, float scale, const float *p, float *dp);
void LS_K(softmax)(int64_t rows, int64_t n, const float *x, float *y);
void LS_K(maxima)(int64_t n, const float *x, float *most);
double LS_K(draw_weights)(int64_t n, const float *x, float top, float by, float *y);
ls_loss_kernel LS_K(smoothed_cross_entropy), LS_K(smoothed_cross_entropy_dx);
ls_loss_kernel LS_K(binary_cross_entropy), LS_K(binary_cross_entropy_dx);
ls_loss_kernel LS_K(squared_error), LS_K(squared_error_dx);
float LS_K(cross_entropy)(int64_t n, const float *x, float stat[2]);
void LS_K(cross_entropy_dx)(int64_t n, float *x, const float stat[2], int64_t target, float scale);
void LS_K(add)(int64_t n, const float *a, const float *b, float *out);
void LS_K(multiply)(int64_t n, const float *a, const float *b, float *out);
void LS_K(affine)(int64_t n, const float *x, float scale, float shift, float *y);
void LS_K(bytes_affine)(int64_t pixels, int64_t C, const uint8_t *x, const float *scale,
                        const float *shift, float *y);
void LS_K(dropout)(const ls_dropout_place *place, int64_t first, int64_t n, const float *x,
                   float *y);
float LS_K(sum_squares)(int64_t n, const float *x);
void LS_K(squares_and_dot)(int64_t n, const float *x, const float *y, float out[2]);
void LS_K(ema)(int64_t n, float weight, const float *x, float *mean);
ls_update_kernel LS_K(adamw), LS_K(adam), LS_K(sgd), LS_K(momentum), LS_K(lion), LS_K(adagrad),
    LS_K(schedule_free);
float LS_K(fma_peak)(int64_t rounds);
float LS_K(bf16_peak)(int64_t rounds);
void LS_K(combine)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b, void *out);
void LS_K(combine_logic)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b,
                         void *out);
void LS_K(combine_pairs)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b,
                         void *out);
void LS_K(combine_both)(ls_dtype dtype, ls_op op, size_t n, const void *a, const void *b, void *out,
                        void *also);
void LS_K(average)(ls_dtype dtype, size_t n, int by, void *x);
void LS_K(widen)(ls_dtype from, size_t n, const void *x, float *y);
void LS_K(narrow)(ls_dtype to, size_t n, const float *x, void *y);
ls_unpack_kernel LS_K(unpack_f32), LS_K(unpack_f16), LS_K(unpack_bf16), LS_K(unpack_q8_0),
    LS_K(unpack_q4_0), LS_K(unpack_q4_1), LS_K(unpack_q5_0), LS_K(unpack_q5_1), LS_K(unpack_q4_k),
    LS_K(unpack_q5_k), LS_K(unpack_q6_k), LS_K(unpack_q3_k), LS_K(unpack_q2_k), LS_K(unpack_iq4_nl),
    LS_K(unpack_iq4_xs);
int64_t LS_K(add_error)(int64_t n, float keep, const float *error, const float *x, float *out);
void LS_K(subtract)(int64_t n, const float *a, const float *b, float *out);
float LS_K(abs_max)(int64_t n, const float *x);
float LS_K(abs_sum)(int64_t n, const float *x);
float LS_K(dot)(int64_t n, const float *x, const float *y);
void LS_K(subtract_scaled)(int64_t n, float a, const float *x, float *y);
int64_t LS_K(above)(int64_t n, const float *x, float threshold, uint32_t first, uint32_t *index,
                    int64_t room);
void LS_K(pack_signs)(int64_t n, const float *x, uint32_t *words);
void LS_K(unpack_signs)(int64_t n, const uint32_t *words, float scale, float *y);
void LS_K(pack_i8)(int64_t n, const float *x, float inverse, int8_t *bytes);
void LS_K(unpack_i8)(int64_t n, const int8_t *bytes, float scale, float *y);
void LS_K(pack_i4)(int64_t n, const float *x, float inverse, uint8_t *bytes);
void LS_K(unpack_i4)(int64_t n, const uint8_t *bytes, float scale, float *y);

#endif
