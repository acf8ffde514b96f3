/* etcd_call.c - see etcd_call.h.
 *
 * A request is one POST of a JSON object to an endpoint. The reply is one object, too; a watch gets
 * one object per line for as long as it lasts. Keys and values are base64, 64-bit numbers are
 * strings, and what is 0, false or empty is left out.
 *
 * The outcome of an attempt at one endpoint is an `answer`, on which ls_etcd_call() acts:
 *   ANSWERED   the call is done
 *   FAILED     the call fails, and the error says why
 *   ELSEWHERE  this endpoint can't answer now: try the next one, and pause after each round of all
 *   RENEW      the token is refused: get a new one from this endpoint
 * Each attempt has an equal share of the time that is left for the round, but at most a second in
 * the first round, two in the next, and so on: a server that does not know yet that its leader has
 * died loses requests, and we would wait for longer. At most half of the share is for connecting.
 *
 * The header "hasleader" asks a server that has lost its leader to report that at once, and to end
 * its watches, instead of waiting for a new leader.
 *
 * Requests may be sent twice: libcurl, too, tries again if an open connection turns out to be dead.
 * A lease that was granted twice expires; ls_etcd_create() recognizes a key that it created before.
 *
 * libcurl writes to sockets without raising SIGPIPE, with TLS since 7.87. The streams of a watch
 * need its multi interface; the other calls use it as well.
 */
#include "cluster/etcd_call.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

enum { MAX_REPLY = 1 << 20, MAX_HEADERS = 1 << 16, MAX_TOKEN = 8192, MAX_RENEWALS = 3 };
static const int64_t FIRST_SHARE_NS = 1000000000;
static const int64_t FIRST_PAUSE_NS = 20000000, LAST_PAUSE_NS = 500000000;

/* ---- connections ----------------------------------------------------------------------------- */

