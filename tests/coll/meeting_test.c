/* meeting_test.c - groups that meet where their workers have agreed to (ls_meeting). */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "coll/team.h"
#include "net/join_key.h"

/* Worker 0's socket; its port and a key reach the others over g. */
typedef struct place {
    char address[32], key[65];
    int fd;
} place;

static ls_status agree(ls_group *g, place *p, ls_error *e) {
    *p = (place){.fd = 0};
    if (ls_group_rank(g) == 0) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof at;
        p->fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(p->fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(listen(p->fd, 8), 0);
        assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &n), 0);
        snprintf(p->address, sizeof p->address, "127.0.0.1:%d", ntohs(at.sin_port));
        ls_key_make(p->key);
    }
    LS_TRY(ls_broadcast(g, p->address, sizeof p->address, LS_U8, 0, e));
    return ls_broadcast(g, p->key, sizeof p->key, LS_U8, 0, e);
}

static ls_status meet(ls_group *g, const char *transport, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    place p;
    LS_TRY(agree(g, &p, e));
    const ls_meeting m = {r, n, p.address, p.key, p.fd};
    const ls_group_options o = {.meeting = &m, .transport = transport};
    ls_group *mine = NULL;
    LS_TRY(ls_group_open(&o, &mine, e));
    if (p.fd) close(p.fd);
    int32_t one = 1 << r, sum = 0;
    ls_status s = ls_all_reduce(mine, &one, &sum, 1, LS_I32, LS_SUM, e);
    if (s == LS_OK && sum != (1 << n) - 1) s = ls_fail(e, LS_EIO, "the sum is %d", sum);
    if (s == LS_OK) s = ls_barrier(mine, e);
    ls_group_close(mine);
    return s;
}

/* Meetings of all, and of those with even and with odd ranks. */
static ls_status meet_all(ls_group *g, void *arg, ls_error *e) {
    ls_group *half = NULL;
    LS_TRY(ls_group_split(g, ls_group_rank(g) % 2, 0, &half, e));
    for (int i = 0; i < 3; i++) {
        LS_TRY(meet(g, arg, e));
        LS_TRY(meet(half, arg, e));
    }
    ls_group_close(half);
    return ls_barrier(g, e);
}

static void test_meetings(void **state) {
    (void)state;
    need_processes();
    for (int n = 1; n < 4; n++) run_processes(n, NULL, meet_all, NULL);
    run_processes(3, NULL, meet_all, "tcp");
}

static void refused(const ls_meeting *m, const char *transport, const char *message) {
    ls_group *g = NULL;
    ls_error e;
    const ls_group_options o = {.meeting = m, .transport = transport};
    assert_int_equal(ls_group_open(&o, &g, &e), LS_EINVAL);
    assert_string_equal(e.msg, message);
}

static void test_refused(void **state) {
    (void)state;
    refused(&(ls_meeting){.rank = 2, .size = 2, .address = "127.0.0.1:1"}, NULL,
            "meeting: rank 2 of 2 workers does not exist");
    refused(&(ls_meeting){.size = 2}, NULL, "meeting: address is NULL");
    refused(&(ls_meeting){.size = 2, .address = "127.0.0.1:1"}, "mpi",
            "meeting: workers meet over TCP; transport mpi is for mpirun");
    refused(&(ls_meeting){.size = 2, .address = "127.0.0.1:1", .key = "short"}, NULL,
            "meeting: the join key has 5 characters; it needs at least 16, and a good one has 64 "
            "random hex digits");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meetings),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
