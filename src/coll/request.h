/* request.h - the inside of a group, and its running calls.
 *
 * A call runs in one of three ways: straight from shared memory (shared.h), where all members of
 * the group share it and no algorithm is forced; by the transport's own collective (native.h),
 * where that is forced and possible; else as a program over the transport (flight.h). Sends and
 * receives are single messages.
 *
 * A thread that waits does the work of all groups of the endpoint: a message for one call may lie
 * before a message for another, and workers may wait for the calls of two groups in different
 * orders. So threads of other groups look at a group's requests: at flights with the endpoint
 * locked, at shared calls with the group locked. Where the endpoint has no other group, there are
 * no other threads, and nothing needs to be locked: new groups come from calls of existing ones.
 *
 * health.h has the errors of running calls.
 */
#ifndef LS_COLL_REQUEST_H
#define LS_COLL_REQUEST_H

#include "base/slab.h"
#include "coll/endpoint.h"
#include "coll/flight.h"
#include "coll/shared.h"

enum { LS_CACHE = 32 }; /* programs that a group keeps */

/* A result that is computed elsewhere, and moved to its place when its call is waited for. */
typedef struct ls_settle {
    void *to;
    const void *from;
    size_t nbytes; /* 0: it is already in its place */
} ls_settle;

/* A program that is made once for all equal calls. */
typedef struct ls_cached {
    ls_call call; /* counts: a copy */
    ls_in_place place;
    const ls_algorithm *algorithm;
    ls_coll_program program;
    ls_traffic traffic; /* of one run */
    ls_flight flight;
    bool made;
    atomic_bool busy; /* another thread of the endpoint may end its flight */
    uint64_t used;    /* the group's number of calls at the last use */
} ls_cached;

struct ls_request {
    ls_group *g;
    ls_call call;
    ls_reduction by; /* call.by points to it */
    ls_call_site site;
    uint32_t number;
    uint64_t print;   /* of this call and of all before it */
    ls_record record; /* of a collective */
    atomic_bool done; /* set last: a thread that sees it may free the request */
    ls_settle settle;
    bool owned; /* by the caller of a _start function: given back to g->requests when it is done */
    ls_shared_call *shared;
    ls_cached *cached; /* of a flight */
    bool native, message_only, receives;
    ls_message message; /* of the latter two */
    size_t *nbytes_p;   /* of a receive whose sender chooses the length: where it is written */
    /* For the threads that wait for it, ns: when the wait began, and when they check next what
     * holds it up. */
    int64_t since, next_look;
    bool reported;
    struct ls_request *next;   /* in its group */
    struct ls_request *flying; /* on the endpoint */
};

struct ls_group {
    ls_endpoint *end; /* NULL: the group is closed */
    int id, rank, size;
    uint32_t identity; /* which of the groups that have had this id: the same at all members */
    struct ls_group *sibling;
    int *ranks;        /* [size] of the endpoint */
    int *hosts;        /* [size] */
    ls_shared *shared; /* NULL: not all members share memory */
    const ls_algorithm *forced;
    bool native;      /* the transport's own collectives are forced */
    uint32_t *logged; /* [LS_NCALLS][64] choices logged so far (explain.c); NULL: no logging */
    int64_t timeout_ns, report_ns;
    uint32_t calls;
    uint64_t print;            /* of all calls so far: the same at all members */
    uint32_t *sent, *received; /* [size] single messages */
    ls_cached cache[LS_CACHE];
    pthread_mutex_t lock; /* of the list of requests, the shared calls in it, and of breaking */
    ls_request *first;
    ls_slab requests;  /* those that _start functions give to their callers */
    ls_call_site site; /* where the call that is made now stands */
    ls_call_form form; /* of collectives that the library makes on behalf of a user's call */
    ls_call_mark mark; /* of the next call */
    void *work;        /* of compressed and virtual sums: the largest that one needed so far */
    size_t work_nbytes;
    ls_counters counters;
    /* health.c's */
    ls_history *history; /* of this worker; NULL: it is on the page, since all share memory */
    unsigned last_seen;  /* last words of others, as ls_watch_nlast_words() counts them */
    int64_t looked;      /* ns, the time of the last check (ls_health_check) */
    atomic_int broken;   /* LS_OK, or why the group can only be closed; set after `why` */
    ls_error why;
    ls_miscount miscount; /* set with `broken` */
    int suspect;          /* a member whose message was of another call; -1: none */
    bool concluded;       /* the reason was searched for, and returned to this worker's caller */
    bool to_report;       /* the reason must be sent to the others */
};

