/* request.h - a group from inside, and its calls on their way.
 *
 * A call runs in one of two ways: straight from shared memory (shared.h), where all members of the
 * group share it and no algorithm is forced; else as a schedule over the transport (flight.h).
 * Sends and receives are single messages.
 *
 * Whoever waits does the work: of its own group's calls, and of all flights of the endpoint, since
 * a message for one may lie before a message for another.
 */
#ifndef LS_COLL_REQUEST_H
#define LS_COLL_REQUEST_H

#include "coll/endpoint.h"
#include "coll/flight.h"
#include "coll/shared.h"

enum { LS_CACHE = 32 }; /* schedules that a group keeps */

/* A schedule made once for all calls that are alike. */
typedef struct ls_cached {
    ls_call call; /* counts: a copy */
    ls_overlap overlap;
    size_t overlap_first;
    const ls_algorithm *algorithm;
    ls_schedule schedule;
    ls_flight flight;
    bool made;
    atomic_bool busy; /* another thread of the endpoint may end its flight */
    uint64_t used;    /* when, in calls */
} ls_cached;

struct ls_request {
    ls_group *g;
    ls_call call;
    const char *file;
    int line;
    uint32_t number;
    uint64_t print;
    atomic_bool done; /* set last: whoever sees it may free the request */
    bool owned;       /* by the caller of a _start function: freed when it is done */
    ls_shared_call *shared;
    ls_cached *cached; /* of a flight */
    bool message_only, receives;
    ls_message message;
    struct ls_request *next;   /* in its group */
    struct ls_request *flying; /* on the endpoint */
};

struct ls_group {
    ls_endpoint *end;
    int id, rank, size;
    int *ranks;        /* [size] of the endpoint */
    int *hosts;        /* [size] */
    ls_shared *shared; /* NULL: not all members share memory */
    const ls_algorithm *forced;
    int64_t timeout_ns, report_ns;
    uint32_t calls;
    uint32_t *sent, *received; /* [size] single messages */
    ls_cached cache[LS_CACHE];
    ls_request *first;
    const char *file; /* where the call that is made now stands */
    int line;
    ls_status broken; /* LS_OK, or why the group can only be closed */
    ls_error why;
    ls_counters counters;
};

/* Where `in` and `out` of a call lie in each other. */
typedef struct ls_in_place {
    ls_overlap overlap;
    size_t first; /* elements */
} ls_in_place;

/* Starts a call whose arguments are good. r is the caller's, and stays where it is until it is
 * done. */
ls_status ls_request_start(ls_group *, const ls_call *, const void *in, void *out, size_t nin,
                           size_t nout, ls_in_place, ls_request *r, ls_error *);
/* A single message to or from member `peer`. */
ls_status ls_request_start_message(ls_group *, bool send, void *buf, size_t nbytes, int peer,
                                   ls_dtype, ls_request *r, ls_error *);
/* Does what can be done now. */
ls_status ls_request_progress(ls_group *, ls_error *);
/* Until r is done. `own_limit`: the group's limit counts, and running into it ends the group; else
 * timeout_ns, and r stays. */
ls_status ls_request_wait(ls_request *r, int64_t timeout_ns, bool own_limit, ls_error *);
/* Frees what a group's calls keep. */
void ls_request_close_all(ls_group *);

/* The group can only be closed from now on. Returns the code. */
ls_status ls_group_break(ls_group *, const ls_error *);

#endif
