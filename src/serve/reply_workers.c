/* reply_workers.c - see reply_workers.h. Requests, their replies, and the thread that hands them to
 * workers; worker_list.h has the processes.
 *
 * A thread sends orders to the workers and reads their messages (worker_message.h). Replies wait in
 * one queue until a worker has a place for them, so they begin in the order in which they came,
 * however fast each worker is.
 */
#include "serve/reply_workers.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/worker_list.h"
#include "serve/worker_message.h"

enum { LOSSES = 3 }; /* workers that may die at one token before its reply is given up */

/* A request whose replies are not yet all written. */
typedef struct request {
    uint64_t id;
    ls_request_kind kind;
    char *body; /* [nbytes] */
    size_t nbytes;
    int nreplies;
    bool *known; /* [n] by each worker */
} request;

/* A reply that is not complete. */
typedef struct held {
    uint64_t id;
    ls_reply *reply;
    request *request;
    ls_worker_process *at; /* NULL: it waits */
    int64_t turn;          /* as an engine has them */
    int lost;  /* workers that have died writing it, one after the other, without a token of it */
    int64_t n; /* its tokens when the last of them died */
} held;

struct ls_reply_workers {
    ls_engine *engine; /* with one worker; NULL: there are several, and: */
    ls_worker_options o;
    int64_t context;
    ls_worker_list workers;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    int woken; /* an eventfd */
    bool ends;
    ls_error failed; /* code LS_OK: nothing has failed */
    uint64_t ids;
    held *held; /* [nheld] those that wait by their turns */
    size_t nheld;
    int64_t turn;       /* the latest that has begun */
    request **requests; /* [nrequests] */
    size_t nrequests;
    ls_engine_counts before; /* of workers that have died */
    int64_t lost;
};

static void wake(const ls_reply_workers *w) {
    uint64_t one = 1;
    (void)!write(w->woken, &one, sizeof one);
}

/* ---- requests ---- */

static void send_request(ls_worker_process *to, request *q) {
    ls_worker_request head = {.kind = (int)q->kind};
    if (q->known[to->number]) return;
    size_t begin = ls_message_begin(&to->out, LS_SAYS_REQUEST, q->id);
    ls_buf_append(&to->out, &head, sizeof head);
    ls_buf_append(&to->out, q->body, q->nbytes);
    ls_message_end(&to->out, begin);
    q->known[to->number] = true;
}

static void forget_request(ls_reply_workers *w, request *q) {
    size_t i = 0;
    for (int k = 0; k < w->o.n; k++)
        if (q->known[k]) ls_message_put(&w->workers.list[k].out, LS_SAYS_FORGET, q->id, NULL, 0);
    while (w->requests[i] != q) i++;
    w->requests[i] = w->requests[--w->nrequests];
    free(q->known);
    free(q->body);
    free(q);
}

/* ---- replies ---- */

static void remove_held(ls_reply_workers *w, size_t i) {
    held h = w->held[i];
    memmove(&w->held[i], &w->held[i + 1], (--w->nheld - i) * sizeof *w->held);
    if (h.at) h.at->nreplies--;
    if (--h.request->nreplies == 0) forget_request(w, h.request);
    h.reply->left(h.reply->arg, h.reply);
}

static void remove_dropped(ls_reply_workers *w) {
    for (size_t i = w->nheld; i-- > 0;) {
        const held *h = &w->held[i];
        if (!h->reply->dropped) continue;
        if (h->at) ls_message_put(&h->at->out, LS_SAYS_DROP, h->id, NULL, 0);
        remove_held(w, i);
    }
}

/* Tokens of the prompt whose probabilities have all come: a note is of the token after one that was
 * read. */
static int64_t noted_of(const ls_reply *r) {
    int64_t n = (int64_t)r->nnotes;
    if (!r->rule->echo || r->rule->top < 0) return 0;
    return n >= r->nprompt ? r->nprompt : n > 0 ? n - 1 : 0;
}

static void send_reply(held *h, ls_worker_process *to) {
    const ls_reply *r = h->reply;
    ls_worker_order o = {.request = h->request->id,
                         .seed = r->seed,
                         .number = r->number,
                         .nprompt = r->nprompt,
                         .n = r->n - r->nprompt,
                         .most = r->rule->most,
                         .noted = noted_of(r),
                         .adapter = r->adapter};
    send_request(to, h->request);
    size_t begin = ls_message_begin(&to->out, LS_SAYS_WRITE, h->id);
    ls_buf_append(&to->out, &o, sizeof o);
    ls_buf_append(&to->out, r->tokens, (size_t)r->n * sizeof *r->tokens);
    ls_message_end(&to->out, begin);
    h->at = to;
    to->nreplies++;
}

