/* secure.c - see secure.h.
 *
 * TLS 1.3 (RFC 8446) by OpenSSL, with an external pre-shared key in the mode psk_dhe_ke and the one
 * ciphersuite TLS_AES_128_GCM_SHA256. What keeps strangers out:
 *  (1) The server has no certificate, so it can only continue with a client whose PSK it has; the
 *      client's proof (the binder) is in its first message.
 *  (2) The client refuses every certificate, so only a server with the PSK satisfies it.
 *  (3) After the handshake both ends check that the PSK was used; no byte of the caller's is sent
 *      before.
 *  (4) Modes without (EC)DHE, tickets, early data and older versions are off, whatever the system's
 *      configuration of OpenSSL says.
 *
 * AES-GCM must not encrypt more than 2^24.5 full records with one key (RFC 8446, 5.5), some 360
 * GiB, which a long run sends. OpenSSL does not enforce this, so the sender changes keys every 2^22
 * records.
 *
 * A stranger takes little memory. Until a server knows that its client has the key, it buffers no
 * more than the length of one of our hellos. OpenSSL is not called before that hello is complete:
 * it would allocate the length that a hello announces (up to 128 KiB), and some 90 KiB for itself.
 * A hello without a proof of the key is refused before it is answered, so no client is asked for a
 * second hello.
 *
 * OpenSSL reaches the socket through a BIO of ours. Its own uses write(2), which raises SIGPIPE,
 * and makes two system calls per record. Ours gathers many records, encrypted or to be decrypted,
 * in one call.
 *
 * Not here: which member the peer is, time limits, sockets.
 */
#include "net/tcp/secure.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/mem.h"

static const unsigned char IDENTITY[] = "lockstep 1"; /* of the PSK; public */
static const unsigned char CIPHER[] = {0x13, 0x01};   /* TLS_AES_128_GCM_SHA256 */

enum {
    OVERHEAD = 128, /* a record is 22 bytes longer than its text; new keys may precede it */
    /* The room of a queue until the handshake is done, which takes 300 bytes a side; and after. */
    NARROW = 4096,
    WIDE = LS_SECURE_BATCH + 8192,
    /* The most memory of an SSL until the handshake is done (measured: 50 KB). */
    OPENSSL_NBYTES = 65536,
    RECORD_HEAD = 5,
    MESSAGE_HEAD = 4
};

/* Bytes that are encrypted and not sent, or received and not decrypted. */
typedef struct queue {
    size_t at, len, room;
    unsigned char bytes[];
} queue;

struct ls_secure {
    int fd;
    bool plain;       /* no key */
    bool awaits;      /* a server whose client's hello is not complete: no `ssl` yet */
    bool ready;       /* the handshake is done */
    bool starved;     /* the last read found less than a record */
    bool ended;       /* the socket has given end of file */
    int broken;       /* errno of the socket's failure; 0: none */
    ls_io end;        /* how the connection ended; DONE: it has not */
    ls_io write_end;  /* the same for writes */
    ls_error why;     /* the message that goes with them */
    uint64_t records; /* sent with the present key */
    uint64_t rekey;   /* the number of records after which the key is changed */
    SSL *ssl;
    SSL_SESSION *psk; /* holds the key */
    ls_key key;       /* set while `awaits` */
    queue *out, *in;
    size_t owed; /* the caller's bytes that are in `out` */
    char peer[INET6_ADDRSTRLEN + 16];
};

/* ---- the socket ------------------------------------------------------------------------------ */

static void name_peer(ls_secure *s) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } a;
    socklen_t nbytes = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    snprintf(s->peer, sizeof s->peer, "an unknown address");
    if (getpeername(s->fd, &a.any, &nbytes) != 0) return;
    if (a.any.sa_family == AF_UNIX) {
        snprintf(s->peer, sizeof s->peer, "a local socket");
    } else if (a.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof host);
        snprintf(s->peer, sizeof s->peer, "%s:%u", host, ntohs(a.v4.sin_port));
    } else if (a.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof host);
        snprintf(s->peer, sizeof s->peer, "[%s]:%u", host, ntohs(a.v6.sin6_port));
    }
}

