/* balance_test.c - shares for workers of different speed. */
#include "cluster/balance.h"

#include "test.h"

enum { MOST = 8 };

/* Steps in which worker w takes each[w] for a virtual worker; returns whether shares changed. */
static bool run(ls_balance *b, const double *each, int64_t from, int steps, int *first) {
    for (int64_t step = from; step < from + steps; step++) {
        for (int w = 0; w < b->n; w++)
            ls_balance_note(b, w, step, each[w] * (b->first[w + 1] - b->first[w]));
        if (ls_balance_propose(b, first)) return true;
    }
    return false;
}

static void test_equal(void **state) {
    (void)state;
    const double each[] = {1, 1.02, 0.97, 1};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    ls_balance_begin(&b, 4, 16, NULL, 0);
    assert_false(run(&b, each, 0, 100, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    ls_balance_free(&b);
}

/* One takes three times as long: told within 5 steps, and what it does is within 15% of the best.
 */
static void test_slow(void **state) {
    (void)state;
    const double each[] = {1, 1, 3, 1}, again[] = {1, 1, 1, 1};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    ls_balance_begin(&b, 4, 16, NULL, 10);
    assert_false(run(&b, again, 10, 50, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    assert_true(run(&b, each, 60, 5, first));
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
    /* It recovers: they move back. */
    ls_balance_begin(&b, 4, 16, first, 65);
    assert_true(run(&b, again, 65, 30, first));
    for (int i = 0; i < 5; i++) assert_int_equal(first[i], 4 * i);
    ls_balance_free(&b);
}

/* Speeds that change all the time don't change shares all the time. */
static void test_restless(void **state) {
    (void)state;
    int first[MOST + 1], changes = 0;
    const int *shares = NULL;
    ls_balance b = {0};
    ls_balance_begin(&b, 2, 16, NULL, 0);
    for (int64_t step = 0; step < 1000; step += 8) {
        const double each[] = {step / 8 % 2 ? 3 : 1, step / 8 % 2 ? 1 : 3};
        if (!run(&b, each, step, 8, first)) continue;
        changes++;
        shares = first;
        ls_balance_begin(&b, 2, 16, shares, step + 8);
    }
    assert_in_range(changes, 1, 15);
    ls_balance_free(&b);
}

/* With a virtual worker each there is nothing to move. */
static void test_no_choice(void **state) {
    (void)state;
    const double each[] = {1, 5};
    int first[MOST + 1];
    double factor = 0;
    ls_balance b = {0};
    ls_balance_begin(&b, 2, 2, NULL, 0);
    assert_false(run(&b, each, 0, 20, first));
    assert_int_equal(ls_balance_slow(&b, &factor), 1);
    ls_balance_begin(&b, 1, 8, NULL, 0);
    assert_false(run(&b, each, 0, 20, first));
    assert_int_equal(ls_balance_slow(&b, &factor), -1);
    ls_balance_free(&b);
}

/* What is over soon is not worth a new view. */
static void test_short_steps(void **state) {
    (void)state;
    const double each[] = {0.001, 0.002};
    int first[MOST + 1];
    ls_balance b = {0};
    ls_balance_begin(&b, 2, 8, NULL, 0);
    assert_false(run(&b, each, 0, 100, first));
    ls_balance_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),       cmocka_unit_test(test_slow),
        cmocka_unit_test(test_restless),    cmocka_unit_test(test_no_choice),
        cmocka_unit_test(test_short_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
