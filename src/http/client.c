/* client.c - see client.h. libcurl does the work. */
#include "http/client.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/curl.h"

enum { MOST_BODY = 1 << 20, POLL_MS = 100, CONNECT_S = 30, SILENCE_S = 600 };

struct ls_http_client {
    const ls_curl *lib;
    CURLM *multi;
    ls_http_client_options o;
    struct curl_slist *posts, *gets; /* headers */
};

/* A question on its way. */
typedef struct exchange {
    const ls_http_client *client;
    const ls_http_question *q;
    ls_http_reply *reply;
    CURL *curl;
    ls_error local; /* of the function that takes bytes, or a limit */
    char detail[CURL_ERROR_SIZE];
} exchange;

/* ---- addresses ---- */

ls_status ls_http_client_check_url(const char *url, ls_error *e) {
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    const char *host = url + scheme;
    size_t n = strcspn(host, "/?#");
    if (!scheme)
        return ls_fail(e, LS_EINVAL, "%s: http://HOST:PORT or https://HOST:PORT is expected", url);
    if (n == 0 || *host == ':') return ls_fail(e, LS_EINVAL, "%s: names no host", url);
    if (memchr(host, '@', n))
        return ls_fail(e, LS_EINVAL, "a URL with a user or password (before the @) is refused");
    for (const char *s = host; *s; s++)
        if (*s == '?' || *s == '#' || isspace((unsigned char)*s) || iscntrl((unsigned char)*s))
            return ls_fail(e, LS_EINVAL, "%s: a URL without a query is expected", url);
    return LS_OK;
}

/* ---- an answer ---- */

static size_t take_bytes(char *data, size_t size, size_t count, void *arg) {
    exchange *x = arg;
    size_t n = size * count;
    long status = 0;
    x->client->lib->easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && x->q->take)
        return x->q->take(x->q->arg, data, n, &x->local) == LS_OK ? n : 0;
    if (n > MOST_BODY - x->reply->body.len) {
        ls_fail(&x->local, LS_EIO, "%s: the answer is longer than %d bytes", x->q->url, MOST_BODY);
        return 0;
    }
    ls_buf_append(&x->reply->body, data, n);
    return n;
}

static void set_options(exchange *x) {
    const ls_curl *lib = x->client->lib;
    const ls_http_question *q = x->q;
    const char *authorities = x->client->o.authorities;
    if (!authorities) authorities = getenv("SSL_CERT_FILE");
    ls_curl_set_up(lib, x->curl, "http,https", authorities, x->detail);
    lib->easy_setopt(x->curl, CURLOPT_URL, q->url);
    lib->easy_setopt(x->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    lib->easy_setopt(x->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    lib->easy_setopt(x->curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    lib->easy_setopt(x->curl, CURLOPT_USERAGENT, "lockstep");
    lib->easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, take_bytes);
    lib->easy_setopt(x->curl, CURLOPT_WRITEDATA, x);
    lib->easy_setopt(x->curl, CURLOPT_HTTPHEADER, q->body ? x->client->posts : x->client->gets);
    if (q->body) {
        lib->easy_setopt(x->curl, CURLOPT_POSTFIELDSIZE, (long)strlen(q->body));
        lib->easy_setopt(x->curl, CURLOPT_POSTFIELDS, q->body);
    }
}

/* Moves bytes until the answer is complete, or the user has asked for its end. */
static CURLcode perform(exchange *x) {
    const ls_http_client *c = x->client;
    for (;;) {
        int n = 0;
        CURLMcode m = c->lib->multi_perform(c->multi, &n);
        const CURLMsg *msg = c->lib->multi_info_read(c->multi, &n);
        if (msg && msg->msg == CURLMSG_DONE) return msg->data.result;
        if (m != CURLM_OK) return CURLE_FAILED_INIT;
        x->reply->asked = x->q->asked && *x->q->asked;
        if (x->reply->asked) return CURLE_OK;
        c->lib->multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
    }
}

static void read_head(exchange *x) {
    const ls_curl *lib = x->client->lib;
    long status = 0;
    curl_off_t wait = 0;
    const char *type = NULL;
    lib->easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    lib->easy_getinfo(x->curl, CURLINFO_RETRY_AFTER, &wait);
    lib->easy_getinfo(x->curl, CURLINFO_CONTENT_TYPE, &type);
    x->reply->status = (int)status;
    x->reply->retry_after_s = wait > 0 ? wait : 0;
    snprintf(x->reply->type, sizeof x->reply->type, "%s", type ? type : "");
}

static ls_status failed(const exchange *x, CURLcode code, ls_error *e) {
    const char *why = x->detail[0] ? x->detail : x->client->lib->easy_strerror(code);
    if (x->local.code != LS_OK) return ls_fail(e, x->local.code, "%s", x->local.msg);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return ls_fail(e, LS_EIO, "%s: is not trusted: %s", x->q->url, why);
    if (x->reply->status) return ls_fail(e, LS_EIO, "%s: the answer broke off: %s", x->q->url, why);
    return ls_fail(e, LS_EIO, "%s: can't be reached: %s", x->q->url, why);
}

ls_status ls_http_client_ask(ls_http_client *c, const ls_http_question *q, ls_http_reply *reply_p,
                             ls_error *e) {
    exchange x = {.client = c, .q = q, .reply = reply_p};
    *reply_p = (ls_http_reply){0};
    x.curl = c->lib->easy_init();
    if (!x.curl) return ls_fail(e, LS_EIO, "%s: libcurl can't be set up", q->url);
    set_options(&x);
    CURLcode code = CURLE_FAILED_INIT;
    if (c->lib->multi_add_handle(c->multi, x.curl) == CURLM_OK) {
        code = perform(&x);
        c->lib->multi_remove_handle(c->multi, x.curl);
    }
    read_head(&x);
    ls_status s = code == CURLE_OK ? LS_OK : failed(&x, code, e);
    ls_buf_append(&reply_p->body, "", 1);
    reply_p->body.len--;
    c->lib->easy_cleanup(x.curl);
    return s;
}

/* ---- opening ---- */

static struct curl_slist *headers_of(const ls_http_client *c, bool posts) {
    struct curl_slist *list =
        c->lib->slist_append(NULL, "Accept: application/json, text/event-stream");
    if (posts) list = c->lib->slist_append(list, "Content-Type: application/json");
    if (posts) list = c->lib->slist_append(list, "Expect:");
    if (!c->o.key) return list;
    char *line = ls_format("Authorization: Bearer %s", c->o.key);
    list = c->lib->slist_append(list, line);
    free(line);
    return list;
}

ls_status ls_http_client_open(const ls_http_client_options *o, ls_http_client **c_p, ls_error *e) {
    const ls_curl *lib = NULL;
    LS_TRY(ls_curl_load(&lib, e));
    CURLM *multi = lib->multi_init();
    if (!multi) return ls_fail(e, LS_EIO, "libcurl can't be set up");
    ls_http_client *c = LS_NEW(ls_http_client);
    *c = (ls_http_client){.lib = lib, .multi = multi, .o = *o};
    c->posts = headers_of(c, true);
    c->gets = headers_of(c, false);
    *c_p = c;
    return LS_OK;
}

void ls_http_client_close(ls_http_client *c) {
    if (!c) return;
    c->lib->multi_cleanup(c->multi);
    c->lib->slist_free_all(c->posts);
    c->lib->slist_free_all(c->gets);
    free(c);
}
