/* config.h - what a run is: every setting, its default, its limits and its meaning.
 *
 * One table (keys.c) holds key, type, default, limits and help; this reader, the writer of the
 * resolved config (write_config.h), `lockstep help config` and the man page (key_help.h) all come
 * from it. An unknown key is an error that names the file, the line and the nearest known key. What
 * must hold between keys: relations.h.
 */
#ifndef LS_CONFIG_CONFIG_H
#define LS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"
#include "config/choices.h"
#include "lockstep/compress.h"

enum { LS_AUTO = -1 };           /* value of a number that is set to "auto" */
enum { LS_CONFIG_TEXT = 1024 };  /* longest text value, with its 0 */
enum { LS_CONFIG_TREE = 65536 }; /* the same of a list, and of a tree */

/* Texts of a config are set by ls_intern() (base/intern.h) and never NULL, so that a config is
 * small and copies of it need no care. */

/* A list or a map of anything (ls_yaml_parse_tree() parses it), and where it stands. */
typedef struct ls_config_tree {
    const char *text; /* "": the key is not set */
    char file[64];    /* without directories; "--set", "sets" */
    int line;
} ls_config_tree;
#define LS_CONFIG_NO_TREE ((ls_config_tree){.text = ""})

/* An amount of training; n LS_AUTO, in steps: the usual one. */
typedef struct ls_config_span {
    double n;
    ls_span_unit unit;
} ls_config_span;

/* The steps from `step` on have `batch` samples each (phases.h). */
enum { LS_CONFIG_PHASES = 16 };
typedef struct ls_config_phase {
    int64_t step, batch;
} ls_config_phase;

enum { LS_CONFIG_MOST_PIPE = 256 }; /* workers of a pipeline */
enum { LS_CONFIG_MOST_THREADS = 256 };
enum { LS_STALENESS_MOST = 16 };

typedef struct ls_config_optim {
    ls_optimizer_kind optimizer;
    int64_t freeze_step; /* onebit: steps with gradients in full */
    double lr, min_lr;
    ls_scale_kind scale_lr;
    int64_t scale_batch; /* the batch that lr is for; 0: not set */
    ls_config_span warmup;
    ls_schedule_kind schedule;
    double decay_fraction;
    int64_t step_every;
    double step_factor;
    double beta1, beta2, eps, momentum, weight_decay, lr_decay;
    ls_switch nesterov;
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
    LS_SAVED,            /* in a file that has most keys: the program wrote it */
    LS_FILLED_IN         /* by the program, since it was left out */
};

