/* secure.c - see secure.h.
 *
 * TLS 1.3 (RFC 8446) by OpenSSL, with an external pre-shared key in the mode psk_dhe_ke and the one
 * ciphersuite TLS_AES_128_GCM_SHA256. What keeps strangers out:
 *  (1) The server has no certificate, so that it can only go on with a client whose PSK it has; the
 *      client's proof (the binder) is in its first message.
 *  (2) The client refuses every certificate, so that only a server with the PSK satisfies it.
 *  (3) After the handshake both ask whether the PSK was used; no byte of the caller's moves before.
 *  (4) Modes without (EC)DHE, tickets, early data and older versions are off, whatever the system's
 *      configuration of OpenSSL says.
 * AES-GCM must not encrypt more than 2^24.5 full records with one key (RFC 8446, 5.5), some 360
 * GiB, which a long run sends: OpenSSL does not see to it, so the sender changes keys each 2^22
 * records.
 *
 * OpenSSL reaches the socket through a BIO of ours: its own uses write(2), which raises SIGPIPE.
 *
 * Not here: who the peer is among the members, time limits, sockets.
 */
#include "net/secure.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

static const unsigned char IDENTITY[] = "lockstep 1"; /* of the PSK; public */
static const unsigned char CIPHER[] = {0x13, 0x01};   /* TLS_AES_128_GCM_SHA256 */

