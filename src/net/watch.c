/* watch.c - see watch.h. */
#include "net/watch.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { MAX_GUESTS = 1024 };
static const int64_t GREETING_NS = (int64_t)10 * 1000000000; /* for handshake and greeting */

/* One that has connected. */
typedef struct guest {
    ls_conn *c;
    struct sockaddr_storage from;
    int64_t end;
    bool has_header, answering;
    ls_frame header;
    ls_greeting said;
} guest;

/* A peer's connection, to be taken. */
typedef struct arrival {
    ls_conn *c;
    int from;
    struct arrival *next;
} arrival;

struct ls_watch {
    int listen_fd, rank, size;
    uint64_t nonce[2];
    ls_key key;
    bool keyed;
    int ready_fd, stop_fd;
    atomic_int stop;
    pthread_t thread;
    guest guests[MAX_GUESTS];
    int nguests;
    pthread_mutex_t lock; /* of what follows */
    arrival *arrivals, **arrivals_end;
    unsigned char published[LS_WATCH_GROUPS][LS_WATCH_NBYTES];
};

/* ---- sockets ---- */

void ls_socket_options(int fd) {
    int one = 1, idle = 5, every = 2, times = 3, user_ms = 15000;
    ls_socket_flags(fd);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof user_ms);
}

int ls_socket_dial(const struct sockaddr_storage *a) {
    int fd = socket(a->ss_family, SOCK_STREAM, 0);
    if (fd < 0) return -1;
    ls_socket_options(fd);
    socklen_t n =
        a->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (connect(fd, (const struct sockaddr *)a, n) == 0 || errno == EINPROGRESS) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* ---- guests ---- */

static void drop(ls_watch *w, int i, const char *why) {
    guest *g = &w->guests[i];
    if (why) {
        char address[80];
        ls_address_text(&g->from, address, sizeof address);
        ls_log("a connection from %s is dropped: %s", address, why);
    }
    ls_conn_free(g->c);
    *g = w->guests[--w->nguests];
}

/* False: the system has no descriptors left; those who wait are let in when guests have gone. */
static bool admit(ls_watch *w) {
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        ls_conn *c = NULL;
        int fd = accept(w->listen_fd, (struct sockaddr *)&from, &n);
        if (fd < 0 && errno == ECONNABORTED) continue;
        if (fd < 0) return errno == EAGAIN || errno == EINTR;
        ls_socket_options(fd);
        if (w->nguests == MAX_GUESTS) {
            close(fd);
            continue;
        }
        if (ls_conn_new(fd, true, w->keyed ? &w->key : NULL, &c, NULL) != LS_OK) continue;
        w->guests[w->nguests++] = (guest){.c = c, .from = from, .end = ls_clock_ns() + GREETING_NS};
    }
}

/* DONE: its greeting is read. */
static ls_io hear(guest *g, ls_error *e) {
    ls_io io = ls_conn_handshake(g->c, e);
    if (io == LS_IO_DONE && !g->has_header) {
        io = ls_conn_next(g->c, &g->header, e);
        bool known = g->header.kind == LS_GREETING || g->header.kind == LS_QUESTION;
        if (io == LS_IO_DONE && (!known || g->header.nbytes != sizeof g->said)) {
            ls_fail(e, LS_EPEER, "it does not greet");
            return LS_IO_FAILED;
        }
        if (io == LS_IO_DONE) {
            g->has_header = true;
            ls_conn_take(g->c, &g->said, sizeof g->said);
        }
    }
    return io == LS_IO_DONE ? ls_conn_payload(g->c, e) : io;
}

static const char *judge(const ls_watch *w, const guest *g) {
    if (memcmp(g->said.nonce, w->nonce, sizeof w->nonce) != 0) return "it belongs to another run";
    if ((int)g->said.to != w->rank || g->said.from >= (uint32_t)w->size ||
        g->said.from == g->said.to)
        return "it looks for another worker";
    return g->header.number < LS_WATCH_GROUPS ? NULL : "it asks about a group that can't be";
}

