/* conn.c - see conn.h. */
#include "net/tcp/conn.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/mem.h"
#include "base/min.h"
#include "net/address.h"
#include "net/net.h"

enum {
    PARTS = 16, /* of one write: two a frame */
    ITEMS = 16  /* in a segment of the slab */
};

struct ls_conn_item {
    struct ls_conn_item *next;
    void *token;
    const unsigned char *data; /* after the copied bytes */
    unsigned char *owned;      /* data, if it is a copy */
    size_t n, at;              /* bytes of copied + data; how many of them are written */
    bool begun;                /* some of it may be encrypted already, though none is written */
    size_t ncopied;
    unsigned char copied[LS_FRAME_NBYTES + LS_CONN_COPIED];
};

ls_status ls_conn_new(int fd, bool server, const ls_key *key, ls_conn **c_p, ls_error *e) {
    ls_secure *secure = NULL;
    ls_fork_closes(fd);
    ls_status s = ls_secure_open(fd, server, key, &secure, e);
    if (s != LS_OK) {
        ls_fork_close(fd);
        return s;
    }
    ls_conn *c = LS_NEW(ls_conn);
    *c = (ls_conn){.fd = fd, .secure = secure};
    c->end = &c->first;
    ls_slab_open(&c->items, sizeof *c->first, ITEMS);
    *c_p = c;
    return LS_OK;
}

size_t ls_conn_nbytes(const ls_conn *c) {
    return sizeof *c + ls_secure_nbytes(c->secure) + (c->buffer ? LS_CONN_BUFFER : 0);
}

bool ls_conn_redial(ls_conn *c, const struct sockaddr_storage *to, const ls_key *key) {
    ls_secure *secure = NULL;
    if (c->open || !c->reset || c->redials >= LS_REDIALS) return false;
    int fd = ls_socket_dial(to);
    if (fd < 0) return false;
    ls_fork_closes(fd);
    if (ls_secure_open(fd, false, key, &secure, NULL) != LS_OK) {
        ls_fork_close(fd);
        return false;
    }
    ls_secure_close(c->secure);
    ls_fork_close(c->fd);
    c->fd = fd;
    c->secure = secure;
    c->reset = false;
    c->wants_write = true; /* becomes writable once it is connected */
    c->redials++;
    return true;
}

void ls_conn_free(ls_conn *c) {
    if (!c) return;
    ls_secure_close(c->secure);
    ls_fork_close(c->fd);
    for (ls_conn_item *item = c->first; item; item = item->next) free(item->owned);
    ls_slab_close(&c->items);
    free(c->buffer);
    free(c);
}

int ls_conn_errno(const ls_conn *c) { return c->why ? c->why : ls_secure_errno(c->secure); }

ls_io ls_conn_handshake(ls_conn *c, ls_error *e) {
    if (c->open) return LS_IO_DONE;
    int why = 0;
    socklen_t n = sizeof why;
    struct sockaddr_storage peer;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && why) {
        ls_fail(e, LS_EPEER, "no connection: %s%s", strerror(why),
                why == ETIMEDOUT ? " (a firewall may drop what is sent to this port)" : "");
        c->reset = why == ECONNRESET || why == EPIPE;
        c->why = why;
        return LS_IO_FAILED;
    }
    if (!ls_socket_peer(c->fd, &peer)) {
        c->wants_write = true;
        return LS_IO_AGAIN_WRITE;
    }
    ls_io io = ls_secure_handshake(c->secure, e);
    c->open = io == LS_IO_DONE;
    c->reset = io == LS_IO_FAILED && ls_secure_is_reset(c->secure);
    c->wants_write = io == LS_IO_AGAIN_WRITE;
    return io;
}

/* ---- writing ---- */

static void encode(const ls_frame *f, unsigned char *out) {
    uint16_t magic = htole16(LS_FRAME_MAGIC), kind = htole16(f->kind);
    uint32_t number = htole32(f->number);
    uint64_t rest[3] = {htole64(f->tag), htole64(f->print), htole64(f->nbytes)};
    memcpy(out, &magic, 2);
    memcpy(out + 2, &kind, 2);
    memcpy(out + 4, &number, 4);
    memcpy(out + 8, rest, 24);
}

/* The link to the first frame with long data that has not been begun; or the end. */
static ls_conn_item **first_long(ls_conn *c) {
    ls_conn_item **link = &c->first;
    while (*link && ((*link)->begun || (*link)->n == (*link)->ncopied)) link = &(*link)->next;
    return link;
}

ls_io ls_conn_put(ls_conn *c, const ls_frame *f, const void *data, size_t n, void *token,
                  ls_error *e) {
    ls_conn_item *item = ls_slab_try(&c->items);
    if (!item) {
        ls_fail(e, LS_ENOMEM, "out of memory for a message");
        return LS_IO_FAILED;
    }
    bool copy = n <= LS_CONN_COPIED;
    item->owned = NULL;
    item->token = token;
    item->at = 0;
    item->begun = false;
    item->n = LS_FRAME_NBYTES + n;
    item->ncopied = LS_FRAME_NBYTES + (copy ? n : 0);
    item->data = data;
    encode(f, item->copied);
    if (copy && n) memcpy(item->copied + LS_FRAME_NBYTES, data, n);
    ls_conn_item **link = n ? c->end : first_long(c);
    item->next = *link;
    *link = item;
    if (link == c->end) c->end = &item->next;
    return LS_IO_DONE;
}

bool ls_conn_busy(const ls_conn *c) { return c->first != NULL; }

