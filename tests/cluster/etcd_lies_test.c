/* etcd_lies_test.c - the client of etcd refuses bad options, and replies that etcd would not
 * give. */
#include "cluster/etcd.h"
#include "cluster/etcd_impostor.h"

static const double LIMIT_S = 15; /* for a call that must end earlier */

static ls_etcd *client_of(const ls_etcd_options *o) {
    ls_etcd *t = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_etcd_open(o, &t, &e), e);
    return t;
}

static void refuses(ls_etcd_options o, const char *text) {
    ls_etcd *t = NULL;
    ls_error e;
    if (o.timeout_s == 0) o.timeout_s = 1;
    assert_ls_fails(ls_etcd_open(&o, &t, &e), LS_EINVAL, text, e);
    assert_null(t);
    assert_null(strstr(e.msg, "secret"));
}

static void test_options(void **state) {
    (void)state;
    static const char *const good[] = {"etcd://a", "etcd://a:1,b:65535,c", "etcd://[::1]:2379,[::]",
                                       "etcds://10.0.0.1:2379", "etcd://a-b.c_d.example:12"};
    static const char *const bad[] = {
        "etcd://",         "etcd://a,",      "etcd://,a",       "etcd://a:",    "etcd://:1",
        "etcd://a:0",      "etcd://a:65536", "etcd://a:123456", "etcd://a:1x",  "etcd://a/b",
        "etcd://a b",      "etcd://a?b",     "etcd://a#b",      "etcd://[::1",  "etcd://::1",
        "etcd://a:1\r\nX", "etcd://[]:1",    "etcd://[a]b:1",   "etcd://a%20b", "etcd://\xc3\xa4"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ls_etcd_close(client_of(&(ls_etcd_options){.endpoints = good[i], .timeout_s = 1}));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses((ls_etcd_options){.endpoints = bad[i]}, "HOST");
    refuses((ls_etcd_options){.endpoints = "http://a"}, "etcd://HOST:PORT");
    refuses((ls_etcd_options){.endpoints = ""}, "etcd://HOST:PORT");
    refuses((ls_etcd_options){.endpoints = "etcd://b,me:sec,secret@a:1"}, "no '@'");
    refuses((ls_etcd_options){.endpoints = "etcd://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"}, "than 16");
    refuses((ls_etcd_options){.endpoints = "etcd://a", .timeout_s = -1}, "-1 s");
    refuses((ls_etcd_options){.endpoints = "etcd://a", .ca = "/dev/null"}, "etcds://");
    refuses((ls_etcd_options){.endpoints = "etcds://a", .ca = "/none.pem"}, "'/none.pem'");
    refuses((ls_etcd_options){.endpoints = "etcds://a", .cert = "/dev/null"}, "together");
    refuses((ls_etcd_options){.endpoints = "etcd://a", .user = "me"}, "together");
    refuses((ls_etcd_options){.endpoints = "etcd://a", .password = "secret"}, "together");
    refuses((ls_etcd_options){.endpoints = "etcd://a", .user = "", .password = "secret"}, "user");
    ls_etcd_close(NULL);
}

#define OK_          "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
#define HEADER_      "\"header\":{\"revision\":\"5\"}"
#define KV_(members) OK_ "{" HEADER_ ",\"kvs\":[{" members "}]}"

typedef enum asks { GET, GRANT, KEEP, CREATE, WATCH, LOGIN } asks;

typedef struct lie {
    asks asks;
    ls_status status;
    const char *reply, *text; /* text: part of the message */
} lie;

static const lie lies[] = {
    {GET, LS_EIO, "hello\n", "not valid HTTP"},
    {GET, LS_EIO, OK_, "is not JSON"},
    {GET, LS_EIO, OK_ "{\"header\"", "is not JSON"},
    {GET, LS_EIO, OK_ "\x01\xff\n\x7f", "is not JSON"},
    {GET, LS_EIO, OK_ "[]", "is not a JSON object"},
    {GET, LS_EIO, OK_ "{}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":7}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":{\"revision\":\"\"}}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":{\"revision\":\"-5\"}}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":{\"revision\":\"5x\"}}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":{\"revision\":\"9223372036854775808\"}}",
     "lacks an expected member"},
    {GET, LS_EIO, OK_ "{\"header\":{\"revision\":1e300}}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{" HEADER_ ",\"kvs\":{}}", "lacks an expected member"},
    {GET, LS_EIO, OK_ "{" HEADER_ ",\"kvs\":[7]}", "lacks an expected member"},
    {GET, LS_EIO, KV_("\"value\":\"YQ==\""), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":7"), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"YQ=\""), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"Y===\""), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"=\""), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"YQ==YQ==\""),
     "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"Y Q=\""), "lacks an expected member"},
    {GET, LS_EIO, KV_("\"create_revision\":\"4\",\"value\":\"\\u00e4==\""),
     "lacks an expected member"},
    {GET, LS_EIO, "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP status 302"},
    {GET, LS_EIO, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n404\n", "HTTP status 404"},
    {GET, LS_EINVAL, "HTTP/1.1 400 No\r\nConnection: close\r\n\r\n{\"error\":\"a\\n\\u001bb\"}",
     ": a??b"},
    {GET, LS_EINVAL,
     "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n{\"error\":\"denied\",\"code\":16}", ": denied"},
    {GET, LS_ETIMEOUT, "", "Empty reply"},
    {GET, LS_ETIMEOUT, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "within "},
    {GET, LS_ETIMEOUT, "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n", "HTTP status 500"},
    {GRANT, LS_EIO, OK_ "{" HEADER_ "}", "lacks an expected member"},
    {GRANT, LS_EIO, OK_ "{" HEADER_ ",\"ID\":\"0\"}", "lacks an expected member"},
    {GRANT, LS_EIO, OK_ "{" HEADER_ ",\"ID\":[1]}", "lacks an expected member"},
    {KEEP, LS_EIO, OK_ "{}", "lacks an expected member"},
    {KEEP, LS_EIO, OK_ "{\"result\":{\"ID\":\"8\",\"TTL\":\"9\"}}", "lacks an expected member"},
    {KEEP, LS_EPEER, OK_ "{\"result\":{\"ID\":\"7\",\"TTL\":\"0\"}}", "has expired"},
    {CREATE, LS_EIO, OK_ "{" HEADER_ ",\"succeeded\":true}", "lacks an expected member"},
    {CREATE, LS_EIO, OK_ "{" HEADER_ ",\"succeeded\":true,\"responses\":[{\"response_range\":{}}]}",
     "lacks an expected member"},
    {CREATE, LS_EIO, OK_ "{" HEADER_ ",\"responses\":[{\"response_put\":{}}]}",
     "lacks an expected member"},
    {CREATE, LS_EIO, OK_ "{" HEADER_ ",\"responses\":[{\"response_range\":{}}]}",
     "lacks an expected member"},
    {CREATE, LS_EIO, OK_ "{\"responses\":[{\"response_put\":{}}],\"succeeded\":true}",
     "lacks an expected member"},
    {WATCH, LS_EIO, OK_ "x\n", "is not JSON"},
    {WATCH, LS_EIO, OK_ "x", "is not JSON"},
    {WATCH, LS_EIO, OK_ "{}\n", "is not that of a watch"},
    {WATCH, LS_EIO, OK_ "{}", "is not that of a watch"},
    {WATCH, LS_EIO, OK_ "{\"result\":{\"compact_revision\":[]}}\n", "is not that of a watch"},
    {WATCH, LS_EIO, "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n404\n", "HTTP status 404"},
    {WATCH, LS_EINVAL, OK_ "{\"result\":{\"canceled\":true,\"cancel_reason\":\"permission\"}}\n",
     ": permission"},
    {WATCH, LS_ETIMEOUT, OK_, "ended the watch"},
    {WATCH, LS_ETIMEOUT, OK_ "{\"result\":{}}\n", "ended the watch"},
    {WATCH, LS_OK, OK_ "{\"result\":{\"created\":true}}\n", ""},
    {LOGIN, LS_EIO, OK_ "{}", "has no token"},
    {LOGIN, LS_EIO, OK_ "{\"token\":\"\"}", "has no token"},
    {LOGIN, LS_EIO, OK_ "{\"token\":\"a\\r\\nHost: b\"}", "has no token"},
    {LOGIN, LS_EINVAL,
     "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n{\"error\":\"denied\",\"code\":16}", ": denied"},
};

