/* tune_test.c - `lockstep tune`: twenty trials of each method; the same winner for any number of
 * workers, and after kills; what is refused. */
/* ctest: busy seconds=30 */
/* ctest: long-asan: half a minute; perf and report have tests of what it reads */
#include "cli/program.h"
#include "cli/terminal.h"
#include "report/frame_check.h"

#define TINY                                                                                       \
    "tune configs/tiny.yaml --set model.layers=1 --set model.width=12 --set model.context=16 "     \
    "--set train.eval_samples=16 --set optim.min_lr=0 "

static const char asha[] = "method: asha\ntrials: 20\nsteps: 16\ngrace: 1\nspace:\n"
                           "  optim.optimizer: {choice: [adamw, sgd]}\n"
                           "  optim.lr:\n"
                           "    - {log_uniform: [1e-4, 1e-1], when: {optim.optimizer: adamw}}\n"
                           "    - {log_uniform: [1e-2, 10], when: {optim.optimizer: sgd}}\n";
static const char pbt[] = "method: pbt\ntrials: 4\nsteps: 12\ninterval: 4\nspace:\n"
                          "  optim.lr: {log_uniform: [1e-3, 1]}\n"
                          "  optim.beta2: {choice: [0.9, 0.99, 0.999]}\n";

static int make(void **state) {
    if (folder_make(state) != 0) return -1;
    write_file("asha.yaml", asha, strlen(asha));
    write_file("pbt.yaml", pbt, strlen(pbt));
    return 0;
}

/* Both searches came to the same, and their best configs are the same. */
static void same_result(const char *a, const char *b) {
    char line[256];
    snprintf(line, sizeof line, "cmp %s/tune.txt %s/tune.txt && cmp %s/best.yaml %s/best.yaml", a,
             b, a, b);
    shell_of_run(a, line);
}

/* Rungs 1, 4, 16 of 20 trials: at least 5 and 1 go on. The table is the same for any number of
 * workers. */
static void test_asha(void **state) {
    (void)state;
    expect(TINY "--space @/asha.yaml -o @/one -n 1", 0, "best: trial ");
    expect(TINY "--space @/asha.yaml -o @/two -n 2", 0, "\n          1                 20\n");
    same_result("one", "two");
    if (all_cases()) {
        expect(TINY "--space @/asha.yaml -o @/three -n 3 --parallel 2", 0, NULL);
        same_result("one", "three");
    }
    shell_of_run("one", "grep -q '#c3c9d0' one/tune.svg && grep -q 'stroke=.#cb6e17' one/tune.svg");
    frame_check_file(folder, "one/tune.svg");
    /* all is there: nothing is trained */
    shell_of_run("one", "cp one/tune.jsonl before");
    expect(TINY "--space @/asha.yaml -o @/one -n 2", 0, "best: trial ");
    shell_of_run("one", "cmp before one/tune.jsonl");
    /* a trial that there can't be, and a line that is none */
    static const char *const bad[] = {"{\"trial\": 2147483648, \"step\": 10, \"metric\": 1}",
                                      "{\"trial\": 1}"};
    for (int i = 0; i < 2; i++) {
        char line[128];
        snprintf(line, sizeof line, "cp before one/tune.jsonl && echo '%s' >>one/tune.jsonl",
                 bad[i]);
        shell_of_run("one", line);
        expect(TINY "--space @/asha.yaml -o @/one -n 2", 1, "is damaged; remove the line");
    }
    shell_of_run("one", "mv before one/tune.jsonl");
}

/* best.yaml is a config: its run has the bits of the best trial. */
static void test_best(void **state) {
    (void)state;
    expect("train @/one/best.yaml -o @/best -n 2", 0, NULL);
    shell_of_run("best", "t=$(sed -n '1s/.*Trial \\([0-9]*\\) .*/\\1/p' one/best.yaml) && "
                         "ln -s $(printf one/trial-%03d $t) winner");
    same_hash("best", "winner");
    expect("train --resume @/winner --set train.steps=20 -n 1", 0, NULL);
}

