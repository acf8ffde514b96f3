/* tcp_test.c - messages over TCP: several transports ("ends") in one process, driven by polls in
 * one thread. Random messages in random order; messages that are forgotten half-way, whose lengths
 * differ at their ends, or that are in flight when an end closes; and peers that send nonsense. */
/* ctest: no-tsan: its workers are processes; watch_test has the thread */
/* ctest: seconds=20 */
#include "net/tcp/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/tcp/watch.h"
#include "test.h"

enum { MOST = 5, MB = 1 << 20 };
static const ls_key KEY = {"one key of thirty-two characters"};
/* A loop that takes longer hangs; under valgrind the longest messages take a minute. */
static const int64_t HANGS_NS = (int64_t)180 * 1000000000;
static const uint64_t NONCE[2] = {11, 22};

/* ---- ends ---- */

typedef struct ends {
    int n;
    const ls_key *key; /* NULL: plain text */
    ls_net *net[MOST];
    ls_roster_entry members[MOST];
} ends;

static void open_ends(ends *x, int n, const ls_key *key) {
    int fds[MOST];
    *x = (ends){.n = n, .key = key};
    for (int i = 0; i < n; i++) {
        struct sockaddr_in *a = (struct sockaddr_in *)&x->members[i].address;
        socklen_t na = sizeof *a;
        *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *)a, na), 0);
        assert_int_equal(listen(fds[i], 64), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)a, &na), 0);
        x->members[i].pid = 1000 + i;
        x->members[i].host = 1;
    }
    for (int i = 0; i < n; i++) {
        ls_error e = {0};
        ls_roster r = {.size = n, .members = x->members, .nonce = {NONCE[0], NONCE[1]}};
        r.listen_fd = fds[i];
        assert_ls_ok(ls_tcp_open(&r, i, key, &(ls_patience){.looks = 1}, &x->net[i], &e), e);
    }
}

static void close_end(ends *x, int i) {
    if (x->net[i]) x->net[i]->ops->close(x->net[i]);
    x->net[i] = NULL;
}

static void close_ends(ends *x) {
    for (int i = 0; i < x->n; i++) close_end(x, i);
}

static int ndone; /* messages that polls have returned */

static ls_status poll_end(ends *x, int i, int64_t timeout_ns, ls_error *e) {
    ls_message *done = NULL;
    LS_TRY(x->net[i]->ops->poll(x->net[i], timeout_ns, &done, e));
    for (ls_message *next; done; done = next) {
        next = done->next;
        done->next = done; /* marks it as done */
        ndone++;
    }
    return LS_OK;
}

static bool is_done(const ls_message *m) { return m->next == m; }

static void poll_all(ends *x) {
    for (int i = 0; i < x->n; i++) {
        ls_error e = {0};
        if (x->net[i]) assert_ls_ok(poll_end(x, i, i ? 0 : 100000, &e), e);
    }
}

static void await(ends *x, const ls_message *m) {
    for (int64_t end = ls_clock_ns() + HANGS_NS; !is_done(m); poll_all(x))
        if (ls_clock_ns() > end) fail_msg("a message of %zu bytes hangs", m->nbytes);
}

static void post(ends *x, int at, bool send, ls_message *m) {
    ls_error e = {0};
    const ls_net_ops *ops = x->net[at]->ops;
    assert_ls_ok(send ? ops->send(x->net[at], m, &e) : ops->recv(x->net[at], m, &e), e);
}

/* Polls one end until that fails. */
static ls_status poll_until_lost(ends *x, int i, ls_error *e) {
    for (int64_t end = ls_clock_ns() + HANGS_NS; ls_clock_ns() < end;) {
        ls_status s = poll_end(x, i, 1000000, e);
        if (s != LS_OK) return s;
    }
    fail_msg("end %d does not notice the loss", i);
    return LS_OK;
}

/* ---- contents ---- */

static uint32_t rnd(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void fill(unsigned char *p, size_t n, uint32_t key) {
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)((i * 2654435761U >> 11) + key * 37);
}