/* Our sockets are closed in programs that we start, and fail when the other host goes silent. */
curl_socket_t ls_etcd_open_socket(void *etcd, curlsocktype what, struct curl_sockaddr *a) {
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

size_t ls_etcd_take_body(char *data, size_t size, size_t n, void *etcd) {
    ls_etcd *t = etcd;
    t->too_long = t->too_long || size * n > MAX_REPLY - t->reply.len;
    if (t->too_long) return 0;
    ls_buf_append(&t->reply, data, size * n);
    return n;
}

size_t ls_etcd_take_header(char *data, size_t size, size_t n, void *etcd) {
    ls_etcd *t = etcd;
    (void)data;
    t->nheaders += size * n;
    t->too_long = t->too_long || t->nheaders > MAX_HEADERS;
    return t->too_long ? 0 : n;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

struct curl_slist *ls_etcd_headers(const ls_etcd *t, const char *token) {
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

void ls_etcd_forget_token(ls_etcd *t) {
    t->lib->slist_free_all(t->full);
    t->full = NULL;
}

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

/* Moves bytes until the reply is complete (CURLE_OK), or the time is over. A watch also ends when a
 * line decides: *over_p, with the answer. */
static CURLcode perform(ls_etcd *t, ls_etcd_request *r, int64_t end, bool *over_p,
                        ls_etcd_answer *a_p, ls_error *e) {
    for (;;) {
        int n = 0;
        CURLMcode m = t->lib->multi_perform(t->multi, &n);
        if (r->w) *a_p = ls_etcd_read_lines(t, r, over_p, e);
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

/* The attempt failed. */
static ls_etcd_answer broken(ls_etcd *t, const ls_etcd_request *r, CURLcode code, double limit_s,
                             ls_error *e) {
    const char *why = t->detail[0] ? t->detail : t->lib->easy_strerror(code);
    char words[CURL_ERROR_SIZE + 64];
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        ls_etcd_clean(why, words, sizeof words);
        ls_fail(e, LS_EIO, "etcd at %s: %.300s", t->endpoint[t->at], words);
        return FAILED;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        snprintf(words, sizeof words, "is not valid HTTP: %s", why);
        return ls_etcd_nonsense(t, r, words, e);
    case CURLE_OPERATION_TIMEDOUT:
        /* The last attempt may have had little time: the reason of an earlier one is more
         * useful. */
        if (t->why[t->at][0]) return ELSEWHERE;
        if (t->detail[0]) break; /* libcurl says what took too long */
        snprintf(words, sizeof words, "no answer within %.2f s", limit_s);
        return ls_etcd_elsewhere(t, words);
    default: break;
    }
    return ls_etcd_elsewhere(t, why);
}

static ls_etcd_answer exchange(ls_etcd *t, ls_etcd_request *r, int64_t end, ls_error *e) {
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
    ls_etcd_answer a = ANSWERED;
    CURLcode code = CURLE_FAILED_INIT;
    if (t->lib->multi_add_handle(t->multi, t->curl) == CURLM_OK) {
        code = perform(t, r, end, &over, &a, e);
        t->lib->multi_remove_handle(t->multi, t->curl);
    }
    if (over) return a;
    if (code == CURLE_OPERATION_TIMEDOUT && r->w && r->w->created) return ANSWERED;
    if (t->too_long)
        return ls_etcd_nonsense(t, r, "is too long: above 1 MiB, or 64 KiB of headers", e);
    if (code != CURLE_OK) return broken(t, r, code, limit_s, e);
    ls_json *j = NULL;
    bool ended = r->w && !t->reply.len;
    a = ended ? ls_etcd_elsewhere(t, "it ended the watch")
              : ls_etcd_read_reply(t, r, t->reply.data, t->reply.len, &j, e);
    if (a == ANSWERED && r->w) {
        ls_json_free(j);
        return ls_etcd_nonsense(t, r, "is not that of a watch", e);
    }
    r->reply = j;
    return a;
}

/* Gets a token for the user, valid at all endpoints. */
static ls_etcd_answer authenticate(ls_etcd *t, int64_t end, ls_error *e) {
    ls_buf body = {0};
    ls_buf_append(&body, "{\"name\":", 8);
    quote(&body, t->user);
    ls_buf_append(&body, ",\"password\":", 12);
    quote(&body, t->password);
    ls_buf_append(&body, "}", 1);
    ls_etcd_request r = {.path = "/v3/auth/authenticate", .body = body.data};
    ls_etcd_answer a = exchange(t, &r, end, e);
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
        t->full = ls_etcd_headers(t, token);
    else
        a = ls_etcd_nonsense(t, &r, "has no token", e);
    ls_json_free(r.reply);
    return a;
}

static ls_etcd_answer attempt(ls_etcd *t, ls_etcd_request *r, int64_t end, ls_error *e) {
    ls_etcd_answer a = ANSWERED;
    if (t->user && !t->full) a = authenticate(t, end, e);
    return a == ANSWERED ? exchange(t, r, end, e) : a;
}

/* ---- a call: attempts until one decides ------------------------------------------------------ */

static ls_status give_up(const ls_etcd *t, int64_t limit_ns, ls_error *e) {
    ls_buf all = {0};
    for (int i = 0; i < t->n; i++)
        ls_buf_printf(&all, "%s %s: %s", i ? ";" : "", t->endpoint[i],
                      t->why[i][0] ? t->why[i] : "there was no time to try it");
    ls_fail(e, LS_ETIMEOUT, "etcd: no answer within %.1f s:%s", (double)limit_ns / 1e9, all.data);
    ls_buf_free(&all);
    return LS_ETIMEOUT;
}

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
    return ls_fail(e, LS_EINVAL, "etcd at %s refuses the token that it has issued: %s",
                   t->endpoint[t->at], t->why[t->at]);
}

ls_status ls_etcd_call(ls_etcd *t, ls_etcd_request *r, ls_error *e) {
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
        ls_etcd_answer a = attempt(t, r, end_of_attempt(t, tried, now, end), e);
        if (r->w && r->w->created) {
            served = true;
            begin = ls_clock_ns();
            end = begin + t->limit_ns;
        }
        if (a == ANSWERED) return LS_OK;
        if (a == FAILED) return e->code;
        if (a == RENEW) {
            ls_etcd_forget_token(t);
            if (++renewals > MAX_RENEWALS) return refused_token(t, e);
            continue;
        }
        t->at = (t->at + 1) % t->n;
        if (++tried % t->n == 0) pause_until(last, &pause);
    }
}
