/* server.c - see server.h. */
#include "http/server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "http/connections.h"
#include "http/listener.h"
#include "http/microhttpd.h"
#include "http/visitor.h"

/* CONNECTION_BYTES: memory of a connection, for its headers and what it sends next. */
enum { CONNECTION_BYTES = 32 << 10, BLOCK_BYTES = 16 << 10, IDLE_S = 30, PROBE_NS = 1000000000 };
/* What is read of a body that is refused, and dropped. */
enum { DROPPED_BYTES = 64 << 20 };

static const char COOKIE[] = "lockstep_token";

/* What a browser may do with any answer: load what comes from this server, and nothing else; show
 * it in no frame of another page; and take it for what its type says. */
static const char *const headers[][2] = {
    {"Content-Security-Policy", "default-src 'self'; img-src 'self' data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

/* A connection that is suspended now and then. */
typedef struct resting resting;
struct resting {
    ls_http *server;
    struct MHD_Connection *connection;
    int fd;            /* of a POST's connection; -1: of another one */
    bool rests;        /* there is nothing to send, and the connection is suspended */
    bool closed;       /* its client has gone away */
    bool patient;      /* a client that sends no more may read on */
    bool probes;       /* it is to be asked whether it does */
    int64_t probed_ns; /* when it was last; 0: never */
    resting *next, **at;
};

typedef struct stream {
    resting r; /* first */
    const ls_http_source *source;
    void *own;
} stream;

struct ls_http {
    const ls_microhttpd *lib;
    ls_http_options o;
    ls_listener listener;
    struct MHD_Daemon *daemon;
    resting *list; /* streams, and requests whose answers are pending */
    int nstreams, npending;
    ls_connections connections;
};

typedef struct delivery {
    bool gives_token, posted, head;
} delivery;

/* A request: the body of a POST as it comes, then its answer while it is pending. */
typedef struct upload {
    resting r; /* first; in the list while `pending` is set */
    ls_buf body;
    int refused;     /* the status by which it is, once all of it has come; 0: it is not */
    size_t ndropped; /* bytes of a refused one */
    const char *why; /* a sentence */
    delivery how;    /* how its answer will be sent */
    const ls_http_pending *pending;
    void *job;
} upload;

struct ls_http_request {
    const ls_http *server;
    struct MHD_Connection *connection;
    const char *path;
    upload *posted; /* NULL: the method is another one */
};

const char *ls_http_path(const ls_http_request *r) { return r->path; }

const char *ls_http_query(const ls_http_request *r, const char *name) {
    return r->server->lib->lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *ls_http_header(const ls_http_request *r, const char *name) {
    return r->server->lib->lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

const char *ls_http_posted(const ls_http_request *r, size_t *n_p) {
    if (!r->posted) return NULL;
    *n_p = r->posted->body.len;
    return r->posted->body.data ? r->posted->body.data : "";
}

ls_buf ls_http_take_posted(const ls_http_request *r) {
    ls_buf body = r->posted->body;
    r->posted->body = (ls_buf){0};
    return body;
}

/* ---- connections that rest ---- */

static void add_resting(resting *r, ls_http *h, struct MHD_Connection *c, bool posted) {
    *r = (resting){.server = h, .connection = c, .fd = -1, .next = h->list, .at = &h->list};
    const union MHD_ConnectionInfo *info =
        h->lib->get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (posted && info) r->fd = info->connect_fd;
    if (r->next) r->next->at = &r->next;
    h->list = r;
}

static void remove_resting(resting *r) {
    *r->at = r->next;
    if (r->next) r->next->at = r->at;
}

static void rest(resting *r) {
    r->rests = true;
    r->server->lib->suspend_connection(r->connection);
}

static void resume(resting *r) {
    r->rests = false;
    r->server->lib->resume_connection(r->connection);
}

/* While a connection is suspended, the library does not see that its client has gone. */
static void end_closed(ls_http *h) {
    for (resting *r = h->list; r; r = r->next) {
        struct pollfd p = {.fd = r->fd, .events = POLLRDHUP};
        if (r->fd < 0 || !r->rests || poll(&p, 1, 0) < 1) continue;
        int64_t now = ls_clock_ns();
        r->closed = !r->patient || (p.revents & (POLLHUP | POLLERR));
        if (!r->closed && r->probed_ns && now - r->probed_ns < PROBE_NS) continue;
        r->probes = true;
        r->probed_ns = now;
        resume(r);
    }
}

void ls_http_wake(ls_http *h) {
    for (resting *r = h->list; r; r = r->next)
        if (r->rests) resume(r);
}

/* ---- streams ---- */

static ssize_t stream_read(void *arg, uint64_t at, char *bytes, size_t most) {
    stream *s = arg;
    (void)at;
    if (s->r.closed) return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = s->r.probes && s->r.patient ? s->source->probe(s->own, bytes, most) : 0;
    s->r.probes = false;
    if (n == 0) n = s->source->next(s->own, bytes, most);
    if (n == LS_HTTP_END) return MHD_CONTENT_READER_END_OF_STREAM;
    if (n) return (ssize_t)n;
    rest(&s->r);
    return 0;
}

static void stream_close(void *arg) {
    stream *s = arg;
    s->source->close(s->own);
    s->r.server->nstreams--;
    remove_resting(&s->r);
    free(s);
}

static struct MHD_Response *stream_open(ls_http *h, struct MHD_Connection *c,
                                        const ls_http_answer *a, bool posted) {
    stream *s = LS_NEW(stream);
    *s = (stream){.source = a->source, .own = a->stream};
    add_resting(&s->r, h, c, posted);
    s->r.patient = a->source->probe;
    h->nstreams++;
    return h->lib->create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, stream_read, s,
                                                 stream_close);
}

/* ---- connections ---- */

static ls_connection *connection_of(const ls_http *h, struct MHD_Connection *c) {
    const union MHD_ConnectionInfo *info =
        h->lib->get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void set_answered(const ls_http *h, struct MHD_Connection *c) {
    ls_connection *x = connection_of(h, c);
    if (x) x->answered = true;
}

static void set_asks(const ls_http *h, struct MHD_Connection *c) {
    ls_connection *x = connection_of(h, c);
    if (x) x->asks = true;
}

static void set_uploads(const ls_http *h, struct MHD_Connection *c) {
    ls_connection *x = connection_of(h, c);
    if (x) x->uploads = true;
}

/* All of the request has come. */
static void set_complete(const ls_http *h, struct MHD_Connection *c) {
    ls_connection *x = connection_of(h, c);
    if (x) x->complete = true;
}

static void set_waits(ls_http *h, struct MHD_Connection *c) {
    ls_connection *x = connection_of(h, c);
    if (x) ls_connections_waits(&h->connections, x);
}

static void on_connection(void *arg, struct MHD_Connection *c, void **own,
                          enum MHD_ConnectionNotificationCode what) {
    ls_http *h = arg;
    const union MHD_ConnectionInfo *info =
        h->lib->get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_STARTED && info)
        *own = ls_connections_add(&h->connections, info->connect_fd);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && *own) {
        ls_connections_remove(&h->connections, *own);
        *own = NULL;
    }
}

/* ---- answers ---- */

static struct MHD_Response *response_of(ls_http *h, struct MHD_Connection *c, ls_http_answer *a,
                                        bool posted) {
    if (a->source) return stream_open(h, c, a, posted);
    if (a->text)
        return h->lib->create_response_from_buffer(a->ntext, (void *)(uintptr_t)a->text,
                                                   MHD_RESPMEM_PERSISTENT);
    struct MHD_Response *r = h->lib->create_response_from_buffer(
        a->body.len, a->body.data, a->body.data ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    a->body = (ls_buf){0};
    return r;
}

static enum MHD_Result queue(ls_http *h, struct MHD_Connection *c, ls_http_answer *a,
                             delivery how) {
    struct MHD_Response *r = response_of(h, c, a, how.posted);
    if (!r) return MHD_NO;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        h->lib->add_response_header(r, headers[i][0], headers[i][1]);
    h->lib->add_response_header(r, "Content-Type", a->type ? a->type : "text/plain; charset=utf-8");
    h->lib->add_response_header(r, "Cache-Control", a->tag ? "no-cache" : "no-store");
    if (a->tag) h->lib->add_response_header(r, "ETag", a->tag);
    if (a->source) h->lib->add_response_header(r, "X-Accel-Buffering", "no");
    if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        h->lib->add_response_header(r, "Allow",
                                    h->o.posts_nbytes ? "GET, HEAD, POST" : "GET, HEAD");
    for (int i = 0; i < a->nheaders; i++)
        h->lib->add_response_header(r, a->headers[i][0], a->headers[i][1]);
    if (a->status == MHD_HTTP_UNAUTHORIZED)
        h->lib->add_response_header(r, "WWW-Authenticate", "Bearer");
    if (how.gives_token) {
        char *cookie = ls_format("%s=%s; HttpOnly; SameSite=Strict%s", COOKIE, h->o.token,
                                 h->o.key ? "; Secure" : "");
        h->lib->add_response_header(r, "Set-Cookie", cookie);
        free(cookie);
    }
    enum MHD_Result result =
        h->lib->queue_response(c, (unsigned)(a->status ? a->status : MHD_HTTP_OK), r);
    h->lib->destroy_response(r);
    set_answered(h, c);
    return result;
}

/* `why` is a sentence without the end of its line. */
static enum MHD_Result refuse(ls_http *h, struct MHD_Connection *c, int status, const char *why) {
    ls_http_answer a = {.status = status};
    const char *accepts = h->lib->lookup_connection_value(c, MHD_HEADER_KIND, "Accept");
    if (h->o.refuse && !(accepts && strstr(accepts, "text/html")))
        h->o.refuse(h->o.arg, status, why, &a);
    else
        ls_buf_printf(&a.body, "%s\n", why);
    return queue(h, c, &a, (delivery){0});
}

/* ---- requests ---- */

static enum MHD_Result count_hosts(void *n_p, enum MHD_ValueKind kind, const char *key,
                                   const char *value) {
    (void)kind;
    (void)value;
    *(int *)n_p += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static bool host_is_ours(const ls_http *h, const ls_http_request *r) {
    int n = 0;
    h->lib->get_connection_values(r->connection, MHD_HEADER_KIND, count_hosts, &n);
    const char *host = ls_http_header(r, "Host");
    return n == 1 && (ls_visitor_host_is_ours(host, h->o.names, h->o.nnames) ||
                      (h->o.address && ls_visitor_host_is_ours(host, &h->o.address, 1)));
}

/* *new_p: the token came in the URL, and a cookie is to replace it there. */
static bool has_token(const ls_http *h, const ls_http_request *r, bool *new_p) {
    static const char scheme[] = "Bearer ";
    *new_p = false;
    if (!h->o.token) return true;
    const char *bearer = ls_http_header(r, "Authorization");
    if (bearer && strncasecmp(bearer, scheme, sizeof scheme - 1) == 0 &&
        ls_visitor_token_is(bearer + sizeof scheme - 1, h->o.token))
        return true;
    if (ls_visitor_token_is(h->lib->lookup_connection_value(r->connection, MHD_COOKIE_KIND, COOKIE),
                            h->o.token))
        return true;
    *new_p = ls_visitor_token_is(ls_http_query(r, "token"), h->o.token);
    return *new_p;
}

static const char TOO_LARGE[] = "The request is too large.";

/* More of a body has come. That of a refused request is read, too, and dropped: a client that is
 * still sending when the connection ends may not read the answer. One that sends on and on is cut
 * off: MHD_NO. */
static enum MHD_Result take_upload(const ls_http *h, upload *u, const char *bytes, size_t *n) {
    if (!u->refused && u->body.len + *n > h->o.posts_nbytes) {
        u->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        u->why = TOO_LARGE;
    }
    if (u->refused)
        u->ndropped += *n;
    else
        ls_buf_append(&u->body, bytes, *n);
    *n = 0;
    return u->ndropped > DROPPED_BYTES ? MHD_NO : MHD_YES;
}

static void end_pending(upload *u) {
    u->r.server->npending--;
    remove_resting(&u->r);
    u->pending = NULL;
}

static void on_completed(void *arg, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why) {
    upload *u = *state;
    (void)why;
    set_waits(arg, c);
    if (u && u->pending) {
        u->pending->drop(u->job);
        end_pending(u);
    }
    if (u) ls_buf_free(&u->body);
    free(u);
    *state = NULL;
}

static enum MHD_Result deliver(ls_http *h, struct MHD_Connection *c, ls_http_answer *a,
                               delivery how) {
    if (a->source && (h->nstreams >= LS_HTTP_STREAMS || how.head)) {
        a->source->close(a->stream);
        a->source = NULL;
        if (!how.head)
            return refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE, "There are too many streams.");
    }
    return queue(h, c, a, how);
}

/* The answer if it is there; else the connection rests. */
static enum MHD_Result deliver_pending(ls_http *h, struct MHD_Connection *c, upload *u) {
    ls_http_answer a = {0};
    if (u->r.closed) return MHD_NO; /* on_completed() drops the answer */
    if (!u->pending->ready(u->job, &a)) {
        rest(&u->r);
        return MHD_YES;
    }
    end_pending(u);
    return deliver(h, c, &a, u->how);
}

/* 0: the head does not say it. */
static unsigned long long length_of(const ls_http_request *r) {
    const char *length = ls_http_header(r, "Content-Length");
    return length ? strtoull(length, NULL, 10) : 0;
}

/* Sets what its head says: whether it is refused, and how its answer is sent. */
static void read_head(const ls_http *h, const ls_http_request *r, const char *method, upload *u) {
    bool posts = h->o.posts_nbytes && strcmp(method, "POST") == 0;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    u->how = (delivery){.posted = posts, .head = reads && *method == 'H'};
    if (posts) set_uploads(h, r->connection);
    if (reads && h->o.open_path && strcmp(r->path, h->o.open_path) == 0) return;
    if (!host_is_ours(h, r)) {
        u->refused = MHD_HTTP_FORBIDDEN;
        u->why = "This server does not have the name in your request. Use localhost, or start it "
                 "with --host NAME.";
    } else if (!posts && !reads) {
        u->refused = MHD_HTTP_METHOD_NOT_ALLOWED;
        u->why = h->o.posts_nbytes ? "This server knows GET, HEAD and POST."
                                   : "This server only reads: GET or HEAD.";
    } else if (!has_token(h, r, &u->how.gives_token)) {
        u->refused = MHD_HTTP_UNAUTHORIZED;
        u->why = h->o.posts_nbytes
                     ? "The key is missing or wrong: Authorization: Bearer KEY."
                     : "The token is missing or wrong: use the URL that the program printed.";
    } else if (posts && length_of(r) > h->o.posts_nbytes) {
        u->refused = MHD_HTTP_CONTENT_TOO_LARGE;
        u->why = TOO_LARGE;
    }
}

/* The head of a request has come. An answer before its end would close the connection: only a
 * client that waits for leave to send the body gets one, or one whose body is too large even to be
 * dropped. */
static enum MHD_Result begin_request(ls_http *h, const ls_http_request *r, const char *method,
                                     void **state) {
    upload *u = LS_NEW(upload);
    *u = (upload){0};
    *state = u;
    read_head(h, r, method, u);
    if (u->refused && (ls_http_header(r, "Expect") || length_of(r) > DROPPED_BYTES))
        return refuse(h, r->connection, u->refused, u->why);
    return MHD_YES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *nupload, void **state) {
    ls_http *h = arg;
    upload *u = *state;
    ls_http_request r = {h, c, url, NULL};
    (void)version;
    set_asks(h, c);
    if (!u) return begin_request(h, &r, method, state);
    if (*nupload) return take_upload(h, u, bytes, nupload);
    if (u->pending) return deliver_pending(h, c, u);
    if (u->refused) return refuse(h, c, u->refused, u->why);
    if (u->how.posted) {
        r.posted = u;
        set_complete(h, c);
    }
    ls_http_answer a = {0};
    h->o.answer(h->o.arg, &r, &a);
    if (!a.pending) return deliver(h, c, &a, u->how);
    u->pending = a.pending;
    u->job = a.job;
    add_resting(&u->r, h, c, true);
    u->r.patient = u->how.posted;
    h->npending++;
    return deliver_pending(h, c, u);
}

/* ---- TLS ---- */

enum { PEM_BYTES = 1 << 20 };

/* Texts of the certificate and of its key, both NULL without TLS. */
typedef struct pems {
    ls_buf certificate, key;
} pems;

static void free_pems(pems *p) {
    if (p->key.data) explicit_bzero(p->key.data, p->key.len);
    ls_buf_free(&p->certificate);
    ls_buf_free(&p->key);
}

static ls_status read_pem(const char *path, const char *what, ls_buf *b, ls_error *e) {
    LS_TRY(ls_file_read(path, PEM_BYTES, b, e));
    ls_buf_append(b, "", 1);
    if (strstr(b->data, "-----BEGIN ")) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is no %s in PEM", path, what);
}

static ls_status read_pems(const ls_http_options *o, pems *p, ls_error *e) {
    if (!o->certificate && !o->key) return LS_OK;
    if (!o->certificate || !o->key)
        return ls_fail(e, LS_EINVAL,
                       "TLS needs both a certificate and its key (--tls-cert, --tls-key)");
    LS_TRY(read_pem(o->certificate, "certificate", &p->certificate, e));
    return read_pem(o->key, "key", &p->key, e);
}

/* ---- the server ---- */

static struct MHD_Daemon *start(ls_http *h, const pems *p) {
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, p->certificate.data},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, p->key.data},
                                   {MHD_OPTION_END, 0, NULL}};
    if (!p->key.data) tls[0].option = MHD_OPTION_END;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (p->key.data ? MHD_USE_TLS : 0);
    return h->lib->start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, h->listener.fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)LS_HTTP_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

