/* wait_test.c - ls_wait_any() and ls_wait_all(): of one group, of several, of groups that share
 * nothing, with a limit, and when a group breaks. And what group.h says of errors: none is wanted,
 * a worker is late, the group is closed. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = 5, CALLS = 5, N = 300 };

/* Buffers of CALLS sums of N ranks. */
typedef struct sums {
    int64_t in[CALLS][N], out[CALLS][N];
    ls_request *r[CALLS + 2]; /* the first and the last are NULL */
} sums;

static void start(ls_group *const *groups, int ngroups, sums *s, ls_error *e) {
    *s = (sums){0};
    for (int i = 0; i < CALLS; i++) {
        ls_group *g = groups[i % ngroups];
        for (int k = 0; k < N; k++) s->in[i][k] = ls_group_rank(g) + i;
        assert_ls_ok(
            ls_all_reduce_start(g, s->in[i], s->out[i], N, LS_I64, LS_SUM, &s->r[i + 1], e), *e);
    }
}

static void check(const sums *s, int i, int n) {
    for (int k = 0; k < N; k++) assert_int_equal(s->out[i][k], n * (n - 1) / 2 + n * i);
}

/* Every request is found once, then there are none. */
static void take_all(sums *s, int n, ls_error *e) {
    bool seen[CALLS] = {false};
    int at = 0;
    for (int i = 0; i < CALLS; i++) {
        assert_ls_ok(ls_wait_any(s->r, CALLS + 2, -1, &at, e), *e);
        assert_in_range(at, 1, CALLS);
        assert_null(s->r[at]);
        assert_false(seen[at - 1]);
        seen[at - 1] = true;
        check(s, at - 1, n);
    }
    assert_ls_ok(ls_wait_any(s->r, CALLS + 2, -1, &at, e), *e);
    assert_int_equal(at, -1);
}

static ls_status one_group(ls_group *g, void *arg, ls_error *e) {
    sums *s = LS_NEW(sums);
    ls_status statuses[CALLS + 2];
    int n = ls_group_size(g);
    (void)arg;
    start(&g, 1, s, e);
    take_all(s, n, e);
    start(&g, 1, s, e);
    memset(statuses, 0xee, sizeof statuses);
    assert_ls_ok(ls_wait_all(s->r, CALLS + 2, -1, statuses, e), *e);
    for (int i = 0; i < CALLS; i++) check(s, i, n);
    for (int i = 0; i < CALLS + 2; i++) {
        assert_null(s->r[i]);
        assert_int_equal(statuses[i], LS_OK);
    }
    start(&g, 1, s, e);
    assert_ls_ok(ls_wait_all(s->r, CALLS + 2, 60, NULL, NULL), *e);
    assert_ls_ok(ls_wait_all(s->r, CALLS + 2, 0, NULL, e), *e); /* NULLs alone */
    assert_ls_ok(ls_wait_all(NULL, 0, -1, NULL, e), *e);
    free(s);
    return LS_OK;
}

static void test_one_group(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) {
        run_threads(SIZES[s], NULL, one_group, NULL, NULL);
        run_threads(SIZES[s], &(ls_group_options){.algorithm = "ring"}, one_group, NULL, NULL);
    }
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    run_processes(3, NULL, one_group, NULL);
    run_processes(3, &(ls_group_options){.transport = "tcp", .insecure = true}, one_group, NULL);
}

/* Requests of two groups, waited for in another order at each worker. */
static ls_status two_groups(ls_group *g, void *arg, ls_error *e) {
    ls_group *groups[2] = {g};
    sums *s = LS_NEW(sums);
    (void)arg;
    assert_ls_ok(ls_group_dup(g, &groups[1], e), *e);
    start(groups, 2, s, e);
    for (int i = 0; i < CALLS / 2 && ls_group_rank(g) % 2; i++) {
        ls_request *r = s->r[1 + i];
        s->r[1 + i] = s->r[CALLS - i];
        s->r[CALLS - i] = r;
    }
    assert_ls_ok(ls_wait_all(s->r, CALLS + 2, -1, NULL, e), *e);
    for (int i = 0; i < CALLS; i++) check(s, i, ls_group_size(g));
    start(groups, 2, s, e);
    take_all(s, ls_group_size(g), e);
    free(s);
    assert_ls_ok(ls_barrier(g, e), *e);
    ls_group_close(groups[1]);
    return LS_OK;
}

