/* batch_test.c - `lockstep batch`: branch 1 is the run, to its bits; interrupted or killed, and
 * repeated; steps to a loss; `train --until`; what is refused. */
/* ctest: busy seconds=60 */
/* ctest: long-asan: half a minute; cli/checkpoint and cli/resume run the same code */
#include "cli/program.h"
#include "cli/terminal.h"
#include "report/frame_check.h"

#define TRAIN(name, more)                                                                          \
    "train configs/tiny.yaml -n 2 -o @/" name                                                      \
    " --set checkpoint.every=20 --set checkpoint.keep=3 "                                          \
    "--set log.every=1000 "                                                                        \
    "--set survival.balance=off " SMALL_MODEL more

#define STEPS_TO                                                                                   \
    "batch configs/tiny.yaml --steps-to 5.2 --batches 8,32,128 --rates 0.5,1,40000 --samples "     \
    "2400 " SMALL_MODEL

static int make(void **state) {
    if (folder_make(state) != 0) return -1;
    expect(TRAIN("run", "--set train.steps=60"), 0, NULL);
    return 0;
}

static void test_until(void **state) {
    (void)state;
    expect(TRAIN("until", "--set train.steps=60 --until 33"), 75,
           "stopping after step 33 (--until), with a checkpoint");
    assert_true(file_exists("until/checkpoints/step-33"));
    expect("train --resume @/until --until 33 -n 1", 75, NULL);
    expect("train --resume @/until --until 50 -n 3 --set parallel.transport=thread", 75, NULL);
    assert_true(file_exists("until/checkpoints/step-50"));
    expect("train --resume @/until -n 2", 0, NULL);
    same_hash("until", "run");
    expect("train --resume @/until --until 0", 2, "--until");
}

/* Branch 1 ends with the run's bits; others have as many samples. */
static void test_branches(void **state) {
    (void)state;
    expect("batch @/run --at 20 --branch 1,2,4 -n 2", 0,
           "branch 1 has the bits of the run at its last step");
    same_hash("run/branches/step-20-x1", "run");
    shell_of_run("run", "grep -c '\"samples\": 64,' $r/branches/step-20-x4/metrics.jsonl | "
                        "grep -qx 9 && grep -q '<circle' $r/branches/branches.svg");
    frame_check_file(folder, "run/branches/branches.svg");
    expect("ckpt verify @/run/branches/step-20-x2", 0, NULL);
    expect("batch @/run --at 20 --branch 1,2,4 -n 1 --json", 0,
           "\"branches\": [{\"k\": 1, \"batch\": 16, ");
}

/* A bar of the steps of all branches, on a terminal alone. Of the run's checkpoints only the first
 * is sure to be there: one that is due while another is being written is skipped. */
static void test_terminal(void **state) {
    static const char bar[] = "training: steps  ";
    char *output = NULL;
    (void)state;
    shell_of_run("run", "mkdir shown");
    pace("shown/step-20-x1", 20);
    shown *x = terminal_start("batch @/run --at 20 --branch 1,2 -o @/shown -n 2", 200, 24);
    terminal_expect(x, bar);
    terminal_expect(x, " of 60 (");
    terminal_expect(x, "%), left 0:");
    let_go("shown/step-20-x1");
    assert_int_equal(terminal_end(x), 0);
    assert_int_equal(run_program("batch @/run --at 20 --branch 1,2 -o @/piped -n 2", &output), 0);
    assert_null(strstr(output, bar));
    free(output);
}

/* Killed in the middle of a branch, it goes on where it was. */
static void test_killed(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("run", "mkdir killed");
    pace("killed/step-20-x2", 25);
    program p =
        program_start("batch @/run --at 20 --branch 1,2 --tokens 10240 -o @/killed -n 2", 0);
    wait_for_file("killed/step-20-x2/metrics.jsonl");
    assert_int_equal(stop_paced(&p, "killed/step-20-x2", &output), 1);
    assert_output_has(output, "interrupted; the same command continues");
    free(output);
    expect("batch @/run --at 20 --branch 1,2 --tokens 10240 -o @/killed -n 2", 0,
           "critical batch: ");
    expect("batch @/run --at 20 --branch 1,2 --tokens 10240 -o @/other -n 16", 0,
           "can have 8 workers, not 16");
    same_hash("killed/step-20-x2", "other/step-20-x2");
}

/* The training of a command that is killed ends by itself, and the same command goes on from
 * there. */
static void test_gone(void **state) {
    (void)state;
    char *output = NULL;
    shell_of_run("run", "mkdir gone");
    pace("gone/step-20-x2", 25);
    program p = program_start("batch @/run --at 20 --branch 1,2 --tokens 10240 -o @/gone -n 2", 0);
    wait_for_file("gone/step-20-x2/metrics.jsonl");
    kill(p.pid, SIGKILL);
    close(p.out);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
    p = program_start("batch @/run --at 20 --branch 1,2 --tokens 10240 -o @/gone -n 2", 0);
    sleep_ms(300);
    let_go("gone/step-20-x2");
    assert_int_equal(program_end(&p, &output), 0);
    assert_output_has(output, "critical batch: ");
    free(output);
    same_hash("gone/step-20-x2", "other/step-20-x2");
}

