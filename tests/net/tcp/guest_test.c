/* guest_test.c - guests that send what is expected stay; strangers that send nothing or nonsense go
 * when there is no room. All in one thread. */
#include "net/tcp/guest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

enum { MOST = 4, KIND = 7, NBYTES = 5 };
static const ls_key KEY = {"one key of thirty-two characters"};

static bool knows(const ls_frame *f) { return f->kind == KIND && f->nbytes == NBYTES; }

static struct sockaddr_in address; /* where the host listens */

static int open_host(ls_guests *gs, const ls_key *key) {
    socklen_t n = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    ls_guests_options options = {.listen_fd = fd,
                                 .key = key,
                                 .knows = knows,
                                 .why_rejected = "it is a stranger",
                                 .patience = MOST,
                                 .most = MOST};
    ls_guests_open(gs, &options);
    return fd;
}

static int connect_to_host(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A visitor that sends what it should. */
static ls_visit visit(const ls_key *key, char *answer) {
    ls_visit v = {.request = {.kind = KIND, .nbytes = NBYTES}, .data = "hello", .text = answer};
    ls_error e = {0};
    v.room = 16;
    assert_ls_ok(ls_conn_new(connect_to_host(), false, key, &v.c, &e), e);
    ls_socket_flags(v.c->fd);
    return v;
}

/* Serves guest k once; false: it is gone. A guest whose frame is complete gets an answer. */
static bool serve(ls_guests *gs, int k) {
    void *token = NULL;
    ls_error e = {0};
    if (!gs->all[k].has_frame) {
        ls_guest_status status = ls_guests_read(gs, k);
        if (status != LS_GUEST_READY) return status == LS_GUEST_WAITS;
        ls_conn_put(gs->all[k].c, &(ls_frame){.kind = 1, .nbytes = 3}, "yes", 3, NULL, &e);
    }
    ls_conn_flush(gs->all[k].c, &token, &e);
    return true;
}

static void serve_all(ls_guests *gs) {
    ls_guests_wait(gs, -1, 1);
    for (int k = 0; k < gs->n;) k += serve(gs, k);
}

/* The host serves its guests until the visit has ended: DONE, its answer is complete. */
static ls_io run_visit(ls_guests *gs, ls_visit *v) {
    ls_error e = {0};
    ls_io io = LS_IO_AGAIN_READ;
    while (io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE) {
        serve_all(gs);
        io = ls_visit_continue(v, &e);
    }
    return io;
}

/* The host serves its guests until there are n. */
static void await_guests(ls_guests *gs, int n) {
    while (gs->n != n) serve_all(gs);
}

/* Has the host closed it? */
static bool is_dropped(int fd) {
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

/* The host serves its guests until it has closed this connection. */
static void await_drop(ls_guests *gs, int fd) {
    while (!is_dropped(fd)) serve_all(gs);
}

/* Strangers take all places: the oldest goes when another peer comes, and each guest is served. */
static void test_full_of_strangers(void **state) {
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        const ls_key *key = keyed ? &KEY : NULL;
        ls_guests gs;
        int listen_fd = open_host(&gs, key), strangers[MOST];
        char answer[MOST][16];
        ls_visit v[MOST];
        for (int i = 0; i < MOST; i++) {
            strangers[i] = connect_to_host();
            await_guests(&gs, i + 1);
        }
        for (int i = 0; i < MOST; i++) {
            assert_false(is_dropped(strangers[i]));
            v[i] = visit(key, answer[i]);
            assert_int_equal(run_visit(&gs, &v[i]), LS_IO_DONE);
            assert_memory_equal(answer[i], "yes", 3);
            await_drop(&gs, strangers[i]);
        }
        /* All guests have proved what they are: a newcomer is turned away. */
        int late = connect_to_host();
        await_drop(&gs, late);
        assert_int_equal(gs.n, MOST);
        for (int i = 0; i < MOST; i++) {
            assert_true(gs.all[i].has_frame);
            ls_conn_free(v[i].c);
            close(strangers[i]);
        }
        close(late);
        ls_guests_close(&gs);
        close(listen_fd);
    }
}

/* The system has no descriptors left. */
static void test_no_descriptors(void **state) {
    (void)state;
    ls_guests gs;
    int listen_fd = open_host(&gs, &KEY), strangers[2] = {connect_to_host(), connect_to_host()};
    char answer[16];
    struct rlimit was, few;
    await_guests(&gs, 2);
    ls_visit v = visit(&KEY, answer);
    int next = dup(listen_fd);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    ls_io io = run_visit(&gs, &v);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(io, LS_IO_DONE);
    await_drop(&gs, strangers[0]);
    assert_false(is_dropped(strangers[1]));
    ls_conn_free(v.c);
    ls_guests_close(&gs);
    for (int i = 0; i < 2; i++) close(strangers[i]);
    close(listen_fd);
}

/* Guests that send another kind, another length, a long frame, or no frame at all are
 * disconnected. */
static void test_nonsense(void **state) {
    (void)state;
    static const char long_text[4000];
    ls_guests gs;
    char answer[16];
    int listen_fd = open_host(&gs, NULL);
    for (int i = 0; i < 3; i++) {
        ls_visit v = visit(NULL, answer);
        v.data = long_text;
        if (i == 0) v.request.kind = KIND + 1;
        if (i == 1) v.request.nbytes = NBYTES - 1;
        if (i == 2) v.request.nbytes = sizeof long_text;
        assert_int_not_equal(run_visit(&gs, &v), LS_IO_DONE);
        await_guests(&gs, 0);
        ls_conn_free(v.c);
    }
    int fd = connect_to_host();
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n", 34, MSG_NOSIGNAL), 34);
    await_drop(&gs, fd);
    close(fd);
    /* An answer that is too long for the visitor. */
    ls_visit v = visit(NULL, answer);
    v.room = 2;
    assert_int_equal(run_visit(&gs, &v), LS_IO_FAILED);
    ls_conn_free(v.c);
    ls_guests_close(&gs);
    close(listen_fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_of_strangers),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
