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
 *   ls_plan_add_copies()     copies what layers read to a device that runs them, and their results
 *                            back
 *   ls_plan_add_frees()      ends the life of each transient buffer after its last use
 *
 * With islands (share/islands.c) a plan trains several replicas of its model side by side, and
 * plans of their own bring them together now and then (sync.c).
 *
 * exec.h runs the result, print.c writes it. Neither knows a strategy: that is in the passes.
 *
 * Invariants, checked by ls_plan_verify() between passes and at the end:
 *  (1) One global order exists; each worker's lanes are restrictions of it (project.c).
 *  (2) A dependency is a use of the same buffer earlier in that order: all point backwards.
 *  (3) A communication is one action of all workers, of those of an island or a cell, or (Send) of
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
#include "share/share.h"

typedef enum ls_action_kind {
    LS_LOAD,        /* takes this step's samples from the loader */
    LS_FORWARD,     /* runs a layer on one micro-batch */
    LS_RECOMPUTE,   /* runs Forward again, for what Backward needs */
    LS_BACKWARD,    /* runs a layer on one micro-batch, and adds to the gradient in `slot` */
    LS_SQUARES,     /* sums the squares of a virtual worker's gradient of one bucket */
    LS_ENCODE,      /* replaces a virtual worker's gradient of one bucket by what its code holds */
    LS_EXCHANGE,    /* all workers: each gets the codes of a bucket that it decodes */
    LS_SUM_FACTORS, /* all workers: each gets the sum of a bucket's factors (share/codes.h) */
    LS_DECODE,      /* sums what the codes of all virtual workers hold, in the worker's part */
    LS_ADD,         /* gradient slot += slot `from`, for one bucket: a fold of the tree */
    LS_DELTA,       /* gradient slot = common parameters - those of the virtual worker's replica */
    LS_COPY,        /* gradient slot 0 = common parameters, which an Update mixes into replicas */
    LS_MIX,         /* gradient slot 0 of a replica (+)= the weighted parameters of a replica */
    LS_REDUCE_SCATTER, /* all workers: the owner of each shard of a bucket sums it */
    LS_NORM,           /* sums the squares of the worker's shards */
    LS_ALL_REDUCE,   /* all workers: each gets the sum of a bucket (among replicas: of the shard) */
    LS_REPLICA_NORM, /* the workers of an island: each gets the norm of its gradient */
    /* all workers: each gets the sums of norms and losses; then all know whether the state
     * changes */
    LS_DECIDE,
    LS_UPDATE,     /* runs the optimizer on the part of a bucket that the worker owns */
    LS_ALL_GATHER, /* all workers: each gets the parameters of all shards of a bucket */
    LS_SEND,       /* two workers: `worker` sends what is in a buffer to `peer` */
    LS_TAKE,       /* gradient slot = what another stage has sent, where only that one writes */
    /* copies a bucket's parameters or sum, the step's samples, or what another worker has sent of a
     * layer's output or its gradient, to the device */
    LS_TO_DEVICE,
    /* copies a bucket's gradient or shard, the losses, the norms, or what is sent of a layer, from
     * there */
    LS_FROM_DEVICE,
    LS_FREE, /* ends the life of a buffer: other buffers may take its memory */
    LS_NACTION_KINDS
} ls_action_kind;

typedef enum ls_lane { LS_LANE_COMPUTE, LS_LANE_COMM, LS_NLANES } ls_lane;

enum { LS_ALL_WORKERS = -1, LS_NO_BUCKET = -1 };

/* The workers that communicate with each other. Consecutive workers form sharding groups of
 * `shards` workers; a sharding group has one copy of what is sharded. Replicas are the workers, one
 * of each sharding group, that have the same shard. In a pipeline, the workers with the same stages
 * are a sharding group. */
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

/* What a communication moves, and among whom: comm.c derives it from the table. */
typedef struct ls_comm {
    ls_axis axis;
    ls_worker_set of; /* that take part, in one group or, along SHARDS and REPLICAS, in several */
    int members;      /* workers of a group: those that communicate with each other */
    ls_dtype dtype;
    size_t count;   /* elements of a group's result; Exchange: as if it were a gather */
    int V;          /* of a sum of gradients: the leaves of its tree; 0: summed in any order */
    int sums;       /* partial sums that a group has */
    int64_t nbytes; /* that a worker reads from others, the mean of all; Send: of the message */
} ls_comm;

