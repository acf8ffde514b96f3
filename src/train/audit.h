/* audit.h - checks that all workers compute the same: finds bad memory and bad processors.
 *
 * Where each worker has a copy of the parameters, hashes of all parameters are compared. The
 * gradient of one virtual worker, a different one each time, is computed by its worker and by the
 * next worker, and compared bit for bit; if the two differ, a third worker also computes it, which
 * shows which of them is wrong.
 */
#ifndef LS_TRAIN_AUDIT_H
#define LS_TRAIN_AUDIT_H

#include "train/member.h"

typedef struct ls_verdict {
    bool good;
    int culprit;      /* a worker; -1: two differ, and it is unknown which is wrong */
    bool parameters;  /* the parameters differ; else a gradient does */
    int vw;           /* the virtual worker whose gradient was compared */
    char tensor[128]; /* the first parameter that differs */
} ls_verdict;

/* What a user can do when workers differ. */
#define LS_AUDIT_ADVICE "continue from an earlier checkpoint, on other hardware"

/* Collective, between steps, after `steps` complete ones; all workers get the same verdict. */
ls_status ls_audit(ls_member *, int64_t steps, ls_verdict *v_p, ls_error *);

#endif
