/* conn.h - one TCP connection that carries frames: a header and its payload.
 *
 * Non-blocking. Frames are written in the order in which they were put, except that frames without
 * data overtake long ones (a request must not wait for megabytes that go the same way). Short
 * frames are copied. Long ones are written from the caller's memory and reported as done when the
 * kernel has the last byte. The reader chooses for each frame where its payload goes.
 */
#ifndef LS_NET_TCP_CONN_H
#define LS_NET_TCP_CONN_H

#include <sys/socket.h>

#include "base/slab.h"
#include "net/tcp/secure.h"

/* On the wire little-endian, 32 bytes. */
typedef struct ls_frame {
    uint16_t magic; /* LS_FRAME_MAGIC */
    uint16_t kind;
    uint32_t number;
    uint64_t tag, print;
    uint64_t nbytes; /* of the message; the kind decides what follows the header */
} ls_frame;

enum {
    LS_FRAME_MAGIC = 0x4c53,
    LS_FRAME_NBYTES = 32,
    LS_CONN_COPIED = 4096,
    LS_CONN_BUFFER = 8192,
    LS_REDIALS = 1000
};

typedef struct ls_conn_item ls_conn_item;

typedef struct ls_conn {
    int fd;
    ls_secure *secure;
    bool open; /* connected, and the handshake is done */
    bool wants_write;
    bool reset; /* reset by the peer before it was open */
    int why;    /* errno with which connecting has failed; 0: it has not */
    int redials;
    ls_conn_item *first, **end; /* frames to be written */
    ls_slab items;
    /* Bytes that have been read and not taken; NULL until the first read. */
    unsigned char *buffer;
    size_t at, len;
    bool drained; /* the last read did not fill its buffer: there is no more */
    /* The frame that is being read: where its payload goes, and how much is still to come. */
    unsigned char *into;
    size_t left;
    ls_frame frame; /* the frame that is being read, if in_frame; set by the reader */
    bool in_frame;
    void *owner, *other_owner; /* the reader's own */
} ls_conn;

/* Takes the descriptor (a connecting, or a connected socket). */
ls_status ls_conn_new(int fd, bool server, const ls_key *, ls_conn **c_p, ls_error *);
/* Closes it. Items that were not written are dropped. */
void ls_conn_free(ls_conn *);

/* The errno with which it has failed; 0: it has not, or in another way. */
int ls_conn_errno(const ls_conn *);

/* The most memory that it takes in its present state, not counting frames to be written. */
size_t ls_conn_nbytes(const ls_conn *);

/* After ls_conn_handshake() has failed on a client: if the peer has reset the connection, as a peer
 * that is flooded by strangers does (guest.h), connects again and keeps the frames to be written.
 * False: it failed for another reason, or after LS_REDIALS times. */
bool ls_conn_redial(ls_conn *, const struct sockaddr_storage *to, const ls_key *);

/* Continues connecting and the handshake; DONE: c->open. */
ls_io ls_conn_handshake(ls_conn *, ls_error *);

/* Writes, or queues, a frame and `n` bytes after it. Where n > LS_CONN_COPIED, data must stay until
 * ls_conn_flush() has returned `token` (never NULL then); else it is copied. */
ls_io ls_conn_put(ls_conn *, const ls_frame *, const void *data, size_t n, void *token, ls_error *);
/* Writes what it can. *token_p: a token whose frame is written, or NULL; call again until it is. */
ls_io ls_conn_flush(ls_conn *, void **token_p, ls_error *);
/* Writes as ls_conn_flush() does, at most *room_p bytes: AGAIN_WRITE also when that many are
 * written. Each new *room_p is LS_SECURE_BATCH or more. */
ls_io ls_conn_flush_some(ls_conn *, size_t *room_p, void **token_p, ls_error *);
bool ls_conn_busy(const ls_conn *); /* is there something to write? */
/* Is any token still to be written? */
bool ls_conn_has_token(const ls_conn *);
/* Forgets the tokens (each an ls_message) of an owner. If nothing of a frame is written, it is
 * dropped; otherwise the rest is written from a copy. */
void ls_conn_forget(ls_conn *, const void *owner);

/* The next header: DONE, and the caller must call ls_conn_take() before the next one. */
ls_io ls_conn_next(ls_conn *, ls_frame *frame_p, ls_error *);
/* The payload goes to `into` [n]; NULL: it is discarded. */
void ls_conn_take(ls_conn *, void *into, size_t n);
/* Reads the payload. DONE: it is complete (also if n is 0). */
ls_io ls_conn_payload(ls_conn *, ls_error *);

#endif