typedef struct ls_action {
    ls_action_kind kind;
    int worker; /* or LS_ALL_WORKERS */
    /* Forward, Recompute, Backward, Squares, Encode: virtual worker, micro-batch (-1: all of
     * them) */
    int vw, micro;
    int layer; /* Forward, Recompute, Backward */
    /* Backward, Squares, Encode: the sum; Add: the lower of the two; reduction of a round: its
     * result */
    int slot;
    int from;     /* Add: the higher of the two */
    int chunk;    /* Add: of the sums; -1: they are of two chunks */
    bool summed;  /* Add: adds sums over all workers, in the worker's shard */
    int round;    /* communication: the round, where each round is reduced; Encode, SumFactors: the
                   * factor, 0 or 1 */
    ls_back back; /* Backward: of what it computes the gradients (schedule.h) */
    bool start;   /* Backward: the slot's chains start at 0; Encode: the virtual worker's first */
    bool last;    /* Backward: the last micro-batch of the virtual worker; Encode (of factors,
                   * Decode): its last, which completes errors */
    int term;     /* Mix: which of the replicas in each mix, from 0 */
    int bucket;   /* Squares, Encode, Add, Update, communication; or LS_NO_BUCKET */
    int buffer;   /* Free, Send; Take: what was received; ToDevice, FromDevice: the host's */
    int island;   /* communication: of which island; Mix: whose parameters are added; Send in a plan
                   * of Mix: for whose mix */
    ls_range part; /* Send, Take of a part of a gradient: which floats */
    int peer;      /* Send: who receives; Take: who has sent */
    ls_phase phase;
    ls_comm comm; /* communication */
} ls_action;

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
    /* the same in memory of the device, where it runs layers: */
    LS_BUF_DEVICE_ACT,
    LS_BUF_DEVICE_SAVED,
    LS_BUF_DEVICE_DACT,
    LS_BUF_PARAM,  /* [bucket] all its parameters */
    LS_BUF_SHARD,  /* [bucket] parameters of the worker's shard; part of PARAM */
    LS_BUF_MOMENT, /* [bucket] masters and the optimizer's states */
    LS_BUF_ERROR,  /* [bucket] errors of the worker's virtual workers */
    LS_BUF_CODE,   /* [bucket] codes of the worker's virtual workers */
    LS_BUF_CODES,  /* [bucket] codes of all virtual workers, of what the worker decodes */
    /* [bucket][slot] sum over all workers; part of GRAD, slot 0, or where rounds are reduced, in
     * slots of its own */
    LS_BUF_SUM,
    LS_BUF_GRAD,  /* [bucket][slot] sum over the worker's virtual workers */
    LS_BUF_INBOX, /* [bucket][slot] what another stage has sent of a virtual worker's gradient */
    /* in memory of the device, too: */
    LS_BUF_DEVICE_SAMPLES,
    LS_BUF_DEVICE_LOSSES,
    LS_BUF_DEVICE_NORMS,
    LS_BUF_DEVICE_PARAM,  /* [bucket] */
    LS_BUF_DEVICE_SHARD,  /* [bucket] part of DEVICE_PARAM */
    LS_BUF_DEVICE_MOMENT, /* [bucket] */
    LS_BUF_DEVICE_SUM,    /* [bucket][slot] part of DEVICE_GRAD */
    LS_BUF_DEVICE_GRAD,   /* [bucket][slot] */
    LS_NBUFFER_KINDS
} ls_buffer_kind;

typedef struct ls_buffer {
    ls_buffer_kind kind;
    int index, slot;
} ls_buffer;

typedef struct ls_plan {
    ls_share share;  /* who has what */
    bool has_copies; /* what a device runs uses its memory, and copies are in the plan (copies.c) */
    int in_flight;   /* micro-batches whose activations a worker has at one time, at most; else 1 */
    int first[LS_NBUFFER_KINDS + 1]; /* buffer of each kind; then the number of all */
    ls_action *actions;
    int nactions, capacity;
} ls_plan;

/* Runs all passes, and the verifier after each. */
ls_status ls_plan_make(const struct ls_share_config *, ls_plan *p_p, ls_error *);
/* A plan in which each virtual worker of this one has a worker, with all of the model: for one of
 * them alone (exec/solo.h). */
ls_status ls_plan_solo(const ls_plan *, ls_plan *solo_p, ls_error *);
void ls_plan_free(ls_plan *);

/* The passes. */
/* Appends the Exchange of a bucket's codes and their Decodes; or the sum of its first factors. */
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
void ls_plan_add_copies(ls_plan *);
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
/* As ls_plan_verify(), for a plan of another task than training: Deltas are folded and summed once,
 * copies made once, and all buckets updated once, after the AllReduce that decides. */
ls_status ls_plan_verify_sync(const ls_plan *, ls_error *);

/* ---- messages ---- */

/* Where a Send takes only some rows (chosen.c): which, else NULL. Its buffer is packed where it
 * lies (exec/packed.h), and not read after. */
const ls_chosen_rows *ls_plan_chosen(const ls_plan *, const ls_action *);
/* The buffer of the scores by which the sender leaves out rows; -1: it leaves out zeros alone. */
int ls_plan_scores(const ls_plan *, const ls_action *);
/* Bytes of a row. */
size_t ls_plan_chosen_nbytes(const ls_plan *, const ls_chosen_rows *);
/* Bytes of a Send that are expected, if all choices are as likely: its nbytes are the most. */
double ls_plan_sent_nbytes(const ls_plan *, const ls_action *);
/* For the verifier: do the rows of a Send, and the scores that choose them, fit? */
bool ls_plan_chooses_well(const ls_plan *, const ls_action *);
/* Does a message arrive only when its receiver has done all that precedes it in the order? Then
 * what it brings may take the place of other buffers. */
bool ls_plan_arrives_late(const ls_plan *, const ls_action *);