/* ---- side by side ---- */

/* The same table, for any number of trainings at once and any number of workers, odd ones too. */
static void test_jobs(void **state) {
    (void)state;
    static const struct {
        const char *name, *more;
    } sets[] = {{"in-turn", "-n 2"},
                {"jobs2", "-n 2 --jobs 2"},
                {"jobs3", "-n 3 --jobs 2"},
                {"many", "-n 5 --jobs 4096"},
                {"alone", "-n 1 --jobs 3"}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (!runs_case((int)i, 2)) continue;
        char line[256];
        char *output =
            output_of("batch @/run --at 20 --branch 1,2,4 --tokens 10240 -o @/%s %s --json",
                      sets[i].name, sets[i].more);
        char name[64];
        snprintf(name, sizeof name, "%s.json", sets[i].name);
        write_file(name, strchr(output, '{'), strlen(strchr(output, '{')));
        free(output);
        snprintf(line, sizeof line, "cmp in-turn.json %s.json", sets[i].name);
        shell_of_run("run", line);
        snprintf(name, sizeof name, "%s/step-20-x4", sets[i].name);
        same_hash(name, "in-turn/step-20-x4");
    }
    assert_true(file_exists("jobs3/step-20-x2.log"));
}

/* Branches of a run that three workers can't train share four of them two by two. */
static void test_jobs_of_pipelines(void **state) {
    (void)state;
    expect(TRAIN("pipe", "--set train.steps=60 --set parallel.mesh.pipe=2"), 0, NULL);
    expect("batch @/pipe --at 20 --branch 1,2,4 --tokens 10240 -o @/pipes -n 3 --jobs 3", 0,
           "critical batch: ");
    same_hash("pipes/step-20-x4", "in-turn/step-20-x4");
}

/* Killed, the trainings end with the command, and the same command goes on. Meanwhile another one
 * in the same directory is refused. */
static void test_jobs_killed(void **state) {
    (void)state;
    char *output = NULL;
    static const char line[] =
        "batch @/run --at 20 --branch 1,2,4 --tokens 10240 -o @/side -n 2 --jobs 2";
    for (int i = 0; i < 2; i++) {
        int number = i ? SIGKILL : SIGTERM;
        if (i == 0) shell_of_run("run", "mkdir side");
        pace("side/step-20-x1", 25);
        pace("side/step-20-x2", 25);
        program p = program_start(line, 0);
        wait_for_file("side/step-20-x1/metrics.jsonl");
        wait_for_file("side/step-20-x2/metrics.jsonl");
        if (i == 0) expect_line(line, 1, "is in use by another lockstep");
        if (i == 1) sleep_ms(300); /* the files are there from before */
        kill(p.pid, number);
        assert_int_equal(program_end(&p, &output), i ? 128 + SIGKILL : 1);
        if (i == 0) assert_output_has(output, "interrupted; the same command continues");
        free(output);
        output = NULL;
    }
    let_go("side/step-20-x1");
    let_go("side/step-20-x2");
    expect(line, 0, "critical batch: ");
    same_hash("side/step-20-x1", "in-turn/step-20-x1");
    same_hash("side/step-20-x4", "in-turn/step-20-x4");
}

/* The disk is full while branches are written: the command ends and says so, and the same command
 * goes on. */
