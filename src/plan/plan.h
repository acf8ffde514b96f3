/* plan.h - one training step as a list of actions, made before the step runs.
 *
 * ls_plan_order_plain() lists Load, Forward and Backward of all workers. Passes then add what data
 * parallelism needs: ls_plan_add_recompute() (less is kept for backward), ls_plan_add_gathers()
 * (parameters that are sharded come before they are used), ls_plan_add_reduction() (sums over
 * virtual workers, bucket by bucket), ls_plan_add_update() (norm, clipping, AdamW, new parameters
 * to all), ls_plan_add_frees(). exec.h runs the result, print.c writes it. None of them knows a
 * strategy: that is in the passes.
 *
 * Invariants, checked by ls_plan_verify() after every pass:
 *  (1) One global order exists; each worker's lanes are restrictions of it (project.c).
 *  (2) A dependency is a use of the same buffer earlier in that order: all point backwards.
 *  (3) A communication is one action of all workers, with one number of bytes: that of its bucket in
 *      the config's dtype, and of its participants.
 *  (4) A buffer is written before it is read, not touched after its Free, and freed before it is
 *      written anew and at the end, if it comes and goes.
 *  (5) Every sample is taken forward and back once; every bucket is reduced once, after the last
 *      Backward that writes it on any worker, updated once by each owner of a shard, and gathered
 *      once after that.
 * (1) and (2) exclude deadlock: the earliest unfinished action is at the head of its lane on all of
 * its workers.
 */
#ifndef LS_PLAN_PLAN_H
#define LS_PLAN_PLAN_H

#include "base/hash.h"
#include "base/mem.h"
#include "model/gpt.h"

typedef enum ls_action_kind {
    LS_LOAD,           /* take this step's samples from the loader */
    LS_FORWARD,        /* a layer, for one micro-batch */
    LS_RECOMPUTE,      /* Forward again, for what Backward needs */
    LS_BACKWARD,       /* a layer, for one micro-batch: adds to the gradient in `slot` */
    LS_ADD,            /* gradient slot += slot + 1, for one bucket: a fold of the tree */
    LS_REDUCE_SCATTER, /* all: the owner of each shard of a bucket sums it over all workers */
    LS_NORM,           /* squares of the own shards */
    LS_ALL_REDUCE,     /* all: a bucket (among replicas: the shard) summed, for all of them; or
                          (LS_SCALARS) norm and loss */
    LS_UPDATE,         /* AdamW on what the worker owns of a bucket */
    LS_ALL_GATHER,     /* all: the parameters of each shard of a bucket to all */
    LS_FREE,           /* the buffer's memory is another's from here on */
    LS_NACTION_KINDS
} ls_action_kind;

typedef enum ls_lane { LS_LANE_COMPUTE, LS_LANE_COMM, LS_NLANES } ls_lane;

enum { LS_ALL_WORKERS = -1, LS_SCALARS = -1 };

/* Who takes part in a communication. Workers lie in groups of `shards`, one after the other: a
 * group shares one copy of what is sharded; replicas are those of all groups that have the same
 * shard. */
typedef enum ls_axis { LS_AXIS_ALL, LS_AXIS_SHARDS, LS_AXIS_REPLICAS } ls_axis;

typedef struct ls_action {
    ls_action_kind kind;
    int worker;    /* or LS_ALL_WORKERS */
    int vw, micro; /* Forward, Recompute, Backward: virtual worker, micro-batch (-1: all of them) */
    int layer;     /* of these */
    int slot;      /* Backward: which sum; Add: the lower of the two; of a round: where it goes */
    bool summed;   /* Add: of the own shard, sums over all workers */
    int round;     /* communication: which one, where each round is reduced */
    bool start;    /* Backward: the slot's chains start at 0 */
    bool last;     /* Backward: the virtual worker's last micro-batch */
    int bucket;    /* Add, ReduceScatter, AllReduce (or LS_SCALARS), Update, AllGather */
    int buffer;    /* Free */
    ls_axis axis;  /* communication: each worker with those of its group */
    int64_t nbytes; /* communication: bytes that a worker reads from others, the mean of all */
} ls_action;

