/* etcd.c - see etcd.h.
 *
 * A request is one POST of a JSON object to an endpoint; the reply is one object, too, or, of a
 * watch, one a line for as long as it goes on. Keys and values are base64, 64-bit numbers are
 * strings, and what is 0, false or empty is left out.
 *
 * What an attempt at one endpoint can come to is an `answer`; call() goes on with it:
 *   ANSWERED   the call is done
 *   FAILED     it is decided: the error says why
 *   ELSEWHERE  not here, or not now: the next endpoint, and after each round of all a pause
 *   RENEW      the token is refused: a new one, here
 * Each attempt has an equal share of the time that is left for the round, but at most a second in
 * the first round, two in the next, and so on: a server whose leader has just died, and does not
 * know it, loses what it is asked, and would have us wait for longer. Half of it is to connect.
 *
 * The header "hasleader" asks a server that has lost its leader to say so at once, and to end its
 * watches, where it would else wait for one.
 *
 * Requests may be made twice: libcurl, too, tries again where a connection that was kept turns out
 * to be dead. A lease that was granted twice expires; a key that was made twice is found (create).
 *
 * libcurl writes to sockets without raising SIGPIPE, with TLS since 7.87. For the streams of a
 * watch we drive its multi interface; the other calls use the same.
 */
#include "cluster/etcd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cluster/curl.h"

enum {
    MAX_ENDPOINTS = 16,
    MAX_REPLY = 1 << 20,
    MAX_HEADERS = 1 << 16,
    MAX_TOKEN = 8192,
    MAX_RENEWALS = 3
};
static const int64_t FIRST_SHARE_NS = 1000000000;
static const int64_t FIRST_PAUSE_NS = 20000000, LAST_PAUSE_NS = 500000000;

struct ls_etcd {
    const ls_curl *lib;
    CURLM *multi; /* keeps the connections */
    CURL *curl;
    char *endpoint[MAX_ENDPOINTS];   /* "https://host:port" */
    char why[MAX_ENDPOINTS][112];    /* it did not answer in this call; "": it was not tried */
    int n, at;                       /* at: that of the present attempt */
    int64_t limit_ns;                /* of a call */
    char *user, *password;           /* NULL: none */
    struct curl_slist *plain, *full; /* headers; NULL or full: with a token */
    ls_buf reply;    /* the body; of a watch: from the last line that is incomplete */
    size_t nheaders; /* bytes */
    bool too_long;
    char detail[CURL_ERROR_SIZE];
};

typedef enum answer { ANSWERED, FAILED, ELSEWHERE, RENEW } answer;

typedef struct watch {
    int64_t end;
    bool created; /* by the present attempt */
    bool changed;
} watch;

typedef struct request {
    const char *path, *body;
    watch *w;       /* NULL: it has one reply */
    ls_json *reply; /* out, where it has one and was ANSWERED */
} request;

/* ---- words ----------------------------------------------------------------------------------- */

/* Words of others on one line of printable characters; what is too long is cut. */
static const char *clean(const char *text, char *room, size_t nbytes) {
    size_t n = 0;
    for (; text[n] && n + 1 < nbytes; n++) {
        unsigned char c = (unsigned char)text[n];
        room[n] = c < ' ' || c > '~' ? '?' : text[n];
    }
    room[n] = 0;
    return room;
}

static answer elsewhere(ls_etcd *t, const char *why) {
    clean(why, t->why[t->at], sizeof t->why[t->at]);
    return ELSEWHERE;
}

/* Not what etcd says. */
static answer nonsense(const ls_etcd *t, const request *r, const char *why, ls_error *e) {
    char room[200];
    ls_fail(e, LS_EIO, "etcd at %s: the reply to %s %s", t->endpoint[t->at], r->path,
            clean(why, room, sizeof room));
    return FAILED;
}

static ls_status give_up(const ls_etcd *t, int64_t limit_ns, ls_error *e) {
    ls_buf all = {0};
    for (int i = 0; i < t->n; i++)
        ls_buf_printf(&all, "%s %s: %s", i ? ";" : "", t->endpoint[i],
                      t->why[i][0] ? t->why[i] : "there was no time for it");
    ls_fail(e, LS_ETIMEOUT, "etcd: no answer within %.1f s:%s", (double)limit_ns / 1e9, all.data);
    ls_buf_free(&all);
    return LS_ETIMEOUT;
}

