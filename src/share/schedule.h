/* schedule.h - the order in which the workers of a pipeline compute: which micro-batch of which
 * stage comes next.
 *
 * A pipeline of P workers cuts the model's layers into P * v stages; each worker has v of them, its
 * chunks. Names and orders are those of torch.distributed.pipelining and Megatron-LM:
 *
 *   gpipe        all forward passes, then all backward ones (Huang et al., "GPipe", 2019)
 *   1f1b         P - 1 - r forward passes on worker r, then one forward, one backward in turn
 *                (Narayanan et al., "PipeDream", 2019, and Megatron-LM, 2021)
 *   interleaved  the same with v chunks: the bubble is a v-th of it (Narayanan et al., "Efficient
 *                Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021).
 *                Micro-batches go through the chunks in groups of P; where P does not divide them,
 *                in larger groups
 *   zb-h1        1f1b whose backward passes compute the gradients of inputs alone; those of
 *                parameters follow r micro-batches later on worker r, where it would wait (Qi et
 *                al., "Zero Bubble Pipeline Parallelism", 2023)
 *   zb-v         split, too, with two chunks in the form of a V: worker r has stages r and
 *                2 P - 1 - r, so the first worker has the first stage and the last (the same)
 *
 * On each stage, micro-batches go forward and backward in ascending order: so a gradient's chain is
 * that of one worker.
 */
#ifndef LS_SHARE_SCHEDULE_H
#define LS_SHARE_SCHEDULE_H

#include <stdbool.h>

#include "config/choices.h"
#include "share/share.h"

typedef struct ls_pipe_schedule {
    ls_pipe_kind kind;
    int workers; /* P */
    int chunks;  /* v; 1 but for interleaved, and 2 for zb-v */
    int micros;  /* micro-batches of a step */
} ls_pipe_schedule;

/* One pass of a micro-batch through a stage. */
typedef struct ls_pass {
    bool backward;
    int chunk, micro;
    ls_back back;
} ls_pass;

const char *ls_pipe_name(ls_pipe_kind);
/* Are passes backward split? */
bool ls_pipe_splits(ls_pipe_kind);
/* Does it need several chunks? */
bool ls_pipe_is_chunked(ls_pipe_kind);

/* Passes of each worker in a step. */
int ls_pipe_npasses(const ls_pipe_schedule *);
/* passes [ls_pipe_npasses()], of worker `rank`. */
void ls_pipe_list(const ls_pipe_schedule *, int rank, ls_pass *passes);

/* The part of a step in which a worker has nothing to do, if a pass forward takes as long in all
 * stages and a pass backward twice as long, or where it is split as long for each part. */
double ls_pipe_bubble(const ls_pipe_schedule *);

/* The stage of a worker's chunk, and the reverse. */
int ls_pipe_stage(const ls_pipe_schedule *, int rank, int chunk);
void ls_pipe_place(const ls_pipe_schedule *, int stage, int *rank_p, int *chunk_p);

#endif
