/* config.h - what a run is: every setting, its default, its limits and its meaning.
 *
 * One table (keys.c) holds key, type, default, limits and help; this reader, the writer of the
 * resolved config (writer.h), `lockstep help config` and the man page (help.h) all come from it. An
 * unknown key is an error that names the file, the line and the nearest known key. What must hold
 * between keys: relations.h.
 */
#ifndef LS_CONFIG_CONFIG_H
#define LS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"

enum { LS_AUTO = -1 };           /* value of a number that is set to "auto" */
enum { LS_CONFIG_TEXT = 1024 };  /* longest text value, with its 0 */
enum { LS_CONFIG_TREE = 65536 }; /* the same of a list, and of a tree */

/* Texts of a config are set by ls_intern() (base/intern.h) and never NULL, so that a config is small
 * and copies of it need no care. */

/* A list or a map of anything (ls_yaml_parse_tree() parses it), and where it stands. */
typedef struct ls_config_tree {
    const char *text; /* "": the key is not set */
    char file[64];    /* without directories; "--set" */
    int line;
} ls_config_tree;
#define LS_CONFIG_NO_TREE ((ls_config_tree){.text = ""})

/* An amount of training, in one of these units; n LS_AUTO, in steps: the usual one. */
typedef enum ls_span_unit { LS_SPAN_STEPS, LS_SPAN_SAMPLES, LS_SPAN_EPOCHS } ls_span_unit;
typedef struct ls_config_span {
    double n;
    int64_t unit; /* an ls_span_unit */
} ls_config_span;

/* The steps from `step` on have `batch` samples each (phases.h). */
enum { LS_CONFIG_PHASES = 16 };
typedef struct ls_config_phase {
    int64_t step, batch;
} ls_config_phase;

/* networks/network.h makes them. */
typedef enum ls_model_kind {
    LS_MODEL_GPT2,
    LS_MODEL_LLAMA,
    LS_MODEL_MLP,
    LS_MODEL_CNN,
    LS_MODEL_RESNET,
    LS_MODEL_VIT,
    LS_MODEL_FACTORS,
    LS_MODEL_TWO_TOWERS,
    LS_MODEL_DLRM,
    LS_MODEL_WIDE_DEEP,
    LS_MODEL_LAYERS,
    LS_MODEL_PROGRAM /* a model of a program that was built with the library (own.h) */
} ls_model_kind;

typedef enum ls_norm_kind { LS_NORM_GROUP, LS_NORM_BATCH } ls_norm_kind;
typedef enum ls_head_kind { LS_HEAD_TIED, LS_HEAD_OWN } ls_head_kind;
typedef enum ls_router_scope { LS_ROUTERS_EACH, LS_ROUTERS_ALL } ls_router_scope;
typedef enum ls_bias_kind {
    LS_BIAS_NONE,
    LS_BIAS_QKV,       /* queries, keys and values have one */
    LS_BIAS_ATTENTION, /* and of attention's output */
    LS_BIAS_MLP,
    LS_BIAS_ALL
} ls_bias_kind;
typedef enum ls_rope_kind { LS_ROPES_DEFAULT, LS_ROPES_LINEAR, LS_ROPES_LLAMA3 } ls_rope_kind;
typedef enum ls_reduce_order { LS_REDUCE_TREE, LS_REDUCE_FASTEST } ls_reduce_order;
typedef enum ls_transport_kind {
    LS_TRANSPORT_AUTO,
    LS_TRANSPORT_SHM,
    LS_TRANSPORT_THREAD,
    LS_TRANSPORT_TCP,
    LS_TRANSPORT_MPI
} ls_transport_kind;
typedef enum ls_fit_kind { LS_FIT_OFF, LS_FIT_AUTO } ls_fit_kind;
typedef enum ls_executor_kind { LS_EXECUTOR_LANES, LS_EXECUTOR_SEQUENTIAL } ls_executor_kind;
typedef enum ls_compute_kind { LS_COMPUTE_F32, LS_COMPUTE_BF16, LS_COMPUTE_F16 } ls_compute_kind;
typedef enum ls_reduce_kind {
    LS_REDUCE_AUTO,
    LS_REDUCE_F32,
    LS_REDUCE_BF16,
    LS_REDUCE_F16
} ls_reduce_kind;
typedef enum ls_accumulate_kind { LS_ACCUMULATE_LATE, LS_ACCUMULATE_EARLY } ls_accumulate_kind;
typedef enum ls_state_kind { LS_STATE_MEMORY, LS_STATE_FILE } ls_state_kind;
typedef enum ls_overlap_kind { LS_OVERLAP_AUTO, LS_OVERLAP_ON, LS_OVERLAP_OFF } ls_overlap_kind;

