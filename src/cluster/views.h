/* views.h - the supervisors of all hosts agree which workers train together.
 *
 * A host is a supervisor with the workers that it starts. One host leads: it begins views, and the
 * others report to it how they end. This code uses no clocks, sockets or processes: events come in
 * through the functions below, orders go out through a table of functions. So the same code runs on
 * hosts and, thousands of times, in a simulation.
 *
 *     host:    at rest --BEGIN--> runs --its workers have ended--> ended --FINISH--> at rest
 *                                  '----END, or the leader is lost---'
 *     leader:  all at rest --> BEGIN to all --> one ends badly, or is lost: END to the others
 *                  '-- all finished <-- FINISH, with what was decided <-- all have ended <--'
 *
 * If any worker has noted a step as decided, all gradients were reduced, and all hosts of the view
 * finish the step. Otherwise the next view repeats it. A change that the workers of some islands
 * have decided for these islands alone is finished by the hosts that have these islands. A host
 * that joins later, or had to be left behind, is at another step; in the next view its workers get
 * what they lack from the others (state/world.h). The state that counts is that of the newest view
 * that took up a whole state, even if another host got further in an earlier view: other hosts may
 * have lost their parts of that.
 *
 * If a new host fails before it has taken up the state of its first view, it is told that the run
 * is over for it, and the others begin the next view without it.
 *
 * If workers of two hosts can't reach each other, though the leader reaches both hosts, one of the
 * two is left out: it rests, gets OUT, and may join again when both have reached each other
 * (partition.h).
 *
 * Terms: membership.h says which host leads, and since when. A later term has a higher number.
 * Messages of another term are ignored.
 */
#ifndef LS_CLUSTER_VIEWS_H
#define LS_CLUSTER_VIEWS_H

#include "net/local/board.h"
#include "state/store.h"

enum {
    LS_HOSTS_MAX = 256,
    LS_HOST_WORKERS_MAX = 65535,
    LS_PEER_NAME = 80, /* bytes of a host's name in messages */
    LS_PLACE = 112,    /* bytes of an address in messages */
    LS_HOST_TEXT = 400,
    LS_OWN_PEER = 0,  /* the leader's number for itself */
    LS_TO_LEADER = -1 /* the other hosts' number for the leader */
};

typedef struct ls_view_id {
    int64_t term, number; /* number: from 1 */
} ls_view_id;

typedef struct ls_view {
    ls_view_id id;
    int64_t steps;    /* in the state that the view takes up; -1: it takes up a checkpoint */
    ls_scaler scaler; /* after these steps */
    int32_t nhosts, size;
    int32_t first, n;       /* this host has workers first to first + n - 1 of `size` */
    char address[LS_PLACE]; /* where worker 0 listens; "": the view has one host */
    /* The note of the last of `steps`, for worker 0, which may have to write the line of that step;
     * steps 0: not known. */
    ls_store_note last;
} ls_view;

/* How the workers of a host, or of all hosts, have ended; the highest value counts for all. */
typedef enum ls_view_end {
    LS_VIEW_DONE,    /* with the run's last step, or a checkpoint where that was asked for */
    LS_VIEW_RENEWED, /* after a step; other workers continue */
    LS_VIEW_ORDERED, /* ended by order of the leader, or since there is none */
    LS_VIEW_LOST,    /* a worker was killed or hung, or blames another one */
    LS_VIEW_CRASHED,
    LS_VIEW_STATELESS, /* the hosts together no longer have the whole state */
    LS_VIEW_FAILED     /* with an error that other workers would get, too */
} ls_view_end;

/* The state in a host's store, between views. */
typedef struct ls_host_state {
    int64_t steps;    /* complete steps; -1: there is no state */
    ls_scaler scaler; /* after these steps */
    ls_view_id view;  /* the latest view with workers of this host */
    /* The latest view in whose state this host has its part; `steps` counts in that state. */
    ls_view_id from;
    int32_t unfinished; /* the last decided step of `view` may be half done */
    int32_t whole;      /* for ls_views_ended(): all workers here took up the state of `view` */
    ls_store_decided decided; /* in `view`, as far as this host knows */
    ls_store_note last;       /* the note of the last of `steps`; steps 0: not known */
} ls_host_state;

typedef enum ls_host_message_kind {
    LS_HOST_ALIVE = 1,
    LS_HOST_JOIN,   /* to the leader: this host is at rest, or has ended */
    LS_HOST_ENDED,  /* to the leader: all workers of the view have ended here */
    LS_HOST_REST,   /* to the leader: finished */
    LS_HOST_LEAVE,  /* to the leader: this host leaves */
    LS_HOST_BEGIN,  /* by the leader: a view */
    LS_HOST_END,    /* by the leader: the view has ended badly elsewhere */
    LS_HOST_FINISH, /* by the leader: what was decided in the view */
    LS_HOST_OVER,   /* by the leader: the run has ended */
    LS_HOST_OUT,    /* by the leader: this host is left out of the view */
    LS_HOST_TRY,    /* by the leader: does this host reach that address? */
    LS_HOST_TRIED   /* to the leader: it does, or it does not */
} ls_host_message_kind;

/* Who is to blame for a view that has ended badly, as its workers on one host know it. */
enum {
    LS_BLAMES_ENDED =
        -1,            /* a worker of another host, which has ended, or was waited for too long */
    LS_BLAMES_NONE = 0 /* nobody else; above: 1 + the worker that could not be reached */
};

