/* share.h - who has what: the virtual workers, layers, sums and parameters that each worker has.
 *
 * A table, which ls_share_make() fills once, before a plan's actions are listed. All functions here
 * read it. Its config (share/config.h), and with it the strategy, is for passes alone.
 *
 * The mesh. Where workers divide a model, its cells are the combinations of a stage of the
 * pipeline, a part of the slices and a part of the chunks. `data` workers have the same cell: they
 * run the same layers, each for its own virtual workers, and a worker's place in its cell says
 * which. Workers that divide slices are neighbours in the numbering; then come those that divide
 * chunks; then those of a cell; then the stages. Worker `place` of a cell and those at this place
 * of other cells have a model together.
 *
 * A holder is the set of workers that have the same parameters: the cells of a stage and a part of
 * the slices, whatever their chunks. A worker's place in its holder is place in the cell * context
 * + its part of the chunks. Consecutive places form sharding groups of `nshards` workers; a
 * sharding group has one copy of what is sharded. Replicas are the workers, one of each sharding
 * group, that have the same shard.
 *
 * Islands. With replicas that train apart, flat buffers have 1 + islands segments, each of the
 * model's size: the common parameters, and those of each island, which are numbered from 1 here. An
 * island's workers are consecutive, and so are the islands of a worker; a worker has several
 * islands or an island several workers, never both. Else there is one segment.
 *
 * Buckets. A bucket belongs to the cell with its writer, which sums and updates it; if layers of
 * all chunks have its parameters, to all cells of the holder. Layers of another cell may write
 * parts of it: a block that two stages share, or parameters that two layers share. That cell sends
 * these parts of each virtual worker's gradient, and gets the new parameters (share/mesh.h).
 */
#ifndef LS_SHARE_SHARE_H
#define LS_SHARE_SHARE_H

#include "base/mem.h"
#include "coll/algo/tree.h"
#include "lockstep/compress.h"
#include "model/model.h"
#include "optim/noise.h"
#include "optim/optimizer.h"
#include "share/mixing.h"

/* Replicas of the model that are trained side by side, at most. */
enum { LS_PLAN_MAX_ISLANDS = LS_MIXING_MOST };

/* What a plan does. Plans without islands only train. */
typedef enum ls_task {
    LS_TASK_TRAIN,
    LS_TASK_OUTER, /* the outer optimizer changes the common parameters by the mean Delta */
    LS_TASK_ADOPT, /* each replica takes the common parameters over, or a part of them */
    LS_TASK_MEAN,  /* the common parameters become the mean of the replicas */
    LS_TASK_MIX,   /* each replica becomes a mean of some of the replicas (mixing.h) */
    LS_NTASKS
} ls_task;

/* Does the task change the common parameters? */
static inline bool ls_task_is_common(ls_task t) { return t == LS_TASK_OUTER || t == LS_TASK_MEAN; }

/* What a pass backward computes. */
typedef enum ls_back {
    LS_BACK_ALL,
    LS_BACK_INPUTS, /* the gradients of inputs, which the stage before waits for */
    LS_BACK_PARAMS  /* those of parameters */
} ls_back;

/* Floats [first, end) of a flat buffer. */
typedef struct ls_range {
    size_t first, end;
} ls_range;

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

/* How gradients are compressed before they are summed (docs/design/replicas.md). Each virtual
 * worker's gradient is encoded by itself, piece by piece. What an encoding loses is an error that
 * the virtual worker adds to its next gradient. */
typedef struct ls_share_compress {
    bool on;
    ls_compression how; /* virtual_workers and step are not used */
    int64_t warmup;     /* the first step that is compressed */
    size_t min_count;   /* parameters with fewer elements are summed as they are */
    bool codes;         /* codes are sent instead of gradients, where that is possible */
    /* above 0: in place of its gradient g, each virtual worker encodes its part of the new first
     * moment m, momentum m/V + (1 - momentum) g; the optimizer gets the sum. Nothing is clipped */
    double momentum;
} ls_share_compress;

