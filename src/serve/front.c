/* front.c - see front.h.
 *
 * Three kinds of threads: one reads requests (http/jobs.h), since a client decides how long its
 * body takes to parse; workers write replies; and the one that calls ls_front_run() sends them:
 * what is new wakes it by an eventfd.
 */
#include "serve/front.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "http/jobs.h"
#include "infer/infer.h"
#include "serve/answer.h"
#include "serve/chat_page.h"
#include "serve/embedding.h"
#include "serve/fingerprint.h"
#include "serve/meter.h"

struct ls_front {
    ls_front_options o;
    ls_request_model model;
    ls_reply_workers *workers;
    ls_http_jobs *posts; /* requests that are to be read */
    ls_fingerprint *fingerprint;
    ls_http *http;
    int woken; /* an eventfd */
    uint64_t nrequests;
    int64_t started_s;
    ls_meter meter;
    bool ending;
};

/* A request that is being answered. Its memory is freed by whoever leaves it last: the connection,
 * or the workers. */
typedef struct asked {
    ls_front *front;
    ls_text_request request;
    ls_reply *replies; /* [answer.n] */
    ls_text_answer answer;
    ls_answer_sent *sent; /* [answer.n] */
    size_t nheld;         /* replies that the workers have */
    bool gone, written;   /* the connection has left; all that will be sent is in `ready` */
    ls_buf ready;         /* from `taken` on not yet sent */
    size_t taken;
} asked;

/* ---- answers as JSON at once ---- */

static void answer_json(ls_http_answer *a, ls_json *o) {
    a->status = 200;
    a->type = "application/json";
    ls_json_write(o, 0, &a->body);
    ls_json_free(o);
}

static void answer_refusal(ls_front *f, ls_http_answer *a, const ls_refusal *why) {
    a->status = why->status;
    a->type = "application/json";
    ls_answer_refuse(why, &a->body);
    ls_reply_workers_lock(f->workers);
    ls_meter_refused(&f->meter, why->status);
    ls_reply_workers_unlock(f->workers);
}

static void refuse(ls_front *f, ls_http_answer *a, int status, const char *type,
                   const char *message) {
    ls_refusal why = {.status = status, .type = type};
    ls_fail(&why.error, LS_EINVAL, "%s", message);
    answer_refusal(f, a, &why);
}

/* What the HTTP server refuses. */
static void refuse_visitor(void *arg, int status, const char *why, ls_http_answer *a) {
    refuse(arg, a, status,
           status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 503 ? "unavailable_error"
                           : "invalid_request_error",
           why);
}

/* ---- requests for texts ---- */

static void free_asked(asked *x) {
    for (size_t i = 0; i < x->answer.n; i++) ls_reply_free(&x->replies[i]);
    free(x->replies);
    free(x->sent);
    ls_buf_free(&x->ready);
    ls_request_free(&x->request);
    free(x);
}

/* The workers leave a reply. They hold the lock. */
static void left(void *arg, ls_reply *r) {
    asked *x = arg;
    if (r->state != LS_REPLY_ENDED) ls_reply_finish(r, LS_END_ASKED);
    if (!r->dropped) ls_meter_reply(&x->front->meter, r);
    if (--x->nheld == 0 && x->gone) free_asked(x);
}

/* Puts what is new into `ready`. With the workers' lock. */
static void prepare(asked *x) {
    if (x->request.stream) {
        ls_answer_stream(&x->answer, x->sent, &x->ready);
        x->written = ls_answer_is_complete(&x->answer);
    } else if (ls_answer_is_complete(&x->answer)) {
        (x->request.rule.embeds ? ls_embedding_write : ls_answer_write)(&x->answer, &x->ready);
        x->written = true;
    }
}

static size_t next_bytes(void *arg, char *bytes, size_t most) {
    asked *x = arg;
    if (x->taken == x->ready.len) {
        x->ready.len = x->taken = 0;
        if (x->written) return LS_HTTP_END;
        ls_reply_workers_lock(x->front->workers);
        prepare(x);
        ls_reply_workers_unlock(x->front->workers);
    }
    size_t n = x->ready.len - x->taken < most ? x->ready.len - x->taken : most;
    memcpy(bytes, x->ready.data ? x->ready.data + x->taken : "", n);
    x->taken += n;
    return n;
}