struct ls_secure {
    int fd;
    bool ready;       /* the handshake is done */
    bool starved;     /* the last read found less than a record */
    bool ended;       /* the socket has given end of file */
    int broken;       /* errno of the socket's failure, or 0 */
    ls_io end;        /* DONE, or how the connection ended */
    ls_io write_end;  /* the same for writes */
    ls_error why;     /* message to the above */
    size_t owed;      /* bytes of the record that OpenSSL has encrypted and not sent */
    uint64_t records; /* sent with the present key */
    uint64_t rekey;   /* records for which a key serves */
    SSL *ssl;         /* NULL: plain text */
    SSL_CTX *ctx;
    SSL_SESSION *psk; /* holds the key */
    BIO_METHOD *method;
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

static ls_io socket_recv(ls_secure *s, void *buf, size_t n, size_t *got_p) {
    ssize_t got = 0;
    do {
        got = recv(s->fd, buf, n, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *got_p = (size_t)got;
        return LS_IO_DONE;
    }
    if (got == 0) {
        s->ended = true;
        return LS_IO_CLOSED;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return LS_IO_AGAIN_READ;
    s->broken = errno;
    return LS_IO_FAILED;
}

static ls_io socket_send(ls_secure *s, const void *buf, size_t n, size_t *put_p) {
    ssize_t put = 0;
    do {
        put = send(s->fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    if (put >= 0) {
        *put_p = (size_t)put;
        return LS_IO_DONE;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return LS_IO_AGAIN_WRITE;
    s->broken = errno;
    return LS_IO_FAILED;
}

static int bio_read(BIO *b, char *buf, size_t n, size_t *got_p) {
    BIO_clear_retry_flags(b);
    ls_io io = socket_recv(BIO_get_data(b), buf, n, got_p);
    if (io == LS_IO_AGAIN_READ) BIO_set_retry_read(b);
    return io == LS_IO_DONE;
}

static int bio_write(BIO *b, const char *buf, size_t n, size_t *put_p) {
    BIO_clear_retry_flags(b);
    ls_io io = socket_send(BIO_get_data(b), buf, n, put_p);
    if (io == LS_IO_AGAIN_WRITE) BIO_set_retry_write(b);
    return io == LS_IO_DONE;
}

static long bio_ctrl(BIO *b, int what, long number, void *p) {
    (void)number, (void)p;
    const ls_secure *s = BIO_get_data(b);
    if (what == BIO_CTRL_EOF) return s->ended;
    return what == BIO_CTRL_FLUSH;
}

static BIO *make_bio(ls_secure *s) {
    s->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "lockstep socket");
    if (!s->method || !BIO_meth_set_read_ex(s->method, bio_read) ||
        !BIO_meth_set_write_ex(s->method, bio_write) || !BIO_meth_set_ctrl(s->method, bio_ctrl))
        return NULL;
    BIO *b = BIO_new(s->method);
    if (!b) return NULL;
    BIO_set_data(b, s);
    BIO_set_init(b, 1);
    return b;
}

/* ---- the pre-shared key ---------------------------------------------------------------------- */

/* Called by the client, to offer a PSK. */
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

/* Called by the server, to find the PSK that was offered. */
static int find_psk(SSL *ssl, const unsigned char *id, size_t nid, SSL_SESSION **psk_p) {
    ls_secure *s = SSL_get_app_data(ssl);
    *psk_p = NULL; /* then it looks for a certificate, and has none */
    if (nid != sizeof IDENTITY - 1 || memcmp(id, IDENTITY, nid) != 0) return 1;
    if (!SSL_SESSION_up_ref(s->psk)) return 0;
    *psk_p = s->psk;
    return 1;
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

static bool make_ctx(ls_secure *s, bool server) {
    SSL_CTX *ctx = s->ctx = SSL_CTX_new(TLS_method());
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
    if (!server) SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); /* a server asks for none */
    SSL_CTX_set_cert_verify_callback(ctx, refuse_certificate, NULL);
    SSL_CTX_set_psk_use_session_callback(ctx, offer_psk);
    SSL_CTX_set_psk_find_session_callback(ctx, find_psk);
    return true;
}

static bool make_tls(ls_secure *s, bool server, const ls_key *key) {
    if (!make_ctx(s, server) || !(s->ssl = SSL_new(s->ctx)) || !SSL_set_app_data(s->ssl, s) ||
        !make_psk(s, key))
        return false;
    BIO *b = make_bio(s);
    if (!b) return false;
    SSL_set_bio(s->ssl, b, b);
    if (server)
        SSL_set_accept_state(s->ssl);
    else
        SSL_set_connect_state(s->ssl);
    return true;
}

/* ---- how it ends ----------------------------------------------------------------------------- */

static ls_io ended(ls_secure *s, ls_io how, ls_error *e) {
    if (e) *e = s->why;
    return how;
}

/* The socket gave `io`, in plain text. */
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

/* What OpenSSL's answer `r`, not a success, means. Fills in s->why where it is the end. */
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
        ls_fail(&s->why, LS_EPEER, "the peer at %s gave up: it says that our bytes are damaged",
                s->peer);
    else
        ls_fail(&s->why, LS_EPEER, "what comes from the peer at %s is damaged or forged", s->peer);
    return LS_IO_FAILED;
}

static bool is_end(ls_io io) { return io == LS_IO_CLOSED || io == LS_IO_FAILED; }

/* ---- the interface --------------------------------------------------------------------------- */

ls_status ls_secure_open(int fd, bool server, const ls_key *key, ls_secure **s_p, ls_error *e) {
    ls_secure *s = LS_NEW(ls_secure);
    s->fd = fd;
    s->rekey = 1 << 22;
    name_peer(s);
    ERR_clear_error();
    if (key && !make_tls(s, server, key)) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        ls_fail(e, LS_EIO, "OpenSSL can't set up an encrypted connection: %s",
                why ? why : "no reason given");
        ERR_clear_error();
        ls_secure_close(s);
        return LS_EIO;
    }
    *s_p = s;
    return LS_OK;
}

ls_io ls_secure_handshake(ls_secure *s, ls_error *e) {
    if (s->end != LS_IO_DONE) return ended(s, s->end, e);
    if (!s->ssl || s->ready) return LS_IO_DONE;
    ERR_clear_error();
    int r = SSL_do_handshake(s->ssl);
    ls_io io = LS_IO_DONE;
    if (r != 1)
        io = tls_answer(s, r);
    else if (SSL_session_reused(s->ssl)) /* its word for: the PSK was used */
        s->ready = true;
    else
        io = handshake_ended(s);
    if (!is_end(io)) return io;
    s->end = s->write_end = io;
    return ended(s, io, e);
}

/* As much as there is: OpenSSL gives a record at a time. */
static ls_io tls_read(ls_secure *s, void *buf, size_t n, size_t *got_p) {
    size_t got = 0;
    ls_io io = LS_IO_DONE;
    while (got < n && io == LS_IO_DONE) {
        size_t some = 0;
        ERR_clear_error();
        int r = SSL_read_ex(s->ssl, (char *)buf + got, n - got, &some);
        if (r != 1) io = tls_answer(s, r);
        got += some;
    }
    s->starved = io == LS_IO_AGAIN_READ;
    *got_p = got;
    return io;
}

ls_io ls_secure_read(ls_secure *s, void *buf, size_t n, size_t *got_p, ls_error *e) {
    assert(s->ready || !s->ssl);
    if (s->end != LS_IO_DONE) return ended(s, s->end, e);
    size_t got = 0;
    ls_io io = LS_IO_DONE;
    if (s->ssl) {
        io = tls_read(s, buf, n, &got);
    } else if (n) {
        io = socket_recv(s, buf, n, &got);
        if (is_end(io)) socket_ended(s, io);
    }
    if (is_end(io)) s->end = s->write_end = io;
    if (io == LS_IO_DONE || got) {
        *got_p = got; /* an end that came after them is the next call's answer */
        return LS_IO_DONE;
    }
    return is_end(io) ? ended(s, io, e) : io;
}

static ls_io tls_write(ls_secure *s, const void *buf, size_t n, size_t *put_p) {
    size_t put = 0;
    ls_io io = LS_IO_DONE;
    assert(n >= s->owed);
    while (put < n && io == LS_IO_DONE) {
        size_t left = n - put, chunk = left < LS_SECURE_RECORD ? left : LS_SECURE_RECORD, some = 0;
        if (s->owed) chunk = s->owed;
        ERR_clear_error();
        int r = 1;
        if (s->records >= s->rekey && !s->owed) {
            r = SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED); /* sent with the record */
            s->records = 0;
        }
        if (r == 1) r = SSL_write_ex(s->ssl, (const char *)buf + put, chunk, &some);
        if (r != 1) io = tls_answer(s, r);
        s->owed = r == 1 ? 0 : chunk;
        s->records += r == 1;
        put += some;
    }
    *put_p = put;
    return io;
}

ls_io ls_secure_write(ls_secure *s, const void *buf, size_t n, size_t *put_p, ls_error *e) {
    assert(s->ready || !s->ssl);
    if (s->write_end != LS_IO_DONE) return ended(s, s->write_end, e);
    size_t put = 0;
    ls_io io = LS_IO_DONE;
    if (s->ssl) {
        io = tls_write(s, buf, n, &put);
    } else if (n) {
        io = socket_send(s, buf, n, &put);
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
    if (s->end != LS_IO_DONE) return true; /* the end may not have been told yet */
    return s->ready && !s->starved && SSL_has_pending(s->ssl);
}

void ls_secure_rekey_after(ls_secure *s, uint64_t nrecords) { s->rekey = nrecords; }

void ls_secure_close(ls_secure *s) {
    if (!s) return;
    bool well = s->ready && s->end == LS_IO_DONE && s->write_end == LS_IO_DONE && !s->owed;
    if (well) SSL_shutdown(s->ssl);
    ERR_clear_error();
    SSL_free(s->ssl); /* and the BIO */
    SSL_SESSION_free(s->psk);
    SSL_CTX_free(s->ctx);
    BIO_meth_free(s->method);
    free(s);
}