/* How replicas are brought together, in a plan of another task than training. */
typedef struct ls_share_sync {
    size_t part_first, part_end; /* of the model's floats, those that Outer and Adopt concern */
    ls_share_compress deltas;    /* how Outer encodes Deltas; as `compress` */
    bool averages;               /* Outer: the replicas are averaged, whatever optim.outer is */
    double mixing;               /* Adopt: this part of a replica's own parameters stays */
    bool gossips;                /* the islands are mixed: workers have room for what arrives */
    const ls_mixing *mix;        /* Mean, Mix: outlives the plan */
} ls_share_sync;

typedef struct ls_bucket {
    size_t first, end; /* floats of the flat gradient; multiples of LS_BLOCK */
    int writer;        /* the last layer in the order of Backward that writes it */
    int island;        /* whose parameters these are; with islands 0: the common parameters */
    int cell;          /* of those that sum and update it, the first */
    int chunk; /* the chunk whose layers alone have parameters of it; -1: those of all chunks do */
    bool shared;           /* in a mesh: layers of several cells have parameters of it */
    bool is_apart;         /* some workers of its holder alone have it, those with its chunk */
    bool is_gathered;      /* its parameters are sharded, and gathered before they are used */
    ls_worker_set workers; /* that have it: those of its island, its holder, or its cell */
    ls_tree_parts leaves;  /* whose the leaves of its sum are, among them; V 0: in any order */
    size_t nshards;        /* among how many of a sharding group it is divided */
    size_t code_nbytes;    /* of a virtual worker's code of it */
    ls_range factors;      /* its second factors, of all: floats */
} ls_bucket;

/* A part of one parameter, in one bucket, that is encoded by itself. Pieces are cut at multiples of
 * a fixed size from the end of the flat gradient, so they depend on the config alone. */
typedef struct ls_code_piece {
    size_t first, end; /* floats of the flat gradient */
    size_t cols;       /* of the parameter as a matrix */
    bool plain;        /* it is summed as it is */
    size_t code_at;    /* bytes: where its code is in that of the bucket */
    size_t code_nbytes;
    /* of a matrix that is sent as two factors, which is one piece: where the second factor is in
     * those of the model, floats; code_at is that of the first */
    size_t factor_at, nfactor;
} ls_code_piece;

/* What one worker has. Its i-th virtual worker is first_vw + i * vw_step. */
typedef struct ls_worker_share {
    int cell, place; /* its cell, and its place there */
    int holder, holder_place;
    int first_vw, nvws;
    int first_chunk, end_chunk;
    int first_island, end_island;
    int first_slice, end_slice;
    int nslots;    /* gradient sums that it needs while its virtual workers run */
    int all_slots; /* the same with those of sums over all workers */
    /* Sums that remain when all of its virtual workers are done: of a bucket with parameters of all
     * chunks, and of one with those of one chunk. */
    int sums, chunk_sums;
} ls_worker_share;

/* Bytes of the buffers that outlive a step (state/world.h). */
typedef struct ls_share_nbytes {
    size_t params;
    size_t state;  /* masters, if any, and the optimizer's states */
    size_t room;   /* of a worker, for updates of whole parameters (optim/whole.h) */
    size_t slot;   /* one sum of the whole gradient */
    size_t wide;   /* sums over micro-batches in f32; 0: not needed */
    size_t errors; /* what encoding loses of the gradients of all virtual workers, twice: before a
                    * step and after it (state/errors.h) */
    size_t tables; /* of which parameters are windows, and their states: one copy for all workers */
    size_t copy; /* of the state, for a checkpoint: parameters in f32, states, errors of all virtual
                  * workers */
    size_t scalars; /* of one worker, or summed */
    size_t frozen;  /* frozen parameters, in one copy */
} ls_share_nbytes;