static void close_asked(void *arg) {
    asked *x = arg;
    ls_reply_workers *w = x->front->workers;
    ls_reply_workers_lock(w);
    x->gone = true;
    for (size_t i = 0; i < x->answer.n; i++) ls_reply_workers_drop(w, &x->replies[i]);
    bool last = x->nheld == 0;
    ls_reply_workers_unlock(w);
    if (last) free_asked(x);
}

/* A comment between two events, or white space before JSON. */
static size_t probe(void *arg, char *bytes, size_t most) {
    asked *x = arg;
    const char *text = x->request.stream ? ":\n\n" : "\n";
    size_t n = strlen(text);
    if (x->taken < x->ready.len || x->written || n > most) return 0;
    memcpy(bytes, text, n);
    return n;
}

static const ls_http_source source = {next_bytes, close_asked, probe};

static void refuse_busy(ls_front *f, ls_http_answer *a) {
    refuse(f, a, 429, "rate_limit_error", "too many requests wait already; try again later");
    a->headers[0][0] = "Retry-After";
    a->headers[0][1] = "1";
    a->nheaders = 1;
}

/* Is there room for n more replies in the queue? Of a request with many only those count whose turn
 * comes before that of the last of these. With the workers' lock. */
static bool has_room(const ls_front *f, int n) {
    int waiting = ls_reply_workers_waiting(f->workers, n);
    return waiting == 0 || waiting + n <= f->o.queue;
}

/* False: too many replies wait already. */
static bool queue_replies(ls_front *f, asked *x, ls_request_kind kind, const char *body, size_t n) {
    ls_reply_workers_lock(f->workers);
    bool fits = has_room(f, (int)x->answer.n);
    uint64_t id = fits ? ls_reply_workers_ask(f->workers, kind, body, n) : 0;
    for (size_t i = 0; fits && i < x->answer.n; i++) {
        x->replies[i].left = left;
        x->replies[i].arg = x;
        x->nheld++;
        ls_reply_workers_add(f->workers, id, &x->replies[i]);
    }
    ls_reply_workers_unlock(f->workers);
    return fits;
}

static void make_replies(ls_front *f, asked *x) {
    ls_text_request *q = &x->request;
    size_t n = q->nprompts * (size_t)q->n;
    x->replies = LS_NEW_ARRAY(ls_reply, n);
    x->sent = LS_NEW_ARRAY(ls_answer_sent, n);
    for (size_t i = 0; i < n; i++) {
        const ls_request_prompt *p = &q->prompts[i / (size_t)q->n];
        ls_reply_make(&x->replies[i], &q->rule, f->model.trained->tokenizer, p->tokens, p->n);
        x->replies[i].seed = q->seed;
        x->replies[i].number = i;
        x->replies[i].adapter = q->adapter;
    }
    x->answer =
        (ls_text_answer){.request = q,
                         .model = &f->model,
                         .replies = x->replies,
                         .n = n,
                         .created = (int64_t)time(NULL),
                         .system_fingerprint = ls_fingerprint_of(f->fingerprint, q->adapter)};
    const char *kind = q->asked ? "resp_" : q->chat ? "chatcmpl-" : "cmpl-";
    snprintf(x->answer.id, sizeof x->answer.id, "%s%llx-%llx", kind,
             (unsigned long long)f->started_s, (unsigned long long)++f->nrequests);
}

static void answer_texts(ls_front *f, ls_request_kind kind, const char *body, size_t n,
                         ls_http_answer *a) {
    ls_refusal why;
    asked *x = LS_NEW(asked);
    x->front = f;
    if (!ls_request_read(&f->model, kind, body, n, &x->request, &why)) {
        free_asked(x);
        answer_refusal(f, a, &why);
        return;
    }
    make_replies(f, x);
    if (!queue_replies(f, x, kind, body, n)) {
        free_asked(x);
        refuse_busy(f, a);
        return;
    }
    a->type = x->request.stream ? "text/event-stream" : "application/json";
    a->source = &source;
    a->stream = x;
}

/* ---- tokens, vectors ---- */