static void assign_waiting(ls_reply_workers *w) {
    for (size_t i = 0; i < w->nheld; i++) {
        held *h = &w->held[i];
        ls_worker_process *to = h->at ? NULL : ls_worker_list_choose(&w->workers, h->reply);
        if (!h->at && !to) return;
        if (!to) continue;
        if (h->turn > w->turn) w->turn = h->turn;
        send_reply(h, to);
    }
}

/* ---- messages of workers ---- */

static void add_notes(ls_reply *r, ls_worker_message *m, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        r->notes = ls_grow(r->notes, r->nnotes, sizeof *r->notes);
        ls_message_take(m, &r->notes[r->nnotes++], sizeof *r->notes);
    }
}

static void take_news(ls_reply_workers *w, ls_worker_message *m) {
    ls_worker_news news;
    size_t i = 0;
    while (i < w->nheld && w->held[i].id != m->id) i++;
    if (i == w->nheld) return; /* it was dropped */
    ls_reply *r = w->held[i].reply;
    ls_message_take(m, &news, sizeof news);
    if (!r->nfound) r->nfound = news.nfound;
    r->state = LS_REPLY_RUNS;
    for (int64_t k = 0; k < news.ntokens; k++) {
        uint32_t token = 0;
        ls_message_take(m, &token, sizeof token);
        ls_reply_take(r, token);
    }
    add_notes(r, m, news.nnotes);
    if (news.nvector) {
        r->vector = LS_NEW_ARRAY(float, (size_t)news.nvector);
        ls_message_take(m, r->vector, (size_t)news.nvector * sizeof *r->vector);
    }
    if (!news.ended) return;
    ls_reply_finish(r, news.end);
    remove_held(w, i);
}

static void take_ready(ls_reply_workers *w, ls_worker_process *x, ls_worker_message *m,
                       ls_error *e) {
    ls_worker_ready ready;
    ls_message_take(m, &ready, sizeof ready);
    x->ready = ready.status == LS_OK;
    if (x->ready) x->failures = 0;
    if (!x->ready) *e = ready.error;
    w->context = ready.context;
}

static void take_messages(ls_reply_workers *w, ls_worker_process *x, ls_error *e) {
    ls_worker_message m;
    size_t at = 0;
    while (ls_message_next(&x->come, &at, &m)) {
        if (m.says == LS_SAYS_READY) take_ready(w, x, &m, e);
        if (m.says == LS_SAYS_NEWS) take_news(w, &m);
        if (m.says == LS_SAYS_COUNTS) ls_message_take(&m, &x->counts, sizeof x->counts);
        if (m.says == LS_SAYS_FAILED) ls_message_take(&m, &w->failed, sizeof w->failed);
    }
    ls_message_remove(&x->come, at);
}

/* False: the worker has ended. */
static bool hear(ls_reply_workers *w, ls_worker_process *x, ls_error *e) {
    bool lives = ls_worker_receive(&w->workers, x);
    take_messages(w, x, e);
    return lives;
}

/* ---- workers that die ---- */

static void add_counts(ls_engine_counts *to, const ls_engine_counts *c) {
    to->prompt_tokens += c->prompt_tokens;
    to->found_tokens += c->found_tokens;
    to->written_tokens += c->written_tokens;
    to->steps += c->steps;
    to->preempted += c->preempted;
    to->guessed_tokens += c->guessed_tokens;
    to->right_tokens += c->right_tokens;
}

/* The worker's replies wait again, at their places in the queue. A reply at whose next token
 * several workers have died is given up, since it may be the cause. */
static void take_back_replies(ls_reply_workers *w, const ls_worker_process *x) {
    int n = 0;
    for (size_t i = w->nheld; i-- > 0;) {
        held *h = &w->held[i];
        if (h->at != x) continue;
        if (h->reply->n > h->n) h->lost = 0;
        h->n = h->reply->n;
        h->at = NULL;
        n++;
        if (++h->lost < LOSSES) continue;
        ls_log("serve: a reply is given up: %d workers have died writing its next token", h->lost);
        remove_held(w, i);
        n--;
    }
    if (n) ls_log("serve: %d replies of worker %d are written on by others", n, x->number);
}

