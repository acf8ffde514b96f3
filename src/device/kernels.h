/* kernels.h - the kernels of devices: their names, items of a group, and parameters.
 *
 * One text, kernels/NAME.k, in a small dialect of C (dialect.h) is compiled as C, as OpenCL C
 * and as CUDA. To the bit, a kernel computes what the CPU's kernel of the same name does
 * (tensor/kernels.h); what it is given is described there, or in its text.
 */
#ifndef LS_DEVICE_KERNELS_H
#define LS_DEVICE_KERNELS_H

/* Texts of functions that kernels share, before all kernels: kernels/NAME.k. */
#define LS_DEVICE_HELPERS(X)                                                                       \
    X(math)                                                                                        \
    X(sigmoid)                                                                                     \
    X(product)                                                                                     \
    X(blocks)                                                                                      \
    X(rows)                                                                                        \
    X(random)                                                                                      \
    X(heads)                                                                                       \
    X(adam_ratio)                                                                                  \
    X(activations)                                                                                 \
    X(conv_windows)                                                                                \
    X(fields)                                                                                      \
    X(halves)                                                                                      \
    X(packed)                                                                                      \
    X(pooling)                                                                                     \
    X(label_place)                                                                                 \
    X(softmax_rows)                                                                                \
    X(experts)                                                                                     \
    X(exact)