/* The answer to a socket call that has moved this many bytes; `again` if it would block. */
static ls_io socket_answer(ls_secure *s, ssize_t moved, ls_io again, size_t *moved_p) {
    if (moved > 0) {
        *moved_p = (size_t)moved;
        return LS_IO_DONE;
    }
    if (moved == 0) {
        s->ended = true;
        return LS_IO_CLOSED;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return again;
    s->broken = errno;
    return LS_IO_FAILED;
}

/* sendmsg() only reads the parts. */
static struct msghdr message_of(const struct iovec *parts, int nparts) {
    return (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)parts,
                           .msg_iovlen = (size_t)nparts};
}

static ls_io socket_recv(ls_secure *s, const struct iovec *parts, int nparts, size_t *got_p) {
    struct msghdr m = message_of(parts, nparts);
    ssize_t got = 0;
    do {
        got = recvmsg(s->fd, &m, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    return socket_answer(s, got, LS_IO_AGAIN_READ, got_p);
}

/* At least one byte is offered. */
static ls_io socket_send(ls_secure *s, const struct iovec *parts, int nparts, size_t *put_p) {
    struct msghdr m = message_of(parts, nparts);
    ssize_t put = 0;
    do {
        put = sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    return socket_answer(s, put, LS_IO_AGAIN_WRITE, put_p);
}

/* ---- between OpenSSL and the socket ---------------------------------------------------------- */

/* Gives a queue this much room. The bytes are not touched before they are needed: most connections
 * carry little. */
static void make_room(queue **q, size_t room) {
    bool is_new = !*q;
    *q = ls_realloc(*q, sizeof **q + room);
    if (is_new) (*q)->at = (*q)->len = 0;
    (*q)->room = room;
}

/* Sends what is encrypted. DONE: all of it. */
static ls_io drain(ls_secure *s) {
    while (s->out->at < s->out->len) {
        struct iovec rest = {s->out->bytes + s->out->at, s->out->len - s->out->at};
        size_t put = 0;
        ls_io io = socket_send(s, &rest, 1, &put);
        if (io != LS_IO_DONE) return io;
        s->out->at += put;
    }
    s->out->at = s->out->len = 0;
    return LS_IO_DONE;
}

static ls_io refill(ls_secure *s) {
    struct iovec room = {s->in->bytes, s->in->room};
    size_t got = 0;
    ls_io io = socket_recv(s, &room, 1, &got);
    s->in->at = 0;
    s->in->len = got;
    return io;
}

static int bio_read(BIO *b, char *buf, size_t n, size_t *got_p) {
    ls_secure *s = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    ls_io io = s->in->at < s->in->len ? LS_IO_DONE : refill(s);
    if (io == LS_IO_AGAIN_READ) BIO_set_retry_read(b);
    if (io != LS_IO_DONE) return 0;
    size_t left = s->in->len - s->in->at;
    *got_p = n < left ? n : left;
    memcpy(buf, s->in->bytes + s->in->at, *got_p);
    s->in->at += *got_p;
    return 1;
}

/* encrypt_some() ensures that there is room for records. */
static int bio_write(BIO *b, const char *buf, size_t n, size_t *put_p) {
    ls_secure *s = BIO_get_data(b);
    size_t room = s->out->room - s->out->len;
    BIO_clear_retry_flags(b);
    if (n > room) BIO_set_retry_write(b);
    if (n > room) return 0;
    memcpy(s->out->bytes + s->out->len, buf, n);
    s->out->len += n;
    *put_p = n;
    return 1;
}

static long bio_ctrl(BIO *b, int what, long number, void *p) {
    (void)number, (void)p;
    const ls_secure *s = BIO_get_data(b);
    if (what == BIO_CTRL_EOF) return s->ended && s->in->at == s->in->len;
    return what == BIO_CTRL_FLUSH;
}

/* ---- the pre-shared key ---------------------------------------------------------------------- */

/* OpenSSL's client calls this to offer a PSK. */
static int offer_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id_p, size_t *nid_p,
                     SSL_SESSION **psk_p) {
    ls_secure *s = SSL_get_app_data(ssl);
    if (md && !EVP_MD_is_a(md, "SHA256")) return 0; /* a second hello must use the same hash */
    if (!SSL_SESSION_up_ref(s->psk)) return 0;
    *id_p = IDENTITY;
    *nid_p = sizeof IDENTITY - 1;
    *psk_p = s->psk;
    return 1;
}

/* OpenSSL's server calls this to find the PSK that was offered. */
static int find_psk(SSL *ssl, const unsigned char *id, size_t nid, SSL_SESSION **psk_p) {
    ls_secure *s = SSL_get_app_data(ssl);
    *psk_p = NULL;
    if (nid != sizeof IDENTITY - 1 || memcmp(id, IDENTITY, nid) != 0) return 0;
    if (!SSL_SESSION_up_ref(s->psk)) return 0;
    *psk_p = s->psk;
    return 1;
}

/* OpenSSL's server calls this before it answers a hello: does it contain a proof of a key? */
static int look_for_psk(SSL *ssl, int *alert_p, void *arg) {
    const unsigned char *psk;
    size_t n;
    (void)arg;
    *alert_p = SSL_AD_HANDSHAKE_FAILURE;
    return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_psk, &psk, &n) ? SSL_CLIENT_HELLO_SUCCESS
                                                                     : SSL_CLIENT_HELLO_ERROR;
}

static int refuse_certificate(X509_STORE_CTX *store, void *arg) {
    (void)store, (void)arg;
    return 0;
}

static bool make_psk(ls_secure *s, const ls_key *key) {
    const SSL_CIPHER *cipher = SSL_CIPHER_find(s->ssl, CIPHER);
    s->psk = SSL_SESSION_new();
    return cipher && s->psk && SSL_SESSION_set1_master_key(s->psk, key->bytes, sizeof key->bytes) &&
           SSL_SESSION_set_cipher(s->psk, cipher) &&
           SSL_SESSION_set_protocol_version(s->psk, TLS1_3_VERSION);
}

/* ---- what all connections of a process have in common ---------------------------------------- */

static pthread_once_t common_once = PTHREAD_ONCE_INIT;
static SSL_CTX *common; /* NULL: OpenSSL failed. It holds no key, and is never freed */
static BIO_METHOD *common_bio;

static bool set_up(SSL_CTX *ctx, BIO_METHOD *bio) {
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set1_groups_list(ctx, "X25519:P-256") || !SSL_CTX_set_num_tickets(ctx, 0) ||
        !SSL_CTX_set_max_early_data(ctx, 0))
        return false;
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(ctx, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1); /* by a record: with larger buffers it is slower */
    SSL_CTX_set_cert_verify_callback(ctx, refuse_certificate, NULL);
    SSL_CTX_set_client_hello_cb(ctx, look_for_psk, NULL);
    SSL_CTX_set_psk_use_session_callback(ctx, offer_psk);
    SSL_CTX_set_psk_find_session_callback(ctx, find_psk);
    return bio && BIO_meth_set_read_ex(bio, bio_read) && BIO_meth_set_write_ex(bio, bio_write) &&
           BIO_meth_set_ctrl(bio, bio_ctrl);
}

