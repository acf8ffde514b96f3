/* plan.h - one training step as a list of actions, made before the step runs.
 *
 * ls_plan_order_plain() lists Load, Forward and Backward of all workers. Passes then add what data
 * parallelism needs:
 *
 *   ls_plan_add_recompute()  computes activations again, so that fewer are saved for Backward
 *   ls_plan_add_messages()   in a pipeline, sends activations to the next stage and gradients back
 *   ls_plan_add_gathers()    gathers sharded parameters before they are used
 *   ls_plan_add_reduction()  sums gradients over virtual workers, bucket by bucket, after encoding
 *                            each of them where gradients are compressed
 *   ls_plan_add_update()     adds norm, clipping, AdamW, and sends new parameters to all workers
 *   ls_plan_add_frees()      ends the life of each transient buffer after its last use
 *
 * With islands (islands.c) a plan trains several replicas of its model side by side, and plans of
 * their own bring them together now and then (sync.c).
 *
 * exec.h runs the result, print.c writes it. Neither knows a strategy: that is in the passes.
 *
 * Invariants, checked by ls_plan_verify() after every pass:
 *  (1) One global order exists; each worker's lanes are restrictions of it (project.c).
 *  (2) A dependency is a use of the same buffer earlier in that order: all point backwards.
 *  (3) A communication is one action of all workers, of those of an island or a rank, or (Send) of
 *      two, with one number of bytes, which follows from its bucket or buffer, the config's dtype
 *      and its participants.
 *  (4) A buffer is written before it is read, and not touched after its Free. A transient buffer is
 *      freed before it is written anew, and before the plan ends.
 *  (5) Every sample runs forward and backward once. Every bucket is reduced once, after the last
 *      Backward that writes it on any worker; then each owner of a shard updates it once; then it
 *      is gathered once.
 * (1) and (2) exclude deadlock: the earliest unfinished action is at the head of its lane on all of
 * its workers.
 */
#ifndef LS_PLAN_PLAN_H
#define LS_PLAN_PLAN_H

#include "base/hash.h"
#include "base/mem.h"
#include "coll/algo/tree.h"
#include "lockstep/compress.h"
#include "model/model.h"
#include "optim/noise.h"
#include "optim/optimizer.h"
#include "plan/mixing.h"
#include "plan/schedule.h"

typedef enum ls_action_kind {
    LS_LOAD,      /* takes this step's samples from the loader */
    LS_FORWARD,   /* runs a layer on one micro-batch */
    LS_RECOMPUTE, /* runs Forward again, for what Backward needs */
    LS_BACKWARD,  /* runs a layer on one micro-batch, and adds to the gradient in `slot` */
    LS_SQUARES,   /* sums the squares of a virtual worker's gradient of one bucket */
    LS_ENCODE,    /* replaces a virtual worker's gradient of one bucket by what its code holds */
    LS_EXCHANGE, /* all workers: each gets the codes of a bucket that it decodes, or sums of factors */
    LS_DECODE, /* sums what the codes of all virtual workers hold, in the worker's part */
    LS_ADD,    /* gradient slot += slot `from`, for one bucket: a fold of the tree */
    LS_DELTA,  /* gradient slot = common parameters - those of the virtual worker's replica */
    LS_COPY,   /* gradient slot 0 = common parameters, which an Update mixes into replicas */
    LS_MIX,    /* gradient slot 0 of a replica (+)= the weighted parameters of a replica */
    LS_REDUCE_SCATTER, /* all workers: the owner of each shard of a bucket sums it */
    LS_NORM,           /* sums the squares of the worker's shards */
    /* all workers: each gets the sum of a bucket (among replicas: of the shard), or (LS_SCALARS) of
     * norms and losses */
    LS_ALL_REDUCE,
    LS_UPDATE,     /* runs the optimizer on the part of a bucket that the worker owns */
    LS_ALL_GATHER, /* all workers: each gets the parameters of all shards of a bucket */
    LS_SEND,       /* two workers: `worker` sends what is in a buffer to `peer` */
    LS_TAKE,       /* gradient slot = what another stage has sent, where only that one writes */
    LS_FREE,       /* ends the life of a buffer: other buffers may take its memory */
    LS_NACTION_KINDS
} ls_action_kind;

typedef enum ls_lane { LS_LANE_COMPUTE, LS_LANE_COMM, LS_NLANES } ls_lane;

enum { LS_ALL_WORKERS = -1, LS_SCALARS = -1 };

/* Replicas of the model that are trained side by side, at most. */
enum { LS_PLAN_MAX_ISLANDS = LS_MIXING_MOST };

/* What a plan does. Plans without islands only train. */
typedef enum ls_plan_task {
    LS_TASK_TRAIN,
    LS_TASK_OUTER, /* the outer optimizer changes the common parameters by the mean Delta */
    LS_TASK_ADOPT, /* each replica takes the common parameters over, or a part of them */
    LS_TASK_MEAN,  /* the common parameters become the mean of the replicas */
    LS_TASK_MIX,   /* each replica becomes a mean of some of the replicas (mixing.h) */
    LS_NTASKS
} ls_plan_task;

/* Does the task change the common parameters? */
static inline bool ls_task_is_common(ls_plan_task t) {
    return t == LS_TASK_OUTER || t == LS_TASK_MEAN;
}

/* The workers that communicate with each other. Consecutive workers form sharding groups of
 * `shards` workers; a sharding group has one copy of what is sharded. Replicas are the workers, one
 * of each sharding group, that have the same shard. In a pipeline, the workers with the same stages are a
 * sharding group. */