static bool is_filled(const unsigned char *p, size_t n, uint32_t key) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != (unsigned char)((i * 2654435761U >> 11) + key * 37)) return false;
    return true;
}

/* A message from one end to another, both posted. */
typedef struct pair {
    int src, dst;
    uint64_t tag;
    size_t n;
    uint32_t key;
    unsigned char *from, *to;
    ls_message out, in;
} pair;

static void pair_make(pair *p, int src, int dst, uint64_t tag, size_t n) {
    *p = (pair){.src = src, .dst = dst, .tag = tag, .n = n, .key = (uint32_t)tag * 7 + 1};
    p->from = malloc(n + 1);
    p->to = calloc(1, n + 1);
    fill(p->from, n, p->key);
    p->out = (ls_message){.peer = dst, .tag = tag, .data = p->from, .nbytes = n, .print = tag + 5};
    p->in = (ls_message){.peer = src, .tag = tag, .data = p->to, .nbytes = n, .print = tag + 5};
    p->out.owner = &p->out;
    p->in.owner = &p->in;
}

/* The sender alone knows the length; both know the most that it may be. */
static void pair_reserve(pair *p, size_t most) {
    free(p->to);
    p->to = calloc(1, most + 1);
    p->in.data = p->to;
    p->in.nbytes = p->in.most = p->out.most = most;
}

static void pair_free(pair *p) {
    free(p->from);
    free(p->to);
}

static void pair_check(const pair *p) {
    assert_int_equal(p->in.their_nbytes, p->n);
    assert_int_equal(p->in.their_print, p->tag + 5);
    assert_true(is_filled(p->to, p->n, p->key));
    assert_true(is_filled(p->from, p->n, p->key));
}

/* Sends a message, and waits until it has arrived. */
static void exchange(ends *x, int src, int dst, uint64_t tag, size_t n) {
    pair p;
    pair_make(&p, src, dst, tag, n);
    post(x, src, true, &p.out);
    post(x, dst, false, &p.in);
    await(x, &p.out);
    await(x, &p.in);
    pair_check(&p);
    pair_free(&p);
}

/* Messages still arrive, both ways. */
static void check_alive(ends *x) {
    static uint64_t tag = 1000000;
    static const size_t sizes[] = {0, 100, 5000, 200000};
    for (int i = 0; i < 4; i++) {
        exchange(x, 0, 1, ++tag, sizes[i]);
        exchange(x, 1, 0, ++tag, sizes[i]);
    }
}

/* ---- random messages ---- */

static size_t random_size(uint32_t *seed) {
    static const size_t edges[] = {0,     1,     LS_CONN_COPIED, LS_CONN_COPIED + 1,
                                   65535, 65536, 65537,          3 * MB};
    uint32_t kind = rnd(seed) % 16;
    if (kind < 4) return edges[rnd(seed) % 8];
    if (kind < 10) return rnd(seed) % 5000;
    return kind < 15 ? rnd(seed) % 100000 : rnd(seed) % (3 * MB);
}

static void shuffle(int *order, int n, uint32_t *seed) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(rnd(seed) % (uint32_t)(i + 1)), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