static void hand_on(ls_watch *w, guest *g) {
    arrival *a = LS_NEW(arrival);
    *a = (arrival){.c = g->c, .from = (int)g->said.from};
    pthread_mutex_lock(&w->lock);
    *w->arrivals_end = a;
    w->arrivals_end = &a->next;
    pthread_mutex_unlock(&w->lock);
    uint64_t one = 1;
    if (write(w->ready_fd, &one, sizeof one) < 0) return; /* full: it is readable */
}

static void answer(ls_watch *w, guest *g) {
    unsigned char data[LS_WATCH_NBYTES];
    pthread_mutex_lock(&w->lock);
    memcpy(data, w->published[g->header.number], sizeof data);
    pthread_mutex_unlock(&w->lock);
    ls_frame f = {.kind = LS_ANSWER, .nbytes = sizeof data};
    ls_conn_put(g->c, &f, data, sizeof data, NULL, NULL);
    g->answering = true;
}

/* One look at a guest; false: it is a guest no more. */
static bool attend(ls_watch *w, int i) {
    guest *g = &w->guests[i];
    ls_error e = {0};
    void *token = NULL;
    ls_io io = g->answering ? ls_conn_flush(g->c, &token, &e) : hear(g, &e);
    const char *why = NULL;
    if (io == LS_IO_FAILED || io == LS_IO_CLOSED) why = e.msg;
    if (!why && ls_clock_ns() > g->end) why = "it did not greet in time";
    if (!why && io == LS_IO_DONE && !g->answering) why = judge(w, g);
    if (why) {
        drop(w, i, why);
        return false;
    }
    if (io != LS_IO_DONE) return true;
    if (g->answering) {
        drop(w, i, NULL);
        return false;
    }
    if (g->header.kind == LS_QUESTION) {
        answer(w, g);
        return attend(w, i);
    }
    hand_on(w, g);
    *g = w->guests[--w->nguests];
    return false;
}

static void *run(void *arg) {
    ls_watch *w = arg;
    struct pollfd fds[MAX_GUESTS + 2];
    bool room = true;
    while (!atomic_load(&w->stop)) {
        fds[0] = (struct pollfd){.fd = w->listen_fd, .events = room ? POLLIN : 0};
        fds[1] = (struct pollfd){.fd = w->stop_fd, .events = POLLIN};
        for (int i = 0; i < w->nguests; i++) {
            bool write = w->guests[i].answering || w->guests[i].c->wants_write;
            fds[i + 2] =
                (struct pollfd){.fd = w->guests[i].c->fd, .events = write ? POLLOUT : POLLIN};
        }
        poll(fds, (nfds_t)w->nguests + 2, w->nguests || !room ? 200 : -1);
        room = admit(w);
        for (int i = 0; i < w->nguests;) i += attend(w, i);
    }
    return NULL;
}

/* ---- the worker's side ---- */

static void watch_free(ls_watch *w) {
    while (w->nguests) drop(w, 0, NULL);
    while (w->arrivals) {
        arrival *next = w->arrivals->next;
        ls_conn_free(w->arrivals->c);
        free(w->arrivals);
        w->arrivals = next;
    }
    if (w->ready_fd >= 0) close(w->ready_fd);
    if (w->stop_fd >= 0) close(w->stop_fd);
    close(w->listen_fd);
    pthread_mutex_destroy(&w->lock);
    ls_key_wipe(&w->key);
    free(w);
}

ls_status ls_watch_start(int listen_fd, int rank, int size, const uint64_t nonce[2],
                         const ls_key *key, ls_watch **w_p, ls_error *e) {
    ls_watch *w = LS_NEW(ls_watch);
    w->listen_fd = listen_fd;
    w->rank = rank;
    w->size = size;
    memcpy(w->nonce, nonce, sizeof w->nonce);
    w->keyed = key != NULL;
    if (key) w->key = *key;
    w->arrivals_end = &w->arrivals;
    pthread_mutex_init(&w->lock, NULL);
    w->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    int why = w->ready_fd < 0 || w->stop_fd < 0 ? errno : pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why) {
        watch_free(w);
        return ls_fail(e, LS_EIO, "no thread to watch: %s", strerror(why));
    }
    *w_p = w;
    return LS_OK;
}

