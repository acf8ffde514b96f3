/* phases_test.c - train.batch as a list, optim.warmup with a unit, and train.epochs: read, refused,
 * written. */
#include "config/phases.h"

#include <stdlib.h>
#include <unistd.h>

#include "config/differences.h"
#include "config/relations.h"
#include "config/write_config.h"
#include "test.h"

static const char *const base[] = {"data.path=LICENSE"};

static ls_status read_text(const char *text, ls_config *c, ls_error *e) {
    char path[] = "/tmp/lockstep-phases-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_status s = ls_config_load(path, base, 1, c, e);
    unlink(path);
    return s;
}

static void assert_phases(const ls_config *c) {
    assert_int_equal(c->train.nphases, 2);
    assert_int_equal(c->train.batch, 128);
    assert_true(c->train.phases[0].step == 0 && c->train.phases[0].batch == 64);
    assert_true(c->train.phases[1].step == 2000 && c->train.phases[1].batch == 128);
}

static void test_read(void **state) {
    (void)state;
    ls_config c, again;
    ls_error e = {0};
    char *note = NULL;
    assert_ls_ok(read_text("train:\n  batch: [[0, 64],\n    [2000, 128]]\n", &c, &e), e);
    assert_phases(&c);
    ls_buf text = {0};
    ls_config_write(&c, &text);
    assert_non_null(strstr(text.data, "batch: [["));
    assert_null(strstr(text.data, "batch: 128"));
    assert_ls_ok(read_text(text.data, &again, &e), e);
    assert_phases(&again);
    ls_buf_free(&text);
    assert_ls_ok(ls_config_set(&again, "train.batch=[[0,64],[2000,128]]", &e), e);
    assert_ls_ok(ls_config_compatible(&c, &again, &note, &e), e);
    assert_ls_ok(ls_config_set(&again, "train.batch=[[0,64],[1000,128]]", &e), e);
    assert_int_equal(ls_config_compatible(&c, &again, &note, &e), LS_EINVAL);
    assert_ls_ok(ls_config_set(&again, "train.batch=32", &e), e);
    assert_true(again.train.nphases == 0 && again.train.batch == 32 && !*again.train.phased.text);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"[]", "is neither a number nor a list of 1 to 16 pairs"},
        {"{a: 1}", "is neither a number nor a list of 1 to 16 pairs"},
        {"[64]", "pairs of a step and a batch, e.g. [[0, 64], [2000, 128]]"},
        {"[[0, 64, 3]]", "pairs of a step and a batch"},
        {"[[0, -64]]", "pairs of a step and a batch"},
        {"[[0, a]]", "pairs of a step and a batch"},
        {"[[0, 99999999999999999999]]", "pairs of a step and a batch"},
        {"[[0, 0]]", "0 is out of range; expected 1 to 1048576"},
        {"[[5, 64]]", "begins at step 0, not 5"},
        {"[[0, 64], [9, 128], [9, 256]]", "step 9 follows step 9; list them in order"},
        {"[[0, 64], [9, 12]]",
         "virtual_workers 8 does not divide train.batch 12; a batch of 8 or 16 works, or "
         "train.virtual_workers 4"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_config c;
        ls_error e = {0};
        char text[256];
        snprintf(text, sizeof text, "train:\n  virtual_workers: 8\n  batch: %s\n", bad[i][0]);
        assert_int_equal(read_text(text, &c, &e), LS_EINVAL);
        if (!strstr(e.msg, bad[i][1])) fail_msg("%s: %s", bad[i][0], e.msg);
    }
    ls_config c;
    ls_error e = {0};
    assert_int_equal(read_text("train:\n  batch: 8\n  batch: [[0, 8]]\n", &c, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "twice"));
}