/* Making an SSL_CTX takes longer than a handshake. */
static void make_common(void) {
    common_bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lockstep socket");
    common = SSL_CTX_new(TLS_method());
    if (set_up(common, common_bio)) return;
    SSL_CTX_free(common);
    common = NULL;
}

static bool make_tls(ls_secure *s, bool server, const ls_key *key) {
    pthread_once(&common_once, make_common);
    if (!common || !(s->ssl = SSL_new(common)) || !SSL_set_app_data(s->ssl, s) || !make_psk(s, key))
        return false;
    BIO *b = BIO_new(common_bio);
    if (!b) return false;
    BIO_set_data(b, s);
    BIO_set_init(b, 1);
    SSL_set_bio(s->ssl, b, b);
    make_room(&s->out, NARROW);
    make_room(&s->in, NARROW);
    if (server) {
        SSL_set_accept_state(s->ssl);
    } else {
        SSL_set_connect_state(s->ssl);
        SSL_set_verify(s->ssl, SSL_VERIFY_PEER, NULL); /* a server asks for no certificate */
    }
    return true;
}

/* ---- how a connection ends ------------------------------------------------------------------ */

static ls_io ended(ls_secure *s, ls_io how, ls_error *e) {
    if (e) *e = s->why;
    return how;
}

/* The connection has ended with `io` after the handshake: words the error. */
static ls_io socket_ended(ls_secure *s, ls_io io) {
    if (io == LS_IO_CLOSED)
        ls_fail(&s->why, LS_EPEER, "the peer at %s closed the connection", s->peer);
    else
        ls_fail(&s->why, LS_EPEER, "the peer at %s is gone (%s)", s->peer, strerror(s->broken));
    return io;
}

