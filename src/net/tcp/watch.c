/* watch.c - see watch.h. */
#include "net/tcp/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/tcp/guest.h"

enum { MAX_GUESTS = 1024, AT_ONCE = 64 /* workers that are asked at a time */ };

/* A peer's connection, for the transport to take. */
typedef struct arrival {
    ls_conn *c;
    int from;
    struct arrival *next;
} arrival;

typedef struct answer {
    unsigned char published[LS_WATCH_NBYTES];
    ls_news news;
} answer;

/* What a peer that has left had published. */
typedef struct last_words {
    int group, rank;
    unsigned char data[LS_WATCH_NBYTES];
    struct last_words *next;
} last_words;

struct ls_watch {
    int listen_fd, rank, size;
    ls_roster_entry *members; /* [size] */
    uint64_t nonce[2];
    ls_key key;
    bool keyed;
    int ready_fd, stop_fd;
    atomic_int stop;
    pthread_t thread;
    ls_guests guests;
    atomic_bool any_news;
    atomic_uint nlast;
    pthread_mutex_t lock; /* of what follows */
    arrival *arrivals, **arrivals_end;
    last_words *last;
    uint64_t published; /* bit i: something was published about group i */
    answer answers[LS_WATCH_GROUPS];
};

/* ---- guests ---- */

static size_t nbytes_of(uint16_t kind) {
    return sizeof(ls_greeting) + (kind == LS_NEWS ? sizeof(ls_news) : 0);
}

static bool knows(const ls_frame *f) {
    bool ours = f->kind == LS_GREETING || f->kind == LS_QUESTION || f->kind == LS_NEWS;
    return ours && f->nbytes == nbytes_of(f->kind);
}

static const char *check_greeting(const ls_watch *w, const ls_guest *g) {
    ls_greeting greeting;
    memcpy(&greeting, g->payload, sizeof greeting);
    if (memcmp(greeting.nonce, w->nonce, sizeof w->nonce) != 0) return "it belongs to another run";
    if ((int)greeting.to != w->rank || greeting.from >= (uint32_t)w->size ||
        greeting.from == greeting.to)
        return "it wants another worker";
    return g->frame.number < LS_WATCH_GROUPS ? NULL
                                             : "it asks about a group whose number is out of range";
}

static void pass_on(ls_watch *w, int i) {
    ls_greeting greeting;
    memcpy(&greeting, w->guests.all[i].payload, sizeof greeting);
    arrival *a = LS_NEW(arrival);
    *a = (arrival){.c = ls_guests_release(&w->guests, i), .from = (int)greeting.from};
    ls_socket_options(a->c->fd);
    pthread_mutex_lock(&w->lock);
    *w->arrivals_end = a;
    w->arrivals_end = &a->next;
    pthread_mutex_unlock(&w->lock);
    uint64_t one = 1;
    if (write(w->ready_fd, &one, sizeof one) < 0) return; /* full: it is readable */
}

static void reply(ls_watch *w, ls_guest *g) {
    answer a;
    pthread_mutex_lock(&w->lock);
    memcpy(&a, &w->answers[g->frame.number], sizeof a);
    pthread_mutex_unlock(&w->lock);
    ls_frame f = {.kind = LS_ANSWER, .nbytes = sizeof a};
    ls_conn_put(g->c, &f, &a, sizeof a, NULL, NULL);
}

/* A guest's first frame is complete. False: it is no longer a guest. */
static bool serve_request(ls_watch *w, int i) {
    ls_guest *g = &w->guests.all[i];
    const char *why = check_greeting(w, g);
    if (why) {
        ls_guests_drop(&w->guests, i, why);
        return false;
    }
    if (g->frame.kind == LS_GREETING) {
        pass_on(w, i);
        return false;
    }
    if (g->frame.kind == LS_NEWS) {
        ls_news news;
        memcpy(&news, g->payload + sizeof(ls_greeting), sizeof news);
        ls_watch_store_news(w, (int)g->frame.number, &news);
    }
    reply(w, g);
    return true;
}

/* Serves a guest once; false: it is no longer one. */
static bool serve_guest(ls_watch *w, int i) {
    ls_guest *g = &w->guests.all[i];
    ls_error e = {0};
    void *token = NULL;
    if (!g->has_frame) {
        ls_guest_status status = ls_guests_read(&w->guests, i);
        if (status != LS_GUEST_READY) return status == LS_GUEST_WAITS;
        if (!serve_request(w, i)) return false;
    }
    ls_io io = ls_conn_flush(g->c, &token, &e);
    bool waits = io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE;
    if (waits && !ls_guest_is_slow(g)) return true;
    ls_guests_drop(&w->guests, i,
                   waits              ? "it does not read the answer"
                   : io == LS_IO_DONE ? NULL
                                      : e.msg);
    return false;
}

