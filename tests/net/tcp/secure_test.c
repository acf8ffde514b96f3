/* secure_test.c - ends with the same key exchange data; no other peer can read or send any, or make
 * an end hang or crash. */
/* ctest: seconds=10 */
#include "net/tcp/secure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "test.h"

/* A loop that takes longer hangs. */
static const int64_t LIMIT = 120LL * 1000 * 1000 * 1000;
static const ls_key KEY = {"one key of thirty-two characters"};
static const ls_key OTHER = {"one key of thirty-two characterz"};
static const char NO_KEY[] = "has another join key, or none";
static const char ENDED[] = "join key"; /* either message of a failed handshake */

/* ---- two ends in one thread ---- */

typedef enum kind { LOCAL, TCP } kind;

static void nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

static void make_sockets(kind k, int fd[2]) {
    if (k == LOCAL) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    } else {
        union {
            struct sockaddr any;
            struct sockaddr_in v4;
        } a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
        socklen_t nbytes = sizeof a.v4;
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(listener, &a.any, nbytes), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, &a.any, &nbytes), 0);
        fd[0] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fd[0], &a.any, nbytes), 0);
        fd[1] = accept(listener, NULL, NULL);
        assert_true(fd[1] >= 0);
        close(listener);
    }
    nonblocking(fd[0]);
    nonblocking(fd[1]);
}

/* End 0 is the client. */
typedef struct pair {
    int fd[2];
    ls_secure *s[2];
    ls_io io[2];
    ls_error e[2];
} pair;

static pair open_pair(kind k, const ls_key *client, const ls_key *server) {
    pair p = {.io = {LS_IO_AGAIN_READ, LS_IO_AGAIN_READ}};
    ls_error e = {0};
    make_sockets(k, p.fd);
    assert_ls_ok(ls_secure_open(p.fd[0], false, client, &p.s[0], &e), e);
    assert_ls_ok(ls_secure_open(p.fd[1], true, server, &p.s[1], &e), e);
    return p;
}

static void close_pair(pair *p) {
    for (int i = 0; i < 2; i++) {
        ls_secure_close(p->s[i]);
        if (p->fd[i] >= 0) close(p->fd[i]);
    }
}

static bool again(ls_io io) { return io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE; }
static bool over(ls_io io) { return io == LS_IO_CLOSED || io == LS_IO_FAILED; }

/* Waits for what `io` needs. False: it did not happen. */
static bool wait_for(int fd, ls_io io, int timeout_ms) {
    struct pollfd p = {.fd = fd, .events = io == LS_IO_AGAIN_WRITE ? POLLOUT : POLLIN};
    return poll(&p, 1, timeout_ms) > 0;
}

static void handshake(pair *p) {
    int64_t begin = ls_clock_ns();
    while (again(p->io[0]) || again(p->io[1])) {
        assert_true(ls_clock_ns() - begin < LIMIT);
        for (int i = 0; i < 2; i++) {
            if (!again(p->io[i])) continue;
            p->io[i] = ls_secure_handshake(p->s[i], &p->e[i]);
            if (again(p->io[i])) wait_for(p->fd[i], p->io[i], i); /* the client speaks first */
        }
    }
}

static pair connected(kind k, const ls_key *key) {
    pair p = open_pair(k, key, key);
    handshake(&p);
    if (p.io[0] != LS_IO_DONE) print_error("client: %s\n", p.e[0].msg);
    if (p.io[1] != LS_IO_DONE) print_error("server: %s\n", p.e[1].msg);
    assert_int_equal(p.io[0], LS_IO_DONE);
    assert_int_equal(p.io[1], LS_IO_DONE);
    return p;
}

/* Completes one end's handshake. */
static ls_io handshake_alone(ls_secure *s, int fd, ls_error *e) {
    int64_t begin = ls_clock_ns();
    ls_io io = ls_secure_handshake(s, e);
    while (again(io)) {
        assert_true(ls_clock_ns() - begin < LIMIT);
        wait_for(fd, io, 10);
        io = ls_secure_handshake(s, e);
    }
    return io;
}