/* The body as an object; else *a refuses it. */
static ls_json *read_body(ls_front *f, const char *body, size_t n, ls_http_answer *a) {
    ls_json *j = NULL;
    ls_error e = {0};
    if (ls_json_parse(body, n, "the body", &j, &e) == LS_OK && ls_json_is_object(j)) return j;
    refuse(f, a, 400, "invalid_request_error", j ? "the body is no JSON object" : e.msg);
    ls_json_free(j);
    return NULL;
}

/* vLLM's "prompt", with the tokens that begin a text unless told otherwise, or llama.cpp's
 * "content", without them unless told otherwise. */
static ls_status read_tokens(const ls_front *f, const ls_json *body, ls_token_list *list_p,
                             ls_error *e) {
    static const char *const more[] = {"with_pieces", "return_token_strs"};
    bool content = !ls_json_given(body, "prompt");
    const char *field = content ? "add_special" : "add_special_tokens";
    const char *text = ls_json_text(ls_json_get(body, content ? "content" : "prompt"));
    const ls_json *begin = ls_json_given(body, field);
    if (!text) return ls_fail(e, LS_EINVAL, "prompt: a text is expected");
    if (begin && !ls_json_is_bool(begin))
        return ls_fail(e, LS_EINVAL, "%s: true or false is expected", field);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (ls_json_is_true(ls_json_get(body, more[i])))
            return ls_fail(e, LS_EINVAL, "%s is not supported here", more[i]);
    return ls_request_tokens(&f->model, text, begin ? ls_json_is_true(begin) : !content, list_p, e);
}

static void answer_tokens(ls_front *f, const char *posted, size_t n, ls_http_answer *a) {
    ls_json *body = read_body(f, posted, n, a), *o;
    if (!body) return;
    ls_token_list list = {0};
    ls_error e = {0};
    if (read_tokens(f, body, &list, &e) != LS_OK) {
        refuse(f, a, 400, "invalid_request_error", e.msg);
    } else {
        ls_json *ids = ls_json_new_array();
        for (size_t i = 0; i < list.n; i++) ls_json_push(ids, ls_json_new_integer(list.ids[i]));
        o = ls_json_new_object();
        ls_json_set(o, "tokens", ids);
        ls_json_set_integer(o, "count", (int64_t)list.n);
        ls_json_set_integer(o, "max_model_len", f->model.context);
        answer_json(a, o);
        free(list.ids);
    }
    ls_json_free(body);
}

static void answer_text_of(ls_front *f, const char *posted, size_t n, ls_http_answer *a) {
    ls_json *body = read_body(f, posted, n, a);
    if (!body) return;
    const ls_json *ids = ls_json_get(body, "tokens");
    ls_decoding d = {.tokenizer = f->model.trained->tokenizer, .begun = true};
    ls_buf text = {0};
    bool good = ls_json_is_array(ids);
    for (size_t i = 0; good && i < ls_json_count(ids); i++) {
        int64_t id = 0;
        good = ls_json_integer(ls_json_at(ids, i), &id) && id >= 0 &&
               id < f->model.trained->config.model.vocab;
        if (good) ls_decoding_add(&d, (uint32_t)id, &text);
    }
    ls_decoding_end(&d, &text);
    if (good) {
        ls_json *o = ls_json_new_object(),
                *as = ls_json_new_bytes(text.data ? text.data : "", text.len);
        ls_json_set(o, "prompt", as);
        ls_json_set(o, "content", ls_json_share(as));
        answer_json(a, o);
    } else {
        refuse(f, a, 400, "invalid_request_error",
               "tokens: a list of the model's tokens is expected");
    }
    ls_buf_free(&text);
    ls_json_free(body);
}

/* ---- what is there ---- */

/* The model, or an adapter of it, as vLLM lists them. */
static ls_json *model_of(const ls_front *f, int adapter) {
    ls_json *m = ls_json_new_object();
    ls_json_set_text(m, "id", ls_request_model_name(&f->model, adapter));
    ls_json_set_text(m, "object", "model");
    ls_json_set_integer(m, "created", f->started_s);
    ls_json_set_text(m, "owned_by", "lockstep");
    ls_json_set_text(m, "root", f->model.name);
    ls_json_set(m, "parent",
                adapter ? ls_json_new_bytes(f->model.name, strlen(f->model.name))
                        : ls_json_new_null());
    ls_json_set_integer(m, "max_model_len", f->model.context);
    return m;
}