/* Replies that do not end. */
static const struct endless {
    lie lie;
    manner manner;
    const char *more;
} endless[] = {
    {{GET, LS_ETIMEOUT, "", "no answer within"}, HANGS, ""},
    {{GET, LS_ETIMEOUT, OK_ "{", "no answer within"}, HANGS, ""},
    {{GET, LS_EIO, OK_, "too long"}, REPEATS, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["},
    {{GET, LS_EIO, "HTTP/1.1 200 OK\r\n", "too long"}, REPEATS, "Header: value\r\n"},
    {{GET, LS_EIO, "", "too long"}, REPEATS, "HTTP/1.1 100 Continue\r\nHeader: value\r\n\r\n"},
    {{WATCH, LS_EIO, OK_ "{\"result\":{\"created\":true}}\n", "too long"}, REPEATS, "       "},
    {{WATCH, LS_ETIMEOUT, OK_ "{\"result\":{}}\n{\"result\"", "no answer within"}, HANGS, ""},
    {{WATCH, LS_OK, OK_ "{\"result\":{\"created\":true}}\n{\"res", ""}, HANGS, ""},
};

static ls_status ask(ls_etcd *t, const lie *l, ls_error *e) {
    ls_etcd_value v = {0};
    int64_t lease = 0;
    bool ours = false, changed = false;
    ls_status s = LS_OK;
    switch (l->asks) {
    case GRANT: return ls_etcd_grant(t, 9, &lease, e);
    case KEEP: return ls_etcd_keep_alive(t, 7, e);
    case CREATE: s = ls_etcd_create(t, &(ls_etcd_entry){"k", "v", 7}, &v, &ours, e); break;
    case WATCH: return ls_etcd_watch(t, "k", 1, l->status == LS_OK ? 0.5 : LIMIT_S, &changed, e);
    case GET:
    case LOGIN: s = ls_etcd_get(t, "k", &v, e);
    }
    ls_etcd_value_free(&v);
    return s;
}

/* False: with so short a limit, which runs out where a call fails for the time that it takes, the
 * reply may not have come on a busy machine. */
static bool check_within(const lie *l, manner how, const char *more, double limit_s) {
    impostor m = {.manner = how, .reply = l->reply, .more = more};
    impostor_start(&m);
    char *one = ls_format("etcd://127.0.0.1:%d", m.port), name[64];
    ls_etcd_options o = {.endpoints = one,
                         .timeout_s = l->status == LS_ETIMEOUT ? limit_s : LIMIT_S};
    if (l->asks == LOGIN) o.user = "me", o.password = "secret";
    ls_etcd *t = client_of(&o);
    ls_error e = {0};
    snprintf(name, sizeof name, "http://127.0.0.1:%d", m.port);
    ls_status s = ask(t, l, &e);
    bool good = s == l->status && e.code == s && strstr(e.msg, l->text);
    good = good && (s == LS_OK || strstr(e.msg, name)) && !strchr(e.msg, '\n');
    bool again = !good && s == LS_ETIMEOUT && l->status == s && limit_s < LIMIT_S;
    if ((!good && !again) || strstr(e.msg, "secret"))
        fail_msg("%s: %s, '%s', not '%s'", l->reply, ls_status_name(s), e.msg, l->text);
    if (s != LS_ETIMEOUT && s != LS_OK)
        assert_int_equal(ask(t, l, NULL), l->status); /* without an error to fill in */
    ls_etcd_close(t);
    free(one);
    impostor_stop(&m);
    return !again;
}

static void check_lie(const lie *l, manner how, const char *more) {
    for (double limit_s = 0.3; !check_within(l, how, more, limit_s);) limit_s *= 2;
}

static void test_lies(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) check_lie(&lies[i], SAYS, NULL);
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++)
        check_lie(&endless[i].lie, endless[i].manner, endless[i].more);
}

/* A token that is refused is renewed, but not for ever. */
static void test_refused_token(void **state) {
    (void)state;
    impostor m = {.reply = "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n"
                           "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}",
                  .login = OK_ "{\"token\":\"abc.1\"}"};
    impostor_start(&m);
    char *one = ls_format("etcd://127.0.0.1:%d", m.port);
    ls_etcd *t = client_of(&(ls_etcd_options){
        .endpoints = one, .user = "me", .password = "secret", .timeout_s = LIMIT_S});
    ls_etcd_value v = {0};
    ls_error e;
    assert_ls_fails(ls_etcd_get(t, "k", &v, &e), LS_EINVAL, "refuses the token", e);
    assert_true(m.nasked >= 8 && m.nasked < 12);
    assert_null(strstr(e.msg, "abc.1"));
    ls_etcd_close(t);
    free(one);
    impostor_stop(&m);
}

int main(void) {
    /* A proxy in the environment is not used. */
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_refused_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
