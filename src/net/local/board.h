/* board.h - what forked workers report to their parent in shared memory: where they are, and why
 * they failed.
 */
#ifndef LS_NET_LOCAL_BOARD_H
#define LS_NET_LOCAL_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "net/local/bell.h"

/* What a worker is asked to do after the step in flight; the highest number that any worker of a
 * group is asked counts for all. */
typedef enum ls_asked {
    LS_ASKED_NOTHING,
    LS_ASKED_RENEW, /* end, so that new workers continue */
    LS_ASKED_LEAVE, /* the same, but a host leaves: what only it has is saved first */
    LS_ASKED_STOP   /* end with a checkpoint */
} ls_asked;

/* Where a worker is. Alone on its cache lines. */
typedef struct ls_board_slot {
    _Alignas(128) atomic_int action; /* index into the plan; -1 outside a step */
    atomic_llong step;               /* from 0 */
    atomic_llong beat_ns;            /* when it last showed that it is alive (beat.h); 0: not yet */
    atomic_llong compute_ns;         /* time that `measured` steps of this view have computed */
    atomic_llong measured;           /* 0: none yet, or compute_ns is being written */
    atomic_int asked;                /* ls_asked, by the parent */
    atomic_int gives_up;             /* by the parent: abandon the step in flight */
    atomic_int leaves;               /* the worker was asked to leave; do not replace it */
    atomic_int renews;               /* it has ended so that new workers continue */
    atomic_int unreached;            /* 1 + the worker that it could not reach; 0: none */
    atomic_int pid;                  /* of its process; 0: none yet. It may have ended */
    /* For a worker that survives the failure of its view (cluster/rest.h). */
    ls_bell bell;
    atomic_int recalled; /* by the parent: it must rest */
    atomic_int rests;    /* it rests, and can be ended, or continue in another view */
    atomic_llong view;   /* by the parent: the view in which it continues */
} ls_board_slot;

typedef struct ls_board {
    int nworkers;
    struct ls_board_note {
        atomic_int state; /* 0, 1 while it is written, 2 when it can be read */
        ls_error error;
    } own, lost; /* the first failure of a worker's own; the first that a lost peer caused */
    ls_board_slot slots[];
} ls_board;

/* Made before the workers are forked. */
ls_status ls_board_open(int nworkers, ls_board **b_p, ls_error *);
void ls_board_close(ls_board *);
/* Resets all but the processes and the fields about resting, for the next workers. */
void ls_board_reset(ls_board *);

static inline bool ls_board_recalled(const ls_board_slot *s) {
    return atomic_load_explicit(&s->recalled, memory_order_relaxed) != 0;
}

/* Records a worker's failure; the first one with a message is retained. */
void ls_board_fail(ls_board *, const ls_error *);
/* The first failure of a worker's own. */
bool ls_board_failed(const ls_board *, ls_error *e_p);
/* The first of those that blame another worker. */
bool ls_board_lost(const ls_board *, ls_error *e_p);

#endif