/* ---- numbers and text in JSON ---------------------------------------------------------------- */

/* Text as a JSON string. */
static void quote(ls_buf *b, const char *text) {
    ls_buf_append(b, "\"", 1);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ')
            ls_buf_printf(b, "\\u%04x", (unsigned char)*text);
        else
            ls_buf_printf(b, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    ls_buf_append(b, "\"", 1);
}

/* A member that counts something, and is 0 where it is left out. False: it is something else. */
static bool read_count(const ls_json *object, const char *name, int64_t *value_p) {
    const ls_json *j = ls_json_get(object, name);
    const char *text = ls_json_text(j);
    int64_t value = 0;
    char *end = NULL;
    errno = 0;
    if (text) value = strtoll(text, &end, 10);
    bool fits = text ? *text && !*end && errno == 0 : !j || ls_json_integer(j, &value);
    if (!fits || value < 0) return false;
    *value_p = value;
    return true;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Ours are closed in programs that we start, and end where the other host falls silent. */
static curl_socket_t open_socket(void *etcd, curlsocktype what, struct curl_sockaddr *a) {
    const ls_etcd *t = etcd;
    int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    int one = 1;
    unsigned ms = (unsigned)(t->limit_ns / 1000000);
    (void)what;
    if (fd < 0) return CURL_SOCKET_BAD;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return fd;
}

static size_t take_body(char *data, size_t size, size_t n, void *etcd) {
    ls_etcd *t = etcd;
    t->too_long = t->too_long || size * n > MAX_REPLY - t->reply.len;
    if (t->too_long) return 0;
    ls_buf_append(&t->reply, data, size * n);
    return n;
}

static size_t take_header(char *data, size_t size, size_t n, void *etcd) {
    ls_etcd *t = etcd;
    (void)data;
    t->nheaders += size * n;
    t->too_long = t->too_long || t->nheaders > MAX_HEADERS;
    return t->too_long ? 0 : n;
}

/* What holds for all requests. */
static ls_status set_up(ls_etcd *t, const ls_etcd_options *o, bool tls, ls_error *e) {
    CURL *c = t->curl;
    bool bad = false;
    bad |= t->lib->easy_setopt(c, CURLOPT_PROTOCOLS_STR, tls ? "https" : "http") != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_PROXY, "") != CURLE_OK; /* nor one of the environment */
    bad |= t->lib->easy_setopt(c, CURLOPT_NOSIGNAL, 1L) != CURLE_OK;
    /* A name server that is silent does not hold us up beyond the limit. */
    bad |= t->lib->easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_POST, 1L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_ERRORBUFFER, t->detail) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_WRITEDATA, t) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HEADERDATA, t) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_OPENSOCKETDATA, t) != CURLE_OK;
    bad |= t->lib->multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, (long)t->n + 1) != CURLM_OK;
    if (tls) {
        bad |=
            t->lib->easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) != CURLE_OK;
    }
    if (o->ca) { /* and no longer the system's authorities */
        bad |= t->lib->easy_setopt(c, CURLOPT_CAPATH, NULL) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_CAINFO, o->ca) != CURLE_OK;
    }
    if (o->cert) {
        bad |= t->lib->easy_setopt(c, CURLOPT_SSLCERT, o->cert) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSLKEY, o->key) != CURLE_OK;
    }
    if (!bad) return LS_OK;
    return ls_fail(e, LS_EIO, "etcd: libcurl %s lacks an option that we need", t->lib->version());
}

static struct curl_slist *new_headers(const ls_etcd *t, const char *token) {
    struct curl_slist *list = NULL;
    list = t->lib->slist_append(list, "Content-Type: application/json");
    list = t->lib->slist_append(list, "Grpc-Metadata-hasleader: true");
    if (!token) return list;
    char *line = ls_format("Authorization: %s", token);
    list = t->lib->slist_append(list, line);
    OPENSSL_cleanse(line, strlen(line));
    free(line);
    return list;
}

static void forget_token(ls_etcd *t) {
    t->lib->slist_free_all(t->full);
    t->full = NULL;
}

