/* no_affinity_test.c - the cores where a sandbox does not say which ones this process may use. */
#include "base/cores.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

/* Replaces that of the C library. */
int sched_getaffinity(pid_t pid, size_t nbytes, cpu_set_t *set) {
    (void)pid, (void)nbytes, (void)set;
    errno = ENOSYS;
    return -1;
}

static void test_cores(void **state) {
    (void)state;
    char memory[64];
    int worker[4] = {0};
    ls_cores_seen seen;
    alarm(240); /* if it hangs */
    assert_int_equal(ls_cores(), sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(ls_cores_unbound(), ls_cores());
    assert_int_equal(ls_cores_among(1), ls_cores());
    assert_int_equal(ls_cores_nodes(), 1);
    assert_false(ls_cores_divide(1, 1, worker));
    assert_false(ls_cores_interleave(memory, sizeof memory));
    ls_cores_see(&seen);
    assert_int_equal(seen.n, ls_cores());
    ls_cores_bind_worker(0, 1, 1);
    ls_cores_bind_thread(0, 1, 1, 0);
    ls_cores_bind(0, 1);
    ls_cores_unbind();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
