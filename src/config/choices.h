/* choices.h - the keys of a config that have a word as their value: each word and its enum value.
 *
 * TYPE_words lists all values of a choice with their words. Both the enum and the array of words
 * (keys.c) are made of it. Rooms above include this file where their own work is such a choice,
 * e.g. share/schedule.h; there is no second enum.
 */
#ifndef LS_CONFIG_CHOICES_H
#define LS_CONFIG_CHOICES_H

#define LS_CHOICE_VALUE(value, word) value,
#define LS_CHOICE_WORD(value, word)  [value] = word,

/* clang-format off */

#define ls_switch_words(IS) IS(LS_OFF, "off") IS(LS_ON, "on")
typedef enum ls_switch { ls_switch_words(LS_CHOICE_VALUE) } ls_switch;

/* Units of an amount of training. */
#define ls_span_unit_words(IS)                                                                     \
    IS(LS_SPAN_STEPS, "steps") IS(LS_SPAN_SAMPLES, "samples") IS(LS_SPAN_EPOCHS, "epochs")
typedef enum ls_span_unit { ls_span_unit_words(LS_CHOICE_VALUE) } ls_span_unit;

/* networks/network.h makes them. program: of a program that is built with the library (own.h). */
#define ls_model_kind_words(IS)                                                                    \
    IS(LS_MODEL_GPT2, "gpt2") IS(LS_MODEL_LLAMA, "llama") IS(LS_MODEL_MLP, "mlp")                  \
    IS(LS_MODEL_CNN, "cnn") IS(LS_MODEL_RESNET, "resnet") IS(LS_MODEL_VIT, "vit")                  \
    IS(LS_MODEL_FACTORS, "factors") IS(LS_MODEL_TWO_TOWERS, "two_towers")                          \
    IS(LS_MODEL_DLRM, "dlrm") IS(LS_MODEL_WIDE_DEEP, "wide_deep") IS(LS_MODEL_LAYERS, "layers")    \
    IS(LS_MODEL_PROGRAM, "program")
typedef enum ls_model_kind { ls_model_kind_words(LS_CHOICE_VALUE) } ls_model_kind;

#define ls_rope_kind_words(IS)                                                                     \
    IS(LS_ROPES_DEFAULT, "default") IS(LS_ROPES_LINEAR, "linear") IS(LS_ROPES_LLAMA3, "llama3")    \
    IS(LS_ROPES_YARN, "yarn") IS(LS_ROPES_LONGROPE, "longrope")
typedef enum ls_rope_kind { ls_rope_kind_words(LS_CHOICE_VALUE) } ls_rope_kind;

/* What a block of kind llama is made of: networks/llama.h. */
#define ls_block_kind_words(IS) IS(LS_BLOCKS_LLAMA, "llama") IS(LS_BLOCKS_GEMMA3, "gemma3")
typedef enum ls_block_kind { ls_block_kind_words(LS_CHOICE_VALUE) } ls_block_kind;

/* llama: linear layers with a bias. attention: qkv and its output. */
#define ls_bias_kind_words(IS)                                                                     \
    IS(LS_BIAS_NONE, "none") IS(LS_BIAS_QKV, "qkv") IS(LS_BIAS_ATTENTION, "attention")             \
    IS(LS_BIAS_MLP, "mlp") IS(LS_BIAS_ALL, "all")
typedef enum ls_bias_kind { ls_bias_kind_words(LS_CHOICE_VALUE) } ls_bias_kind;

#define ls_router_scope_words(IS) IS(LS_ROUTERS_EACH, "layer") IS(LS_ROUTERS_ALL, "model")
typedef enum ls_router_scope { ls_router_scope_words(LS_CHOICE_VALUE) } ls_router_scope;

#define ls_head_kind_words(IS) IS(LS_HEAD_TIED, "tied") IS(LS_HEAD_OWN, "own")
typedef enum ls_head_kind { ls_head_kind_words(LS_CHOICE_VALUE) } ls_head_kind;