static void lose(ls_reply_workers *w, ls_worker_process *x) {
    w->lost += x->ready;
    add_counts(&w->before, &x->counts);
    ls_worker_clear(x);
    for (size_t i = 0; i < w->nrequests; i++) w->requests[i]->known[x->number] = false;
    take_back_replies(w, x);
}

/* ---- the thread ---- */

/* Waits for messages of workers, for wake(), or until a worker is to be started. polls [n + 1] */
static void wait_for_news(ls_reply_workers *w, struct pollfd *polls) {
    uint64_t times = 0;
    for (int i = 0; i < w->o.n; i++) {
        const ls_worker_process *x = &w->workers.list[i];
        short events = x->sent < x->out.len ? POLLIN | POLLOUT : POLLIN;
        polls[i] = (struct pollfd){.fd = x->fd, .events = events};
    }
    polls[w->o.n] = (struct pollfd){.fd = w->woken, .events = POLLIN};
    int ms = ls_worker_list_pause(&w->workers);
    pthread_mutex_unlock(&w->lock);
    poll(polls, (nfds_t)w->o.n + 1, ms);
    (void)!read(w->woken, &times, sizeof times);
    pthread_mutex_lock(&w->lock);
}

static bool take_all(ls_reply_workers *w, const struct pollfd *polls) {
    bool any = false;
    for (int i = 0; i < w->o.n; i++) {
        ls_worker_process *x = &w->workers.list[i];
        ls_error e = {0};
        if (x->fd < 0 || !(polls[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
        any = true;
        if (!hear(w, x, &e)) lose(w, x);
        if (e.msg[0]) ls_log("serve: worker %d: %s", i, e.msg);
    }
    return any;
}

static void *workers_main(void *arg) {
    ls_reply_workers *w = arg;
    struct pollfd *polls = LS_NEW_ARRAY(struct pollfd, (size_t)w->o.n + 1);
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        remove_dropped(w);
        ls_worker_list_restart(&w->workers);
        assign_waiting(w);
        for (int i = 0; i < w->o.n; i++)
            if (w->workers.list[i].fd >= 0) ls_worker_send(&w->workers.list[i]);
        wait_for_news(w, polls);
        if (!take_all(w, polls)) continue;
        pthread_mutex_unlock(&w->lock);
        w->o.engine.progress(w->o.engine.arg);
        pthread_mutex_lock(&w->lock);
    }
    while (w->nheld) remove_held(w, w->nheld - 1);
    pthread_mutex_unlock(&w->lock);
    free(polls);
    return NULL;
}

/* ---- opening ---- */

/* Waits until each worker is ready, so that an error ends the server at its start. */
static ls_status wait_for_all(ls_reply_workers *w, ls_error *e) {
    ls_error why = {0};
    for (int i = 0; i < w->o.n; i++) {
        ls_worker_process *x = &w->workers.list[i];
        while (!x->ready) {
            struct pollfd p = {.fd = x->fd, .events = POLLIN};
            poll(&p, 1, -1);
            bool lives = hear(w, x, &why);
            if (why.msg[0]) return ls_fail(e, why.code, "%s", why.msg);
            if (!lives) return ls_fail(e, LS_EIO, "worker %d has ended before it could begin", i);
        }
    }
    return LS_OK;
}

static int part_of(int n, int parts) { return (n + parts - 1) / parts; }

static ls_status open_several(ls_reply_workers *w, ls_error *e) {
    int n = w->o.n;
    ls_engine_options *engine = &w->o.engine;
    engine->texts = part_of(engine->texts, n);
    engine->memory_nbytes /= (size_t)n;
    w->woken = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (w->woken < 0) return ls_fail(e, LS_EIO, "no eventfd: too many files are open");
    LS_TRY(ls_worker_list_open(&w->workers, &w->o, e));
    LS_TRY(wait_for_all(w, e));
    int failed = pthread_create(&w->thread, NULL, workers_main, w);
    w->has_thread = !failed;
    if (!failed) return LS_OK;
    return ls_fail(e, LS_EIO, "the workers' thread can't be started: %s", ls_thread_why(failed));
}

ls_status ls_reply_workers_open(const ls_worker_options *o, ls_reply_workers **w_p, ls_error *e) {
    ls_reply_workers *w = LS_NEW(ls_reply_workers);
    w->o = *o;
    w->woken = -1;
    pthread_mutex_init(&w->lock, NULL);
    ls_status s =
        o->n > 1 ? open_several(w, e) : ls_engine_open(o->trained, &o->engine, &w->engine, e);
    if (s == LS_OK)
        *w_p = w;
    else
        ls_reply_workers_close(w);
    return s;
}

void ls_reply_workers_close(ls_reply_workers *w) {
    if (!w) return;
    ls_engine_close(w->engine);
    if (w->has_thread) {
        ls_reply_workers_lock(w);
        w->ends = true;
        wake(w);
        ls_reply_workers_unlock(w);
        pthread_join(w->thread, NULL);
    }
    ls_worker_list_close(&w->workers);
    if (w->woken >= 0) close(w->woken);
    pthread_mutex_destroy(&w->lock);
    free(w->held);
    free(w->requests);
    free(w);
}

int64_t ls_reply_workers_context(const ls_reply_workers *w) {
    return w->engine ? ls_engine_context(w->engine) : w->context;
}

/* ---- requests and replies ---- */

void ls_reply_workers_lock(ls_reply_workers *w) {
    if (w->engine)
        ls_engine_lock(w->engine);
    else
        pthread_mutex_lock(&w->lock);
}

void ls_reply_workers_unlock(ls_reply_workers *w) {
    if (w->engine)
        ls_engine_unlock(w->engine);
    else
        pthread_mutex_unlock(&w->lock);
}

uint64_t ls_reply_workers_ask(ls_reply_workers *w, ls_request_kind kind, const char *body,
                              size_t nbytes) {
    if (w->engine) return 0;
    request *q = LS_NEW(request);
    *q = (request){.id = ++w->ids, .kind = kind, .body = ls_alloc(nbytes + 1), .nbytes = nbytes};
    if (nbytes) memcpy(q->body, body, nbytes);
    q->known = LS_NEW_ARRAY(bool, (size_t)w->o.n);
    w->requests = ls_grow(w->requests, w->nrequests, sizeof *w->requests);
    w->requests[w->nrequests++] = q;
    return q->id;
}

void ls_reply_workers_add(ls_reply_workers *w, uint64_t asked, ls_reply *r) {
    if (w->engine) {
        ls_engine_add(w->engine, r);
        return;
    }
    request *q = w->requests[w->nrequests - 1]; /* the latest */
    assert(q->id == asked);
    r->begun_ns = ls_clock_ns();
    w->held = ls_grow(w->held, w->nheld, sizeof *w->held);
    const held h = {.id = ++w->ids, .reply = r, .request = q, .turn = w->turn + (int64_t)r->number};
    size_t at = w->nheld++;
    for (; at > 0 && !w->held[at - 1].at && w->held[at - 1].turn > h.turn; at--)
        w->held[at] = w->held[at - 1];
    w->held[at] = h;
    q->nreplies++;
    wake(w);
}

void ls_reply_workers_drop(ls_reply_workers *w, ls_reply *r) {
    r->dropped = true;
    if (!w->engine) wake(w);
}

int ls_reply_workers_waiting(const ls_reply_workers *w, int n) {
    int waiting = 0;
    if (w->engine) return ls_engine_waiting(w->engine, n);
    for (size_t i = 0; i < w->nheld; i++)
        waiting += !w->held[i].at && w->held[i].turn < w->turn + n;
    return waiting;
}

/* `waiting` includes replies that wait for a worker. */
ls_reply_workers_counts ls_reply_workers_count(const ls_reply_workers *w) {
    if (w->engine) return (ls_reply_workers_counts){ls_engine_count(w->engine), 1, 0};
    ls_reply_workers_counts c = {w->before, 0, w->lost};
    for (int i = 0; i < w->o.n; i++) {
        const ls_worker_process *x = &w->workers.list[i];
        add_counts(&c.engine, &x->counts);
        c.engine.running += x->counts.running;
        c.engine.pages += x->counts.pages;
        c.engine.pages_used += x->counts.pages_used;
        c.alive += x->ready;
    }
    c.engine.waiting = (int)w->nheld - c.engine.running;
    if (c.engine.waiting < 0) c.engine.waiting = 0; /* some have just ended */
    return c;
}

bool ls_reply_workers_failed(ls_reply_workers *w, ls_error *e) {
    ls_reply_workers_lock(w);
    bool failed = w->engine ? ls_engine_failed(w->engine, e) : w->failed.code != LS_OK;
    if (failed && !w->engine && e) *e = w->failed;
    ls_reply_workers_unlock(w);
    return failed;
}
