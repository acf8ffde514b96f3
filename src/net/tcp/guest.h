/* guest.h - peers that connect to a listening socket, until they have sent their first frame; and
 * the other side, which connects, sends one frame, and receives one.
 *
 * A guest is not known yet. It has to complete the handshake (with a key: to prove that it has it)
 * and to send one frame of a kind that the host knows; otherwise it is dropped with a log line, and
 * disturbs no other guest. Guests that have proved nothing are strangers. Their number, and the
 * memory of all of them together, is limited: above the limit, the oldest one of the address with
 * the most strangers is dropped, so strangers can't keep workers out by coming first. Its
 * connection is reset, and a worker that was taken for a stranger tries again (ls_visit_continue(),
 * tcp_out.c). At most one log line per second names a dropped guest, and counts the others.
 */
#ifndef LS_NET_TCP_GUEST_H
#define LS_NET_TCP_GUEST_H

#include "net/address.h"
#include "net/tcp/conn.h"

enum {
    LS_GUEST_NBYTES = 640,         /* what may follow a guest's first frame */
    LS_STRANGERS_NBYTES = 16 << 20 /* memory of all strangers of a process */
};

typedef struct ls_guest {
    ls_conn *c;
    struct sockaddr_storage from;
    int64_t came;   /* when it connected, ns */
    unsigned crowd; /* guests of one address have the same number */
    bool readable;  /* ls_guests_read() has something to read */
    bool has_header, has_frame;
    ls_frame frame;                         /* its first; of a kind that the host knows */
    unsigned char payload[LS_GUEST_NBYTES]; /* [frame.nbytes] if has_frame */
} ls_guest;

typedef struct ls_guests_options {
    int listen_fd;                   /* stays the caller's */
    const ls_key *key;               /* NULL: plain text */
    bool (*knows)(const ls_frame *); /* with nbytes of LS_GUEST_NBYTES at most */
    const char *why_rejected;        /* logged if a guest sends something else, or nothing */
    int patience; /* with more guests than this, one that sends no frame in 10 s is dropped */
    int most;
} ls_guests_options;

typedef struct ls_guests {
    ls_guests_options o;
    int n;
    ls_guest *all; /* [o.most], the first n used */
    struct pollfd *fds;
    bool no_descriptors; /* the system has none left; newcomers wait until guests have gone */
    /* Drops that are still to be logged, and the last of them. */
    int64_t logged_ns;
    int unlogged;
    char last[256];
} ls_guests;

void ls_guests_open(ls_guests *, const ls_guests_options *);
/* Drops all guests. */
void ls_guests_close(ls_guests *);

/* Waits for a newcomer, for data from a guest, or for stop_fd (-1: none); then admits newcomers.
 * timeout_ms: -1 for ever. */
void ls_guests_wait(ls_guests *, int stop_fd, int timeout_ms);

/* Reads from guest i once. GONE: it was dropped, and the last guest took its place. READY: its
 * frame is complete. */
typedef enum ls_guest_status { LS_GUEST_GONE, LS_GUEST_WAITS, LS_GUEST_READY } ls_guest_status;
ls_guest_status ls_guests_read(ls_guests *, int i);
bool ls_guest_is_slow(const ls_guest *);

/* Drops guest i; the last guest takes its place. why NULL: nothing is logged. */
void ls_guests_drop(ls_guests *, int i, const char *why);
/* Removes guest i as ls_guests_drop() does, but its connection stays open and becomes the
 * caller's. */
ls_conn *ls_guests_release(ls_guests *, int i);

/* ---- the other side ---- */

typedef struct ls_visit {
    ls_conn *c;
    ls_frame request;
    const void *data; /* [request.nbytes], LS_CONN_COPIED at most; copied by the first call */
    void *text;       /* [room] where what follows the answer goes */
    size_t room;
    const struct sockaddr_storage *to; /* for ls_conn_redial(); NULL: there is no second attempt */
    const ls_key *key;
    bool sent, has_answer; /* the request is queued; the answer's header has come */
    ls_frame answer;
} ls_visit;

/* Continues the visit. DONE: the answer is complete. FAILED, LS_EPEER: also if the answer is longer
 * than `room`. */
ls_io ls_visit_continue(ls_visit *, ls_error *);

/* Waits until the socket is readable (AGAIN_READ) or writable (AGAIN_WRITE), a tenth of a second at
 * most. */
void ls_conn_await(const ls_conn *, ls_io);

#endif
