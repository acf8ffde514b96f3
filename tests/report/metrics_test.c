/* metrics_test.c - metrics.jsonl is written, cut and read back; a disk that is full for a while,
 * and files that are removed. */
#include "report/metrics.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/transcript.h"
#include "folder.h"
#include "report/run_status.h"
#include "storage/checkpoint.h"
#include "test.h"

static ls_config config;
static ls_model model;
static const char *const run = folder;

static int make_run(void **state) {
    ls_config_defaults(&config);
    config.train.steps = 1000;
    config.log.every = 1000;
    return make_folder(state);
}

static ls_metrics *open_at(ls_logged logged) {
    ls_error e = {0};
    ls_metrics *m = NULL;
    assert_ls_ok(ls_metrics_open(run, &config, &model, logged, &m, &e), e);
    ls_metrics_set_view(m, 3, 4);
    return m;
}

static double loss_of(int64_t step) { return 1.0 / (double)(step + 1); }

static void step(ls_metrics *m, int64_t steps) {
    ls_error e = {0};
    ls_step_in in = {.step = steps - 1, .updates = steps - 1, .lr = 0.5, .loss_scale = 1};
    ls_step_out out = {.loss = loss_of(steps), .grad_norm = 2};
    out.batch = (ls_batch){.epoch = 1, .first = 16, .count = 8};
    ls_step_time time = {.seconds = 0.25, .data_wait_s = 0.125};
    assert_ls_ok(ls_metrics_step(m, steps, &in, &out, &time, &e), e);
}

static void evaluation(ls_metrics *m, int64_t steps) {
    ls_error e = {0};
    ls_evaluation v = ls_evaluation_of(2.0 * (double)steps, 10, 1, 1);
    assert_ls_ok(ls_metrics_evaluation(m, steps, &v, &e), e);
}

static void close_well(ls_metrics *m) {
    ls_error e = {0};
    assert_ls_ok(ls_metrics_close(m, &e), e);
}

/* The file's text, with a 0 at the end: free() it. */
static char *read_text(void) {
    ls_error e = {0};
    ls_buf b = {0};
    char *path = ls_metrics_path(run);
    assert_ls_ok(ls_file_read(path, 1 << 24, &b, &e), e);
    ls_buf_append(&b, "", 1);
    free(path);
    return b.data;
}

static int count_lines(void) {
    char *text = read_text();
    int n = 0;
    for (const char *s = text; *s; s++) n += *s == '\n';
    free(text);
    return n;
}

static int64_t integer(const ls_json *j, const char *key) {
    int64_t n = -1;
    assert_true(ls_json_integer(ls_json_get(j, key), &n));
    return n;
}

/* The rate that is shown is that of the samples that steps took: 8 of a batch of 16, at an epoch's
 * end. */
static void test_shown_rate(void **state) {
    (void)state;
    ls_error e = {0};
    ls_buf b = {0};
    char shown[48], *path = ls_format("%s/shown.txt", run);
    ls_config was = config;
    config.log.every = 1;
    config.train.batch = 16;
    ls_transcript_begin();
    ls_transcript_open(path, "begin");
    ls_metrics *m = open_at((ls_logged){0});
    ls_metrics_set_quiet(m);
    for (int i = 1; i <= 3; i++) step(m, i);
    close_well(m);
    ls_transcript_end();
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    ls_buf_append(&b, "", 1);
    snprintf(shown, sizeof shown, "  %.0f %s/s  ", 8 * ls_config_units(&config) / 0.25,
             ls_config_unit(&config));
    assert_int_equal(occurrences(b.data, shown), 3);
    assert_non_null(strstr(b.data, "left 4:09")); /* 997 steps */
    ls_buf_free(&b);
    free(path);
    config = was;
}