typedef struct ls_bucket {
    size_t first, end;  /* floats of the flat gradient; multiples of LS_BLOCK */
    int opener, writer; /* the first and the last layer in the order of Backward that write it */
} ls_bucket;

enum { LS_PLAN_MAX_BUCKETS = 4096, LS_PLAN_MAX_CALLS = 1 << 25 /* of layers, by all workers */ };

typedef struct ls_plan_config {
    const ls_model *model; /* outlives the plan */
    int nworkers, V;       /* nworkers <= V */
    const int *first;    /* [nworkers + 1] outlives the plan: worker w runs the virtual workers from
                            first[w] to first[w + 1], at least one; NULL: an even share. All workers
                            are one sharding group then, and reduction is not early */
    int64_t batch;       /* samples; V divides it */
    int64_t micro_batch; /* samples, <= batch / V; the last of a virtual worker may be smaller */
    bool tree;           /* sums in tree order; else in an order that depends on nworkers */
    size_t bucket_nbytes;
    int zero; /* sharded among workers: 0 nothing, 1 moments, 2 gradients too, 3 parameters too;
                 as in Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
                 Parameter Models", SC 2020 */
    int recompute;        /* layers of a segment of which only the input is kept; 0: all is kept */
    int recompute_layers; /* that are in segments, from the first block on; 0: all */
    bool early;   /* gradients are reduced after each round, in which every worker runs one virtual
                     worker, and not after the last: less memory, more is sent; zero 2 and 3 */
    int prefetch; /* with zero 3: parameters are gathered so many layers before their use */
    size_t
        whole_nbytes; /* with zero 3: parameters of buckets up to so many bytes are not sharded */
    int shards;       /* workers among which is sharded; divides nworkers; 0: all */
    ls_dtype compute; /* of parameters and activations: LS_F32, or 16 bits beside f32 masters */
    ls_dtype reduce;  /* of gradients, as they are kept and sent */
} ls_plan_config;

typedef struct ls_plan {
    ls_plan_config c;
    int nslots; /* the most gradient sums that any worker keeps */
    int nsums;  /* of its shards, the most sums over all workers: more than one where `early` */
    ls_bucket *buckets;
    int nbuckets;                /* in the order in which Backward fills them */
    int *touched, *touched_from; /* see ls_plan_touched() */
    ls_action *actions;
    int nactions, capacity;
} ls_plan;

/* All passes, verified after each. */
ls_status ls_plan_make(const ls_plan_config *, ls_plan *p_p, ls_error *);
void ls_plan_free(ls_plan *);

/* The passes. */
void ls_plan_cut_buckets(ls_plan *);
void ls_plan_order_plain(ls_plan *);
void ls_plan_add_recompute(ls_plan *);
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
/* `stage`: what must be there by now. */
ls_status ls_plan_verify(const ls_plan *, ls_plan_stage stage, ls_error *);

/* ---- the strategy: what `zero` and `early` mean. Only passes and these functions read them ---- */

/* Does each worker of a sharding group keep and update only its shard of masters and moments? */
bool ls_plan_shards_moments(const ls_plan *);
/* May a worker give the rest of a bucket's gradient back once its shard is summed? */
bool ls_plan_shards_grads(const ls_plan *);
/* Does a worker keep only its shard of the larger buckets' parameters (ls_plan_gathers)? */
bool ls_plan_shards_params(const ls_plan *);
/* Is each bucket reduced after each round, in which every worker runs one virtual worker? Else once,
 * after all of them. */
bool ls_plan_reduces_rounds(const ls_plan *);

/* ---- what passes and readers share ---- */

