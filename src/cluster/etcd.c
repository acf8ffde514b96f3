/* etcd.c - see etcd.h; how a call finds an endpoint that answers is in etcd_call.c.
 *
 * Keys and values are base64, 64-bit numbers are strings, and what is 0, false or empty is left
 * out.
 */
#include "cluster/etcd.h"

#include <errno.h>
#include <math.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "cluster/etcd_call.h"

/* ---- calls ----------------------------------------------------------------------------------- */

/* Frees the body. The caller frees the reply. */
static ls_status ask(ls_etcd *t, const char *path, char *body, ls_json **reply_p, ls_error *e) {
    ls_etcd_request r = {.path = path, .body = body};
    ls_status s = ls_etcd_call(t, &r, e);
    free(body);
    if (s == LS_OK) *reply_p = r.reply;
    return s;
}

/* Fails, and frees the reply. */
static ls_status unexpected(const ls_etcd *t, const char *path, ls_json *reply, ls_error *e) {
    ls_json_free(reply);
    ls_etcd_nonsense(t, &(ls_etcd_request){.path = path}, "lacks an expected member", e);
    return LS_EIO;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Sets the options that all requests share. */
static ls_status set_up(ls_etcd *t, const ls_etcd_options *o, bool tls, ls_error *e) {
    CURL *c = t->curl;
    bool bad = !ls_curl_set_up(t->lib, c, tls ? "https" : "http", o->ca, t->detail);
    bad |= t->lib->easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_PROXY, "") != CURLE_OK; /* nor the environment's */
    /* A silent name server must not hold us up beyond the limit. */
    bad |= t->lib->easy_setopt(c, CURLOPT_QUICK_EXIT, 1L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_POST, 1L) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_WRITEFUNCTION, ls_etcd_take_body) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_WRITEDATA, t) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HEADERFUNCTION, ls_etcd_take_header) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_HEADERDATA, t) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, ls_etcd_open_socket) != CURLE_OK;
    bad |= t->lib->easy_setopt(c, CURLOPT_OPENSOCKETDATA, t) != CURLE_OK;
    bad |= t->lib->multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, (long)t->n + 1) != CURLM_OK;
    if (tls) {
        bad |=
            t->lib->easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L) != CURLE_OK;
    }
    if (o->cert) {
        bad |= t->lib->easy_setopt(c, CURLOPT_SSLCERT, o->cert) != CURLE_OK;
        bad |= t->lib->easy_setopt(c, CURLOPT_SSLKEY, o->key) != CURLE_OK;
    }
    if (!bad) return LS_OK;
    return ls_fail(e, LS_EIO, "etcd: libcurl %s lacks an option that we need", t->lib->version());
}

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
                       t->n + 1, ls_etcd_clean(room, room, sizeof room));
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
    if (strchr(o->endpoints, '@')) /* it may belong to a password, so the text is not shown */
        return ls_fail(e, LS_EINVAL,
                       "etcd: an endpoint has no '@'; user and password are options of their own");
    if (!isfinite(o->timeout_s) || o->timeout_s <= 0 || o->timeout_s > 86400)
        return ls_fail(e, LS_EINVAL, "etcd's time limit, %g s, is not between 0 and 86400",
                       o->timeout_s);
    if (!tls && (o->ca || o->cert || o->key))
        return ls_fail(e, LS_EINVAL, "etcd: certificates need TLS: etcds:// instead of etcd://");
    if (!o->cert != !o->key)
        return ls_fail(e, LS_EINVAL,
                       "etcd: give a client's certificate and its key together, or neither");
    if (!o->user != !o->password || (o->user && !*o->user))
        return ls_fail(e, LS_EINVAL, "etcd: give a user and a password together, or neither");
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
    t->plain = ls_etcd_headers(t, NULL);
    if (o->user) {
        t->user = ls_strdup(o->user);
        t->password = ls_strdup(o->password);
    }
    t->multi = t->lib->multi_init();
    t->curl = t->lib->easy_init();
    ls_status s = LS_OK;
    if (!t->multi || !t->curl) s = ls_fail(e, LS_EIO, "etcd: libcurl can't be set up");
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
    ls_etcd_forget_token(t);
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
    if (!ls_etcd_read_count(j, "ID", &lease) || !lease) return unexpected(t, path, j, e);
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
    if (!ls_etcd_read_count(result, "ID", &id) || !ls_etcd_read_count(result, "TTL", &ttl) ||
        id != lease)
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
    return s == LS_EPEER ? LS_OK : s; /* it has expired already */
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Reads a range reply, which has no key, or one. */
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
    if (!ls_etcd_read_count(kv, "create_revision", &v.create_revision) || !v.create_revision ||
        !ls_etcd_read_count(kv, "lease", &v.lease) || !text ||
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
    if (!ls_etcd_read_count(ls_json_get(j, "header"), "revision", &revision) || !revision ||
        !read_range(j, &v))
        return unexpected(t, path, j, e);
    ls_json_free(j);
    v.revision = revision;
    *v_p = v;
    return LS_OK;
}