#define ls_norm_kind_words(IS) IS(LS_NORM_GROUP, "group") IS(LS_NORM_BATCH, "batch")
typedef enum ls_norm_kind { ls_norm_kind_words(LS_CHOICE_VALUE) } ls_norm_kind;

#define ls_documents_kind_words(IS) IS(LS_DOCUMENTS_APART, "apart") IS(LS_DOCUMENTS_JOINED, "joined")
typedef enum ls_documents_kind { ls_documents_kind_words(LS_CHOICE_VALUE) } ls_documents_kind;

/* From tokens on these are names of formats of files (source/source.h). */
#define ls_data_kind_words(IS)                                                                     \
    IS(LS_DATA_AUTO, "auto") IS(LS_DATA_TEXT, "text") IS(LS_DATA_CHAT, "chat")                     \
    IS(LS_DATA_TOKENS, "tokens") IS(LS_DATA_IDX, "idx") IS(LS_DATA_CIFAR, "cifar")                 \
    IS(LS_DATA_CSV, "csv") IS(LS_DATA_JSONL, "jsonl") IS(LS_DATA_NPY, "npy")                       \
    IS(LS_DATA_IMAGES, "images") IS(LS_DATA_WEBDATASET, "webdataset")                              \
    IS(LS_DATA_TFRECORD, "tfrecord") IS(LS_DATA_MDS, "mds")
typedef enum ls_data_kind { ls_data_kind_words(LS_CHOICE_VALUE) } ls_data_kind;

#define ls_damaged_kind_words(IS) IS(LS_DAMAGED_REFUSE, "refuse") IS(LS_DAMAGED_SKIP, "skip")
typedef enum ls_damaged_kind { ls_damaged_kind_words(LS_CHOICE_VALUE) } ls_damaged_kind;

/* What becomes of missing values in columns of numbers. drop: the record is left out; mean: the
 * column's mean takes their place. */
#define ls_missing_words(IS)                                                                       \
    IS(LS_MISSING_REFUSE, "refuse") IS(LS_MISSING_DROP, "drop") IS(LS_MISSING_MEAN, "mean")
typedef enum ls_missing { ls_missing_words(LS_CHOICE_VALUE) } ls_missing;

#define ls_lists_kind_words(IS) IS(LS_LISTS_REFUSE, "refuse") IS(LS_LISTS_CUT, "cut")
typedef enum ls_lists_kind { ls_lists_kind_words(LS_CHOICE_VALUE) } ls_lists_kind;

/* Which parts of a conversation are trained on: all answers, all tokens, or the last answer. */
#define ls_chat_loss_words(IS)                                                                     \
    IS(LS_CHAT_ASSISTANT, "assistant") IS(LS_CHAT_ALL, "all")                                      \
    IS(LS_CHAT_COMPLETION, "completion")
typedef enum ls_chat_loss { ls_chat_loss_words(LS_CHOICE_VALUE) } ls_chat_loss;

#define ls_order_kind_words(IS)                                                                    \
    IS(LS_ORDER_AUTO, "auto") IS(LS_ORDER_GLOBAL, "global") IS(LS_ORDER_BLOCKS, "blocks")
typedef enum ls_order_kind { ls_order_kind_words(LS_CHOICE_VALUE) } ls_order_kind;

#define ls_channels_kind_words(IS)                                                                 \
    IS(LS_CHANNELS_AUTO, "auto") IS(LS_CHANNELS_1, "1") IS(LS_CHANNELS_3, "3")
typedef enum ls_channels_kind { ls_channels_kind_words(LS_CHOICE_VALUE) } ls_channels_kind;

#define ls_train_loss_words(IS) IS(LS_TRAIN_LOSS_AUTO, "auto") IS(LS_TRAIN_LOSS_DPO, "dpo")
typedef enum ls_train_loss { ls_train_loss_words(LS_CHOICE_VALUE) } ls_train_loss;