ls_lane ls_plan_lane(const ls_plan *, const ls_action *);
const char *ls_action_kind_name(ls_action_kind);
void ls_plan_append(ls_plan *, const ls_action *);
/* A communication of a bucket, with its bytes. */
void ls_plan_append_comm(ls_plan *, ls_action_kind, ls_axis, int bucket, int round);
/* Replaces the actions by those of lists [nworkers], whose memory it takes: workers take turns,
 * action by action, as if they ran at the same speed. */
void ls_plan_take_turns(ls_plan *, ls_plan *lists);
bool ls_action_concerns(const ls_action *, int worker);

/* The i-th virtual worker of a worker, and how many it runs: a contiguous range of them, or where
 * rounds are reduced each nworkers-th. */
int ls_plan_vw(const ls_plan *, int worker, int i);
int ls_plan_nvws(const ls_plan *, int worker);
/* From one of them to the next. */
int ls_plan_vw_step(const ls_plan *);
/* Which one of its worker's `vw` is. */
int ls_plan_vw_index(const ls_plan *, int worker, int vw);
/* Gradient sums that a worker keeps meanwhile. */
int ls_plan_slots(const ls_plan *, int worker);
/* And those that it has of a bucket when all its virtual workers are done. */
int ls_plan_sums(const ls_plan *, int worker);
/* The slot of the first sum over all workers: the worker's own first, or where rounds are reduced,
 * the one behind all its own. */
int ls_plan_sum_slot(const ls_plan *, int worker);
/* Slots of the gradient that a worker needs for both. */
int ls_plan_all_slots(const ls_plan *, int worker);
/* Into which sum the i-th of a worker goes; returns by how many folds it is followed. */
int ls_plan_fold(const ls_plan *, int worker, int i, int *slot_p);
/* The same of the sums over all workers, where rounds are reduced, after round i. */
int ls_plan_fold_round(const ls_plan *, int i, int *slot_p);
/* Reductions of a bucket in a step, and virtual workers that take part in one. */
int ls_plan_rounds(const ls_plan *);
int ls_plan_round_vws(const ls_plan *);
int ls_plan_micros(const ls_plan *); /* micro-batches of a virtual worker */
/* Samples of one of them, of a full batch; micro -1: of all. */
int64_t ls_plan_samples(const ls_plan *, int micro);

/* Workers of a sharding group, and how many such groups there are. */
int ls_plan_shards(const ls_plan *);
int ls_plan_replicas(const ls_plan *);
/* Sums over the micro-batches of a virtual worker wait in f32, beside gradients in 16 bits. */
bool ls_plan_wide(const ls_plan *);

/* What LS_SCALARS sums: norms of blocks, then losses of the batch's samples by place, then 1 where
 * the worker has given the step up (exec/exec.h). */
size_t ls_plan_nscalars(const ls_plan *);
/* The losses, in scalars [ls_plan_nscalars]. */
double *ls_plan_losses(const ls_plan *, double *scalars);

/* Worker's shard of a bucket: contiguous, cut at multiples of LS_BLOCK; may be empty. */
ls_bucket ls_plan_shard(const ls_plan *, int bucket, int worker);

/* Elements of each shard of a bucket, [shards]. */
void ls_plan_shard_counts(const ls_plan *, int bucket, size_t *counts);

/* The part of a bucket's sum that a worker squares; may be empty. */
ls_bucket ls_plan_normed(const ls_plan *, int bucket, int worker);

/* What a worker updates of a bucket: its shard, or where moments are not sharded all of it. */
ls_bucket ls_plan_owned(const ls_plan *, int bucket, int worker);

/* The buckets that have parameters of a layer, in ascending order; returns how many. */
int ls_plan_touched(const ls_plan *, int layer, const int **buckets_p);

/* ---- buffers, as numbers that are the same for all workers ---- */

