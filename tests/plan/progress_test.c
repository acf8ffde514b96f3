/* progress_test.c - which steps of a worker's lanes may begin, in lanes written by hand. */
#include "plan/progress.h"

#include "test.h"

enum { MOST = 2 * LS_PROGRESS_WINDOW };

typedef struct own_lanes {
    ls_lane_step compute[MOST], comm[MOST];
    int needs[1];
    ls_lanes l;
} own_lanes;

/* n messages that nothing holds up, and two computations of which the second needs message 2. */
static void make_lanes(own_lanes *o, int n) {
    *o = (own_lanes){.needs = {2}};
    for (int i = 0; i < n; i++) o->comm[i] = (ls_lane_step){.is_message = true, .after = -1};
    o->compute[1].end_need = 1;
    o->l = (ls_lanes){{o->compute, o->comm}, {2, n}, o->needs, 1};
}

static void begin(ls_progress *g, int step) {
    assert_int_equal(ls_progress_next(g), step);
    ls_progress_begun(g, step);
    assert_true(ls_progress_is_begun(g, step));
}

/* A message that waits for a computation holds up no other but those to the same worker. */
static void test_messages(void **state) {
    (void)state;
    own_lanes o;
    ls_progress g;
    make_lanes(&o, 4);
    o.comm[1].wait = 1;
    o.comm[3].after = 1;
    ls_progress_begin(&g, &o.l, 0);
    begin(&g, 0);
    begin(&g, 2);
    assert_int_equal(ls_progress_next(&g), -1);
    assert_true(ls_progress_may_compute(&g));
    ls_progress_computed(&g);
    assert_false(ls_progress_may_compute(&g)); /* message 2 is not complete */
    begin(&g, 1);
    begin(&g, 3);
    ls_progress_complete(&g, 2);
    assert_int_equal(g.at[LS_LANE_COMM], 0);
    assert_true(ls_progress_may_compute(&g));
    ls_progress_computed(&g);
    ls_progress_complete(&g, 0);
    assert_int_equal(g.at[LS_LANE_COMM], 1);
    ls_progress_complete(&g, 1);
    assert_int_equal(g.at[LS_LANE_COMM], 3);
    assert_false(ls_progress_is_over(&g));
    ls_progress_complete(&g, 3);
    assert_true(ls_progress_is_over(&g));
}

/* A message that passes on what another brings. */
static void test_needs(void **state) {
    (void)state;
    own_lanes o;
    ls_progress g;
    make_lanes(&o, 4);
    o.comm[3].end_need = 1;
    ls_progress_begin(&g, &o.l, 0);
    for (int i = 0; i < 3; i++) begin(&g, i);
    assert_int_equal(ls_progress_next(&g), -1);
    ls_progress_complete(&g, 2);
    begin(&g, 3);
}

/* Another communication begins when all messages before it are complete, and none passes it. */
static void test_others(void **state) {
    (void)state;
    own_lanes o;
    ls_progress g;
    make_lanes(&o, 4);
    o.comm[2] = (ls_lane_step){.own = 2, .after = -1};
    o.comm[3].own = 3;
    ls_progress_begin(&g, &o.l, 0);
    begin(&g, 0);
    begin(&g, 1);
    ls_progress_complete(&g, 1);
    assert_int_equal(ls_progress_next(&g), -1);
    ls_progress_complete(&g, 0);
    begin(&g, 2);
    assert_int_equal(ls_progress_next(&g), -1);
    ls_progress_complete(&g, 2);
    begin(&g, 3);
}

/* As many steps as the window has begin before the first is complete, and then one more. */
static void test_window(void **state) {
    (void)state;
    own_lanes o;
    ls_progress g;
    make_lanes(&o, MOST);
    ls_progress_begin(&g, &o.l, 0);
    for (int i = 0; i < LS_PROGRESS_WINDOW; i++) begin(&g, i);
    for (int i = 1; i < LS_PROGRESS_WINDOW; i++) ls_progress_complete(&g, i);
    assert_int_equal(ls_progress_next(&g), -1);
    ls_progress_complete(&g, 0);
    assert_int_equal(g.at[LS_LANE_COMM], LS_PROGRESS_WINDOW);
    for (int i = LS_PROGRESS_WINDOW; i < MOST; i++) {
        begin(&g, i);
        ls_progress_complete(&g, i);
    }
    assert_int_equal(g.at[LS_LANE_COMM], MOST);
}

/* A part of a step that was computed before stays so. */
static void test_again(void **state) {
    (void)state;
    own_lanes o;
    ls_progress g;
    make_lanes(&o, 3);
    o.comm[0].wait = 1;
    ls_progress_begin(&g, &o.l, 0);
    begin(&g, 1);
    ls_progress_begin(&g, &o.l, 1);
    for (int i = 0; i < 3; i++) begin(&g, i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_needs), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_window), cmocka_unit_test(test_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