static void test_warmup(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double n;
        ls_span_unit unit;
    } good[] = {{"100", 100, LS_SPAN_STEPS},         {"1e2", 100, LS_SPAN_STEPS},
                {"7 steps", 7, LS_SPAN_STEPS},       {"2000 samples", 2000, LS_SPAN_SAMPLES},
                {"0.5 epochs", 0.5, LS_SPAN_EPOCHS}, {"auto", LS_AUTO, LS_SPAN_STEPS}};
    static const char *const bad[] = {"",     "some",        "5 days",     "-1",  "1.5",
                                      "1e99", "0.5 samples", "nan epochs", "1 2", "epochs"};
    ls_config c, again;
    ls_error e = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[64];
        ls_buf out = {0};
        snprintf(text, sizeof text, "optim: {warmup: %s}\n", good[i].text);
        assert_ls_ok(read_text(text, &c, &e), e);
        assert_true(c.optim.warmup.n == good[i].n && c.optim.warmup.unit == (int64_t)good[i].unit);
        ls_config_write(&c, &out);
        assert_ls_ok(read_text(out.data, &again, &e), e);
        assert_null(ls_config_find_fixed(&c, &again));
        ls_buf_free(&out);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        snprintf(text, sizeof text, "optim.warmup=%s", bad[i]);
        assert_int_equal(ls_config_set(&c, text, &e), LS_EINVAL);
        assert_non_null(strstr(e.msg, "--set: optim.warmup: "));
    }
}

/* The usual warm-up never is longer than the run; saved as 50, it is the same where it is 50. */
static void test_usual_warmup(void **state) {
    (void)state;
    static const int64_t rows[][2] = {{1, 0}, {9, 0}, {10, 1}, {499, 49}, {500, 50}, {90000, 50}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ls_config c, saved;
        ls_error e = {0};
        char text[64];
        snprintf(text, sizeof text, "train: {steps: %lld}\n", (long long)rows[i][0]);
        assert_ls_ok(read_text(text, &c, &e), e);
        assert_true(ls_config_warmup(&c).n == (double)rows[i][1]);
        saved = c;
        saved.optim.warmup.n = 50;
        assert_true((ls_config_find_fixed(&saved, &c) == NULL) == (rows[i][1] == 50));
    }
}

/* ---- train.epochs ---- */

static void test_epochs(void **state) {
    (void)state;
    ls_config c, saved;
    ls_error e = {0};
    ls_buf out = {0};
    assert_ls_ok(read_text("train: {epochs: 2.5}\noptim: {warmup: 60}\n", &c, &e), e);
    assert_true(c.train.epochs == 2.5 && c.train.steps == 0);
    c.train.steps = 70;
    ls_config_write(&c, &out);
    assert_ls_ok(read_text(out.data, &saved, &e), e);
    assert_true(saved.train.epochs == 2.5 && saved.train.steps == 70);
    ls_buf_free(&out);
    assert_ls_ok(ls_config_set(&saved, "train.steps=9", &e), e);
    assert_true(saved.train.epochs == 0 && saved.train.steps == 9);
    assert_ls_ok(ls_config_set(&saved, "train.epochs=1", &e), e);
    assert_true(saved.train.epochs == 1 && saved.train.steps == 0);
    assert_ls_ok(ls_config_set(&saved, "train.epochs=0", &e), e);
    assert_true(saved.train.epochs == 0 && saved.train.steps == 1000);
    assert_ls_fails(read_text("train: {epochs: 2, steps: 9}\n", &c, &e), LS_EINVAL,
                    "train.epochs and train.steps both say how long the run is", e);
}

/* Left out, they are the largest number up to 8 that divides each batch. */
static void test_virtual_workers(void **state) {
    (void)state;
    static const struct {
        const char *batch;
        int64_t expected;
    } cases[] = {{"16", 8},
                 {"8", 8},
                 {"24", 8},
                 {"12", 6},
                 {"10", 5},
                 {"4", 4},
                 {"13", 1},
                 {"1", 1},
                 {"[[0, 12], [5, 16]]", 4},
                 {"16, micro_batch: 4", 4},
                 {"12, micro_batch: 4", 3},
                 {"24, micro_batch: 3", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        ls_config c;
        ls_error e = {0};
        snprintf(text, sizeof text, "train: {batch: %s}\n", cases[i].batch);
        assert_ls_ok(read_text(text, &c, &e), e);
        assert_int_equal(c.train.virtual_workers, cases[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_virtual_workers),
                                       cmocka_unit_test(test_warmup),
                                       cmocka_unit_test(test_usual_warmup),
                                       cmocka_unit_test(test_epochs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