static ls_io handshake_ended(ls_secure *s) {
    if (s->ended || s->broken)
        ls_fail(&s->why, LS_EPEER,
                "the peer at %s ended the connection (%s) before the join keys were compared: it "
                "may have another join key, or none",
                s->peer, s->broken ? strerror(s->broken) : "closed");
    else
        ls_fail(&s->why, LS_EPEER, "the peer at %s has another join key, or none", s->peer);
    return s->ended ? LS_IO_CLOSED : LS_IO_FAILED;
}

/* What OpenSSL's failure `r` means. Fills in s->why if the connection has ended. */
static ls_io tls_answer(ls_secure *s, int r) {
    int why = SSL_get_error(s->ssl, r);
    if (why == SSL_ERROR_WANT_READ) return LS_IO_AGAIN_READ;
    if (why == SSL_ERROR_WANT_WRITE) return LS_IO_AGAIN_WRITE;
    int reason = ERR_GET_REASON(ERR_peek_error());
    ERR_clear_error();
    if (!s->ready) return handshake_ended(s);
    if (why == SSL_ERROR_ZERO_RETURN) return socket_ended(s, LS_IO_CLOSED);
    if (s->broken) return socket_ended(s, LS_IO_FAILED);
    if (s->ended)
        ls_fail(&s->why, LS_EPEER, "the peer at %s is gone (it ended without closing)", s->peer);
    else if (reason >= SSL_AD_REASON_OFFSET)
        ls_fail(&s->why, LS_EPEER, "the peer at %s closed the connection: it reports damaged data",
                s->peer);
    else
        ls_fail(&s->why, LS_EPEER, "data from the peer at %s is damaged or forged", s->peer);
    return LS_IO_FAILED;
}

static bool is_end(ls_io io) { return io == LS_IO_CLOSED || io == LS_IO_FAILED; }

/* ---- the interface --------------------------------------------------------------------------- */

static ls_status set_up_tls(ls_secure *s, bool server, const ls_key *key, ls_error *e) {
    ERR_clear_error();
    if (make_tls(s, server, key)) return LS_OK;
    const char *why = ERR_reason_error_string(ERR_peek_error());
    ls_fail(e, LS_EIO, "OpenSSL can't set up an encrypted connection: %s",
            why ? why : "no reason given");
    ERR_clear_error();
    return LS_EIO;
}

ls_status ls_secure_open(int fd, bool server, const ls_key *key, ls_secure **s_p, ls_error *e) {
    ls_secure *s = LS_NEW(ls_secure);
    s->fd = fd;
    s->rekey = 1 << 22;
    s->plain = key == NULL;
    s->awaits = key && server;
    name_peer(s);
    if (s->awaits) {
        s->key = *key;
        make_room(&s->in, NARROW);
    } else if (key && set_up_tls(s, server, key, e) != LS_OK) {
        ls_secure_close(s);
        return LS_EIO;
    }
    *s_p = s;
    return LS_OK;
}

/* Do the received bytes begin a TLS record that holds one hello, as our clients send it? *whole_p:
 * is the record complete? */
static bool is_hello(const queue *q, bool *whole_p) {
    const unsigned char *b = q->bytes;
    size_t record = q->len < RECORD_HEAD ? 0 : (size_t)b[3] << 8 | b[4];
    *whole_p = false;
    if ((q->len > 0 && b[0] != SSL3_RT_HANDSHAKE) || (q->len > 1 && b[1] != SSL3_VERSION_MAJOR) ||
        (q->len > RECORD_HEAD && b[RECORD_HEAD] != SSL3_MT_CLIENT_HELLO))
        return false;
    if (q->len < RECORD_HEAD) return true;
    if (record < MESSAGE_HEAD || RECORD_HEAD + record > q->room) return false;
    if (q->len < RECORD_HEAD + MESSAGE_HEAD) return true;
    size_t message = (size_t)b[6] << 16 | (size_t)b[7] << 8 | b[8];
    *whole_p = q->len >= RECORD_HEAD + record;
    return message + MESSAGE_HEAD == record;
}