/* The doubles [nscalars] that a step sums over all workers, by what they are. */
typedef struct ls_scalars {
    double *norms;    /* a square for each block of the flat buffer */
    double *squares;  /* [islands] of the norms of their gradients */
    double *losses;   /* [nlosses][batch] */
    double *notes;    /* [nnotes][batch] what losses note */
    double *weights;  /* [batch] of samples; NULL: they have none */
    double *noise;    /* [V][LS_NOISE_SUMS] with `noise`: what the noise scale needs */
    double *given_up; /* above 0: a worker gave the step up (exec/exec.h) */
} ls_scalars;

/* What a layer computes, for a layer of another cell. */
typedef struct ls_crossing {
    int reader; /* the first layer that reads it: its Backward completes the gradient; -1: none */
    bool is;    /* it is of another cell */
} ls_crossing;

typedef struct ls_share {
    struct ls_share_config *config; /* share/config.h */

    /* the step */
    const ls_model *model;
    int nworkers, V;
    int64_t batch, micro_batch; /* samples */
    ls_dtype compute, reduce;   /* of parameters and activations; of gradients */
    ls_optim optim;
    ls_share_compress compress;
    bool noise;
    ls_task task;
    ls_share_sync sync;
    int micros; /* micro-batches of a virtual worker */
    bool wide;  /* gradients are summed over micro-batches in f32, since they have 16 bits */

    /* the mesh */
    int pipe, tensor, context, data; /* its degrees */
    int beside;                      /* tensor * context: neighbours in the numbering */
    int ncells, nholders;
    int stages_each;          /* stages of a worker */
    int nchunks, most_chunks; /* of a sample, 1: not cut; of a worker, at most */
    bool divides;             /* there are buckets that some workers do not have */

    /* islands */
    int islands, island_vws; /* virtual workers of an island; without islands: V */
    int nsegments;
    size_t segment_floats, floats; /* of a segment; of a flat buffer, all segments together */
    int segment_buckets;
    int changes; /* of the state in a step: with islands the step's own, Outer's and Adopt's */

    /* virtual workers and their sums */
    const int *ranges; /* [nworkers + 1] worker w has [ranges[w], ranges[w + 1]); NULL: even ones */
    int vw_step;       /* between two consecutive ones of a worker */
    bool by_rounds;    /* each bucket is reduced after each round, in which every worker runs one */
    int nrounds, round_vws; /* reductions of a bucket, and the virtual workers in each */
    bool restarts;        /* what a worker has of a step that is interrupted can be used after it */
    int nslots;           /* gradient sums of a worker, at most */
    bool on_device;       /* a device of each worker runs the layers */
    bool state_on_device; /* and has the parameters and the optimizer's states */
    bool sums_on_device;  /* and computes sums over workers */
    bool receives;        /* of what it receives; else it reads the memory of the others' devices */
    int nsums;  /* sums over all workers of a worker's shards, at most; 1 without rounds */
    int ninbox; /* gradients that another stage has sent and that wait, of a bucket, at most: set by
                 * the pass that adds messages */

    /* what is sharded */
    bool shards_moments, shards_grads, shards_params;
    int nshards, nreplicas; /* workers of a sharding group, and the number of sharding groups */
    bool has_masters;       /* f32 masters beside parameters of 16 bits */
    int nflats;             /* the optimizer's f32 buffers: masters, if any, and states */

    /* codes */
    bool has_errors;                /* errors of encoding are carried from step to step */
    bool has_factors;               /* gradients are sent as two factors, each summed by itself */
    bool sends_codes, sends_values; /* codes are sent; gradients are, in a warm-up or always */
    int encodings;                  /* Encodes of one virtual worker's bucket */
    size_t nfactors;                /* floats of all second factors */
    size_t error_floats; /* of one virtual worker's errors: of the model, then the second factors */

    size_t nscalars; /* ls_share_scalars() */
    ls_share_nbytes nbytes;

    ls_worker_share *workers; /* [nworkers] */
    ls_bucket *buckets;       /* [nbuckets] in the order in which Backward fills them */
    int nbuckets;
    size_t *cuts; /* [nbuckets][cuts_row] where shards of buckets begin */
    size_t cuts_row;
    ls_code_piece *pieces; /* of bucket k: [pieces_from[k], pieces_from[k + 1]) */
    int *pieces_from;

    /* for passes (share/mesh.h) */
    int *own_ranges;             /* with islands: ranges */
    int *touched, *touched_from; /* buckets of layers */
    int *stage_of, *cell_of;     /* [nlayers]; NULL: one cell */
    ls_crossing *crossings;      /* [nlayers] the same */
    /* [nholders][nchunks][nbuckets] */
    int *openers;    /* see ls_share_opens(); -1: its layers do not write it */
    int *closers;    /* see ls_share_closes() */
    ls_range *parts; /* [ncells][nbuckets] see ls_share_touched_part() */
    size_t
        *ends; /* [nends] where buckets end because other workers have what follows, descending */
    int nends;
} ls_share;

