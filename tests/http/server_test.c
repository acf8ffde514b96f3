/* server_test.c - the server, asked by raw sockets in the same thread. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "folder.h"
#include "http/server.h"
#include "names.h"
#include "test.h"

enum { MOST = 1 << 20 };

static char reply[MOST];
static char asked[256]; /* the path of the last request that was answered */

/* ---- what is served: a path is answered by itself; /stream, bytes as they come ---- */

static int nopen;        /* streams */
static size_t available; /* bytes that each stream may still give */
static size_t given;     /* by all */
static int nprobes;      /* of them */
static const char byte = 's';

static size_t stream_next(void *arg, char *bytes, size_t most) {
    size_t *left = arg;
    size_t n = available - *left < most ? available - *left : most;
    memset(bytes, byte, n);
    *left += n;
    given += n;
    return n;
}

static void stream_close(void *arg) {
    free(arg);
    nopen--;
}

static size_t stream_probe(void *arg, char *bytes, size_t most) {
    (void)arg;
    assert_true(most > 0);
    *bytes = '?';
    nprobes++;
    return 1;
}

static const ls_http_source source = {stream_next, stream_close, stream_probe};

/* ---- an answer that another makes ---- */

static bool made;
static int nwanted, ndropped;
static char posted[64]; /* the body */

static bool job_ready(void *job, ls_http_answer *a) {
    assert_ptr_equal(job, posted);
    if (!made) return false;
    a->status = 201;
    a->headers[0][0] = "X-Late";
    a->headers[0][1] = "yes";
    a->nheaders = 1;
    ls_buf_printf(&a->body, "late: %s", posted);
    nwanted--;
    return true;
}

static void job_drop(void *job) {
    assert_ptr_equal(job, posted);
    nwanted--;
    ndropped++;
}

static const ls_http_pending pending = {job_ready, job_drop};

static void answer(void *arg, const ls_http_request *r, ls_http_answer *a) {
    assert_null(arg);
    if (strcmp(ls_http_path(r), "/late") == 0) {
        size_t n = 0;
        ls_buf body = ls_http_posted(r, &n) ? ls_http_take_posted(r) : (ls_buf){0};
        snprintf(posted, sizeof posted, "%.*s", (int)body.len, body.len ? body.data : "");
        ls_buf_free(&body);
        a->pending = &pending;
        a->job = posted;
        nwanted++;
        return;
    }
    snprintf(asked, sizeof asked, "%s", ls_http_path(r));
    if (strcmp(ls_http_path(r), "/stream") == 0) {
        *a = (ls_http_answer){
            .type = "text/event-stream", .source = &source, .stream = calloc(1, sizeof(size_t))};
        nopen++;
        return;
    }
    if (strcmp(ls_http_path(r), "/none") == 0) {
        a->status = 404;
        return;
    }
    const char *x = ls_http_query(r, "x");
    ls_buf_printf(&a->body, "path=%s x=%s", ls_http_path(r), x ? x : "-");
}

static ls_http *server_open_posts(const char *token, size_t posts_nbytes) {
    static const char *const names[] = {"red.example"};
    ls_http *h = NULL;
    ls_error e = {0};
    nopen = nwanted = ndropped = 0;
    made = false;
    available = given = 0;
    nprobes = 0;
    assert_ls_ok(ls_http_open(&(ls_http_options){.names = names,
                                                 .nnames = 1,
                                                 .token = token,
                                                 .open_path = "/open",
                                                 .posts_nbytes = posts_nbytes,
                                                 .answer = answer},
                              &h, &e),
                 e);
    assert_true(ls_http_port(h) > 0);
    return h;
}

static ls_http *server_open(const char *token) { return server_open_posts(token, 0); }

/* ---- a client ---- */

