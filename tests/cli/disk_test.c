/* disk_test.c - disks that fail while a run trains, torn checkpoints, removed directories:
 * training continues, or ends with the last good checkpoint intact, and the run that continues from
 * there has the bits of an undisturbed run.
 *
 * All runs continue from one of 10 steps. After 30 a checkpoint is written beside training, after
 * 60 the last one.
 */
/* ctest: slow busy seconds=25 */
#include "cli/undisturbed.h"

static const char START[] = TRAIN_LINE("%d", "30");

static program start(const char *run, int steps, const char *more, const char *faults) {
    char line[512], held[128];
    snprintf(held, sizeof held, "%s/held", folder);
    snprintf(line, sizeof line, START, run, steps, more);
    setenv("LOCKSTEP_HELD", held, 1);
    if (faults) setenv("LOCKSTEP_FAULTS", faults, 1);
    program p = program_start(line, 0);
    unsetenv("LOCKSTEP_FAULTS");
    return p;
}

/* Continues from a copy of the run of 10 steps; returns the program's exit code. */
static int resume_copy(const char *run, const char *more, const char *faults, char **output_p) {
    char args[128];
    shell_of_run(run, "cp -r base $r");
    snprintf(args, sizeof args, "%s --resume", more);
    program p = start(run, 60, args, faults);
    return program_end(&p, output_p);
}

static void verify(const char *run, const char *step) {
    expectf(0, ": good: step ", "ckpt verify @/%s%s%s", run, *step ? "/checkpoints/step-" : "",
            step);
}

/* Without faults, the run continues from `step` and ends with the bits of the undisturbed run. */
static void ends_well(const char *run, const char *step) {
    char line[512], from[128];
    snprintf(line, sizeof line, START, run, 60, " --resume");
    snprintf(from, sizeof from, "continuing from %s/%s/checkpoints/step-%s\n", folder, run, step);
    expect(line, 0, from);
    verify(run, "60");
    has_undisturbed_bits(run);
}

static int make_base(void **state) {
    char *output = NULL;
    if (folder_make(state) != 0) return -1;
    program p = start("base", 10, "", NULL);
    int code = program_end(&p, &output);
    free(output);
    if (code != 0 || resume_copy("undisturbed", "", NULL, &output) != 0) return -1;
    free(output);
    hash_of("undisturbed", undisturbed);
    return 0;
}

/* ---- calls that fail ---- */