typedef enum ls_axis {
    LS_AXIS_ALL,
    LS_AXIS_SHARDS,
    LS_AXIS_REPLICAS,
    LS_AXIS_ISLAND, /* the workers of one island */
    LS_AXIS_STAGE   /* the workers that have the same stages */
} ls_axis;

/* Where gradients are compressed, and codes are sent: the steps in which an action runs. */
typedef enum ls_phase {
    LS_PHASE_ALL,
    LS_PHASE_VALUES, /* the warm-up: gradients are sent */
    LS_PHASE_CODES   /* all later steps */
} ls_phase;

/* The workers from, from + step ... below `to`. */
typedef struct ls_worker_set {
    int from, to, step;
} ls_worker_set;

static inline int ls_worker_set_count(ls_worker_set w) {
    return (w.to - w.from + w.step - 1) / w.step;
}
static inline bool ls_worker_set_has(ls_worker_set w, int worker) {
    return worker >= w.from && worker < w.to && (worker - w.from) % w.step == 0;
}

typedef struct ls_action {
    ls_action_kind kind;
    int worker; /* or LS_ALL_WORKERS */
    /* Forward, Recompute, Backward, Squares, Encode: virtual worker, micro-batch (-1: all of them) */
    int vw, micro;
    int layer; /* Forward, Recompute, Backward */
    /* Backward, Squares, Encode: the sum; Add: the lower of the two; reduction of a round: its
     * result */
    int slot;
    int from;     /* Add: the higher of the two */
    int chunk;    /* Add: of the sums; -1: they are of two chunks */
    bool summed;  /* Add: adds sums over all workers, in the worker's shard */
    int round;    /* communication: the round, where each round is reduced; Encode, Exchange: the
                       factor, 0 or 1, where there are two */
    ls_back back; /* Backward: of what it computes the gradients (schedule.h) */
    bool start;   /* Backward: the slot's chains start at 0; Encode: the virtual worker's first */
    bool last;    /* Backward: the last micro-batch of the virtual worker;
                       Encode (of factors, Decode): its last, which completes errors */
    int term;     /* Mix: which of the replicas in each mix, from 0 */
    int bucket;   /* Squares, Encode, Add, ReduceScatter, AllReduce (or LS_SCALARS), Update,
                       AllGather */
    int buffer;   /* Free, Send; Take: what was received */
    ls_axis axis; /* communication: among which workers */
    int island;   /* with LS_AXIS_ISLAND: of which island; Mix: whose parameters are added; Send in
                       a plan of Mix: for whose mix */
    ls_worker_set of; /* with LS_AXIS_ISLAND or LS_AXIS_STAGE: among these */
    int peer;         /* Send: who receives; Take: who has sent */
    int64_t nbytes;   /* communication: bytes that a worker reads from others, the mean of all */
    ls_phase phase;
} ls_action;

typedef struct ls_bucket {
    size_t first, end;  /* floats of the flat gradient; multiples of LS_BLOCK */
    int opener, writer; /* the first and the last layer in the order of Backward that write it */
    int island;         /* whose parameters these are; with islands 0: the common parameters */
    int rank;           /* in a mesh: of the workers that sum and update it, the first rank */
    int chunk; /* the chunk whose layers alone have parameters of it; -1: those of all chunks do */
    bool shared; /* in a mesh: layers of several ranks have parameters of it */
} ls_bucket;

/* How gradients are compressed before they are summed (docs/design/replicas.md). Each virtual
 * worker's gradient is encoded by itself, piece by piece. What an encoding loses is an error that
 * the virtual worker adds to its next gradient. */
typedef struct ls_plan_compress {
    bool on;
    ls_compression how; /* virtual_workers and step are not used */
    int64_t warmup;     /* the first step that is compressed */
    size_t min_count;   /* parameters with fewer elements are summed as they are */
    bool codes;         /* codes are sent instead of gradients, where that is possible */
    /* above 0: in place of its gradient g, each virtual worker encodes its part of the new first
     * moment m, momentum m/V + (1 - momentum) g; the optimizer gets the sum. Nothing is clipped */
    double momentum;
} ls_plan_compress;

/* A part of one parameter, in one bucket, that is encoded by itself. Pieces are cut at multiples of
 * a fixed size from the end of the flat gradient, so they depend on the config alone. */
typedef struct ls_plan_piece {
    size_t first, end; /* floats of the flat gradient */
    size_t cols;       /* of the parameter as a matrix */
    bool plain;        /* it is summed as it is */
    size_t code_at;    /* bytes: where its code is in that of the bucket */
    size_t code_nbytes;
    /* of a matrix that is sent as two factors, which is one piece: where the second factor is in
     * those of the model, floats; code_at is that of the first */
    size_t factor_at, nfactor;
} ls_plan_piece;

/* Limits of a plan. CALLS: Forward and Backward of layers, by all workers. */
enum { LS_PLAN_MAX_BUCKETS = 4096, LS_PLAN_MAX_CALLS = 1 << 25 };

