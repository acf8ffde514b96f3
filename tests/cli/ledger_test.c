/* ledger_test.c - metrics.jsonl that is lost, cut, damaged, forged or very large: `ckpt ledger`
 * reports the error, and a run continues from it and marks the missing lines. */
/* ctest: long-asan: the tests of report read the same files */
#include "cli/program.h"

static const char START[] = "train configs/tiny.yaml -n 2 -o @/%s --set train.steps=%d "
                            "--set checkpoint.every=20 --set log.every=1000 "
                            "--set train.eval_every=10 --set survival.balance=off%s";

static int make_base(void **state) {
    if (folder_make(state) != 0) return -1;
    expectf(0, NULL, START, "base", 20, "");
    shell_of_run("base", "grep -q '\"started\"' $m && sed -i '/\"started\"/d' $m");
    return 0;
}

static void ledger(const char *run, int code, const char *says) {
    expectf(code, says, "ckpt ledger @/%s", run);
}

/* What `sed` or another command does to the log of 20 steps, without the line of its start, with an
 * evaluation after step 10 (line 11) and 20 (line 22). */
static const char *const bad[][2] = {
    {": > $m", "ends with step 0, but"},
    {"rm $m", "metrics.jsonl: can't be opened"},
    {"truncate -s $(($(head -10 $m | wc -c) + 40)) $m", "the lines of steps 11 to 20 are missing"},
    {"sed -i 22,99d $m && sed -i 21d $m", "the lines of steps 20 to 20 are missing"},
    {"dd if=/dev/zero of=$m bs=1 seek=$(($(head -7 $m | wc -c) + 50)) count=64 conv=notrunc "
     "status=none",
     "metrics.jsonl:8: is damaged"},
    {"sed -i '5s/\"workers\": 2/\"workers\": -5/' $m",
     "metrics.jsonl:5: step 5 was made by -5 work"},
    {"sed -i '5s/\"workers\": 2/\"workers\": 4611686018427387904/' $m",
     "metrics.jsonl:5: step 5 was"},
    {"sed -i '5s/\"workers\": 2/\"workers\": 9999/' $m", "this run can have 1 to 2048"},
    {"sed -i '5s/\"workers\": 2/\"workers\": 2.5/' $m", "metrics.jsonl:5: step 5 does not name"},
    {"sed -i '5s/\"view\": 1/\"view\": -9223372036854775808/' $m", "step 5 has view -9223372"},
    {"sed -i '5s/\"samples\": 16/\"samples\": 9223372036854775807/' $m",
     "it should have 16 from 64"},
    {"sed -i '5s/\"first\": 64/\"first\": 9223372036854775807/' $m", "it should have 16 from 64"},
    {"sed -i '5s/\"epoch\": 0/\"epoch\": -1/' $m", "metrics.jsonl:5: step 5 has 16 samples"},
    {"sed -i '5s/\"step\": 5/\"step\": 9223372036854775807/' $m", ":5: has no step from 1 to"},
    {"sed -i '5s/\"step\": 5/\"step\": 0/' $m", "metrics.jsonl:5: has no step from 1 to"},
    {"sed -i '5s/.*/what is this/' $m",
     "metrics.jsonl:5: is damaged: the line is not valid JSON: "},
    {"sed -i '5s/.*//' $m", "metrics.jsonl:5: is damaged: the line is not valid JSON: "},
    {"sed -i '5s/.*/[5]/' $m", "metrics.jsonl:5: has no step"},
    {"sed -i '5s/\"loss\"/\"lost\"/' $m", ":5: step 5: is neither a step, nor an evaluation"},
    {"sed -i '11s/\"step\": 10/\"step\": 12/' $m", ":11: has an evaluation after step 12"},
    {"sed -i '5s/.*/{\"step\": 6, \"gap\": [5, 6]}/' $m", ":6: has step 6 after step 6"},
    {"sed -i '5s/.*/{\"step\": 5, \"gap\": [1, 5]}/' $m",
     ":5: has a gap from step 1 on after step 4"},
    {"sed -i '5s/.*/{\"step\": 5, \"gap\": [5, 4611686018427387904]}/' $m",
     ":5: has a gap that is"},
    {"sed -i '5s/.*/{\"step\": 5, \"gap\": [5, 5]}/' $m", "not clean: 1 of 20 steps have no lines"},
    {"head -c 70000 /dev/zero | tr '\\0' x >> $m && echo >> $m", "is damaged: a line of more than"},
    {"cat $m >> $m.2 && cat $m.2 >> $m", "metrics.jsonl:23: has step 1 after step 20"},
};