/* The server's first part: until the client's hello is complete. */
static ls_io await_hello(ls_secure *s) {
    queue *q = s->in;
    for (;;) {
        bool whole = false;
        if (!is_hello(q, &whole)) return handshake_ended(s);
        if (whole) break;
        struct iovec rest = {q->bytes + q->len, q->room - q->len};
        size_t got = 0;
        ls_io io = socket_recv(s, &rest, 1, &got);
        if (is_end(io)) return handshake_ended(s);
        if (io != LS_IO_DONE) return io;
        q->len += got;
    }
    s->awaits = false;
    ls_status made = set_up_tls(s, true, &s->key, &s->why);
    ls_key_wipe(&s->key);
    return made == LS_OK ? LS_IO_DONE : LS_IO_FAILED;
}

ls_io ls_secure_handshake(ls_secure *s, ls_error *e) {
    if (s->end != LS_IO_DONE) return ended(s, s->end, e);
    if (s->plain || s->ready) return LS_IO_DONE;
    ls_io hello = s->awaits ? await_hello(s) : LS_IO_DONE;
    if (is_end(hello)) {
        s->end = s->write_end = hello;
        return ended(s, hello, e);
    }
    if (hello != LS_IO_DONE) return hello;
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl);
    ls_io io = LS_IO_DONE;
    if (r != 1)
        io = tls_answer(s, r);
    else if (!SSL_session_reused(s->ssl)) /* i.e. the PSK was not used */
        io = handshake_ended(s);
    ls_io sent = drain(s);
    if (!is_end(io) && sent != LS_IO_DONE) io = is_end(sent) ? handshake_ended(s) : sent;
    s->ready = io == LS_IO_DONE;
    if (s->ready) {
        make_room(&s->out, WIDE);
        make_room(&s->in, WIDE);
    }
    if (!is_end(io)) return io;
    s->end = s->write_end = io;
    return ended(s, io, e);
}

/* Reads as much as there is: OpenSSL returns a record at a time. */
static ls_io tls_read(ls_secure *s, const struct iovec *parts, int nparts, size_t *got_p) {
    size_t all = 0;
    ls_io io = LS_IO_DONE;
    for (int i = 0; i < nparts && io == LS_IO_DONE; i++) {
        size_t got = 0;
        while (got < parts[i].iov_len && io == LS_IO_DONE) {
            size_t some = 0;
            ERR_clear_error();
            int r =
                SSL_read_ex(s->ssl, (char *)parts[i].iov_base + got, parts[i].iov_len - got, &some);
            if (r != 1) io = tls_answer(s, r);
            got += some;
        }
        all += got;
    }
    s->starved = io == LS_IO_AGAIN_READ;
    *got_p = all;
    if (s->out->len) drain(s); /* OpenSSL may have answered: an alert, or new keys */
    return io;
}

static size_t total(const struct iovec *parts, int nparts) {
    size_t n = 0;
    for (int i = 0; i < nparts; i++) n += parts[i].iov_len;
    return n;
}

ls_io ls_secure_read(ls_secure *s, const struct iovec *parts, int nparts, size_t *got_p,
                     ls_error *e) {
    assert(s->ready || s->plain);
    if (s->end != LS_IO_DONE) return ended(s, s->end, e);
    size_t got = 0;
    ls_io io = LS_IO_DONE;
    if (!s->plain) {
        io = tls_read(s, parts, nparts, &got);
    } else if (total(parts, nparts)) {
        io = socket_recv(s, parts, nparts, &got);
        if (is_end(io)) socket_ended(s, io);
    }
    if (is_end(io)) s->end = s->write_end = io;
    if (io == LS_IO_DONE || got) {
        *got_p = got; /* if the connection has ended after them, the next call says so */
        return LS_IO_DONE;
    }
    return is_end(io) ? ended(s, io, e) : io;
}