static void *run(void *arg) {
    ls_watch *w = arg;
    while (!atomic_load(&w->stop)) {
        bool idle = w->guests.n == 0 && !w->guests.no_descriptors;
        ls_guests_wait(&w->guests, w->stop_fd, idle ? -1 : 200);
        for (int i = 0; i < w->guests.n;) i += serve_guest(w, i);
    }
    return NULL;
}

/* ---- the worker's side ---- */

static void watch_free(ls_watch *w) {
    ls_guests_close(&w->guests);
    while (w->arrivals) {
        arrival *next = w->arrivals->next;
        ls_conn_free(w->arrivals->c);
        free(w->arrivals);
        w->arrivals = next;
    }
    while (w->last) {
        last_words *next = w->last->next;
        free(w->last);
        w->last = next;
    }
    if (w->ready_fd >= 0) close(w->ready_fd);
    if (w->stop_fd >= 0) close(w->stop_fd);
    ls_fork_close(w->listen_fd);
    pthread_mutex_destroy(&w->lock);
    ls_key_wipe(&w->key);
    free(w->members);
    free(w);
}

ls_status ls_watch_start(const ls_roster *r, int rank, const ls_key *key, ls_watch **w_p,
                         ls_error *e) {
    ls_watch *w = LS_NEW(ls_watch);
    w->listen_fd = r->listen_fd;
    ls_fork_closes(w->listen_fd);
    w->rank = rank;
    w->size = r->size;
    w->members = LS_NEW_ARRAY(ls_roster_entry, (size_t)r->size);
    memcpy(w->members, r->members, (size_t)r->size * sizeof *r->members);
    memcpy(w->nonce, r->nonce, sizeof w->nonce);
    w->keyed = key != NULL;
    if (key) w->key = *key;
    /* A worker that has begun to connect may compute for long before it continues. */
    ls_guests_options options = {.listen_fd = r->listen_fd,
                                 .key = w->keyed ? &w->key : NULL,
                                 .knows = knows,
                                 .why_rejected = "it sent no valid greeting",
                                 .patience = r->size,
                                 .most = MAX_GUESTS};
    ls_guests_open(&w->guests, &options);
    w->arrivals_end = &w->arrivals;
    pthread_mutex_init(&w->lock, NULL);
    w->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int why = w->ready_fd < 0 || w->stop_fd < 0 ? errno : ls_thread_start(&w->thread, run, w);
    if (why) {
        watch_free(w);
        return ls_fail(e, LS_EIO, "can't start the thread that answers for this worker: %s",
                       ls_thread_why(why));
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

int ls_watch_pid(const ls_watch *w, int rank) { return w->members[rank].pid; }

bool ls_watch_is_here(const ls_watch *w, int rank) {
    return w->members[rank].host == w->members[w->rank].host;
}

void ls_watch_publish(ls_watch *w, int group, size_t at, const void *data, size_t n) {
    pthread_mutex_lock(&w->lock);
    memcpy(w->answers[group].published + at, data, n);
    w->published |= (uint64_t)1 << group;
    pthread_mutex_unlock(&w->lock);
}

bool ls_watch_published(ls_watch *w, int group, unsigned char data[LS_WATCH_NBYTES]) {
    pthread_mutex_lock(&w->lock);
    bool any = w->published >> group & 1;
    if (any) memcpy(data, w->answers[group].published, LS_WATCH_NBYTES);
    pthread_mutex_unlock(&w->lock);
    return any;
}

/* With the lock. */
static last_words *last_of(const ls_watch *w, int group, int rank) {
    last_words *l = w->last;
    while (l && (l->group != group || l->rank != rank)) l = l->next;
    return l;
}

void ls_watch_store_last_words(ls_watch *w, int group, int rank,
                               const unsigned char data[LS_WATCH_NBYTES]) {
    pthread_mutex_lock(&w->lock);
    last_words *l = last_of(w, group, rank);
    if (!l) {
        l = LS_NEW(last_words);
        *l = (last_words){.group = group, .rank = rank, .next = w->last};
        w->last = l;
    }
    memcpy(l->data, data, sizeof l->data);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_add(&w->nlast, 1);
}

bool ls_watch_find_last_words(ls_watch *w, int group, int rank,
                              unsigned char data[LS_WATCH_NBYTES]) {
    pthread_mutex_lock(&w->lock);
    const last_words *l = last_of(w, group, rank);
    if (l) memcpy(data, l->data, sizeof l->data);
    pthread_mutex_unlock(&w->lock);
    return l != NULL;
}

unsigned ls_watch_nlast_words(const ls_watch *w) { return atomic_load(&w->nlast); }

void ls_watch_store_news(ls_watch *w, int group, const ls_news *news) {
    pthread_mutex_lock(&w->lock);
    w->answers[group].news = *news;
    w->answers[group].news.text[sizeof news->text - 1] = 0;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->any_news, true);
}

bool ls_watch_find_news(ls_watch *w, int group, uint32_t identity, ls_news *news_p) {
    if (!atomic_load(&w->any_news)) return false;
    pthread_mutex_lock(&w->lock);
    bool found = w->answers[group].news.group == identity;
    if (found) *news_p = w->answers[group].news;
    pthread_mutex_unlock(&w->lock);
    return found;
}

/* ---- asking ---- */

typedef struct question {
    unsigned char data[sizeof(ls_greeting) + sizeof(ls_news)];
    answer answer;
    ls_visit visit;
    bool done;
} question;

static void ask(ls_watch *w, int group, const ls_news *news, ls_inquiry *q, question *x) {
    const ls_roster_entry *m = &w->members[q->rank];
    ls_greeting g = {.from = (uint32_t)w->rank, .to = (uint32_t)q->rank};
    memcpy(g.nonce, w->nonce, sizeof g.nonce);
    *x = (question){.done = true};
    memcpy(x->data, &g, sizeof g);
    if (news) memcpy(x->data + sizeof g, news, sizeof *news);
    uint16_t kind = news ? LS_NEWS : LS_QUESTION;
    x->visit = (ls_visit){.data = x->data, .text = &x->answer, .room = sizeof x->answer};
    x->visit.to = &m->address;
    x->visit.key = w->keyed ? &w->key : NULL;
    x->visit.request =
        (ls_frame){.kind = kind, .number = (uint32_t)group, .nbytes = nbytes_of(kind)};
    q->status = LS_EPEER;
    int fd = ls_socket_dial(&m->address);
    if (fd < 0) return;
    if (ls_conn_new(fd, false, w->keyed ? &w->key : NULL, &x->visit.c, NULL) != LS_OK) return;
    q->status = LS_ETIMEOUT;
    x->done = false;
}

/* Continues one question; false: it is done. */
static bool advance(question *x, ls_inquiry *q, struct pollfd *fd) {
    ls_error e = {0};
    if (x->done) return false;
    ls_io io = ls_visit_continue(&x->visit, &e);
    bool write = io == LS_IO_AGAIN_WRITE;
    *fd = (struct pollfd){.fd = x->visit.c->fd, .events = write ? POLLOUT : POLLIN};
    if (write || io == LS_IO_AGAIN_READ) return true;
    const ls_frame *f = &x->visit.answer;
    bool good = io == LS_IO_DONE && f->kind == LS_ANSWER && f->nbytes == sizeof x->answer;
    q->status = good ? LS_OK : LS_EPEER;
    memcpy(q->data, x->answer.published, sizeof q->data);
    q->news = x->answer.news;
    q->news.text[sizeof q->news.text - 1] = 0;
    x->done = true;
    return false;
}

static void ask_batch(ls_watch *w, int group, const ls_news *news, ls_inquiry *asked, int n,
                      int64_t end) {
    question *x = LS_NEW_ARRAY(question, AT_ONCE);
    struct pollfd fds[AT_ONCE];
    for (int i = 0; i < n; i++) ask(w, group, news, &asked[i], &x[i]);
    for (;;) {
        nfds_t waiting = 0;
        for (int i = 0; i < n; i++) waiting += advance(&x[i], &asked[i], &fds[waiting]);
        int64_t left = end - ls_clock_ns();
        if (!waiting || left <= 0) break;
        if (poll(fds, waiting, (int)(left / 1000000) + 1) < 0 && errno != EINTR) break;
    }
    for (int i = 0; i < n; i++) ls_conn_free(x[i].visit.c);
    free(x);
}

void ls_watch_ask(ls_watch *w, int group, const ls_news *news, ls_inquiry *asked, int n,
                  int64_t timeout_ns) {
    int64_t end = ls_clock_ns() + timeout_ns;
    for (int i = 0; i < n; i += AT_ONCE)
        ask_batch(w, group, news, asked + i, n - i < AT_ONCE ? n - i : AT_ONCE, end);
}