static ls_io read_one(ls_secure *s, void *buf, size_t n, size_t *got_p, ls_error *e) {
    return ls_secure_read(s, &(struct iovec){buf, n}, 1, got_p, e);
}

static ls_io write_one(ls_secure *s, const void *buf, size_t n, size_t *put_p, ls_error *e) {
    return ls_secure_write(s, &(struct iovec){(void *)(uintptr_t)buf, n}, 1, put_p, e);
}

static ls_io read_some(pair *p, int i, void *buf, size_t n, size_t *got_p) {
    int64_t begin = ls_clock_ns();
    ls_io io = read_one(p->s[i], buf, n, got_p, &p->e[i]);
    while (again(io)) {
        assert_true(ls_clock_ns() - begin < LIMIT);
        assert_false(ls_secure_pending(p->s[i]));
        wait_for(p->fd[i], io, 10);
        io = read_one(p->s[i], buf, n, got_p, &p->e[i]);
    }
    return io;
}

static void send_text(pair *p, int i, const char *text) {
    size_t n = 0;
    assert_int_equal(write_one(p->s[i], text, strlen(text), &n, &p->e[i]), LS_IO_DONE);
    assert_int_equal(n, strlen(text));
}

static void expect_text(pair *p, int i, const char *text) {
    char buf[256];
    size_t n = 0, want = strlen(text);
    while (n < want) {
        size_t got = 0;
        assert_int_equal(read_some(p, i, buf + n, want - n, &got), LS_IO_DONE);
        n += got;
    }
    assert_memory_equal(buf, text, want);
}

/* ---- bytes ---- */

static uint32_t rnd(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static uint8_t byte_at(int end, size_t i) {
    return (uint8_t)((i * 2654435761U >> 11) + (unsigned)end);
}

typedef struct stream {
    uint8_t *data; /* [total] what this end sends */
    uint8_t *got;  /* [total] what it received */
    size_t total, nput, ngot, offered;
    size_t chunk; /* bytes of one call, at most */
    ls_io read, write;
} stream;

static void step_write(pair *p, stream *t, int i, uint32_t *seed) {
    size_t left = t[i].total - t[i].nput, n = 1 + rnd(seed) % t[i].chunk, put = 0;
    if (t[i].offered > n) n = t[i].offered; /* as ls_secure_write() demands */
    if (n > left) n = left;
    /* from another place each time */
    uint8_t *copy = ls_alloc(n + 1);
    memcpy(copy, t[i].data + t[i].nput, n);
    t[i].write = write_one(p->s[i], copy, n, &put, &p->e[i]);
    free(copy);
    assert_false(over(t[i].write));
    assert_true(put <= n);
    assert_true((t[i].write == LS_IO_DONE) == (put > 0));
    t[i].nput += put;
    t[i].offered = n - put;
}

static void step_read(pair *p, stream *t, int i, uint32_t *seed) {
    size_t left = t[i].total - t[i].ngot, n = 1 + rnd(seed) % t[i].chunk, got = 0;
    if (n > left) n = left;
    t[i].read = read_one(p->s[i], t[i].got + t[i].ngot, n, &got, &p->e[i]);
    assert_false(over(t[i].read));
    assert_true(got <= n);
    assert_true((t[i].read == LS_IO_DONE) == (got > 0));
    t[i].ngot += got;
}

/* Sends in both directions at once; each end sleeps in poll(), as a user of the interface would. */
static void exchange(pair *p, size_t total, size_t chunk, uint32_t seed) {
    stream t[2];
    int64_t begin = ls_clock_ns();
    for (int i = 0; i < 2; i++) {
        t[i] = (stream){.total = total, .chunk = chunk};
        t[i].data = ls_alloc(total);
        t[i].got = ls_alloc(total);
        for (size_t j = 0; j < total; j++) t[i].data[j] = byte_at(i, j);
    }
    for (bool more = true; more;) {
        assert_true(ls_clock_ns() - begin < LIMIT);
        struct pollfd w[2];
        bool pending = false;
        more = false;
        for (int i = 0; i < 2; i++) {
            w[i] = (struct pollfd){.fd = p->fd[i]};
            if (t[i].ngot < total) w[i].events |= POLLIN;
            if (t[i].nput < total) w[i].events |= POLLOUT;
            more = more || w[i].events;
            pending = pending || (t[i].ngot < total && ls_secure_pending(p->s[i]));
        }
        if (!more) break;
        int n = poll(w, 2, pending ? 0 : 1000);
        assert_true(n > 0 || pending);
        for (int i = 0; i < 2; i++) {
            if (w[i].revents & POLLOUT) step_write(p, t, i, &seed);
            bool ready = (w[i].revents & POLLIN) || ls_secure_pending(p->s[i]);
            if (ready && t[i].ngot < total) step_read(p, t, i, &seed);
        }
    }
    for (int i = 0; i < 2; i++) assert_memory_equal(t[i].got, t[1 - i].data, total);
    for (int i = 0; i < 2; i++) free(t[i].data), free(t[i].got);
}

static void exchange_all(kind k, const ls_key *key) {
    static const size_t totals[] = {1, 2, 100, 16383, 16384, 16385, 100003, 8 << 20};
    pair p = connected(k, key);
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        exchange(&p, totals[i], totals[i], 1);
        exchange(&p, totals[i], 40009, 2);
        if (totals[i] <= 100003) exchange(&p, totals[i], 7, 3);
    }
    close_pair(&p);
}