/* ---- what a reply says ----------------------------------------------------------------------- */

/* Words of etcd's, with which some of its replies come without a code. */
static bool has_any(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return true;
    return false;
}

/* etcd's own reason, with the code of gRPC (-1: it is not known). */
static answer refusal(ls_etcd *t, int64_t code, const char *why, ls_error *e) {
    static const char *const renew[] = {"invalid auth token", "auth store is old",
                                        "user name is empty", NULL};
    static const char *const gone[] = {"no leader", "timed out", "leader changed",
                                       "code = Unavailable", NULL};
    enum { CANCELLED = 1, UNKNOWN = 2, DEADLINE = 4, NOT_FOUND = 5, EXHAUSTED = 8, ABORTED = 10 };
    enum { INTERNAL = 13, UNAVAILABLE = 14, UNAUTHENTICATED = 16 };
    char room[200];
    if (t->user && (code == UNAUTHENTICATED || has_any(why, renew))) {
        elsewhere(t, why);
        return RENEW;
    }
    switch (code) {
    case CANCELLED:
    case UNKNOWN:
    case DEADLINE:
    case EXHAUSTED:
    case ABORTED:
    case INTERNAL:
    case UNAVAILABLE: return elsewhere(t, why);
    case -1:
        if (has_any(why, gone)) return elsewhere(t, why);
    }
    ls_fail(e, code == NOT_FOUND ? LS_EPEER : LS_EINVAL, "etcd at %s: %s%s", t->endpoint[t->at],
            clean(why, room, sizeof room),
            strstr(why, "user name is empty") ? " (it asks for a user and a password)" : "");
    return FAILED;
}

/* Whether it is the reply that was asked for. */
static answer judge(ls_etcd *t, const request *r, const ls_json *j, long http, ls_error *e) {
    const ls_json *error = ls_json_get(j, "error"); /* of a stream: an object */
    if (http == 200 && ls_json_is_object(j) && !error) return ANSWERED;
    const char *why = ls_json_text(ls_json_get(j, "message"));
    if (!why) why = ls_json_text(ls_json_get(error, "message"));
    if (!why) why = ls_json_text(error);
    int64_t code = -1;
    if (!ls_json_integer(ls_json_get(j, "code"), &code) &&
        !ls_json_integer(ls_json_get(error, "grpc_code"), &code))
        ls_json_integer(ls_json_get(error, "code"), &code);
    if (why) return refusal(t, code, why, e);
    if (http == 200) return nonsense(t, r, "is not an object", e);
    char words[64];
    snprintf(words, sizeof words, "is HTTP status %ld, not one of etcd's", http);
    return http >= 500 ? elsewhere(t, words + 3) : nonsense(t, r, words, e);
}

static answer read_reply(ls_etcd *t, request *r, const char *text, size_t nbytes, ls_json **j_p,
                         ls_error *e) {
    long http = 0;
    t->lib->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    ls_json *j = NULL;
    if (ls_json_parse(text ? text : "", nbytes, "", &j, NULL) != LS_OK && http == 200)
        return nonsense(t, r, "is not JSON", e);
    answer a = judge(t, r, j, http, e);
    if (a == ANSWERED)
        *j_p = j;
    else
        ls_json_free(j);
    return a;
}

/* One line of a watch. *over_p: there is nothing more to wait for. */
static answer read_line(ls_etcd *t, request *r, const ls_json *j, bool *over_p, ls_error *e) {
    const ls_json *result = ls_json_get(j, "result");
    int64_t compacted = 0;
    if (!ls_json_is_object(result) || !read_count(result, "compact_revision", &compacted))
        return nonsense(t, r, "is not a watch's", e);
    if (ls_json_is_true(ls_json_get(result, "canceled")) && !compacted) {
        const char *why = ls_json_text(ls_json_get(result, "cancel_reason"));
        return refusal(t, -1, why ? why : "the watch was cancelled", e);
    }
    r->w->changed = compacted || ls_json_count(ls_json_get(result, "events"));
    r->w->created = r->w->created || ls_json_is_true(ls_json_get(result, "created"));
    *over_p = r->w->changed;
    return ANSWERED;
}

