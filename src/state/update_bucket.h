/* update_bucket.h - updates a bucket: called by the executor, and by the repair of the store when
 * the bucket's owner has died.
 */
#ifndef LS_STATE_UPDATE_BUCKET_H
#define LS_STATE_UPDATE_BUCKET_H

#include "optim/apply.h"
#include "share/share.h"

/* A worker's memory, and the step that it has decided. */
typedef struct ls_update {
    const ls_share *share;
    int worker;
    bool there; /* grads, params and flat are in the memory of the call's device, all in f32 */
    const void *grads; /* its slots, of the reduce type */
    void *params;      /* [nfloats] of the compute type */
    ls_flat flat;
    const ls_journal *journal; /* NULL: there is none */
    void *room;                /* for whole parameters (optim/whole.h); NULL: there are none */
    ls_optim_step step;
    const ls_island_scale *islands; /* [islands] */
    bool skipped;                   /* the gradient overflowed: nothing changes but the journal */
    bool apart;                     /* only the islands change */
    int64_t steps;                  /* complete with this one */
} ls_update;

/* Updates the part of a bucket that the worker owns. With a journal, skips blocks that have had the
 * step. */
void ls_update_bucket(const ls_update *, const ls_compute *, int bucket);

#endif