static void random_messages(int n, const ls_key *key, uint32_t seed) {
    enum { COUNT = 120 };
    ends x;
    pair p[COUNT];
    int order[2 * COUNT];
    open_ends(&x, n, key);
    for (int i = 0; i < COUNT; i++) {
        int src = (int)(rnd(&seed) % (uint32_t)n), step = 1 + (int)(rnd(&seed) % (uint32_t)(n - 1));
        pair_make(&p[i], src, (src + step) % n, (uint64_t)(i / 3), random_size(&seed));
        for (int k = 0; k < i; k++) /* equal tags go between different ends */
            if (p[k].tag == p[i].tag && p[k].src == p[i].src && p[k].dst == p[i].dst)
                p[i].tag = p[i].out.tag = p[i].in.tag = (uint64_t)i << 40;
        p[i].out.print = p[i].in.print = p[i].tag + 5;
        if (i % 3 == 0) pair_reserve(&p[i], p[i].n + 1 + rnd(&seed) % 100000);
    }
    shuffle(order, 2 * COUNT, &seed);
    for (int i = 0; i < 2 * COUNT; i++) {
        pair *one = &p[order[i] / 2];
        bool send = order[i] % 2;
        post(&x, send ? one->src : one->dst, send, send ? &one->out : &one->in);
        if (rnd(&seed) % 4 == 0) poll_all(&x);
    }
    for (int i = 0; i < COUNT; i++) {
        await(&x, &p[i].out);
        await(&x, &p[i].in);
        pair_check(&p[i]);
    }
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < n; i++) {
        sent += x.net[i]->messages_sent;
        received += x.net[i]->messages_received;
    }
    assert_int_equal(sent, COUNT);
    assert_int_equal(received, COUNT);
    close_ends(&x);
    for (int i = 0; i < COUNT; i++) pair_free(&p[i]);
}

static void test_random(void **state) {
    (void)state;
    for (int n = 2; n <= MOST; n++)
        for (uint32_t seed = 1; seed <= (uint32_t)ncases(1, 3); seed++) {
            random_messages(n, NULL, seed);
            random_messages(n, &KEY, seed);
        }
}

/* ---- messages that are forgotten ---- */

enum { LARGE = 48 * MB };

static void forget(ends *x, int at, ls_message *m) {
    x->net[at]->ops->forget(x->net[at], m->owner);
    assert_false(is_done(m));
}

/* Polls until some of the message has come, but not all. */
static void poll_until_begun(ends *x, const pair *p) {
    const volatile unsigned char *to = p->to;
    for (int64_t end = ls_clock_ns() + HANGS_NS; to[1] == 0; poll_all(x))
        if (ls_clock_ns() > end) fail_msg("nothing of a message of %zu bytes has come", p->n);
    assert_int_equal(to[1], p->from[1]);
    assert_false(is_done(&p->in));
}

static void forget_send(const ls_key *key) {
    ends x;
    pair p;
    open_ends(&x, 2, key);
    pair_make(&p, 0, 1, 1, LARGE); /* half-way: the rest is sent from a copy */
    post(&x, 0, true, &p.out);
    post(&x, 1, false, &p.in);
    poll_until_begun(&x, &p);
    forget(&x, 0, &p.out);
    memset(p.from, 0, p.n);
    await(&x, &p.in);
    assert_true(is_filled(p.to, p.n, p.key));
    assert_false(is_done(&p.out));
    pair_free(&p);
    check_alive(&x);
    pair_make(&p, 0, 1, 2, LARGE); /* not asked for yet */
    post(&x, 0, true, &p.out);
    poll_all(&x);
    forget(&x, 0, &p.out);
    memset(p.from, 0, p.n);
    post(&x, 1, false, &p.in);
    for (int i = 0; i < 50; i++) poll_all(&x);
    assert_false(is_done(&p.in));
    forget(&x, 1, &p.in);
    pair_free(&p);
    check_alive(&x);
    close_ends(&x);
}

static void forget_receive(const ls_key *key) {
    ends x;
    pair p;
    open_ends(&x, 2, key);
    pair_make(&p, 0, 1, 1, LARGE); /* half-way */
    post(&x, 1, false, &p.in);
    post(&x, 0, true, &p.out);
    poll_until_begun(&x, &p);
    forget(&x, 1, &p.in);
    memset(p.to, 0, p.n);
    await(&x, &p.out);
    check_alive(&x);
    for (size_t i = 0; i < p.n; i++)
        if (p.to[i]) fail_msg("byte %zu was written after forget()", i);
    pair_free(&p);
    for (size_t n = 100; n <= 100 * 1000; n *= 1000) { /* it was asked for; nothing has come */
        pair_make(&p, 0, 1, n, n);
        post(&x, 1, false, &p.in);
        for (int i = 0; i < 20; i++) poll_all(&x);
        forget(&x, 1, &p.in);
        post(&x, 0, true, &p.out);
        await(&x, &p.out);
        check_alive(&x);
        assert_int_equal(p.to[1], 0);
        pair_free(&p);
    }
    close_ends(&x);
}

