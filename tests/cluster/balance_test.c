/* balance_test.c - ranges for workers of different speeds, and which workers are found slow. */
#include "cluster/balance.h"

#include "test.h"

enum { MOST = 8 };

/* What the workers have reported in this view. */
static double seconds[MOST];
static int64_t steps;

static void begin(ls_balance *b, int n, int V, const int *first, int64_t step) {
    ls_balance_begin(b, n, V, first, step);
    memset(seconds, 0, sizeof seconds);
    steps = 0;
}

/* A step in which worker w takes each[w] for a virtual worker. */
static void step(ls_balance *b, const double *each) {
    steps++;
    for (int w = 0; w < b->n; w++) {
        seconds[w] += each[w] * (b->first[w + 1] - b->first[w]);
        ls_balance_note(b, w, steps, seconds[w]);
    }
}

/* Makes at most `nsteps` such steps; returns whether other ranges are proposed. */
static bool run(ls_balance *b, const double *each, int nsteps, int *first) {
    for (int i = 0; i < nsteps; i++) {
        step(b, each);
        if (ls_balance_propose(b, first)) return true;
    }
    return false;
}

/* Returns after how many steps of `each`, at most `nsteps`, worker w is found slow; 0: it is not.
 * No other worker may be found slow. */
static int steps_until_slow(ls_balance *b, const double *each, int nsteps, int w) {
    double factor = 0;
    for (int i = 1; i <= nsteps; i++) {
        step(b, each);
        int slow = ls_balance_slow(b, &factor);
        if (slow == w) return i;
        assert_int_equal(slow, -1);
    }
    return 0;
}

