/* worker.c - see worker.h.
 *
 * The first thread takes orders; the engine's thread sends what is new after each of its steps.
 */
#include "serve/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/guard.h"
#include "base/log.h"
#include "infer/infer.h"
#include "serve/worker_message.h"

/* A request, as long as replies to it may be wanted. */
typedef struct request {
    uint64_t id;
    ls_text_request read;
    int nreplies;
    bool forgotten;
} request;

/* A reply that is being written. */
typedef struct writing {
    uint64_t id;
    request *request;
    ls_reply reply;
    int64_t sent_tokens; /* with the prompt's */
    int64_t width;       /* of a vector */
    size_t sent_notes;
    bool left; /* the engine does not know it any more */
} writing;

typedef struct worker {
    int fd, number;
    bool on_device;
    char device[64];
    ls_adapter *adapters; /* a device has their numbers; NULL: those of the server */
    ls_request_model model;
    ls_engine *engine;
    /* With the engine's lock: */
    writing **writings; /* [nwritings] */
    size_t nwritings;
    request **requests; /* [nrequests] */
    size_t nrequests;
    ls_buf out; /* the engine's thread's, after the first message */
} worker;

static void send_all(worker *w) {
    size_t sent = 0;
    while (sent < w->out.len) {
        ssize_t n = send(w->fd, w->out.data + sent, w->out.len - sent, MSG_NOSIGNAL);
        if (n <= 0) break; /* the server has ended: so does this process soon */
        sent += (size_t)n;
    }
    w->out.len = 0;
}

/* ---- news: in the engine's thread ---- */

static void put_news(writing *x, ls_buf *out) {
    const ls_reply *r = &x->reply;
    bool ended = r->state == LS_REPLY_ENDED;
    ls_worker_news news = {.ntokens = r->n - x->sent_tokens,
                           .nnotes = (int64_t)(r->nnotes - x->sent_notes),
                           .nvector = r->vector && ended ? x->width : 0,
                           .nfound = r->nfound,
                           .ended = ended,
                           .end = r->end};
    if (!news.ntokens && !news.nnotes && !ended) return;
    size_t begin = ls_message_begin(out, LS_SAYS_NEWS, x->id);
    ls_buf_append(out, &news, sizeof news);
    ls_buf_append(out, r->tokens + x->sent_tokens, (size_t)news.ntokens * sizeof *r->tokens);
    if (news.nnotes)
        ls_buf_append(out, r->notes + x->sent_notes, (size_t)news.nnotes * sizeof *r->notes);
    if (news.nvector) ls_buf_append(out, r->vector, (size_t)news.nvector * sizeof *r->vector);
    ls_message_end(out, begin);
    x->sent_tokens = r->n;
    x->sent_notes = r->nnotes;
}

static void free_request(worker *w, request *q) {
    if (q->nreplies || !q->forgotten) return;
    size_t i = 0;
    while (w->requests[i] != q) i++;
    w->requests[i] = w->requests[--w->nrequests];
    ls_request_free(&q->read);
    free(q);
}

static void free_writing(worker *w, size_t i) {
    writing *x = w->writings[i];
    w->writings[i] = w->writings[--w->nwritings];
    x->request->nreplies--;
    free_request(w, x->request);
    ls_reply_free(&x->reply);
    free(x);
}

/* A process whose device has failed ends: its replies are written on by others, and a new one may
 * find the device well again. */
static void end_if_device_failed(worker *w, const ls_error *e) {
    if (!w->on_device || ls_guard_check(NULL) != LS_OK) return;
    ls_log("serve: worker %d ends: %s", w->number, e->msg);
    send_all(w);
    _exit(1);
}

