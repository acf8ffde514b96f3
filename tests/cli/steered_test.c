/* steered_test.c - a run resumed with another learning rate: recorded with its step, named by
 * compare, the same bits for any workers and after a kill; a run that is begun again, or
 * replaced. */
/* ctest: busy seconds=10 */
/* ctest: long-asan: cli/resume runs the same code */
#include "cli/killed_at.h"
#include "cli/terminal.h"

#define LINE                                                                                       \
    "train configs/tiny.yaml --set train.steps=30 --set train.eval_every=0 --set log.every=1000 "  \
    "--set checkpoint.every=10 --set checkpoint.keep=9 --set survival.balance=off " SMALLER
#define STEERS " --set optim.lr=1e-3 --set optim.weight_decay=0.3"
#define LR     "from step 11 on optim.lr is 0.001, which was 0.003\n"
#define DECAY  "from step 11 on optim.weight_decay is 0.3, which was 0.1\n"

static char steered[256]; /* the hash of a run that was steered from step 11 on */

static void begin(const char *run) { expectf(75, NULL, LINE "-n 2 -o @/%s --until 10", run); }

static void has_bits(const char *run) {
    assert_hash(run, steered);
    expectf(0, LR DECAY, "ckpt ledger @/%s", run);
}

static void test_recorded(void **state) {
    (void)state;
    begin("one");
    expect("train --resume @/one -n 1" STEERS, 0,
           "optim.lr was 0.003 and is now 0.001, from the next step on.");
    hash_of("one", steered);
    has_bits("one");
    expect("ckpt ledger @/one --json", 0,
           "\"changed\": [{\"step\": 11, \"key\": \"optim.lr\", \"was\": \"0.003\", \"now\": "
           "\"0.001\"}");
    begin("two");
    expect("train --resume @/two -n 3 --set parallel.zero=3" STEERS, 0, NULL);
    has_bits("two");
    begin("threads");
    expect("train --resume @/threads -n 2 --set parallel.transport=thread --until 15" STEERS, 75,
           NULL);
    expect("train --resume @/threads -n 2", 0, NULL);
    has_bits("threads");
}

static void test_killed(void **state) {
    (void)state;
    begin("killed");
    kill_run_at_20("train --resume @/killed -n 2" STEERS, "killed");
    expect("train --resume @/killed -n 1", 0, NULL);
    has_bits("killed");
    begin("early"); /* before its first checkpoint with the new rate */
    hold_after("early", 14);
    program p = program_start("train --resume @/early -n 2" STEERS, 0);
    wait_for_step("early", 13);
    kill_paced(&p, "early");
    expect("train --resume @/early -n 3", 0, "continuing from");
    has_bits("early");
    /* from an older checkpoint the new values hold earlier, and the record says so */
    shell_of_run("early", "rm -r $r/checkpoints/step-[123]0 && cp -r one/checkpoints/step-10 "
                          "$r/checkpoints/");
    expect("train --resume @/early -n 2 --set optim.lr=2e-3", 0, NULL);
    expect("ckpt ledger @/early", 0, "from step 11 on optim.lr is 0.002, which was 0.003\n" DECAY);
}

