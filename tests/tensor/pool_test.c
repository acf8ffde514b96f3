/* pool_test.c - parts cover all items once; every thread runs every job. */
#include "tensor/pool.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

static const int sizes[] = {1, 2, 3, 5, 8};

static void test_share(void **state) {
    (void)state;
    static const int64_t units[] = {1, 6, 16};
    for (int u = 0; u < 3; u++)
        for (int64_t n = 0; n <= 100; n++)
            for (int threads = 1; threads <= 9; threads++) {
                int64_t at = 0, least = n, most = 0;
                for (int t = 0; t < threads; t++) {
                    int64_t first = -1, end = -1;
                    ls_pool_share(n, units[u], t, threads, &first, &end);
                    assert_int_equal(first, at);
                    assert_true(end >= first && end <= n);
                    if (end < n) assert_int_equal(end % units[u], 0);
                    if (end - first < least) least = end - first;
                    if (end - first > most) most = end - first;
                    at = end;
                }
                assert_int_equal(at, n);
                assert_true(most - least < 2 * units[u]); /* parts differ by less than two units */
            }
}

/* More items than 32 bits can count. */
static void test_share_large(void **state) {
    (void)state;
    const int64_t n = ((int64_t)1 << 40) + 5;
    int64_t at = 0;
    for (int t = 0; t < 8; t++) {
        int64_t first = -1, end = -1;
        ls_pool_share(n, 16, t, 8, &first, &end);
        assert_int_equal(first, at);
        at = end;
    }
    assert_int_equal(at, n);
}

enum { MAX_THREADS = 8 };

typedef struct meeting {
    atomic_int came;
    int nthreads[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
} meeting;

/* Ends only once all threads are in it at the same time. */
static void meet(void *arg, int thread, int nthreads) {
    meeting *m = arg;
    m->nthreads[thread] = nthreads;
    m->threads[thread] = pthread_self();
    atomic_fetch_add(&m->came, 1);
    while (atomic_load(&m->came) < nthreads) sched_yield();
}

static void test_all_threads(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        ls_pool *p = NULL;
        ls_error e;
        meeting m = {0};
        assert_ls_ok(ls_pool_create(sizes[i], &p, &e), e);
        ls_pool_run(p, meet, &m);
        assert_int_equal(atomic_load(&m.came), sizes[i]);
        for (int t = 0; t < sizes[i]; t++) {
            assert_int_equal(m.nthreads[t], sizes[i]);
            for (int u = 0; u < t; u++) assert_false(pthread_equal(m.threads[t], m.threads[u]));
        }
        assert_true(pthread_equal(m.threads[0], pthread_self())); /* the caller is thread 0 */
        ls_pool_free(p);
    }
    ls_pool_free(NULL);
}

/* A few elements: the caller alone, once. More: some threads, then all. */
static void test_sized(void **state) {
    (void)state;
    ls_pool *p = NULL;
    ls_error e;
    assert_ls_ok(ls_pool_create(3, &p, &e), e);
    for (int64_t n = 0; n <= 1000000; n = n * 5 + 1) {
        meeting m = {0};
        int nthreads = n < 4096 ? 1 : n < 6144 ? 2 : 3;
        ls_pool_run_sized(p, n, meet, &m);
        assert_int_equal(atomic_load(&m.came), nthreads);
        assert_int_equal(m.nthreads[0], nthreads);
        assert_true(pthread_equal(m.threads[0], pthread_self()));
    }
    ls_pool_free(p);
}

/* A limit holds for ls_pool_run() alone, and until the next one. */
static void test_limit(void **state) {
    (void)state;
    static const double sizes_of[] = {0, 4095, 4096, 6144, INFINITY};
    static const int expected[] = {1, 1, 2, 3, 3};
    ls_pool *p = NULL;
    ls_error e;
    assert_ls_ok(ls_pool_create(3, &p, &e), e);
    for (int i = 0; i < 5; i++) {
        meeting limited = {0}, all = {0};
        ls_pool_limit(p, sizes_of[i]);
        ls_pool_run(p, meet, &limited);
        assert_int_equal(atomic_load(&limited.came), expected[i]);
        ls_pool_run_in(p, 3, meet, &all);
        assert_int_equal(atomic_load(&all.came), 3);
    }
    ls_pool_free(p);
}

enum { ITEMS = 64 };

/* Not atomic on purpose: all threads of a job can read what the previous job wrote. */
typedef struct table {
    int from[ITEMS], to[ITEMS];
} table;