static void test_same_key(void **state) {
    (void)state;
    exchange_all(LOCAL, &KEY);
    exchange_all(TCP, &KEY);
}

static void test_plain(void **state) {
    (void)state;
    exchange_all(LOCAL, NULL);
    exchange_all(TCP, NULL);
}

static void test_new_keys(void **state) {
    (void)state;
    pair p = connected(TCP, &KEY);
    ls_secure_rekey_after(p.s[0], 1);
    ls_secure_rekey_after(p.s[1], 3);
    exchange(&p, 1 << 20, 50000, 5);
    exchange(&p, 3000, 10, 6);
    close_pair(&p);
}

/* ---- poll() and what OpenSSL holds ---- */

/* Moves up to n bytes between raw sockets; returns how many. */
static size_t relay(int from, int to, size_t n, size_t flip) {
    uint8_t buf[65536];
    ssize_t got = recv(from, buf, n < sizeof buf ? n : sizeof buf, MSG_DONTWAIT);
    if (got <= 0) return 0;
    if (flip < (size_t)got) buf[flip] ^= 1;
    assert_int_equal(send(to, buf, (size_t)got, MSG_NOSIGNAL), got);
    return (size_t)got;
}

/* A pair with the test between its ends: end i's socket leads to mid[i]. */
static pair middle_pair(int mid[2]) {
    pair p = {.io = {LS_IO_AGAIN_READ, LS_IO_AGAIN_READ}};
    ls_error e = {0};
    for (int i = 0; i < 2; i++) {
        int fd[2];
        make_sockets(LOCAL, fd);
        p.fd[i] = fd[0];
        mid[i] = fd[1];
        assert_ls_ok(ls_secure_open(p.fd[i], i == 1, &KEY, &p.s[i], &e), e);
    }
    for (int turn = 0; turn < 100 && (again(p.io[0]) || again(p.io[1])); turn++)
        for (int i = 0; i < 2; i++) {
            if (again(p.io[i])) p.io[i] = ls_secure_handshake(p.s[i], &p.e[i]);
            relay(mid[i], mid[1 - i], SIZE_MAX, SIZE_MAX);
        }
    assert_int_equal(p.io[0], LS_IO_DONE);
    assert_int_equal(p.io[1], LS_IO_DONE);
    return p;
}