/* The socket is full when the messages are forgotten, at any point of a frame, even if TLS has sent
 * half of a header. */
static void forget_queue(const ls_key *key) {
    enum { QUEUE = 4000 };
    static unsigned char data[65536];
    static ls_message m[QUEUE];
    fill(data, sizeof data, 3);
    for (int round = 0; round < 12; round++) {
        ends x;
        open_ends(&x, 2, key);
        check_alive(&x);
        for (int i = 0; i < QUEUE; i++) {
            size_t n = LS_CONN_COPIED + 1 + (size_t)(round * 997 + i * 13) % 9000;
            m[i] = (ls_message){.peer = 1, .tag = (uint64_t)i, .data = data, .nbytes = n};
            m[i].owner = m;
            post(&x, 0, true, &m[i]);
        }
        ls_error e = {0};
        for (int i = 0; i < 20; i++) assert_ls_ok(poll_end(&x, 0, 0, &e), e);
        assert_false(is_done(&m[QUEUE - 1]));
        x.net[0]->ops->forget(x.net[0], m);
        check_alive(&x);
        close_ends(&x);
    }
}

static void test_forget(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const ls_key *key = i ? &KEY : NULL;
        forget_send(key);
        forget_receive(key);
        forget_queue(key);
    }
}

/* ---- lengths that differ ---- */

static void test_mismatch(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 5, 6000, 65536, 70000, 200000};
    ends x;
    uint64_t tag = 0;
    open_ends(&x, 2, &KEY);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            for (int way = 0; way < 6; way++) {
                int order = way % 3;
                bool some = way / 3 && i <= k && sizes[k]; /* any length up to sizes[k] is right */
                pair p;
                pair_make(&p, 0, 1, ++tag, sizes[i]);
                pair_reserve(&p, sizes[k]);
                if (!some) p.in.most = p.out.most = 0;
                if (order) post(&x, 1, false, &p.in);
                if (order == 2) /* the sender knows of it */
                    for (int turn = 0; turn < 5; turn++) poll_all(&x);
                post(&x, 0, true, &p.out);
                if (!order)
                    for (int turn = 0; turn < 5; turn++) poll_all(&x);
                if (!order) post(&x, 1, false, &p.in);
                await(&x, &p.in);
                await(&x, &p.out);
                assert_int_equal(p.in.their_nbytes, sizes[i]);
                assert_int_equal(p.in.their_print, tag + 5);
                assert_int_equal(p.in.nbytes, sizes[k]);
                if (i == k || some) assert_true(is_filled(p.to, p.n, p.key));
                pair_free(&p);
            }
    check_alive(&x);
    close_ends(&x);
}

/* ---- an end closes ---- */

/* Messages that were reported as sent arrive, though the other end has not polled. */
static void test_close(void **state) {
    (void)state;
    enum { COUNT = 300 };
    for (int keyed = 0; keyed < 2; keyed++)
        for (int warm = 0; warm < 2; warm++) {
            ends x;
            static pair p[COUNT];
            pair more;
            ls_error e = {0};
            open_ends(&x, 2, keyed ? &KEY : NULL);
            if (warm) check_alive(&x);
            for (int i = 0; i < COUNT; i++) {
                pair_make(&p[i], 0, 1, (uint64_t)i, (size_t)(i * 13) % LS_CONN_COPIED);
                post(&x, 0, true, &p[i].out);
            }
            /* Sends are not done before the kernel has them: a worker may not poll again for
             * long. */
            if (!warm) assert_false(is_done(&p[0].out));
            for (int i = 0; i < COUNT; i++)
                while (!is_done(&p[i].out)) assert_ls_ok(poll_end(&x, 0, 1000000, &e), e);
            close_end(&x, 0);
            for (int i = COUNT - 1; i >= 0; i--) post(&x, 1, false, &p[i].in);
            for (int i = 0; i < COUNT; i++) {
                await(&x, &p[i].in);
                pair_check(&p[i]);
                pair_free(&p[i]);
            }
            pair_make(&more, 0, 1, COUNT, 10);
            ls_status s = x.net[1]->ops->recv(x.net[1], &more.in, &e);
            if (s == LS_OK) s = poll_until_lost(&x, 1, &e);
            assert_int_equal(s, LS_EPEER);
            assert_non_null(strstr(e.msg, "worker 1 lost worker 0 (pid 1000 at 127.0.0.1:"));
            pair_free(&more);
            close_ends(&x);
        }
}