static void test_bad(void **state) {
    (void)state;
    ledger("base", 0, ": clean: 20 steps by 2 workers");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        shell_of_run("bad", "rm -rf $r && cp -r base $r");
        shell_of_run("bad", bad[i][0]);
        ledger("bad", 1, bad[i][1]);
    }
    shell_of_run("bad", "rm -rf $r && cp -r base $r && printf '{\"step\": 21, \"lo' >> $m");
    ledger("bad", 0, ": clean: 20 steps"); /* being written */
}

/* ---- runs that are resumed ---- */

static void resume(const char *run, const char *damage, const char *says) {
    char line[512], *output = NULL;
    shell_of_run(run, "cp -r base $r");
    shell_of_run(run, damage);
    snprintf(line, sizeof line, START, run, 30, " --resume");
    int code = run_program(line, &output);
    if (code != 0 || (says ? !strstr(output, says) : strstr(output, "has no lines") != NULL))
        fail_msg("%s: exit code %d, expected: %s\n%s", run, code, says, output);
    free(output);
}

static void test_gaps(void **state) {
    (void)state;
    char undisturbed[256];
    resume("undisturbed", "true", NULL);
    ledger("undisturbed", 0, ": clean: 30 steps");
    hash_of("undisturbed", undisturbed);
    resume("missing", "rm $m", "metrics.jsonl: has no lines of steps 1 to 20; training continues");
    ledger("missing", 1,
           "not clean: 20 of 30 steps have no lines in metrics.jsonl, the first gap "
           "is 1 to 20");
    assert_hash("missing", undisturbed);
    resume("empty", ": > $m", "has no lines of steps 1 to 20");
    ledger("empty", 1, "not clean: 20 of 30 steps");
    resume("half", "truncate -s $(($(head -10 $m | wc -c) + 40)) $m",
           "has no lines of steps 11 to 20");
    ledger("half", 1,
           "not clean: 10 of 30 steps have no lines in metrics.jsonl, the first gap is "
           "11 to 20");
    resume("torn", "printf '{\"step\": 21, \"lo' >> $m", NULL);
    ledger("torn", 0, ": clean: 30 steps");
    resume("beyond", "sed '20,22s/\"step\": 20/\"step\": 21/' $m | tail -2 >> $m", NULL);
    ledger("beyond", 0, ": clean: 30 steps");
    resume("zeros", "head -c 300000 /dev/zero >> $m", NULL);
    ledger("zeros", 0, ": clean: 30 steps");
    resume("middle",
           "dd if=/dev/zero of=$m bs=1 seek=$(($(head -7 $m | wc -c) + 50)) count=64 conv=notrunc "
           "status=none",
           NULL);
    ledger("middle", 1, "metrics.jsonl:8: is damaged");
}

/* If the file is removed while a run trains, only its lines are lost. */
static void test_taken_away(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("away", "cp -r base $r");
    hold_after("away", 26);
    program p = startf(START, "away", 50, " --resume");
    shell_of_run("away", "until grep -q '\"step\": 26,' $m; do sleep 0.02; done; rm $m");
    let_go("away");
    assert_int_equal(program_end(&p, &output), 0);
    assert_non_null(strstr(output, "has no lines of steps 1 to 40"));
    free(output);
    ledger("away", 1, "not clean: 40 of 50 steps");
}

/* 5 GB: a worker is killed, the run ends without an error, and can be resumed. */
static void large(const char *run, const char *how) {
    char *output = NULL;
    pid_t pids[8];
    shell_of_run(run, "cp -r base $r");
    shell_of_run(run, how);
    hold_after(run, 26);
    program p = startf(START, run, 40, " --resume");
    shell_of_run(run, "until tail -c 1000 $m | grep -q '\"step\": 26,'; do sleep 0.02; done");
    wait_for_children(p.pid, 2, pids, 8);
    kill(pids[0], SIGKILL);
    let_go(run);
    int code = program_end(&p, &output);
    if (code != 0 || !strstr(output, "was killed"))
        fail_msg("%s: exit code %d:\n%s", run, code, output);
    free(output);
    expectf(0, "validation loss", START, run, 50, " --resume");
}

static void test_large(void **state) {
    (void)state;
    large("large-front", "mv $m x && truncate -s 5G $m && (echo; cat x) >> $m");
    ledger("large-front", 1, "metrics.jsonl:1: is damaged: a line of more than");
    shell_of_run("large-front", "test $(stat -c %s $m) -gt 5000000000");
    large("large-end", "truncate -s 5G $m");
    ledger("large-end", 0, ": clean: 50 steps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_taken_away),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, make_base, folder_remove);
}
