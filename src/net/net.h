/* net.h - a transport: it moves messages between workers.
 *
 * A message is posted by its sender and by its receiver, each with its own ls_message; the two are
 * matched by (sender, receiver, tag), whichever is posted first. Any number may be in flight, in
 * any order: a message without a receiver yet does not delay others. Posting and polling never
 * block (a poll sleeps if it is given time). Nothing happens in between: a transport moves only
 * when it is polled.
 *
 * One thread at a time calls a transport. After a failure of one peer, messages with that peer
 * fail.
 */
#ifndef LS_NET_NET_H
#define LS_NET_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_net ls_net;

/* The version of what a transport that is loaded as a plugin sees: the structs of this header, of
 * native.h, and ls_error, and the numbers of types and operations. Raised when one of them changes.
 */
enum { LS_NET_INTERFACE = 6 };

/* One end of a transfer. It belongs to the caller until it is posted, and again when poll() has
 * returned it. */
typedef struct ls_message {
    int peer;
    uint64_t tag;
    void *data;     /* [nbytes]; only read where it is sent */
    size_t nbytes;  /* of a receive with `most`: most */
    size_t most;    /* above 0 (at both ends): the sender chooses nbytes, at most this many;
                     * 0: both ends give the same nbytes */
    uint64_t print; /* fingerprint of what the message is for; travels with it */
    /* Set when a received message is done: what the sender said of it. data is complete if
     * their_print equals the receiver's own, and the length fits (ls_message_fits()). */
    uint64_t their_print;
    size_t their_nbytes;
    struct ls_message *next;
    void *owner; /* set by the caller; forget() finds messages by it */
} ls_message;

typedef struct ls_net_ops {
    const char *name; /* "thread", "shm", "tcp", "mpi" */
    ls_status (*send)(ls_net *, ls_message *, ls_error *);
    ls_status (*recv)(ls_net *, ls_message *, ls_error *);
    /* Moves what can be moved and returns the messages that are done (a list by `next`). If there
     * are none, sleeps until something has moved, for timeout_ns at most (0: doesn't sleep); then
     * the list may be empty. LS_EPEER: a peer is lost. LS_EABORT: the
     * program that started the workers has called the group off. */
    ls_status (*poll)(ls_net *, int64_t timeout_ns, ls_message **done_p, ls_error *);
    /* Drops all messages of this owner: their memory is not touched any more, except that a peer
     * may still read what was announced to it. */
    void (*forget)(ls_net *, const void *owner);
    void (*close)(ls_net *);
} ls_net_ops;

/* A transport's own struct begins with this. */
struct ls_net {
    const ls_net_ops *ops;
    int rank, size;
    /* Counted since it was opened. */
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
    const struct ls_native_ops *native; /* its own collectives (native.h); NULL: none */
    struct ls_watch *watch;             /* answers for this worker (watch.h); NULL: none */
    /* Other workers wait for something that the next polls give them, although no message of this
     * worker may be in flight. Read by any thread. */
    atomic_bool owes;
    /* A group over it is broken: a peer may be stopped, and close() waits for it only for a while.
     * Set by any thread. */
    atomic_bool broken_over;
};

/* Is what a sender says of the length what the receive m asks for? */
static inline bool ls_message_fits(const ls_message *m, uint64_t nbytes) {
    return m->most ? nbytes <= m->most : nbytes == m->nbytes;
}
/* What both ends know of the length: for a transport that sends long messages in another way. */
static inline size_t ls_message_reserved(const ls_message *m) {
    return m->most ? m->most : m->nbytes;
}

/* The tag of message `number` of call `call` of group `group`. */
static inline uint64_t ls_net_tag(uint16_t group, uint32_t call, uint32_t number) {
    return (uint64_t)group << 48 | (uint64_t)(call & 0xffffff) << 24 | (number & 0xffffff);
}

/* ---- for transports ---- */

/* Messages that are done, in their order. `end` is the last link; at first it is &first. */
typedef struct ls_message_queue {
    ls_message *first, **end;
} ls_message_queue;

static inline void ls_message_queue_add(ls_message_queue *q, ls_message *m) {
    m->next = NULL;
    *q->end = m;
    q->end = &m->next;
}
static inline ls_message *ls_message_queue_take_all(ls_message_queue *q) {
    ls_message *all = q->first;
    q->first = NULL;
    q->end = &q->first;
    return all;
}

/* Takes all messages of `owner` out of a list. */
static inline void ls_message_drop(ls_message **link, const void *owner) {
    while (*link)
        if ((*link)->owner == owner)
            *link = (*link)->next;
        else
            link = &(*link)->next;
}
static inline void ls_message_queue_drop(ls_message_queue *q, const void *owner) {
    ls_message_drop(&q->first, owner);
    q->end = &q->first;
    while (*q->end) q->end = &(*q->end)->next;
}

#endif
