/* secure.h - a connection whose ends are both members of the group.
 *
 * The bytes of a connected socket, encrypted and authenticated with TLS 1.3. Both ends prove that
 * they have the join key (a pre-shared key); there are no certificates. Each connection also agrees
 * on a fresh secret (ECDHE), so that an attacker who learns the join key later can't read earlier
 * recordings. Without a key the same calls pass plain bytes to the socket.
 *
 * A connection does not show which member the other end is: all share one key, and an attacker
 * between hosts may divert a connection to another member, or back to its origin. The first message
 * must name both ends, and each end must check it.
 *
 * Nothing here blocks, whether the socket is non-blocking or not, and no call raises SIGPIPE. One
 * thread at a time per connection. OpenSSL allocates a few small blocks per record. There are no
 * time limits: the caller sets them, in its poll().
 */
#ifndef LS_NET_TCP_SECURE_H
#define LS_NET_TCP_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"
#include "net/join_key.h"

typedef struct ls_secure ls_secure;

typedef enum ls_io {
    LS_IO_DONE,        /* some bytes were moved, at least one */
    LS_IO_AGAIN_READ,  /* none; call again when the socket is readable */
    LS_IO_AGAIN_WRITE, /* none; call again when the socket is writable */
    LS_IO_CLOSED,      /* the peer closed; all that it sent has been read */
    LS_IO_FAILED,      /* the connection is lost, or the peer is not to be trusted */
} ls_io;

/* CLOSED and FAILED fill in the error: LS_EPEER, with one line that names the peer's address. They
 * are final: the same call gives the same answer from then on. After a failed write, what the peer
 * sent last can still be read. With a key, CLOSED means that the peer itself closed the connection;
 * one that just ends has FAILED. */

/* fd: a connected stream socket, which stays the caller's and must outlive *s_p. One end is the
 * server; which one does not matter. key: NULL for plain text; it is copied.
 *
 * Errors   LS_EIO: OpenSSL can't be set up. */
ls_status ls_secure_open(int fd, bool server, const ls_key *key, ls_secure **s_p, ls_error *);

/* Must be called until it is DONE, before any reading and writing. FAILED: the peer does not have
 * the same key. Without a key it is DONE at once, whatever the peer has. */
ls_io ls_secure_handshake(ls_secure *, ls_error *);

/* Reads up to all the bytes of the parts, into one after the other. */
ls_io ls_secure_read(ls_secure *, const struct iovec *parts, int nparts, size_t *got_p, ls_error *);

/* Writes up to all the bytes of the parts. Bytes that were not written must come first in the next
 * call, at least as many of them as were offered here, or LS_SECURE_BATCH (256 KiB) if that is
 * less: it may be encrypted already. It may lie elsewhere then, in other parts. */
enum { LS_SECURE_RECORD = 16384, LS_SECURE_BATCH = 262144 };
ls_io ls_secure_write(ls_secure *, const struct iovec *parts, int nparts, size_t *put_p,
                      ls_error *);

/* True if a read may return data that poll() on the socket does not report. False after
 * AGAIN_READ. */
bool ls_secure_pending(const ls_secure *);

/* Was the connection reset before the handshake was done? A server with too many strangers
 * (guest.h) does that, to any of them: another attempt may succeed. */
bool ls_secure_is_reset(const ls_secure *);
/* The errno with which the socket has failed; 0: it has not. */
int ls_secure_errno(const ls_secure *);

/* The most memory that it takes in its present state, not counting the kernel's. */
size_t ls_secure_nbytes(const ls_secure *);

/* Changes the sending key after this many records; 4194304 (at most 64 GiB) unless set. For
 * tests. */
void ls_secure_rekey_after(ls_secure *, uint64_t nrecords);

/* Notifies the peer, if that is possible at once. Does not close the socket. NULL is fine. */
void ls_secure_close(ls_secure *);

#endif