static void test_line(void **state) {
    (void)state;
    ls_error e = {0};
    double number = 0;
    ls_json *j = NULL;
    ls_metrics *m = open_at((ls_logged){0});
    ls_metrics_set_peak(m, 1000, 64000); /* 8 samples in a quarter of a second */
    step(m, 1);
    step(m, 1); /* repeated, with the same bits: it has its line */
    ls_metrics_use use = ls_metrics_used(m);
    assert_true(use.flops == 32000 && use.peak == 64000);
    close_well(m);
    assert_int_equal(count_lines(), 1);
    char *text = read_text();
    assert_ls_ok(ls_json_parse(text, strlen(text), "line", &j, &e), e);
    assert_int_equal(integer(j, "step"), 1);
    assert_int_equal(integer(j, "epoch"), 1);
    assert_int_equal(integer(j, "first"), 16);
    assert_int_equal(integer(j, "samples"), 8);
    assert_int_equal(integer(j, "view"), 3);
    assert_int_equal(integer(j, "workers"), 4);
    assert_true(ls_json_number(ls_json_get(j, "loss"), &number) && number == 0.5);
    assert_true(ls_json_number(ls_json_get(j, "lr"), &number) && number == 0.5);
    assert_true(ls_json_number(ls_json_get(j, "seconds"), &number) && number == 0.25);
    assert_true(ls_json_number(ls_json_get(j, "data_wait_s"), &number) && number == 0.125);
    assert_true(ls_json_number(ls_json_get(j, "mfu"), &number) && number == 0.5);
    assert_null(ls_json_get(j, "loss_scale"));
    ls_json_free(j);
    free(text);
}

/* Where the peak is not known there is no share of it. */
static void test_no_peak(void **state) {
    (void)state;
    ls_metrics *m = open_at((ls_logged){0});
    ls_metrics_set_peak(m, 0, 0);
    ls_metrics_started(m, 0, "lockstep train", 7);
    step(m, 1);
    assert_true(ls_metrics_used(m).peak == 0);
    close_well(m);
    char *text = read_text();
    assert_null(strstr(text, "mfu"));
    assert_null(strstr(text, "peak"));
    assert_non_null(strstr(text, "\"command\""));
    free(text);
}

static void test_metrics(void **state) {
    (void)state;
    ls_error e = {0};
    double number = 0;
    ls_json *j = NULL;
    ls_metrics *m = open_at((ls_logged){0});
    ls_evaluation v = {.loss = 2, .nsamples = 7, .nmetrics = 2};
    v.metrics[0] = (ls_metric_value){"accuracy", 0.75};
    v.metrics[1] = (ls_metric_value){"auc", NAN};
    assert_ls_ok(ls_metrics_evaluation(m, 3, &v, &e), e);
    close_well(m);
    char *text = read_text();
    assert_ls_ok(ls_json_parse(text, strlen(text), "line", &j, &e), e);
    assert_true(ls_json_number(ls_json_get(j, "val_accuracy"), &number) && number == 0.75);
    assert_non_null(strstr(text, "\"val_auc\": null"));
    assert_int_equal(integer(j, "val_samples"), 7);
    ls_json_free(j);
    free(text);
}

/* Steps and evaluations up to step 6 stay, the torn line is removed, and new lines follow. */
static void test_cut(void **state) {
    (void)state;
    ls_error e = {0};
    ls_logged logged = {0};
    ls_run_history h;
    ls_metrics *m = open_at(logged);
    for (int64_t i = 1; i <= 9; i++) {
        step(m, i);
        if (i % 5 == 0) evaluation(m, i);
    }
    close_well(m);
    char *path = ls_metrics_path(run);
    FILE *f = fopen(path, "a");
    fputs("{\"step\": 10, \"lo", f);
    fclose(f);
    assert_ls_ok(ls_metrics_cut(run, 6, &logged, &e), e);
    assert_int_equal(logged.step, 6);
    assert_int_equal(logged.evaluation, 5);
    assert_int_equal(count_lines(), 7);
    m = open_at(logged);
    for (int64_t i = 5; i <= 8; i++) step(m, i);
    evaluation(m, 5); /* has its line */
    close_well(m);
    assert_ls_ok(ls_history_read(run, &h, &e), e);
    assert_int_equal(h.train.n, 8);
    assert_int_equal(h.val.n, 1);
    for (size_t i = 0; i < h.train.n; i++) {
        assert_true(h.train.steps[i] == (double)(i + 1));
        assert_true(fabs(h.train.values[i] - loss_of((int64_t)i + 1)) < 1e-6);
    }
    ls_history_free(&h);
    free(path);
}

/* Lines that the disk does not accept wait in memory until it does, or until the file is closed. */
static void test_full_disk(void **state) {
    (void)state;
    ls_error e = {0};
    signal(SIGXFSZ, SIG_IGN);
    for (int recovers = 1; recovers >= 0; recovers--) {
        ls_metrics *m = open_at((ls_logged){0});
        int before = 0;
        step(m, 1);
        before = count_lines();
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){700 * (rlim_t)before, RLIM_INFINITY});
        for (int64_t i = 2; i <= 20; i++) step(m, i);
        assert_true(count_lines() < before + 19);
        if (!recovers) assert_ls_fails(ls_metrics_close(m, &e), LS_EIO, "can't be written", e);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
        if (!recovers) return;
        step(m, 21);
        close_well(m);
        assert_int_equal(count_lines(), 21);
        char *path = ls_metrics_path(run);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
}

