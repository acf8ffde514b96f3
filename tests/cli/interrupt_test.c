/* interrupt_test.c - runs that are stopped, killed and continued. */
/* ctest: slow seconds=44 */
/* ctest: long-asan: it waits for processes, and its programs run in the other tests of cli */
#include "cli/program.h"

static const char START[] = "train configs/tiny.yaml -n %d -o @/%s --set train.steps=%d " SMALLER
                            "--set checkpoint.every=20 --set log.every=1000 "
                            "--set survival.balance=off";

static program start(int workers, const char *run, int steps) {
    return startf(START, workers, run, steps);
}

#ifdef __SANITIZE_ADDRESS__
enum { STEPS = 200 };
#else
enum { STEPS = 400 };
#endif

/* SIGTERM at some moment, --resume with another number of workers: the bits of one run. */
static void test_stop_and_resume(void **state) {
    (void)state;
    char whole[256], cut[256], line[256], last[64], *output = NULL;
    program p = start(2, "whole", STEPS);
    program_expect(&p, 0, NULL);
    pace("cut", 30);
    p = start(3, "cut", STEPS);
    wait_for_file("cut/checkpoints/step-20");
    assert_int_equal(stop_paced(&p, "cut", &output), 75);
    assert_non_null(strstr(output, "; continue with: " LOCKSTEP_PROGRAM " train --resume "));
    free(output);
    snprintf(last, sizeof last, "cut/checkpoints/step-%d", STEPS);
    assert_false(file_exists(last));
    snprintf(line, sizeof line, START, 2, "cut", STEPS);
    strcat(line, " --resume");
    expect(line, 0, "continuing from");
    hash_of("whole", whole);
    hash_of("cut", cut);
    assert_string_equal(whole, cut);
}

/* A worker that is killed with SIGKILL is logged by name; another takes its place, with the same
 * bits. */
static void test_killed_worker(void **state) {
    (void)state;
    char *output = NULL;
    hold_after("killed", 30);
    program p = start(3, "killed", STEPS);
    wait_for_file("killed/checkpoints/step-20");
    pid_t pids[8];
    wait_for_children(p.pid, 3, pids, 8); /* after them, a writer of checkpoints */
    kill(pids[1], SIGKILL);
    let_go("killed");
    assert_int_equal(program_end(&p, &output), 0);
    assert_non_null(strstr(output, "view 1: worker 1 was killed by signal 9"));
    assert_non_null(strstr(output, "view 2: continuing after step"));
    free(output);
    same_hash("whole", "killed");
}

/* When the supervisor itself is killed, its workers go with it. */
static void test_killed_supervisor(void **state) {
    (void)state;
    char *output = NULL;
    program p = start(3, "orphans", 1000000);
    wait_for_file("orphans/checkpoints/step-20");
    pid_t pids[8];
    assert_true(children_of(p.pid, pids, 8) >= 3); /* after them, a writer of checkpoints */
    kill(p.pid, SIGKILL);
    assert_int_equal(program_end(&p, &output),
                     128 + SIGKILL); /* end of file: no process has the pipe open */
    free(output);
    for (int i = 0; i < 3; i++) { /* a busy machine takes its time to end each of them */
        for (int k = 0; k < PATIENCE_S * 100 && kill(pids[i], 0) == 0; k++) sleep_ms(10);
        assert_int_equal(kill(pids[i], 0), -1);
    }
    expect("ckpt verify @/orphans", 0, "good: step");
}

/* The same command line every time: a new run begins, and one that was killed before its first
 * checkpoint, even before all its files existed, begins again. */
static void test_begin_again(void **state) {
    (void)state;
    static const char *const lost[] = {"tokenizer.json", "tokens.bin"};
    char line[256], path[128], *output = NULL;
    snprintf(line, sizeof line, START, 2, "early", 1000000);
    strcat(line, " --resume --set checkpoint.every=0");
    program p = program_start(line, 0);
    wait_for_file("early/metrics.jsonl");
    expect("eval @/early", 1, "early: has no checkpoint yet: it is being trained (process ");
    expect("ckpt hash @/early/checkpoints/latest", 1, "the first is due at its end");
    kill(p.pid, SIGKILL);
    assert_int_equal(program_end(&p, &output), 128 + SIGKILL);
    assert_non_null(strstr(output, "early: does not exist yet; a new run begins there"));
    free(output);
    expect("generate @/early --prompt a", 1,
           "early: has no checkpoint: its training ended after step ");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/early/%s", folder, lost[i]);
        assert_int_equal(unlink(path), 0);
    }
    snprintf(line, sizeof line, START, 2, "early", STEPS);
    strcat(line, " --resume");
    expect(line, 0, "early: has no checkpoint yet; beginning again");
    same_hash("whole", "early");
    snprintf(line, sizeof line, ": clean: %d steps", STEPS);
    expect("ckpt ledger @/early", 0, line);
}