/* All lines that are complete. */
static answer read_lines(ls_etcd *t, request *r, bool *over_p, ls_error *e) {
    long http = 0;
    size_t used = 0;
    answer a = ANSWERED;
    t->lib->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    if (http != 200 || !t->reply.len)
        return ANSWERED; /* one object then, which may have no end of line */
    for (char *nl; a == ANSWERED && !*over_p; used = (size_t)(nl + 1 - t->reply.data)) {
        char *line = t->reply.data + used;
        ls_json *j = NULL;
        nl = memchr(line, '\n', t->reply.len - used);
        if (!nl) break;
        if (nl == line) continue;
        a = read_reply(t, r, line, (size_t)(nl - line), &j, e);
        if (a == ANSWERED) a = read_line(t, r, j, over_p, e);
        ls_json_free(j);
    }
    t->reply.len -= used;
    memmove(t->reply.data, t->reply.data + used, t->reply.len + 1);
    return a;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

/* Moves bytes until the reply is complete (CURLE_OK), or the time is over. Of a watch, until a line
 * decides, too: *over_p, with the answer. */
static CURLcode perform(ls_etcd *t, request *r, int64_t end, bool *over_p, answer *a_p,
                        ls_error *e) {
    for (;;) {
        int n = 0;
        CURLMcode m = t->lib->multi_perform(t->multi, &n);
        if (r->w) *a_p = read_lines(t, r, over_p, e);
        *over_p = *over_p || *a_p != ANSWERED;
        if (*over_p) return CURLE_OK;
        const CURLMsg *msg = t->lib->multi_info_read(t->multi, &n);
        if (msg && msg->msg == CURLMSG_DONE) return msg->data.result;
        if (m != CURLM_OK) return CURLE_FAILED_INIT;
        int64_t left = (r->w && r->w->created ? r->w->end : end) - ls_clock_ns();
        if (left <= 0) return CURLE_OPERATION_TIMEDOUT;
        int64_t ms = left / 1000000 + 1;
        t->lib->multi_poll(t->multi, NULL, 0, ms < 1000 ? (int)ms : 1000, NULL);
    }
}

/* It came to nothing. */
static answer broken(ls_etcd *t, const request *r, CURLcode code, double limit_s, ls_error *e) {
    const char *why = t->detail[0] ? t->detail : t->lib->easy_strerror(code);
    char words[CURL_ERROR_SIZE + 64];
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        clean(why, words, sizeof words);
        ls_fail(e, LS_EIO, "etcd at %s: %.300s", t->endpoint[t->at], words);
        return FAILED;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        snprintf(words, sizeof words, "is not HTTP as we know it: %s", why);
        return nonsense(t, r, words, e);
    case CURLE_OPERATION_TIMEDOUT:
        /* The last attempt may have had little time: an earlier one's reason tells more. */
        if (t->why[t->at][0]) return ELSEWHERE;
        if (t->detail[0]) break; /* libcurl says what it was that took too long */
        snprintf(words, sizeof words, "no answer within %.2f s", limit_s);
        return elsewhere(t, words);
    default: break;
    }
    return elsewhere(t, why);
}

static answer exchange(ls_etcd *t, request *r, int64_t end, ls_error *e) {
    int64_t begin = ls_clock_ns();
    if (r->w && end > r->w->end) end = r->w->end;
    double limit_s = (double)(end - begin) / 1e9;
    char *url = ls_format("%s%s", t->endpoint[t->at], r->path);
    t->lib->easy_setopt(t->curl, CURLOPT_URL, url);
    free(url);
    t->lib->easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->full ? t->full : t->plain);
    t->lib->easy_setopt(t->curl, CURLOPT_POSTFIELDS, r->body);
    t->lib->easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE, (long)strlen(r->body));
    t->lib->easy_setopt(t->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)(limit_s * 1000 / 2) + 1);
    t->reply.len = t->nheaders = 0;
    t->too_long = false;
    t->detail[0] = 0;

    bool over = false;
    answer a = ANSWERED;
    CURLcode code = CURLE_FAILED_INIT;
    if (t->lib->multi_add_handle(t->multi, t->curl) == CURLM_OK) {
        code = perform(t, r, end, &over, &a, e);
        t->lib->multi_remove_handle(t->multi, t->curl);
    }
    if (over) return a;
    if (code == CURLE_OPERATION_TIMEDOUT && r->w && r->w->created) return ANSWERED;
    if (t->too_long) return nonsense(t, r, "is too long: above 1 MiB, or 64 KiB of headers", e);
    if (code != CURLE_OK) return broken(t, r, code, limit_s, e);
    ls_json *j = NULL;
    bool ended = r->w && !t->reply.len;
    a = ended ? elsewhere(t, "it has ended the watch")
              : read_reply(t, r, t->reply.data, t->reply.len, &j, e);
    if (a == ANSWERED && r->w) {
        ls_json_free(j);
        return nonsense(t, r, "is not a watch's", e);
    }
    r->reply = j;
    return a;
}

