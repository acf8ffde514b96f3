/* alone.h - a worker without a group, opened from a run directory: it has the run's model, data set
 * and frozen parameters, and its own state. */
#ifndef LS_TRAIN_ALONE_H
#define LS_TRAIN_ALONE_H

#include "train/member.h"

typedef struct ls_alone {
    ls_run run; /* with the config and the directory */
    ls_host host;
    ls_group *group;
    ls_board_slot slot;
    ls_dataset data;
    ls_member m; /* with the state of a new run */
} ls_alone;

/* a->run has its config and directory, the rest is zero. Close it also after a failure. */
ls_status ls_alone_open(ls_alone *, ls_error *);
void ls_alone_close(ls_alone *);

/* A new ls_alone, all zeros. */
ls_alone *ls_alone_new(void);

#endif