static void test_pending(void **state) {
    (void)state;
    int mid[2];
    char buf[64];
    size_t n = 0;
    ls_error e;
    pair p = middle_pair(mid);
    assert_int_equal(read_one(p.s[1], buf, 10, &n, &e), LS_IO_AGAIN_READ);
    assert_false(ls_secure_pending(p.s[1]));
    send_text(&p, 0, "twenty bytes of text");
    send_text(&p, 0, "and more");
    relay(mid[0], mid[1], SIZE_MAX, SIZE_MAX);
    assert_int_equal(read_one(p.s[1], buf, 6, &n, &e), LS_IO_DONE);
    assert_int_equal(n, 6);
    assert_false(wait_for(p.fd[1], LS_IO_AGAIN_READ, 0)); /* the socket is empty */
    assert_true(ls_secure_pending(p.s[1]));
    assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, &e), LS_IO_DONE);
    assert_int_equal(n, 22);
    assert_false(ls_secure_pending(p.s[1]));

    /* Half a record can't be read, and must not keep the reader from sleeping. */
    send_text(&p, 0, "cut in two");
    relay(mid[0], mid[1], 9, SIZE_MAX);
    n = 77;
    assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, &e), LS_IO_AGAIN_READ);
    assert_int_equal(n, 77);
    assert_false(ls_secure_pending(p.s[1]));
    relay(mid[0], mid[1], SIZE_MAX, SIZE_MAX);
    expect_text(&p, 1, "cut in two");

    /* Calls with 0 bytes do nothing. */
    assert_int_equal(read_one(p.s[1], buf, 0, &n, &e), LS_IO_DONE);
    assert_int_equal(n, 0);
    assert_int_equal(write_one(p.s[1], buf, 0, &n, &e), LS_IO_DONE);
    assert_int_equal(n, 0);

    /* The last bytes and the close arrive together; poll() would not report the close. */
    send_text(&p, 0, "bye");
    ls_secure_close(p.s[0]);
    p.s[0] = NULL;
    relay(mid[0], mid[1], SIZE_MAX, SIZE_MAX);
    assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, &e), LS_IO_DONE);
    assert_int_equal(n, 3);
    assert_true(ls_secure_pending(p.s[1]));
    assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, &e), LS_IO_CLOSED);
    close_pair(&p);
    close(mid[0]), close(mid[1]);
}

static void test_tampering(void **state) {
    (void)state;
    for (size_t flip = 0; flip < 5 + 5 + 1 + 16; flip++) { /* header, text, type, tag */
        int mid[2];
        char buf[64];
        size_t n = 0;
        pair p = middle_pair(mid);
        send_text(&p, 0, "hello");
        relay(mid[0], mid[1], SIZE_MAX, flip);
        shutdown(mid[1], SHUT_WR); /* if the length has grown, the reader waits for more */
        assert_int_equal(read_some(&p, 1, buf, sizeof buf, &n), LS_IO_FAILED);
        assert_int_equal(p.e[1].code, LS_EPEER);
        assert_non_null(strstr(p.e[1].msg, "a local socket"));
        /* The connection stays failed, for writes too, and the other end is notified. */
        assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, &p.e[1]), LS_IO_FAILED);
        assert_int_equal(write_one(p.s[1], buf, 1, &n, &p.e[1]), LS_IO_FAILED);
        relay(mid[1], mid[0], SIZE_MAX, SIZE_MAX);
        assert_int_equal(read_some(&p, 0, buf, sizeof buf, &n), LS_IO_FAILED);
        close_pair(&p);
        close(mid[0]), close(mid[1]);
    }
}

static void test_replay(void **state) {
    (void)state;
    int mid[2];
    char record[256], buf[64];
    size_t n = 0;
    pair p = middle_pair(mid);
    send_text(&p, 0, "again");
    ssize_t len = recv(mid[0], record, sizeof record, 0);
    assert_true(len > 0);
    assert_int_equal(send(mid[1], record, (size_t)len, 0), len);
    expect_text(&p, 1, "again");
    assert_int_equal(send(mid[1], record, (size_t)len, 0), len);
    assert_int_equal(read_some(&p, 1, buf, sizeof buf, &n), LS_IO_FAILED);
    assert_non_null(strstr(p.e[1].msg, "damaged or forged"));
    close_pair(&p);
    close(mid[0]), close(mid[1]);
}

/* ---- strangers ---- */