typedef struct ls_config {
    unsigned char written[LS_CONFIG_MOST_KEYS]; /* by place in the table of keys */
    struct {
        ls_model_kind kind;
        int64_t layers, width, heads, context, vocab;
        const char *from;                /* a published model's file or directory */
        const char *adapter;             /* a directory of peft's form; "": none */
        int64_t kv_heads, head_dim, ffn; /* 0: the usual number */
        ls_rope_kind rope;
        double rope_base, rope_factor, rope_low, rope_high, rope_scale, rope_local_base;
        int64_t rope_original;
        const char *rope_short, *rope_long; /* numbers, one a line */
        int64_t rope_dims;                  /* 0: whole heads */
        ls_switch rope_truncate;
        double norm_eps;
        int64_t window, full_attention_every, no_rope_every; /* 0: none */
        int64_t query_scalar;                                /* 0: the width of a head */
        ls_block_kind block;
        ls_bias_kind bias;
        ls_switch qk_norm;
        int64_t experts, experts_per_token, shared_experts;
        ls_switch norm_topk;
        double router_aux_loss, router_bias_rate, expert_capacity;
        ls_router_scope router_aux_scope;
        ls_head_kind head;
        const char *hidden;   /* widths of layers, one a line; "": the kind's */
        const char *bottom;   /* the same of a DLRM's layers for numbers */
        const char *channels; /* the same of stages */
        ls_norm_kind norm;
        int64_t blocks, patch;
        double dropout;
        ls_config_tree input; /* the fields of a sample that it reads; "": those of the data */
        int64_t classes;      /* 0: those of the data */
        ls_config_tree list;  /* model.layers of the kind `layers` */
        ls_config_tree loss, metrics;
        ls_switch sparse;
        int64_t filter_freq, steps_to_live; /* of its rows; 0: off */
        const char *sample_weight;          /* a field; "": samples have no weights */
    } model;
    struct {
        const char *path; /* files or patterns, one per line (data/files.h) */
        ls_data_kind format;
        const char *labels, *val_path, *val_labels;
        double val_fraction; /* part that is held out: of tokens the end */
        int64_t folds, fold; /* folds 0: none */
        ls_damaged_kind damaged;
        ls_missing missing;
        ls_config_tree missing_by;   /* data.missing as a map of columns; "": one for all */
        ls_config_tree csv;          /* the form of CSV files; "": it is found */
        const char *columns;         /* names, one a line; "": all */
        const char *na;              /* more texts that stand for missing values, one a line */
        ls_documents_kind documents; /* of a text */
        const char *separator;       /* between documents of a file; "": none */
        const char *text; /* the member of JSON objects that has the text; "": the usual */
        ls_lists_kind lists;
        const char *template; /* a file; "": the model's */
        ls_chat_loss loss;
        ls_switch packing;
        const char *cache; /* a directory; "": the user's */
        double cache_gb;   /* of scaled pixels in the cache, at most */
        int64_t threads;   /* threads of a worker that read samples; LS_AUTO */
        ls_order_kind order;
        int64_t block, window;  /* samples; blocks (data/order.h) */
        const char *mix;        /* several sources, with weights (dataset/mixture.h) */
        const char *augment;    /* changes of images (source/images/augment.h) */
        ls_config_tree ratings; /* columns of interactions (source/tables/ratings.h) */
        ls_config_tree clicks;  /* columns of ids and numbers (source/tables/clicks.h) */

        const char *resize, *crop; /* of images (source/images/fit.h) */
        ls_channels_kind channels;
        ls_switch exif;
        ls_config_tree normalize; /* of pixels (networks/pixels.h); "": none */
    } data;
    struct {
        const char *from;   /* a run or checkpoint (storage/origin.h); "": random weights */
        const char *freeze; /* patterns of frozen parameters, one a line */
        ls_train_loss loss;
        double epochs; /* of which train.steps are made (storage/epochs.h); 0: of none */
        int64_t steps; /* 0: not known yet, those of train.epochs */
        int64_t batch, micro_batch, virtual_workers, seed;
        ls_config_tree phased; /* train.batch as a list; "": all steps have the same batch */
        ls_config_phase phases[LS_CONFIG_PHASES]; /* [nphases] the same; `batch` is the largest */
        int64_t nphases;                          /* 0: one batch for all steps */
        ls_switch noise_scale;
        int64_t eval_every; /* steps; 0: only at the end */
        ls_eval_weights eval_weights;
        int64_t eval_samples; /* per evaluation; the last one takes all */
        int64_t patience;     /* evaluations without a new lowest loss that end the run; 0: never */
        ls_compute_kind compute;
        ls_reduce_kind reduce_dtype;
        const char *sample_prompts, *sample_file; /* one a line; a file */
        int64_t sample_tokens;
        double sample_temperature;
    } train;
    struct {
        int64_t rank; /* 0: no adapters */
        double alpha, dropout;
        ls_switch rs, dora;
        const char *targets; /* one a line; "": PEFT's */
        const char *train;   /* patterns of what is trained as a whole, one a line */
        const char *rank_pattern, *alpha_pattern; /* NAME=NUMBER, one a line */
    } lora;
    struct {
        ls_dpo_loss loss;
        double beta, label_smoothing;
    } dpo;
    ls_config_optim optim;
    struct {
        ls_reduce_order reduce;
        ls_transport_kind transport;
        ls_executor_kind executor;
        ls_overlap_kind overlap;
        int64_t threads; /* of a worker; LS_AUTO: ls_config_threads() */
        ls_bind_kind bind;
        double bucket_mb;
        int64_t zero, shard_group, prefetch;
        ls_accumulate_kind accumulate;
        ls_fit_kind fit;
        int64_t recompute; /* LS_AUTO until ls_fit_limit() or ls_fit_auto() */
        int64_t recompute_layers;
        ls_state_kind optimizer_state;
        const char *state_dir;
        ls_device_link device_link;
        const char *device; /* that runs the layers (device/device.h); "": the cores */
        ls_mesh_kind mesh;
        int64_t mesh_data, mesh_pipe, mesh_tensor; /* workers; data 0: as many as there are */
        int64_t mesh_expert;
        int64_t expert_virtual; /* samples computed together; mesh_expert workers divide them */
        int64_t tensor_virtual; /* slices of products; mesh_tensor workers divide them */
        ls_switch sequence;     /* on: slices divide the rows between products, too */
        int64_t mesh_context;
        int64_t context_virtual; /* chunks of sequences; mesh_context workers divide them */
        ls_pipe_kind schedule;
        int64_t chunks;         /* stages of a worker of a pipeline */
        const char *stages;     /* names of the layers that begin stages, one a line */
        double whole_kb;        /* with zero 3, buckets up to this size are not sharded */
        double memory_limit_mb; /* the most memory that a worker may need; 0: no limit */
        double timeout_s;       /* for each wait on another worker */
    } parallel;
    struct {
        ls_sync_mode mode;
        int64_t replicas; /* local, diloco, gossip: of the model, trained side by side */
        int64_t every;    /* steps between two synchronizations; 0: ls_config_sync_every() */
        ls_sync_graph graph;
        ls_sync_algorithm algorithm;
        int64_t warmup; /* steps after each of which the replicas are averaged */
        ls_outer_kind outer;
        double outer_lr, outer_momentum;
        int64_t fragments; /* parts of the model that are synchronized one after the other */
        int64_t delay;     /* steps from the sum of the Deltas to their use */
        ls_deltas_kind deltas;
        double mixing;   /* this part of a replica's own parameters stays */
        int64_t servers; /* 0: each worker serves a shard */
        int64_t copies;  /* async: of the shards, on hosts that can take over */
        ls_switch delay_aware;
        int64_t staleness;         /* ssp: of the parameters that gradients are of, steps */
        ls_switch staleness_drawn; /* on: each from 0 to that */
    } sync;
    struct {
        ls_compress_kind kind;
        double ratio;
        int64_t block; /* 0: the kind's */
        int64_t rank;
        ls_feedback feedback;
        int64_t warmup, min_size;
        ls_compress_send send;
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
        int64_t audit;          /* steps between audits; 0: none */
        double slow_limit;      /* a worker this many times slower is replaced; 0: none */
        int64_t backup_workers; /* virtual workers that two workers compute */
        int64_t copies;         /* copies of sharded state, on different hosts */
        ls_config_balance balance;
        int64_t min_workers, max_workers; /* max 0: one per virtual worker */
    } survival;
    struct {
        int64_t every;  /* steps; 0: only at the end */
        double minutes; /* between checkpoints; 0: only by steps */
        int64_t keep;   /* number of newest checkpoints */
        ls_config_best best;
    } checkpoint;
    struct {
        int64_t every; /* steps between lines where the output is not a terminal */
    } log;
    struct {
        ls_infer_activations activations; /* of products with weights in blocks (tensor/int8.h) */
    } infer;
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
/* Is it trained on conversations? Or on a text or these: a corpus (dataset/corpus.h)? */
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
/* The threads of each of `workers` workers on a host with so many cores: parallel.threads, or, with
 * auto, the cores divided among the workers; at least 1. The bits don't depend on it. */
int ls_config_threads(const ls_config *, int workers, int cores);
/* Are the threads of `workers` workers bound to the cores of a machine of so many NUMA nodes? With
 * auto only where memory may be far, and where no other run would have the cores, too. */
bool ls_config_binds(const ls_config *, int workers, int threads, int cores, int nodes);
/* The most workers whose threads have a core each, at least 1; with auto one per core. */
int ls_config_workers_on(const ls_config *, int cores);
/* Workers that have a model together: parallel.mesh pipe, tensor, context and expert,
 * multiplied. */
int64_t ls_config_ranks(const ls_config *);
/* The largest parallel.mesh.expert of those whose product with a parallel.mesh.context is
 * `workers`; 0: there is none. Workers divide samples before chunks, and the product alone decides
 * who has what. */
int64_t ls_config_expert_of(const ls_config *, int64_t workers);
/* Are gradients computed by processes that wait for no common step (sync.mode async and ssp)? */
bool ls_config_has_crew(const ls_config *);

/* Does a device run the layers? `auto` does not say, and is then replaced
 * (train/worker_device.h). */
bool ls_config_has_device(const ls_config *);
bool ls_config_device_is_auto(const ls_config *);
/* Steps between two synchronizations of these. */
int64_t ls_config_sync_every(const ls_config *);
/* After which step the model of a checkpoint of `steps` steps is: with gossip, where the replicas
 * had their latest mean, 0 if nowhere yet. */
int64_t ls_config_model_step(const ls_config *, int64_t steps);
/* Does a sample have several texts, each with its own positions? */
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

/* Keys that are set after a file. */
typedef struct ls_config_sets {
    const char *const *list; /* [n] each "key=value" */
    int n;
    const char *from; /* what messages call them: "--set", or the field of a program's options */
} ls_config_sets;
/* One after the other: of two that set the same, the later one counts. */
ls_status ls_config_set_all(ls_config *, const ls_config_sets *, ls_error *);
/* Is the key among them? */
bool ls_config_sets_key(const ls_config_sets *, const char *key);

/* The known key that may be meant by `name`; NULL: none is near (suggest.h). */
const char *ls_config_suggest_key(const char *name);

#endif
