/* views_own.h - what views.c (every host's part) and leader.c (the leader's) have in common. */
#ifndef LS_CLUSTER_VIEWS_OWN_H
#define LS_CLUSTER_VIEWS_OWN_H

#include "cluster/partition.h"
#include "cluster/views.h"

/* What the leader knows about a host. */
typedef struct ls_peer {
    enum {
        LS_PEER_ABSENT,
        LS_PEER_RUNS,     /* its workers train in the view */
        LS_PEER_IS_ENDED, /* its view has ended; a step may have to be finished */
        LS_PEER_FINISHES,
        LS_PEER_RESTS
    } phase;
    bool end_sent; /* END was sent for the view that it runs */
    bool out;      /* it is left out of views (partition.h), and was told so */
    uint64_t host;
    int n;                      /* workers */
    int first, count;           /* its workers in the latest view that it was in */
    ls_view_end how;            /* } how that view has ended there */
    int blames;                 /* } */
    char why[LS_PARTITION_WHY]; /* } */
    char place[LS_PLACE];       /* where it said that others may try to reach it */
    int crashes, losses; /* views in which a new host ended in this way before it had the state */
    int64_t heard_ns, ordered_ns; /* ordered_ns: when END or FINISH was sent */
    ls_host_state state;
} ls_peer;

typedef struct ls_leader {
    int npeers;
    ls_peer peers[LS_HOSTS_MAX]; /* the first npeers have sent something */
    bool runs;                   /* the view runs on some host */
    bool broken, asked;          /* broken: the view must end; asked: workers were asked to renew */
    ls_view_end end;             /* how the view ends, as far as is known */
    char why[256];
    int wanted; /* number of workers; 0: as many as there are */
    bool from_checkpoint;
    int64_t since_ns, steps; /* since_ns: it leads; steps: when the latest view began */
    int crashes, losses;
    ls_partitions cuts;
} ls_leader;

/* Messages of a host to itself: a ring. */
typedef struct ls_inbox {
    int first, n;
    struct {
        int from;
        ls_host_message s;
    } messages[8];
} ls_inbox;

struct ls_views {
    ls_views_config c;
    int64_t now;
    int64_t alive_sent_ns; /* when this host last sent ALIVE */
    int64_t leader_ns;     /* when the leader last sent something */
    int64_t term;
    bool leads, linked, joined, heard, begun, over; /* heard: the leader has sent something since */
    int nworkers;
    enum { LS_CREW_RESTS, LS_CREW_RUNS, LS_CREW_ENDS, LS_CREW_FINISHES } crew;
    ls_view view; /* the latest view */
    ls_host_state state;
    ls_inbox inbox;
    ls_leader leader;
};

void ls_views_send(ls_views *, int peer, ls_host_message *);
bool ls_view_same(ls_view_id, ls_view_id);
/* Was more decided in the view than a host has finished? */
bool ls_views_lags(const ls_host_state *, const ls_store_decided *);

/* ---- host_message.c ---- */

/* NULL: the message is valid; otherwise what is wrong with it. by_leader: to a host that
 * follows. */
const char *ls_host_message_wrong(const ls_views_config *, const ls_host_message *, bool by_leader);

/* ---- leader.c ---- */

void ls_leader_begin(ls_views *); /* a term */
void ls_leader_receive(ls_views *, int peer, const ls_host_message *);
void ls_leader_lost(ls_views *, int peer, const char *why);
/* Sends the orders that are due. */
void ls_leader_settle(ls_views *);
void ls_leader_tick(ls_views *);

#endif