static void progress(void *arg) {
    worker *w = arg;
    ls_engine_lock(w->engine);
    for (size_t i = w->nwritings; i-- > 0;) {
        put_news(w->writings[i], &w->out);
        if (w->writings[i]->left) free_writing(w, i);
    }
    ls_engine_counts c = ls_engine_count(w->engine);
    ls_error e = {0};
    bool failed = ls_engine_failed(w->engine, &e);
    ls_engine_unlock(w->engine);
    ls_message_put(&w->out, LS_SAYS_COUNTS, 0, &c, sizeof c);
    if (failed) end_if_device_failed(w, &e);
    if (failed) ls_message_put(&w->out, LS_SAYS_FAILED, 0, &e, sizeof e);
    send_all(w);
}

/* With the lock. */
static void left(void *arg, ls_reply *r) {
    writing *x = arg;
    (void)r;
    x->left = true;
}

/* ---- orders ---- */

static request *find_request(const worker *w, uint64_t id) {
    for (size_t i = 0; i < w->nrequests; i++)
        if (w->requests[i]->id == id) return w->requests[i];
    return NULL;
}

/* The server has read it before: it is right. */
static void read_request(worker *w, ls_worker_message *m) {
    ls_worker_request head;
    ls_refusal why;
    request *q = LS_NEW(request);
    q->id = m->id;
    ls_message_take(m, &head, sizeof head);
    if (!ls_request_read(&w->model, (ls_request_kind)head.kind, m->data, m->nbytes, &q->read, &why))
        ls_log("serve: a worker does not understand a request: %s", why.error.msg);
    ls_engine_lock(w->engine);
    w->requests = ls_grow(w->requests, w->nrequests, sizeof *w->requests);
    w->requests[w->nrequests++] = q;
    ls_engine_unlock(w->engine);
}

/* Its tokens that are there already are read again: what they did to the text, and to its rules. */
static void write_reply(worker *w, ls_worker_message *m) {
    ls_worker_order o;
    ls_message_take(m, &o, sizeof o);
    uint32_t *tokens = LS_NEW_ARRAY(uint32_t, (size_t)(o.nprompt + o.n));
    ls_message_take(m, tokens, (size_t)(o.nprompt + o.n) * sizeof *tokens);
    writing *x = LS_NEW(writing);
    x->id = m->id;
    x->width = ls_infer_width(&w->model.trained->model);
    x->sent_tokens = o.nprompt + o.n;
    ls_engine_lock(w->engine);
    x->request = find_request(w, o.request);
    x->request->nreplies++;
    x->request->read.rule.most = o.most;
    ls_reply *r = &x->reply;
    ls_reply_make(r, &x->request->read.rule, w->model.trained->tokenizer, tokens, o.nprompt);
    r->seed = o.seed;
    r->number = o.number;
    r->adapter = o.adapter;
    r->noted = o.noted;
    r->left = left;
    r->arg = x;
    for (int64_t i = 0; i < o.n; i++) ls_reply_take(r, tokens[o.nprompt + i]);
    w->writings = ls_grow(w->writings, w->nwritings, sizeof *w->writings);
    w->writings[w->nwritings++] = x;
    ls_engine_add(w->engine, r);
    ls_engine_unlock(w->engine);
    free(tokens);
}

static void drop_reply(worker *w, uint64_t id) {
    ls_engine_lock(w->engine);
    for (size_t i = 0; i < w->nwritings; i++)
        if (w->writings[i]->id == id) w->writings[i]->reply.dropped = true;
    ls_engine_unlock(w->engine);
}

static void forget_request(worker *w, uint64_t id) {
    ls_engine_lock(w->engine);
    request *q = find_request(w, id);
    q->forgotten = true;
    free_request(w, q);
    ls_engine_unlock(w->engine);
}

static void obey(worker *w, ls_worker_message *m) {
    switch (m->says) {
    case LS_SAYS_REQUEST: read_request(w, m); break;
    case LS_SAYS_WRITE: write_reply(w, m); break;
    case LS_SAYS_DROP: drop_reply(w, m->id); break;
    case LS_SAYS_FORGET: forget_request(w, m->id); break;
    default: break;
    }
}