typedef struct ls_plan_config {
    const ls_model *model; /* outlives the plan */
    int nworkers, V;       /* nworkers <= V */
    /* [nworkers + 1] outlives the plan: worker w runs virtual workers [first[w], first[w + 1]), at
     * least one. Needs one sharding group, and no `early`. NULL: even ranges */
    const int *first;
    int64_t batch;       /* samples; V divides it */
    int64_t micro_batch; /* samples, <= batch / V; the last of a virtual worker may be smaller */
    bool tree;           /* sum in tree order; else in an order that depends on nworkers */
    size_t bucket_nbytes;
    /* what is sharded among workers: 0 nothing, 1 moments, 2 gradients too, 3 parameters too; as in
     * Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
     * SC 2020 */
    int zero;
    int recompute;        /* layers of a segment, whose input alone is saved; 0: all layers save */
    int recompute_layers; /* layers in segments, from the first block on; 0: all */
    /* reduce gradients after each round, in which every worker runs one virtual worker, instead of
     * after the last: takes less memory, sends more; needs zero 2 or 3 */
    bool early;
    int prefetch;        /* zero 3: layers before its use at which a parameter is gathered */
    size_t whole_nbytes; /* zero 3: parameters of buckets up to this size are not sharded */
    int shards;          /* workers of a sharding group; divides nworkers; 0: all */
    ls_dtype compute;    /* of parameters and activations: LS_F32, or 16 bits beside f32 masters */
    ls_dtype reduce;     /* of gradients, in memory and on the wire */
    ls_optim optim;      /* ngroups 0: ls_optim_usual() */
    ls_plan_compress compress; /* needs `tree`, and reduce LS_F32 */
    bool noise;                /* measure the gradient noise scale (optim/noise.h); needs `tree` */
    /* Replicas of the model, each trained by an island: workers that run V / islands virtual
     * workers in a row. 0: the model is one. */
    int islands;
    ls_plan_task task;
    size_t part_first, part_end; /* of the model's floats, those that Outer and Adopt concern */
    ls_plan_compress deltas;     /* how Outer encodes Deltas; as `compress` */
    bool averages;               /* Outer: the replicas are averaged, whatever optim.outer is */
    double mixing;               /* Adopt: this part of a replica's own parameters stays */
    bool gossips;                /* the islands are mixed: workers have room for what arrives */
    const ls_mixing *mix;        /* Mean, Mix: outlives the plan */
    int pipe;                    /* workers of a pipeline; divides nworkers; 0, 1: none */
    int tensor;  /* workers that divide the slices of each layer (ls_model.nslices); 0, 1: none */
    int context; /* workers that divide the chunks of each sample (ls_model.nchunks); 0, 1: none */
    int chunks;  /* stages of a worker; 0: 1 */
    ls_pipe_kind schedule;
    const int *stages; /* [pipe * chunks - 1] outlives the plan: the first layers of all stages but
                           the first; NULL: stages of about the same work */
} ls_plan_config;

/* What a layer computes, for a layer of another rank. */
typedef struct ls_crossing {
    int reader; /* the first layer that reads it: its Backward completes the gradient; -1: none */
    bool is;    /* it is of another rank */
} ls_crossing;

typedef struct ls_plan {
    ls_plan_config c;
    int nslots; /* gradient sums of a worker, at most */
    int nsums;  /* sums over all workers of a worker's shards, at most; 1 without `early` */
    ls_bucket *buckets;
    int nbuckets; /* in the order in which Backward fills them */
    size_t *cuts; /* [nbuckets][shards + 1] where shards of buckets begin, in a model with whole
                     parameters (ls_param); NULL: even cuts */
    int *touched, *touched_from; /* see ls_plan_touched() */
    ls_plan_piece *pieces;       /* see ls_plan_pieces() */
    int *pieces_from;
    int *ranges; /* with islands: c.first */
    /* In a mesh of several ranks (stages.c): */
    int *stage_of;          /* [nlayers] */
    ls_crossing *crossings; /* [nlayers] */
    /* [owners][nchunks][nbuckets], with several ranks or chunks: */
    int *openers;  /* see ls_plan_opens(); -1: its layers do not write it */
    int *closers;  /* see ls_plan_closes() */
    size_t *parts; /* [ranks][nbuckets][2] see ls_plan_touched_part() */
    size_t
        *ends; /* [nends] where buckets end because other workers have what follows, descending */
    int nends;
    int in_flight; /* micro-batches whose activations a worker has at one time, at most; else 1 */
    int ninbox;    /* gradients that another stage has sent and that wait, of a bucket, at most */
    ls_action *actions;
    int nactions, capacity;
} ls_plan;

/* Runs all passes, and the verifier after each. */
ls_status ls_plan_make(const ls_plan_config *, ls_plan *p_p, ls_error *);
/* A plan in which each virtual worker of this one has a worker, with all of the model: for one of
 * them alone (exec/solo.h). */
ls_status ls_plan_solo(const ls_plan *, ls_plan *solo_p, ls_error *);
void ls_plan_free(ls_plan *);

/* The passes. */
void ls_plan_cut_buckets(ls_plan *);
void ls_plan_cut_pieces(ls_plan *);
/* Appends the Exchange of a bucket, then its Decodes: all codes go to those who decode them. */
void ls_plan_add_exchange(ls_plan *, int bucket);
void ls_plan_order_outer(ls_plan *);
void ls_plan_order_adopt(ls_plan *);
void ls_plan_order_mix(ls_plan *);
/* apart: in a pipeline, every worker keeps passes of virtual workers apart (order.c). */
void ls_plan_order_plain(ls_plan *, bool apart);
void ls_plan_add_recompute(ls_plan *);
ls_status ls_plan_add_messages(ls_plan *, ls_error *);
void ls_plan_add_gathers(ls_plan *);
void ls_plan_add_reduction(ls_plan *);
void ls_plan_add_update(ls_plan *);
void ls_plan_add_frees(ls_plan *);

typedef enum ls_plan_stage {
    LS_STAGE_ORDER,
    LS_STAGE_REDUCTION,
    LS_STAGE_UPDATE,
    LS_STAGE_WHOLE /* with Frees */
} ls_plan_stage;
/* LS_EINVAL: an invariant does not hold. stage: the passes that have run. */
ls_status ls_plan_verify(const ls_plan *, ls_plan_stage stage, ls_error *);
/* What both verifiers report of an action: LS_EINVAL. */
ls_status ls_plan_wrong(const ls_plan *, int action, const char *what, ls_error *);
/* The bytes that workers read from each other in a communication, all together. */
size_t ls_plan_read_nbytes(const ls_plan *, const ls_action *);
/* The same for a plan of another task than training: Deltas are folded and summed once, copies made
 * once, and all buckets updated once, after the AllReduce that decides. */
