/* threads_test.c - ls_run_threads(): results, errors of workers, a thread that can't be started. */
/* ctest: own-copy */
#include <pthread.h>
#include <stdatomic.h>

#include "lockstep/group.h"
#include "test.h"

/* ---- pthread_create() fails from the `fails_from`-th call on; -1: never ---- */

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static int fails_from = -1, created;

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg) {
    if (fails_from >= 0 && created++ >= fails_from) return 11; /* EAGAIN */
    return __real_pthread_create(t, a, fn, arg);
}

typedef struct job {
    int n, fails; /* workers; the one that fails, -1: none */
    atomic_int calls, lost;
} job;

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    job *j = arg;
    int rank = ls_group_rank(g);
    int64_t sum = rank;
    atomic_fetch_add(&j->calls, 1);
    assert_int_equal(ls_group_size(g), j->n);
    if (rank == j->fails) {
        snprintf(e->msg, sizeof e->msg, "worker %d has no data", rank);
        return LS_EIO;
    }
    ls_status s = ls_all_reduce(g, &sum, &sum, 1, LS_I64, LS_SUM, e);
    atomic_fetch_add(&j->lost, s == LS_EPEER);
    if (s == LS_OK) assert_int_equal(sum, j->n * (j->n - 1) / 2);
    return s;
}

static void test_sum(void **state) {
    (void)state;
    for (int n = 1; n <= 8; n++) {
        job j = {.n = n, .fails = -1};
        ls_error e = {0};
        assert_ls_ok(ls_run_threads(n, work, &j, &e), e);
        assert_ls_ok(ls_run_threads(n, work, &j, NULL), e);
        assert_int_equal(j.calls, 2 * n);
    }
}

/* The error is that of the worker that failed first, not that of those who lost it. */
static void test_failure(void **state) {
    (void)state;
    for (int n = 1; n <= 5; n++)
        for (int fails = 0; fails < n; fails++) {
            job j = {.n = n, .fails = fails};
            ls_error e = {0};
            char says[32];
            snprintf(says, sizeof says, "worker %d has no data", fails);
            assert_ls_fails(ls_run_threads(n, work, &j, &e), LS_EIO, says, e);
            assert_int_equal(j.calls, n);
            assert_int_equal(j.lost, n - 1);
        }
}

static void test_no_thread(void **state) {
    (void)state;
    for (int from = 0; from < 3; from++) {
        job j = {.n = 4, .fails = -1};
        ls_error e = {0};
        fails_from = from;
        created = 0;
        assert_ls_fails(ls_run_threads(4, work, &j, &e), LS_ENOMEM, "can't start thread", e);
        fails_from = -1;
        assert_int_equal(j.lost, j.calls); /* those that ran have ended */
    }
}

static void test_refused(void **state) {
    (void)state;
    job j = {.n = 1, .fails = -1};
    ls_error e = {0};
    assert_ls_fails(ls_run_threads(0, work, &j, &e), LS_EINVAL, "run_threads: 0 threads", e);
    assert_ls_fails(ls_run_threads(1, NULL, &j, &e), LS_EINVAL, "run_threads: work is NULL", e);
    assert_int_equal(j.calls, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_no_thread),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