/* Creates the key if its create_revision is 0, i.e. it does not exist; otherwise reads it. */
static char *create_body(const ls_etcd_entry *x) {
    char *k = ls_base64_encode(x->key, strlen(x->key)),
         *v = ls_base64_encode(x->value, strlen(x->value));
    char *body = ls_format(
        "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"%s\",\"create_revision\":\"0\"}],"
        "\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%lld\"}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"%s\"}}]}",
        k, k, v, (long long)x->lease, k);
    free(k);
    free(v);
    return body;
}

ls_status ls_etcd_create(ls_etcd *t, const ls_etcd_entry *x, ls_etcd_value *v_p, bool *created_p,
                         ls_error *e) {
    static const char path[] = "/v3/kv/txn";
    ls_error own;
    ls_json *j = NULL;
    int64_t revision = 0;
    if (!e) e = &own;
    LS_TRY(ask(t, path, create_body(x), &j, e));
    const ls_json *reply = ls_json_at(ls_json_get(j, "responses"), 0);
    bool made = ls_json_is_true(ls_json_get(j, "succeeded"));
    size_t nbytes = strlen(x->value);
    ls_etcd_value v = {.nbytes = nbytes, .lease = x->lease};
    if (!ls_etcd_read_count(ls_json_get(j, "header"), "revision", &revision) || !revision ||
        !ls_json_is_object(ls_json_get(reply, made ? "response_put" : "response_range")))
        return unexpected(t, path, j, e);
    if (made) {
        v.value = ls_strdup(x->value);
        v.create_revision = revision;
    } else if (!read_range(ls_json_get(reply, "response_range"), &v) || !v.create_revision) {
        return unexpected(t, path, j, e);
    }
    ls_json_free(j);
    v.revision = revision;
    *v_p = v;
    *created_p = v.lease == x->lease && v.nbytes == nbytes && !memcmp(v.value, x->value, nbytes);
    return LS_OK;
}

ls_status ls_etcd_watch(ls_etcd *t, const char *key, int64_t from_revision, double timeout_s,
                        bool *changed_p, ls_error *e) {
    ls_error own;
    if (!e) e = &own;
    double s_max = timeout_s > 0 ? fmin(timeout_s, 1e8) : 0;
    ls_etcd_watching w = {.end = ls_clock_ns() + (int64_t)(s_max * 1e9)};
    char *key64 = ls_base64_encode(key, strlen(key));
    char *body = ls_format("{\"create_request\":{\"key\":\"%s\",\"start_revision\":\"%lld\"}}",
                           key64, (long long)from_revision);
    ls_etcd_request r = {.path = "/v3/watch", .body = body, .w = &w};
    ls_status s = ls_etcd_call(t, &r, e);
    free(key64);
    free(body);
    if (s == LS_OK) *changed_p = w.changed;
    return s;
}