ls_status ls_plan_verify_sync(const ls_plan *, ls_error *);

/* ---- the strategy: only the plan reads `zero` and `early` ---- */

/* Does each worker of a sharding group keep and update only its shard of masters and moments? */
bool ls_plan_shards_moments(const ls_plan *);
/* May a worker free the rest of a bucket's gradient once its shard is summed? */
bool ls_plan_shards_grads(const ls_plan *);
/* Does a worker keep only its shard of the larger buckets' parameters (ls_plan_gathers)? */
bool ls_plan_shards_params(const ls_plan *);
/* Is each bucket reduced after each round, in which every worker runs one virtual worker? Else it
 * is reduced once, after all of them. */
bool ls_plan_reduces_rounds(const ls_plan *);

/* ---- islands ----
 *
 * Flat buffers then have 1 + islands segments, each of the model's size: the common parameters, and
 * those of each island, which are numbered from 1 here. An island's workers are consecutive, and so
 * are the islands of a worker; a worker has several islands or an island several workers, never
 * both. Without islands there is one segment.
 */

/* What an update takes from an island in place of ls_optim_step's. */
typedef struct ls_island_scale {
    double grad_scale, samples;
    double lr_scale; /* multiplies the learning rate */
} ls_island_scale;

/* Changes of the state in a step: with islands the step's own, Outer's and Adopt's. */
static inline int ls_plan_changes(const ls_plan *p) { return p->c.islands ? 3 : 1; }

int ls_plan_segments(const ls_plan *);
/* Floats of a segment; of a flat buffer, all segments together. */
size_t ls_plan_segment_floats(const ls_plan *);
size_t ls_plan_floats(const ls_plan *);
/* The first float of a bucket's segment. */
size_t ls_plan_base(const ls_plan *, int bucket);
/* Virtual workers of an island. */
int ls_plan_island_vws(const ls_plan *);
/* The island of a virtual worker; 0: there are none. */
int ls_plan_island_of(const ls_plan *, int vw);
/* The bucket in the island's segment that is `bucket` in the first segment. */
int ls_plan_bucket_in(const ls_plan *, int bucket, int island);
/* The islands of a worker, [*first_p, *end_p). */
void ls_plan_islands_of(const ls_plan *, int worker, int *first_p, int *end_p);
/* The workers who have a bucket: those of its island, or its rank. */
ls_worker_set ls_plan_workers_of(const ls_plan *, int bucket);
bool ls_plan_has(const ls_plan *, int bucket, int worker);
/* Sets ranges: the virtual workers of each worker. */
void ls_plan_set_ranges(ls_plan *);
/* Buckets of a segment. */
int ls_plan_segment_buckets(const ls_plan *);
/* The bucket of the first segment that is `bucket` in its own; the reverse of ls_plan_bucket_in(). */
int ls_plan_common_bucket(const ls_plan *, int bucket);
/* Do Outer and Adopt change floats of this bucket? */
bool ls_plan_changes_bucket(const ls_plan *, int bucket);
/* The same, and the part that they change, as in the flat buffer. */
bool ls_plan_part(const ls_plan *, int bucket, size_t *first_p, size_t *end_p);

/* ---- meshes (stages.c) ----
 *
 * Where workers divide a model, they are `ranks` of `data` workers each. Workers are numbered so that
 * those who divide slices are neighbours; then come those of a rank, then the stages of a pipeline. A
 * rank has a stage of the pipeline, or its chunks, and a part of their slices: rank r is number
 * r % tensor of those that divide the slices of worker r / tensor of the pipeline. Worker w of a rank
 * and worker w of another have a model together: they run the same virtual workers. A bucket
 * belongs to the rank with its writer, which sums and updates it; if layers of all chunks have its
 * parameters, to the ranks together that divide the chunks. Layers of another rank may write
 * parts of it: a block that two stages share, or parameters that two layers share. That rank sends
 * these parts of each virtual worker's gradient, and gets the new parameters.
 *
 * All layers that read a value are of one rank. If it is not the rank that computes the value, this
 * one sends the value there, and gets its gradient back.
 */

int ls_plan_ranks(const ls_plan *); /* pipe times tensor times context */
/* Owners: the ranks of a stage that have the same slices, which divide chunks. Their number, pipe times
 * tensor. */
int ls_plan_owners(const ls_plan *);
/* The owner to which a worker belongs, and its number among the workers who do; the worker by these.
 * All or some of them have a bucket together (ls_plan_workers_of()). */
int ls_plan_owner(const ls_plan *, int worker);
int ls_plan_number(const ls_plan *, int worker);
int ls_plan_member(const ls_plan *, int owner, int number);
/* Are there buckets that some workers do not have? */
bool ls_plan_divides(const ls_plan *);
/* The owner that has a bucket; does it have it with some of its workers alone, those of a chunk? */
int ls_plan_owner_of(const ls_plan *, int bucket);
bool ls_plan_is_apart(const ls_plan *, int bucket);
/* Workers that divide slices or chunks: neighbours in the numbering. */
int ls_plan_beside(const ls_plan *);
int ls_plan_tensor(const ls_plan *);
/* The slices of a rank, [*first_p, *end_p). */
void ls_plan_slices(const ls_plan *, int rank, int *first_p, int *end_p);
int ls_plan_pipe(const ls_plan *);
/* Stages of a worker: its chunks. */
int ls_plan_stages_each(const ls_plan *);
/* Workers of a rank; a worker's rank, and its number in it; the worker of a rank by its number. */
int ls_plan_data(const ls_plan *);
int ls_plan_rank(const ls_plan *, int worker);
int ls_plan_place(const ls_plan *, int worker);
int ls_plan_worker(const ls_plan *, int rank, int place);
/* Who runs the layer for the same virtual workers as `worker`? */
int ls_plan_runner(const ls_plan *, int worker, int layer);
/* The rank that runs the layer. */
int ls_plan_rank_of(const ls_plan *, int layer);
/* A worker's micro-batch, of all of a step. */
int ls_plan_sequence(const ls_plan *, int worker, int vw, int micro);
/* Does another rank read what this layer computes? */
bool ls_plan_crosses(const ls_plan *, int layer);
/* Where a Send takes only some rows (chosen.c): which, else NULL. Its buffer is packed where it lies
 * (exec/packed.h), and not read after. */
