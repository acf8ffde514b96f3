/* frozen_values.h - where a worker finds the frozen parameters of its model (model/frozen.h).
 *
 *     with a run directory      in the run's file, which all workers map
 *     without one, but with     in the files of the published model, which all workers map
 *     model.from
 *     else                      in memory: one copy for the workers of a host, if these are
 *                               supervised or all workers share memory; else one each
 *
 * In 16 bits those that a file has in another type, or in another order, are rounded once to such
 * memory, like the trained ones after each update. Layers read the others in the file.
 */
#ifndef LS_TRAIN_FROZEN_VALUES_H
#define LS_TRAIN_FROZEN_VALUES_H

#include "storage/frozen_file.h"
#include "storage/pretrained.h"

struct ls_member;

typedef struct ls_frozen_values {
    const ls_frozen_value *values; /* [nparams] for calls of layers; NULL: the model has none */
    ls_frozen_file file;           /* the run's; path NULL: it has no directory */
    ls_pretrained stored;          /* model.from's files; values NULL: the run has a directory */
    ls_frozen_value *in_memory;    /* [nparams] some or all are in memory; NULL: all are in files */
    void *own;                     /* this worker's own copy; NULL: it has none */
    size_t own_nbytes;
} ls_frozen_values;

/* Collective, in each view; the run directory has the file. LS_EINVAL: a file is not that of the
 * other workers, or of earlier views. */
ls_status ls_frozen_values_open(struct ls_member *, ls_frozen_values *, ls_error *);
void ls_frozen_values_close(ls_frozen_values *);

#endif