static void test_full(void **state) {
    (void)state;
    static const char *const faults[][2] = {
        {"write step-20-x2.yaml ENOSPC 0", "No space left"},
        {"rename .copy ENOSPC 1", "No space left"},
        {"write .step-40/model ENOSPC 0", "could not be written; the newest good one is"},
        {"write branches.svg ENOSPC 0", "branches.svg"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (!runs_case((int)i, 2)) continue;
        char line[256], run[64];
        snprintf(line, sizeof line,
                 "batch @/run --at 20 --branch 1,2,4 --tokens 10240 -o @/full-%d -n 2 --jobs 2",
                 (int)i);
        snprintf(run, sizeof run, "full-%d/step-20-x1", (int)i);
        setenv("LOCKSTEP_FAULTS", faults[i][0], 1);
        expect(line, 1, faults[i][1]);
        unsetenv("LOCKSTEP_FAULTS");
        expect(line, 0, "critical batch: ");
        same_hash(run, "in-turn/step-20-x1");
    }
}

static void test_times(void **state) {
    (void)state;
    expect("batch @/run --at 20 --branch 1,2,4 -n 1 --machine configs/machines/v100.yaml --times "
           "1,2,16",
           0, "     16       64 ");
    expect("batch @/run --at 20 --branch 1,2,4 -n 1 --machine configs/machines/v100.yaml --times "
           "64,128",
           0, "          -          -          -          -          -\n");
    expect("batch @/run --at 20 --branch 1,2 -n 1 --machine configs/machines/v100.yaml --times 2 "
           "--json",
           0, "\"money\": [");
    expect(STEPS_TO "-n 1 -o @/steps --machine configs/machines/v100.yaml --times 1,8", 0,
           "at 3.06 USD a worker-hour");
}

/* The table is the same when it is repeated, with another number of workers, from what is there. */
static void test_steps_to(void **state) {
    (void)state;
    char *first = output_of(STEPS_TO "-n 2 -o @/steps --json");
    assert_output_has(first, "diverged");
    assert_output_has(first, "\"regime\": \"perfect scaling\"");
    char *second = output_of(STEPS_TO "-n 1 -o @/steps --json");
    assert_string_equal(strchr(first, '{'), strchr(second, '{'));
    char *side = output_of(STEPS_TO "-n 3 --jobs 2 -o @/side-by-side --json");
    assert_output_has(side, "diverged");
    assert_string_equal(strchr(first, '{'), strchr(side, '{'));
    free(first);
    free(second);
    free(side);
    expect(STEPS_TO "-n 1 -o @/steps", 0, "scaling is within 20% of perfect up to a batch of");
    frame_check_file(folder, "steps/steps.svg");
    expect_line(STEPS_TO "-n 1 -o @/steps --set train.seed=2", 1,
                "is of an earlier command with another train.seed");
    expect(
        "batch configs/tiny.yaml --steps-to 0.1 --batches 16 --rates 1 --samples 800 -n 1 -o @/far",
        0, "not reached");
}

/* A handful of steps: the first rung has one, and what no step comes to is a dash. */
static void test_few_steps(void **state) {
    (void)state;
    char *output = output_of("batch configs/tiny.yaml --steps-to 1 --batches 8,64 --rates 1,2 "
                             "--samples 20 -n 1 -o @/few --set optim.warmup=auto");
    assert_output_has(output, "batch 8: target not reached in 3 steps");
    assert_output_has(output, "batch 64: target not reached in 1 steps");
    assert_null(strstr(output, "nan"));
    free(output);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"batch @/run", "give either --branch or --steps-to"},
        {"batch @/run --branch 1,2 --steps-to 3", "give either --branch or --steps-to"},
        {"batch @/run --steps-to 3", "--steps-to needs a config file"},
        {"batch configs/tiny.yaml --steps-to x", "'x' is not a number"},
        {"batch configs/tiny.yaml --steps-to 3 --rates 1,a", "'1,a' is not a list of ascending"},
        {"batch configs/tiny.yaml --steps-to 3 --batches 8,4", "'8,4' is not a list of ascending"},
        {"batch configs/tiny.yaml --steps-to 3 --at 7", "belong to --branch"},
        {"batch @/run --branch 1,2 --rates 1", "belong to --steps-to"},
        {"batch configs/tiny.yaml --branch 1,2", "--branch needs a run directory"},
        {"batch @/run --branch 2,4", "the first branch is 1, the run itself"},
        {"batch @/run --branch 1", "and there are others"},
        {"batch @/run --branch 1,4,2", "'1,4,2' is not a list of ascending numbers"},
        {"batch @/run --branch 1,x", "'1,x' is not a list of ascending numbers"},
        {"batch @/run --branch 1,2 --times 1", "--times and --machine belong together"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_line(bad[i][0], 2, bad[i][1]);
    expect_line("batch @/run --branch 1,2 --at 7", 1, "there is no such checkpoint");
    expect_line("batch @/run --branch 1,2 --at 20 --tokens 99999", 1, "samples left, and");
    expect_line("batch @/run --branch 1,2048", 1, "are needed; use an earlier checkpoint (--at)");
    expect_line("batch @/run --branch 1,2 --machine nowhere --times 1", 1, "nowhere");
    expect_line("batch configs/tiny.yaml --steps-to 3 --batches 12 -o @/no", 1,
                "virtual_workers 8 does not divide train.batch 12");
    expect_line(
        "batch configs/tiny.yaml --steps-to 3 --jobs 2 -o @/no --set parallel.reduce=fastest", 1,
        "--jobs: not with parallel.reduce fastest");
    expect_line("batch @/run --branch 1,2 --jobs 0", 2, "--jobs: '0'");
    assert_false(file_exists("no"));
    expect_line("batch configs/tiny.yaml --steps-to 3 --batches 16 --rates 1,1000000 -o @/high", 1,
                "the learning rate is 3000, and 1000 is the most; use lower ones");
    expect_line("batch configs --branch 1,2", 1, "configs/config.yaml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_until),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_jobs_of_pipelines),
        cmocka_unit_test(test_jobs_killed),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_steps_to),
        cmocka_unit_test(test_few_steps),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