enum { LS_CONFIG_MOST_PIPE = 256 }; /* workers of a pipeline */
typedef enum ls_mesh_kind {
    LS_MESH_GIVEN,
    LS_MESH_AUTO /* decided before a run begins (perf/mesh.h) */
} ls_mesh_kind;
typedef enum ls_pipeline_kind { /* as in plan/schedule.h */
                                LS_PIPELINE_1F1B,
                                LS_PIPELINE_GPIPE,
                                LS_PIPELINE_INTERLEAVED,
                                LS_PIPELINE_ZB_H1,
                                LS_PIPELINE_ZB_V
} ls_pipeline_kind;

typedef enum ls_optimizer_kind {
    LS_OPTIMIZER_ADAMW,
    LS_OPTIMIZER_ADAM,
    LS_OPTIMIZER_SGD,
    LS_OPTIMIZER_LION,
    LS_OPTIMIZER_ADAGRAD,
    LS_OPTIMIZER_SCHEDULE_FREE,
    LS_OPTIMIZER_LARS,
    LS_OPTIMIZER_LAMB,
    LS_OPTIMIZER_ADAFACTOR,
    LS_OPTIMIZER_MUON,
    LS_OPTIMIZER_SOAP,
    LS_OPTIMIZER_ONEBIT_ADAM,
    LS_OPTIMIZER_ONEBIT_LAMB,
    LS_OPTIMIZER_ROWWISE_ADAGRAD
} ls_optimizer_kind;
typedef enum ls_schedule_kind {
    LS_SCHEDULE_COSINE,
    LS_SCHEDULE_LINEAR,
    LS_SCHEDULE_CONSTANT,
    LS_SCHEDULE_STEP,
    LS_SCHEDULE_WSD /* warm-up, stable, decay */
} ls_schedule_kind;
typedef enum ls_scale_kind { LS_SCALE_OFF, LS_SCALE_LINEAR, LS_SCALE_SQRT } ls_scale_kind;
/* The words from `tokens` on are names of formats of files (source/source.h). */
typedef enum ls_data_kind { LS_DATA_AUTO, LS_DATA_TEXT, LS_DATA_CHAT, LS_DATA_TOKENS } ls_data_kind;
typedef enum ls_chat_kind { /* as in chat/spans.h */
                            LS_CHAT_OF_ASSISTANT,
                            LS_CHAT_OF_ALL,
                            LS_CHAT_OF_COMPLETION
} ls_chat_kind;
typedef enum ls_train_loss { LS_TRAIN_LOSS_AUTO, LS_TRAIN_LOSS_DPO } ls_train_loss;
typedef enum ls_dpo_kind { /* as in layers/layers.h */
                           LS_DPO_OF_SIGMOID,
                           LS_DPO_OF_IPO,
                           LS_DPO_OF_HINGE
} ls_dpo_kind;
typedef enum ls_order_kind { LS_ORDER_AUTO, LS_ORDER_GLOBAL, LS_ORDER_BLOCKS } ls_order_kind;
typedef enum ls_missing_kind { /* as ls_missing (source/source.h) */
                               LS_MISSING_KIND_REFUSE,
                               LS_MISSING_KIND_DROP,
                               LS_MISSING_KIND_MEAN
} ls_missing_kind;
typedef enum ls_documents_kind { LS_DOCUMENTS_APART, LS_DOCUMENTS_JOINED } ls_documents_kind;

