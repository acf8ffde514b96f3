/* target_test.c - steps to a loss: the configs of trainings, losses between evaluations, and the
 * regimes of curves that are known. */
#include "search/target.h"

#include <math.h>

#include "folder.h"
#include "optim/learning_rate.h"
#include "test.h"

static ls_config config_with(const char *what) {
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, "data.path=x", &e), e);
    assert_ls_ok(ls_config_set(&c, "train.micro_batch=2", &e), e);
    if (what) assert_ls_ok(ls_config_set(&c, what, &e), e);
    return c;
}

static void test_config(void **state) {
    (void)state;
    const ls_target t = {3, 6400};
    ls_error e = {0};
    ls_config c = config_with(NULL), to;
    assert_ls_ok(ls_target_config(&c, &t, 64, 0.5, &to, &e), e);
    assert_true(to.train.batch == 64 && to.train.steps == 100 && to.train.eval_every == 1);
    assert_true(fabs(to.optim.lr / c.optim.lr - 0.5 * 2) < 1e-12);
    ls_schedule s = ls_schedule_of(&to, 0);
    assert_int_equal(s.warmup, 10); /* a tenth of the samples: 50 steps of 16 are more */
    c = config_with("optim.warmup=50");
    assert_ls_ok(ls_target_config(&c, &t, 64, 0.5, &to, &e), e);
    s = ls_schedule_of(&to, 0);
    assert_int_equal(s.warmup, 13);
    assert_true(ls_schedule_rate(&s, 20) == ls_schedule_rate(&s, 99));
    assert_ls_ok(ls_target_config(&c, &t, 8, 1, &to, &e), e);
    assert_true(to.train.micro_batch == 1 && to.train.eval_every == 12);
    c = config_with("optim.optimizer=sgd");
    assert_ls_ok(ls_target_config(&c, &t, 64, 1, &to, &e), e);
    assert_true(fabs(to.optim.lr / c.optim.lr - 4) < 1e-12);
    c = config_with("train.batch=[[0,16],[100,32]]");
    assert_ls_ok(ls_target_config(&c, &t, 64, 1, &to, &e), e);
    assert_true(to.train.nphases == 0 && to.train.batch == 64);
}

static void test_refused(void **state) {
    (void)state;
    const ls_target t = {3, 6400}, few = {3, 100};
    ls_config c = config_with(NULL), to;
    ls_error e = {0};
    assert_int_equal(ls_target_config(&c, &t, 12, 1, &to, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "virtual_workers 8 does not divide train.batch 12"));
    assert_ls_ok(ls_target_config(&c, &few, 16, 1, &to, &e), e);
    c = config_with("optim.warmup=50");
    assert_int_equal(ls_target_config(&c, &few, 16, 1, &to, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "optim.warmup 800 samples: train.steps 7 are fewer"));
    c = config_with("sync.mode=async");
    assert_int_equal(ls_target_config(&c, &t, 16, 1, &to, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "--steps-to: not with sync.mode async"));
}

static void test_curve(void **state) {
    (void)state;
    static const char lines[] = "{\"step\": 1, \"samples\": 8, \"loss\": 6.0}\n"
                                "{\"step\": 2, \"samples\": 8, \"loss\": 5.0}\n"
                                "{\"step\": 2, \"val_loss\": 5.5}\n"
                                "{\"step\": 3, \"samples\": 8, \"loss\": 4.0}\n"
                                "{\"step\": 4, \"samples\": 8, \"loss\": 3.0}\n"
                                "{\"step\": 4, \"val_loss\": 3.5}\n";
    ls_target_curve c;
    ls_error e = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    assert_ls_ok(ls_file_replace(path, lines, sizeof lines - 1, &e), e);
    assert_ls_ok(ls_target_read(folder, 8, 4, &c, &e), e);
    assert_true(c.n == 2 && c.nsteps == 4);
    assert_true(ls_target_steps(&c, 6) == 2);
    assert_true(ls_target_steps(&c, 4) == 3.5); /* three quarters of the way from 5.5 to 3.5 */
    assert_true(isinf(ls_target_steps(&c, 3)));
    assert_true(isnan(ls_target_val(&c, 1)) && ls_target_val(&c, 3) == 5.5);
    assert_true(ls_target_train(&c, 4, 16) == 3.5 && ls_target_train(&c, 3, 8) == 4);
    assert_true(ls_target_train(&c, 99, 999) == 4.5);
    ls_target_curve_free(&c);
}

static ls_status read_lines(const char *lines, int64_t until, ls_target_curve *c, ls_error *e) {
    char path[256];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    assert_ls_ok(ls_file_replace(path, lines, strlen(lines), e), *e);
    return ls_target_read(folder, 8, until, c, e);
}

/* A training that has come further, or was evaluated twice, is as it was at its rung. */
static void test_rung(void **state) {
    (void)state;
    static const char further[] = "{\"step\": 1, \"samples\": 8, \"loss\": 6.0}\n"
                                  "{\"step\": 2, \"samples\": 8, \"loss\": 5.0}\n"
                                  "{\"step\": 2, \"val_loss\": 5.5}\n"
                                  "{\"step\": 2, \"val_loss\": 5.5}\n"
                                  "{\"step\": 3, \"samples\": 8, \"loss\": 4.0}\n"
                                  "{\"step\": 4, \"val_loss\": 3.5}\n"
                                  "{\"step\": 7, \"gap\": [4, 7]}\n";
    ls_target_curve c;
    ls_error e = {0};
    assert_ls_ok(read_lines(further, 2, &c, &e), e);
    assert_true(c.n == 1 && c.nsteps == 2);
    assert_true(isinf(ls_target_steps(&c, 4)) && ls_target_steps(&c, 5.5) == 2);
    assert_true(ls_target_train(&c, 4, 8) == 5 && ls_target_val(&c, 4) == 5.5);
    ls_target_curve_free(&c);
    assert_ls_ok(read_lines(further, 3, &c, &e), e);
    assert_true(c.n == 1 && c.nsteps == 3);
    ls_target_curve_free(&c);
    assert_int_equal(read_lines(further, 5, &c, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "metrics.jsonl: has no losses of some steps up to step 5"));
}

/* Steps = S (1 + B / 64): perfect below 16 samples, then less and less. */
static void test_regimes(void **state) {
    (void)state;
    static const int64_t batches[] = {4, 8, 16, 32, 128, 512, 2048};
    static const ls_target_regime want[] = {
        LS_REGIME_PERFECT,     LS_REGIME_PERFECT,     LS_REGIME_PERFECT,   LS_REGIME_DIMINISHING,
        LS_REGIME_DIMINISHING, LS_REGIME_DIMINISHING, LS_REGIME_STAGNATION};
    double steps[7];
    ls_target_regime got[7];
    for (int i = 0; i < 7; i++) steps[i] = 1000 * (1 + 64.0 / (double)batches[i]);
    ls_target_regimes(batches, steps, 7, got);
    for (int i = 0; i < 7; i++) assert_int_equal(got[i], want[i]);
    steps[2] = INFINITY;
    ls_target_regimes(batches, steps, 7, got);
    assert_int_equal(got[2], LS_REGIME_UNREACHED);
    assert_int_equal(got[3], LS_REGIME_DIMINISHING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_curve, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_rung, make_folder, remove_folder),
        cmocka_unit_test(test_regimes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
