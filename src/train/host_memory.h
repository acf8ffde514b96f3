/* host_memory.h - checks that a run fits into the memory of this machine. The check comes before
 * the run begins, since the kernel grants more memory than there is and kills a worker later.
 *
 * The limit is that of base/ram.h. Where the system does not say how much memory there is, every
 * run passes.
 */
#ifndef LS_TRAIN_HOST_MEMORY_H
#define LS_TRAIN_HOST_MEMORY_H

#include "config/config.h"
#include "plan/memory.h"

/* Is there room for one copy of parameters, gradients and the optimizer's state? Called before
 * there is a plan, since a model that is too large may have none. LS_ENOMEM, with the numbers. */
ls_status ls_host_memory_for_model(const ls_config *, ls_error *);

/* What the workers of a host need, beside what there is. */
typedef struct ls_host_need {
    ls_memory most;       /* of the worker that needs most */
    double tables, ahead; /* the host's part of tables; gradients that are computed ahead */
    double copies;        /* of the state, for checkpoints */
    double all;           /* bytes, of all of these together */
    double has;           /* bytes that may be used; INFINITY: not known */
    const char *where;    /* "this machine has" */
} ls_host_need;

/* The memory that `workers` on this host need: by the plan's memory table (plan/memory.h), for
 * their part of the tables of rows and, with `copy`, for the copy of the state for checkpoints.
 * hosts: their number, each with as many workers; the plan's workers are those of one host. */
ls_host_need ls_host_memory_need(const ls_config *, const ls_plan *, int workers, int hosts,
                                 bool copy);
/* "1.2 GB", or in MB below 1 GB; of INFINITY "an unknown amount". */
const char *ls_host_memory_text(double nbytes, char text[32]);

/* Is there room for all of it? LS_ENOMEM, with the largest lines. */
ls_status ls_host_memory_for_plan(const ls_config *, const ls_plan *, int workers, int hosts,
                                  bool copy, ls_error *);

#endif