/* A search with more trials goes on from those that are there. */
static void test_more(void **state) {
    (void)state;
    static const char few[] =
        "method: random\ntrials: 2\nsteps: 2\nspace: {optim.lr: {uniform: [0.01, 0.1]}}\n";
    static const char more[] =
        "method: random\ntrials: 3\nsteps: 2\nspace: {optim.lr: {uniform: [0.01, 0.1]}}\n";
    write_file("few.yaml", few, strlen(few));
    write_file("more.yaml", more, strlen(more));
    expect(TINY "--space @/few.yaml -o @/more -n 2 --set optim.warmup=0", 0, NULL);
    expect(TINY "--space @/more.yaml -o @/more -n 2 --set optim.warmup=0", 0,
           "\n     3         2 ");
    /* a pipeline of two can't have three workers, nor one */
    expect(TINY
           "--space @/more.yaml -o @/pipes -n 3 --set optim.warmup=0 --set parallel.mesh.pipe=2",
           0, NULL);
    shell_of_run("more", "cmp more/tune.txt pipes/tune.txt");
}

static void test_grid(void **state) {
    (void)state;
    static const char grid[] =
        "method: grid\nsteps: 2\nspace:\n  optim.lr: {choice: [0.01, 0.1, 900]}\n"
        "  optim.weight_decay: {choice: [0, 0.1]}\n";
    write_file("grid.yaml", grid, strlen(grid));
    expect(TINY "--space @/grid.yaml --list --set optim.warmup=0", 0,
           "\n    4  optim.lr=0.1 optim.weight_decay=0.1\n");
    expect(TINY "--space @/grid.yaml -o @/grid -n 2 --json --set optim.warmup=0 "
                "--set optim.optimizer=sgd",
           0, "\"rungs\": [{\"step\": 2, \"trials\": 6}]");
    frame_check_file(folder, "grid/tune.svg");
}

/* Without a file: a grid of values; its picture has a dot a trial. */
static void test_try(void **state) {
    (void)state;
#define SHORT TINY "--set train.steps=2 --set optim.warmup=0 --set optim.optimizer=sgd "
    expect(SHORT "--lr 0.01,0.1,900 -o @/try -n 2", 0,
           "method grid, 3 trials of 2 steps; optim.lr 0.01, 0.1, 900");
    shell_of_run("try", "test $(grep -c '<title>' try/tune.svg) = 3 && "
                        "grep -q 'optim.lr (log)' try/tune.svg");
    frame_check_file(folder, "try/tune.svg");
    expect(SHORT "--try optim.lr=log:0.01,0.1 --try optim.weight_decay=0,0.1 --list", 0,
           "method random, 20 trials of 2 steps; optim.lr from 0.01 to 0.1 (log); "
           "optim.weight_decay 0, 0.1");
    /* all is there: the same table */
    shell_of_run("try", "cp try/tune.txt before.txt");
    expect("tune --resume @/try", 0, "best: trial ");
    shell_of_run("try", "cmp before.txt try/tune.txt && rm before.txt");
    expect_line("tune --resume @/try --lr 1", 2, "leave out --lr");
    expect_line("tune --resume @/try --trials 4", 1, "method grid trains every combination");
    expect_line("tune @/try", 2, "is a directory; to continue a search add --resume");
    expect_line(SHORT "--try train.steps=1,2 -o @/none", 1,
                "--try: train.steps: is the same in all trials");
    expect_line("tune --resume @/none", 1, "none: does not exist");
    expect_line("tune --resume @/try/trial-001", 1, "is a run, not a search");
}

/* ---- kills ---- */

static bool has_ended(pid_t pid) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Starts it, kills it after some time, and so on, until it ends by itself; returns how often it
 * was killed. */
static int kill_often(const char *line, unsigned seed) {
    for (int kills = 0; kills < 100; kills++) {
        char *output = NULL;
        program p = program_start(line, 0);
        seed = seed * 1664525u + 1013904223u;
        long ms = kills < 8 ? 20 + (long)(seed >> 16) % 400 : 60000;
        for (; ms > 0 && !has_ended(p.pid); ms -= 10) sleep_ms(10);
        kill(p.pid, SIGKILL);
        int code = program_end(&p, &output);
        if (code != 128 + SIGKILL && code != 0) print_error("%s\n", output);
        free(output);
        if (code == 0) return kills;
        assert_int_equal(code, 128 + SIGKILL);
    }
    return -1;
}

static void test_killed(void **state) {
    (void)state;
    int kills = kill_often(TINY "--space @/asha.yaml -o @/killed -n 2", 1);
    assert_in_range(kills, 1, 99);
    same_result("one", "killed");
}

