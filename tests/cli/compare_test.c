/* compare_test.c - lockstep compare: runs that must be equal and are, that need not be, and that
 * have parted, at a known step. */
/* ctest: seconds=5 */
#include "program.h"
#include "report/frame_check.h"

#define TRAIN                                                                                      \
    "train configs/tiny.yaml -o @/%s --set train.steps=10 --set checkpoint.every=6 "               \
    "--set checkpoint.keep=9 " SMALLER

static void train(const char *name, const char *more) { expectf(0, NULL, TRAIN "%s", name, more); }

/* The run `name` then claims to have the config of @/a. */
static void take_config(const char *name) {
    char path[2][128];
    ls_buf text = {0};
    ls_error e = {0};
    snprintf(path[0], sizeof path[0], "%s/a/config.yaml", folder);
    snprintf(path[1], sizeof path[1], "%s/%s/config.yaml", folder, name);
    assert_ls_ok(ls_file_read(path[0], 1 << 20, &text, &e), e);
    assert_ls_ok(ls_file_replace(path[1], text.data, text.len, &e), e);
    ls_buf_free(&text);
}

static int make_runs(void **state) {
    if (folder_make(state)) return -1;
    train("a", "-n 1");
    train("b", "-n 2 --set parallel.zero=3");
    train("seed", "--set train.seed=2");
    train("lr", "--set optim.min_lr=1e-4"); /* rates differ after the 5 steps of the warm-up */
    return 0;
}

static void test_same(void **state) {
    (void)state;
    expect("compare @/a @/b", 0,
           "b: the same bits as a, as it must be: 10 steps and 2 checkpoints");
    expect("compare @/a @/b", 0, "parallel.zero");
    expect("compare @/a @/a", 0, "the configs are equal");
    expect("compare @/a @/b --json", 0, "\"must_match\": true, \"same\": true, \"lines\": 10");
}

static void test_other(void **state) {
    (void)state;
    expect("compare @/a @/seed", 0, "b: need not have the bits of a (keys differ that affect the");
    expect("compare @/a @/seed", 0, "; the loss of step 1 is ");
    expect("compare @/a @/b @/seed", 0, "c: need not have the bits of a");
    expect("compare @/a @/seed --json", 0,
           "{\"key\": \"train.seed\", \"values\": [\"1\", \"2\"], \"bits\": true}");
}

/* The first step whose rate differs is the 7th, in which the decay begins: it changes the weights
 * after this step, and the loss of the 8th. */
static void test_parted(void **state) {
    (void)state;
    take_config("lr");
    take_config("seed");
    expect("compare @/a @/lr", 1,
           "b: PARTED from a, though it must have the same bits; the loss of step 8");
    expect("compare @/a @/lr", 1,
           "the checkpoints of step 6 are equal; in the checkpoints of step 10, ");
    expect("compare @/a @/lr", 1, " tensors differ, the first is ");
    expect("compare @/a @/lr --json", 1, "\"equal\": 6, \"differ\": 10");
    expect("compare @/a @/seed", 1, "the loss of step 1 is ");
    expect("compare @/a @/b @/seed --json", 1, "\"must_match\": true, \"same\": false");
}

static void test_curves(void **state) {
    (void)state;
    expect("compare @/a @/b --metric val_loss --svg @/both.svg", 0, "a a\n");
    frame_check_file(folder, "both.svg");
    expect("compare @/a @/b", 0, "  last loss    best val_loss    last val_loss   seconds");
    expect_line(
        "eval @/a --set data.path=LICENSE", 1,
        "--set data.path: the run is evaluated on the tokens that it has saved; use --data");
}

static void test_bad_input(void **state) {
    (void)state;
    expect_line("compare @/a @/none", 1, "none: is not a run directory (it has no config.yaml)");
    expect_line("compare @/a @/b --metric los", 1, "metric 'los': is in no line of the runs'");
    expect_line("compare @/a @/b --svg @/a/config.yaml/file.svg", 1, "/file.svg: can't be");
    expect_line("compare @/a", 2, "compare: two runs or more are compared, and only one is given;");
    expect_line("compare", 2, "compare: two runs or more are compared, and none is given; see");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),   cmocka_unit_test(test_other),
        cmocka_unit_test(test_curves), cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_parted), /* changes runs */
    };
    return cmocka_run_group_tests(tests, make_runs, folder_remove);
}
