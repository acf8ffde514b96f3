/* etcd_fuzz.c - arbitrary answers of an etcd server to each of the client's calls. All attempts of
 * a call get the same answer. */
#include <time.h>

#include "base/clock.h"
#include "fuzz.h"

static int64_t late; /* a pause ends the time of a call */
#define ls_clock_ns()      (ls_clock_ns() + late)
#define nanosleep(t, rest) ((void)(t), late = (int64_t)1 << 60)
#include "cluster/etcd.c"
#include "cluster/etcd_call.c"

static ls_buf answer; /* to each attempt */
static int other[8], nopened;

static curl_socket_t open_peer(void *arg, curlsocktype what, struct curl_sockaddr *a) {
    (void)arg, (void)what, (void)a;
    if (nopened == 8) return CURL_SOCKET_BAD;
    return fuzz_peer((const uint8_t *)answer.data, answer.len, 1, &other[nopened++]);
}

static int is_connected(void *arg, curl_socket_t fd, curlsocktype what) {
    (void)arg, (void)fd, (void)what;
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static ls_etcd *make(bool user) {
    ls_etcd_options o = {.endpoints = "etcd://127.0.0.1:1", .timeout_s = 10};
    ls_etcd *t = NULL;
    if (user) o.user = "user", o.password = "password";
    FUZZ_CHECK(ls_etcd_open(&o, &t, NULL) == LS_OK);
    t->lib->easy_setopt(t->curl, CURLOPT_OPENSOCKETFUNCTION, open_peer);
    t->lib->easy_setopt(t->curl, CURLOPT_SOCKOPTFUNCTION, is_connected);
    return t;
}

/* Makes one call; its results must be consistent. */
static ls_status use(ls_etcd *t, int what, ls_error *e) {
    ls_etcd_value v = {0};
    int64_t lease = 0;
    bool yes = false;
    ls_status s = LS_OK;
    switch (what) {
    case 0: s = ls_etcd_grant(t, 9, &lease, e); break;
    case 1: return ls_etcd_keep_alive(t, 7, e);
    case 2: return ls_etcd_revoke(t, 7, e);
    case 3: return ls_etcd_watch(t, "key", 5, 20, &yes, e);
    case 4: s = ls_etcd_create(t, &(ls_etcd_entry){"key", "value", 7}, &v, &yes, e); break;
    default: s = ls_etcd_get(t, "key", &v, e); break;
    }
    if (what == 0) FUZZ_CHECK(s != LS_OK || lease > 0);
    if (what == 4) FUZZ_CHECK(s != LS_OK || (v.value && v.create_revision > 0));
    if (what == 4 && yes) FUZZ_CHECK(v.lease == 7 && strcmp(v.value, "value") == 0);
    if (what > 4) FUZZ_CHECK(s != LS_OK || (v.revision > 0 && !v.value == !v.create_revision));
    if (v.value) FUZZ_CHECK(v.value[v.nbytes] == 0);
    ls_etcd_value_free(&v);
    return s;
}

/* The first byte selects the call, whether there is a user, and whether the rest of the input is
 * the body or the whole HTTP response. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    if (!nbytes || nbytes > 60000) return 0;
    ls_error e = {0};
    late = 0;
    nopened = 0;
    answer.len = 0;
    if (data[0] % 24 >= 12) ls_buf_append(&answer, head, sizeof head - 1);
    ls_buf_append(&answer, data + 1, nbytes - 1);
    ls_etcd *t = make(data[0] % 12 >= 6);
    ls_status s = use(t, data[0] % 6, &e);
    FUZZ_CHECK(s == LS_OK || (e.code == s && e.msg[0] && !strchr(e.msg, '\n')) ||
               (data[0] % 6 == 2 && e.code == LS_EPEER));
    ls_etcd_close(t);
    for (int i = 0; i < nopened; i++) close(other[i]);
    return 0;
}