static void take_orders(worker *w) {
    static char part[1 << 16];
    ls_buf come = {0};
    ls_worker_message m;
    for (ssize_t n; (n = recv(w->fd, part, sizeof part, 0)) > 0;) {
        size_t at = 0;
        ls_buf_append(&come, part, (size_t)n);
        while (ls_message_next(&come, &at, &m)) obey(w, &m);
        ls_message_remove(&come, at);
    }
    ls_buf_free(&come);
}

/* ---- the process ---- */

/* The threads of the process that was forked are not here: its own compute from now on. */
static ls_status start_threads(const ls_worker_options *o, int number, ls_error *e) {
    ls_compute *c = &o->trained->compute;
    int own = ls_cores_bind(number, o->n);
    LS_TRY(ls_compute_init(c, own > 0 ? own : 1, c->scratch_floats, e));
    if (own < 1) ls_pool_share_cores(c->pool);
    return LS_OK;
}

/* Worker i has device i of its kind. */
static ls_status choose_device(worker *w, const char *name, ls_error *e) {
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0;
    LS_TRY(ls_device_list(name, list, &n, e));
    bool any = n == 0 || list[0].id == 0 || ls_device_is_numbered(name);
    if (!any && w->number >= n)
        return ls_fail(
            e, LS_EINVAL,
            "device %s: this host has %d: give no more --workers, or let them share one by "
            "its number, as in %s:0",
            name, n, name);
    if (any)
        snprintf(w->device, sizeof w->device, "%s", name);
    else
        snprintf(w->device, sizeof w->device, "%s:%d", name, list[w->number].number);
    return LS_OK;
}

/* The server has the model and its adapters in the host's memory: drivers can't be used in a
 * process that is forked after they have been loaded. */
static ls_status open_device(worker *w, const ls_worker_options *o, ls_engine_options *engine,
                             ls_error *e) {
    int n = engine->nadapters;
    if (!o->device) return LS_OK;
    LS_TRY(choose_device(w, o->device, e));
    LS_TRY(ls_trained_place(o->trained, w->device, e));
    w->on_device = true;
    w->adapters = LS_NEW_ARRAY(ls_adapter, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        w->adapters[i] = engine->adapters[i];
        LS_TRY(ls_adapter_place(o->trained, &w->adapters[i], e));
    }
    engine->adapters = w->adapters;
    return LS_OK;
}

static ls_status open_worker(worker *w, const ls_worker_options *o, ls_error *e) {
    ls_engine_options engine = o->engine;
    engine.progress = progress;
    engine.arg = w;
    LS_TRY(start_threads(o, w->number, e));
    LS_TRY(open_device(w, o, &engine, e));
    LS_TRY(ls_engine_open(o->trained, &engine, &w->engine, e));
    w->model.context = ls_engine_context(w->engine);
    ls_request_model_open(&w->model);
    return LS_OK;
}

static void close_worker(worker *w) {
    ls_engine_close(w->engine);
    free(w->adapters);
    while (w->nwritings) free_writing(w, w->nwritings - 1);
    while (w->nrequests) {
        w->requests[0]->forgotten = true;
        free_request(w, w->requests[0]);
    }
    ls_request_model_close(&w->model);
    free(w->writings);
    free(w->requests);
    ls_buf_free(&w->out);
}

int ls_worker_run(const ls_worker_options *o, int number, int fd) {
    worker w = {.fd = fd, .number = number, .model = o->model};
    ls_worker_ready ready = {.status = LS_OK};
    ready.status = open_worker(&w, o, &ready.error);
    ready.context = w.model.context;
    ls_message_put(&w.out, LS_SAYS_READY, 0, &ready, sizeof ready);
    send_all(&w);
    if (ready.status != LS_OK) return 0;
    take_orders(&w);
    close_worker(&w);
    return 0;
}
