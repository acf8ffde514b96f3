/* clocked_test.c - the predicted step with bounded staleness. */
#include "perf/clocked.h"

#include "test.h"

static double step_s(int nworkers, int V, int64_t staleness, double slow) {
    return ls_clocked_step_s(&(ls_clocked){.nworkers = nworkers,
                                           .V = V,
                                           .staleness = staleness,
                                           .until = 200,
                                           .gradient_s = 1,
                                           .slow = slow,
                                           .update_s = 0.25});
}

static void close_to(double got, double want, double off) {
    if (got < want - off || got > want + off) fail_msg("%g s, expected %g", got, want);
}

/* Without staleness all wait for the last gradient, and for the update. */
static void test_none(void **arg) {
    (void)arg;
    close_to(step_s(1, 4, 0, 1), 4.25, 1e-9);
    close_to(step_s(4, 4, 0, 1), 1.25, 1e-9);
    close_to(step_s(3, 4, 0, 1), 2.25, 1e-9);
    close_to(step_s(4, 4, 0, 3), 3.25, 1e-9); /* three wait for the slow one */
}

/* Nobody waits: a step takes V gradients at the speed of all workers. */
static void test_some(void **arg) {
    (void)arg;
    close_to(step_s(4, 4, 1, 1), 1, 0.01); /* the update beside the next gradients */
    close_to(step_s(3, 4, 4, 1), 4. / 3, 0.02);
    close_to(step_s(4, 4, 8, 3), 4 / (3 + 1. / 3), 0.02);
    assert_true(step_s(4, 4, 1, 3) < step_s(4, 4, 0, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none), cmocka_unit_test(test_some)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