static void test_pbt(void **state) {
    (void)state;
    expect(TINY "--space @/pbt.yaml -o @/population -n 2", 0, "continues from trial");
    int kills = kill_often(TINY "--space @/pbt.yaml -o @/replaced -n 1", 2);
    expect("tune --resume @/replaced -n 2", 0, "best: trial ");
    assert_in_range(kills, 1, 99);
    same_result("population", "replaced");
    expect("train @/population/best.yaml -o @/last -n 1 --set train.steps=6", 0, NULL);
    shell_of_run("population",
                 "ls -d population/trial-*-from-4 population/trial-*-from-8 > /dev/null");
}

/* The process of a trial of a population is killed: the command ends and says which, and the same
 * command goes on to the same result. */
static void test_killed_trial(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("one", "mkdir struck");
    pace("struck/trial-003", 2);
    program p = program_start(TINY "--space @/pbt.yaml -o @/struck -n 2", 0);
    wait_for_file("struck/trial-003/metrics.jsonl");
    shell_of_run("one",
                 "kill -9 $(sed -n 's/^process \\([0-9]*\\).*/\\1/p' struck/trial-003/lock)");
    let_go("struck/trial-003");
    assert_int_equal(program_end(&p, &output), 1);
    assert_output_has(output, "trial-003 was killed by signal 9; the same command continues");
    free(output);
    expect(TINY "--space @/pbt.yaml -o @/struck -n 2", 0, "best: trial ");
    same_result("population", "struck");
}

/* Disks that are full while results, tables, configs and checkpoints are written: the command ends
 * and says which file, and the same command goes on to the same result. */