/* LS_EINVAL: workers can't divide the model so (ls_share_check()). */
ls_status ls_share_make(const struct ls_share_config *, ls_share *sh_p, ls_error *);
void ls_share_free(ls_share *);
/* LS_EINVAL: buckets or shards are not such as they should be. */
ls_status ls_share_verify(const ls_share *, ls_error *);

/* ---- workers ---- */

/* The worker at a place of a cell, or of a holder. */
int ls_share_worker(const ls_share *, int cell, int place);
int ls_share_member(const ls_share *, int holder, int place);
/* The first worker of a worker's sharding group. */
int ls_share_first_of_shards(const ls_share *, int worker);
/* The virtual worker by its number among the worker's, and the reverse. */
static inline int ls_share_vw(const ls_share *sh, int worker, int i) {
    return sh->workers[worker].first_vw + i * sh->vw_step;
}
static inline int ls_share_vw_index(const ls_share *sh, int worker, int vw) {
    return (vw - sh->workers[worker].first_vw) / sh->vw_step;
}
/* Is it one of the worker's? */
bool ls_share_runs_vw(const ls_share *, int worker, int vw);
/* The slot of the worker's i-th virtual worker; returns the number of folds that follow it. */
int ls_share_fold(const ls_share *, int worker, int i, int *slot_p);
/* As ls_share_fold(), for sums over all workers after round i, where rounds are reduced. */
int ls_share_fold_round(const ls_share *, int i, int *slot_p);
/* Samples of layers' calls (ls_model_samples()) in a micro-batch of a full batch; micro -1: in all
 * micro-batches together. */
int64_t ls_share_samples(const ls_share *, int micro);

/* ---- buckets ---- */

static inline bool ls_share_has(const ls_share *sh, int bucket, int worker) {
    return ls_worker_set_has(sh->buckets[bucket].workers, worker);
}
/* All of a bucket. */
static inline ls_range ls_share_range(const ls_share *sh, int bucket) {
    return (ls_range){sh->buckets[bucket].first, sh->buckets[bucket].end};
}
/* A worker's shard of a bucket: contiguous, cut at multiples of LS_BLOCK, and not inside a whole
 * parameter (bucket.c); may be empty. */
ls_range ls_share_shard(const ls_share *, int bucket, int worker);
/* The elements of all shards of a worker. */
size_t ls_share_shards_count(const ls_share *, int worker);
/* counts [nshards of the bucket]: the elements of each shard. */
void ls_share_shard_counts(const ls_share *, int bucket, size_t *counts);
/* The part of a bucket's sum that a worker squares; may be empty. */
ls_range ls_share_normed(const ls_share *, int bucket, int worker);
/* The part of a bucket that a worker updates: its shard, or all if moments are not sharded. */
ls_range ls_share_owned(const ls_share *, int bucket, int worker);

/* Sums of a bucket that remain when all its virtual workers are done; the slot of the first of
 * them: the others follow. */
int ls_share_sums(const ls_share *, int bucket, int worker);
int ls_share_first_slot(const ls_share *, int bucket, int worker);
/* The slot of the first sum over all workers: that of the first one of the bucket's, or where
 * rounds are reduced, the one after the worker's last. */
