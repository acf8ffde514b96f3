/* exchange.h - blocks of things of any number from each worker to each other. */
#ifndef LS_TABLE_EXCHANGE_H
#define LS_TABLE_EXCHANGE_H

#include "lockstep/group.h"

typedef struct ls_exchange {
    ls_group *group;
    int size;
    size_t *to, *from; /* [size] things for, and from, each worker */
    size_t nto, nfrom; /* their sums */
    int64_t *words;    /* [2 size] scratch */
    size_t *scaled;    /* [2 size] scratch */
} ls_exchange;

void ls_exchange_init(ls_exchange *, ls_group *);
void ls_exchange_free(ls_exchange *);

/* Collective: fails on all if `own` is an error on one. what: the call, for the others' message. */
ls_status ls_exchange_agree(ls_exchange *, ls_status own, const char *what, ls_error *);

/* Collective: the same, and tells each worker how many things this one has for it, `to`; then `from`
 * and both sums are known. */
ls_status ls_exchange_counts(ls_exchange *, ls_status own, const char *what, ls_error *);

/* Where the first thing for each worker goes, if things are ordered by worker: [size], scratch until
 * the next call. */
size_t *ls_exchange_places(ls_exchange *);

/* Collective: things of `each` elements, in the order of the workers. in [nto], out [nfrom]. */
ls_status ls_exchange_run(ls_exchange *, const void *in, void *out, size_t each, ls_dtype,
                          ls_error *);
/* The same back: in [nfrom], out [nto]. */
ls_status ls_exchange_back(ls_exchange *, const void *in, void *out, size_t each, ls_dtype,
                           ls_error *);

#endif
