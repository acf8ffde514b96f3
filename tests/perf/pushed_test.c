/* pushed_test.c - the predicted time between two steps with parameter servers. */
#include "perf/pushed.h"

#include "test.h"

static void expect(ls_pushed k, double want) {
    double got = ls_pushed_step_s(&k);
    if (got < want - 1e-9 || got > want + 1e-9) fail_msg("%g s, expected %g", got, want);
}

/* Without servers of their own, a worker gives a gradient and a whole update for each step. */
static void test_workers(void **arg) {
    (void)arg;
    expect((ls_pushed){.nworkers = 1, .gradient_s = 1, .update_s = 0.25}, 1.25);
    expect((ls_pushed){.nworkers = 5, .gradient_s = 1, .update_s = 0.25}, 0.25);
}

/* Servers of their own are the limit when there are many workers. */
static void test_servers(void **arg) {
    (void)arg;
    expect((ls_pushed){.nworkers = 2, .nservers = 1, .gradient_s = 1, .update_s = 0.5}, 0.75);
    expect((ls_pushed){.nworkers = 20, .nservers = 1, .gradient_s = 1, .update_s = 0.5}, 0.5);
    expect((ls_pushed){.nworkers = 20, .nservers = 2, .gradient_s = 1, .update_s = 0.5}, 0.25);
}

static void test_link(void **arg) {
    (void)arg;
    const ls_pushed k = {.nworkers = 4, .gradient_s = 1, .update_s = 0, .link_s = 0.2};
    expect(k, 0.25);
    expect((ls_pushed){.nworkers = 8, .gradient_s = 1, .update_s = 0, .link_s = 0.2}, 0.2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workers),
                                       cmocka_unit_test(test_servers), cmocka_unit_test(test_link)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