/* A token for the user, which all endpoints know. */
static answer authenticate(ls_etcd *t, int64_t end, ls_error *e) {
    ls_buf body = {0};
    ls_buf_append(&body, "{\"name\":", 8);
    quote(&body, t->user);
    ls_buf_append(&body, ",\"password\":", 12);
    quote(&body, t->password);
    ls_buf_append(&body, "}", 1);
    request r = {.path = "/v3/auth/authenticate", .body = body.data};
    answer a = exchange(t, &r, end, e);
    OPENSSL_cleanse(body.data, body.len);
    ls_buf_free(&body);
    if (a == RENEW) {
        ls_fail(e, LS_EINVAL, "etcd at %s: %s", t->endpoint[t->at], t->why[t->at]);
        return FAILED;
    }
    if (a != ANSWERED) return a;
    const char *token = ls_json_text(ls_json_get(r.reply, "token"));
    size_t n = token ? strlen(token) : 0;
    bool good = n && n <= MAX_TOKEN;
    for (size_t i = 0; i < n; i++) good = good && token[i] > ' ' && token[i] <= '~';
    if (good)
        t->full = new_headers(t, token);
    else
        a = nonsense(t, &r, "has no token", e);
    ls_json_free(r.reply);
    return a;
}

static answer attempt(ls_etcd *t, request *r, int64_t end, ls_error *e) {
    answer a = ANSWERED;
    if (t->user && !t->full) a = authenticate(t, end, e);
    return a == ANSWERED ? exchange(t, r, end, e) : a;
}

/* ---- a call: attempts until one decides ------------------------------------------------------ */

/* When an attempt ends, after `tried` others in this call. */
static int64_t end_of_attempt(const ls_etcd *t, int tried, int64_t now, int64_t end) {
    int64_t share = (end - now) / (t->n - tried % t->n), most = FIRST_SHARE_NS;
    for (int round = 0; round < tried / t->n && most < share; round++) most *= 2;
    return now + (most < share ? most : share);
}

/* Not beyond `end`. */
static void pause_until(int64_t end, int64_t *pause) {
    int64_t left = end - ls_clock_ns(), ns = *pause < left ? *pause : left;
    if (ns > 0) nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    *pause = *pause * 2 < LAST_PAUSE_NS ? *pause * 2 : LAST_PAUSE_NS;
}

static ls_status refused_token(const ls_etcd *t, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "etcd at %s refuses the token that it has given: %s",
                   t->endpoint[t->at], t->why[t->at]);
}

/* e is not NULL. A watch has until w->end; as long as it is not served, the limit of a call. */
static ls_status call(ls_etcd *t, request *r, ls_error *e) {
    int64_t begin = ls_clock_ns(), end = begin + t->limit_ns, pause = FIRST_PAUSE_NS;
    int renewals = 0;
    bool served = false;
    memset(t->why, 0, sizeof t->why);
    for (int tried = 0;;) {
        int64_t now = ls_clock_ns();
        int64_t last = r->w && r->w->end < end ? r->w->end : end;
        if (r->w && now >= r->w->end && served) return LS_OK;
        if (now >= last) return give_up(t, last - begin, e);
        if (r->w) r->w->created = false;
        answer a = attempt(t, r, end_of_attempt(t, tried, now, end), e);
        if (r->w && r->w->created) {
            served = true;
            begin = ls_clock_ns();
            end = begin + t->limit_ns;
        }
        if (a == ANSWERED) return LS_OK;
        if (a == FAILED) return e->code;
        if (a == RENEW) {
            forget_token(t);
            if (++renewals > MAX_RENEWALS) return refused_token(t, e);
            continue;
        }
        t->at = (t->at + 1) % t->n;
        if (++tried % t->n == 0) pause_until(last, &pause);
    }
}