/* Writes some of what is queued, *room_p bytes at most: several frames by one call. */
static ls_io write_some(ls_conn *c, size_t *room_p, ls_error *e) {
    struct iovec parts[PARTS];
    size_t left = *room_p, put = 0;
    int n = 0;
    for (ls_conn_item *item = c->first; item && left && n + 2 <= PARTS; item = item->next) {
        size_t at = item->at;
        item->begun = true;
        if (at < item->ncopied) {
            size_t head = ls_min_size(item->ncopied - at, left);
            parts[n++] = (struct iovec){item->copied + at, head};
            at += head;
            left -= head;
        }
        if (at < item->ncopied || at == item->n) continue;
        size_t data = ls_min_size(item->n - at, left);
        parts[n++] = (struct iovec){(void *)(uintptr_t)(item->data + (at - item->ncopied)), data};
        left -= data;
    }
    ls_io io = ls_secure_write(c->secure, parts, n, &put, e);
    c->wants_write = io == LS_IO_AGAIN_WRITE;
    *room_p -= put;
    for (ls_conn_item *item = c->first; put; item = item->next) {
        size_t some = ls_min_size(item->n - item->at, put);
        item->at += some;
        put -= some;
    }
    return io;
}

ls_io ls_conn_flush_some(ls_conn *c, size_t *room_p, void **token_p, ls_error *e) {
    *token_p = NULL;
    if (!c->open) return LS_IO_AGAIN_WRITE;
    while (c->first && !*token_p) {
        ls_conn_item *item = c->first;
        if (item->at < item->n) {
            ls_io io = *room_p ? write_some(c, room_p, e) : LS_IO_AGAIN_WRITE;
            if (io != LS_IO_DONE) return io;
            continue;
        }
        c->first = item->next;
        if (!c->first) c->end = &c->first;
        *token_p = item->token;
        free(item->owned);
        ls_slab_give(&c->items, item);
    }
    return LS_IO_DONE;
}

ls_io ls_conn_flush(ls_conn *c, void **token_p, ls_error *e) {
    size_t room = SIZE_MAX;
    return ls_conn_flush_some(c, &room, token_p, e);
}

bool ls_conn_has_token(const ls_conn *c) {
    const ls_conn_item *item = c->first;
    while (item && !item->token) item = item->next;
    return item != NULL;
}

void ls_conn_forget(ls_conn *c, const void *owner) {
    ls_conn_item **link = &c->first;
    while (*link) {
        ls_conn_item *item = *link;
        const ls_message *m = item->token;
        if (!m || m->owner != owner) {
            link = &item->next;
            continue;
        }
        item->token = NULL;
        if (!item->begun) {
            *link = item->next;
            ls_slab_give(&c->items, item);
            continue;
        }
        size_t n = item->n - item->ncopied;
        if (n && !item->owned) {
            item->owned = ls_alloc(n);
            memcpy(item->owned, item->data, n);
            item->data = item->owned;
        }
        link = &item->next;
    }
    c->end = link;
}

/* ---- reading ---- */

/* Reads up to n bytes into `into`, and the bytes after them into the buffer, which is empty. If
 * `into` is NULL, reads into the buffer alone. */
static ls_io refill(ls_conn *c, void *into, size_t n, size_t *got_p, ls_error *e) {
    if (c->drained) { /* poll() reports when there is more */
        c->drained = false;
        return LS_IO_AGAIN_READ;
    }
    if (!c->buffer) c->buffer = ls_alloc(LS_CONN_BUFFER);
    if (c->at) memmove(c->buffer, c->buffer + c->at, c->len - c->at);
    c->len -= c->at;
    c->at = 0;
    if (!into) n = 0;
    struct iovec parts[2] = {{into, n}, {c->buffer + c->len, LS_CONN_BUFFER - c->len}};
    size_t got = 0;
    ls_io io = ls_secure_read(c->secure, parts + !into, into ? 2 : 1, &got, e);
    if (io != LS_IO_DONE) return io;
    c->drained = got < n + LS_CONN_BUFFER - c->len && !ls_secure_pending(c->secure);
    *got_p = got < n ? got : n;
    c->len += got - *got_p;
    return LS_IO_DONE;
}

ls_io ls_conn_next(ls_conn *c, ls_frame *frame_p, ls_error *e) {
    while (c->len - c->at < LS_FRAME_NBYTES) {
        size_t none;
        ls_io io = refill(c, NULL, 0, &none, e);
        if (io != LS_IO_DONE) return io;
    }
    const unsigned char *p = c->buffer + c->at;
    uint16_t magic, kind;
    uint32_t number;
    uint64_t rest[3];
    memcpy(&magic, p, 2);
    memcpy(&kind, p + 2, 2);
    memcpy(&number, p + 4, 4);
    memcpy(rest, p + 8, 24);
    if (le16toh(magic) != LS_FRAME_MAGIC) {
        ls_fail(e, LS_EPEER, "it sent bytes that are not a message of Lockstep");
        return LS_IO_FAILED;
    }
    c->at += LS_FRAME_NBYTES;
    *frame_p =
        (ls_frame){.magic = LS_FRAME_MAGIC, .kind = le16toh(kind), .number = le32toh(number)};
    frame_p->tag = le64toh(rest[0]);
    frame_p->print = le64toh(rest[1]);
    frame_p->nbytes = le64toh(rest[2]);
    return LS_IO_DONE;
}

void ls_conn_take(ls_conn *c, void *into, size_t n) {
    c->into = into;
    c->left = n;
}

ls_io ls_conn_payload(ls_conn *c, ls_error *e) {
    while (c->left) {
        size_t n = c->len - c->at < c->left ? c->len - c->at : c->left;
        if (n) {
            if (c->into) memcpy(c->into, c->buffer + c->at, n);
            c->at += n;
        } else {
            ls_io io = refill(c, c->into, c->left, &n, e);
            if (io != LS_IO_DONE) return io;
        }
        if (c->into) c->into += n;
        c->left -= n;
    }
    return LS_IO_DONE;
}
