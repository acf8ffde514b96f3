/* ranges_test.c - ranges of virtual workers follow the times that workers have noted. */
#include "train/ranges.h"

#include "test.h"
#include "train/layout.h"

enum { N = 2, V = 8, SLOW = 1, STEPS = 40 };

typedef struct setup {
    ls_config config;
    ls_layout layout;
    ls_board *board;
    ls_ranges ranges;
    ls_ranges_view view;
} setup;

static void set_up(setup *s, const char *balance, const char *limit) {
    ls_error e = {0};
    *s = (setup){0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &s->config, &e), e);
    assert_ls_ok(ls_config_set(&s->config, balance, &e), e);
    assert_ls_ok(ls_config_set(&s->config, limit, &e), e);
    assert_ls_ok(ls_layout_make(&s->config, N, NULL, &s->layout, &e), e);
    assert_int_equal(s->layout.plan.share.V, V);
    assert_ls_ok(ls_board_open(N, &s->board, &e), e);
    s->view = (ls_ranges_view){.plan = &s->layout.plan, .board = s->board, .number = 1};
}

static void tear_down(setup *s) {
    ls_ranges_free(&s->ranges);
    ls_board_close(s->board);
    ls_layout_free(&s->layout);
}

/* Makes steps in which SLOW takes `factor` times as long for a virtual worker. Returns the number
 * of steps until the ranges request a new view; 0: they don't. */
static int run(setup *s, int factor) {
    static const long long each_ns = 1000000;
    for (int i = 1; i <= STEPS; i++) {
        for (int w = 0; w < N; w++) {
            long long n = s->ranges.now ? s->ranges.now[w + 1] - s->ranges.now[w] : V / N;
            ls_board_slot *slot = &s->board->slots[w];
            atomic_store(&slot->compute_ns, i * n * each_ns * (w == SLOW ? factor : 1));
            atomic_store(&slot->measured, i);
        }
        s->view.steps = i;
        if (ls_ranges_look(&s->ranges, &s->config, &s->view)) return i;
    }
    return 0;
}

/* A new view with as many workers retains the ranges that were found; one with another number has
 * even ranges. */
static void test_follow(void **state) {
    (void)state;
    setup s;
    set_up(&s, "survival.balance=auto", "survival.slow_limit=0");
    assert_int_equal(run(&s, 1), 0);
    tear_down(&s);
    set_up(&s, "survival.balance=auto", "survival.slow_limit=0");
    assert_int_not_equal(run(&s, 3), 0);
    assert_null(s.ranges.now);
    assert_false(ls_ranges_look(&s.ranges, &s.config, &s.view)); /* it is requested once */
    ls_ranges_begin(&s.ranges, true);
    assert_non_null(s.ranges.now);
    assert_int_equal(s.ranges.now[0], 0);
    assert_int_equal(s.ranges.now[1], 6);
    assert_int_equal(s.ranges.now[2], V);
    s.view.number++;
    assert_int_equal(run(&s, 3), 0);
    ls_ranges_begin(&s.ranges, false);
    assert_null(s.ranges.now);
    tear_down(&s);
}

static void test_off(void **state) {
    (void)state;
    setup s;
    set_up(&s, "survival.balance=off", "survival.slow_limit=2");
    assert_int_equal(run(&s, 3), 0);
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