ls_status ls_http_open(const ls_http_options *o, ls_http **h_p, ls_error *e) {
    const ls_microhttpd *lib = NULL;
    ls_listener listener;
    LS_TRY(ls_microhttpd_load(&lib, e));
    pems p = {0};
    ls_status s = read_pems(o, &p, e);
    if (s == LS_OK)
        s = ls_listener_open(o->address ? o->address : "127.0.0.1", o->port, &listener, e);
    if (s != LS_OK) {
        free_pems(&p);
        return s;
    }
    ls_http *h = LS_NEW(ls_http);
    *h = (ls_http){.lib = lib, .o = *o, .listener = listener};
    h->daemon = start(h, &p);
    free_pems(&p);
    if (!h->daemon) {
        close(listener.fd);
        free(h);
        if (o->key)
            return ls_fail(e, LS_EINVAL, "%s and %s: TLS can't use this certificate and key",
                           o->certificate, o->key);
        return ls_fail(e, LS_EIO, "the HTTP server can't be started (too many open files?)");
    }
    *h_p = h;
    return LS_OK;
}

int ls_http_port(const ls_http *h) { return h->listener.port; }

int ls_http_nstreams(const ls_http *h) { return h->nstreams + h->npending; }

int ls_http_fd(const ls_http *h) {
    const union MHD_DaemonInfo *info = h->lib->get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

int ls_http_rests(const ls_http *h, int ms) {
    MHD_UNSIGNED_LONG_LONG due = 0;
    return h->lib->get_timeout(h->daemon, &due) == MHD_YES && due < (unsigned)ms ? (int)due : ms;
}

/* Clients that only stay connected must not keep others out. */
static void make_room(ls_http *h) {
    enum { ROOM = 16 };
    struct pollfd p = {.fd = h->listener.fd, .events = POLLIN};
    if (h->connections.n >= LS_HTTP_CONNECTIONS && poll(&p, 1, 0) == 1)
        ls_connections_end_oldest(&h->connections, ROOM);
}

void ls_http_run(ls_http *h, int ms) {
    struct pollfd p = {.fd = ls_http_fd(h), .events = POLLIN};
    poll(&p, 1, ls_http_rests(h, ms));
    end_closed(h);
    ls_connections_end_gone(&h->connections);
    make_room(h);
    h->lib->run(h->daemon);
}

void ls_http_close(ls_http *h) {
    if (!h) return;
    ls_http_wake(h); /* a daemon must not be stopped while connections are suspended */
    h->lib->run(h->daemon);
    /* These may have had nothing to send, and rest again. */
    ls_http_wake(h);
    h->lib->stop_daemon(h->daemon); /* closes the socket, too */
    ls_connections_free(&h->connections);
    free(h);
}