typedef enum ls_damaged_kind { LS_DAMAGED_REFUSE, LS_DAMAGED_SKIP } ls_damaged_kind;
typedef enum ls_channels_kind { LS_CHANNELS_AUTO, LS_CHANNELS_1, LS_CHANNELS_3 } ls_channels_kind;
typedef enum ls_lists_kind { LS_LISTS_REFUSE, LS_LISTS_CUT } ls_lists_kind;
typedef enum ls_eval_weights { LS_EVAL_LAST, LS_EVAL_EMA } ls_eval_weights;
typedef enum ls_config_best { LS_BEST_AUTO, LS_BEST_OFF, LS_BEST_ON } ls_config_best;
/* How workers share what they learn (sync.mode). */
typedef enum ls_sync_mode {
    LS_SYNC_ALL_REDUCE,
    LS_SYNC_LOCAL,
    LS_SYNC_DILOCO,
    LS_SYNC_ASYNC,
    LS_SYNC_GOSSIP,
    LS_SYNC_SSP
} ls_sync_mode;
enum { LS_STALENESS_MOST = 16 };
/* How replicas' Deltas are sent (sync.deltas). */
typedef enum ls_deltas_kind {
    LS_DELTAS_F32,
    LS_DELTAS_BF16,
    LS_DELTAS_INT8,
    LS_DELTAS_INT4
} ls_deltas_kind;
/* Which replicas mix in a round of gossip, and how (plan/mixing.h). */
typedef enum ls_sync_graph {
    LS_GRAPH_EXPONENTIAL,
    LS_GRAPH_RING,
    LS_GRAPH_TORUS,
    LS_GRAPH_RANDOM
} ls_sync_graph;
typedef enum ls_sync_algorithm { LS_GOSSIP_DPSGD, LS_GOSSIP_SGP } ls_sync_algorithm;
typedef enum ls_outer_kind { LS_OUTER_NESTEROV, LS_OUTER_SGD, LS_OUTER_ADAMW } ls_outer_kind;
typedef enum ls_config_balance { LS_BALANCE_AUTO, LS_BALANCE_OFF } ls_config_balance;

/* Of lockstep/compress.h. */
typedef enum ls_compress_kind {
    LS_COMPRESS_OFF,
    LS_COMPRESS_WITH_TOPK,
    LS_COMPRESS_WITH_ONEBIT,
    LS_COMPRESS_WITH_INT8,
    LS_COMPRESS_WITH_INT4,
    LS_COMPRESS_WITH_POWERSGD,
    LS_COMPRESS_AUTO /* decided before a run begins (perf/choose_code.h) */
} ls_compress_kind;

typedef enum ls_compress_send {
    LS_COMPRESS_SEND_AUTO,
    LS_COMPRESS_SEND_CODES,
    LS_COMPRESS_SEND_VALUES
} ls_compress_send;

typedef struct ls_config_optim {
    int64_t optimizer;   /* an ls_optimizer_kind */
    int64_t freeze_step; /* onebit: steps with gradients in full */
    double lr, min_lr;
    int64_t scale_lr;    /* an ls_scale_kind */
    int64_t scale_batch; /* the batch that lr is for; 0: not set */
    ls_config_span warmup;
    int64_t schedule; /* an ls_schedule_kind */
    double decay_fraction;
    int64_t step_every;
    double step_factor;
    double beta1, beta2, eps, momentum, weight_decay, lr_decay;
    int64_t nesterov;                  /* 1: on */
    double ema;                        /* factor of the weights' old average; 0: none */
    const char *groups;                /* groups.h */
    double clip;                       /* largest norm of the gradient; 0: off */
    double loss_scale, loss_scale_min; /* in f16: the initial and the lowest factor of the loss */
    int64_t loss_scale_window, loss_scale_hysteresis;
} ls_config_optim;

/* The values of a program's own keys (own.h). */
enum { LS_OWN_NUMBERS = 32, LS_OWN_TEXTS = 8 };
typedef union ls_own_number {
    int64_t integer;
    double real;
} ls_own_number;
typedef struct ls_config_own {
    ls_own_number numbers[LS_OWN_NUMBERS];
    const char *texts[LS_OWN_TEXTS];
} ls_config_own;

/* How a key came to its value (needs.h). */
enum { LS_CONFIG_MOST_KEYS = 256 };
enum {
    LS_NOT_WRITTEN,
    LS_WRITTEN,          /* in the file, or by --set */
    LS_WRITTEN_AND_ACTS, /* in the file, in which it acts */
    LS_SAVED             /* in a file that has most keys: the program wrote it */
};