static void test_other_key(void **state) {
    (void)state;
    for (kind k = LOCAL; k <= TCP; k++) {
        pair p = open_pair(k, &KEY, &OTHER);
        handshake(&p);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(p.io[i], LS_IO_FAILED);
            assert_int_equal(p.e[i].code, LS_EPEER);
            assert_non_null(strstr(p.e[i].msg, NO_KEY));
            assert_non_null(strstr(p.e[i].msg, k == TCP ? "127.0.0.1:" : "a local socket"));
            ls_error e = {0};
            assert_int_equal(ls_secure_handshake(p.s[i], &e), LS_IO_FAILED); /* still */
            assert_string_equal(e.msg, p.e[i].msg);
        }
        close_pair(&p);
    }
}

static void test_one_has_no_key(void **state) {
    (void)state;
    for (kind k = LOCAL; k <= TCP; k++)
        for (int plain = 0; plain < 2; plain++) {
            pair p = open_pair(k, plain == 0 ? NULL : &KEY, plain == 1 ? NULL : &KEY);
            assert_int_equal(ls_secure_handshake(p.s[plain], &p.e[plain]), LS_IO_DONE);
            send_text(&p, plain, "a message of this size or another, in plain text");
            int i = 1 - plain;
            p.io[i] = handshake_alone(p.s[i], p.fd[i], &p.e[i]);
            assert_int_equal(p.io[i], LS_IO_FAILED);
            assert_non_null(strstr(p.e[i].msg, NO_KEY));
            close_pair(&p);
        }
}

/* Sends bytes, then end of file, from a raw socket to one end. */
static void attack(kind k, bool server, const void *data, size_t n, const char *says) {
    int fd[2];
    ls_secure *s = NULL;
    ls_error e = {0};
    make_sockets(k, fd);
    assert_ls_ok(ls_secure_open(fd[0], server, &KEY, &s, &e), e);
    if (n) assert_int_equal(send(fd[1], data, n, MSG_NOSIGNAL), (ssize_t)n);
    shutdown(fd[1], SHUT_WR);
    assert_true(over(handshake_alone(s, fd[0], &e)));
    assert_int_equal(e.code, LS_EPEER);
    if (!strstr(e.msg, says)) print_error("'%s' does not say '%s'\n", e.msg, says);
    assert_non_null(strstr(e.msg, says));
    ls_secure_close(s);
    close(fd[0]), close(fd[1]);
}

static void test_garbage(void **state) {
    (void)state;
    uint8_t buf[4096];
    uint32_t seed = 1;
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + rnd(&seed) % (round % 2 ? sizeof buf : 64);
        for (size_t i = 0; i < n; i++) buf[i] = (uint8_t)rnd(&seed);
        if (round % 4 == 3) memcpy(buf, "\x16\x03\x01\x00", n < 4 ? n : 4); /* looks like TLS */
        attack(round % 3 ? LOCAL : TCP, round & 8, buf, n, ENDED);
    }
    attack(TCP, true, "GET / HTTP/1.1\r\n\r\n", 18, NO_KEY);
    attack(TCP, true, "SSH-2.0-OpenSSH_9.2\r\n", 21, NO_KEY);
    attack(TCP, false, "SSH-2.0-OpenSSH_9.2\r\n", 21, NO_KEY);
}

static void test_giant_lengths(void **state) {
    (void)state;
    static uint8_t buf[70000];
    static const char record[] = {0x16, 3, 1, (char)0xff, (char)0xff};
    static const char message[] = {0x16, 3, 1, 0x40, 0, 1, (char)0xff, (char)0xff, (char)0xff};
    for (int server = 0; server < 2; server++) {
        memset(buf, 0, sizeof buf);
        memcpy(buf, record, sizeof record);
        attack(TCP, server, buf, sizeof record, NO_KEY); /* refused before anything follows */
        attack(TCP, server, buf, sizeof buf, NO_KEY);
        memcpy(buf, message, sizeof message);
        attack(TCP, server, buf, 5 + 0x4000, NO_KEY);
        attack(TCP, server, buf, sizeof message, ENDED);
    }
}