/* A removed file is created again, and marks the missing lines. */
static void test_removed(void **state) {
    (void)state;
    ls_error e = {0};
    char *path = ls_metrics_path(run);
    ls_metrics *m = open_at((ls_logged){0});
    step(m, 1);
    step(m, 2);
    assert_int_equal(unlink(path), 0);
    assert_ls_ok(ls_metrics_repair(m, &e), e);
    step(m, 3);
    close_well(m);
    char *text = read_text();
    assert_int_equal(strncmp(text, "{\"step\": 2, \"gap\": [1, 2]}\n{\"step\": 3,", 38), 0);
    assert_int_equal(count_lines(), 2);
    free(text);
    free(path);
}

/* The line of a step whose worker was lost, from the store's note. */
static void test_missing(void **state) {
    (void)state;
    ls_error e = {0};
    ls_store_note n = {.steps = 5, .lr = 0.125, .updates = 4, .loss_scale = 1024};
    n.out = (ls_step_out){.loss = 3, .grad_norm = 1, .skipped = true};
    config.train.compute = LS_COMPUTE_F16;
    ls_metrics *m = open_at((ls_logged){.step = 4});
    assert_ls_ok(ls_metrics_missing(m, &n, &e), e);
    assert_ls_ok(ls_metrics_missing(m, &n, &e), e);
    close_well(m);
    assert_int_equal(count_lines(), 1);
    char *text = read_text();
    assert_non_null(strstr(text, "\"step\": 5,"));
    assert_non_null(strstr(text, "\"lr\": 0.125,"));
    assert_non_null(strstr(text, "\"skipped\": 1,"));
    assert_non_null(strstr(text, "\"loss_scale\": 1024"));
    assert_null(strstr(text, "data_wait_s")); /* nobody knows */
    free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_run, remove_folder)

static void make_checkpoint(int64_t step) {
    ls_error e = {0};
    char *path = ls_checkpoint_path(run, step);
    assert_ls_ok(ls_file_make_dirs(path, &e), e);
    free(path);
}

static void diverges(const char *at, const char *other, const char *advice) {
    ls_error e = {0};
    const ls_step_out out = {.loss = -(double)NAN, .grad_norm = -(double)NAN};
    char *want =
        ls_format("step 7: the loss is nan and the gradient's norm nan; lower optim.lr%s", advice);
    assert_int_equal(ls_step_diverged(at, 7, &out, other, &e), LS_EINVAL);
    assert_string_equal(e.msg, want);
    free(want);
}

/* A NaN's sign is not printed. An earlier checkpoint is mentioned where there is one. */
static void test_diverged(void **state) {
    (void)state;
    ls_error e = {0};
    const ls_step_out out = {.loss = NAN, .grad_norm = NAN};
    diverges(NULL, NULL, "");
    diverges(run, NULL, "");
    diverges(run, "stop", ", or stop");
    make_checkpoint(7);
    diverges(run, NULL, "");
    make_checkpoint(5);
    diverges(run, NULL, ", or continue from an earlier checkpoint");
    diverges(run, "stop", ", stop, or continue from an earlier checkpoint");
    assert_ls_fails(ls_step_diverged(run, 1, &out, NULL, &e), LS_EINVAL,
                    "step 1: the loss is nan and the gradient's norm nan; the data, or the weights "
                    "that the run began with, have numbers that are not finite or too large",
                    e);
}

/* A loss that diverged leaves the columns as wide as they are. */
static void test_wide_loss(void **state) {
    (void)state;
    char name[] = "run";
    const ls_run_status runs[] = {{.run = name, .loss = 196943308000000000.0, .val_loss = 2.5}};
    ls_buf out = {0};
    ls_run_status_print(runs, 1, &out);
    ls_buf_append(&out, "", 1);
    assert_non_null(strstr(out.data, " 1.96943e+17  2.5000"));
    ls_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_line),    TEST(test_shown_rate), TEST(test_diverged), TEST(test_wide_loss),
        TEST(test_metrics), TEST(test_no_peak),    TEST(test_cut),      TEST(test_full_disk),
        TEST(test_removed), TEST(test_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
