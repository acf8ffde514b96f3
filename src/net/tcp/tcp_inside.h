/* tcp_inside.h - what the files of the transport "tcp" share: tcp.c (its calls), tcp_out.c (what is
 * sent) and tcp_in.c (what arrives). The frames are explained in tcp.c. */
#ifndef LS_NET_TCP_TCP_INSIDE_H
#define LS_NET_TCP_TCP_INSIDE_H

#include "base/mem.h"
#include "net/local/bell.h"
#include "net/net.h"
#include "net/tcp/join.h"
#include "net/tcp/watch.h"

enum { DATA = LS_FIRST_KIND, THERE, READY, BULK, LOST, LAST };
enum { EAGER = 65536 /* bytes: the longest short message */ };
enum { NOTES = 64, EARLY = 16 }; /* in a segment of their slabs */

/* A tag that was asked for, or announced, before this side knew of it. */
typedef struct note {
    uint64_t tag, print, nbytes;
    struct note *next;
} note;

typedef struct peer {
    ls_conn *out, *in;
    ls_message *waiting; /* long sends that have not been asked for */
    ls_message *silent;  /* the same; the peer does not know of them */
    note *asked;         /* READY came before the send */
    note *there;         /* THERE came before the receive */
    uint32_t watched;    /* events of `out` that epoll knows */
    bool in_gone, out_gone;
    int64_t out_gone_at;
    bool unreached; /* it was lost by the network's fault (net/unreached.h) */
    bool blames;    /* it has named the worker that it lost: */
    int blamed;
    unsigned char *last; /* [LS_WATCH_NBYTES] its last words, while they arrive */
    char why[512];
} peer;

/* A short message that nobody has asked for yet. */
typedef struct early {
    int from;
    uint64_t tag, print;
    size_t nbytes;
    struct early *next;
    bool whole;
    unsigned char data[];
} early;

typedef struct tcp_net {
    ls_net net; /* first */
    peer *peers;
    ls_roster_entry *members;
    uint64_t nonce[2];
    ls_key key;
    bool keyed;
    ls_patience patience;
    ls_watch *watch;
    int epoll_fd;
    bool no_pwait2;      /* the kernel, or a filter of system calls, does not have epoll_pwait2() */
    int broken;          /* errno of a failure of epoll itself; 0: none */
    int64_t announce_at; /* when THERE is sent for silent sends; INT64_MAX: there are none */
    ls_message *wanted;  /* posted receives */
    early *early, **early_end;
    ls_slab notes, early_slab; /* their memory */
    ls_message_queue done;
    bool moved;     /* since poll() began */
    bool sent_lost; /* LOST was sent to the other peers */
} tcp_net;

/* What a descriptor is, in epoll's data. */
typedef enum watched { WATCH_ARRIVALS, WATCH_IN, WATCH_OUT } watched;

/* ---- tcp_out.c ---- */

/* Makes epoll report these events of a descriptor. */
void ls_tcp_watch(tcp_net *, int fd, uint32_t events, watched, int rank);
void ls_tcp_finish(tcp_net *, ls_message *);
/* One of the two connections with a peer has ended. */
void ls_tcp_conn_lost(tcp_net *, int rank, bool in, const char *why);
/* The error of a peer that is lost; names it to the other peers. */
ls_status ls_tcp_lost(tcp_net *, int rank, ls_error *);
/* Connects to this peer unless a connection exists or has begun. */
ls_status ls_tcp_reach(tcp_net *, int rank, ls_error *);
/* Writes to a peer, a turn at most. */
void ls_tcp_push(tcp_net *, int rank);
/* Sends a frame about `m` to its peer. DATA and BULK carry its data; m is done when it is sent. */
ls_status ls_tcp_put(tcp_net *, int kind, ls_message *m, ls_error *);

/* ---- tcp_in.c ---- */

bool ls_tcp_take_note(tcp_net *, note **link, uint64_t tag, note *taken_p);
void ls_tcp_received(tcp_net *, ls_message *, uint64_t print, size_t nbytes);
void ls_tcp_give_early(tcp_net *, early *, ls_message *);
/* The peer's long message differs in length from the receive m: asks for it all the same, so that
 * its sender is done with it. Its data is discarded. */
void ls_tcp_release(tcp_net *, int from, ls_message *);
/* Reads everything that a peer has sent. */
void ls_tcp_pull(tcp_net *, int from);
/* Takes over the connections of peers that have connected to this worker. */
void ls_tcp_take_arrivals(tcp_net *);

#endif