typedef struct ls_config {
    unsigned char written[LS_CONFIG_MOST_KEYS]; /* by place in the table of keys */
    struct {
        int64_t kind; /* an ls_model_kind */
        int64_t layers, width, heads, context, vocab;
        const char *from;                /* a published model's file or directory */
        const char *adapter;             /* a directory of peft's form; "": none */
        int64_t kv_heads, head_dim, ffn; /* 0: the usual number */
        int64_t rope;                    /* an ls_rope_kind */
        double rope_base, rope_factor, rope_low, rope_high;
        int64_t rope_original;
        double norm_eps;
        int64_t window;  /* 0: none */
        int64_t bias;    /* an ls_bias_kind */
        int64_t qk_norm; /* 1: on */
        int64_t experts, experts_per_token, shared_experts;
        int64_t norm_topk; /* 0: on */
        double router_aux_loss, router_bias_rate, expert_capacity;
        int64_t router_aux_scope; /* an ls_router_scope */
        int64_t head;             /* an ls_head_kind */
        const char *hidden;       /* widths of layers, one a line; "": the kind's */
        const char *bottom;       /* the same of a DLRM's layers for numbers */
        const char *channels;     /* the same of stages */
        int64_t norm;             /* an ls_norm_kind */
        int64_t blocks, patch;
        double dropout;
        ls_config_tree input; /* the fields of a sample that it reads; "": those of the data */
        int64_t classes;      /* 0: those of the data */
        ls_config_tree list;  /* model.layers of the kind `layers` */
        ls_config_tree loss, metrics;
        int64_t sparse;                     /* 1: on */
        int64_t filter_freq, steps_to_live; /* of its rows; 0: off */
        const char *sample_weight;          /* a field; "": samples have no weights */
    } model;
    struct {
        const char *path; /* files or patterns, one per line (data/files.h) */
        int64_t format;   /* an ls_data_kind, or a later word of the key's choices */
        const char *labels, *val_path, *val_labels;
        double val_fraction;       /* part that is held out: of tokens the end */
        int64_t folds, fold;       /* folds 0: none */
        int64_t damaged;           /* an ls_damaged_kind */
        int64_t missing;           /* an ls_missing_kind */
        ls_config_tree missing_by; /* data.missing as a map of columns; "": one for all */
        ls_config_tree csv;        /* the form of CSV files; "": it is found */
        const char *columns;       /* names, one a line; "": all */
        const char *na;            /* more texts that stand for missing values, one a line */
        int64_t documents;         /* of a text: an ls_documents_kind */
        const char *separator;     /* between documents of a file; "": none */
        const char *text;          /* the member of JSON objects that has the text; "": the usual */
        int64_t lists;             /* an ls_lists_kind */
        const char *template;      /* a file; "": the model's */
        int64_t loss;              /* an ls_chat_kind */
        int64_t packing;           /* 1: on */
        const char *cache;         /* a directory; "": the user's */
        double cache_gb;           /* of scaled pixels in the cache, at most */
        int64_t threads;           /* threads of a worker that read samples; LS_AUTO */
        int64_t order;             /* an ls_order_kind */
        int64_t block, window;     /* samples; blocks (data/order.h) */
        const char *mix;           /* several sources, with weights (storage/mixture.h) */
        const char *augment;       /* changes of images (source/augment.h) */
        ls_config_tree ratings;    /* columns of interactions (source/ratings.h) */
        ls_config_tree clicks;     /* columns of ids and numbers (source/clicks.h) */

        const char *resize, *crop; /* of images (source/fit.h) */
        int64_t channels;          /* an ls_channels_kind */
        int64_t exif;              /* 0: on */
        ls_config_tree normalize;  /* of pixels (networks/pixels.h); "": none */
    } data;
    struct {
        const char *from;   /* a run or checkpoint (storage/origin.h); "": random weights */
        const char *freeze; /* patterns of frozen parameters, one a line */
        int64_t loss;       /* an ls_train_loss */
        double epochs;      /* of which train.steps are made (storage/epochs.h); 0: of none */
        int64_t steps;      /* 0: not known yet, those of train.epochs */
        int64_t batch, micro_batch, virtual_workers, seed;
        ls_config_tree phased; /* train.batch as a list; "": all steps have the same batch */
        ls_config_phase phases[LS_CONFIG_PHASES]; /* [nphases] the same; `batch` is the largest */
        int64_t nphases;                          /* 0: one batch for all steps */
        int64_t noise_scale;                      /* 1: on */
        int64_t eval_every;                       /* steps; 0: only at the end */
        int64_t eval_weights;                     /* an ls_eval_weights */
        int64_t eval_samples;                     /* per evaluation; the last one takes all */
        int64_t patience; /* evaluations without a new lowest loss that end the run; 0: never */
        int64_t compute, reduce_dtype;            /* the enums above */
        const char *sample_prompts, *sample_file; /* one a line; a file */
        int64_t sample_tokens;
        double sample_temperature;
    } train;
    struct {
        int64_t rank; /* 0: no adapters */
        double alpha, dropout;
        int64_t rs, dora;    /* 1: on */
        const char *targets; /* one a line; "": PEFT's */
        const char *train;   /* patterns of what is trained as a whole, one a line */
    } lora;
    struct {
        int64_t loss; /* an ls_dpo_kind */
        double beta, label_smoothing;
    } dpo;
    ls_config_optim optim;
    struct {
        int64_t reduce, transport, executor, overlap; /* the enums above */
        int64_t threads;                              /* in each worker */
        double bucket_mb;
        int64_t zero, shard_group, accumulate, prefetch, fit;
        int64_t recompute; /* LS_AUTO until ls_fit_limit() or ls_fit_auto() */
        int64_t recompute_layers;
        int64_t optimizer_state;
        const char *state_dir;
        int64_t mesh;                              /* an ls_mesh_kind */
        int64_t mesh_data, mesh_pipe, mesh_tensor; /* workers; data 0: as many as there are */
        int64_t mesh_expert;
        int64_t expert_virtual; /* samples computed together; mesh_expert workers divide them */
        int64_t tensor_virtual; /* slices of products; mesh_tensor workers divide them */
        int64_t sequence;       /* 1: on: slices divide the rows between products, too */
        int64_t mesh_context;
        int64_t context_virtual; /* chunks of sequences; mesh_context workers divide them */
        int64_t schedule;        /* an ls_pipeline_kind */
        int64_t chunks;          /* stages of a worker of a pipeline */
        const char *stages;      /* names of the layers that begin stages, one a line */
        double whole_kb;         /* with zero 3, buckets up to this size are not sharded */
        double memory_limit_mb;  /* the most memory that a worker may need; 0: no limit */
        double timeout_s;        /* for each wait on another worker */
    } parallel;
    struct {
        int64_t mode;      /* an ls_sync_mode */
        int64_t replicas;  /* local, diloco, gossip: of the model, trained side by side */
        int64_t every;     /* steps between two synchronizations; 0: ls_config_sync_every() */
        int64_t graph;     /* an ls_sync_graph */
        int64_t algorithm; /* an ls_sync_algorithm */
        int64_t warmup;    /* steps after each of which the replicas are averaged */
        int64_t outer;     /* an ls_outer_kind */
        double outer_lr, outer_momentum;
        int64_t fragments;       /* parts of the model that are synchronized one after the other */
        int64_t delay;           /* steps from the sum of the Deltas to their use */
        int64_t deltas;          /* an ls_deltas_kind */
        double mixing;           /* this part of a replica's own parameters stays */
        int64_t servers;         /* 0: each worker serves a shard */
        int64_t copies;          /* async: of the shards, on hosts that can take over */
        int64_t delay_aware;     /* 1: on */
        int64_t staleness;       /* ssp: of the parameters that gradients are of, steps */
        int64_t staleness_drawn; /* 1: each from 0 to that */
    } sync;
    struct {
        int64_t kind; /* an ls_compress_kind */
        double ratio;
        int64_t block; /* 0: the kind's */
        int64_t rank;
        int64_t feedback; /* an ls_feedback (lockstep/compress.h) */
        int64_t warmup, min_size;
        int64_t send; /* an ls_compress_send */
        /* auto: files of measured speeds */
        const char *machine, *links;
    } compress;
    struct {
        double heartbeat_s;     /* a worker without a sign of life for longer is replaced */
        double stop_s;          /* a run that was asked to stop then abandons its step */
        double rejoin_s;        /* a host that finds no leader for this long exits */
        const char *membership; /* etcd://...; "": the first host leads */
        const char *etcd_run;   /* the run's name in etcd; "": that of its directory */
        const char *etcd_ca, *etcd_cert, *etcd_key;
        const char *etcd_user;
        int64_t audit;                    /* steps between audits; 0: none */
        double slow_limit;                /* a worker this many times slower is replaced; 0: none */
        int64_t backup_workers;           /* virtual workers that two workers compute */
        int64_t copies;                   /* copies of sharded state, on different hosts */
        int64_t balance;                  /* an ls_config_balance */
        int64_t min_workers, max_workers; /* max 0: one per virtual worker */
    } survival;
    struct {
        int64_t every;  /* steps; 0: only at the end */
        double minutes; /* between checkpoints; 0: only by steps */
        int64_t keep;   /* number of newest checkpoints */
        int64_t best;   /* an ls_config_best */
    } checkpoint;
    struct {
        int64_t every; /* steps between lines where the output is not a terminal */
    } log;
    ls_config_own own;
} ls_config;