const ls_chosen_rows *ls_plan_chosen(const ls_plan *, const ls_action *);
/* The buffer of the scores by which the sender leaves out rows; -1: it leaves out zeros alone. */
int ls_plan_scores(const ls_plan *, const ls_action *);
/* Bytes of a row. */
size_t ls_plan_chosen_nbytes(const ls_plan *, const ls_chosen_rows *);
/* Bytes of a Send that are expected, if all choices are as likely: its nbytes are the most. */
double ls_plan_sent_nbytes(const ls_plan *, const ls_action *);
/* For the verifier: do the rows of a Send, and the scores that choose them, fit? */
bool ls_plan_chooses_well(const ls_plan *, const ls_action *);
/* Cuts layers into stages. LS_EINVAL: it can't be done. */
ls_status ls_plan_cut_stages(ls_plan *, ls_error *);
/* Is the layer's Backward two actions, one for its inputs and a later one for its parameters? */
bool ls_plan_splits(const ls_plan *, int layer);
/* The pass in which the layer computes gradients of its parameters. A layer that can't be split has all
 * of its Backward there: in the first pass if earlier layers wait for the gradients of its inputs. */
ls_back ls_plan_writes_in(const ls_plan *, int layer);
/* The layers of a stage, [*first_p, *end_p). */
void ls_plan_stage_layers(const ls_plan *, int stage, int *first_p, int *end_p);
/* Before buckets are cut: lists where they end since a parameter follows one of another stage, slice or
 * chunk: in blocks around that place. */
void ls_plan_list_ends(ls_plan *);
/* Once there are buckets: finds who writes what. */
ls_status ls_plan_assign_buckets(ls_plan *, ls_error *);
/* Is the layer the first one of its owner and chunk that writes the bucket, in the order of
 * Backward, and of its passes? */
bool ls_plan_opens(const ls_plan *, int bucket, int layer);
/* Is it the last one of these? */
bool ls_plan_closes(const ls_plan *, int bucket, int layer);
/* The last one of a chunk among the workers that have the bucket; -1: none of the chunk writes it. */
int ls_plan_closer(const ls_plan *, int bucket, int chunk);
/* Do layers of this chunk in a rank that does not have the bucket write a part of it? And the rank that
 * gets that part: of those that have the bucket, the one with the same chunks. */
bool ls_plan_sends_part(const ls_plan *, int bucket, int rank, int chunk);
int ls_plan_receiver(const ls_plan *, int bucket, int rank);
/* Do layers of the rank read or write the bucket's parameters? The part that they do. */
bool ls_plan_touches(const ls_plan *, int bucket, int rank);
bool ls_plan_touched_part(const ls_plan *, int bucket, int rank, size_t *first_p, size_t *end_p);

/* ---- chunks (chunks.c) ---- */

int ls_plan_context(const ls_plan *);
int ls_plan_nchunks(const ls_plan *); /* 1: samples are not cut */
/* How the mesh's key calls the dimension, and a table the chunks: of a sample, or samples. */
const char *ls_plan_context_name(const ls_plan *);
const char *ls_plan_context_title(const ls_plan *); /* where samples, too, are cut: both */
const char *ls_plan_chunk_name(const ls_plan *);
int ls_plan_layer_chunk(const ls_plan *, int layer);
/* A worker's chunks, [*first_p, *end_p). */
void ls_plan_chunks_of(const ls_plan *, int worker, int *first_p, int *end_p);
/* The chunks of a worker at most. */
int ls_plan_most_chunks(const ls_plan *);
/* Whose the leaves of a bucket's sum are, among the workers who have it. */
ls_tree_parts ls_plan_parts(const ls_plan *, int bucket);
/* The slot of the chunk's sum that is number `level` on its stack (ls_plan_fold()). */
int ls_plan_slot_of(const ls_plan *, int worker, int chunk, int level);
/* How a worker that runs all virtual workers adds up the sums of its chunks, of a bucket. Returns the
 * number of such folds: 0 for other workers. */
typedef struct ls_chunk_fold {
    int slot, from;
} ls_chunk_fold;
int ls_plan_chunk_folds(const ls_plan *, int bucket, int worker,
                        ls_chunk_fold list[LS_TREE_MAX_CHUNKS]);
/* Does a message arrive only when its receiver has done all that precedes it in the order? Then what
 * it brings may take the place of other buffers. */
bool ls_plan_arrives_late(const ls_plan *, const ls_action *);
/* Where the sums over micro-batches of the layer's chunk begin (ls_plan_wide()): floats. */
size_t ls_plan_wide_at(const ls_plan *, int worker, int layer);

/* ---- mixes of replicas (mixing.h) ---- */

/* The most replicas in a mix; those in the mix of an island, by their islands. */
int ls_plan_terms(const ls_plan *);
int ls_plan_terms_of(const ls_plan *, int island, int list[LS_MIXING_MOST]);

