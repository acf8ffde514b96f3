/* epoll_test.c - workers over TCP on kernels without epoll_pwait2(), and on which epoll fails: a
 * filter of system calls answers in the kernel's place.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "coll/call_record.h"
#include "coll/team.h"

enum { COUNT = 100000 };

/* What a worker's kernel answers to a system call. */
typedef struct refusal {
    long call;
    int error;
} refusal;

static bool refuse(const refusal *r) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)r->call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)r->error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

/* Worker 0 enters the barrier when it has seen worker 1 sleep there. */
static ls_status calls(ls_group *g, ls_error *e) {
    static float x[COUNT];
    int32_t other = ls_group_rank(g) ? getpid() : 0;
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 7);
    LS_TRY(ls_all_reduce(g, x, x, COUNT, LS_F32, LS_SUM, e));
    for (int i = 0; i < COUNT; i++)
        if (x[i] != (float)(i % 7 * 2)) return ls_fail(e, LS_EIO, "element %d is %g", i, x[i]);
    LS_TRY(ls_all_reduce(g, &other, &other, 1, LS_I32, LS_MAX, e));
    bool sleeps = ls_group_rank(g) == 1;
    for (int i = 0; i < 60000 && !sleeps; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        sleeps = strcmp(ls_process_state(other), "sleeping") == 0;
    }
    if (!sleeps) return ls_fail(e, LS_EIO, "worker 1 never sleeps while it waits");
    return ls_barrier(g, e);
}

static int worker(void *arg) {
    ls_group_options o = {.transport = "tcp", .timeout_s = 120};
    ls_group *g = NULL;
    ls_error e = {0};
    ls_status s = refuse(arg) ? ls_group_open(&o, &g, &e)
                              : ls_fail(&e, LS_EIO, "no filter: %s", strerror(errno));
    if (s == LS_OK) s = calls(g, &e);
    if (s != LS_OK) fprintf(stderr, "%s\n", e.msg);
    ls_group_close(g);
    return s == LS_OK ? 0 : 1;
}

static void test_without_pwait2(void **state) {
    (void)state;
    refusal refused[] = {{SYS_epoll_pwait2, ENOSYS}, {SYS_epoll_pwait2, EPERM}};
    for (int i = 0; i < 2; i++) {
        ls_launch_options l = {.nworkers = 2, .main = worker, .arg = &refused[i]};
        l.arena_nbytes = (size_t)16 << 20;
        ls_error e = {0};
        int code = 0;
        assert_ls_ok(ls_launch_run(&l, &code, &e), e);
        assert_int_equal(code, 0);
    }
}

static int failing_worker(void *arg) {
    ls_group_options o = {.transport = "tcp", .timeout_s = 120};
    ls_group *g = NULL;
    ls_error e = {0};
    if (!refuse(arg)) return 1;
    ls_status s = ls_group_open(&o, &g, &e);
    if (s == LS_OK) s = ls_barrier(g, &e);
    ls_group_close(g);
    const char *why = strerror(((const refusal *)arg)->error);
    bool reported =
        s == LS_EIO && strstr(e.msg, "can't wait for messages: epoll: ") && strstr(e.msg, why);
    if (!reported) fprintf(stderr, "not reported: %d %s\n", (int)s, e.msg);
    return reported ? 0 : 1;
}

static void test_broken_epoll(void **state) {
    (void)state;
    refusal refused[] = {{SYS_epoll_pwait2, ENOMEM}, {SYS_epoll_ctl, ENOSPC}};
    for (int i = 0; i < 2; i++) {
        ls_launch_options l = {.nworkers = 2, .main = failing_worker, .arg = &refused[i]};
        l.arena_nbytes = (size_t)16 << 20;
        ls_error e = {0};
        int code = 0;
        assert_ls_ok(ls_launch_run(&l, &code, &e), e);
        assert_int_equal(code, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_pwait2),
        cmocka_unit_test(test_broken_epoll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
