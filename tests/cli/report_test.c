/* report_test.c - lockstep report --scaling, --cost and --seeds, and lockstep plan --budget. */
/* ctest: busy seconds=3 */
/* ctest: long-asan: the tests of report and perf/forecast run the same code */
#include "program.h"
#include "report/frame_check.h"

#define REPORT                                                                                     \
    "report --scaling configs/tiny.yaml --steps 2 --machine configs/machines/p100.yaml " SMALLER

/* What a line of JSON has after a key. */
static double number(const char *line, const char *key) {
    const char *at = strstr(line, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

/* One worker is measured here on any machine, 64 workers are simulated. */
static void test_json(void **state) {
    (void)state;
    char *output = output_of(REPORT "-n 1,4,16 --json");
    const char *weak = strstr(output, "{\"scaling\": \"weak\"");
    const char *strong = strstr(output, "{\"scaling\": \"strong\"");
    assert_true(weak && strong && weak < strong);
    assert_non_null(strstr(weak, "{\"workers\": 1, \"batch\": 16, \"measured\": {\"step_s\": "));
    assert_non_null(strstr(weak, "{\"workers\": 16, \"batch\": 256, \"measured\": "));
    assert_non_null(strstr(strong, "{\"workers\": 16, \"batch\": 16, \"measured\": "));
    /* the last point: below linear, and communication is a part of the step */
    const char *last = strstr(strong, "{\"workers\": 16");
    const char *simulated = strstr(last, "\"simulated\": {");
    assert_true(number(simulated, "\"speedup\": ") > 1);
    assert_true(number(simulated, "\"efficiency\": ") < 1);
    assert_true(number(simulated, "\"communication\": ") > 0);
    assert_true(number(simulated, "\"communication\": ") < 1);
    const char *serial = strstr(strong, "\"serial\": ");
    assert_non_null(serial);
    assert_true(number(serial, "\"simulated\": ") > 0);
    assert_true(number(serial, "\"simulated\": ") < 0.5);
    free(output);
}

static void test_table(void **state) {
    (void)state;
    expect(REPORT "-n 1 --svg @/s.svg", 0, "strong scaling: the batch is that of the config");
    frame_check_file(folder, "s.svg");
    expect(REPORT "-n 1", 0, "not known from one number of workers");
    expect(REPORT "-n 1,4 --link 25Gb/s,50us --host-workers 1", 0, "weak scaling: ");
}

/* A number of workers that one way does not allow is a line; the rest is reported. */
static void test_possible(void **state) {
    (void)state;
    expect(REPORT "-n 16,64,512 --svg @/possible.svg", 0,
           "64 not possible: strong scaling: train.batch 16 can't be divided");
    frame_check_file(folder, "possible.svg");
    char *output = output_of(REPORT "-n 64,512 --json"); /* no strong scaling */
    assert_non_null(strstr(output, "{\"workers\": 512, \"batch\": 1024, \"measured\": null, "));
    assert_non_null(strstr(output, "{\"workers\": 512, \"batch\": null, \"measured\": null, "
                                   "\"simulated\": null, \"reason\": \"strong scaling: "));
    free(output);
    /* the first that is possible is what others are compared to */
    output = output_of(REPORT "-n 3,16 --set parallel.mesh.pipe=2 --json");
    const char *at = strstr(output, "{\"workers\": 16");
    assert_non_null(strstr(output, "{\"workers\": 3, \"batch\": null"));
    assert_true(at && number(at, "\"efficiency\": ") == 1);
    free(output);
    expect(REPORT "-n 12", 0, "12 not possible: strong scaling: ");
    expect(REPORT "-n 3,5 --set parallel.mesh.pipe=2", 1, "can't be divided into groups of 2");
}

/* A copy of the machine's file, with prices. */
static void write_priced(const char *name, const char *prices) {
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read("configs/machines/p100.yaml", 1 << 20, &text, &e), e);
    ls_buf_printf(&text, "%s", prices);
    write_file(name, text.data, text.len);
    ls_buf_free(&text);
}

/* An hour costs 3.6 million: 1000 a second and worker; 3.6 kW are a Wh a second and worker. */
#define PRICES "cost:\n  worker_hour: 3600000\n  watts: 3600\n  currency: CHF\n"

/* What a run cost is the sum of its lines. */
static void test_cost(void **state) {
    (void)state;
    write_priced("priced.yaml", PRICES);
    expect("train configs/tiny.yaml -o @/run -n 2 --set train.steps=6", 0, NULL);
    static const char lines[] = "{\"step\": 1, \"loss\": 1.0, \"seconds\": 0.5, \"workers\": 2}\n"
                                "{\"step\": 2, \"loss\": 1.0, \"seconds\": 0.25, \"workers\": 4}\n"
                                "{\"step\": 2, \"val_loss\": 1.0}\n";
    write_file("run/metrics.jsonl", lines, sizeof lines - 1);
    char *output = output_of("report --cost @/run --machine @/priced.yaml --json");
    /* 0.5 s x 2 + 0.25 s x 4 = 2 s of a worker */
    assert_true(number(output, "\"money\": ") > 1999.99 && number(output, "\"money\": ") < 2000.01);
    assert_true(number(output, "\"kwh\": ") > 0.00199 && number(output, "\"kwh\": ") < 0.00201);
    assert_non_null(strstr(output, "\"currency\": \"CHF\""));
    free(output);
    expect("report --cost @/run @/run --machine @/priced.yaml", 0, "4000 CHF, 0.004 kWh  all");
    expect_line("report --cost @/run", 2, "--cost needs the file with the prices");
    expect_line("report --cost @/none --machine @/priced.yaml", 1, "none");
    expect_line("report --cost @/run --machine configs/machines/p100.yaml", 1,
                "has neither cost.worker_hour nor cost.watts");
}

#define PLAN "plan configs/tiny.yaml --machine @/priced.yaml "

/* On the simulated machine one worker is the cheapest, and 8 are the fastest. */
static void test_budget(void **state) {
    (void)state;
    write_priced("priced.yaml", PRICES);
    expect(PLAN "-n 2", 0, " CHF, ");
    expect(PLAN "-n 2", 0, "predicted for 50 steps: ");
    char *output = output_of(PLAN "--budget 1e9 --json");
    const char *one = strstr(output, "\"workers\": 1,"), *best = strstr(output, "\"best\": true");
    assert_true(one && best && strstr(output, "\"workers\": 8,") < best);
    double cheap = number(output, "\"money\": "); /* of the first line: one worker */
    free(output);
    char line[160], all[128];
    output = output_of(PLAN "--budget %.9g --json", cheap * 1.0001);
    best = strstr(output, "\"best\": true");
    assert_true(best && best < strchr(output, '\n')); /* one worker, the cheapest, alone fits */
    free(output);
    snprintf(line, sizeof line, PLAN "--budget %.9g", cheap / 2);
    snprintf(all, sizeof all, "no number of workers fits; the cheapest, 1, needs %.4g CHF", cheap);
    expect(line, 1, all);
    expect(line, 1, " 25\n"); /* steps that the budget pays for */
    expect_line("plan configs/tiny.yaml --machine configs/machines/p100.yaml --budget 5", 1,
                "has no cost.worker_hour, so --budget can't be compared");
    expect_line(PLAN "--budget x", 2, "--budget: 'x' is not a number");
}

static void test_prices(void **state) {
    (void)state;
    write_priced("bad.yaml", "cost:\n  worker_hour: cheap\n");
    expect_line("plan configs/tiny.yaml --machine @/bad.yaml --budget 5", 1,
                "cost.worker_hour is 'cheap'");
    write_priced("bad.yaml", "cost:\n  hour: 3\n");
    expect_line("plan configs/tiny.yaml --machine @/bad.yaml --budget 5", 1,
                "'cost.hour' is not a key");
    expect_line("bench machine --price 3", 2, "are written to a file: add --save FILE");
    expect_line("bench machine --watts -3 --save @/m.yaml", 2, "--watts: '-3' is not a number");
}

#define SEEDS                                                                                      \
    "report --seeds 3 configs/tiny.yaml -n 1 -o @/seeds --set train.steps=8 "                      \
    "--set train.eval_every=2 --target "

/* Runs that are there already are not trained again; the report is that of their lines. */
static void test_seeds(void **state) {
    (void)state;
    char *output = output_of(SEEDS "val_loss<=5.6 --json");
    assert_non_null(strstr(output, "{\"seed\": 1, \"reached\": true, \"steps\": "));
    const char *all = strstr(output, "{\"target\": \"val_loss<=5.6\", \"seeds\": 3, ");
    assert_non_null(all);
    assert_true(number(all, "\"steps\": ") >= 2 && number(all, "\"steps\": ") <= 8);
    char *again = output_of(SEEDS "val_loss<=5.6 --json");
    assert_string_equal(strstr(again, "{\"seed\": 1"), strstr(output, "{\"seed\": 1"));
    free(output);
    free(again);
    expect(SEEDS "val_loss<=5.6", 0, "mean of all 3 seeds: ");
    expect(SEEDS "val_loss<=5.6", 0, " seconds (+- ");
    expect(SEEDS "val_loss<=5.6", 0, "\nto val_loss<=5.6\n");
    expect(SEEDS "val_loss<=1", 1, "0 of 3 seeds reach it, and of fewer than 5 none may miss it");
    expect(SEEDS "val_f1>=1", 1, "'val_f1' is in no line of ");
    expect_line(SEEDS "val_loss", 1, "is not a metric with its limit");
    expect_line("report --seeds 2 configs/tiny.yaml", 2, "--seeds: ");
    expect_line("report --seeds 3 configs/tiny.yaml", 2, "--seeds needs one CONFIG.yaml, --target");
}

/* The values of a line of a seed, but for its time. */
static void copy_seed(const char *output, int seed, char text[128]) {
    char begin[64];
    snprintf(begin, sizeof begin, "{\"seed\": %d, ", seed);
    const char *s = strstr(output, begin), *end = s ? strstr(s, "\"seconds\"") : NULL;
    const char *best = end ? strstr(end, "\"best\"") : NULL;
    assert_non_null(best);
    snprintf(text, 128, "%.*s%.*s", (int)(end - s), s, (int)strcspn(best, "}"), best);
}

#define KILLED(dir, logs)                                                                          \
    "report --seeds 3 configs/tiny.yaml -n 1 -o @/" dir " --set train.steps=12 --mllog @/" logs    \
    " --set train.eval_every=2 --target val_loss<=5.6 --json"

/* Killed in the middle of a training, it goes on there, with the same result and whole logs. */
static void test_seeds_killed(void **state) {
    (void)state;
    char a[128], b[128], line[256];
    shell_of_run("killed", "mkdir killed");
    pace("killed/seed-2", 6);
    program p = program_start(KILLED("killed", "logs"), 0);
    wait_for_file("killed/seed-2/metrics.jsonl");
    sleep_ms(500);
    kill(p.pid, SIGKILL);
    close(p.out);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
    let_go("killed/seed-2");
    char *output = output_of(KILLED("killed", "logs"));
    char *whole = output_of(KILLED("whole", "others"));
    for (int seed = 1; seed <= 3; seed++) {
        copy_seed(output, seed, a);
        copy_seed(whole, seed, b);
        assert_string_equal(a, b);
        snprintf(line, sizeof line,
                 "l=$(echo logs/results/*/tiny/result_%d.txt) && "
                 "test $(grep -c run_start $l) = 1 && test $(grep -c run_stop $l) = 1 && "
                 "grep -q '\"submission_benchmark\", \"value\": \"tiny\"' $l && "
                 "! grep -q '\"key\": \"seed\", \"value\": %d,' $l",
                 seed - 1, 4 - seed + (seed == 2));
        shell_of_run("killed", line);
    }
    free(output);
    free(whole);
    expect(SEEDS "val_loss<=5.6 --mllog @/late", 1, "was trained without --mllog");
}

/* A training that was killed between its last checkpoint and its last evaluation still gets
 * that. */
static void test_last_evaluation(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/last --set train.steps=6", 0, NULL);
    shell_of_run("last", "grep -v val_loss $m >cut && cat cut >$m && test $(grep -c loss $m) = 6");
    expect("train --resume @/last -n 1", 0, "validation loss");
    shell_of_run("last", "test $(grep -c val_loss $m) = 1 && test $(grep -c loss $m) = 7");
    expect("train --resume @/last -n 1", 0, "is complete");
}

static void test_bad_input(void **state) {
    (void)state;
    expect_line("report configs/tiny.yaml", 2,
                "what is to be reported? Use --scaling, --cost or --seeds");
    expect_line(REPORT "-n 1,x", 2, "neither a number of workers");
    expect_line("report --scaling configs/tiny.yaml --machine @/none", 1, "none");
    expect_line(REPORT "--host-workers 2", 1, "the link between the hosts is missing");
    expect_line(REPORT "--set sync.mode=async", 1, "--scaling times common steps");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_possible),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_seeds_killed),
        cmocka_unit_test(test_last_evaluation),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