static void answer_models(ls_front *f, ls_http_answer *a) {
    ls_json *o = ls_json_new_object(), *list = ls_json_new_array();
    for (int i = 0; i <= f->model.nadapters; i++) ls_json_push(list, model_of(f, i));
    ls_json_set_text(o, "object", "list");
    ls_json_set(o, "data", list);
    answer_json(a, o);
}

/* One of them, by its name. */
static void answer_model(ls_front *f, const char *name, ls_http_answer *a) {
    for (int i = 0; i <= f->model.nadapters; i++) {
        if (strcmp(name, ls_request_model_name(&f->model, i)) != 0) continue;
        answer_json(a, model_of(f, i));
        return;
    }
    refuse(f, a, 404, "not_found_error",
           "there is no model of this name; GET /v1/models lists those that are here");
}

static void answer_metrics(ls_front *f, ls_http_answer *a) {
    ls_reply_workers_lock(f->workers);
    ls_reply_workers_counts c = ls_reply_workers_count(f->workers);
    ls_meter_write(&f->meter, &c, f->model.name, &a->body);
    ls_reply_workers_unlock(f->workers);
    a->type = "text/plain; version=0.0.4; charset=utf-8";
}

/* What is posted, by these paths. */
enum { TOKENIZE = LS_REQUEST_EMBEDDING + 1, DETOKENIZE };
static const char *const posts[] = {[LS_REQUEST_TEXT] = "/v1/completions",
                                    [LS_REQUEST_CHAT] = "/v1/chat/completions",
                                    [LS_REQUEST_RESPONSE] = "/v1/responses",
                                    [LS_REQUEST_EMBEDDING] = "/v1/embeddings",
                                    [TOKENIZE] = "/tokenize",
                                    [DETOKENIZE] = "/detokenize"};
enum { NPOSTS = sizeof posts / sizeof *posts };

typedef struct posted_request {
    ls_front *front;
    int kind;
    ls_buf body;
} posted_request;

/* In the thread that reads requests. */
static void answer_posted(void *arg, ls_http_answer *a) {
    const posted_request *p = arg;
    const char *body = p->body.data ? p->body.data : "";
    if (p->kind == TOKENIZE)
        answer_tokens(p->front, body, p->body.len, a);
    else if (p->kind == DETOKENIZE)
        answer_text_of(p->front, body, p->body.len, a);
    else
        answer_texts(p->front, (ls_request_kind)p->kind, body, p->body.len, a);
}

static void free_posted(void *arg) {
    posted_request *p = arg;
    ls_buf_free(&p->body);
    free(p);
}

static const ls_http_work read_posted = {answer_posted, free_posted};

/* What can be refused before the body is read is refused. */
static void take_posted(ls_front *f, int kind, const ls_http_request *r, ls_http_answer *a) {
    int unread = ls_http_jobs_count(f->posts);
    bool writes = kind < TOKENIZE;
    ls_reply_workers_lock(f->workers);
    bool room = !writes || has_room(f, 1);
    ls_reply_workers_unlock(f->workers);
    if (writes && f->ending) {
        refuse(f, a, 503, "unavailable_error", "the server is about to end");
    } else if (!room || (unread && unread >= f->o.queue)) {
        refuse_busy(f, a);
    } else {
        posted_request *p = LS_NEW(posted_request);
        *p = (posted_request){f, kind, ls_http_take_posted(r)};
        ls_http_jobs_add(f->posts, &read_posted, p, a);
    }
}

/* Asked by probes, which know no key and have an address as the host. */
static const char HEALTH[] = "/health";

