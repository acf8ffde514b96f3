/* Tests of groups in processes that are forked from workers: calls are refused there, and the
 * workers' sums stay right whatever the child does. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/team.h"

enum { COUNT = 100 };

static int nconnections(void) {
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_storage a;
        socklen_t len = sizeof a;
        bool is = getpeername(fd, (struct sockaddr *)&a, &len) == 0;
        n += is && (a.ss_family == AF_INET || a.ss_family == AF_INET6);
    }
    return n;
}

static bool is_refused(ls_status s, const ls_error *e) {
    return s == LS_EINVAL && strstr(e->msg, "was forked from worker") != NULL;
}

/* What the child tries; 0: all is as it must be. */
static int child(ls_group *g, int *own, ls_request *r, bool over_tcp) {
    ls_error e = {0};
    ls_group *h = NULL;
    ls_request *started = NULL;
    int32_t x[COUNT] = {0}, y[COUNT];
    char text[64];
    bool done = false;
    if (nconnections() != 0) return 1;
    if (!is_refused(ls_all_reduce(g, x, y, COUNT, LS_I32, LS_SUM, &e), &e)) return 2;
    if (!is_refused(ls_barrier_start(g, &started, &e), &e) || started) return 3;
    if (!is_refused(ls_send(g, x, 1, LS_I32, 0, &e), &e)) return 4;
    if (!is_refused(ls_wait(&r, 1, &e), &e) || !is_refused(ls_test(&r, &done, &e), &e)) return 5;
    if (!is_refused(ls_group_dup(g, &h, &e), &e) || h) return 6;
    if (!is_refused(ls_group_explain(g, "barrier", 0, LS_I32, text, sizeof text, &e), &e)) return 7;
    void *p = ls_group_alloc(g, 1000);
    if (!p || ls_group_readable(g, p, 1000)) return 8;
    ls_group_free(g, p);
    ls_group_free(g, own); /* the parent's: nothing happens */
    ls_group_counters(g);
    ls_group_close(g);
    if (ls_group_size(g) != 3) return 9;
    const ls_group_options o = {.transport = over_tcp ? "tcp" : NULL};
    return is_refused(ls_group_open(&o, &h, &e), &e) && !h ? 0 : 10;
}

static ls_status forks(ls_group *g, void *arg, ls_error *e) {
    int rank = ls_group_rank(g), how = 0;
    int *own = ls_group_alloc(g, COUNT * sizeof *own),
        *sum = ls_group_alloc(g, COUNT * sizeof *sum);
    assert_int_equal(nconnections() > 0, *(bool *)arg);
    for (int round = 0; round < 3; round++) {
        ls_request *r = NULL;
        for (int i = 0; i < COUNT; i++) own[i] = i * round + rank;
        LS_TRY(ls_all_reduce_start(g, own, sum, COUNT, LS_I32, LS_SUM, &r, e));
        pid_t pid = rank == round ? -1 : fork(); /* the others' children act alone */
        if (pid == 0) _exit(child(g, own, r, *(bool *)arg));
        if (pid > 0) {
            assert_int_equal(waitpid(pid, &how, 0), pid);
            assert_int_equal(how, 0);
        }
        LS_TRY(ls_wait(&r, -1, e));
        for (int i = 0; i < COUNT; i++) assert_int_equal(sum[i], 3 * i * round + 3);
    }
    ls_group_free(g, own);
    ls_group_free(g, sum);
    return LS_OK;
}

static void test_children(void **state) {
    (void)state;
    need_processes();
    run_processes(3, NULL, forks, &(bool){false});
    run_processes(3, &(ls_group_options){.transport = "tcp"}, forks, &(bool){true});
}

/* A group of one shares nothing with anyone. */
static void test_alone(void **state) {
    (void)state;
    ls_group *g = NULL;
    ls_error e = {0};
    int how = 0;
    assert_ls_ok(ls_group_open(NULL, &g, &e), e);
    pid_t pid = fork();
    if (pid == 0) {
        int32_t x = 7, y = 0;
        ls_status s = ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, &e);
        ls_group_close(g);
        _exit(s == LS_OK && y == 7 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    ls_group_close(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_children),
                                       cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