/* The format on the wire, too; little-endian. */
typedef struct ls_host_message {
    uint32_t what; /* ls_host_message_kind */
    uint32_t how;  /* ENDED, END, OVER: ls_view_end; TRIED: DONE, it is reached, or LOST */
    int64_t term;
    uint64_t host;    /* the sender */
    int32_t nworkers; /* JOIN, ENDED: number that the host offers for the next view */
    int32_t about;    /* ENDED: whom it blames; TRY, TRIED: number of the cut */
    ls_view view; /* BEGIN; END, FINISH: only the id; JOIN: only the address where others may try
                   * to reach this host; TRY: only the address to try */
    ls_host_state state;      /* JOIN, ENDED, REST */
    ls_store_decided decided; /* FINISH */
    char text[LS_HOST_TEXT];  /* ENDED, END, OVER, OUT: why */
} ls_host_message;

/* Orders. None of these may call back into the functions below. */
typedef struct ls_views_ops {
    void (*send)(void *arg, int peer, const ls_host_message *);
    void (*drop)(void *arg, int peer); /* closes its connection; ls_views_lost() does not follow */
    /* Where a host that has connected is, for messages: at most LS_PEER_NAME bytes. */
    void (*name)(const void *arg, int peer, char *text);
    void (*meet)(void *arg, ls_view *); /* fills in the address for a view of several hosts */
    int (*fit)(const void *arg, int n); /* the most workers up to n that a view can have */
    /* Starts workers; ls_views_ended() follows, sooner or later. */
    void (*begin)(void *arg, const ls_view *);
    void (*ask)(void *arg, ls_asked);        /* asks workers to end after the step in flight */
    void (*end)(void *arg, const char *why); /* kills them; ls_views_ended() follows */
    /* Finishes what was decided in the latest view; ls_views_finished() follows. Called again if
     * another host knows of more. */
    void (*finish)(void *arg, const ls_store_decided *);
    void (*log)(void *arg, const char *line);
    /* On the leader: the address at which host `by` may try to reach host `of`, which has said
     * where; "": not known. */
    void (*place)(const void *arg, const int by_of[2], const char *said, char address[LS_PLACE]);
    /* Tries whether an address can be reached; ls_views_tried() follows, unless this host ends. */
    void (*try_reach)(void *arg, int32_t number, const char *address);
    /* The last order: the run has ended, with LS_VIEW_DONE or LS_VIEW_FAILED. */
    void (*over)(void *arg, ls_view_end, const char *why);
} ls_views_ops;

typedef struct ls_views_config {
    uint64_t host; /* a number that no other host has */
    int nworkers;
    int least, most;    /* number of workers of a view */
    int hosts;          /* the leader waits for this many before the first view */
    int64_t silence_ns; /* a host that is silent for longer is lost */
    int64_t gather_ns;  /* a new leader waits this long for the hosts of the previous view */
    int64_t end_ns; /* a host whose view has not ended this long after END is dropped; 0: never */
    int64_t finish_ns; /* the same for FINISH */
    int64_t
        retry_ns;  /* two hosts that are cut are asked to try again after this time (partition.h) */
    int64_t steps; /* steps of the whole run; 0: not known */
    const ls_views_ops *ops;
    void *arg;
} ls_views_config;

typedef struct ls_views ls_views;

ls_views *ls_views_new(const ls_views_config *);
void ls_views_free(ls_views *);

/* ---- events ---- */

/* This host leads now, or another one does. term 0: no host leads. */
void ls_views_lead(ls_views *, int64_t term, bool self);
/* Views of this run have begun before, here or elsewhere: if this host becomes the leader, it does
 * not wait for `hosts` hosts, but up to gather_ns for the hosts that have the state. */
void ls_views_begun(ls_views *);
/* The connection to the leader is open; the connection to a peer is lost. */
void ls_views_linked(ls_views *);
void ls_views_lost(ls_views *, int peer);
/* A message from a host to the leader (the first one makes the host known), or from the leader. A
 * host that sends impossible values is dropped. */
void ls_views_receive(ls_views *, int peer, const ls_host_message *);
void ls_views_tick(ls_views *, int64_t now_ns);

/* How the workers of this host have ended. */
typedef struct ls_views_ending {
    ls_view_end how;
    int blames; /* LS_BLAMES_... */
    const char *why;
} ls_views_ending;

/* All workers of this host have ended. nworkers: number for the next view; 0: the host leaves. */
void ls_views_ended(ls_views *, const ls_views_ending *, const ls_host_state *, int nworkers);
void ls_views_finished(ls_views *, const ls_host_state *);

/* The address of this number was reached, or not. */
void ls_views_tried(ls_views *, int32_t number, bool reached);

/* On the leader: the next view, which begins after the step in flight, has this many workers. */
void ls_views_scale(ls_views *, int nworkers);
/* On the leader: the next view begins after the step in flight. */
void ls_views_renew(ls_views *);

/* ---- queries ---- */

bool ls_views_leads(const ls_views *);
bool ls_views_is_linked(const ls_views *); /* is there a leader? */
int ls_views_size(const ls_views *);       /* workers of the latest view; 0: there was none */
bool ls_views_has_ended(const ls_views *); /* the run */

#endif