static void test_cut_hello(void **state) {
    (void)state;
    int fd[2];
    uint8_t hello[2048];
    ls_secure *s = NULL;
    ls_error e = {0};
    make_sockets(LOCAL, fd);
    assert_ls_ok(ls_secure_open(fd[0], false, &KEY, &s, &e), e);
    assert_int_equal(ls_secure_handshake(s, &e), LS_IO_AGAIN_READ);
    ssize_t n = recv(fd[1], hello, sizeof hello, 0);
    assert_in_range(n, 100, sizeof hello - 1);
    ls_secure_close(s);
    close(fd[0]), close(fd[1]);
    for (size_t cut = 0; cut <= (size_t)n; cut++) attack(LOCAL, true, hello, cut, ENDED);
    for (size_t flip = 0; flip < (size_t)n; flip++) { /* the binder covers all of it */
        hello[flip] ^= 0x41;
        attack(LOCAL, true, hello, (size_t)n, ENDED);
        hello[flip] ^= 0x41;
    }
    attack(LOCAL, false, hello, (size_t)n, NO_KEY); /* sent back to a client */
}

static void test_closed_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        pair p = open_pair(i & 1 ? LOCAL : TCP, &KEY, &KEY);
        int end = i >> 1 & 1;
        if (i & 4) { /* the client's first message is lost */
            ls_secure_handshake(p.s[0], &p.e[0]);
            ls_secure_handshake(p.s[1], &p.e[1]);
        }
        struct linger l = {.l_onoff = 1};
        if (i & 8) setsockopt(p.fd[1 - end], SOL_SOCKET, SO_LINGER, &l, sizeof l);
        close(p.fd[1 - end]);
        p.fd[1 - end] = -1;
        ls_io io = handshake_alone(p.s[end], p.fd[end], &p.e[end]);
        if (io == LS_IO_DONE) { /* all that the handshake needed had come before */
            char c;
            size_t n = 0;
            io = read_some(&p, end, &c, 1, &n);
        } else {
            assert_non_null(strstr(p.e[end].msg, ENDED));
        }
        assert_true(over(io));
        close_pair(&p);
    }
}

/* ---- the end of a connection ---- */

/* Writes until that fails; the first writes into a dead connection succeed. */
static ls_io write_on(pair *p, int i) {
    static char buf[100000];
    int64_t begin = ls_clock_ns();
    for (;;) {
        size_t n = 0;
        ls_io io = write_one(p->s[i], buf, sizeof buf, &n, &p->e[i]);
        if (over(io)) return io;
        assert_true(ls_clock_ns() - begin < LIMIT);
        if (again(io)) wait_for(p->fd[i], io, 10);
    }
}

static void test_close(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        pair p = connected(i & 1 ? LOCAL : TCP, i & 2 ? NULL : &KEY);
        char buf[16];
        size_t n = 0;
        send_text(&p, 0, "last words");
        ls_secure_close(p.s[0]);
        close(p.fd[0]);
        p.s[0] = NULL;
        p.fd[0] = -1;
        expect_text(&p, 1, "last words");
        assert_int_equal(read_some(&p, 1, buf, sizeof buf, &n), LS_IO_CLOSED);
        assert_non_null(strstr(p.e[1].msg, "closed the connection"));
        assert_int_equal(p.e[1].code, LS_EPEER);
        assert_int_equal(read_one(p.s[1], buf, sizeof buf, &n, NULL), LS_IO_CLOSED);
        assert_int_equal(write_on(&p, 1), LS_IO_CLOSED);
        close_pair(&p);
    }
}

/* The peer is killed, and sends no close. With a key that can't be mistaken for a proper end. */
static void test_killed(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        pair p = connected(i & 1 ? LOCAL : TCP, i & 2 ? NULL : &KEY);
        char buf[16];
        size_t n = 0;
        send_text(&p, 0, "last words");
        close(p.fd[0]);
        p.fd[0] = -1;
        if (i & 1) { /* writing fails first; reading still works */
            assert_int_equal(write_on(&p, 1), LS_IO_FAILED);
            assert_non_null(strstr(p.e[1].msg, "is gone (Broken pipe)"));
        }
        expect_text(&p, 1, "last words");
        ls_io io = read_some(&p, 1, buf, sizeof buf, &n);
        assert_int_equal(io, i & 2 ? LS_IO_CLOSED : LS_IO_FAILED);
        assert_true(over(write_on(&p, 1)));
        close_pair(&p);
    }
}

