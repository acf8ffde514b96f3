/* exchange.h - sends any number of things from each worker to each other worker. */
#ifndef LS_TABLE_EXCHANGE_H
#define LS_TABLE_EXCHANGE_H

#include "lockstep/group.h"

/* Memory that grows to the largest call. {0}: none. */
typedef struct ls_table_room {
    void *data;
    size_t nbytes;
} ls_table_room;
/* Makes room for at least nbytes, whose content is undefined. */
ls_status ls_table_room_take(ls_table_room *, size_t nbytes, ls_error *);
void ls_table_room_free(ls_table_room *);

typedef struct ls_exchange {
    ls_group *group;
    int size;
    bool flag, flagged; /* goes with the counts; any worker's was set */
    size_t *to, *from;  /* [size] things for, and from, each worker */
    size_t nto, nfrom;  /* their sums */
    int64_t *words;     /* [2 size] scratch */
    size_t *scaled;     /* [2 size] scratch */
} ls_exchange;

void ls_exchange_init(ls_exchange *, ls_group *);
void ls_exchange_free(ls_exchange *);

/* Collective: fails on all if `own` is an error on one. what: the call, for the others' message. */
ls_status ls_exchange_agree(ls_exchange *, ls_status own, const char *what, ls_error *);

/* Collective: as ls_exchange_agree(), and sends each worker the number of things that this worker
 * has for it, `to`; afterwards `from` and both sums are known. */
ls_status ls_exchange_counts(ls_exchange *, ls_status own, const char *what, ls_error *);

/* Where the first thing for each worker goes, if things are ordered by worker: [size], scratch
 * until the next call. */
size_t *ls_exchange_places(ls_exchange *);

/* Collective: things of `each` elements, in the order of the workers. in [nto], out [nfrom]. */
ls_status ls_exchange_run(ls_exchange *, const void *in, void *out, size_t each, ls_dtype,
                          ls_error *);
/* Sends the things back to where they came from: in [nfrom], out [nto]. */
ls_status ls_exchange_back(ls_exchange *, const void *in, void *out, size_t each, ls_dtype,
                           ls_error *);

#endif