/* Takes the body over. The reply is the caller's to free. */
static ls_status ask(ls_etcd *t, const char *path, char *body, ls_json **reply_p, ls_error *e) {
    request r = {.path = path, .body = body};
    ls_status s = call(t, &r, e);
    free(body);
    if (s == LS_OK) *reply_p = r.reply;
    return s;
}

/* The reply is freed. */
static ls_status unexpected(const ls_etcd *t, const char *path, ls_json *reply, ls_error *e) {
    ls_json_free(reply);
    nonsense(t, &(request){.path = path}, "has not the members that it should", e);
    return LS_EIO;
}

/* ---- open and close -------------------------------------------------------------------------- */

static bool is_host(const char *text, size_t n) {
    static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (n > 2 && text[0] == '[')
        return strspn(text + 1, "0123456789abcdefABCDEF:.") == n - 2 && text[n - 1] == ']';
    return n > 0 && n < 256 && strspn(text, name) >= n;
}

/* HOST or HOST:PORT. */
static ls_status add_endpoint(ls_etcd *t, const char *text, size_t n, bool tls, ls_error *e) {
    if (t->n == MAX_ENDPOINTS)
        return ls_fail(e, LS_EINVAL, "more than %d endpoints of etcd", MAX_ENDPOINTS);
    const char *colon = memrchr(text, ':', n), *bracket = memrchr(text, ']', n);
    if (colon && bracket && colon < bracket) colon = NULL;
    size_t nhost = colon ? (size_t)(colon - text) : n, nport = colon ? n - nhost - 1 : 0;
    char room[200];
    long port = 2379;
    bool good = is_host(text, nhost);
    if (colon) {
        good = good && nport > 0 && nport < 6 && strspn(colon + 1, "0123456789") >= nport;
        port = good ? strtol(colon + 1, NULL, 10) : 0;
    }
    snprintf(room, sizeof room, "%.*s", (int)(n < sizeof room ? n : sizeof room), text);
    if (!good || port < 1 || port > 65535)
        return ls_fail(e, LS_EINVAL, "endpoint %d of etcd, '%s', is not HOST or HOST:PORT",
                       t->n + 1, clean(room, room, sizeof room));
    t->endpoint[t->n++] = ls_format("http%s://%.*s:%ld", tls ? "s" : "", (int)nhost, text, port);
    return LS_OK;
}

static ls_status add_endpoints(ls_etcd *t, const char *list, bool tls, ls_error *e) {
    for (;;) {
        size_t n = strcspn(list, ",");
        LS_TRY(add_endpoint(t, list, n, tls, e));
        if (!list[n]) return LS_OK;
        list += n + 1;
    }
}

static ls_status check_file(const char *what, const char *path, ls_error *e) {
    if (!path || access(path, R_OK) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "etcd's %s '%.300s': %s", what, path, strerror(errno));
}

static ls_status check(const ls_etcd_options *o, bool tls, ls_error *e) {
    if (strchr(o->endpoints, '@')) /* it may be a password's: it is not shown */
        return ls_fail(e, LS_EINVAL, "endpoints of etcd have no '@': a user is named apart");
    if (!isfinite(o->timeout_s) || o->timeout_s <= 0 || o->timeout_s > 86400)
        return ls_fail(e, LS_EINVAL, "etcd's time limit, %g s, is not within 0 and 86400",
                       o->timeout_s);
    if (!tls && (o->ca || o->cert || o->key))
        return ls_fail(e, LS_EINVAL,
                       "etcd: certificates are without use with etcd://; TLS is etcds://");
    if (!o->cert != !o->key)
        return ls_fail(e, LS_EINVAL, "etcd: a client's certificate and its key come together");
    if (!o->user != !o->password || (o->user && !*o->user))
        return ls_fail(e, LS_EINVAL, "etcd: a user and a password come together");
    LS_TRY(check_file("authorities", o->ca, e));
    LS_TRY(check_file("certificate", o->cert, e));
    return check_file("key", o->key, e);
}