static void test_no_sigpipe(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* it would end the test */
    for (int i = 0; i < 4; i++) {
        pair p = connected(i & 1 ? LOCAL : TCP, i & 2 ? NULL : &KEY);
        close(p.fd[0]);
        p.fd[0] = -1;
        assert_int_equal(write_on(&p, 1), LS_IO_FAILED);
        assert_int_equal(p.e[1].code, LS_EPEER);
        assert_non_null(strstr(p.e[1].msg, "is gone"));
        assert_int_equal(write_on(&p, 1), LS_IO_FAILED);
        close_pair(&p); /* its close can't be sent */
    }
    pair p = connected(LOCAL, &KEY);
    close(p.fd[0]);
    p.fd[0] = -1;
    close_pair(&p); /* the same, and it does not know that */
}

/* The socket is full, and nobody reads from it: ls_secure_close() returns all the same. What it has
 * not sent does not look like a proper end to the peer. */
static void test_close_when_full(void **state) {
    (void)state;
    static char buf[1 << 20];
    pair p = connected(LOCAL, &KEY);
    size_t n = 0;
    ls_io io = LS_IO_DONE;
    while (write_one(p.s[0], buf, sizeof buf, &n, &p.e[0]) == LS_IO_DONE) continue;
    ls_secure_close(p.s[0]);
    p.s[0] = NULL;
    close(p.fd[0]);
    p.fd[0] = -1;
    while (io == LS_IO_DONE) io = read_some(&p, 1, buf, sizeof buf, &n);
    assert_int_equal(io, LS_IO_FAILED);
    assert_non_null(strstr(p.e[1].msg, "it ended without closing"));
    close_pair(&p);
}

/* ---- strangers that speak TLS ---- */

static const unsigned char *stranger_id;
static int stranger_updates; /* KeyUpdate messages that it received */

static SSL_SESSION *stranger_psk(SSL *ssl) {
    static const unsigned char cipher[] = {0x13, 0x01};
    SSL_SESSION *psk = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(psk, KEY.bytes, sizeof KEY.bytes);
    SSL_SESSION_set_cipher(psk, SSL_CIPHER_find(ssl, cipher));
    SSL_SESSION_set_protocol_version(psk, TLS1_3_VERSION);
    return psk;
}

static int stranger_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *n,
                        SSL_SESSION **psk) {
    (void)md;
    *id = stranger_id;
    *n = strlen((const char *)stranger_id);
    *psk = stranger_psk(ssl);
    return 1;
}

static void stranger_saw(int out, int version, int type, const void *buf, size_t n, SSL *ssl,
                         void *arg) {
    (void)version, (void)ssl, (void)arg;
    if (!out && type == SSL3_RT_HANDSHAKE && n && *(const uint8_t *)buf == SSL3_MT_KEY_UPDATE)
        stranger_updates++;
}

static void add_certificate(SSL_CTX *ctx) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(x);
    EVP_PKEY_free(key);
}

/* Makes a stranger with `ctx` and one of our ends shake hands. Returns the result of ours. ssl_p
 * may be NULL. */
static ls_io shake_hands(SSL_CTX *ctx, bool we_serve, pair *p, SSL **ssl_p) {
    ls_error e = {0};
    *p = (pair){.io = {LS_IO_AGAIN_READ}};
    make_sockets(LOCAL, p->fd);
    assert_ls_ok(ls_secure_open(p->fd[0], we_serve, &KEY, &p->s[0], &e), e);
    SSL *ssl = SSL_new(ctx);
    assert_int_equal(SSL_set_fd(ssl, p->fd[1]), 1);
    if (we_serve)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    int r = 0;
    for (int turn = 0; turn < 100 && (again(p->io[0]) || r != 1); turn++) {
        if (r != 1) r = SSL_do_handshake(ssl);
        if (again(p->io[0])) p->io[0] = ls_secure_handshake(p->s[0], &p->e[0]);
    }
    if (p->io[0] == LS_IO_DONE) assert_int_equal(r, 1);
    if (ssl_p)
        *ssl_p = ssl;
    else
        SSL_free(ssl);
    return p->io[0];
}