/* The signal comes while the run directory is made: a step is done, and the run continues from
 * it. */
static void test_at_start(void **state) {
    (void)state;
    static const char *const moments[] = {"mkdir begun-0$ TERM 0-1",
                                          "pwrite begun-1/lock TERM 0-1"};
    for (int i = 0; i < 2; i++) {
        char line[256], run[16], step[64];
        snprintf(run, sizeof run, "begun-%d", i);
        snprintf(line, sizeof line, START, 2, run, 40);
        if (i == 1) strcat(line, " --set parallel.transport=thread");
        setenv("LOCKSTEP_FAULTS", moments[i], 1);
        expect(line, 75, "stopped after step 1 of 40; continue with: ");
        unsetenv("LOCKSTEP_FAULTS");
        snprintf(step, sizeof step, "%s/checkpoints/step-1", run);
        assert_true(file_exists(step));
        strcat(line, " --resume");
        expect(line, 0, "continuing from");
    }
}

static bool has_ended(const program *p) {
    siginfo_t how = {0};
    return waitid(P_PID, (id_t)p->pid, &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid;
}

/* A second signal that comes before a busy machine has let the program see the first counts as one
 * with it: then another follows. */
static void interrupt_twice(const program *p) {
    kill(p->pid, SIGINT);
    for (int i = 0; i < 6 && !has_ended(p); i++) {
        sleep_ms(600);
        kill(p->pid, SIGINT);
        for (int k = 0; k < 500 && !has_ended(p); k++) sleep_ms(10);
    }
}

static void test_second_interrupt(void **state) {
    (void)state;
    char line[256], *output = NULL;
    snprintf(line, sizeof line, START, 2, "twice", 1000000);
    strcat(line, " --set survival.heartbeat_s=60"); /* longer than the test takes */
    program p = program_start(line, 0);
    wait_for_file("twice/checkpoints/step-20");
    pid_t pids[8];
    assert_true(children_of(p.pid, pids, 8) >= 2); /* after them, a writer of checkpoints */
    kill(pids[0], SIGSTOP);                        /* so that the step in flight can't end */
    interrupt_twice(&p);
    assert_int_equal(program_end(&p, &output), 1);
    char again[256];
    long long step = 0;
    const char *lost = strstr(output, "the steps after the newest checkpoint, of step ");
    assert_non_null(strstr(output, "interrupted twice: all workers were ended at once"));
    assert_non_null(lost);
    assert_int_equal(sscanf(lost, "the steps after the newest checkpoint, of step %lld", &step), 1);
    assert_true(step >= 20 && step % 20 == 0);
    snprintf(again, sizeof again,
             "are lost; continue from it with: %s train --resume %s/twice -n 2\n", LOCKSTEP_PROGRAM,
             folder);
    assert_non_null(strstr(lost, again));
    free(output);
    expect("ckpt verify @/twice", 0, "good: step");
}

/* Terminals, wrappers and batch systems send several signals together: they mean one stop. */
static void test_several_at_once(void **state) {
    (void)state;
    static const char *const kinds[] = {"", " --set parallel.transport=thread"};
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
    for (int i = 0; i < 2; i++) {
        char line[256], name[16], *output = NULL;
        snprintf(name, sizeof name, "several%d", i);
        snprintf(line, sizeof line, START, 2, name, 1000000);
        strcat(line, kinds[i]);
        program p = program_start(line, 0);
        wait_for_step(name, 1);
        kill(p.pid, SIGSTOP); /* it gets all of them in one moment, on a busy machine too */
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) kill(p.pid, numbers[k]);
        kill(p.pid, SIGCONT);
        assert_int_equal(program_end(&p, &output), 75);
        assert_non_null(strstr(output, "stopped after step "));
        assert_null(strstr(output, "interrupted twice"));
        free(output);
    }
}

/* Before the first checkpoint all steps are lost, and the same command begins again. (An interrupt
 * before the first step leaves no run at all.) */