/* Floats of a worker's memory for what arrives: parts of two buckets for each of its islands. And
 * where in it the part of a bucket (of an island's segment) begins. */
size_t ls_plan_received(const ls_plan *);
size_t ls_plan_received_at(const ls_plan *, int worker, int bucket);

/* ---- what passes and readers share ---- */

ls_lane ls_plan_lane(const ls_plan *, const ls_action *);
const char *ls_action_kind_name(ls_action_kind);
void ls_plan_append(ls_plan *, const ls_action *);
/* Appends a communication of a bucket, with its number of bytes. */
void ls_plan_append_comm(ls_plan *, ls_action_kind, ls_axis, int bucket, int round);
/* Replaces the actions by those of lists [nworkers], and frees these: workers take turns, action by
 * action, as if they ran at the same speed. In a pipeline the lists follow each other, until
 * ls_plan_add_messages(). */
void ls_plan_take_turns(ls_plan *, ls_plan *lists);
/* Is it a call of a layer? */
bool ls_action_calls_layer(const ls_action *);
static inline bool ls_action_concerns(const ls_action *a, int worker) {
    if (a->axis == LS_AXIS_ISLAND || a->axis == LS_AXIS_STAGE)
        return ls_worker_set_has(a->of, worker);
    if (a->kind == LS_SEND && a->peer == worker) return true;
    return a->worker == worker || a->worker == LS_ALL_WORKERS;
}
/* The workers that an action concerns. */
ls_worker_set ls_plan_concerned(const ls_plan *, const ls_action *);

/* The i-th virtual worker of a worker, and the number of its virtual workers: a contiguous range,
 * or where rounds are reduced, every nworkers-th. */
int ls_plan_vw(const ls_plan *, int worker, int i);
int ls_plan_nvws(const ls_plan *, int worker);
/* The distance between two consecutive ones. */
int ls_plan_vw_step(const ls_plan *);
/* The i for which ls_plan_vw() gives vw. */
int ls_plan_vw_index(const ls_plan *, int worker, int vw);
/* Is it one of the worker's? */
bool ls_plan_runs_vw(const ls_plan *, int worker, int vw);
/* Gradient sums (slots) that a worker needs while its virtual workers run. */
int ls_plan_slots(const ls_plan *, int worker);
/* Sums of a bucket that remain when all its virtual workers are done; the slot of the first of them:
 * the others follow. */
int ls_plan_sums(const ls_plan *, int bucket, int worker);
int ls_plan_first_slot(const ls_plan *, int bucket, int worker);
/* The slot of the first sum over all workers: that of the first one of the bucket's, or where rounds
 * are reduced, the one after the worker's last. */
int ls_plan_sum_slot(const ls_plan *, int bucket, int worker);
/* Slots in which a worker has gradients of a bucket. */
int ls_plan_bucket_slots(const ls_plan *, int bucket, int worker);
/* All slots of a worker, with those of sums over all workers. */
int ls_plan_all_slots(const ls_plan *, int worker);
/* The slot of the worker's i-th virtual worker; returns the number of folds that follow it. */
int ls_plan_fold(const ls_plan *, int worker, int i, int *slot_p);
/* The same for sums over all workers after round i, where rounds are reduced. */
int ls_plan_fold_round(const ls_plan *, int i, int *slot_p);
/* Reductions of a bucket in a step, and the number of virtual workers in each. */
int ls_plan_rounds(const ls_plan *);
int ls_plan_round_vws(const ls_plan *);
int ls_plan_micros(const ls_plan *); /* micro-batches of a virtual worker */
/* Samples of layers' calls (ls_model_samples()) in a micro-batch of a full batch; micro -1: in all
 * micro-batches together. */
int64_t ls_plan_samples(const ls_plan *, int micro);

/* The number of workers in a sharding group, and the number of sharding groups. */
int ls_plan_shards(const ls_plan *);
/* The first worker of a worker's sharding group. */
int ls_plan_first_of_shards(const ls_plan *, int worker);
int ls_plan_replicas(const ls_plan *);
/* Are gradients summed over micro-batches in f32, since they have 16 bits? */
bool ls_plan_wide(const ls_plan *);

/* Scalars that LS_SCALARS sums: a norm for each block; for each place in the batch a loss, of each
 * of the model's losses, what a loss notes, and the sample's weight, if samples have weights; what
 * the noise scale needs; and 1 if the worker gave the step up (exec/exec.h). */
size_t ls_plan_nscalars(const ls_plan *);
/* With islands, the squares of the norms of their gradients [islands]. */
double *ls_plan_squares(const ls_plan *, double *scalars);
/* The losses [nlosses][batch], the notes [nnotes][batch] and the weights [batch] in scalars
 * [ls_plan_nscalars]; NULL: samples have no weights. */
double *ls_plan_losses(const ls_plan *, double *scalars);
double *ls_plan_notes(const ls_plan *, double *scalars);
double *ls_plan_weights(const ls_plan *, double *scalars);
/* What the noise scale needs of virtual workers: [V][LS_NOISE_SUMS] in scalars; with `noise`. */
double *ls_plan_noise(const ls_plan *, double *scalars);

/* A worker's shard of a bucket: contiguous, cut at multiples of LS_BLOCK, and not inside a whole
 * parameter (bucket.c); may be empty. */
ls_bucket ls_plan_shard(const ls_plan *, int bucket, int worker);

/* counts [shards]: the elements of each shard of a bucket. */
void ls_plan_shard_counts(const ls_plan *, int bucket, size_t *counts);

/* The part of a bucket's sum that a worker squares; may be empty. */
ls_bucket ls_plan_normed(const ls_plan *, int bucket, int worker);

