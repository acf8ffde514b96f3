/* links_test.c - a host looks for its leader at a name with several addresses; what it forks leaves
 * its port free. */
#include "cluster/links.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cluster/reach.h"
#include "free_port.h"
#include "names.h"
#include "net/address.h"
#include "test.h"

enum { PATIENCE_S = 120 };

/* Nobody listens at 127.0.0.3 and 127.0.0.2. */
static void test_finds_leader(void **state) {
    (void)state;
    static const ls_admission admission = {.settings = "a 1\n"};
    ls_error e = {0};
    ls_links *l = NULL;
    char name[64], text[128];
    int port = free_port(), fd = -1;
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef", 1);
    assert_ls_ok(ls_address_listen(&(ls_address){.host = "127.0.0.1", .port = port}, &fd, &e), e);
    assert_ls_ok(ls_links_open(NULL, 1, &admission, &l, &e), e);
    snprintf(name, sizeof name, "127.0.0.3+127.0.0.2+127.0.0.1:%d", port);
    assert_ls_ok(ls_links_call(l, name, &e), e);
    int64_t end = ls_clock_ns() + (int64_t)PATIENCE_S * 1000000000;
    struct pollfd caller = {.fd = fd, .events = POLLIN};
    ls_link_event ev;
    while (poll(&caller, 1, 10) == 0 && ls_clock_ns() < end) ls_links_next(l, &ev);
    if (!(caller.revents & POLLIN)) fail_msg("the leader was not found: %s", ls_links_trouble(l));
    struct sockaddr_storage its, own;
    assert_true(ls_links_addresses(l, LS_TO_LEADER, &its, &own));
    ls_address_text(&its, text, sizeof text);
    snprintf(name, sizeof name, "127.0.0.1:%d", port);
    assert_string_equal(text, name);
    assert_false(ls_links_addresses(l, 1, &its, &own));
    ls_links_close(l);
    close(fd);
}

/* A process that a host has forked, as for a checkpoint, may live longer than the host, which is
 * started again at the same address. */
static void test_port_is_free(void **state) {
    (void)state;
    static const ls_admission admission = {.settings = "a 1\n"};
    ls_error e = {0};
    ls_links *l = NULL;
    char name[64], place[64];
    snprintf(name, sizeof name, "127.0.0.1:%d", free_port());
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef", 1);
    assert_ls_ok(ls_links_open(name, 1, &admission, &l, &e), e);
    ls_reach *r = ls_reach_open("127.0.0.1");
    ls_reach_place(r, place, sizeof place);
    int runs[2];
    char byte = 0;
    assert_int_equal(pipe(runs), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE_S); /* it ends also if the test fails */
        byte = write(runs[1], &byte, 1) == 1;
        for (;;) pause();
    }
    assert_true(child > 0);
    assert_int_equal(read(runs[0], &byte, 1), 1); /* the child has closed what it does */
    close(runs[0]);
    close(runs[1]);
    ls_links_close(l);
    ls_reach_close(r);
    for (int i = 0; i < 2; i++) {
        ls_address at;
        int fd = -1;
        assert_ls_ok(ls_address_parse(i ? place : name, &at, &e), e);
        assert_ls_ok(ls_address_listen(&at, &fd, &e), e);
        close(fd);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finds_leader),
                                       cmocka_unit_test(test_port_is_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