static void test_second_interrupt_early(void **state) {
    (void)state;
    char *output = NULL;
    program p = program_start("train configs/tiny.yaml -n 2 -o @/soon --set train.steps=1000000 "
                              "--set checkpoint.every=1000000 --set survival.heartbeat_s=60",
                              0);
    wait_for_step("soon", 1);
    pid_t pids[8];
    assert_true(children_of(p.pid, pids, 8) >= 2);
    kill(pids[0], SIGSTOP);
    interrupt_twice(&p);
    assert_int_equal(program_end(&p, &output), 1);
    assert_non_null(strstr(output, "there is no checkpoint yet: all steps are lost; begin again "
                                   "with: " LOCKSTEP_PROGRAM " train --resume "));
    free(output);
}

/* Steps of many samples: a signal comes while one is in flight. */
#define LONG_STEPS                                                                                 \
    " --set train.batch=512 --set train.micro_batch=4 --set train.steps=6 --set optim.warmup=1 "   \
    "--set model.context=8 --set model.width=48 --set model.layers=4 --set train.eval_every=0 "    \
    "--set checkpoint.every=1"

/* Whether the step in flight was given up; false if the signal came between two steps, or too
 * late. */
static bool gives_up(const char *command, int stop_s) {
    char path[128], *output = NULL;
    snprintf(path, sizeof path, "%s/given-up", folder);
    assert_ls_ok(ls_file_remove_tree(path, &(ls_error){0}), (ls_error){0});
    program p = startf("%s configs/tiny.yaml -o @/given-up --set survival.stop_s=%d" LONG_STEPS,
                       command, stop_s);
    wait_for_file("given-up/metrics.jsonl");
    kill(p.pid, SIGTERM);
    int code = program_end(&p, &output);
    if (code == 0) { /* on a busy machine the run may end before the test continues */
        free(output);
        return false;
    }
    if (code != 75) fail_msg("exit code %d:\n%s", code, output);
    int step = 0, stopped = 0;
    const char *said = strstr(output, "interrupted: step ");
    const char *end = strstr(output, "stopped after step ");
    assert_non_null(end);
    assert_int_equal(sscanf(end, "stopped after step %d", &stopped), 1);
    assert_true(stopped < 6);
    if (said) {
        assert_non_null(strstr(said, " was given up after "));
        assert_int_equal(sscanf(said, "interrupted: step %d", &step), 1);
        assert_int_equal(stopped, step - 1);
    }
    free(output);
    return said != NULL;
}

/* A step that was given up left no effect: repeated, it has the bits of an uninterrupted run. */
static void test_step_given_up(void **state) {
    (void)state;
    static const char *const commands[] = {
        "train -n 2", "train -n 2 --set parallel.transport=thread",
        "train -n 3 --set parallel.zero=3 --set parallel.overlap=on --set parallel.bucket_mb=0.01",
        "run -n 2 " LOCKSTEP_PROGRAM " train"};
    char whole[256];
    expect("train configs/tiny.yaml -n 1 -o @/not-cut" LONG_STEPS, 0, NULL);
    hash_of("not-cut", whole);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!runs_case((int)i, 4)) continue;
        int tries = 1;
        while (!gives_up(commands[i], 0)) assert_true(tries++ < 30);
        expect("train --resume @/given-up -n 2", 0, NULL);
        assert_hash("given-up", whole);
        expect("ckpt ledger @/given-up", 0, "clean: 6 steps");
    }
}

/* With time left the step in flight is completed. */
static void test_step_completed(void **state) {
    (void)state;
    static const char *const commands[] = {"train -n 2", "run -n 2 " LOCKSTEP_PROGRAM " train"};
    for (int i = 0; i < ncases(2, 4); i++) assert_false(gives_up(commands[i % 2], 600));
}

static void test_in_use(void **state) {
    (void)state;
    char line[256];
    program p = start(2, "busy", 1000000);
    wait_for_file("busy/checkpoints/step-20");
    snprintf(line, sizeof line, START, 2, "busy", 1000000);
    strcat(line, " --resume");
    expect(line, 1, "is in use by another lockstep");
    kill(p.pid, SIGTERM);
    program_expect(&p, 75, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_and_resume),
        cmocka_unit_test(test_killed_worker),
        cmocka_unit_test(test_killed_supervisor),
        cmocka_unit_test(test_begin_again),
        cmocka_unit_test(test_at_start),
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_second_interrupt),
        cmocka_unit_test(test_second_interrupt_early),
        cmocka_unit_test(test_in_use),
        cmocka_unit_test(test_step_completed),
        cmocka_unit_test(test_step_given_up),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