/* Worker 0 is killed before it has recorded the change, or cut off the lines of later steps. */
static void test_killed_at_start(void **state) {
    (void)state;
    pid_t pids[8];
    siginfo_t over = {0};
    char held[128], *output = NULL;
    begin("start");
    expect("train --resume @/start -n 1 --set checkpoint.every=0 --until 14", 75, NULL);
    shell_of_run("start", "rm -r $r/checkpoints/step-14 && ln -sfn step-10 $r/checkpoints/latest");
    snprintf(held, sizeof held, "%s/held", folder);
    setenv("LOCKSTEP_HELD", held, 1);
    setenv("LOCKSTEP_FAULTS", "rename -config.yaml$ HOLD 0-1", 1);
    program p = program_start("train --resume @/start -n 2" STEERS, 0);
    unsetenv("LOCKSTEP_FAULTS");
    wait_for_file("held");
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[0], SIGKILL);
    for (; over.si_pid == 0; sleep_ms(20)) { /* the worker in its place is held, too */
        unlink(held);
        assert_int_equal(waitid(P_PID, (id_t)p.pid, &over, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    assert_int_equal(program_end(&p, &output), 0);
    assert_output_has(output, "worker 0 was killed");
    free(output);
    has_bits("start");
    shell_of_run("start",
                 "[ $(grep -c 'started' $m) = 3 ] && [ $(grep -c 'step.: 12,' $m) = 1 ] && "
                 "! grep -q 'step.: 12,.*lr.: 0.00[23]' $m");
}

static void test_compared(void **state) {
    (void)state;
    expect(LINE "-n 2 -o @/plain", 0, NULL);
    expect("compare @/one @/two", 0, "the same bits as a, as it must be");
    expect("compare @/plain @/one", 0, "b: " LR "b: " DECAY);
    expect("compare @/plain @/one", 0, "b: need not have the bits of a");
    expect(LINE "-n 2 -o @/always" STEERS, 0, NULL); /* the same config at the end */
    expect("compare @/always @/one", 0,
           "need not have the bits of a (keys were changed when one of them was resumed)");
    expect("compare @/always @/one --json", 0, "\"must_match\": false");
}

static void test_refused(void **state) {
    (void)state;
    expect_line("train --resume @/one --set model.width=24", 1,
                "or begin a new run, which can take this one's weights (train.from)");
    expect(LINE "-n 1 -o @/sgd --until 10 --set optim.optimizer=sgd", 75, NULL);
    expect_line("train --resume @/sgd --set optim.momentum=0.9", 1, "has no velocity");
    expect("train --resume @/sgd --set optim.lr=0.1 --until 11", 75, NULL);
    expect(LINE "-n 2 -o @/async --until 10 --set sync.mode=async", 75, NULL);
    expect_line("train --resume @/async --set optim.lr=0.1", 1, "is replayed with one value");
    expect(LINE "-n 1 -o @/free --until 10 --set optim.optimizer=schedule-free "
                "--set optim.schedule=constant",
           75, NULL);
    expect_line("train --resume @/free --set optim.lr=0.1", 1, "steps with one learning rate");
}

/* ---- a run that is begun again, or replaced ---- */

static void test_again(void **state) {
    (void)state;
    char again[256], plain[256];
    expect(LINE "-n 2 -o @/again --set checkpoint.every=0 --set optim.lr=1000 --set optim.clip=0",
           1, "lower optim.lr");
    shell_of_run("again", "echo mine > $r/notes.txt && touch $r/checkpoints/.step-5.1.new");
    expect(LINE "-n 2 -o @/again", 0,
           "has a run without a checkpoint; the new run takes its place");
    hash_of("again", again);
    hash_of("plain", plain);
    assert_string_equal(again, plain);
    expect("ckpt ledger @/again", 0, ": clean: 30 steps");
    shell_of_run("again", "grep -q mine $r/notes.txt && ! grep -q 'step\": 1,.*step\": 1,' $m");
    expect(LINE "-n 2 -o @/again", 1, "or replace it with --overwrite");
    /* with --resume, too, and other keys that decide what the run is */
    expect(LINE "-n 1 -o @/other --set checkpoint.every=0 --set optim.lr=1000 --set optim.clip=0",
           1, "lower optim.lr");
    expect(LINE "-n 1 -o @/other --resume --set model.layers=1", 0, "the new run takes its place");
}

static void test_overwritten(void **state) {
    (void)state;
    expect(LINE "-n 1 -o @/again --overwrite", 1,
           "without a terminal to ask on, --overwrite needs");
    expect(LINE "-n 1 -o @/again --overwrite --yes --set data.path=none.txt", 1, "none.txt");
    expect("ckpt verify @/again", 0, NULL); /* nothing was removed */
    expect("train --resume @/again --overwrite", 2, "leave one of them out");
    expect(LINE "-n 1 -o @/again --yes", 2, "--yes belongs to --overwrite");
    expect(LINE "-n 1 -o @/again --overwrite --yes --set train.steps=10", 0,
           "has a run, which is removed (--overwrite)");
    expect("ckpt ledger @/again", 0, ": clean: 10 steps");
    assert_false(file_exists("again/checkpoints/step-30"));
    assert_true(file_exists("again/notes.txt"));
    expect(LINE "-n 1 -o @/new --overwrite --set train.steps=6", 0, NULL); /* nothing to ask */
    shell_of_run("again", "mkdir -p foreign/checkpoints && echo 'a: 1' > foreign/config.yaml");
    expect(LINE "-n 1 -o @/foreign", 1, "exists already");
    shell_of_run("foreign", "grep -q 'a: 1' $r/config.yaml");
}

/* The question on a terminal: only yes removes the run. */
static void test_asked(void **state) {
    (void)state;
    static const struct {
        const char *typed;
        int how;
    } answers[] = {{"n\n", 1 << 8}, {"\n", 1 << 8},  {"no\n", 1 << 8}, {"yet\n", 1 << 8},
                   {"\4", 1 << 8},  {"y\3", SIGINT}, {"Yes\n", 0}};
    char before[256], after[256];
    expect(LINE "-n 1 -o @/asked --set train.steps=10", 0, NULL);
    hash_of("asked", before);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        shown *x = terminal_start(LINE "-n 1 -o @/asked --overwrite --set train.steps=8", 100, 24);
        terminal_expect(x, "asked has checkpoints, the newest of step 10; remove that run? [y/N]");
        terminal_type(x, answers[i].typed);
        if (answers[i].how >> 8) terminal_expect(x, "asked stays as it is");
        if (!answers[i].how) terminal_expect(x, "which is removed (--overwrite)");
        assert_int_equal(terminal_end(x), answers[i].how);
        hash_of("asked", after);
        assert_int_equal(strcmp(before, after) == 0, answers[i].how != 0);
    }
    expect("ckpt ledger @/asked", 0, ": clean: 8 steps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_at_start), cmocka_unit_test(test_compared),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_again),
        cmocka_unit_test(test_overwritten),     cmocka_unit_test(test_asked),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
