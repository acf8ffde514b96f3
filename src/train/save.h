/* save.h - workers save checkpoints while they train. */
#ifndef LS_TRAIN_SAVE_H
#define LS_TRAIN_SAVE_H

#include "storage/checkpoint.h"

struct ls_loop;

/* How much a checkpoint matters. */
typedef enum ls_urgency {
    LS_SAVE_IF_IDLE,   /* it is skipped while the previous one is still being written */
    LS_SAVE_FOR_SURE,  /* it waits for the previous one */
    LS_SAVE_HAND_OVER, /* workers wait until it is written; if it fails, they continue */
    LS_SAVE_LAST       /* workers wait until it is written, and it must succeed */
} ls_urgency;

typedef struct ls_saver {
    int64_t steps;             /* complete at the latest checkpoint; -1: none */
    int64_t due_ns;            /* when the latest was due; at first when training began */
    int64_t nskipped;          /* on worker 0: checkpoints in a row that were skipped */
    int64_t nroomless;         /* on worker 0: checkpoints that were not written for lack of room */
    ls_checkpoint_known known; /* worker 0's, where it writes checkpoints itself */
    bool shared; /* no host has all of the state: each writes a part of a checkpoint */
    int64_t
        part; /* the steps whose part this worker has asked for (storage/snapshot.h); -1: none */
} ls_saver;

void ls_saver_open(struct ls_loop *);
/* When a view begins: the checkpoint of `saved` steps exists or was asked for (-1: none), and
 * worker 0's host has n workers. */
void ls_saver_begin(struct ls_loop *, int64_t saved, int n);

/* Collective, between steps. A checkpoint that can't be written is logged, and the next one is
 * attempted when it is due; the last must succeed. Fails, and saves nothing, if something that a
 * worker reads has changed. */
ls_status ls_save(struct ls_loop *, ls_urgency, ls_error *);

/* By worker 0's clock: is it time for a checkpoint? Is one due, and is there room for it? */
bool ls_save_is_time(const struct ls_loop *);
bool ls_save_is_due_by_time(struct ls_loop *);
/* Where several hosts write: ls_snapshot_say() and ls_snapshot_hear(), after each step. */
void ls_save_say(const struct ls_loop *, int32_t *words);
void ls_save_hear(const struct ls_loop *, const int32_t *words);

/* By worker 0: restores files that were removed from the run directory. */
ls_status ls_save_restore_folder(struct ls_loop *, ls_error *);

#endif