/* An end closes half-way through a large message: the sender, or the receiver. */
static void test_close_half_way(void **state) {
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++)
        for (int sender = 0; sender < 2; sender++) {
            ends x;
            pair p;
            ls_error e = {0};
            open_ends(&x, 2, keyed ? &KEY : NULL);
            pair_make(&p, 0, 1, 1, LARGE);
            post(&x, 0, true, &p.out);
            post(&x, 1, false, &p.in);
            poll_until_begun(&x, &p);
            if (!sender) x.net[0]->ops->forget(x.net[0], &p.out); /* its rest would be sent */
            close_end(&x, sender ? 1 : 0);
            assert_int_equal(poll_until_lost(&x, sender ? 0 : 1, &e), LS_EPEER);
            assert_false(is_done(sender ? &p.out : &p.in));
            assert_non_null(strstr(e.msg, sender ? "lost worker 1" : "lost worker 0"));
            close_ends(&x);
            pair_free(&p);
        }
}

/* A worker that has lost another reports that to its peers before it closes. */
static void test_blame(void **state) {
    (void)state;
    ends x;
    ls_error e = {0};
    open_ends(&x, 3, &KEY);
    exchange(&x, 1, 0, 1, 10);
    exchange(&x, 2, 1, 2, 10);
    pair a, b;
    pair_make(&a, 1, 0, 3, 10);
    pair_make(&b, 2, 1, 4, 10);
    post(&x, 0, false, &a.in);
    post(&x, 1, false, &b.in);
    close_end(&x, 2);
    assert_int_equal(poll_until_lost(&x, 1, &e), LS_EPEER);
    assert_non_null(strstr(e.msg, "worker 1 lost worker 2 (pid 1002"));
    close_end(&x, 1);
    assert_int_equal(poll_until_lost(&x, 0, &e), LS_EPEER);
    assert_non_null(strstr(e.msg, "worker 0 lost worker 1 (pid 1001"));
    assert_non_null(strstr(e.msg, "it had lost worker 2 (pid 1002)"));
    close_ends(&x);
    pair_free(&a);
    pair_free(&b);
}

/* ---- peers that send nonsense ---- */

/* Worker 1 by hand: connects to end 0 and sends a greeting, in place of the real worker 1. */
static int impostor(const ends *x) {
    unsigned char b[LS_FRAME_NBYTES + 24] = {0x53, 0x4c, LS_GREETING};
    uint32_t ends_of[2] = {1, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        connect(fd, (const struct sockaddr *)&x->members[0].address, sizeof(struct sockaddr_in)),
        0);
    b[24] = 24;
    memcpy(b + LS_FRAME_NBYTES, NONCE, sizeof NONCE);
    memcpy(b + LS_FRAME_NBYTES + 16, ends_of, sizeof ends_of);
    assert_int_equal(send(fd, b, sizeof b, 0), sizeof b);
    return fd;
}

static void put_header(unsigned char *b, int kind, uint32_t number, uint64_t tag, uint64_t n) {
    memset(b, 0, LS_FRAME_NBYTES);
    b[0] = 0x53;
    b[1] = 0x4c;
    b[2] = (unsigned char)kind;
    memcpy(b + 4, &number, 4);
    memcpy(b + 8, &tag, 8);
    memcpy(b + 24, &n, 8);
}

