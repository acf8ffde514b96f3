/* watch.h - a thread that answers while its worker computes, waits, or is stuck.
 *
 * It listens for the worker: whoever connects has to prove that it has the key and to say which
 * worker of which run it is; those who don't are dropped with a log line, and disturb nobody. A
 * peer's connection is handed on to the transport; a peer that asks what this worker is doing is
 * answered from what was published last.
 */
#ifndef LS_NET_WATCH_H
#define LS_NET_WATCH_H

#include "net/conn.h"
#include "net/join.h"

enum { LS_WATCH_GROUPS = 64, LS_WATCH_NBYTES = 128 };

/* What each connection says first. */
typedef struct ls_greeting {
    uint64_t nonce[2]; /* of the run */
    uint32_t from, to;
} ls_greeting;

enum {
    LS_GREETING = 1,
    LS_QUESTION = 2,
    LS_ANSWER = 3,
    LS_FIRST_KIND = 16 /* the transport's own */
};

typedef struct ls_watch ls_watch;

/* Takes listen_fd. key NULL: plain text. */
ls_status ls_watch_start(int listen_fd, int rank, int size, const uint64_t nonce[2],
                         const ls_key *key, ls_watch **w_p, ls_error *);
void ls_watch_stop(ls_watch *);

/* Readable when a peer's connection can be taken. */
int ls_watch_fd(const ls_watch *);
/* NULL: there is none (any more). */
ls_conn *ls_watch_take(ls_watch *, int *from_p);

/* What is answered to questions about `group`; n bytes, LS_WATCH_NBYTES at most. Any thread. */
void ls_watch_publish(ls_watch *, int group, const void *data, size_t n);

/* Asks the worker `to` that listens at `address`. LS_ETIMEOUT: it accepts, or not even that, but
 * says nothing; LS_EPEER: nobody is there. */
ls_status ls_watch_ask(const ls_member *, const ls_greeting *, const ls_key *, int group,
                       void *data, size_t n, int64_t timeout_ns, ls_error *);

/* The options that all sockets of a group have: non-blocking, no delay, dead peers are noticed in
 * about 15 s also where the network says nothing. */
void ls_socket_options(int fd);
/* A socket that connects to an address; -1 with errno. */
int ls_socket_dial(const struct sockaddr_storage *);

#endif
