/* clocks_test.c - bounded staleness: who computes which gradient, of which parameters. */
#include "async/clocks.h"

#include "test.h"

static ls_clocks *open_with(int nlocal, int nguests, int V, int64_t staleness, bool drawn) {
    const ls_clocks_config o = {.nlocal = nlocal,
                                .nguests = nguests,
                                .V = V,
                                .staleness = staleness,
                                .until = 10,
                                .drawn = drawn,
                                .seed = 7};
    ls_clocks *c = NULL;
    ls_error e;
    assert_ls_ok(ls_clocks_open(&o, &c, &e), e);
    return c;
}

static ls_clocks *open(int nworkers, int V, int64_t staleness, bool drawn) {
    return open_with(nworkers, 0, V, staleness, drawn);
}

static void expect_claim(ls_clocks *c, int worker, int64_t clock, int vw, int64_t version) {
    ls_clock_task t = {0};
    assert_true(ls_clocks_has_task(c, worker));
    assert_true(ls_clocks_claim(c, worker, &t));
    assert_int_equal(t.clock, clock);
    assert_int_equal(t.vw, vw);
    assert_int_equal(t.version, version);
    assert_int_equal(t.cell, clock % (c->staleness + 1) * c->V + vw);
}

static void complete(ls_clocks *c, int worker, int64_t clock, int vw) {
    const ls_clock_task t = {
        .clock = clock, .vw = vw, .cell = (int)(clock % (c->staleness + 1)) * c->V + vw};
    assert_int_equal(ls_clocks_find(c, clock, vw), -1);
    ls_clocks_complete(c, worker, &t);
    assert_int_equal(ls_clocks_find(c, clock, vw), t.cell);
}

static bool never(void *arg) {
    (void)arg;
    return false;
}

static bool always(void *arg) {
    (void)arg;
    return true;
}

static void step(ls_clocks *c, int64_t version) {
    ls_clocks_begin_change(c, never, NULL);
    ls_clocks_end_change(c, version);
}

/* Workers run ahead by the staleness and no further; each gradient has one worker. */
static void test_order(void **arg) {
    (void)arg;
    ls_clocks *c = open(2, 2, 1, false);
    assert_false(ls_clocks_has_task(c, 0)); /* there are no parameters yet */
    step(c, 0);
    expect_claim(c, 0, 0, 0, 0);
    expect_claim(c, 1, 0, 1, 0);
    complete(c, 0, 0, 0);
    expect_claim(c, 0, 1, 0, 0); /* clock 1 begins while worker 1 is at clock 0 */
    complete(c, 0, 1, 0);
    expect_claim(c, 0, 1, 1, 0);
    complete(c, 0, 1, 1);
    assert_false(ls_clocks_has_task(c, 0)); /* clock 2 needs version 1 */
    complete(c, 1, 0, 1);
    assert_false(ls_clocks_has_task(c, 1));
    step(c, 1);
    expect_claim(c, 1, 2, 0, 1);
    assert_int_equal(ls_clocks_find(c, 1, 0), 2); /* the next step's are still there */
    ls_clocks_close(c);
}

/* The successor of a killed worker begins with the gradient that the killed one has claimed. */
static void test_successor(void **arg) {
    (void)arg;
    ls_clocks *c = open(3, 2, 2, false);
    step(c, 0);
    expect_claim(c, 0, 0, 0, 0);
    expect_claim(c, 1, 0, 1, 0);
    expect_claim(c, 2, 1, 0, 0);
    assert_true(ls_clocks_begin_read(c, 1, 0));
    ls_clocks_succeed(c, 1);
    step(c, 0); /* does not wait for the killed worker's read */
    expect_claim(c, 1, 0, 1, 0);
    complete(c, 1, 0, 1);
    expect_claim(c, 1, 1, 1, 0);
    ls_clocks_close(c);
}

/* What a worker of another host has begun is free for others once it has gone; what it has
 * completed stays. */
static void test_guests(void **arg) {
    (void)arg;
    int first = -1, second = -1, third = -1;
    ls_clocks *c = open_with(1, 2, 2, 1, false);
    step(c, 0);
    assert_true(ls_clocks_enter(c, &first));
    assert_true(ls_clocks_enter(c, &second));
    assert_false(ls_clocks_enter(c, &third));
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    expect_claim(c, first, 0, 0, 0);
    complete(c, first, 0, 0);
    expect_claim(c, first, 0, 1, 0);
    expect_claim(c, second, 1, 0, 0);
    expect_claim(c, 0, 1, 1, 0);
    assert_true(ls_clocks_begin_read(c, first, 0));
    ls_clocks_leave(c, first);
    step(c, 0); /* does not wait for its read */
    complete(c, 0, 1, 1);
    expect_claim(c, 0, 0, 1, 0);
    assert_int_equal(ls_clocks_find(c, 0, 0), 0);
    assert_true(ls_clocks_enter(c, &third));
    assert_int_equal(third, first);
    assert_false(ls_clocks_has_task(c, third));
    ls_clocks_close(c);
}

/* Where all workers are lost, a read never ends, and is not waited for. */
static void test_lost_reader(void **arg) {
    (void)arg;
    ls_clocks *c = open(1, 1, 1, false);
    step(c, 0);
    assert_true(ls_clocks_begin_read(c, 0, 0));
    ls_clocks_begin_change(c, always, NULL);
    ls_clocks_end_change(c, 1);
    ls_clocks_close(c);
}

static void test_last(void **arg) {
    (void)arg;
    ls_clocks *c = open(1, 1, 3, false);
    step(c, 8);
    expect_claim(c, 0, 8, 0, 5);
    complete(c, 0, 8, 0);
    expect_claim(c, 0, 9, 0, 6);
    complete(c, 0, 9, 0);
    assert_false(ls_clocks_has_task(c, 0)); /* the run has 10 steps */
    ls_clocks_close(c);
}

/* The newest parameters are read at their own version alone. */
static void test_reads(void **arg) {
    (void)arg;
    ls_clocks *c = open(1, 1, 1, false);
    assert_false(ls_clocks_begin_read(c, 0, 0));
    step(c, 3);
    assert_false(ls_clocks_begin_read(c, 0, 2));
    assert_true(ls_clocks_begin_read(c, 0, 3));
    ls_clocks_end_read(c, 0);
    ls_clocks_begin_change(c, never, NULL);
    assert_false(ls_clocks_begin_read(c, 0, 3));
    ls_clocks_end_change(c, 4);
    ls_clocks_close(c);
}

/* Staleness is drawn evenly from 0 to the most, whatever the number of workers. */
static void test_drawn(void **arg) {
    (void)arg;
    enum { CLOCKS = 4000, MOST = 3 };
    ls_clocks *a = open(1, 2, MOST, true), *b = open(9, 2, MOST, true);
    int times[MOST + 1] = {0};
    for (int64_t clock = 0; clock < CLOCKS; clock++)
        for (int vw = 0; vw < 2; vw++) {
            int64_t version = ls_clocks_version_of(a, clock, vw);
            assert_int_equal(ls_clocks_version_of(b, clock, vw), version);
            assert_true(version >= 0 && version <= clock && clock - version <= MOST);
            if (clock >= MOST) times[clock - version]++;
        }
    for (int s = 0; s <= MOST; s++) assert_true(times[s] > 1850 && times[s] < 2150);
    ls_clocks_close(a);
    ls_clocks_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_successor),
        cmocka_unit_test(test_guests), cmocka_unit_test(test_lost_reader),
        cmocka_unit_test(test_last),   cmocka_unit_test(test_reads),
        cmocka_unit_test(test_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
