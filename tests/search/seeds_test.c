/* seeds_test.c - when a run reaches its target, and scores without the fastest and the slowest. */
#include "search/seeds.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "test.h"

static void test_score(void **state) {
    (void)state;
    const double ten[] = {7, 100, 3, 4, 6, 5, 1, 2, 8, 9};
    const double missed[] = {3, INFINITY, 1, 2, 2.5}, two[] = {3, INFINITY, INFINITY, 2, 1};
    ls_seeds_score s;
    assert_true(ls_seeds_score_of(ten, 10, &s)); /* of 2 to 9 */
    assert_true(fabs(s.mean - 5.5) < 1e-12 && fabs(s.spread - sqrt(6)) < 1e-12);
    assert_true(ls_seeds_score_of(missed, 5, &s)); /* of 2, 2.5 and 3 */
    assert_true(fabs(s.mean - 2.5) < 1e-12 && fabs(s.spread - 0.5) < 1e-12);
    assert_false(ls_seeds_score_of(two, 5, &s));
    assert_false(ls_seeds_score_of(missed, 4, &s)); /* of fewer than five all count */
    assert_true(ls_seeds_score_of(ten + 2, 4, &s)); /* 3, 4, 6, 5 */
    assert_true(fabs(s.mean - 4.5) < 1e-12 && fabs(s.spread - sqrt(5.0 / 3)) < 1e-12);
}

/* Seconds are those of the steps up to the first evaluation that reaches the target. */
static void test_run(void **state) {
    (void)state;
    static const char lines[] = "{\"step\": 1, \"loss\": 3.0, \"seconds\": 0.5}\n"
                                "{\"step\": 2, \"loss\": 2.0, \"seconds\": 0.25}\n"
                                "{\"step\": 2, \"val_loss\": 2.5}\n"
                                "{\"step\": 3, \"loss\": 1.0, \"seconds\": 4.0}\n"
                                "{\"step\": 3, \"val_loss\": 1.5}\n";
    char dir[] = "/tmp/lockstep-seeds-XXXXXX", path[64];
    ls_goal t;
    ls_seeds_run r;
    ls_error e;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    assert_ls_ok(ls_file_replace(path, lines, sizeof lines - 1, &e), e);
    assert_ls_ok(ls_goal_read("val_loss<=2.5", &t, &e), e);
    assert_ls_ok(ls_seeds_read(dir, &t, &r, &e), e);
    assert_true(r.reached && r.steps == 2 && r.seconds == 0.75 && r.best == 1.5);
    t.value = 1;
    assert_ls_ok(ls_seeds_read(dir, &t, &r, &e), e);
    assert_true(!r.reached && r.steps == 3 && r.seconds == 4.75);
    assert_ls_ok(ls_goal_read("val_f1>=1", &t, &e), e);
    assert_int_equal(ls_seeds_read(dir, &t, &r, &e), LS_EINVAL);
    assert_ls_ok(ls_file_remove_tree(dir, &e), e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