ls_status ls_etcd_open(const ls_etcd_options *o, ls_etcd **t_p, ls_error *e) {
    static const char plain[] = "etcd://", secure[] = "etcds://";
    bool tls = strncmp(o->endpoints, secure, strlen(secure)) == 0;
    if (!tls && strncmp(o->endpoints, plain, strlen(plain)) != 0)
        return ls_fail(e, LS_EINVAL,
                       "endpoints of etcd are etcd://HOST:PORT,... or, with TLS, etcds://...");
    LS_TRY(check(o, tls, e));
    const ls_curl *lib = NULL;
    LS_TRY(ls_curl_load(&lib, e));
    ls_etcd *t = LS_NEW(ls_etcd);
    t->lib = lib;
    t->limit_ns = (int64_t)(o->timeout_s * 1e9);
    t->plain = new_headers(t, NULL);
    if (o->user) {
        t->user = ls_strdup(o->user);
        t->password = ls_strdup(o->password);
    }
    t->multi = t->lib->multi_init();
    t->curl = t->lib->easy_init();
    ls_status s = LS_OK;
    if (!t->multi || !t->curl) s = ls_fail(e, LS_EIO, "etcd: libcurl does not start");
    if (s == LS_OK) s = add_endpoints(t, strchr(o->endpoints, '/') + 2, tls, e);
    if (s == LS_OK) s = set_up(t, o, tls, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_etcd_close(t);
    return s;
}

void ls_etcd_close(ls_etcd *t) {
    if (!t) return;
    t->lib->easy_cleanup(t->curl);
    t->lib->multi_cleanup(t->multi);
    t->lib->slist_free_all(t->plain);
    forget_token(t);
    for (int i = 0; i < t->n; i++) free(t->endpoint[i]);
    if (t->password) OPENSSL_cleanse(t->password, strlen(t->password));
    free(t->user);
    free(t->password);
    ls_buf_free(&t->reply);
    free(t);
}

/* ---- leases ---------------------------------------------------------------------------------- */

ls_status ls_etcd_grant(ls_etcd *t, int64_t ttl_s, int64_t *lease_p, ls_error *e) {
    static const char path[] = "/v3/lease/grant";
    ls_error own;
    ls_json *j = NULL;
    int64_t lease = 0;
    if (!e) e = &own;
    LS_TRY(ask(t, path, ls_format("{\"TTL\":\"%lld\"}", (long long)ttl_s), &j, e));
    if (!read_count(j, "ID", &lease) || !lease) return unexpected(t, path, j, e);
    ls_json_free(j);
    *lease_p = lease;
    return LS_OK;
}

ls_status ls_etcd_keep_alive(ls_etcd *t, int64_t lease, ls_error *e) {
    static const char path[] = "/v3/lease/keepalive";
    ls_error own;
    ls_json *j = NULL;
    int64_t id = 0, ttl = 0;
    if (!e) e = &own;
    LS_TRY(ask(t, path, ls_format("{\"ID\":\"%lld\"}", (long long)lease), &j, e));
    const ls_json *result = ls_json_get(j, "result");
    if (!read_count(result, "ID", &id) || !read_count(result, "TTL", &ttl) || id != lease)
        return unexpected(t, path, j, e);
    ls_json_free(j);
    if (ttl) return LS_OK;
    return ls_fail(e, LS_EPEER, "etcd at %s: the lease %lld has expired", t->endpoint[t->at],
                   (long long)lease);
}

ls_status ls_etcd_revoke(ls_etcd *t, int64_t lease, ls_error *e) {
    ls_error own;
    ls_json *j = NULL;
    if (!e) e = &own;
    ls_status s =
        ask(t, "/v3/lease/revoke", ls_format("{\"ID\":\"%lld\"}", (long long)lease), &j, e);
    ls_json_free(j);
    return s == LS_EPEER ? LS_OK : s; /* it has gone already */
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* What a range reply has: no key, or one. */
static bool read_range(const ls_json *range, ls_etcd_value *v_p) {
    const ls_json *kvs = ls_json_get(range, "kvs"), *kv = ls_json_at(kvs, 0);
    ls_etcd_value v = {0};
    if (!ls_json_is_object(range)) return false;
    if (!kvs || (ls_json_is_array(kvs) && !kv)) {
        *v_p = v;
        return true;
    }
    const ls_json *value = ls_json_get(kv, "value");
    const char *text = value ? ls_json_text(value) : "";
    if (!read_count(kv, "create_revision", &v.create_revision) || !v.create_revision ||
        !read_count(kv, "lease", &v.lease) || !text ||
        !(v.value = ls_base64_decode(text, &v.nbytes)))
        return false;
    *v_p = v;
    return true;
}

void ls_etcd_value_free(ls_etcd_value *v) {
    free(v->value);
    *v = (ls_etcd_value){0};
}

ls_status ls_etcd_get(ls_etcd *t, const char *key, ls_etcd_value *v_p, ls_error *e) {
    static const char path[] = "/v3/kv/range";
    ls_error own;
    ls_json *j = NULL;
    ls_etcd_value v = {0};
    int64_t revision = 0;
    if (!e) e = &own;
    char *key64 = ls_base64_encode(key, strlen(key)), *body = ls_format("{\"key\":\"%s\"}", key64);
    free(key64);
    LS_TRY(ask(t, path, body, &j, e));
    if (!read_count(ls_json_get(j, "header"), "revision", &revision) || !revision ||
        !read_range(j, &v))
        return unexpected(t, path, j, e);
    ls_json_free(j);
    v.revision = revision;
    *v_p = v;
    return LS_OK;
}

/* Makes it where its create_revision is 0, i.e. there is none; else reads it. */
static char *create_body(const char *key, const char *value, int64_t lease) {
    char *k = ls_base64_encode(key, strlen(key)), *v = ls_base64_encode(value, strlen(value));
    char *body = ls_format(
        "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"%s\",\"create_revision\":\"0\"}],"
        "\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%lld\"}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"%s\"}}]}",
        k, k, v, (long long)lease, k);
    free(k);
    free(v);
    return body;
}

ls_status ls_etcd_create(ls_etcd *t, const char *key, const char *value, int64_t lease,
                         ls_etcd_value *v_p, bool *created_p, ls_error *e) {
    static const char path[] = "/v3/kv/txn";
    ls_error own;
    ls_json *j = NULL;
    int64_t revision = 0;
    if (!e) e = &own;
    LS_TRY(ask(t, path, create_body(key, value, lease), &j, e));
    const ls_json *reply = ls_json_at(ls_json_get(j, "responses"), 0);
    bool made = ls_json_is_true(ls_json_get(j, "succeeded"));
    ls_etcd_value v = {.nbytes = strlen(value), .lease = lease};
    if (!read_count(ls_json_get(j, "header"), "revision", &revision) || !revision ||
        !ls_json_is_object(ls_json_get(reply, made ? "response_put" : "response_range")))
        return unexpected(t, path, j, e);
    if (made) {
        v.value = ls_strdup(value);
        v.create_revision = revision;
    } else if (!read_range(ls_json_get(reply, "response_range"), &v) || !v.create_revision) {
        return unexpected(t, path, j, e);
    }
    ls_json_free(j);
    v.revision = revision;
    *v_p = v;
    *created_p = v.lease == lease && v.nbytes == strlen(value) && !memcmp(v.value, value, v.nbytes);
    return LS_OK;
}

ls_status ls_etcd_watch(ls_etcd *t, const char *key, int64_t from_revision, double timeout_s,
                        bool *changed_p, ls_error *e) {
    ls_error own;
    if (!e) e = &own;
    double s_max = timeout_s > 0 ? fmin(timeout_s, 1e8) : 0;
    watch w = {.end = ls_clock_ns() + (int64_t)(s_max * 1e9)};
    char *key64 = ls_base64_encode(key, strlen(key));
    char *body = ls_format("{\"create_request\":{\"key\":\"%s\",\"start_revision\":\"%lld\"}}",
                           key64, (long long)from_revision);
    request r = {.path = "/v3/watch", .body = body, .w = &w};
    ls_status s = call(t, &r, e);
    free(key64);
    free(body);
    if (s == LS_OK) *changed_p = w.changed;
    return s;
}