/* X(name, items of a group, parameters): a letter each: p a pointer, l a long, f a float. */
#define LS_DEVICE_KERNELS(X)                                                                       \
    X(activation, 256, "llpp")                                                                     \
    X(activation_dx, 256, "llppp")                                                                 \
    X(adagrad, 256, "lffffppp")                                                                    \
    X(adam, 256, "lffffffffffpppp")                                                                \
    X(adamw, 256, "lffffffffffpppp")                                                               \
    X(add, 256, "lppp")                                                                            \
    X(add_relu, 256, "lppp")                                                                       \
    X(add_relu_dx, 256, "lppppp")                                                                  \
    X(affine, 256, "lpffp")                                                                        \
    X(average_pooling, 256, "lllllllllllllpp")                                                     \
    X(average_pooling_dx, 256, "lllllllllllllpp")                                                  \
    X(batch_norm_dx, 256, "llflpppppppp")                                                          \
    X(binary_cross_entropy, 256, "lpplllp")                                                        \
    X(binary_cross_entropy_dx, 256, "llfpplllpp")                                                  \
    X(bpr, 256, "lppllfpfpp")                                                                      \
    X(column_sum, 256, "llpllp")                                                                   \
    X(columns_multiply, 256, "llppppp")                                                            \
    X(conv, 256, "llllllllllllpppp")                                                               \
    X(conv_dw, 256, "lllllllllllllppp")                                                            \
    X(conv_dx, 256, "llllllllllllllpppp")                                                          \
    X(copy, 256, "lpp")                                                                            \
    X(copy_rows, 256, "llplpll")                                                                   \
    X(cross_entropy, 256, "lpplllppplp")                                                           \
    X(cross_entropy_dx, 256, "lpplllppfpp")                                                        \
    X(cross_entropy_part_dx, 256, "lpplllpp")                                                      \
    X(dot_rows, 256, "lllppp")                                                                     \
    X(dot_rows_da, 256, "lllppp")                                                                  \
    X(dot_rows_db, 256, "lllppp")                                                                  \
    X(dpo_losses, 256, "llllfppplppplp")                                                           \
    X(dpo_sums, 256, "llpppllpp")                                                                  \
    X(dropout, 256, "lllllllllfpp")                                                                \
    X(ema, 256, "lflpp")                                                                           \
    X(embedding, 256, "llplllpppp")                                                                \
    X(embedding_dwpe, 256, "lllplp")                                                               \
    X(embedding_dwte, 256, "lllplllpp")                                                            \
    X(expert_activate, 256, "llpppppp")                                                            \
    X(expert_activate_dx, 256, "llppppppppp")                                                      \
    X(expert_gather, 256, "lllpppp")                                                               \
    X(expert_gemm, 128, "lllpppllpll")                                                             \
    X(expert_gemm_blocks, 128, "lllpppllpll")                                                      \
    X(expert_gemm_dw, 128, "llppppll")                                                             \
    X(expert_gemm_dw_blocks, 128, "llpppplllp")                                                    \
    X(expert_gemm_rows, 128, "lllpppllpl")                                                         \
    X(expert_gemm_some, 128, "lllpppllpl")                                                         \
    X(expert_gemm_rows_blocks, 128, "lllpppllpl")                                                  \
    X(expert_gemm_some_blocks, 128, "lllpppllpl")                                                  \
    X(expert_scatter, 256, "llllppppp")                                                            \
    X(gelu, 256, "lpp")                                                                            \
    X(gelu_back, 256, "lppp")                                                                      \
    X(gelu_gate, 256, "lppp")                                                                      \
    X(gelu_gate_dx, 256, "lppppp")                                                                 \
    X(gemm, 256, "lllpllpllpllpl")                                                                 \
    X(gemm_blocks, 128, "lllpllpllpllplllp")                                                       \
    X(gemm_rows, 128, "lllpllpllpllp")                                                             \
    X(gemm_some, 128, "lllpllpllpllp")                                                             \
    X(gemm_rows_blocks, 128, "lllpllpllpllp")                                                      \
    X(gemm_some_blocks, 128, "lllpllpllpllp")                                                      \
    X(gemm_small, 128, "lllpllpllpllpl")                                                           \
    X(gradient_add, 256, "lfplp")                                                                  \
    X(group_norm_dx, 256, "lllflpppppppp")                                                         \
    X(heads_dkv, 128, "lllllllfplpplplplpplppplllllf")                                             \
    X(heads_dkv_blocks, 128, "lllllllfplpplplplpplppplllllf")                                      \
    X(heads_dot, 128, "lllllllfplpplplplpplplllllf")                                               \
    X(heads_dot_blocks, 128, "lllllllfplpplplplpplplllllf")                                        \
    X(heads_dq, 128, "lllllllfplpplplplpplplllllf")                                                \
    X(heads_dq_blocks, 128, "lllllllfplpplplplpplplllllf")                                         \
    X(heads_few, 128, "lllllfplpllppp")                                                            \
    X(heads_few_blocks, 128, "lllllfplpllppp")                                                     \
    X(heads_few_packed, 128, "lllllfplpllpppll")                                                   \
    X(heads_forward, 128, "lllllllfplpplplplpplllllf")                                             \
    X(heads_forward_blocks, 128, "lllllllfplpplplplpplllllf")                                      \
    X(heads_keep, 256, "llppllppl")                                                                \
    X(heads_keep_packed, 256, "llppllpplll")                                                       \
    X(heads_pages, 128, "lllllfplpllppp")                                                          \
    X(heads_pages_blocks, 128, "lllllfplpllppp")                                                   \
    X(heads_pages_packed, 128, "lllllfplpllpppll")                                                 \
    X(input, 256, "llpllffp")                                                                      \
    X(interaction, 256, "lllpp")                                                                   \
    X(interaction_dx, 256, "lllppp")                                                               \
    X(label_counts, 256, "lplpfp")                                                                 \
    X(label_losses, 256, "llpppllp")                                                               \
    X(label_rows, 256, "llplp")                                                                    \
    X(layernorm, 256, "llpppppp")                                                                  \
    X(layernorm_dparams, 256, "llpppplpp")                                                         \
    X(layernorm_dx, 256, "llppppppp")                                                              \
    X(lion, 256, "lfffffffppp")                                                                    \
    X(lora_norms, 256, "lllfpppppp")                                                               \
    X(loss_samples, 256, "lplfpp")                                                                 \
    X(loss_weights, 256, "lplllfppp")                                                              \
    X(max_pooling, 256, "llllllllllllppp")                                                         \
    X(max_pooling_dx, 256, "llllllllllllppp")                                                      \
    X(mean, 256, "lllpp")                                                                          \
    X(mean_dx, 256, "lllpp")                                                                       \
    X(mean_pooling, 256, "lllpp")                                                                  \
    X(mean_pooling_dx, 256, "lllpp")                                                               \
    X(momentum, 256, "lfffflppp")                                                                  \
    X(multiply, 256, "lppp")                                                                       \
    X(narrow, 256, "llpp")                                                                         \
    X(norm_apply, 256, "lllllpppppp")                                                              \
    X(norm_join, 256, "lllflfplp")                                                                 \
    X(norm_sums, 256, "llllfpppl")                                                                 \
    X(norm_sums_back, 256, "lllllppppppp")                                                         \
    X(normalize_channel, 256, "llllpllffp")                                                        \
    X(normalize_channel_dx, 256, "lllpfp")                                                         \
    X(patches, 256, "llllllpp")                                                                    \
    X(rms_norm, 256, "llfpplpp")                                                                   \
    X(rms_norm_dparams, 256, "llppplp")                                                            \
    X(rms_norm_dx, 256, "llppplplp")                                                               \
    X(rope, 256, "llllfplplpp")                                                                    \
    X(round_to, 256, "llp")                                                                        \
    X(router_balance, 256, "lllffppppplllllp")                                                     \
    X(router_chosen, 256, "lllpp")                                                                 \
    X(router_loads, 256, "llplp")                                                                  \
    X(router_loss, 256, "lllfpppp")                                                                \
    X(router_sums, 256, "lllpppp")                                                                 \
    X(router_sums_dx, 256, "lllppp")                                                               \
    X(routing, 256, "llllpppp")                                                                    \
    X(routing_back, 256, "llllppppp")                                                              \
    X(routing_drop, 256, "llpp")                                                                   \
    X(routing_places, 256, "llpppp")                                                               \
    X(rows_gather, 256, "lppp")                                                                    \
    X(rows_scatter, 256, "lppp")                                                                   \
    X(running, 256, "lfflpp")                                                                      \
    X(schedule_free, 256, "lffffffffflppppp")                                                      \
    X(sgd, 256, "lfffpp")                                                                          \
    X(silu_gate, 256, "lppp")                                                                      \
    X(silu_gate_dx, 256, "lppppp")                                                                 \
    X(smoothed_cross_entropy, 256, "llfpppp")                                                      \
    X(smoothed_cross_entropy_dx, 256, "llffppppp")                                                 \
    X(softmax, 256, "llppp")                                                                       \
    X(squared_error, 256, "lpplllp")                                                               \
    X(squared_error_dx, 256, "llfpplllpp")                                                         \
    X(squares, 256, "lllpp")                                                                       \
    X(standardize, 256, "lllpllpp")                                                                \
    X(sum_losses, 256, "lllpp")                                                                    \
    X(vocabulary_join, 256, "lppp")                                                                \
    X(vocabulary_join_dx, 256, "lpppp")                                                            \
    X(vocabulary_loss, 256, "lpplppp")                                                             \
    X(widen, 256, "llpp")

typedef enum ls_device_kernel {
#define LS_DEVICE_KERNEL_NUMBER(name, items, params) LS_KERNEL_##name,
    LS_DEVICE_KERNELS(LS_DEVICE_KERNEL_NUMBER)
#undef LS_DEVICE_KERNEL_NUMBER
        LS_NDEVICE_KERNELS
} ls_device_kernel;

typedef struct ls_device_kernel_facts {
    const char *name;
    int items;
    const char *params;
} ls_device_kernel_facts;

extern const ls_device_kernel_facts ls_device_kernels[LS_NDEVICE_KERNELS];

/* The text of all kernels in the dialect, without the dialect's own header; ended by 0. */
extern const char ls_device_kernels_text[];
/* The header for a language: what comes before it. */
extern const char ls_device_opencl_text[], ls_device_cuda_text[];

#endif
