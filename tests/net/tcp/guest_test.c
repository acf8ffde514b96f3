/* guest_test.c - who may stay at a door: guests that say what is expected, strangers that say
 * nothing or nonsense, more of both than there is room for. In one thread. */
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

static struct sockaddr_in address; /* of the door */

static int open_door(ls_guests *gs, const ls_key *key) {
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

static int knock(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* One that does what it should. */
static ls_visit visit(const ls_key *key, char *answer) {
    ls_visit v = {.request = {.kind = KIND, .nbytes = NBYTES}, .data = "hello", .text = answer};
    ls_error e = {0};
    v.room = 16;
    assert_ls_ok(ls_conn_new(knock(), false, key, &v.c, &e), e);
    ls_socket_flags(v.c->fd);
    return v;
}

/* One look at guest k; false: it is gone. Who is heard gets an answer. */
static bool attend(ls_guests *gs, int k) {
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

/* Some turns of the host, and of the visitor, if there is one: DONE, its answer is complete. */
static ls_io turn(ls_guests *gs, ls_visit *v) {
    for (int i = 0; i < (v ? 2000 : 20); i++) {
        ls_error e = {0};
        ls_guests_wait(gs, -1, 1);
        for (int k = 0; k < gs->n;) k += attend(gs, k);
        ls_io io = v ? ls_visit_continue(v, &e) : LS_IO_AGAIN_READ;
        if (io == LS_IO_DONE || io == LS_IO_FAILED || io == LS_IO_CLOSED) return io;
    }
    return LS_IO_AGAIN_READ;
}

/* Has the host closed it? */
static bool is_dropped(int fd) {
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

/* Strangers fill the house: the first of them goes when another comes, and each guest is heard. */
static void test_full_of_strangers(void **state) {
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        const ls_key *key = keyed ? &KEY : NULL;
        ls_guests gs;
        int door = open_door(&gs, key), strangers[MOST];
        char answer[MOST][16];
        ls_visit v[MOST];
        for (int i = 0; i < MOST; i++) {
            strangers[i] = knock();
            turn(&gs, NULL);
        }
        assert_int_equal(gs.n, MOST);
        for (int i = 0; i < MOST; i++) {
            assert_false(is_dropped(strangers[i]));
            v[i] = visit(key, answer[i]);
            assert_int_equal(turn(&gs, &v[i]), LS_IO_DONE);
            assert_memory_equal(answer[i], "yes", 3);
            assert_true(is_dropped(strangers[i]));
        }
        /* All have proved what they are: who comes now is turned away. */
        int late = knock();
        turn(&gs, NULL);
        assert_true(is_dropped(late));
        assert_int_equal(gs.n, MOST);
        for (int i = 0; i < MOST; i++) {
            assert_true(gs.all[i].has_frame);
            ls_conn_free(v[i].c);
            close(strangers[i]);
        }
        close(late);
        ls_guests_close(&gs);
        close(door);
    }
}

/* The same where the system has no descriptors left. */
static void test_no_descriptors(void **state) {
    (void)state;
    ls_guests gs;
    int door = open_door(&gs, &KEY), strangers[2] = {knock(), knock()};
    char answer[16];
    struct rlimit was, few;
    turn(&gs, NULL);
    assert_int_equal(gs.n, 2);
    ls_visit v = visit(&KEY, answer);
    int next = dup(door);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    ls_io io = turn(&gs, &v);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(io, LS_IO_DONE);
    assert_true(is_dropped(strangers[0]));
    assert_false(is_dropped(strangers[1]));
    ls_conn_free(v.c);
    ls_guests_close(&gs);
    for (int i = 0; i < 2; i++) close(strangers[i]);
    close(door);
}

/* Another kind, another length, a long frame, and no frame at all: they go. */
static void test_nonsense(void **state) {
    (void)state;
    static const char long_text[4000];
    ls_guests gs;
    char answer[16];
    int door = open_door(&gs, NULL);
    for (int i = 0; i < 3; i++) {
        ls_visit v = visit(NULL, answer);
        v.data = long_text;
        if (i == 0) v.request.kind = KIND + 1;
        if (i == 1) v.request.nbytes = NBYTES - 1;
        if (i == 2) v.request.nbytes = sizeof long_text;
        assert_int_not_equal(turn(&gs, &v), LS_IO_DONE);
        assert_int_equal(gs.n, 0);
        ls_conn_free(v.c);
    }
    int fd = knock();
    assert_int_equal(send(fd, "GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n", 34, MSG_NOSIGNAL), 34);
    turn(&gs, NULL);
    assert_true(is_dropped(fd));
    close(fd);
    /* An answer that is too long for who hears it. */
    ls_visit v = visit(NULL, answer);
    v.room = 2;
    assert_int_equal(turn(&gs, &v), LS_IO_FAILED);
    ls_conn_free(v.c);
    ls_guests_close(&gs);
    close(door);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_of_strangers),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