/* ---- what passes and readers share ---- */

ls_lane ls_plan_lane(const ls_plan *, const ls_action *);
const char *ls_action_kind_name(ls_action_kind);
ls_lane ls_action_kind_lane(ls_action_kind);
void ls_plan_append(ls_plan *, const ls_action *);
/* Append communications, with what describes them (comm.c): of a bucket; of an island's norm;
 * Decide. */
void ls_plan_append_comm(ls_plan *, ls_action_kind, ls_axis, int bucket, int round);
void ls_plan_append_norm(ls_plan *, int island);
void ls_plan_append_decide(ls_plan *);
/* Replaces the actions by those of lists [nworkers], and frees these: workers take turns, action by
 * action, as if they ran at the same speed. In a pipeline the lists follow each other, until
 * ls_plan_add_messages(). */
void ls_plan_take_turns(ls_plan *, ls_plan *lists);
/* Is it a call of a layer? */
bool ls_action_calls_layer(const ls_action *);
/* Does the worker's device run it, if the plan is for devices (copies.c)? Layers and folds; where
 * the optimizer's states are on the device, norms and updates; where it reads other devices, or
 * there is one worker, sums and gathers. */
bool ls_action_on_device(const ls_share *, const ls_action *);
/* Does it begin to bring the workers' gradients of a bucket together? */
bool ls_action_reduces(const ls_action *);
static inline bool ls_action_concerns(const ls_action *a, int worker) {
    if (a->worker == LS_ALL_WORKERS) return ls_worker_set_has(a->comm.of, worker);
    return a->worker == worker || (a->kind == LS_SEND && a->peer == worker);
}
/* The workers that an action concerns. */
ls_worker_set ls_action_concerned(const ls_action *);

/* The steps in which gradients are sent; and does an action run in a step? */
ls_phase ls_plan_values_phase(const ls_plan *);
bool ls_plan_runs(const ls_plan *, const ls_action *, int64_t step);

/* ---- buffers ---- */

/* Sets `first`: when share and in_flight are known. */
void ls_plan_count_buffers(ls_plan *);
int ls_plan_nbuffers(const ls_plan *);
int ls_plan_buffer(const ls_plan *, ls_buffer_kind, int index, int slot);
ls_buffer ls_plan_buffer_of(const ls_plan *, int id);
/* The device's buffer that has what this one of the host has, and the other way round; itself:
 * there is no other. */
int ls_plan_twin(const ls_plan *, int id);
/* Of twins that outlive a step: is it the one that has the newest contents where a step begins and
 * ends? */
bool ls_plan_outlives(const ls_plan *, int id);
/* Does a worker have the bucket's parameters, or read them? */
bool ls_plan_knows(const ls_plan *, int worker, int bucket);
/* The buffer of this kind for a layer's call on a micro-batch. */
int ls_plan_layer_buffer(const ls_plan *, ls_buffer_kind, const ls_action *, int layer);
/* Is the buffer in the arena? Activations and their gradients are, the host's and the device's each
 * in one of their own. */
bool ls_buffer_in_arena(ls_buffer_kind);
/* Does the buffer live only for part of a step? Those in the arena do, gathered parameters, and
 * gradients that are freed once they are summed. */
bool ls_plan_transient(const ls_plan *, ls_buffer);
/* Work memory of one layer call, at most; there: on a device, which has all numbers in f32. */
size_t ls_plan_work_nbytes(const ls_plan *, bool there);
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
                * -1: none */
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
} ls_arena_plan;

/* there: the arena of the worker's device. */
void ls_plan_arena(const ls_plan *, int worker, bool there, ls_arena_plan *a_p);
void ls_arena_plan_free(ls_arena_plan *);

/* ---- printing ---- */

/* One line: "  17  w1  Backward    h.2.mlp  vw 3 micro 0  sum 1". */
void ls_plan_print_action(const ls_plan *, int action, ls_buf *);
/* Appends lines of one worker, or of all in the global order (LS_ALL_WORKERS), from action `first`
 * on, until `out` has some tens of kilobytes. Returns the next action to print; nactions: none. */
int ls_plan_print_some(const ls_plan *, int worker, int first, ls_buf *out);

/* Appends which workers of a pipeline have which layers; nothing without a pipeline. */
void ls_plan_print_mesh(const ls_plan *, ls_buf *out);
/* Writes the experts of a worker, of each layer that has experts: "0 to 1, 4 to 5". Returns their
 * number; 0: none are divided. */
enum { LS_PLAN_EXPERTS = 80 };
int64_t ls_plan_experts_of(const ls_plan *, int worker, char *text, size_t size);
/* Elements of the parameters that a worker's layers of the stage read, and those of all of its
 * stages; what several layers share counts once. */
size_t ls_plan_stage_params(const ls_plan *, int stage, int worker);
size_t ls_plan_worker_params(const ls_plan *, int worker);
/* The part of a step's passes in which a worker has nothing to do, if all take as long. */
double ls_plan_bubble(const ls_plan *);

/* The hash is the same on every worker with the same config. */
ls_hash ls_plan_hash(const ls_plan *);

#endif