void ls_config_defaults(ls_config *);

/* Sets the defaults, then reads the file. The caller applies --set and then calls
 * ls_config_check(). On failure *c_p is undefined. */
ls_status ls_config_read(const char *path, ls_config *c_p, ls_error *);

/* The warm-up; for `auto` a tenth of train.steps, at most 50. */
ls_config_span ls_config_warmup(const ls_config *);

/* Is the run trained on a text, which it encodes itself? Otherwise its data are samples of
 * files. */
bool ls_config_has_text(const ls_config *);
/* Are samples windows of model.context tokens? And are losses those of a token, as all are but
 * those of pairs? */
bool ls_config_has_tokens(const ls_config *);
bool ls_config_has_token_losses(const ls_config *);
/* Is it trained on conversations? Or on a text or these: a corpus (storage/corpus.h)? */
bool ls_config_has_chats(const ls_config *);
bool ls_config_has_corpus(const ls_config *);
/* Are samples made of interactions of users with items (data.ratings)? */
bool ls_config_has_ratings(const ls_config *);
/* Or of ids, numbers and clicks (data.clicks)? */
bool ls_config_has_clicks(const ls_config *);
/* Is a sample a pair of conversations, of which one is preferred (train.loss: dpo)? */
bool ls_config_has_pairs(const ls_config *);
/* Does the optimizer send signs of the momentum (onebit_adam, onebit_lamb)? */
bool ls_config_sends_momentum(const ls_config_optim *);
/* Are there replicas of the model that train apart (sync.mode local, diloco and gossip)? */
bool ls_config_has_replicas(const ls_config *);
/* Workers of a run, at most: each runs a virtual worker, or in a pipeline a part of one. */
int64_t ls_config_most_workers(const ls_config *);
/* Workers that have a model together: parallel.mesh pipe, tensor, context and expert, multiplied. */
int64_t ls_config_ranks(const ls_config *);
/* The largest parallel.mesh.expert of those whose product with a parallel.mesh.context is `workers`; 0:
 * there is none. Workers divide samples before chunks, and the product alone decides who has what. */
int64_t ls_config_expert_of(const ls_config *, int64_t workers);
/* Are gradients computed by processes that wait for no common step (sync.mode async and ssp)? */
bool ls_config_has_crew(const ls_config *);
/* Steps between two synchronizations of these. */
int64_t ls_config_sync_every(const ls_config *);
/* Has a sample several texts, with positions of their own? */
bool ls_config_has_positions(const ls_config *);
/* The positions of a sample: model.context; of a pair twice as many. */
int64_t ls_config_positions(const ls_config *);
/* What rates count: "tokens", or "samples"; and how many of them a sample is. */
const char *ls_config_unit(const ls_config *);
double ls_config_units(const ls_config *);
/* The name of the files' format; NULL: it is found by their names and contents. */
const char *ls_config_format(const ls_config *);

/* Applies one "key=value" of the command line. */
ls_status ls_config_set(ls_config *, const char *assignment, ls_error *);
/* on and true: 1; off and false: 0; another word: -1. */
int ls_config_truth(const char *word);

#endif