#define ls_eval_weights_words(IS) IS(LS_EVAL_LAST, "last") IS(LS_EVAL_EMA, "ema")
typedef enum ls_eval_weights { ls_eval_weights_words(LS_CHOICE_VALUE) } ls_eval_weights;

#define ls_compute_kind_words(IS)                                                                  \
    IS(LS_COMPUTE_F32, "f32") IS(LS_COMPUTE_BF16, "bf16") IS(LS_COMPUTE_F16, "f16")
typedef enum ls_compute_kind { ls_compute_kind_words(LS_CHOICE_VALUE) } ls_compute_kind;

#define ls_infer_activations_words(IS)                                                             \
    IS(LS_ACTIVATIONS_FLOAT, "float") IS(LS_ACTIVATIONS_INT8, "int8")
typedef enum ls_infer_activations {
    ls_infer_activations_words(LS_CHOICE_VALUE)
} ls_infer_activations;

#define ls_reduce_kind_words(IS)                                                                   \
    IS(LS_REDUCE_AUTO, "auto") IS(LS_REDUCE_F32, "f32") IS(LS_REDUCE_BF16, "bf16")                 \
    IS(LS_REDUCE_F16, "f16")
typedef enum ls_reduce_kind { ls_reduce_kind_words(LS_CHOICE_VALUE) } ls_reduce_kind;

/* The loss of preferences (layers/linear_dpo.c). */
#define ls_dpo_loss_words(IS)                                                                      \
    IS(LS_DPO_SIGMOID, "sigmoid") IS(LS_DPO_IPO, "ipo") IS(LS_DPO_HINGE, "hinge")
typedef enum ls_dpo_loss { ls_dpo_loss_words(LS_CHOICE_VALUE) } ls_dpo_loss;

#define ls_optimizer_kind_words(IS)                                                                \
    IS(LS_OPTIMIZER_ADAMW, "adamw") IS(LS_OPTIMIZER_ADAM, "adam") IS(LS_OPTIMIZER_SGD, "sgd")      \
    IS(LS_OPTIMIZER_LION, "lion") IS(LS_OPTIMIZER_ADAGRAD, "adagrad")                              \
    IS(LS_OPTIMIZER_SCHEDULE_FREE, "schedule-free") IS(LS_OPTIMIZER_LARS, "lars")                  \
    IS(LS_OPTIMIZER_LAMB, "lamb") IS(LS_OPTIMIZER_ADAFACTOR, "adafactor")                          \
    IS(LS_OPTIMIZER_MUON, "muon") IS(LS_OPTIMIZER_SOAP, "soap")                                    \
    IS(LS_OPTIMIZER_ONEBIT_ADAM, "onebit_adam") IS(LS_OPTIMIZER_ONEBIT_LAMB, "onebit_lamb")        \
    IS(LS_OPTIMIZER_ROWWISE_ADAGRAD, "rowwise_adagrad")
typedef enum ls_optimizer_kind { ls_optimizer_kind_words(LS_CHOICE_VALUE) } ls_optimizer_kind;

#define ls_scale_kind_words(IS)                                                                    \
    IS(LS_SCALE_OFF, "off") IS(LS_SCALE_LINEAR, "linear") IS(LS_SCALE_SQRT, "sqrt")
typedef enum ls_scale_kind { ls_scale_kind_words(LS_CHOICE_VALUE) } ls_scale_kind;

/* wsd: warm-up, stable, decay. */
#define ls_schedule_kind_words(IS)                                                                 \
    IS(LS_SCHEDULE_COSINE, "cosine") IS(LS_SCHEDULE_LINEAR, "linear")                              \
    IS(LS_SCHEDULE_CONSTANT, "constant") IS(LS_SCHEDULE_STEP, "step") IS(LS_SCHEDULE_WSD, "wsd")
typedef enum ls_schedule_kind { ls_schedule_kind_words(LS_CHOICE_VALUE) } ls_schedule_kind;