static void test_two_groups(void **state) {
    (void)state;
    for (int s = 1; s < NSIZES; s++) run_threads(SIZES[s], NULL, two_groups, NULL, NULL);
    run_threads(3, &(ls_group_options){.algorithm = "ring"}, two_groups, NULL, NULL);
}

/* Groups that were opened apart: one of shared memory, one of messages. */
typedef struct pair {
    ls_group *other[3];
} pair;

static ls_status apart(ls_group *g, void *arg, ls_error *e) {
    pair *p = arg;
    int rank = ls_group_rank(g);
    sums *s = LS_NEW(sums);
    ls_request *turned[CALLS];
    ls_group *both[2] = {g, p->other[rank]};
    start(both, 2, s, e);
    for (int i = 0; i < CALLS; i++) turned[i] = s->r[1 + (rank % 2 ? CALLS - 1 - i : i)];
    assert_ls_ok(ls_wait_all(turned, CALLS, -1, NULL, e), *e);
    for (int i = 0; i < CALLS; i++) check(s, i, 3);
    free(s);
    assert_ls_ok(ls_barrier(p->other[rank], e), *e);
    ls_group_close(p->other[rank]);
    return LS_OK;
}

static void test_apart(void **state) {
    pair p;
    ls_error e = {0};
    (void)state;
    assert_ls_ok(ls_group_open_threads(3, &(ls_group_options){.algorithm = "ring"}, p.other, &e),
                 e);
    run_threads(3, NULL, apart, &p, NULL);
}

/* Worker 1 answers when it is told to: until then a limit runs out, and the calls stay. */
static ls_status limited(ls_group *g, void *arg, ls_error *e) {
    int32_t go = 1, answer = 0;
    (void)arg;
    if (ls_group_rank(g) == 1) {
        assert_ls_ok(ls_recv(g, &go, 1, LS_I32, 0, e), *e);
        return ls_send(g, &go, 1, LS_I32, 0, e);
    }
    ls_request *r[2] = {NULL, NULL};
    ls_status statuses[2];
    int at = 7;
    assert_ls_ok(ls_recv_start(g, &answer, 1, LS_I32, 1, &r[1], e), *e);
    assert_int_equal(ls_wait_any(r, 2, 0.01, &at, e), LS_EPENDING);
    assert_int_equal(at, -1);
    assert_int_equal(ls_wait_any(r, 2, 0, &at, e), LS_EPENDING);
    assert_int_equal(ls_wait_all(r, 2, 0.01, statuses, e), LS_EPENDING);
    assert_true(statuses[0] == LS_OK && statuses[1] == LS_EPENDING);
    assert_non_null(r[1]);
    assert_ls_ok(ls_send(g, &go, 1, LS_I32, 1, e), *e);
    assert_ls_ok(ls_wait_all(r, 2, 60, statuses, e), *e);
    assert_true(statuses[1] == LS_OK && answer == 1 && !r[1]);
    return LS_OK;
}

static void test_limited(void **state) {
    (void)state;
    run_threads(2, NULL, limited, NULL, NULL);
}

/* One of two groups breaks: the call of the other is done, the failed one stays and says so
 * again. */
static ls_status broken(ls_group *g, void *arg, ls_error *e) {
    ls_group *bad = ((ls_group **)arg)[ls_group_rank(g)];
    int32_t x = 1, y = 0, z = 0;
    ls_request *r[2];
    ls_status statuses[2];
    int at = 7;
    if (ls_group_rank(g) == 0) {
        assert_ls_ok(ls_all_reduce_start(bad, &x, &z, 1, LS_I32, LS_SUM, &r[0], e), *e);
        assert_ls_ok(ls_all_reduce_start(g, &x, &y, 1, LS_I32, LS_SUM, &r[1], e), *e);
        assert_int_equal(ls_wait_all(r, 2, -1, statuses, e), LS_ETIMEOUT);
        assert_non_null(strstr(e->msg, "worker 1"));
        assert_true(statuses[0] == LS_ETIMEOUT && statuses[1] == LS_OK);
        assert_true(r[0] && !r[1] && y == 2);
        assert_int_equal(ls_wait_any(r, 2, -1, &at, e), LS_ETIMEOUT);
        assert_int_equal(at, 0);
        assert_int_equal(ls_wait(r, -1, NULL), LS_ETIMEOUT); /* it stays: so does its error */
    } else
        assert_ls_ok(ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, e), *e);
    ls_status s = ls_barrier(g, e);
    ls_group_close(bad);
    return s;
}

