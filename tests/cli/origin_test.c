/* origin_test.c - a new run that begins with the weights of another one (train.from). */
#include <sys/stat.h>

#include "cli/program.h"

#define TUNE                                                                                       \
    "--set train.from=@/base --set train.steps=6 --set train.eval_every=1 --set optim.lr=1e-4 "    \
    "--set optim.min_lr=1e-5 --set optim.warmup=1 " SMALL_MODEL

static void test_base(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/base " SMALL_MODEL "--set train.steps=40", 0,
           "validation loss");
}

/* The validation loss after a step, from metrics.jsonl. */
static double val_after(const char *run, int step) {
    char path[256], line[1024], begin[64];
    double val = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    snprintf(begin, sizeof begin, "{\"step\": %d, \"val_loss\": ", step);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, begin, strlen(begin)) == 0) val = strtod(line + strlen(begin), NULL);
    fclose(f);
    assert_true(val > 0);
    return val;
}

/* After one step at a low rate the loss is near that of the base: far from that of drawn weights,
 * which is that of even guesses. */
static void test_weights(void **state) {
    char alone[256], other[256];
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/tuned " TUNE, 0, "validation loss");
    double base = val_after("base", 40), tuned = val_after("tuned", 1);
    assert_true(tuned < base + 0.01 && tuned > base - 0.01);
    hash_of("tuned", alone);
    static const char *const layouts[] = {"-n 3 --set parallel.zero=3",
                                          "-n 2 --set parallel.zero=0 --set parallel.transport=tcp",
                                          "-n 2 --set parallel.transport=thread"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char run[32];
        expectf(0, "validation loss", "train configs/tiny.yaml -o @/layout-%zu " TUNE "%s", i,
                layouts[i]);
        snprintf(run, sizeof run, "layout-%zu", i);
        hash_of(run, other);
        assert_string_equal(other, alone);
    }
}

/* The checkpoint that a run began with stays its origin, though the base has trained on. */
static void test_resume(void **state) {
    char alone[256], other[256];
    (void)state;
    pace("again", 3);
    program p = program_start("train configs/tiny.yaml -n 1 -o @/again " TUNE, 0);
    wait_for_file("again/metrics.jsonl");
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    char *output = NULL;
    program_end(&p, &output);
    free(output);
    let_go("again");
    expect("train configs/tiny.yaml -n 1 -o @/base --resume " SMALL_MODEL "--set train.steps=45", 0,
           "step-45");
    expect("train configs/tiny.yaml -n 2 -o @/again --resume " TUNE, 0, "validation loss");
    hash_of("tuned", alone);
    hash_of("again", other);
    assert_string_equal(other, alone);
    expect("train configs/tiny.yaml -n 1 -o @/later " TUNE, 0, "validation loss");
    hash_of("later", other);
    assert_string_not_equal(other, alone);
}

static void test_errors(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/base " SMALL_MODEL
           "--set model.layers=3",
           1, "set model.layers=2");
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/absent", 1, "does not exist");
    char path[128];
    snprintf(path, sizeof path, "%s/empty", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    expect("train configs/tiny.yaml -o @/wrong --set train.from=@/empty", 1, "is neither a run");
    assert_false(file_exists("wrong"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_base), cmocka_unit_test(test_weights),
                                       cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