int ls_share_sum_slot(const ls_share *, int bucket, int worker);
/* Is a worker's shard of the sum over all workers in this slot of its gradients, so that it
 * outlives them? */
bool ls_share_keeps_shard(const ls_share *, int slot);
/* Slots in which a worker has gradients of a bucket. */
int ls_share_bucket_slots(const ls_share *, int bucket, int worker);

/* ---- islands ---- */

/* The first float of a bucket's segment. */
static inline size_t ls_share_base(const ls_share *sh, int bucket) {
    return (size_t)sh->buckets[bucket].island * sh->segment_floats;
}
/* The island of a virtual worker; 0: there are none. */
static inline int ls_share_island_of(const ls_share *sh, int vw) {
    return sh->islands ? 1 + vw / sh->island_vws : 0;
}
/* The bucket in the island's segment that is `bucket` in the first segment; and the reverse. */
static inline int ls_share_bucket_in(const ls_share *sh, int bucket, int island) {
    return bucket + island * sh->segment_buckets;
}
static inline int ls_share_common_bucket(const ls_share *sh, int bucket) {
    return bucket % sh->segment_buckets;
}
/* Do Outer and Adopt change floats of this bucket? The part that they change, as in the flat
 * buffer. */
bool ls_share_part(const ls_share *, int bucket, ls_range *part_p);
bool ls_share_changes_bucket(const ls_share *, int bucket);

/* What an update takes from an island in place of ls_optim_step's. */
typedef struct ls_island_scale {
    double grad_scale, samples;
    double lr_scale; /* multiplies the learning rate */
} ls_island_scale;

/* The most replicas in a mix; those in the mix of an island, by their islands. */
int ls_share_terms(const ls_share *);
int ls_share_terms_of(const ls_share *, int island, int list[LS_MIXING_MOST]);
/* Floats of a worker's memory for what arrives: parts of two buckets for each of its islands. And
 * where in it the part of a bucket (of an island's segment) begins. */
size_t ls_share_received(const ls_share *);
size_t ls_share_received_at(const ls_share *, int worker, int bucket);

/* ---- samples that are cut into chunks (networks/chunked.h) ---- */

static inline int ls_share_layer_chunk(const ls_share *sh, int layer) {
    return sh->nchunks > 1 ? sh->model->layers[layer].chunk : 0;
}
/* The slot of the chunk's sum that is number `level` on its stack (ls_share_fold()). */
int ls_share_slot_of(const ls_share *, int worker, int chunk, int level);
/* How a worker that runs all virtual workers adds up the sums of its chunks, of a bucket. Returns
 * the number of such folds: 0 for other workers. */
typedef struct ls_chunk_fold {
    int slot, from;
} ls_chunk_fold;
int ls_share_chunk_folds(const ls_share *, int bucket, int worker,
                         ls_chunk_fold list[LS_TREE_MAX_CHUNKS]);
/* Where the sums over micro-batches of the layer's chunk begin (wide): floats. */
size_t ls_share_wide_at(const ls_share *, int worker, int layer);

/* ---- memory and traffic ---- */

ls_scalars ls_share_scalars(const ls_share *, double *scalars);

/* All gradient sums of a worker. */
size_t ls_share_grads_nbytes(const ls_share *, int worker);
/* Size of each worker's part of a group's arena that holds all that outlives a step. */
size_t ls_share_group_nbytes(const ls_share *);
/* The sum over all workers, on one host. */
size_t ls_share_host_nbytes(const ls_share *);

/* Bytes that come from other hosts to a worker in a step, on average over the workers, of the rows
 * of tables that hosts of `near` workers divide (docs/guide/recommenders.md), if all ids of the
 * batch differ: rows that its samples read, with the numbers by which it asks for them; rows and
 * states that it updates; those that are written back to it. 0 on one host. */
typedef struct ls_rows_moved {
    double read, updated, written;
} ls_rows_moved;
ls_rows_moved ls_share_rows_moved(const ls_share *, int near);

#endif