#define ls_reduce_order_words(IS) IS(LS_REDUCE_TREE, "tree") IS(LS_REDUCE_FASTEST, "fastest")
typedef enum ls_reduce_order { ls_reduce_order_words(LS_CHOICE_VALUE) } ls_reduce_order;

#define ls_transport_kind_words(IS)                                                                \
    IS(LS_TRANSPORT_AUTO, "auto") IS(LS_TRANSPORT_SHM, "shm") IS(LS_TRANSPORT_THREAD, "thread")    \
    IS(LS_TRANSPORT_TCP, "tcp") IS(LS_TRANSPORT_MPI, "mpi")
typedef enum ls_transport_kind { ls_transport_kind_words(LS_CHOICE_VALUE) } ls_transport_kind;

#define ls_executor_kind_words(IS)                                                                 \
    IS(LS_EXECUTOR_LANES, "lanes") IS(LS_EXECUTOR_SEQUENTIAL, "sequential")
typedef enum ls_executor_kind { ls_executor_kind_words(LS_CHOICE_VALUE) } ls_executor_kind;

#define ls_overlap_kind_words(IS)                                                                  \
    IS(LS_OVERLAP_AUTO, "auto") IS(LS_OVERLAP_ON, "on") IS(LS_OVERLAP_OFF, "off")
typedef enum ls_overlap_kind { ls_overlap_kind_words(LS_CHOICE_VALUE) } ls_overlap_kind;

#define ls_bind_kind_words(IS)                                                                     \
    IS(LS_BIND_AUTO, "auto") IS(LS_BIND_ON, "on") IS(LS_BIND_OFF, "off")
typedef enum ls_bind_kind { ls_bind_kind_words(LS_CHOICE_VALUE) } ls_bind_kind;

/* auto: decided before a run begins (perf/mesh_search.h). */
#define ls_mesh_kind_words(IS) IS(LS_MESH_GIVEN, "given") IS(LS_MESH_AUTO, "auto")
typedef enum ls_mesh_kind { ls_mesh_kind_words(LS_CHOICE_VALUE) } ls_mesh_kind;

/* The order of a pipeline's micro-batches (share/schedule.h). */
#define ls_pipe_kind_words(IS)                                                                     \
    IS(LS_PIPE_1F1B, "1f1b") IS(LS_PIPE_GPIPE, "gpipe") IS(LS_PIPE_INTERLEAVED, "interleaved")     \
    IS(LS_PIPE_ZB_H1, "zb-h1") IS(LS_PIPE_ZB_V, "zb-v")
typedef enum ls_pipe_kind { ls_pipe_kind_words(LS_CHOICE_VALUE) } ls_pipe_kind;

#define ls_accumulate_kind_words(IS) IS(LS_ACCUMULATE_LATE, "late") IS(LS_ACCUMULATE_EARLY, "early")
typedef enum ls_accumulate_kind { ls_accumulate_kind_words(LS_CHOICE_VALUE) } ls_accumulate_kind;

#define ls_state_kind_words(IS) IS(LS_STATE_MEMORY, "memory") IS(LS_STATE_FILE, "file") IS(LS_STATE_DEVICE, "device")
typedef enum ls_state_kind { ls_state_kind_words(LS_CHOICE_VALUE) } ls_state_kind;

#define ls_device_link_words(IS)                                                                   \
    IS(LS_DEVICE_LINK_AUTO, "auto") IS(LS_DEVICE_LINK_HOST, "host")                                \
    IS(LS_DEVICE_LINK_PEERS, "peers") IS(LS_DEVICE_LINK_NCCL, "nccl")
typedef enum ls_device_link { ls_device_link_words(LS_CHOICE_VALUE) } ls_device_link;

#define ls_fit_kind_words(IS) IS(LS_FIT_OFF, "off") IS(LS_FIT_AUTO, "auto")
typedef enum ls_fit_kind { ls_fit_kind_words(LS_CHOICE_VALUE) } ls_fit_kind;