static void test_broken(void **state) {
    ls_group *bad[2];
    ls_error e = {0};
    (void)state;
    assert_ls_ok(ls_group_open_threads(2, &(ls_group_options){.timeout_s = 0.2}, bad, &e), e);
    run_threads(2, NULL, broken, bad, NULL);
}

/* ---- after the end ---- */

/* A closed group, and its requests, are refused; the request was never done. */
static ls_status closed(ls_group *g, void *arg, ls_error *e) {
    int32_t x = 1, y = 0;
    bool done = true;
    int at = 7;
    ls_request *r = NULL, *again;
    char text[64];
    (void)arg;
    assert_ls_ok(ls_barrier(g, e), *e);
    if (ls_group_rank(g) == 0) assert_ls_ok(ls_recv_start(g, &x, 1, LS_I32, 1, &r, e), *e);
    if (ls_group_rank(g) == 1) assert_ls_ok(ls_barrier_start(g, &r, e), *e);
    again = r;
    if (r) {
        assert_ls_fails(ls_wait(&r, NAN, e), LS_EINVAL, "wait: timeout_s is not a number", *e);
        assert_ls_fails(ls_wait_any(&r, 1, NAN, &at, e), LS_EINVAL, "wait_any: timeout_s is", *e);
        assert_ls_fails(ls_wait_all(&r, 1, NAN, NULL, e), LS_EINVAL, "wait_all: timeout_s is", *e);
    }
    at = 7;
    ls_group_close(g);
    assert_ls_fails(ls_wait(&r, -1, e), LS_EINVAL, "wait: the request's group is closed", *e);
    assert_ls_fails(ls_test(&r, &done, e), LS_EINVAL, "test: the request's group is closed", *e);
    assert_ls_fails(ls_wait_any(&r, 1, -1, &at, e), LS_EINVAL, "group is closed", *e);
    assert_ls_fails(ls_wait_all(&r, 1, -1, NULL, e), LS_EINVAL, "group is closed", *e);
    assert_ptr_equal(r, again);
    assert_ls_fails(ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, e), LS_EINVAL,
                    "all_reduce: the group is closed", *e);
    assert_ls_fails(ls_send(g, &x, 1, LS_I32, 0, e), LS_EINVAL, "the group is closed", *e);
    assert_int_equal(ls_barrier(g, NULL), LS_EINVAL);
    assert_int_equal(ls_group_dup(g, &g, NULL), LS_EINVAL);
    assert_int_equal(ls_group_explain(g, "barrier", 0, LS_I32, text, sizeof text, NULL), LS_EINVAL);
    assert_null(ls_group_alloc(g, 10));
    assert_int_equal(ls_group_size(g), 2);
    ls_group_close(g); /* once more: nothing; and so does run_threads() */
    return LS_OK;
}

static void test_closed(void **state) {
    (void)state;
    run_threads(2, NULL, closed, NULL, NULL);
    run_threads(2, &(ls_group_options){.algorithm = "ring"}, closed, NULL, NULL);
    ls_group_close(NULL);
}

/* A call with no place for the error's text fails with the code alone. */
static ls_status no_error(ls_group *g, void *arg, ls_error *e) {
    int32_t x = 1, y = 0;
    ls_request *r = NULL;
    (void)arg;
    assert_int_equal(ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, NULL), LS_OK);
    assert_int_equal(ls_all_reduce(g, &x, &y, 1, LS_I32, LS_BAND, NULL), LS_OK);
    assert_int_equal(ls_all_reduce(g, &x, &y, 1, LS_F32, LS_BAND, NULL), LS_EINVAL);
    assert_int_equal(ls_all_reduce(NULL, &x, &y, 1, LS_F32, LS_SUM, NULL), LS_EINVAL);
    assert_int_equal(ls_barrier_start(g, &r, NULL), LS_OK);
    assert_int_equal(ls_wait(&r, -1, NULL), LS_OK);
    assert_int_equal(ls_wait(&r, -1, NULL), LS_OK);                          /* NULL now: done */
    if (ls_group_rank(g) == 0) assert_true(ls_barrier(g, NULL) <= LS_EPEER); /* alone */
    (void)e;
    return LS_OK;
}

/* The late worker gets LS_OK or an error from the call in which the other has timed out; its next
 * call fails. */
static ls_status late(ls_group *g, void *arg, ls_error *e) {
    atomic_int *over = arg;
    int32_t x = 1, y = 0;
    if (ls_group_rank(g) == 0) {
        ls_status s = ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, e);
        *over = 1;
        assert_int_equal(s, LS_ETIMEOUT);
        return LS_OK;
    }
    while (!*over) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ls_status s = ls_all_reduce(g, &x, &y, 1, LS_I32, LS_SUM, e);
    assert_true(s == LS_OK ? y == 2 : s <= LS_EPEER);
    assert_true(ls_barrier(g, e) <= LS_EPEER);
    return LS_OK;
}

