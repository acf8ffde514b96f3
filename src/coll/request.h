/* request.h - a group from inside, and its calls on their way.
 *
 * A call runs in one of three ways: straight from shared memory (shared.h), where all members of
 * the group share it and no algorithm is forced; by the transport's own collective (native.h),
 * where that is forced and can do it; else as a schedule over the transport (flight.h). Sends and
 * receives are single messages.
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
    bool native, message_only, receives;
    ls_message message;        /* of the latter two */
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
    bool native;    /* the transport's own are forced */
    uint32_t *told; /* [LS_NCALLS][64] choices that were logged (explain.c); NULL: none are */
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

/* How a group makes a call; every member finds the same. */
typedef struct ls_choice {
    enum { LS_BY_SHARED_MEMORY, LS_BY_NATIVE, LS_BY_MESSAGES } way;
    const ls_algorithm *algorithm; /* of messages; else NULL */
    bool forced;
} ls_choice;
ls_choice ls_group_choose(const ls_group *, const ls_call *);
/* "shared memory", "native", "ring", ... */
const char *ls_choice_name(const ls_choice *);
/* The line of ls_group_explain(). */
void ls_choice_explain(const ls_group *, const ls_call *, char *text, size_t nbytes);
/* Logs it, where this member is the first one and has not done so for such a call. */
void ls_choice_tell(ls_group *, const ls_call *);

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