static void send_nonsense(const void *bytes, size_t n, const char *want) {
    ends x;
    ls_error e = {0};
    pair p;
    open_ends(&x, 2, NULL);
    pair_make(&p, 1, 0, 1, 10);
    int fd = impostor(&x);
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
    ls_status s = x.net[0]->ops->recv(x.net[0], &p.in, &e);
    if (s == LS_OK) s = poll_until_lost(&x, 0, &e);
    assert_int_equal(s, LS_EPEER);
    if (!strstr(e.msg, want)) fail_msg("'%s' does not say '%s'", e.msg, want);
    close(fd);
    close_ends(&x);
    pair_free(&p);
}

static void test_nonsense(void **state) {
    (void)state;
    unsigned char b[LS_FRAME_NBYTES];
    static const char invalid[] = "it sent an invalid message";
    memset(b, 'x', sizeof b);
    send_nonsense(b, sizeof b, "it sent bytes that are not a message of Lockstep");
    put_header(b, 99, 0, 1, 10);
    send_nonsense(b, sizeof b, invalid);
    put_header(b, LS_GREETING, 0, 1, 24);
    send_nonsense(b, sizeof b, invalid);
    put_header(b, LS_FIRST_KIND, 0, 1, 65537); /* too long for a short message */
    send_nonsense(b, sizeof b, invalid);
    put_header(b, LS_FIRST_KIND, 0, 1, UINT64_MAX);
    send_nonsense(b, sizeof b, invalid);
    put_header(b, LS_FIRST_KIND + 4, 2, 1, 0); /* blames a worker that does not exist */
    send_nonsense(b, sizeof b, invalid);
}

/* Random frames, complete and cut, cause no crash. */
static void test_random_frames(void **state) {
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 200; round++) {
        ends x;
        ls_error e = {0};
        pair p[4];
        static const size_t sizes[] = {10, 3000, 70000, 1000000};
        open_ends(&x, 2, NULL);
        for (int i = 0; i < 4; i++) pair_make(&p[i], 1, 0, (uint64_t)i, sizes[i]);
        int fd = impostor(&x);
        ls_status s = LS_OK;
        for (int i = 0; i < 2 && s == LS_OK; i++) s = x.net[0]->ops->recv(x.net[0], &p[i].in, &e);
        for (int i = 0; i < 30; i++) {
            static unsigned char b[LS_FRAME_NBYTES + 70000];
            uint64_t n = random_size(&seed) % 70000;
            int kind = rnd(&seed) % 64 ? (int)(LS_FIRST_KIND + rnd(&seed) % 5) : 50;
            bool lies = rnd(&seed) % 8 == 0; /* about the length of what follows */
            put_header(b, kind, rnd(&seed) % 3, rnd(&seed) % 6, lies ? (uint64_t)1 << 50 : n);
            size_t more = kind == LS_FIRST_KIND || kind == LS_FIRST_KIND + 3 ? n : 0;
            if (send(fd, b, LS_FRAME_NBYTES + more, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
            if (s == LS_OK) s = poll_end(&x, 0, 0, &e);
        }
        for (int i = 2; i < 4 && s == LS_OK; i++) {
            s = x.net[0]->ops->recv(x.net[0], &p[i].in, &e);
            if (s == LS_OK) s = poll_end(&x, 0, 0, &e);
        }
        close(fd);
        for (int i = 0; i < 4; i++) x.net[0]->ops->forget(x.net[0], &p[i].in);
        close_ends(&x);
        for (int i = 0; i < 4; i++) pair_free(&p[i]);
    }
}

/* tcp_test [name]: runs one of the tests. */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),         cmocka_unit_test(test_forget),
        cmocka_unit_test(test_mismatch),       cmocka_unit_test(test_close),
        cmocka_unit_test(test_close_half_way), cmocka_unit_test(test_blame),
        cmocka_unit_test(test_nonsense),       cmocka_unit_test(test_random_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