typedef enum ls_buffer_kind {
    LS_BUF_TOKENS,  /* samples of the step */
    LS_BUF_LOSSES,  /* of each sample */
    LS_BUF_NORMS,   /* of each block */
    LS_BUF_SCALARS, /* clip factor, loss */
    LS_BUF_WORK,    /* of one call */
    LS_BUF_ACT,     /* [layer] output */
    LS_BUF_SAVED,   /* [layer] */
    LS_BUF_DACT,    /* [layer] gradient of the output */
    LS_BUF_PARAM,   /* [bucket] all its parameters */
    LS_BUF_SHARD,   /* [bucket] the parameters of the own shard; lies in PARAM */
    LS_BUF_MOMENT,  /* [bucket] and masters */
    LS_BUF_SUM,     /* [bucket] the gradient over all workers; lies in GRAD, slot 0, or where rounds
                       are reduced in slots of its own */
    LS_BUF_GRAD,    /* [bucket][slot] */
} ls_buffer_kind;

typedef struct ls_buffer {
    ls_buffer_kind kind;
    int index, slot;
} ls_buffer;

int ls_plan_nbuffers(const ls_plan *);
int ls_plan_buffer(const ls_plan *, ls_buffer_kind, int index, int slot);
ls_buffer ls_plan_buffer_of(const ls_plan *, int id);
/* Has its place in the arena: activations and their gradients. */
bool ls_buffer_in_arena(ls_buffer_kind);
/* Comes and goes within a step: those, and what is gathered or summed where it is sharded. */
bool ls_plan_transient(const ls_plan *, ls_buffer);
/* Are the parameters of a bucket sharded, and gathered before they are used? */
bool ls_plan_gathers(const ls_plan *, int bucket);
/* Memory of one call of a layer, at most. */
size_t ls_plan_work_nbytes(const ls_plan *);
/* Does the worker's shard of a transient buffer stay when the buffer is freed? */
bool ls_plan_keeps_shard(const ls_plan *, ls_buffer);
/* Bytes of a buffer in the arena; of a transient one, those that Free gives back. */
size_t ls_plan_buffer_nbytes(const ls_plan *, int id, int worker);
void ls_plan_buffer_name(const ls_plan *, int id, char *text, size_t nbytes);

typedef enum ls_use { LS_USE_READ = 1, LS_USE_WRITE = 2, LS_USE_UPDATE = 3 } ls_use;
typedef void ls_use_fn(int buffer, ls_use, void *arg);
/* Calls fn for each buffer of `worker` that the action uses; WRITE: what was in it is gone. */
void ls_action_uses(const ls_plan *, const ls_action *, int worker, ls_use_fn *fn, void *arg);

/* ---- projection: one worker's lanes ---- */

typedef struct ls_lane_step {
    int action;
    int wait; /* steps of the worker's other lane that must be complete before this one begins */
} ls_lane_step;

typedef struct ls_lanes {
    ls_lane_step *steps[LS_NLANES];
    int n[LS_NLANES];
} ls_lanes;

void ls_plan_project(const ls_plan *, int worker, ls_lanes *l_p);
void ls_lanes_free(ls_lanes *);

/* ---- memory ---- */

typedef struct ls_arena_plan {
    size_t *offsets; /* by buffer number, bytes; SIZE_MAX where it is not in the arena */
    size_t nbytes;   /* of the arena */
    size_t peak;     /* most live bytes at once; nbytes is larger where holes remain */
    int peak_action;
} ls_arena_plan;

void ls_plan_arena(const ls_plan *, int worker, ls_arena_plan *a_p);
void ls_arena_plan_free(ls_arena_plan *);

/* ---- printing ---- */

/* One line: "  17  w1  Backward    h.2.mlp  vw 3 micro 0  sum 1". */
void ls_plan_print_action(const ls_plan *, int action, ls_buf *);
/* Lines of one worker, or of all in the global order (LS_ALL_WORKERS), from action `first` on,
 * until `out` has some tens of kilobytes. Returns the action to go on with; nactions: that was all.
 */
int ls_plan_print_some(const ls_plan *, int worker, int first, ls_buf *out);

/* The same on every worker with the same config. */
ls_hash ls_plan_hash(const ls_plan *);

#endif
