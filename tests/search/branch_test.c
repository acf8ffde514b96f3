/* branch_test.c - branches of a run: their configs, what is refused, and the critical batch of
 * losses that are known. */
#include "search/branch.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "config/differences.h"
#include "config/relations.h"
#include "data/batches.h"
#include "folder.h"
#include "optim/learning_rate.h"
#include "test.h"

static ls_config run_with(const char *a, const char *b) {
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    assert_ls_ok(ls_config_set(&c, "data.path=x", &e), e);
    assert_ls_ok(ls_config_set(&c, "train.steps=200", &e), e);
    assert_ls_ok(ls_config_set(&c, "optim.warmup=10", &e), e);
    if (a) assert_ls_ok(ls_config_set(&c, a, &e), e);
    if (b) assert_ls_ok(ls_config_set(&c, b, &e), e);
    return c;
}

static ls_status span_of(const ls_config *c, int64_t step, int64_t samples, int64_t most,
                         ls_branch_span *s, ls_error *e) {
    const ls_branch_request q = {step, samples, most, 1000};
    return ls_branch_span_of(c, &q, s, e);
}

/* The data set has 1000 samples: an epoch has 63 steps of 16 samples, the last with 8. */
static void test_span(void **state) {
    (void)state;
    ls_error e = {0};
    ls_branch_span s;
    ls_config c = run_with(NULL, NULL);
    assert_ls_ok(span_of(&c, 100, 0, 8, &s, &e), e);
    assert_true(s.step == 100 && s.batch == 16);
    assert_int_equal(s.first, 1000 + 37 * 16);
    assert_int_equal(s.end, 3000 + 7 * 16); /* 96 of 100 steps */
    assert_ls_ok(span_of(&c, 70, 200, 8, &s, &e), e);
    assert_int_equal(s.end - s.first, 256);
    assert_int_equal(span_of(&c, 190, 0, 16, &s, &e), LS_EINVAL);
    assert_non_null(
        strstr(e.msg, "after step 190 the run has 160 samples left, and 256 are needed"));
    assert_int_equal(span_of(&c, 200, 0, 1, &s, &e), LS_EINVAL);
    c = run_with("train.batch=[[0,8],[120,16]]", NULL);
    assert_int_equal(span_of(&c, 100, 0, 2, &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "train.batch changes at step 120, within the branches"));
    assert_ls_ok(span_of(&c, 100, 160, 2, &s, &e), e);
    assert_int_equal(s.batch, 8);
}

/* All branches take the whole span, though steps at the ends of epochs have fewer samples. */
static void test_ends(void **state) {
    (void)state;
    ls_error e = {0};
    ls_branch_span s;
    ls_config c = run_with(NULL, NULL), of;
    assert_ls_ok(span_of(&c, 50, 0, 4, &s, &e), e);
    for (int64_t k = 1; k <= 4; k *= 2) {
        int64_t end = 0;
        assert_ls_ok(ls_branch_config(&c, &s, k, &of, &end, &e), e);
        const ls_batches b = ls_batches_of(&of);
        ls_batch at = ls_batches_at(&b, (uint64_t)end, 1000),
                 last = ls_batches_at(&b, (uint64_t)end - 1, 1000);
        assert_true(at.epoch * 1000 + at.first >= s.end);
        assert_true(last.epoch * 1000 + last.first < s.end);
        if (k == 1) assert_int_equal(at.epoch * 1000 + at.first, s.end);
    }
}

/* The rates of a branch are the run's at the same samples, times the root of k (sgd: k). */
static void check_rates(const char *what, const char *optimizer, double factor) {
    const ls_branch_span s = {100, 16, 1000000, 1600, 3200};
    ls_error e = {0};
    ls_config c = run_with(what, optimizer), one, four;
    int64_t end = 0;
    assert_ls_ok(ls_branch_config(&c, &s, 1, &one, &end, &e), e);
    assert_int_equal(end, 200);
    assert_null(ls_config_find_fixed(&c, &one));
    assert_ls_ok(ls_branch_config(&c, &s, 4, &four, &end, &e), e);
    assert_int_equal(end, 125);
    assert_int_equal(four.train.steps, 125);
    assert_ls_ok(ls_config_check(&four, "branch", &e), e);
    const ls_schedule x = ls_schedule_of(&one, 0), y = ls_schedule_of(&four, 0);
    for (int64_t i = 0; i < 100; i++)
        assert_true(fabs(ls_schedule_rate(&y, i) / ls_schedule_rate(&x, i) - 1) < 1e-12);
    for (int64_t i = 0; i < 25; i++)
        assert_true(
            fabs(ls_schedule_rate(&y, 100 + i) / ls_schedule_rate(&x, 100 + 4 * i) / factor - 1) <
            1e-9);
}