/* The part of a bucket that a worker updates: its shard, or all if moments are not sharded. */
ls_bucket ls_plan_owned(const ls_plan *, int bucket, int worker);

/* Bytes that come from other hosts to a worker in a step, on average over the workers, of the rows of
 * tables that hosts of `near` workers divide (docs/guide/recommenders.md), if all ids of the batch
 * differ: rows that its samples read, with the numbers by which it asks for them; rows and states
 * that it updates; those that are written back to it. 0 on one host. */
typedef struct ls_rows_moved {
    double read, updated, written;
} ls_rows_moved;
ls_rows_moved ls_plan_rows_moved(const ls_plan *, int near);

/* Floats of each bucket but the last: as many blocks (with compression, chunks) as fit into
 * bucket_nbytes, at least one. */
size_t ls_plan_bucket_floats(const ls_plan_config *);

/* The buckets that have parameters of a layer, in ascending order; returns their number. */
int ls_plan_touched(const ls_plan *, int layer, const int **buckets_p);

/* ---- compression ---- */

/* Is a virtual worker's gradient encoded before it is summed? And does it carry errors from step to
 * step? */
bool ls_plan_compresses(const ls_plan *);
bool ls_plan_has_errors(const ls_plan *);
/* Is a step's sum that of the new first moment, in place of the gradient? */
bool ls_plan_sums_momentum(const ls_plan *, int64_t step);
/* Floats at whose multiples, from the end, pieces are cut; buckets end there, too. */
size_t ls_plan_chunk(const ls_plan_config *);
/* Floats of which buckets are multiples: chunks where anything is encoded, else blocks. */
size_t ls_plan_bucket_unit(const ls_plan_config *);
/* The pieces of a bucket, in ascending order; returns their number. What lies between them is no
 * parameter, and 0. */
int ls_plan_pieces(const ls_plan *, int bucket, const ls_plan_piece **pieces_p);
/* The virtual workers that have codes: all of them; of Deltas, the first of each replica. */
bool ls_plan_is_coded(const ls_plan *, int vw);
/* Their number among those of a worker, and among all. */
int ls_plan_ncoded(const ls_plan *, int worker);
int ls_plan_coded_before(const ls_plan *, int vw);
/* The i-th of a worker's. */
int ls_plan_coded(const ls_plan *, int worker, int i);
/* Are codes sent? They are decoded where they arrive, and summed there in the tree's order. Not where
 * each round is reduced, nor with estimates (EF21), which a code does not hold. Factors always are,
 * also by a worker to itself. */
bool ls_plan_sends_codes(const ls_plan *);
/* Are gradients sent, in a warm-up or because codes are not? And in which steps? */
bool ls_plan_sends_values(const ls_plan *);
ls_phase ls_plan_values_phase(const ls_plan *);
/* Does an action run in a step? */
bool ls_plan_runs(const ls_plan *, const ls_action *, int64_t step);
/* Bytes of a virtual worker's code of a bucket; and the range of them that a worker decodes: the
 * pieces in which its part of the bucket (ls_plan_owned()) lies. */
size_t ls_plan_code_nbytes(const ls_plan *, int bucket);
void ls_plan_code_part(const ls_plan *, int bucket, int worker, size_t *first_p, size_t *end_p);
/* Bytes of a worker's own codes in a step; of those that it decodes; and of those that it sends in
 * the largest bucket, if it does not send all to all. */
size_t ls_plan_own_codes_nbytes(const ls_plan *, int worker);
size_t ls_plan_all_codes_nbytes(const ls_plan *, int worker);
size_t ls_plan_sent_codes_nbytes(const ls_plan *, int worker);
/* The complete settings for a piece in a step. */
ls_compression ls_plan_piece_how(const ls_plan *, const ls_plan_piece *, int64_t step);

/* ---- gradients as two factors of low rank (factor.c) ---- */

/* Each factor is summed by itself, on all workers. Needs a model whose matrices are undivided. */
bool ls_plan_has_factors(const ls_plan *);
/* Encodes of one virtual worker's bucket: of each factor, or 1. */
int ls_plan_encodings(const ls_plan *);
/* Is a parameter a matrix that might be sent as factors? Places all of them so that none is divided
 * among buckets. */
bool ls_plan_is_matrix(const ls_param *);
void ls_plan_place_matrices(ls_model *);
/* Floats of all second factors; the range of those of a bucket; and the piece of a parameter that
 * has one, or NULL. */
size_t ls_plan_nfactors(const ls_plan *);
void ls_plan_factors_of(const ls_plan *, int bucket, size_t *first_p, size_t *end_p);
const ls_plan_piece *ls_plan_factor_of(const ls_plan *, const ls_param *);
/* Floats of one virtual worker's errors: of the model, then the second factors. */
size_t ls_plan_error_floats(const ls_plan *);
/* Floats of a bucket that the Exchange of a round sums: first factors and what is summed as it is,
 * or second factors. */
size_t ls_plan_round_floats(const ls_plan *, int bucket, int round);
/* Bytes of a worker's factors in a step. */
size_t ls_plan_factors_nbytes(const ls_plan *, int worker);

/* ---- buffers: numbers that mean the same on all workers ---- */