void ls_watch_stop(ls_watch *w) {
    if (!w) return;
    uint64_t one = 1;
    atomic_store(&w->stop, 1);
    while (write(w->stop_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(w->thread, NULL);
    watch_free(w);
}

int ls_watch_fd(const ls_watch *w) { return w->ready_fd; }

ls_conn *ls_watch_take(ls_watch *w, int *from_p) {
    uint64_t ignored;
    pthread_mutex_lock(&w->lock);
    arrival *a = w->arrivals;
    if (a) {
        w->arrivals = a->next;
        if (!a->next) w->arrivals_end = &w->arrivals;
    } else if (read(w->ready_fd, &ignored, sizeof ignored) < 0) {
        ignored = 0; /* nothing was left to be taken */
    }
    pthread_mutex_unlock(&w->lock);
    if (!a) return NULL;
    ls_conn *c = a->c;
    *from_p = a->from;
    free(a);
    return c;
}

void ls_watch_publish(ls_watch *w, int group, const void *data, size_t n) {
    pthread_mutex_lock(&w->lock);
    memcpy(w->published[group], data, n);
    pthread_mutex_unlock(&w->lock);
}

/* ---- asking ---- */

static ls_status wait_io(const ls_conn *c, ls_io io, int64_t end, ls_error *e) {
    if (io == LS_IO_FAILED || io == LS_IO_CLOSED) return LS_EPEER;
    int64_t left = end - ls_clock_ns();
    if (left <= 0) return ls_fail(e, LS_ETIMEOUT, "it does not answer");
    struct pollfd p = {.fd = c->fd, .events = io == LS_IO_AGAIN_WRITE ? POLLOUT : POLLIN};
    poll(&p, 1, (int)(left / 1000000) + 1);
    return LS_OK;
}

static ls_status converse(ls_conn *c, const ls_greeting *g, int group, void *data, int64_t end,
                          ls_error *e) {
    void *token = NULL;
    ls_frame f = {.kind = LS_QUESTION, .number = (uint32_t)group, .nbytes = sizeof *g};
    for (ls_io io; (io = ls_conn_handshake(c, e)) != LS_IO_DONE;) LS_TRY(wait_io(c, io, end, e));
    ls_conn_put(c, &f, g, sizeof *g, NULL, e);
    for (ls_io io; ls_conn_busy(c);)
        if ((io = ls_conn_flush(c, &token, e)) != LS_IO_DONE) LS_TRY(wait_io(c, io, end, e));
    for (ls_io io; (io = ls_conn_next(c, &f, e)) != LS_IO_DONE;) LS_TRY(wait_io(c, io, end, e));
    if (f.kind != LS_ANSWER || f.nbytes != LS_WATCH_NBYTES)
        return ls_fail(e, LS_EPEER, "it answers nonsense");
    ls_conn_take(c, data, LS_WATCH_NBYTES);
    for (ls_io io; (io = ls_conn_payload(c, e)) != LS_IO_DONE;) LS_TRY(wait_io(c, io, end, e));
    return LS_OK;
}

ls_status ls_watch_ask(const ls_member *m, const ls_greeting *g, const ls_key *key, int group,
                       void *data, size_t n, int64_t timeout_ns, ls_error *e) {
    unsigned char all[LS_WATCH_NBYTES];
    ls_conn *c = NULL;
    int fd = ls_socket_dial(&m->address);
    if (fd < 0) return ls_fail(e, LS_EPEER, "it can't be reached: %s", strerror(errno));
    LS_TRY(ls_conn_new(fd, false, key, &c, e));
    ls_status s = converse(c, g, group, all, ls_clock_ns() + timeout_ns, e);
    ls_conn_free(c);
    if (s == LS_OK) memcpy(data, all, n < sizeof all ? n : sizeof all);
    return s;
}
