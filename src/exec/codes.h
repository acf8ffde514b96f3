/* codes.h - a worker's codes of gradients in a step, and those that it gets from others.
 *
 * own    [bucket][own virtual worker][code of the bucket]
 * all    [bucket][virtual worker][the part that this worker decodes]
 * sent   for each other worker: [own virtual worker][the part that it decodes]; only where workers
 *        decode different parts
 */
#ifndef LS_EXEC_CODES_H
#define LS_EXEC_CODES_H

#include "lockstep/group.h"
#include "share/share.h"

typedef struct ls_codes {
    const ls_share *share;
    int worker;
    void *own, *all, *sent;
    size_t *own_at, *all_at;     /* [nbuckets] bytes */
    size_t *to_each, *from_each; /* [nworkers] bytes, in the exchange in flight */
} ls_codes;

/* For a plan that sends codes. Close frees what there is, also after a failure. */
ls_status ls_codes_open(ls_codes *, const ls_share *, int worker, ls_error *);
void ls_codes_close(ls_codes *);

/* The code of a bucket of one of the worker's virtual workers. */
unsigned char *ls_codes_of(const ls_codes *, int bucket, int vw);
/* The part that the worker decodes of a virtual worker's code; it begins at byte *first_p of
 * that. */
const unsigned char *ls_codes_got(const ls_codes *, int bucket, int vw, size_t *first_p);

/* Collective. Sends the own codes of a bucket, and gets those of all virtual workers. */
ls_status ls_codes_exchange_start(ls_codes *, ls_group *, int bucket, ls_request **r_p, ls_error *);

#endif