static int client_open(const ls_http *h) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)ls_http_port(h))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void client_send(int fd, const char *text) {
    size_t n = strlen(text);
    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* Serves until the server closes the connection, or `want` is in the reply. */
static void client_receive(ls_http *h, int fd, const char *want) {
    size_t n = 0;
    for (int i = 0; i < 2000; i++) {
        ls_http_run(h, 5);
        ssize_t got = recv(fd, reply + n, MOST - 1 - n, 0);
        if (got > 0) n += (size_t)got;
        reply[n] = 0;
        if (got == 0 || (got < 0 && errno != EAGAIN) || (want && strstr(reply, want))) return;
    }
    fail_msg("no end of the reply: '%s'", reply);
}

static int status_of_reply(void) {
    int status = 0;
    assert_int_equal(sscanf(reply, "HTTP/1.1 %d", &status), 1);
    return status;
}

/* Sends a request that closes its connection; returns the status. */
static int ask(ls_http *h, const char *request) {
    int fd = client_open(h);
    client_send(fd, request);
    client_receive(h, fd, NULL);
    close(fd);
    return status_of_reply();
}

static int get(ls_http *h, const char *path, const char *more) {
    char text[1024];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n",
             path, more);
    return ask(h, text);
}

static int count_files(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static const char *body(void) { return strstr(reply, "\r\n\r\n") + 4; }

/* ---- */

static void test_get(void **state) {
    ls_http *h = server_open(NULL);
    (void)state;
    assert_int_equal(get(h, "/", ""), 200);
    assert_string_equal(body(), "path=/ x=-");
    assert_int_equal(get(h, "/a%20b?x=%C3%A4&y=2", ""), 200);
    assert_string_equal(body(), "path=/a b x=\xc3\xa4");
    /* The path is a word: nothing resolves it. */
    assert_int_equal(get(h, "/../../etc/passwd", ""), 200);
    assert_string_equal(body(), "path=/../../etc/passwd x=-");
    assert_int_equal(get(h, "/none", ""), 404);
    ls_http_close(h);
}

/* A connection serves one request after the other. */
static void test_keep_alive(void **state) {
    ls_http *h = server_open(NULL);
    int fd = client_open(h);
    (void)state;
    for (int i = 0; i < 3; i++) {
        client_send(fd, "GET /again HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client_receive(h, fd, "path=/again x=-");
        assert_int_equal(status_of_reply(), 200);
    }
    close(fd);
    ls_http_close(h);
}

static void test_headers(void **state) {
    static const char *const wanted[] = {
        "\r\nContent-Security-Policy: default-src 'self'; ", "frame-ancestors 'none'\r\n",
        "\r\nX-Content-Type-Options: nosniff\r\n", "\r\nCache-Control: no-store\r\n"};
    ls_http *h = server_open(NULL);
    (void)state;
    for (int i = 0; i < 2; i++) {
        get(h, i ? "/none" : "/", "");
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
            if (!strstr(reply, wanted[k])) fail_msg("no '%s' in '%s'", wanted[k], reply);
        assert_null(strstr(reply, "Access-Control-Allow"));
    }
    ls_http_close(h);
}

static void test_hosts(void **state) {
    static const struct {
        const char *lines;
        int status;
    } cases[] = {{"Host: localhost\r\n", 200},
                 {"Host: 127.0.0.1:8080\r\n", 200},
                 {"hOST: red.example\r\n", 200},
                 {"Host: evil.example\r\n", 403},
                 {"Host: localhost\r\nHost: evil.example\r\n", 403},
                 {"Host: evil.example\r\nHost: localhost\r\n", 403},
                 {"Host:\r\n", 403},
                 {"X-Forwarded-Host: localhost\r\n", 403}};
    ls_http *h = server_open(NULL);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        *asked = 0;
        /* HTTP/1.0 allows that there is no Host. */
        snprintf(text, sizeof text, "GET /secret HTTP/1.%d\r\n%sConnection: close\r\n\r\n",
                 i == 7 ? 0 : 1, cases[i].lines);
        int status = ask(h, text);
        if (status != cases[i].status) fail_msg("%s: %d", cases[i].lines, status);
        assert_int_equal(strcmp(asked, "/secret") == 0, status == 200);
    }
    ls_http_close(h);
}

static void test_methods(void **state) {
    static const char *const others[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "X"};
    ls_http *h = server_open(NULL);
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        *asked = 0;
        snprintf(text, sizeof text,
                 "%s / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                 "0\r\n\r\n",
                 others[i]);
        assert_int_equal(ask(h, text), 405);
        assert_non_null(strstr(reply, "\r\nAllow: GET, HEAD\r\n"));
        assert_string_equal(asked, "");
    }
    assert_int_equal(ask(h, "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                     200);
    assert_non_null(strstr(reply, "\r\nContent-Length: 10\r\n"));
    assert_string_equal(body(), "");
    available = 100;
    assert_int_equal(
        ask(h, "HEAD /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), 200);
    assert_int_equal(given, 0);
    assert_int_equal(nopen, 0);
    ls_http_close(h);
}

static void test_token(void **state) {
    ls_http *h = server_open("00ff00ff00ff00ff00ff00ff00ff00ff");
    (void)state;
    assert_int_equal(get(h, "/", ""), 401);
    assert_non_null(strstr(reply, "\r\nWWW-Authenticate: Bearer\r\n"));
    assert_int_equal(get(h, "/open", ""), 200);
    assert_int_equal(get(h, "/open/", ""), 401);
    assert_int_equal(
        ask(h, "HEAD /open HTTP/1.1\r\nHost: 10.1.2.3:80\r\nConnection: close\r\n\r\n"), 200);
    assert_int_equal(ask(h, "POST /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                            "Content-Length: 0\r\n\r\n"),
                     405);
    assert_int_equal(get(h, "/?token=00ff", ""), 401);
    assert_null(strstr(reply, "Set-Cookie"));
    assert_int_equal(get(h, "/?token=00ff00ff00ff00ff00ff00ff00ff00ff", ""), 200);
    assert_non_null(strstr(reply, "\r\nSet-Cookie: "
                                  "lockstep_token=00ff00ff00ff00ff00ff00ff00ff00ff; HttpOnly; "
                                  "SameSite=Strict\r\n"));
    assert_int_equal(
        get(h, "/", "Cookie: a=b; lockstep_token=00ff00ff00ff00ff00ff00ff00ff00ff\r\n"), 200);
    assert_int_equal(get(h, "/", "Cookie: lockstep_token=11ff00ff00ff00ff00ff00ff00ff00ff\r\n"),
                     401);
    assert_int_equal(get(h, "/", "Authorization: Bearer 00ff00ff00ff00ff00ff00ff00ff00ff\r\n"),
                     200);
    assert_int_equal(get(h, "/", "Authorization: Basic 00ff00ff00ff00ff00ff00ff00ff00ff\r\n"), 401);
    ls_http_close(h);
}

static void test_port_in_use(void **state) {
    ls_http *h = server_open(NULL), *other = NULL;
    ls_error e = {0};
    (void)state;
    ls_http_options o = {.port = ls_http_port(h), .answer = answer};
    assert_ls_fails(ls_http_open(&o, &other, &e), LS_EIO, "in use by another program; port 0", e);
    o = (ls_http_options){.address = "no address", .answer = answer};
    assert_ls_fails(ls_http_open(&o, &other, &e), LS_EINVAL, "'no address' is no address", e);
    assert_null(other);
    ls_http_close(h);
}

/* The address that the user has given is a name of the server. Of a name with several addresses it
 * listens at the first that this host has: no host has 192.0.2.1. */
static void test_address(void **state) {
    (void)state;
    static const char *const addresses[] = {"0.0.0.0", "192.0.2.1+127.0.0.1"};
    for (int i = 0; i < 2; i++) {
        ls_http *h = NULL;
        ls_error e = {0};
        char text[256];
        assert_ls_ok(
            ls_http_open(&(ls_http_options){.address = addresses[i], .answer = answer}, &h, &e), e);
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n",
                 addresses[i], ls_http_port(h));
        assert_int_equal(ask(h, text), 200);
        assert_int_equal(ask(h, "GET / HTTP/1.1\r\nHost: 127.0.0.2\r\nConnection: close\r\n\r\n"),
                         403);
        ls_http_close(h);
    }
}

static const char STREAM[] = "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";

static size_t count_of(char c) {
    size_t n = 0;
    for (const char *s = body(); *s; s++) n += *s == c;
    return n;
}

static void test_stream(void **state) {
    ls_http *h = server_open(NULL);
    int fd = client_open(h);
    (void)state;
    client_send(fd, STREAM);
    available = 3;
    client_receive(h, fd, "sss");
    assert_non_null(strstr(reply, "\r\nContent-Type: text/event-stream\r\n"));
    assert_non_null(strstr(reply, "\r\nX-Accel-Buffering: no\r\n"));
    assert_int_equal(count_of(byte), 3);
    /* What comes later is sent once the stream is woken. */
    available = 8;
    for (int i = 0; i < 20; i++) ls_http_run(h, 1);
    assert_int_equal(given, 3);
    ls_http_wake(h);
    client_receive(h, fd, "sssss");
    assert_int_equal(given, 8);
    assert_int_equal(ls_http_nstreams(h), 1);
    /* A client that is gone is noticed when something is sent. */
    close(fd);
    for (int i = 0; i < 200 && nopen; i++) {
        available++;
        ls_http_wake(h);
        ls_http_run(h, 5);
    }
    assert_int_equal(nopen, 0);
    assert_int_equal(ls_http_nstreams(h), 0);
    ls_http_close(h);
}

/* A client that reads nothing: no more is made for it than the sockets hold. */
static void test_slow_reader(void **state) {
    ls_http *h = server_open(NULL);
    int fd = client_open(h);
    (void)state;
    available = (size_t)1 << 40;
    client_send(fd, STREAM);
    size_t before = 0;
    for (int i = 0, still = 0; i < 100000 && still < 50; i++) {
        ls_http_run(h, 1);
        still = given == before ? still + 1 : 0;
        before = given;
    }
    assert_true(given > 0);
    assert_true(given < (size_t)64 << 20);
    assert_int_equal(get(h, "/", ""), 200); /* others are served meanwhile */
    close(fd);
    ls_http_close(h);
    assert_int_equal(nopen, 0);
}

static void test_many_streams(void **state) {
    enum { N = LS_HTTP_STREAMS };
    ls_http *h = server_open(NULL);
    int fds[N + 1];
    (void)state;
    available = 1;
    for (int i = 0; i < N; i++) {
        fds[i] = client_open(h);
        client_send(fds[i], STREAM);
        ls_http_run(h, 0);
    }
    for (int i = 0; i < 2000 && given < N; i++) ls_http_run(h, 1);
    assert_int_equal(given, N);
    assert_int_equal(ls_http_nstreams(h), N);
    fds[N] = client_open(h);
    client_send(fds[N], STREAM);
    client_receive(h, fds[N], "There are too many streams.");
    assert_int_equal(status_of_reply(), 503);
    assert_int_equal(get(h, "/", ""), 200);
    ls_http_close(h); /* while all of them rest */
    assert_int_equal(nopen, 0);
    for (int i = 0; i <= N; i++) close(fds[i]);
}

/* More clients stay connected than there is room for, some with a part of a header or of a body,
 * before one asks, which is answered long before the others' time is up. One whose answer is
 * pending stays. */
static void crowd(bool bodies) {
    enum { N = LS_HTTP_CONNECTIONS + 40, FILES = 3 * N };
    static int fds[N];
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (r.rlim_cur < FILES) r.rlim_cur = r.rlim_max;
    if (r.rlim_cur < FILES || setrlimit(RLIMIT_NOFILE, &r) != 0)
        skip_because("crowd: no %d open files", FILES);
    ls_http *h = server_open_posts(NULL, 100);
    int first = client_open(h), more = 0;
    client_send(first, "POST /late HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                       "Connection: close\r\n\r\nhi");
    while (!nwanted) ls_http_run(h, 1);
    for (int i = 0; i < N; i++) {
        fds[i] = client_open(h);
        if (i % 2 || bodies)
            client_send(fds[i], bodies ? "POST / HTTP/1.1\r\nHost: localhost\r\n"
                                         "Content-Length: 9\r\n\r\nhi"
                                       : "GET / HTTP/1.1\r\nHo");
        ls_http_run(h, 0);
    }
    assert_int_equal(get(h, "/a", ""), 200);
    for (int i = 0; i < N; i++) more += recv(fds[i], reply, 1, 0) != 0;
    assert_in_range(more, LS_HTTP_CONNECTIONS / 2, LS_HTTP_CONNECTIONS);
    assert_int_equal(nwanted, 1);
    made = true;
    ls_http_wake(h);
    client_receive(h, first, NULL);
    assert_int_equal(status_of_reply(), 201);
    ls_http_close(h);
    for (int i = 0; i < N; i++) close(fds[i]);
    close(first);
}

static void test_crowd(void **state) {
    (void)state;
    crowd(false);
    crowd(true);
}

/* xorshift64* */
static uint64_t random_next(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 0x2545f4914f6cdd1dULL) >> 16;
}

/* Requests of random bytes, and good ones with random damage. */
static void test_damaged_requests(void **state) {
    static const char good[] = "GET /a?x=1&token=2 HTTP/1.1\r\nHost: localhost\r\nCookie: "
                               "a=b\r\nRange: bytes=0-1\r\nConnection: close\r\n\r\n";
    ls_http *h = server_open(NULL);
    uint64_t r = 7;
    (void)state;
    for (int i = 0; i < ncases(300, 10000); i++) {
        char text[sizeof good];
        size_t n = sizeof good - 1;
        memcpy(text, good, n);
        int damages = i % 10 == 0 ? (int)n : 1 + (int)(random_next(&r) % 4);
        for (int k = 0; k < damages; k++) text[random_next(&r) % n] = (char)random_next(&r);
        int fd = client_open(h);
        assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
        shutdown(fd, SHUT_WR);
        ls_http_run(h, 0);
        ls_http_run(h, 0);
        close(fd);
    }
    assert_int_equal(get(h, "/", ""), 200);
    ls_http_close(h);
}

/* A part of a request and the end of its connection come at once: nothing is kept of it. */
static void test_gone_clients(void **state) {
    static const char half[] = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{";
    static const char *const parts[] = {"", "POST /x HTT", "GET / HTTP/1.1\r\nHost: localhost\r\n",
                                        half};
    ls_http *h = server_open(NULL);
    (void)state;
    ls_http_run(h, 0);
    int before = count_files();
    for (int i = 0; i < 40; i++) {
        int fd = client_open(h);
        client_send(fd, parts[i % 4]);
        close(fd);
    }
    for (int i = 0; i < 200; i++) ls_http_run(h, 0); /* they are taken, one a call, and closed */
    assert_int_equal(count_files(), before);
    assert_int_equal(get(h, "/", ""), 200);
    ls_http_close(h);
}

/* ---- answers that are made later ---- */

static int client_post_late(ls_http *h) {
    int fd = client_open(h);
    client_send(fd, "POST /late HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
    for (int i = 0; i < 200 && ls_http_nstreams(h) == 0; i++) ls_http_run(h, 5);
    return fd;
}

static void test_pending(void **state) {
    ls_http *h = server_open_posts(NULL, 100);
    int fd = client_post_late(h);
    (void)state;
    assert_int_equal(ls_http_nstreams(h), 1);
    assert_int_equal(get(h, "/", ""), 200); /* others are answered meanwhile */
    for (int i = 0; i < 5; i++) {
        ls_http_wake(h);
        ls_http_run(h, 1);
    }
    assert_int_equal(nwanted, 1);
    made = true;
    ls_http_wake(h);
    client_receive(h, fd, "late: body");
    assert_int_equal(status_of_reply(), 201);
    assert_non_null(strstr(reply, "\r\nX-Late: yes\r\n"));
    assert_int_equal(nwanted, 0);
    assert_int_equal(ls_http_nstreams(h), 0);
    /* The connection goes on. */
    client_send(fd, "GET /again HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_receive(h, fd, "path=/again x=-");
    close(fd);
    ls_http_close(h);
    assert_int_equal(ndropped, 0);
}

/* The answer to a GET or a HEAD may be pending too. */
static void test_pending_get(void **state) {
    static const char *const methods[] = {"GET", "HEAD"};
    ls_http *h = server_open(NULL);
    (void)state;
    for (int i = 0; i < 2; i++) {
        char request[100];
        int fd = client_open(h);
        made = false;
        snprintf(request, sizeof request, "%s /late HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 methods[i]);
        client_send(fd, request);
        while (ls_http_nstreams(h) == 0) ls_http_run(h, 5);
        made = true;
        ls_http_wake(h);
        client_receive(h, fd, i ? "\r\n\r\n" : "late: ");
        assert_int_equal(status_of_reply(), 201);
        assert_non_null(strstr(reply, "Content-Length: 6\r\n"));
        assert_int_equal(strstr(reply, "late: ") != NULL, i == 0);
        assert_int_equal(nwanted, 0);
        close(fd);
    }
    ls_http_close(h);
}

/* A client that goes away before its answer is made to a GET, and a server that ends: the job is
 * dropped. */
static void test_pending_dropped(void **state) {
    ls_http *h = server_open_posts(NULL, 100);
    (void)state;
    int fd = client_open(h);
    client_send(fd, "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (ls_http_nstreams(h) == 0) ls_http_run(h, 5);
    close(fd);
    for (int i = 0; i < 200 && nwanted; i++) ls_http_run(h, 5);
    assert_int_equal(nwanted, 0);
    assert_int_equal(ndropped, 1);
    assert_int_equal(ls_http_nstreams(h), 0);
    fd = client_post_late(h);
    assert_int_equal(nwanted, 1);
    ls_http_close(h);
    assert_int_equal(nwanted, 0);
    assert_int_equal(ndropped, 2);
    close(fd);
}

/* ---- bodies that are not wanted ---- */

/* A client sends all of a body before it reads: what is refused is read, too, and then answered. */
static void test_refused_bodies(void **state) {
    static const struct {
        const char *head;
        int status;
    } cases[] = {{"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 00ff\r\n", 413},
                 {"POST / HTTP/1.1\r\nHost: localhost\r\n", 401},
                 {"PUT / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 00ff\r\n", 405},
                 {"POST / HTTP/1.1\r\nHost: elsewhere\r\nAuthorization: Bearer 00ff\r\n", 403}};
    enum { BODY = 20000000 };
    static char bytes[1 << 16];
    ls_http *h = server_open_posts("00ff", 1000);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char head[300];
        int fd = client_open(h);
        snprintf(head, sizeof head, "%sContent-Length: %d\r\n\r\n", cases[i].head, BODY);
        client_send(fd, head);
        for (int sent = 0; sent < BODY;) {
            size_t n = BODY - sent < (int)sizeof bytes ? (size_t)(BODY - sent) : sizeof bytes;
            ssize_t k = send(fd, bytes, n, MSG_NOSIGNAL);
            if (k < 0) assert_int_equal(errno, EAGAIN);
            if (k > 0) sent += (int)k;
            ls_http_run(h, 1);
        }
        client_receive(h, fd, "\r\n\r\n");
        assert_int_equal(status_of_reply(), cases[i].status);
        close(fd);
        /* One that asks before it sends is told at once. */
        fd = client_open(h);
        snprintf(head, sizeof head, "%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
                 cases[i].head, BODY);
        client_send(fd, head);
        client_receive(h, fd, "\r\n\r\n");
        assert_int_equal(status_of_reply(), cases[i].status);
        close(fd);
    }
    ls_http_close(h);
}

/* A body that is too large even to be dropped: it is refused by its length, or, where its client
 * does not say that, cut off. */
static void test_endless_bodies(void **state) {
    static const char *const heads[] = {
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"};
    enum { PIECE = 1 << 16, MOST_PIECES = 1 << 12 };
    static char piece[PIECE + 64];
    ls_http *h = server_open_posts(NULL, 1000);
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        int fd = client_open(h);
        client_send(fd, heads[i]);
        client_receive(h, fd, "\r\n\r\n");
        assert_int_equal(status_of_reply(), 413);
        close(fd);
    }
    int fd = client_open(h), npieces = 0;
    client_send(fd, "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    int n = snprintf(piece, sizeof piece, "%x\r\n", PIECE) + PIECE;
    memcpy(piece + n, "\r\n", 2);
    for (int sent = 0; npieces < MOST_PIECES;) {
        ssize_t k = send(fd, piece + sent, (size_t)(n + 2 - sent), MSG_NOSIGNAL);
        if (k < 0 && errno != EAGAIN) break;
        if (k > 0) sent += (int)k;
        if (sent == n + 2) npieces++, sent = 0;
        ls_http_run(h, 1);
    }
    assert_in_range(npieces, 64 << 4, MOST_PIECES - 1);
    close(fd);
    ls_http_close(h);
}

/* ---- clients that send no more ---- */

static int client_post(ls_http *h, const char *path) {
    char text[200];
    int fd = client_open(h);
    snprintf(text, sizeof text,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody", path);
    client_send(fd, text);
    return fd;
}

/* They have ended their own direction, and read on. */
static void test_half_closed(void **state) {
    ls_http *h = server_open_posts(NULL, 100);
    (void)state;
    /* An answer at once, to a GET and to a POST. */
    int fd = client_open(h);
    client_send(fd, "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    shutdown(fd, SHUT_WR);
    client_receive(h, fd, "path=/a x=-");
    close(fd);
    fd = client_post(h, "/b");
    shutdown(fd, SHUT_WR);
    client_receive(h, fd, "path=/b x=-");
    close(fd);
    /* One that is made later. */
    fd = client_post(h, "/late");
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 50; i++) ls_http_run(h, 1);
    assert_int_equal(nwanted, 1);
    made = true;
    ls_http_wake(h);
    client_receive(h, fd, "late: body");
    close(fd);
    /* A stream, which is probed, and then has bytes. */
    fd = client_post(h, "/stream");
    shutdown(fd, SHUT_WR);
    client_receive(h, fd, "?");
    assert_true(nprobes > 0);
    assert_int_equal(nopen, 1);
    available = 3;
    ls_http_wake(h);
    client_receive(h, fd, "sss");
    close(fd);
    ls_http_close(h);
    assert_int_equal(nopen, 0);
}

/* One that has closed its socket does not read on: a probe finds it. */
static void test_gone_reader(void **state) {
    ls_http *h = server_open_posts(NULL, 100);
    (void)state;
    int fd = client_post(h, "/stream");
    client_receive(h, fd, "\r\n\r\n");
    assert_int_equal(nopen, 1);
    close(fd);
    while (nopen) ls_http_run(h, 5);
    assert_int_equal(nprobes, 1);
    assert_int_equal(given, 0);
    ls_http_close(h);
}

/* ---- TLS ---- */

/* Writes a certificate that signs itself, and its key. */
static void make_certificate(const char *certificate, const char *key) {
    EVP_PKEY *k = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    FILE *f = fopen(certificate, "w"), *g = fopen(key, "w");
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, k);
    assert_true(X509_sign(x, k, EVP_sha256()) > 0);
    assert_true(PEM_write_X509(f, x) && PEM_write_PrivateKey(g, k, NULL, NULL, 0, NULL, NULL));
    fclose(f), fclose(g);
    X509_free(x);
    EVP_PKEY_free(k);
}

/* Until a step of the client has done what it does; the server runs between its tries. */
static int until_done(ls_http *h, SSL *ssl, int (*step)(SSL *)) {
    int r = 0;
    for (int i = 0; i < 2000 && (r = step(ssl)) <= 0; i++) {
        int why = SSL_get_error(ssl, r);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return r;
        ls_http_run(h, 5);
    }
    return r;
}

static int read_some(SSL *ssl) { return SSL_read(ssl, reply, MOST - 1); }

static void test_tls(void **state) {
    char *certificate = ls_format("%s/cert.pem", folder), *key = ls_format("%s/key.pem", folder);
    char *other = ls_format("%s/other.pem", folder), *other_key = ls_format("%s/k.pem", folder);
    ls_http *h = NULL;
    ls_error e = {0};
    ls_http_options o = {.answer = answer, .certificate = certificate};
    (void)state;
    make_certificate(certificate, key);
    make_certificate(other, other_key);
    assert_ls_fails(ls_http_open(&o, &h, &e), LS_EINVAL, "both", e);
    o.key = other_key;
    assert_ls_fails(ls_http_open(&o, &h, &e), LS_EINVAL, "can't use this certificate", e);
    o.key = folder;
    assert_int_not_equal(ls_http_open(&o, &h, &e), LS_OK);
    o.key = key;
    assert_ls_ok(ls_http_open(&o, &h, &e), e);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ls_http_port(h))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(c);
    static const char request[] = "GET /safe HTTP/1.1\r\nHost: localhost\r\n\r\n";
    SSL_set_fd(ssl, fd);
    assert_int_equal(until_done(h, ssl, SSL_connect), 1);
    assert_int_equal(SSL_write(ssl, request, sizeof request - 1), sizeof request - 1);
    int n = until_done(h, ssl, read_some);
    assert_true(n > 0);
    reply[n] = 0;
    assert_memory_equal(reply, "HTTP/1.1 200", 12);
    SSL_free(ssl);
    SSL_CTX_free(c);
    close(fd);
    ls_http_close(h);
    free(certificate), free(key), free(other), free(other_key);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_get),
                                       cmocka_unit_test(test_keep_alive),
                                       cmocka_unit_test(test_headers),
                                       cmocka_unit_test(test_hosts),
                                       cmocka_unit_test(test_methods),
                                       cmocka_unit_test(test_token),
                                       cmocka_unit_test(test_port_in_use),
                                       cmocka_unit_test(test_address),
                                       cmocka_unit_test(test_stream),
                                       cmocka_unit_test(test_slow_reader),
                                       cmocka_unit_test(test_many_streams),
                                       cmocka_unit_test(test_crowd),
                                       cmocka_unit_test(test_damaged_requests),
                                       cmocka_unit_test(test_gone_clients),
                                       cmocka_unit_test(test_pending),
                                       cmocka_unit_test(test_pending_get),
                                       cmocka_unit_test(test_pending_dropped),
                                       cmocka_unit_test(test_refused_bodies),
                                       cmocka_unit_test(test_endless_bodies),
                                       cmocka_unit_test(test_half_closed),
                                       cmocka_unit_test(test_gone_reader),
                                       cmocka_unit_test(test_tls)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