static void refuse(SSL_CTX *ctx, bool we_serve) {
    pair p;
    assert_int_equal(shake_hands(ctx, we_serve, &p, NULL), LS_IO_FAILED);
    assert_non_null(strstr(p.e[0].msg, NO_KEY));
    close_pair(&p);
    SSL_CTX_free(ctx);
}

static SSL_CTX *stranger(int version, const char *id) {
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(ctx, version);
    SSL_CTX_set_max_proto_version(ctx, version);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_msg_callback(ctx, stranger_saw);
    stranger_id = (const unsigned char *)id;
    if (id) SSL_CTX_set_psk_use_session_callback(ctx, stranger_use);
    return ctx;
}

static void test_strangers(void **state) {
    (void)state;
    refuse(stranger(TLS1_2_VERSION, NULL), true);
    refuse(stranger(TLS1_3_VERSION, NULL), true);
    refuse(stranger(TLS1_3_VERSION, "somebody else"), true);
    SSL_CTX *ctx = stranger(TLS1_3_VERSION, NULL); /* clients with a certificate */
    add_certificate(ctx);
    refuse(ctx, true);
    /* Servers: with a certificate, which our client must not take in place of the key. */
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        ctx = stranger(version, NULL);
        add_certificate(ctx);
        refuse(ctx, false);
        refuse(stranger(version, NULL), false);
    }
    /* Another ciphersuite with the right key. */
    ctx = stranger(TLS1_3_VERSION, "lockstep 1");
    SSL_CTX_set_ciphersuites(ctx, "TLS_CHACHA20_POLY1305_SHA256");
    refuse(ctx, true);
}

/* The protocol is standard TLS 1.3, with forward secrecy and without tickets; keys change when they
 * should. */
static void test_openssl_peer(void **state) {
    (void)state;
    pair p;
    SSL *ssl = NULL;
    SSL_CTX *ctx = stranger(TLS1_3_VERSION, "lockstep 1");
    SSL_CTX_set_options(ctx, SSL_OP_ALLOW_NO_DHE_KEX); /* the peer would accept that */
    assert_int_equal(shake_hands(ctx, true, &p, &ssl), LS_IO_DONE);
    assert_string_equal(SSL_get_version(ssl), "TLSv1.3");
    assert_string_equal(SSL_get_cipher_name(ssl), "TLS_AES_128_GCM_SHA256");
    EVP_PKEY *ecdhe = NULL;
    assert_true(SSL_get_peer_tmp_key(ssl, &ecdhe));
    EVP_PKEY_free(ecdhe);
    ls_secure_rekey_after(p.s[0], 4);
    stranger_updates = 0;
    for (int i = 0; i < 17; i++) {
        char buf[16] = "";
        send_text(&p, 0, "hello");
        assert_int_equal(SSL_read(ssl, buf, sizeof buf), 5);
        assert_string_equal(buf, "hello");
    }
    assert_int_equal(stranger_updates, 4);
    assert_int_equal(SSL_write(ssl, "good day", 8), 8);
    expect_text(&p, 0, "good day");
    assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_write(ssl, "new keys", 8), 8);
    expect_text(&p, 0, "new keys");
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_key),   cmocka_unit_test(test_plain),
        cmocka_unit_test(test_new_keys),   cmocka_unit_test(test_pending),
        cmocka_unit_test(test_tampering),  cmocka_unit_test(test_replay),
        cmocka_unit_test(test_other_key),  cmocka_unit_test(test_one_has_no_key),
        cmocka_unit_test(test_garbage),    cmocka_unit_test(test_giant_lengths),
        cmocka_unit_test(test_cut_hello),  cmocka_unit_test(test_closed_at_once),
        cmocka_unit_test(test_close),      cmocka_unit_test(test_killed),
        cmocka_unit_test(test_no_sigpipe), cmocka_unit_test(test_close_when_full),
        cmocka_unit_test(test_strangers),  cmocka_unit_test(test_openssl_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