static const char *const faults[][2] = {
    {"fsync .step-%d/model EIO 0", "model.safetensors: can't be written: Input/output error"},
    {"fsync .step-%d/manifest EIO 0", "manifest.json: can't be written: Input/output error"},
    {"fsync .step-%d$ EIO 0", "can't be synced: Input/output error"},
    {"write .step-%d/optimizer EIO 3", "optimizer.safetensors: can't be written: Input/output"},
    {"write .step-%d/model ENOSPC 2", "model.safetensors: can't be written: No space left"},
    {"rename .step-%d EIO 0", "can't be renamed: Input/output error"},
    {"mkdir .step-%d EROFS 0", "can't be created: Read-only file system"},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

/* The failure is logged in one line, training continues, and the next checkpoint is good. */
static void beside(const char *kind, const char *more) {
    char run[32], rule[128], *output = NULL;
    for (int i = 0; i < NFAULTS; i++) {
        if (!runs_case(i + (*more != 0), 2)) continue;
        snprintf(run, sizeof run, "beside-%s-%d", kind, i);
        snprintf(rule, sizeof rule, faults[i][0], 30);
        int code = resume_copy(run, more, rule, &output);
        if (code != 0) fail_msg("%s: exit code %d:\n%s", rule, code, output);
        assert_output_has(output, "lockstep: the checkpoint of step 30 failed: ");
        assert_output_has(output, faults[i][1]);
        assert_null(strstr(output, "/.step-"));
        assert_int_equal(occurrences(output, "failed"), 1);
        free(output);
        snprintf(rule, sizeof rule, "%s/checkpoints/step-30", run);
        assert_false(file_exists(rule));
        snprintf(rule, sizeof rule, "%s/checkpoints/.step-30", run);
        assert_false(file_exists(rule));
        verify(run, "10");
        verify(run, "60");
        assert_hash(run, undisturbed);
    }
}

static void test_beside(void **state) {
    (void)state;
    beside("processes", "");
    beside("threads", THREADS);
}

/* The last checkpoint must succeed, or the run fails and names the checkpoint to continue from. */
static void at_last(const char *kind, const char *more) {
    char run[32], rule[128], there[256], *output = NULL;
    for (int i = 0; i < NFAULTS; i++) {
        if (!runs_case(i + (*more != 0), 2)) continue;
        snprintf(run, sizeof run, "last-%s-%d", kind, i);
        snprintf(rule, sizeof rule, faults[i][0], 60);
        int code = resume_copy(run, more, rule, &output);
        if (code != 1) fail_msg("%s: exit code %d:\n%s", rule, code, output);
        assert_output_has(output, faults[i][1]);
        snprintf(there, sizeof there,
                 "lockstep: the checkpoint of step 60 could not be written; the newest good one is "
                 "%s/%s/checkpoints/step-30\n",
                 folder, run);
        assert_output_has(output, there);
        free(output);
        verify(run, "10");
        verify(run, "");
        ends_well(run, "30");
    }
}

static void test_last(void **state) {
    (void)state;
    at_last("processes", "");
    at_last("threads", THREADS);
}

/* From some moment on, every call that would change the directory fails. */
static void test_read_only(void **state) {
    (void)state;
    char *output = NULL;
    assert_int_equal(resume_copy("read-only", "", "any checkpoints EROFS 0", &output), 1);
    assert_output_has(output, "the checkpoint of step 30 failed: ");
    assert_output_has(output, "read-only/checkpoints/step-10\n");
    free(output);
    ends_well("read-only", "10");
}

/* Renamed but not synced: a failure, though the checkpoint is in its place. */
static void test_unsynced(void **state) {
    (void)state;
    char *output = NULL;
    assert_int_equal(resume_copy("unsynced", "", "fsync /checkpoints$ EIO 0", &output), 1);
    assert_output_has(output, "the checkpoint of step 30 failed: ");
    assert_output_has(output, "checkpoints: can't be synced: Input/output error");
    free(output);
    verify("unsynced", "10");
    verify("unsynced", "30");
    verify("unsynced", "60");
}

/* Lines of metrics wait while the disk accepts none; if it never does, the run fails. */
static void test_metrics(void **state) {
    (void)state;
    static const char logged[] =
        "metrics.jsonl: can't be written: No space left on device; lines are buffered until it can "
        "be written";
    char *output = NULL;
    assert_int_equal(resume_copy("waits", "", "write metrics.jsonl ENOSPC 3-20", &output), 0);
    assert_int_equal(occurrences(output, logged), 1);
    assert_int_equal(occurrences(output, "metrics.jsonl: is written again"), 1);
    free(output);
    expect("ckpt ledger @/waits", 0, ": clean: 60 steps");
    assert_hash("waits", undisturbed);
    assert_int_equal(resume_copy("waits-long", "", "write metrics.jsonl ENOSPC 3", &output), 1);
    assert_int_equal(occurrences(output, logged), 1);
    assert_output_has(output, "metrics.jsonl: can't be written: No space left on device\n");
    free(output);
    verify("waits-long", "60");
}

/* Before a checkpoint gets its name, the lines of the steps before it are synced. */
static void test_lines_unsynced(void **state) {
    (void)state;
    static const char logged[] = "metrics.jsonl: can't be synced: Input/output error; lines of it "
                                 "may be lost if the machine stops";
    char *output = NULL;
    assert_int_equal(resume_copy("lines", "", "fsync metrics.jsonl EIO 0", &output), 0);
    assert_int_equal(occurrences(output, logged), 2);
    free(output);
    assert_int_equal(resume_copy("lines-threads", THREADS, "fsync lines-threads$ EIO 0", &output),
                     0);
    assert_output_has(output, "lines-threads: can't be synced: Input/output error; lines of it");
    free(output);
    verify("lines", "60");
    has_undisturbed_bits("lines");
}

/* From some moment on, nothing can be written. */
static void test_full(void **state) {
    (void)state;
    char *output = NULL;
    int code = resume_copy("full", "", "write full ENOSPC 7; write .step- ENOSPC 0", &output);
    assert_int_equal(code, 1);
    assert_output_has(output, "the checkpoint of step 30 failed: ");
    assert_output_has(output, "full/checkpoints/step-10\n");
    free(output);
    ends_well("full", "10");
}

/* ---- all processes are killed while the last checkpoint is written ---- */

static void test_crash(void **state) {
    (void)state;
    char run[32], rule[64], *output = NULL;
    int points = 0;
    for (;; points++) {
        snprintf(run, sizeof run, "crash-%d", points);
        snprintf(rule, sizeof rule, "any step-60 KILL %d", points);
        int code = resume_copy(run, "", rule, &output);
        free(output);
        if (code == 0) break; /* the run makes fewer calls than that */
        assert_int_equal(code, 128 + SIGKILL);
        snprintf(rule, sizeof rule, "%s/checkpoints/step-60", run);
        assert_false(file_exists(rule));
        verify(run, "");
        ends_well(run, "30");
        snprintf(rule, sizeof rule, "%s/checkpoints/.step-60", run);
        assert_false(file_exists(rule));
    }
    print_message("killed at %d moments\n", points);
    assert_true(points >= 8); /* a folder, five files, the folder's fsync, the rename */
}

/* After the rename the checkpoint is complete, whatever `latest` says. */
static void test_crash_before_latest(void **state) {
    (void)state;
    static const char *const rules[] = {"fsync /checkpoints$ KILL 0", "symlink .latest KILL 0",
                                        "rename .latest KILL 0"};
    char run[32], line[512], *output = NULL;
    for (int i = 0; i < 3; i++) {
        snprintf(run, sizeof run, "unlinked-%d", i);
        assert_int_equal(resume_copy(run, " --set checkpoint.every=0", rules[i], &output),
                         128 + SIGKILL);
        free(output);
        shell_of_run(run, "test $(readlink $r/checkpoints/latest) = step-10");
        verify(run, "60");
        snprintf(line, sizeof line, START, run, 60, " --resume");
        expect(line, 0, "validation loss "); /* the last evaluation is missing */
        expect(line, 0, "is complete: step 60 of 60");
        expectf(0, "/checkpoints/step-60\n", START, run, 70, " --resume");
        shell_of_run(run, "test $(readlink $r/checkpoints/latest) = step-70");
    }
}

/* ---- torn files ---- */

static void test_torn_manifest(void **state) {
    (void)state;
    static const char *const tears[] = {
        "truncate -s 0 $f",
        "truncate -s 1 $f",
        "truncate -s 100 $f",
        "truncate -s -50 $f",
        "truncate -s -3 $f",
        "n=$(stat -c %s $f) && truncate -s 0 $f && truncate -s $n $f",
        "dd if=/dev/zero of=$f bs=1 seek=200 count=64 conv=notrunc status=none",
        "rm $f",
        "rm $f && mkdir $f",
    };
    char run[32], tear[256], line[512], passed[256];
    for (size_t i = 0; i < sizeof tears / sizeof *tears; i++) {
        if (!runs_case((int)i, 2)) continue;
        snprintf(run, sizeof run, "torn-%zu", i);
        snprintf(tear, sizeof tear,
                 "cp -r undisturbed $r && f=$r/checkpoints/step-60/manifest.json && %s && "
                 "cp -r $r $r-copy",
                 tears[i]);
        shell_of_run(run, tear);
        expectf(1, "manifest.json", "ckpt verify @/%s", run);
        snprintf(line, sizeof line, START, run, 60, " --resume");
        snprintf(passed, sizeof passed,
                 "skipping a checkpoint: %s/%s/checkpoints/step-60/manifest.json:", folder, run);
        expect(line, 0, passed);
        strcat(run, "-copy");
        ends_well(run, "30");
    }
}

/* A damaged checkpoint that was skipped does not count among the retained ones, and the incomplete
 * checkpoint of a killed program is removed. */
static void test_keep(void **state) {
    (void)state;
    shell_of_run(
        "retained",
        "cp -r undisturbed $r && rm -r $r/checkpoints/step-30 && "
        "truncate -s 0 $r/checkpoints/step-60/manifest.json && mkdir $r/checkpoints/.step-50");
    expectf(0, "skipping a checkpoint", START, "retained", 40,
            " --resume --set checkpoint.keep=1 --set checkpoint.every=0");
    verify("retained", "40");
    assert_false(file_exists("retained/checkpoints/step-10"));
    assert_true(file_exists("retained/checkpoints/step-60"));
    assert_false(file_exists("retained/checkpoints/.step-50"));
}

static void test_torn_latest(void **state) {
    (void)state;
    static const char *const tears[] = {"rm $l", "ln -sfn step-999 $l", "rm $l && echo > $l",
                                        "rm $l && mkdir $l"};
    char run[32], tear[256];
    for (size_t i = 0; i < sizeof tears / sizeof *tears; i++) {
        snprintf(run, sizeof run, "latest-%zu", i);
        snprintf(
            tear, sizeof tear,
            "cp -r undisturbed $r && rm -r $r/checkpoints/step-60 && l=$r/checkpoints/latest && %s",
            tears[i]);
        shell_of_run(run, tear);
        ends_well(run, "30");
        if (i < 3) shell_of_run(run, "test $(readlink $r/checkpoints/latest) = step-60");
    }
}

/* Checkpoints that are due while one is being written are skipped: the first is logged, and at the
 * end their number. */
static void test_skipped(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("skipped", "cp -r base $r");
    program p = start("skipped", 60, " --resume --set checkpoint.every=1", "mkdir .step-11 HOLD 0");
    wait_for_file("held");
    shell_of_run("skipped",
                 "until grep -q '^{\"step\": 40,' $r/metrics.jsonl; do sleep 0.02; done");
    shell_of_run("skipped", "rm held");
    assert_int_equal(program_end(&p, &output), 0);
    assert_output_has(
        output, "the checkpoint of step 12 is skipped: the previous one is still being written");
    assert_null(strstr(output, "the checkpoint of step 13 is skipped"));
    assert_output_has(
        output, " checkpoints in a row were skipped: the previous one was still being written");
    free(output);
    verify("skipped", "60");
}

/* Worker 0 is killed when it is about to write something of the evaluation after step 12, which the
 * others have finished. */
static void lose_worker_0(const char *run, const char *keys, const char *fault) {
    pid_t pids[8];
    siginfo_t over = {0};
    char held[128], more[128], *output = NULL;
    snprintf(held, sizeof held, "%s/held", folder);
    snprintf(more, sizeof more, " --resume --set train.eval_every=12%s", keys);
    shell_of_run(run, "cp -r base $r");
    program p = start(run, 15, more, fault);
    wait_for_file("held");
    wait_for_children(p.pid, 2, pids, 8);
    shell_of_run(run, "! grep -q '12, .val_loss' $r/metrics.jsonl");
    sleep_ms(100); /* the others finish the evaluation */
    kill(pids[0], SIGKILL);
    for (; over.si_pid == 0; sleep_ms(20)) { /* the worker in its place is held, too */
        unlink(held);
        assert_int_equal(waitid(P_PID, (id_t)p.pid, &over, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    assert_int_equal(program_end(&p, &output), 0);
    assert_output_has(output, "worker 0 was killed");
    free(output);
    shell_of_run(run, "grep -q '12, .val_loss' $r/metrics.jsonl");
}

/* The evaluation, or its answers to prompts, are made again. */
static void test_evaluation_lost(void **state) {
    (void)state;
    lose_worker_0("lost", "", "write metrics.jsonl HOLD 2"); /* after two steps */
    lose_worker_0("mute", " --set train.sample_prompts=[And] --set train.sample_tokens=2",
                  "write samples.jsonl HOLD 0-1");
    shell_of_run("mute", "grep -q '.step.: 12, .prompt' $r/samples.jsonl");
}

/* ---- removed directories ---- */

/* Runs `how` while the checkpoint of step 30 is about to be written; returns the exit code. */
static int run_while_held(const char *run, const char *more, const char *how, char **output_p) {
    char args[128];
    shell_of_run(run, "cp -r base $r");
    snprintf(args, sizeof args, "%s --resume", more);
    program p = start(run, 60, args, "mkdir .step-30 HOLD 0");
    wait_for_file("held");
    shell_of_run(run, how);
    shell_of_run(run, "rm held");
    return program_end(&p, output_p);
}

/* The run directory is missing when workers replace others: its files are made again from the
 * text. */
static void test_gone_and_killed(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("both", "cp -r base $r");
    program p = start("both", 60, " --resume", "mkdir .step-30 HOLD 0");
    wait_for_file("held");
    pid_t pids[8];
    wait_for_children(p.pid, 2, pids, 8);
    shell_of_run("both", "rm -r $r");
    kill(pids[1], SIGKILL);
    shell_of_run("both", "rm held");
    assert_int_equal(program_end(&p, &output), 0);
    assert_output_has(output, "worker 1 was killed");
    assert_output_has(output, "was removed; it is created again");
    free(output);
    verify("both", "60");
    assert_hash("both", undisturbed);
}

static void gone(const char *run, const char *more, const char *how, const char *logged) {
    char *output = NULL;
    int code = run_while_held(run, more, how, &output);
    if (code != 0) fail_msg("%s: exit code %d:\n%s", run, code, output);
    assert_output_has(output, logged);
    free(output);
    verify(run, "60");
    assert_hash(run, undisturbed);
}

static void test_gone(void **state) {
    (void)state;
    static const char whole[] = "was removed; it is created again";
    char *output = NULL;
    gone("no-folder", "", "rm -r $r/checkpoints", "the checkpoint of step 30 failed: ");
    gone("no-folder-threads", THREADS, "rm -r $r/checkpoints", "the checkpoint of step 30 failed");
    gone("no-run", "", "rm -r $r", whole);
    gone("no-run-threads", THREADS, "rm -r $r", whole);
    gone("no-files", "", "rm $r/*.*", "validation loss");
    gone("moved", "", "mv $r $r-away", whole);
    verify("moved-away", "10");
    for (int i = 0; i < 3; i++) { /* the restored directory is a run */
        static const char *const runs[] = {"no-run", "no-run-threads", "no-files"};
        expectf(0, "validation loss", START, runs[i], 70, " --resume");
    }
    assert_int_equal(
        run_while_held("a-file", "", "rm -r $r/checkpoints && echo > $r/checkpoints", &output), 1);
    assert_output_has(output,
                      "the checkpoint of step 60 could not be written; there is no good one\n");
    free(output);
    expectf(1, "a-file/checkpoints: can't be read: Not a directory", START, "a-file", 60,
            " --resume");
    assert_int_equal(run_while_held("others", "", "mv $r $r-away && cp -r base $r", &output), 1);
    assert_output_has(output, "others: is now the directory of another run");
    free(output);
    verify("others", "10");
}

/* Another file system is where the directory was, as below a mount point that has lost its own:
 * nothing is written there, and the run is whole once it is back. */
static void test_unmounted(void **state) {
    (void)state;
    static const char *const how[] = {"", THREADS};
    for (int i = 0; i < 2; i++) {
        char *output = NULL;
        const char *run = i ? "unmounted-threads" : "unmounted";
        assert_int_equal(run_while_held(run, how[i], "mv $r $r-away && ln -s /proc $r", &output),
                         1);
        assert_output_has(output, ": its file system is no longer mounted there");
        assert_output_has(output, "the checkpoint of step 60 could not be written");
        free(output);
        shell_of_run(run, "rm $r && mv $r-away $r");
        ends_well(run, "10");
        expectf(0, ": clean: 60 steps", "ckpt ledger @/%s", run);
    }
}

/* What a killed process last wrote of its workers is not shown as the state of those that follow,
 * which may write none. */
static void test_old_workers(void **state) {
    (void)state;
    char path[128], *output = NULL;
    snprintf(path, sizeof path, "%s/old-workers/workers.json", folder);
    shell_of_run("old-workers", "cp -r base $r && echo '{\"workers\": []}' > $r/workers.json");
    program p = start("old-workers", 60, " --set parallel.transport=thread --resume", NULL);
    assert_int_equal(program_end(&p, &output), 0);
    free(output);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_workers),
        cmocka_unit_test(test_unmounted),
        cmocka_unit_test(test_lines_unsynced),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_last),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_unsynced),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_crash_before_latest),
        cmocka_unit_test(test_torn_manifest),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_torn_latest),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_evaluation_lost),
        cmocka_unit_test(test_gone_and_killed),
    };
    return cmocka_run_group_tests(tests, make_base, folder_remove);
}