typedef enum ls_buffer_kind {
    LS_BUF_SAMPLES, /* samples of the step */
    LS_BUF_LOSSES,  /* one for each sample */
    LS_BUF_NORMS,   /* one for each block */
    LS_BUF_SCALARS, /* clip factor, loss */
    LS_BUF_WORK,    /* work memory of one layer call */
    LS_BUF_ACT,     /* [layer][slot] output; slot: of the micro-batch in flight */
    LS_BUF_SAVED,   /* [layer][slot] saved for Backward */
    LS_BUF_DACT,    /* [layer][slot] gradient of the output */
    LS_BUF_PARAM,   /* [bucket] all its parameters */
    LS_BUF_SHARD,   /* [bucket] parameters of the worker's shard; part of PARAM */
    LS_BUF_MOMENT,  /* [bucket] masters and the optimizer's states */
    LS_BUF_ERROR,   /* [bucket] errors of the worker's virtual workers */
    LS_BUF_CODE,    /* [bucket] codes of the worker's virtual workers */
    LS_BUF_CODES,   /* [bucket] codes of all virtual workers, of what the worker decodes */
    /* [bucket][slot] sum over all workers; part of GRAD, slot 0, or where rounds are reduced, in
     * slots of its own */
    LS_BUF_SUM,
    LS_BUF_GRAD,  /* [bucket][slot] sum over the worker's virtual workers */
    LS_BUF_INBOX, /* [bucket][slot] what another stage has sent of a virtual worker's gradient */
} ls_buffer_kind;

typedef struct ls_buffer {
    ls_buffer_kind kind;
    int index, slot;
} ls_buffer;

int ls_plan_nbuffers(const ls_plan *);
int ls_plan_buffer(const ls_plan *, ls_buffer_kind, int index, int slot);
ls_buffer ls_plan_buffer_of(const ls_plan *, int id);
/* The buffer of this kind for a layer's call on a micro-batch. */
int ls_plan_layer_buffer(const ls_plan *, ls_buffer_kind, const ls_action *, int layer);
/* Is the buffer in the arena? Activations and their gradients are. */
bool ls_buffer_in_arena(ls_buffer_kind);
/* Does the buffer live only for part of a step? Those in the arena do, gathered parameters, and
 * gradients that are freed once they are summed. */
bool ls_plan_transient(const ls_plan *, ls_buffer);
/* Are the parameters of a bucket sharded, and gathered before they are used? */
bool ls_plan_gathers(const ls_plan *, int bucket);
/* Work memory of one layer call, at most. */
size_t ls_plan_work_nbytes(const ls_plan *);
/* Does a worker's shard outlive the Free of a transient buffer? */
bool ls_plan_keeps_shard(const ls_plan *, ls_buffer);
/* Bytes of a buffer in the arena, or those of another transient buffer that its Free releases. */
size_t ls_plan_buffer_nbytes(const ls_plan *, int id, int worker);
void ls_plan_buffer_name(const ls_plan *, int id, char *text, size_t nbytes);

typedef enum ls_use { LS_USE_READ = 1, LS_USE_WRITE = 2, LS_USE_UPDATE = 3 } ls_use;
typedef void ls_use_fn(int buffer, ls_use, void *arg);
/* Calls fn for each buffer of `worker` that the action uses. WRITE overwrites what was in it. */
void ls_action_uses(const ls_plan *, const ls_action *, int worker, ls_use_fn *fn, void *arg);

/* ---- projection: one worker's lanes ---- */

typedef struct ls_lane_step {
    int action;
    int wait; /* steps of the worker's other lane that must be complete before this one begins */
    int own;  /* and of its own lane */
    int first_need, end_need; /* messages that must be complete, in ls_lanes.needs */
    bool is_message;          /* several are in flight (progress.h) */
    int after; /* of a message: the one before it to or from the same worker, which must have begun;
                  -1: none */
} ls_lane_step;

typedef struct ls_lanes {
    ls_lane_step *steps[LS_NLANES];
    int n[LS_NLANES];
    int *needs; /* [nneeds] steps of the communication lane */
    int nneeds;
} ls_lanes;

void ls_plan_project(const ls_plan *, int worker, ls_lanes *l_p);
void ls_lanes_free(ls_lanes *);

/* ---- memory ---- */

typedef struct ls_arena_plan {
    size_t *offsets; /* by buffer number, bytes; SIZE_MAX: not in the arena */
    size_t nbytes;   /* size of the arena */
    size_t peak;     /* most live bytes at one time; less than nbytes if there are gaps */
    int peak_action; /* when */
} ls_arena_plan;

void ls_plan_arena(const ls_plan *, int worker, ls_arena_plan *a_p);
void ls_arena_plan_free(ls_arena_plan *);

/* ---- printing ---- */

/* One line: "  17  w1  Backward    h.2.mlp  vw 3 micro 0  sum 1". */
void ls_plan_print_action(const ls_plan *, int action, ls_buf *);
/* Appends lines of one worker, or of all in the global order (LS_ALL_WORKERS), from action `first`
 * on, until `out` has some tens of kilobytes. Returns the next action to print; nactions: none. */
int ls_plan_print_some(const ls_plan *, int worker, int first, ls_buf *out);

/* Appends which workers of a pipeline have which layers; nothing without a pipeline. */
void ls_plan_print_mesh(const ls_plan *, ls_buf *out);
/* Writes the experts of a worker, of each layer that has experts: "0 to 1, 4 to 5". Returns their number;
 * 0: none are divided. */
enum { LS_PLAN_EXPERTS = 80 };
int64_t ls_plan_experts_of(const ls_plan *, int worker, char *text, size_t size);
const char *ls_pipe_name(ls_pipe_kind);
/* Elements of the parameters that a worker's layers of the stage read, and those of all of its stages;
 * what several layers share counts once. */
size_t ls_plan_stage_params(const ls_plan *, int stage, int worker);
size_t ls_plan_worker_params(const ls_plan *, int worker);
/* The part of a step's passes in which a worker has nothing to do, if all take as long. */
double ls_plan_bubble(const ls_plan *);

/* The hash is the same on every worker with the same config. */
ls_hash ls_plan_hash(const ls_plan *);

#endif
