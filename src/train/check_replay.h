/* check_replay.h - makes the weights of an asynchronous run again, with one worker, and compares
 * them with a checkpoint of the run. */
#ifndef LS_TRAIN_CHECK_REPLAY_H
#define LS_TRAIN_CHECK_REPLAY_H

#include "storage/checkpoint.h"

typedef struct ls_replay {
    int64_t steps;
    char *checkpoint;           /* the directory: free() it */
    ls_checkpoint_info saved;   /* what the checkpoint has */
    ls_hash weights, optimizer; /* what the replay has made */
} ls_replay;

/* step: of the checkpoint; 0: the newest good one. Changes nothing in the run directory. LS_EINVAL:
 * the run was not asynchronous, or its log is incomplete. */
ls_status ls_replay_run(const char *run, int64_t step, ls_replay *r_p, ls_error *);

/* Are both hashes those of the checkpoint? */
bool ls_replay_is_same(const ls_replay *);

#endif
