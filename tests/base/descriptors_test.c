/* descriptors_test.c - a low limit of open files is raised, or refused in one line. */
#include "base/descriptors.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

/* In a process with these limits: 0, the limit is `after` then; 1: refused; 2: anything else. */
static int try(rlim_t soft, rlim_t hard, rlim_t after) {
    int how = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r = {soft, hard};
        ls_error e = {0};
        if (setrlimit(RLIMIT_NOFILE, &r) != 0) _exit(3);
        ls_status s = ls_descriptors_raise(22, 40, "workers over TCP", &e);
        getrlimit(RLIMIT_NOFILE, &r);
        if (s == LS_OK) _exit(r.rlim_cur == after ? 0 : 2);
        _exit(s == LS_EINVAL && strstr(e.msg, "workers over TCP need at least 22 open files") &&
                      strstr(e.msg, "ulimit -n")
                  ? 1
                  : 2);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WEXITSTATUS(how);
}

static void test_limits(void **state) {
    (void)state;
    assert_int_equal(try(64, 64, 64), 0);
    assert_int_equal(try(40, 64, 40), 0);
    assert_int_equal(try(12, 64, 40), 0);
    assert_int_equal(try(12, 30, 30), 0);
    assert_int_equal(try(22, 22, 22), 0);
    assert_int_equal(try(21, 21, 0), 1);
    assert_int_equal(try(12, 16, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