/* LS_EINVAL, with the name of the call, if the group is NULL, closed, or that of the worker from
 * which this process was forked. */
ls_status ls_group_check(const ls_group *, const char *name, ls_error *);
/* Makes the group's work memory at least this large, aligned to a cache line; what it had is
 * lost. */
ls_status ls_group_grow_work(ls_group *, size_t nbytes, const char *name, ls_error *);

/* Are its calls made straight from shared memory? */
static inline bool ls_goes_shared(const ls_group *g) {
    return g->shared && !g->forced && !g->native;
}

/* Has the program that started this worker called the groups off? */
static inline bool ls_group_is_called_off(const ls_group *g) {
    return g->end->commons && ls_commons_is_called_off(g->end->commons);
}

/* How a group makes a call; every member finds the same. */
typedef struct ls_route {
    enum { LS_BY_SHARED_MEMORY, LS_BY_NATIVE, LS_BY_MESSAGES } way;
    const ls_algorithm *algorithm; /* of messages; else NULL */
    bool forced;
} ls_route;
ls_route ls_group_route(const ls_group *, const ls_call *);
/* "shared memory", "native", "ring", ... */
const char *ls_route_name(const ls_route *);
/* The line of ls_group_explain(). */
void ls_route_explain(const ls_group *, const ls_call *, char *text, size_t nbytes);
/* Logs that line at member 0, once for each kind of call. */
void ls_route_log(ls_group *, const ls_call *);

/* Starts a call whose arguments have been checked. The caller owns r, which must not move until
 * the call is done. */
ls_status ls_request_start(ls_group *, const ls_call *, const ls_operands *, ls_request *r,
                           ls_error *);

/* A single message to or from member `peer`. */
typedef struct ls_single_call {
    bool send;
    int peer;
    void *buf;
    size_t count;
    ls_dtype dtype;
    size_t most;      /* bytes: see ls_message; 0: `count` is agreed upon */
    size_t *nbytes_p; /* with `most`, of a receive: set when it is done */
} ls_single_call;
ls_status ls_request_start_message(ls_group *, const ls_single_call *, ls_request *r, ls_error *);

/* Makes all progress that is possible now. An error breaks the group. */
void ls_request_progress(ls_group *);
/* Polls the transport for timeout_ns at most, even if nothing is in flight. Failures are not
 * reported. */
void ls_request_poll(ls_group *, int64_t timeout_ns);
/* Makes progress for the caller of ls_test() on r. LS_OK: r->done may be set. */
ls_status ls_request_test(ls_request *r, ls_error *);
/* Waits until r is done, for timeout_ns at most, after which r can be waited for again; < 0: for
 * the group's time limit, which breaks the group when it runs out. */
ls_status ls_request_wait(ls_request *r, int64_t timeout_ns, ls_error *);
/* Waits until one of requests [n], some of which may be NULL, is done, or the group of one is
 * broken. The first one's group limits the time as in ls_request_wait(). */
ls_status ls_request_wait_set(ls_request *const *requests, int n, int64_t timeout_ns, ls_error *);
/* Waits until a call of r's group is done that its caller has not taken yet, for the group's time
 * limit at most. */
ls_status ls_request_wait_any(ls_request *r, ls_error *);
/* Ends the requests of a group, whose memory stays, and frees its programs. */
void ls_request_close_all(ls_group *);

#endif
