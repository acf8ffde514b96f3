/* group_test.c - collectives among workers that are threads, and among workers that are processes;
 * and what becomes of a group when one of them fails, dies or never comes. */
#include "coll/local.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/spawn.h"
#include "test.h"

enum { LARGE = LS_LOCAL_STAGE / 4 + 77 };

typedef struct setup {
    const ls_spawn *spawn;
    ls_region region;
    ls_local_shared shared;
    int n;
    double timeout_s;
    float *buffers; /* [n][LARGE] in the region */
} setup;

static void set_up(setup *s, const ls_spawn *spawn, int n) {
    ls_error e;
    *s = (setup){.spawn = spawn, .n = n, .timeout_s = 30};
    size_t buffers = (size_t)n * LARGE * sizeof(float);
    assert_ls_ok(ls_region_create(n, ls_local_shared_cost(n) + ls_region_cost(buffers),
                                  spawn->shared, &s->region, &e),
                 e);
    ls_local_share(&s->region, n, &s->shared);
    s->buffers = ls_region_take(&s->region, buffers);
}

static ls_status run(setup *s, ls_worker_main *main_fn, ls_error *e) {
    ls_launch l = {s->n, main_fn, NULL, s, &s->region};
    return s->spawn->run(&l, e);
}

static ls_status join(setup *s, int worker, ls_local *g, ls_error *e) {
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
    ls_local_join(g, &s->region, &s->shared, k, worker, s->n, s->n, s->timeout_s);
    return LS_OK;
}

/* In a worker: an error, since an assertion would not reach the parent. */
#define WANT(condition)                                                                            \
    if (!(condition)) return ls_fail(e, LS_EINVAL, "worker %d, line %d", worker, __LINE__)

static float value(int worker, size_t i) { return (float)((worker + 1) * (int)(i % 97 + 1)); }

static ls_status check_all_reduce(ls_local *g, int worker, size_t count, ls_error *e) {
    float *in = LS_NEW_ARRAY(float, count), *out = LS_NEW_ARRAY(float, count);
    for (size_t i = 0; i < count; i++) in[i] = value(worker, i);
    ls_status s = ls_local_all_reduce(g, in, out, count, e);
    if (s == LS_OK) s = ls_local_all_reduce(g, in, in, count, e); /* in place */
    for (size_t i = 0; s == LS_OK && i < count; i++) {
        float want = (float)(g->size * (g->size + 1) / 2 * (int)(i % 97 + 1)); /* exact */
        if (out[i] != want || in[i] != want)
            s = ls_fail(e, LS_EINVAL, "all-reduce of %zu: element %zu is %g, not %g", count, i,
                        (double)out[i], (double)want);
    }
    free(in);
    free(out);
    return s;
}

static ls_status collectives_main(int worker, void *arg, ls_error *e) {
    setup *s = arg;
    ls_local g;
    LS_TRY(join(s, worker, &g, e));
    for (int i = 0; i < 100; i++) { /* what one writes before a barrier, all read after */
        s->buffers[worker * LARGE] = (float)i;
        LS_TRY(ls_local_barrier(&g, e));
        for (int r = 0; r < s->n; r++) WANT(s->buffers[r * LARGE] == (float)i);
        LS_TRY(ls_local_barrier(&g, e));
    }
    static const size_t extra[] = {0, 1, 1000, LARGE};
    for (int root = 0; root < s->n; root++) {
        float *buf = LS_NEW_ARRAY(float, LARGE);
        for (size_t i = 0; i < LARGE; i++) buf[i] = worker == root ? value(root, i) : 0;
        LS_TRY(ls_local_broadcast(&g, buf, LARGE * sizeof *buf, root, e));
        for (size_t i = 0; i < LARGE; i++) WANT(buf[i] == value(root, i));
        free(buf);
    }
    WANT(ls_local_broadcast(&g, &g, 0, s->n, NULL) == LS_EINVAL);
    WANT(ls_local_broadcast(&g, &g, 0, -1, NULL) == LS_EINVAL);
    for (int i = 0; i < 4; i++) {
        size_t n = extra[i];
        float *in = LS_NEW_ARRAY(float, n), *out = LS_NEW_ARRAY(float, n *(size_t)s->n);
        for (size_t j = 0; j < n; j++) in[j] = value(worker, j);
        LS_TRY(ls_local_all_gather(&g, in, n * sizeof *in, out, e));
        for (int r = 0; r < s->n; r++)
            for (size_t j = 0; j < n; j++) WANT(out[(size_t)r * n + j] == value(r, j));
        free(in);
        free(out);
        LS_TRY(check_all_reduce(&g, worker, n, e));
    }
    for (size_t n = (size_t)s->n - 1; n <= (size_t)s->n + 1; n++)
        LS_TRY(check_all_reduce(&g, worker, n, e));
    return LS_OK;
}