static void test_full(void **state) {
    (void)state;
    static const char *const faults[][2] = {
        {"write tune.jsonl ENOSPC 4", "tune.jsonl: can't be written: No space left"},
        {"write tune.txt ENOSPC 3", "tune.txt"},
        {"write trial-002.log ENOSPC 0; write trial-002/checkpoints ENOSPC 0",
         "trial-002.log: can't be written: No space left"},
        {"write trial-004 ENOSPC 0", "trial-004"},
        {"write .step-4/model ENOSPC 0", "could not be written; there is no good one"},
        {"rename .copy ENOSPC 0", "No space left"},
        {"rename best.yaml ENOSPC 0", "best.yaml"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char line[512], name[32];
        if (!runs_case((int)i, 2)) continue;
        snprintf(name, sizeof name, "full-%d", (int)i);
        snprintf(line, sizeof line, TINY "--space @/pbt.yaml -o @/%s -n 2", name);
        setenv("LOCKSTEP_FAULTS", faults[i][0], 1);
        expect(line, 1, faults[i][1]);
        unsetenv("LOCKSTEP_FAULTS");
        expect(line, 0, "best: trial ");
        same_result("population", name);
    }
}

static void test_interrupted(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("one", "mkdir slow");
    pace("slow/trial-001", 0);
    program p = program_start(TINY "--space @/asha.yaml -o @/slow -n 1", 0);
    wait_for_file("slow/trial-001/config.yaml");
    expect_line(TINY "--space @/asha.yaml -o @/slow -n 1", 1, "is in use by another lockstep");
    kill(p.pid, SIGINT);
    assert_int_equal(program_end(&p, &output), 1);
    let_go("slow/trial-001");
    assert_non_null(strstr(output, "interrupted; the same command continues"));
    assert_non_null(strstr(output, "tune --resume "));
    free(output);
    expect("tune --resume @/slow -n 2", 0, "best: trial ");
    same_result("one", "slow");
}

/* The search goes on when who reads its output has ended, as tee may at Ctrl-C. */
static void test_no_reader(void **state) {
    (void)state;
    shellf("{ %s " TINY
           "--space %s/asha.yaml -o %s/alone -n 1 >/dev/null; echo $? >%s/code; } 2>&1 "
           "| true; grep -qx 0 %s/code",
           LOCKSTEP_PROGRAM, folder, folder, folder, folder);
    same_result("one", "alone");
}

/* A signal that arrives before the first trial: what is being written is complete. */
static void test_interrupted_early(void **state) {
    (void)state;
    static const char *const names[] = {"trial-001", "base.yaml"};
    for (int i = 0; i < 2; i++) {
        char *faults = ls_format("write %s TERM 0-1", names[i]), line[256];
        snprintf(line, sizeof line, TINY "--space @/asha.yaml -o @/early-%d -n 1", i);
        setenv("LOCKSTEP_FAULTS", faults, 1);
        expect(line, 1, "interrupted; the same command continues");
        unsetenv("LOCKSTEP_FAULTS");
        free(faults);
        snprintf(line, sizeof line, "early-%d", i);
        shell_of_run(line, "test -z \"$(find $r -name '.lockstep-*')\"");
    }
    expect(TINY "--space @/asha.yaml -o @/early-0 -n 1", 0, "best: trial ");
    same_result("one", "early-0");
}

/* ---- what is refused ---- */

static void refuse(const char *text, const char *says) {
    write_file("bad.yaml", text, strlen(text));
    expect_line(TINY "--space @/bad.yaml -o @/refused", 1, says);
    assert_false(file_exists("refused"));
}

static void test_refused(void **state) {
    (void)state;
    expect_line("tune configs/tiny.yaml", 2, "say what to try, e.g. --lr 1e-4,1e-3");
    expect_line("tune configs/tiny.yaml --space @/nowhere.yaml", 1, "nowhere.yaml");
    expect_line(TINY "--space @/asha.yaml -n 0", 2, "--workers: '0'");
    refuse("method: bayes\n", "bad.yaml:1: method: 'bayes' is not one of grid, random, asha, pbt");
    refuse("method: random\ntrials: 3\nspace: {optim.l: {choice: [1]}}\n", "unknown key 'optim.l'");
    refuse("method: random\ntrials: 3\nspace: {optim.lr: {uniform: [2, 1]}}\n",
           "bad.yaml:3: optim.lr: is empty");
    refuse("method: random\ntrials: 3\nspace: {optim.lr: {log_uniform: [0, 1]}}\n",
           "needs values above 0");
    refuse("method: grid\nspace: {train.batch: {choice: [16, 12]}}\n",
           "bad.yaml: train.batch=12: train.virtual_workers 8 does not divide");
    refuse("method: grid\nspace: {sync.mode: {choice: [async]}}\n", "not with sync.mode async");
    refuse("method: grid\nspace: {parallel.reduce: {choice: [fastest]}}\n",
           "not with parallel.reduce fastest");
    expect_line(TINY "--space @/asha.yaml -o @/one --set train.seed=7", 1,
                "is of an earlier command with another train.seed");
    expect_line(TINY "--space @/pbt.yaml -o @/one", 1,
                "is of an earlier search with another 'method'");
    expect_line(TINY "--space @/asha.yaml -o @/best", 1, "is a run directory");
}

/* On a terminal, how long all trials will take: known when the first has ended. */
static void test_terminal(void **state) {
    static const char line[] =
        TINY "--lr 0.01,0.02,0.03 --set train.steps=8 -n 1 --parallel 1 -o @/shown";
    (void)state;
    shown *x = terminal_start(line, 200, 24);
    terminal_expect(x, "3 trials  ");
    terminal_expect(x, "  left 0:");
    assert_int_equal(terminal_end(x), 0);
    shell_of_run("shown", "rm -r shown");
    char *output = NULL;
    assert_int_equal(run_program(line, &output), 0);
    assert_null(strstr(output, "  left 0:"));
    free(output);
}

/* A metric that evaluations don't have is found at the first one. */
static void test_metric(void **state) {
    (void)state;
    static const char text[] = "method: grid\nsteps: 1\nmetric: val_accuracy\nmode: max\nspace: "
                               "{optim.lr: {choice: [0.01]}}\n";
    write_file("metric.yaml", text, strlen(text));
    expect(TINY "--space @/metric.yaml -o @/metric -n 1 --set optim.warmup=0", 1,
           "metric val_accuracy: is in no line of step 1 of");
    expect(TINY
           "--space @/grid.yaml -o @/lost -n 2 --set optim.warmup=0 --set data.path=@/nowhere.txt",
           1, "nowhere.txt");
}

/* Two trials of 8 workers at most have half of 112 cores each. Their configs say auto. */
static void test_cores(void **state) {
    (void)state;
    setenv("HWLOC_SYNTHETIC", "package:2 core:56 pu:2", 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    expect("tune configs/tiny.yaml --lr 1e-3,2e-3 -o @/cores --set train.steps=1 "
           "--set optim.warmup=0 --set parallel.threads=auto",
           0, "best: trial ");
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
    for (int i = 1; i <= 2; i++)
        shellf("grep -q ': 8 workers x 7 threads = 56 cores$' %s/cores/trial-00%d.log && "
               "grep -q 'threads: \"auto\"' %s/cores/trial-00%d/config.yaml",
               folder, i, folder, i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asha),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_try),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_pbt),
        cmocka_unit_test(test_killed_trial),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_interrupted_early),
        cmocka_unit_test(test_no_reader),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_metric),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_cores),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
