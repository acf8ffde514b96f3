/* address_test.c - names that stand for several addresses, some of which lead nowhere. */
#include "net/address.h"

#include <errno.h>
#include <unistd.h>

#include "free_port.h"
#include "names.h"
#include "test.h"

static ls_status listen_at(const char *host, int port, int *fd_p, ls_error *e) {
    ls_address a = {.port = port};
    snprintf(a.host, sizeof a.host, "%s", host);
    return ls_address_listen(&a, fd_p, e);
}

static int reach(const char *host, int port) {
    const struct sockaddr_storage any = {.ss_family = AF_UNSPEC};
    struct addrinfo *list = NULL;
    assert_null(ls_address_look_up(host, port, 0, &list));
    int fd = ls_socket_reach(list, &any, 10000), why = errno;
    freeaddrinfo(list);
    errno = why;
    return fd;
}

/* No host has 192.0.2.1. */
static void test_listen(void **state) {
    (void)state;
    ls_error e = {0};
    struct sockaddr_storage at;
    char text[80];
    int fd = -1, none = -1, port = free_port();
    assert_ls_ok(listen_at("192.0.2.1+127.0.0.2", port, &fd, &e), e);
    assert_true(ls_socket_own(fd, &at));
    ls_address_text(&at, text, sizeof text);
    assert_memory_equal(text, "127.0.0.2:", 10);
    /* One that is in use is not replaced by another. */
    assert_ls_fails(listen_at("192.0.2.1+127.0.0.2+127.0.0.3", port, &none, &e), LS_EIO,
                    "Address already in use", e);
    assert_ls_fails(listen_at("192.0.2.1", port, &none, &e), LS_EIO,
                    "Cannot assign requested address", e);
    close(fd);
}

static void test_reach(void **state) {
    (void)state;
    ls_error e = {0};
    int fd = -1, port = free_port();
    assert_ls_ok(listen_at("127.0.0.2", port, &fd, &e), e);
    int to = reach("127.0.0.3+127.0.0.2", port);
    assert_true(to >= 0);
    close(to);
    close(fd);
    assert_int_equal(reach("127.0.0.3+127.0.0.2", port), -1);
    assert_int_equal(errno, ECONNREFUSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_listen), cmocka_unit_test(test_reach)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