/* How workers share what they learn. */
#define ls_sync_mode_words(IS)                                                                     \
    IS(LS_SYNC_ALL_REDUCE, "all_reduce") IS(LS_SYNC_LOCAL, "local") IS(LS_SYNC_DILOCO, "diloco")   \
    IS(LS_SYNC_ASYNC, "async") IS(LS_SYNC_GOSSIP, "gossip") IS(LS_SYNC_SSP, "ssp")
typedef enum ls_sync_mode { ls_sync_mode_words(LS_CHOICE_VALUE) } ls_sync_mode;

/* Which replicas mix in a round of gossip, and how (share/mixing.h). */
#define ls_sync_graph_words(IS)                                                                    \
    IS(LS_GRAPH_EXPONENTIAL, "exponential") IS(LS_GRAPH_RING, "ring") IS(LS_GRAPH_TORUS, "torus")  \
    IS(LS_GRAPH_RANDOM, "random")
typedef enum ls_sync_graph { ls_sync_graph_words(LS_CHOICE_VALUE) } ls_sync_graph;

#define ls_sync_algorithm_words(IS) IS(LS_GOSSIP_DPSGD, "dpsgd") IS(LS_GOSSIP_SGP, "sgp")
typedef enum ls_sync_algorithm { ls_sync_algorithm_words(LS_CHOICE_VALUE) } ls_sync_algorithm;

#define ls_outer_kind_words(IS)                                                                    \
    IS(LS_OUTER_NESTEROV, "nesterov") IS(LS_OUTER_SGD, "sgd") IS(LS_OUTER_ADAMW, "adamw")
typedef enum ls_outer_kind { ls_outer_kind_words(LS_CHOICE_VALUE) } ls_outer_kind;

/* How replicas' Deltas are sent. */
#define ls_deltas_kind_words(IS)                                                                   \
    IS(LS_DELTAS_F32, "f32") IS(LS_DELTAS_BF16, "bf16") IS(LS_DELTAS_INT8, "int8")                 \
    IS(LS_DELTAS_INT4, "int4")
typedef enum ls_deltas_kind { ls_deltas_kind_words(LS_CHOICE_VALUE) } ls_deltas_kind;

/* auto: decided before a run begins (perf/choose_code.h). */
#define ls_compress_kind_words(IS)                                                                 \
    IS(LS_COMPRESS_OFF, "none") IS(LS_COMPRESS_WITH_TOPK, "topk")                                  \
    IS(LS_COMPRESS_WITH_ONEBIT, "onebit") IS(LS_COMPRESS_WITH_INT8, "int8")                        \
    IS(LS_COMPRESS_WITH_INT4, "int4") IS(LS_COMPRESS_WITH_POWERSGD, "powersgd")                    \
    IS(LS_COMPRESS_AUTO, "auto")
typedef enum ls_compress_kind { ls_compress_kind_words(LS_CHOICE_VALUE) } ls_compress_kind;

#define ls_compress_send_words(IS)                                                                 \
    IS(LS_COMPRESS_SEND_AUTO, "auto") IS(LS_COMPRESS_SEND_CODES, "codes")                          \
    IS(LS_COMPRESS_SEND_VALUES, "values")
typedef enum ls_compress_send { ls_compress_send_words(LS_CHOICE_VALUE) } ls_compress_send;

#define ls_config_balance_words(IS) IS(LS_BALANCE_AUTO, "auto") IS(LS_BALANCE_OFF, "off")
typedef enum ls_config_balance { ls_config_balance_words(LS_CHOICE_VALUE) } ls_config_balance;

#define ls_config_best_words(IS) IS(LS_BEST_AUTO, "auto") IS(LS_BEST_OFF, "off") IS(LS_BEST_ON, "on")
typedef enum ls_config_best { ls_config_best_words(LS_CHOICE_VALUE) } ls_config_best;

/* clang-format on */

#endif