/* Encrypts one record of the caller's bytes from `at` on. */
static ls_io encrypt(ls_secure *s, const char *at, size_t n) {
    size_t put = 0;
    int r = 1;
    ERR_clear_error();
    if (s->records >= s->rekey) {
        r = SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); /* sent with the record */
        s->records = 0;
    }
    if (r == 1) r = SSL_write_ex(s->ssl, at, n, &put);
    if (r != 1) return tls_answer(s, r);
    assert(put == n);
    s->records++;
    s->owed += n;
    return LS_IO_DONE;
}

static bool has_room(const ls_secure *s, size_t n) {
    return s->owed + n <= LS_SECURE_BATCH && s->out->len + n + OVERHEAD <= s->out->room;
}

/* Encrypts a batch, from byte `from` of the parts on. */
static ls_io encrypt_some(ls_secure *s, const struct iovec *parts, int nparts, size_t from) {
    for (int i = 0; i < nparts; i++) {
        size_t n = parts[i].iov_len, at = from < n ? from : n;
        from -= at;
        while (at < n) {
            size_t record = n - at < LS_SECURE_RECORD ? n - at : LS_SECURE_RECORD;
            if (!has_room(s, record)) return LS_IO_DONE;
            ls_io io = encrypt(s, (const char *)parts[i].iov_base + at, record);
            if (io != LS_IO_DONE) return io;
            at += record;
        }
    }
    return LS_IO_DONE;
}

static ls_io tls_write(ls_secure *s, const struct iovec *parts, int nparts, size_t *put_p) {
    size_t n = total(parts, nparts);
    assert(n >= s->owed);
    *put_p = 0;
    for (;;) {
        ls_io io = drain(s);
        if (is_end(io)) socket_ended(s, io);
        if (io != LS_IO_DONE) return io;
        *put_p += s->owed;
        s->owed = 0;
        if (*put_p == n) return LS_IO_DONE;
        io = encrypt_some(s, parts, nparts, *put_p);
        if (io != LS_IO_DONE) return io;
    }
}

ls_io ls_secure_write(ls_secure *s, const struct iovec *parts, int nparts, size_t *put_p,
                      ls_error *e) {
    assert(s->ready || s->plain);
    if (s->write_end != LS_IO_DONE) return ended(s, s->write_end, e);
    size_t put = 0;
    ls_io io = LS_IO_DONE;
    if (!s->plain) {
        io = tls_write(s, parts, nparts, &put);
    } else if (total(parts, nparts)) {
        io = socket_send(s, parts, nparts, &put);
        if (is_end(io)) socket_ended(s, io);
    }
    if (is_end(io)) s->write_end = io;
    if (io == LS_IO_DONE || put) {
        *put_p = put;
        return LS_IO_DONE;
    }
    return is_end(io) ? ended(s, io, e) : io;
}

bool ls_secure_pending(const ls_secure *s) {
    if (s->end != LS_IO_DONE) return true; /* the end may not have been reported yet */
    return s->ready && !s->starved && (SSL_has_pending(s->ssl) || s->in->at < s->in->len);
}

bool ls_secure_is_reset(const ls_secure *s) {
    return !s->plain && !s->ready && (s->broken == ECONNRESET || s->broken == EPIPE);
}

int ls_secure_errno(const ls_secure *s) { return s->broken; }

size_t ls_secure_nbytes(const ls_secure *s) {
    size_t n = sizeof *s;
    if (s->in) n += sizeof *s->in + s->in->room;
    if (s->out) n += sizeof *s->out + s->out->room;
    return n + (s->ssl ? OPENSSL_NBYTES : 0);
}

void ls_secure_rekey_after(ls_secure *s, uint64_t nrecords) { s->rekey = nrecords; }

void ls_secure_close(ls_secure *s) {
    if (!s) return;
    bool well = s->ready && s->end == LS_IO_DONE && s->write_end == LS_IO_DONE;
    if (well && drain(s) == LS_IO_DONE) {
        SSL_shutdown(s->ssl);
        drain(s);
    }
    ERR_clear_error();
    SSL_free(s->ssl); /* and the BIO */
    SSL_SESSION_free(s->psk);
    ls_key_wipe(&s->key);
    free(s->out);
    free(s->in);
    free(s);
}