static void test_codes_alone(void **state) {
    atomic_int over = 0;
    ls_group *g = NULL;
    (void)state;
    run_threads(2, NULL, no_error, NULL, NULL);
    run_threads(2, &(ls_group_options){.timeout_s = 0.2}, late, &over, NULL);
    assert_int_equal(ls_group_open(NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_group_open_threads(0, NULL, &g, NULL), LS_EINVAL);
    assert_int_equal(ls_run_threads(0, NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_group_open(&(ls_group_options){.timeout_s = NAN}, &g, NULL), LS_EINVAL);
    assert_int_equal(ls_group_open_threads(1, &(ls_group_options){.report_s = NAN}, &g, NULL),
                     LS_EINVAL);
}

static void test_refused(void **state) {
    ls_error e = {0};
    ls_request *r[1] = {NULL};
    int at = 0;
    (void)state;
    assert_ls_fails(ls_wait_any(NULL, 2, -1, &at, &e), LS_EINVAL, "wait_any: no requests", e);
    assert_ls_fails(ls_wait_all(r, -1, -1, NULL, &e), LS_EINVAL, "wait_all: no requests, or -1", e);
    assert_ls_fails(ls_wait_any(r, 1, -1, NULL, &e), LS_EINVAL, "no place for the index", e);
    assert_ls_fails(ls_wait(NULL, -1, &e), LS_EINVAL, "wait: no request", e);
    assert_ls_fails(ls_wait(r, NAN, &e), LS_EINVAL, "timeout_s is not a number", e);
    assert_ls_fails(ls_test(r, NULL, &e), LS_EINVAL, "no place for the answer", e);
}

/* A call that a test has found done may be waited for, and tested, again. */
static void test_null(void **state) {
    (void)state;
    ls_group *g = NULL;
    ls_request *r = NULL;
    ls_error e = {0};
    bool done = false;
    assert_ls_ok(ls_group_open(NULL, &g, &e), e);
    assert_ls_ok(ls_barrier_start(g, &r, &e), e);
    while (!done) assert_ls_ok(ls_test(&r, &done, &e), e);
    assert_null(r);
    assert_ls_ok(ls_wait(&r, -1, &e), e);
    done = false;
    assert_ls_ok(ls_test(&r, &done, &e), e);
    assert_true(done && !r);
    ls_group_close(g);
}

/* Worker 1 has read a message while there was no room for its answer, and then is in a call that
 * needs no messages: worker 0, who waits for the answer before it comes to that call, gets it. */
static ls_status owed_answer(ls_group *g, void *arg, ls_error *e) {
    enum { FULL = 16, LONG = 4000 };
    static atomic_int was_read;
    int64_t word = 7, sum = 0;
    ls_request *r = NULL;
    char *text = LS_NEW_ARRAY(char, LONG);
    (void)arg;
    if (ls_group_rank(g) == 1) {
        for (int i = 0; i < FULL; i++) LS_TRY(ls_send(g, &word, 1, LS_I64, 0, e));
        LS_TRY(ls_recv(g, text, LONG, LS_U8, 0, e));
        atomic_store(&was_read, 1);
    } else {
        LS_TRY(ls_send_start(g, text, LONG, LS_U8, 1, &r, e));
        while (!atomic_load(&was_read)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        LS_TRY(ls_wait(&r, -1, e));
        for (int i = 0; i < FULL; i++) LS_TRY(ls_recv(g, &word, 1, LS_I64, 1, e));
        atomic_store(&was_read, 0);
    }
    LS_TRY(ls_all_reduce(g, &word, &sum, 1, LS_I64, LS_SUM, e));
    free(text);
    return sum == 14 ? LS_OK : ls_fail(e, LS_EINVAL, "%lld", (long long)sum);
}

static void test_owed_answer(void **state) {
    (void)state;
    run_threads(2, &(ls_group_options){.timeout_s = 60}, owed_answer, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_group),   cmocka_unit_test(test_processes),
        cmocka_unit_test(test_two_groups),  cmocka_unit_test(test_apart),
        cmocka_unit_test(test_owed_answer), cmocka_unit_test(test_limited),
        cmocka_unit_test(test_broken),      cmocka_unit_test(test_closed),
        cmocka_unit_test(test_codes_alone), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