static void shift(void *arg, int thread, int nthreads) {
    table *t = arg;
    int64_t first = 0, end = 0;
    ls_pool_share(ITEMS, 1, thread, nthreads, &first, &end);
    for (int64_t i = first; i < end; i++) t->to[i] = t->from[(i + 1) % ITEMS] + 1;
}

static void shift_back(void *arg, int thread, int nthreads) {
    table *t = arg;
    int64_t first = 0, end = 0;
    ls_pool_share(ITEMS, 1, thread, nthreads, &first, &end);
    for (int64_t i = first; i < end; i++) t->from[i] = t->to[(i + ITEMS - 1) % ITEMS] + 1;
}

static void many_jobs(int threads, int pairs, useconds_t pause_us, bool share_cores) {
    ls_pool *p = NULL;
    ls_error e;
    table t = {{0}, {0}};
    assert_ls_ok(ls_pool_create(threads, &p, &e), e);
    if (share_cores) ls_pool_share_cores(p);
    for (int i = 0; i < pairs; i++) {
        ls_pool_run(p, shift, &t);
        ls_pool_run(p, shift_back, &t);
        if (pause_us) usleep(pause_us);
    }
    ls_pool_free(p);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(t.from[i], 2 * pairs);
}

static void test_short_jobs(void **state) {
    (void)state;
    many_jobs(1, 2000, 0, false);
    many_jobs(2, 2000, 0, false);
    many_jobs(3, 1000, 0, false);
    many_jobs(8, 300, 0, false);
}

/* Trees of several levels, the last of them full or not. */
static void test_trees(void **state) {
    (void)state;
    static const int threads[] = {4, 6, 20, 21, 22, 85, 86, 256};
    for (int i = 0; i < 8; i++) many_jobs(threads[i], 20, 0, true);
}

/* Jobs of few and of many threads, one after the other. */
static void test_parts_of_a_pool(void **state) {
    (void)state;
    ls_pool *p = NULL;
    ls_error e;
    table t = {{0}, {0}};
    assert_ls_ok(ls_pool_create(22, &p, &e), e);
    ls_pool_share_cores(p);
    for (int i = 1; i <= 22; i++) {
        ls_pool_run_in(p, i, shift, &t);
        ls_pool_run_in(p, 23 - i, shift_back, &t);
    }
    ls_pool_free(p);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(t.from[i], 44);
}

/* Thread t takes t + 1 units of processor time; the caller alone one more. */
static void work(int units) {
    for (double end = ls_clock_thread_s() + 2e-3 * units; ls_clock_thread_s() < end;) {
    }
}

static void uneven(void *arg, int thread, int nthreads) {
    (void)arg, (void)nthreads;
    work(thread + 1);
}

static void test_counts(void **state) {
    (void)state;
    ls_pool *p = NULL;
    ls_error e;
    assert_ls_ok(ls_pool_create(3, &p, &e), e);
    ls_pool_run(p, uneven, NULL); /* not counted */
    ls_pool_count(p);
    ls_pool_run(p, uneven, NULL);
    work(1);
    ls_pool_run_sized(p, 1, uneven, NULL);
    ls_pool_run(p, uneven, NULL);
    work(2);
    ls_pool_counts c = ls_pool_counted(p);
    ls_pool_run(p, uneven, NULL); /* nor is this */
    ls_pool_free(p);
    assert_true(c.together >= 24e-3 && c.together < 36e-3);
    assert_true(c.longest >= 12e-3 && c.longest < 20e-3);
    assert_true(c.alone >= 8e-3 && c.alone < 14e-3);
}

/* More threads than cores: threads sleep at once, so every wait is in the kernel. */
static void test_shared_cores(void **state) {
    (void)state;
    many_jobs(2, 2000, 0, true);
    many_jobs(8, 300, 0, true);
    many_jobs(64, 100, 0, true);
    many_jobs(5, 30, 2000, true);
}

/* Helpers that have gone to sleep wake up. */
static void test_after_a_pause(void **state) {
    (void)state;
    many_jobs(2, 30, 2000, false);
    many_jobs(5, 30, 2000, false);
}

static void test_create_and_free(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        ls_pool *p = NULL;
        ls_error e;
        assert_ls_ok(ls_pool_create(1 + i % MAX_THREADS, &p, &e), e);
        ls_pool_free(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),         cmocka_unit_test(test_share_large),
        cmocka_unit_test(test_all_threads),   cmocka_unit_test(test_short_jobs),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_sized),
        cmocka_unit_test(test_after_a_pause), cmocka_unit_test(test_create_and_free),
        cmocka_unit_test(test_shared_cores),  cmocka_unit_test(test_trees),
        cmocka_unit_test(test_counts),        cmocka_unit_test(test_parts_of_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