static void each(void (*fn)(const ls_spawn *, int)) {
    static const int sizes[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) {
        fn(&ls_spawn_threads, sizes[i]);
        fn(&ls_spawn_processes, sizes[i]);
    }
}

static void collectives(const ls_spawn *t, int n) {
    setup s;
    ls_error e = {0};
    set_up(&s, t, n);
    assert_ls_ok(run(&s, collectives_main, &e), e);
    ls_region_close(&s.region);
}

static void test_collectives(void **state) {
    (void)state;
    each(collectives);
}

/* Worker 0 fails while the others wait for it: they end, and its error is the run's. */
static ls_status failing_main(int worker, void *arg, ls_error *e) {
    setup *s = arg;
    ls_local g;
    LS_TRY(join(s, worker, &g, e));
    LS_TRY(ls_local_barrier(&g, e));
    if (worker == 0) return ls_fail(e, LS_EINVAL, "worker 0 has had enough");
    ls_status got = ls_local_barrier(&g, e);
    return got == LS_EABORT ? got : ls_fail(e, LS_EINVAL, "got %d, not LS_EABORT", got);
}

static void failing(const ls_spawn *t, int n) {
    setup s;
    ls_error e = {0};
    set_up(&s, t, n);
    int64_t begin = ls_clock_ns();
    assert_ls_fails(run(&s, failing_main, &e), LS_EINVAL, "worker 0 has had enough", e);
    assert_true(ls_clock_ns() - begin < (int64_t)10e9); /* not the 30 s of the time limit */
    ls_region_close(&s.region);
}

static void test_failing(void **state) {
    (void)state;
    each(failing);
}

/* The last worker never comes. */
static ls_status late_main(int worker, void *arg, ls_error *e) {
    setup *s = arg;
    ls_local g;
    LS_TRY(join(s, worker, &g, e));
    LS_TRY(ls_local_barrier(&g, e));
    if (worker == s->n - 1) return LS_OK;
    return ls_local_barrier(&g, e);
}

static void late(const ls_spawn *t, int n) {
    if (n == 1) return;
    setup s;
    ls_error e = {0};
    set_up(&s, t, n);
    s.timeout_s = 0.2;
    char says[64];
    snprintf(says, sizeof says, "for worker %d (pid", n - 1);
    assert_ls_fails(run(&s, late_main, &e), LS_ETIMEOUT, says, e);
    ls_region_close(&s.region);
}

static void test_late(void **state) {
    (void)state;
    each(late);
}

static ls_status killed_main(int worker, void *arg, ls_error *e) {
    setup *s = arg;
    ls_local g;
    LS_TRY(join(s, worker, &g, e));
    LS_TRY(ls_local_barrier(&g, e));
    if (worker == s->n / 2) raise(SIGKILL);
    return ls_local_barrier(&g, e);
}

static void test_killed(void **state) {
    (void)state;
    for (int n = 1; n <= 5; n++) {
        setup s;
        ls_error e = {0};
        char says[64];
        set_up(&s, &ls_spawn_processes, n);
        snprintf(says, sizeof says, "worker %d was killed by signal 9", n / 2);
        assert_ls_fails(run(&s, killed_main, &e), LS_EPEER, says, e);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
        ls_region_close(&s.region);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