static void test_equal(void **state) {
    (void)state;
    const double each[] = {1, 1.02, 0.97, 1};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    begin(&b, 4, 16, NULL, 0);
    assert_false(run(&b, each, 100, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    ls_balance_free(&b);
}

/* One takes three times as long: it is found within 5 steps, and its new range is within 15% of the
 * best. */
static void test_slow(void **state) {
    (void)state;
    const double each[] = {1, 1, 3, 1}, again[] = {1, 1, 1, 1};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    begin(&b, 4, 16, NULL, 10);
    assert_false(run(&b, again, 50, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    assert_true(run(&b, each, 5, first));
    assert_int_equal(ls_balance_slow(&b, &factor), 2);
    assert_true(factor > 2.9 && factor < 3.1);
    assert_int_equal(ls_balance_slow(&b, &factor), -1); /* once */
    const int want[] = {0, 5, 10, 11, 16};
    for (int i = 0; i < 5; i++) assert_true(abs(first[i] - want[i]) <= 1);
    double longest = 0; /* 16 / (3 + 1/3) = 4.8 is the bound; whole virtual workers allow 5 */
    for (int w = 0; w < 4; w++) {
        double t = each[w] * (first[w + 1] - first[w]);
        if (t > longest) longest = t;
    }
    assert_true(longest <= 5);
    /* The worker recovers: virtual workers move back. */
    begin(&b, 4, 16, first, 65);
    assert_true(run(&b, again, 30, first));
    for (int i = 0; i < 5; i++) assert_int_equal(first[i], 4 * i);
    ls_balance_free(&b);
}

/* Speeds that change often don't change the ranges as often. */
static void test_restless(void **state) {
    (void)state;
    int first[MOST + 1], changes = 0;
    const int *shares = NULL;
    ls_balance b = {0};
    begin(&b, 2, 16, NULL, 0);
    for (int64_t at = 0; at < 1000; at += 8) {
        const double each[] = {at / 8 % 2 ? 3 : 1, at / 8 % 2 ? 1 : 3};
        if (!run(&b, each, 8, first)) continue;
        changes++;
        shares = first;
        begin(&b, 2, 16, shares, at + 8);
    }
    assert_in_range(changes, 1, 15);
    ls_balance_free(&b);
}

/* If each worker has one virtual worker, there is nothing to move. */
static void test_no_choice(void **state) {
    (void)state;
    const double each[] = {1, 5};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    begin(&b, 2, 2, NULL, 0);
    assert_false(run(&b, each, 20, first));
    assert_int_equal(ls_balance_slow(&b, &factor), 1);
    begin(&b, 1, 8, NULL, 0);
    assert_false(run(&b, each, 20, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    ls_balance_free(&b);
}

/* If steps are short, a change does not pay for a new view. */
static void test_short_steps(void **state) {
    (void)state;
    const double each[] = {0.001, 0.002};
    int first[MOST + 1];
    ls_balance b = {0};
    begin(&b, 2, 8, NULL, 0);
    assert_false(run(&b, each, 100, first));
    ls_balance_free(&b);
}

/* ---- noise ---- */

/* Milliseconds for a virtual worker, of two workers on two cores, recorded beside another process
 * that the kernel moves from core to core. */
static const double restless_host[][2] = {
    {0.27, 0.25}, {0.25, 0.25}, {0.26, 0.25}, {0.24, 0.25}, {0.54, 0.26}, {0.51, 0.25},
    {0.53, 0.24}, {0.50, 0.25}, {0.25, 0.53}, {0.26, 0.51}, {0.25, 0.56}, {0.24, 0.52},
    {0.51, 0.25}, {0.55, 0.25}, {0.52, 0.26}, {0.25, 0.52}, {0.25, 0.50}, {0.24, 0.51}};

/* At most one of two workers is found slow. */
static void test_noise_moves(void **state) {
    (void)state;
    ls_balance b = {0};
    int found[2] = {0};
    begin(&b, 2, 16, NULL, 0);
    for (size_t i = 0; i < sizeof restless_host / sizeof *restless_host; i++) {
        double factor = 0;
        step(&b, restless_host[i]);
        int slow = ls_balance_slow(&b, &factor);
        if (slow >= 0) found[slow]++;
    }
    assert_in_range(found[0] + found[1], 0, 1);
    ls_balance_free(&b);
}

/* After the slow worker gets another range, which begins a view, the other one is not found
 * slow. */
static void test_noise_moves_between_views(void **state) {
    (void)state;
    const double one[] = {3, 1}, other[] = {1, 3};
    const int first[] = {0, 4, 16};
    ls_balance b = {0};
    begin(&b, 2, 16, NULL, 0);
    assert_int_equal(steps_until_slow(&b, one, 3, 0), 3);
    begin(&b, 2, 16, first, 3);
    assert_int_equal(steps_until_slow(&b, other, 4, 1), 0);
    ls_balance_free(&b);
}

/* All workers are slower than before, since the host is. One of them is slower than the others, by
 * no fault of its own. */
static void test_noise_of_host(void **state) {
    (void)state;
    const double calm[] = {1, 1.02, 0.98}, noise[] = {3.4, 1.7, 1.8};
    ls_balance b = {0};
    begin(&b, 3, 16, NULL, 0);
    assert_int_equal(steps_until_slow(&b, calm, 20, 0), 0);
    assert_int_equal(steps_until_slow(&b, noise, 4, 0), 0);
    assert_int_equal(steps_until_slow(&b, calm, 20, 0), 0);
    ls_balance_free(&b);
}

/* A slow worker is found in three steps, whatever came before: calm, noise, or another worker that
 * was slow and recovered. A worker that becomes slow while another one is slow is found, too. */
static void test_found_soon(void **state) {
    (void)state;
    const double calm[] = {1, 1.02, 0.98, 1}, noise[] = {3.4, 1.7, 1.8, 1.7};
    const double one[] = {1, 1, 2, 1}, other[] = {1, 2, 1, 1}, both[] = {1, 2, 1, 4};
    ls_balance b = {0};
    begin(&b, 4, 16, NULL, 0);
    assert_int_equal(steps_until_slow(&b, one, 3, 2), 3);
    begin(&b, 3, 16, NULL, 0); /* forgets which worker was slow */
    begin(&b, 4, 16, NULL, 0);
    assert_int_equal(steps_until_slow(&b, calm, 20, 2), 0);
    assert_int_equal(steps_until_slow(&b, noise, 3, 2), 0);
    assert_int_equal(steps_until_slow(&b, one, 3, 2), 3);
    assert_int_equal(steps_until_slow(&b, calm, 40, 2), 0);
    assert_int_equal(steps_until_slow(&b, other, 3, 1), 3);
    assert_int_equal(steps_until_slow(&b, both, 20, 3), 3);
    ls_balance_free(&b);
}

/* Reports of different steps can't be compared: here every other step takes three times as long. */
static void test_other_steps(void **state) {
    (void)state;
    ls_balance b = {0};
    double factor = 0;
    int first[MOST + 1];
    begin(&b, 2, 16, NULL, 0);
    for (int i = 1; i < 50; i++) {
        ls_balance_note(&b, i % 2, i, i % 2 ? 2 * i + 1 : 2 * i);
        assert_int_equal(ls_balance_slow(&b, &factor), -1);
        assert_false(ls_balance_propose(&b, first));
    }
    ls_balance_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_restless),
        cmocka_unit_test(test_no_choice),
        cmocka_unit_test(test_short_steps),
        cmocka_unit_test(test_noise_moves),
        cmocka_unit_test(test_noise_moves_between_views),
        cmocka_unit_test(test_noise_of_host),
        cmocka_unit_test(test_found_soon),
        cmocka_unit_test(test_other_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