static void test_config(void **state) {
    (void)state;
    check_rates(NULL, NULL, 2);
    check_rates("optim.schedule=linear", "optim.optimizer=muon", 2);
    check_rates("optim.schedule=wsd", "optim.optimizer=sgd", 4);
    check_rates("optim.schedule=constant", NULL, 2);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"sync.mode=diloco", "sync.mode local and diloco: branches need the sums"},
        {"optim.schedule=step", "optim.schedule step counts steps"},
        {"optim.warmup=150",
         "must lie after a warm-up in steps or samples, which ends at step 150"},
        {"optim.warmup=1 epochs", "must lie after a warm-up in steps or samples"},
        {"train.virtual_workers=5", "a batch of 32 is not possible with train.virtual_workers 5"}};
    const ls_branch_span s = {100, 16, 1000000, 1600, 3200};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_error e = {0};
        ls_config c = run_with(bad[i][0], NULL), out;
        int64_t end = 0;
        assert_int_equal(ls_branch_config(&c, &s, 2, &out, &end, &e), LS_EINVAL);
        if (!strstr(e.msg, bad[i][1])) fail_msg("%s: %s", bad[i][0], e.msg);
    }
}

/* Losses of pieces: by steps of 3, 3 and 2 samples of a span of 8, over 32 pieces. */
static void test_read(void **state) {
    (void)state;
    static const char lines[] = "{\"step\": 4, \"gap\": [1, 4]}\n"
                                "{\"step\": 5, \"samples\": 3, \"loss\": 6.0}\n"
                                "{\"step\": 5, \"val_loss\": 6.5}\n"
                                "{\"step\": 6, \"samples\": 3, \"loss\": 4.0}\n"
                                "{\"step\": 7, \"samples\": 2, \"loss\": 1.0}\n";
    const ls_branch_span s = {4, 3, 100, 12, 20};
    ls_branch_losses l;
    ls_error e = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    assert_ls_ok(ls_file_replace(path, lines, sizeof lines - 1, &e), e);
    assert_ls_ok(ls_branch_read(folder, &s, 7, &l, &e), e);
    for (int i = 0; i < 32; i++) assert_true(l.of[i] == (i < 12 ? 6 : i < 24 ? 4 : 1));
    assert_int_equal(ls_branch_read(folder, &s, 8, &l, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "has no loss of step 8"));
}

static ls_branch_result result_of(int64_t k, double loss, double spread) {
    ls_branch_result r = {.k = k};
    for (int i = 0; i < LS_BRANCH_PIECES; i++)
        r.losses.of[i] = loss + 0.5 * sin(i) + (i % 2 ? spread : -spread) * (k > 1);
    return r;
}

static void test_critical(void **state) {
    (void)state;
    ls_branch_result r[4] = {result_of(1, 3, 0), result_of(2, 2.99, 0), result_of(4, 2.995, 0),
                             result_of(8, 3.015, 0)};
    ls_branch_compare(r, 4);
    assert_true(fabs(r[1].above + 0.01) < 1e-9 && fabs(r[2].above - 0.005) < 1e-9);
    assert_true(fabs(r[3].above - 0.025) < 1e-9 && r[3].error < 1e-9);
    ls_branch_critical c = ls_branch_find(r, 4, 0.01);
    assert_true(c.reached && c.last == 2);
    assert_true(fabs(c.k - 4 * pow(2, 0.25)) < 1e-6); /* from .005 to .025 a quarter of the way */
    assert_true(fabs(c.low - c.k) < 1e-6 && fabs(c.high - c.k) < 1e-6);
    c = ls_branch_find(r, 3, 0.01);
    assert_true(!c.reached && c.k == 4 && isinf(c.high) && c.low == 4);
    ls_branch_result wide[2] = {result_of(1, 3, 0), result_of(2, 3.02, 0.04)};
    ls_branch_compare(wide, 2);
    assert_true(fabs(wide[1].error - 0.04 / sqrt(7)) < 1e-6);
    c = ls_branch_find(wide, 2, 0.01);
    assert_true(c.low < c.k && isinf(c.high));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_read, make_folder, remove_folder),
        cmocka_unit_test(test_critical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
