/* phases_test.c - a batch that grows in the run (train.batch as a list): the samples and bits of
 * any layout, killed and resumed; `lockstep plan` shows the phases. */
/* ctest: busy seconds=40 */
/* ctest: long-asan: cli/resume runs the same code */
#include "cli/killed_at.h"

#define LINE(name, batch, more)                                                                    \
    "train configs/tiny.yaml -o @/" name " --set train.batch=" batch                               \
    " --set train.steps=40 --set train.eval_every=0 --set checkpoint.every=20 "                    \
    "--set survival.balance=off --set log.every=1000 " SMALLER more
#define GROWS  "[[0,8],[15,32],[30,16]]"
#define SCALED " --set optim.scale_lr=sqrt --set optim.scale_batch=8"

static char grown[256]; /* `ckpt hash` of one worker's run */

static int make(void **state) {
    if (folder_make(state) != 0) return -1;
    expect(LINE("one", GROWS, "-n 1" SCALED), 0, NULL);
    hash_of("one", grown);
    return 0;
}

static void has_bits(const char *run) {
    char hash[256];
    hash_of(run, hash);
    if (strcmp(hash, grown) != 0) fail_msg("%s: %s, not %s", run, hash, grown);
    expectf(0, ": clean: 40 steps", "ckpt ledger @/%s", run);
}

static void test_layouts(void **state) {
    (void)state;
    expect(LINE("two", GROWS, "-n 2 --set parallel.zero=2" SCALED), 0, NULL);
    has_bits("two");
    expect(LINE("three", GROWS, "-n 3 --set train.micro_batch=4" SCALED), 0, NULL);
    has_bits("three");
    expect(LINE("five", GROWS, "-n 5 --set parallel.zero=3 --set parallel.recompute=1" SCALED), 0,
           NULL);
    has_bits("five");
    expect(LINE("threads", GROWS, "-n 2 --set parallel.transport=thread" SCALED), 0, NULL);
    has_bits("threads");
    expect(LINE("sequential", GROWS, "-n 3 --set parallel.executor=sequential" SCALED), 0, NULL);
    has_bits("sequential");
}

/* In a phase all is as with its batch alone. */
static void test_one_phase(void **state) {
    (void)state;
    char plain[256], listed[256];
#define CONSTANT "-n 2 --set optim.schedule=constant --set train.steps=15"
    expect(LINE("plain", "8", CONSTANT), 0, NULL);
    expect(LINE("listed", "[[0,8],[15,32]]", CONSTANT), 0, NULL);
    hash_of("plain", plain);
    hash_of("listed", listed);
    assert_string_equal(plain, listed);
    shell_of_run("one", "grep '\"step\": 15,' $m | grep -q '\"first\": 112, \"samples\": 8,' && "
                        "grep '\"step\": 16,' $m | grep -q '\"first\": 120, \"samples\": 32,'");
}

static void test_killed(void **state) {
    (void)state;
    kill_worker_at_20(LINE("worker", GROWS, "-n 3" SCALED), "worker");
    has_bits("worker");
    kill_run_at_20(LINE("run", GROWS, "-n 2" SCALED), "run");
    expect("train --resume @/run -n 3", 0, NULL);
    has_bits("run");
    expect_line("train --resume @/run --set train.batch=32", 1,
                "train.batch is 32, but the run began with");
}

/* A warm-up in epochs ends where one of as many steps does. */
static void test_warmup(void **state) {
    (void)state;
    char steps[256], samples[256];
    expect(LINE("steps", "16", "-n 1 --set optim.warmup=12"), 0, NULL);
    hash_of("steps", steps);
    expect(LINE("samples", "16", "-n 2 --set optim.warmup=192samples"), 0, NULL);
    hash_of("samples", samples);
    assert_string_equal(steps, samples);
    expect(LINE("epochs", "16", "-n 1 --set optim.warmup=0.01epochs"), 0, NULL);
    shell_of_run("epochs", "grep -q '\"lr\": 0.003,' $m");
    expect(LINE("long", "16", "-n 1 --set optim.warmup=50epochs"), 1,
           "optim.warmup 50 epochs: train.steps 40 are fewer; use a shorter warm-up, or more");
}

static void test_plan(void **state) {
    (void)state;
    expect("plan configs/tiny.yaml -n 2 --set train.batch=[[0,8],[15,32],[90,16]]" SCALED, 0,
           "         15       32        35         1120   0.005941");
    expect("plan configs/tiny.yaml -n 2 --set train.batch=[[0,8],[15,32],[90,16]]", 0,
           "         90       16         0            0   after the last step");
    expect("plan configs/tiny.yaml -n 2 --json --set train.batch=[[0,8],[15,32]]", 0,
           "{\"step\": 15, \"batch\": 32, \"steps\": 35, \"samples\": 1120, ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_one_phase),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