static void answer(void *arg, const ls_http_request *r, ls_http_answer *a) {
    static const char MODELS[] = "/v1/models", RESPONSES[] = "/v1/responses/";
    ls_front *f = arg;
    size_t n = 0, nmodels = sizeof MODELS - 1;
    const char *path = ls_http_path(r);
    bool post = ls_http_posted(r, &n) != NULL;
    int kind = 0;
    while (kind < NPOSTS && strcmp(posts[kind], path) != 0) kind++;
    if (kind < NPOSTS && !post) {
        refuse(f, a, 405, "invalid_request_error", "this path is for POST");
    } else if (kind < NPOSTS) {
        take_posted(f, kind, r, a);
    } else if (ls_chat_page_answer(path, a)) {
        return;
    } else if (strcmp(path, HEALTH) == 0) {
        ls_json *o = ls_json_new_object();
        ls_json_set_text(o, "status", "ok");
        answer_json(a, o);
    } else if (strcmp(path, MODELS) == 0) {
        answer_models(f, a);
    } else if (strncmp(path, MODELS, nmodels) == 0 && path[nmodels] == '/') {
        answer_model(f, path + nmodels + 1, a);
    } else if (strncmp(path, RESPONSES, strlen(RESPONSES)) == 0) {
        refuse(f, a, 404, "not_found_error", "responses are not stored here");
    } else if (strcmp(path, "/metrics") == 0) {
        answer_metrics(f, a);
    } else {
        refuse(f, a, 404, "not_found_error",
               "there is no such path here; OpenAI's API is under /v1, which belongs to a client's "
               "base URL: http://HOST:PORT/v1");
    }
}

/* ---- opening, running ---- */

static void progress(void *arg) {
    const ls_front *f = arg;
    uint64_t one = 1;
    (void)!write(f->woken, &one, sizeof one);
}

ls_status ls_front_open(const ls_front_options *o, ls_front **f_p, ls_error *e) {
    ls_front *f = LS_NEW(ls_front);
    *f = (ls_front){.o = *o, .started_s = (int64_t)time(NULL)};
    f->woken = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    f->o.engine.progress = progress;
    f->o.engine.arg = f;
    f->o.http.answer = answer;
    f->o.http.refuse = refuse_visitor;
    f->o.http.arg = f;
    f->o.http.posts_nbytes = LS_FRONT_BODY;
    f->o.http.open_path = HEALTH;
    ls_status s = f->woken < 0 ? ls_fail(e, LS_EIO, "no eventfd: too many files are open") : LS_OK;
    f->model = (ls_request_model){.trained = o->trained,
                                  .format = o->format,
                                  .name = o->name,
                                  .adapters = o->adapters,
                                  .nadapters = o->engine.nadapters};
    const ls_worker_options w = {.trained = o->trained,
                                 .model = f->model,
                                 .engine = f->o.engine,
                                 .n = o->workers,
                                 .device = o->device};
    if (s == LS_OK) s = ls_reply_workers_open(&w, &f->workers, e);
    if (s == LS_OK) s = ls_http_jobs_open(1, progress, f, &f->posts, e);
    if (s == LS_OK) s = ls_http_open(&f->o.http, &f->http, e);
    if (s != LS_OK) {
        ls_front_close(f);
        return s;
    }
    f->model.context = ls_reply_workers_context(f->workers);
    ls_request_model_open(&f->model);
    f->fingerprint = ls_fingerprint_open(&f->model, o->engine.kept, o->engine.adapters);
    *f_p = f;
    return LS_OK;
}

int ls_front_port(const ls_front *f) { return ls_http_port(f->http); }

static void run_once(ls_front *f) {
    struct pollfd p[2] = {{.fd = ls_http_fd(f->http), .events = POLLIN},
                          {.fd = f->woken, .events = POLLIN}};
    uint64_t steps = 0;
    poll(p, 2, ls_http_rests(f->http, 200));
    if (read(f->woken, &steps, sizeof steps) > 0) ls_http_wake(f->http);
    ls_http_run(f->http, 0);
}

ls_status ls_front_run(ls_front *f, const atomic_int *asked_p, double grace_s, ls_error *e) {
    ls_error why = {0};
    bool failed = false;
    while (!*asked_p && !(failed = ls_reply_workers_failed(f->workers, &why))) run_once(f);
    f->ending = true;
    int64_t end = ls_clock_ns() + (int64_t)(grace_s * 1e9);
    while (!failed && ls_http_nstreams(f->http) > 0 && ls_clock_ns() < end) {
        run_once(f);
        failed = ls_reply_workers_failed(f->workers, &why);
    }
    return failed ? ls_fail(e, why.code, "%s", why.msg) : LS_OK;
}

void ls_front_close(ls_front *f) {
    if (!f) return;
    ls_http_close(f->http);
    ls_http_jobs_close(f->posts, true);
    ls_reply_workers_close(f->workers);
    ls_fingerprint_close(f->fingerprint);
    ls_request_model_close(&f->model);
    if (f->woken >= 0) close(f->woken);
    free(f);
}
