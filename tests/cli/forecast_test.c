/* forecast_test.c - lockstep plan with --machine and --link, bench machine: output, and
 * input that is refused with one line. */
/* ctest: long-asan: perf/forecast runs the same code */
#include "cli/program.h"
#include "perf/round_machine.h"

static int make_files(void **state) {
    ls_buf text = {0};
    if (folder_make(state) != 0) return -1;
    round_machine_text(&text);
    write_file("round.yaml", text.data, text.len);
    ls_buf_free(&text);
    return 0;
}

static void test_one_plan(void **state) {
    (void)state;
    char *text = output_of("plan configs/tiny.yaml -n 2 --machine @/round.yaml");
    static const char *const lines[] = {
        "at most at one time", /* the memory table comes first */
        "predicted for machines as in ", "(round, 4 cores)\n",        "\n  predicted step ",
        "\n  predicted tokens/s ",       "\n  predicted efficiency ", "\n  predicted exposed ",
        "communication (shared)\n",      "\n  predicted memory ",     "\n    ReduceScatter "};
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]);
        if (!at) print_error("'%s' is missing in\n%s\n", lines[i], text);
        assert_non_null(at);
    }
    free(text);
    text = output_of("plan configs/tiny.yaml -n 4 --machine @/round.yaml --link 100Gb/s,5us "
                     "--host-workers 2");
    assert_non_null(strstr(text, "2 workers a host, 100Gb/s,5us between hosts"));
    assert_null(strstr(text, "(shared)"));
    free(text);
    text = output_of("plan configs/tiny.yaml -n 2");
    assert_null(strstr(text, "predicted"));
    free(text);
}

/* What one asks first is in the first six lines; actions are printed if one asks for them. */
static void test_answers(void **state) {
    (void)state;
    char *text = output_of("plan configs/tiny.yaml -n 2");
    const char *end = strstr(text, "\n\n");
    assert_true(end && occurrences(text, "\n") > 6);
    *strchr(end, '\n') = 0;
    assert_true(occurrences(text, "\n") < 6);
    assert_int_equal(strncmp(text, "fits   yes: 3.2 MB a worker; 2 need ", 36), 0);
    assert_non_null(strstr(text, "\nstep   about "));
    assert_non_null(strstr(text, " for 50 steps, without evaluations\n"));
    assert_null(strstr(end + 1, "Forward"));
    free(text);
    text = output_of("plan configs/tiny.yaml -n 2 --actions");
    assert_non_null(strstr(text, "  w0   Forward  "));
    free(text);
    /* a machine on which a step is a known sum; no "about" */
    text = output_of("plan configs/tiny.yaml -n 2 --machine @/round.yaml");
    double step = 0, predicted = 0;
    assert_int_equal(sscanf(strstr(text, "\nstep "), " step %lf s", &step), 1);
    assert_int_equal(sscanf(strstr(text, "predicted step"), "predicted step %lf", &predicted), 1);
    assert_true(step > 0 && step > predicted * 0.99 && step < predicted * 1.01);
    free(text);
    /* two terabytes of activations */
    text = output_of("plan configs/tiny.yaml -n 1 --set model.context=1024 --set model.width=1536 "
                     "--set train.batch=32768 --set train.micro_batch=4096 "
                     "--set data.path=configs/tiny.yaml");
    assert_int_equal(strncmp(text, "fits   no: ", 11), 0);
    assert_non_null(strstr(text, "; --fit"));
    free(text);
    static const char *const crews[] = {"--set sync.mode=ssp", "--set sync.mode=async"};
    for (int i = 0; i < 2; i++) {
        text = output_of("plan configs/tiny.yaml -n 2 %s", crews[i]);
        assert_non_null(strstr(text, "; 2 need "));
        assert_non_null(strstr(text, "\nstep   about "));
        free(text);
    }
}

/* With servers, a step is as long as the workers need, or the link: 1 Gb/s carry a gradient of
 * 0.094 MB in 0.75 ms, 0.01 Gb/s in 75 ms. */
static void test_servers(void **state) {
    (void)state;
    static const char PLAN[] = "plan configs/tiny.yaml -n 2 --set sync.mode=async --machine "
                               "@/round.yaml";
    char *text = output_of("%s", PLAN);
    assert_non_null(strstr(text, "predicted gradient "));
    assert_non_null(strstr(text, "s  from one to the next, with 2 workers"));
    assert_null(strstr(text, "predicted transfer "));
    free(text);
    text = output_of("%s --link 0.01Gb/s,5us --json", PLAN);
    const char *step = strstr(text, "\"step_s\": "), *link = strstr(text, "\"link_s\": ");
    assert_true(step && link);
    double step_s = strtod(step + 10, NULL), link_s = strtod(link + 10, NULL);
    assert_true(step_s == link_s && link_s > 0.0719 && link_s < 0.0755); /* 94208 bytes */
    free(text);
}

/* A predicted timeline has every action of every worker, and can be compared. */
static void test_timeline(void **state) {
    (void)state;
    free(output_of("plan configs/tiny.yaml -n 3 --machine @/round.yaml --trace @/a.json"));
    free(output_of("plan configs/tiny.yaml -n 3 --machine @/round.yaml --set parallel.zero=3 "
                   "--trace @/b.json"));
    char *text = output_of("plan --diff @/a.json @/b.json");
    assert_non_null(strstr(text, "A  predicted  3 workers, 1 step"));
    assert_non_null(strstr(text, "the plans differ"));
    free(text);
    text = output_of("plan --diff @/a.json @/a.json");
    assert_null(strstr(text, "the plans differ"));
    free(text);
    free(output_of("plan configs/tiny.yaml -n 2 --machine @/round.yaml --trace @/a.svg"));
}

static void test_table(void **state) {
    (void)state;
    char *text = output_of("plan configs/tiny.yaml --workers 2,8,64 --link 200Gb/s,3us "
                           "--host-workers 2 --machine @/round.yaml");
    assert_non_null(strstr(text, "\npredicted:\n"));
    assert_non_null(strstr(text, "weak scaling"));
    assert_int_equal(occurrences(text, "\n* "), 3);
    assert_int_equal(occurrences(text, "\n! "), 0);
    assert_non_null(strstr(text, "\n     64    32    512    0   0 ")); /* 8 each */
    free(text);
    text = output_of("plan configs/tiny.yaml --workers 2,4 --strong --machine @/round.yaml");
    assert_non_null(strstr(text, "strong scaling"));
    assert_non_null(strstr(text, "\n      4     1     16    0 "));
    free(text);
    text = output_of("plan configs/tiny.yaml --workers 2,4 --machine @/round.yaml "
                     "--set parallel.memory_limit_mb=0.001");
    assert_int_equal(occurrences(text, "\n! "), 16); /* with and without recompute */
    assert_int_equal(occurrences(text, "nothing fits"), 2);
    free(text);
    text = output_of("plan configs/tiny.yaml --workers 8,9,16 --strong --machine @/round.yaml");
    assert_non_null(strstr(text, "\n      9 not possible: strong scaling: train.batch 16 can't"));
    assert_non_null(strstr(text, "\n     16     1     16    0 "));
    free(text);
    text = output_of("plan configs/tiny.yaml -n 9,16 --strong --machine @/round.yaml --json");
    assert_non_null(strstr(text, "{\"workers\": 9, \"reason\": \"strong scaling: "));
    free(text);
}

static void test_wrong(void **state) {
    (void)state;
    static const char start[] = "plan configs/tiny.yaml --machine @/round.yaml ";
    static const char *const cases[][2] = {
        {"-n 4 --link fast", "--link: 'fast' is not the bandwidth and latency"},
        {"-n 4 --link 200Gb/s", "'200Gb/s' is not the bandwidth"},
        {"-n 4 --link 200Gb,3us", "'200Gb,3us' is not the bandwidth"},
        {"-n 4 --link 200Gb/s,3", "is not the bandwidth"},
        {"-n 4 --link -1Gb/s,3us", "is not the bandwidth"},
        {"-n 4 --link 1Gb/s,-3us", "is not the bandwidth"},
        {"-n 4 --link nanGb/s,3us", "is not the bandwidth"},
        {"-n 4 --link 1Gb/s,3us --host-workers 3", "4 workers don't fill a whole number"},
        {"--workers 8,12 --link 1Gb/s,3us --host-workers 8",
         "12 workers don't fill a whole number"},
        {"-n 4 --host-workers 2", "the link between the hosts is missing; add --link"},
        {"-n 4 --algorithm fast --link 1Gb/s,3us", "'fast' does not exist"},
        {"--workers 9,10 --strong", "can't be divided among 10 workers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expectf(1, cases[i][1], "%s%s", start, cases[i][0]);
    }
    expect("plan configs/tiny.yaml --machine @/none.yaml", 1, "none.yaml: can't be opened");
    write_file("bad.yaml", "machine:\n  version: 1\n", 22);
    expect("plan configs/tiny.yaml --machine @/bad.yaml", 1,
           "bad.yaml: machine.cores is missing; `lockstep bench machine --save FILE`");
    expect("plan configs/tiny.yaml --workers 2,,4", 2, "is neither a number of workers");
    expect("plan configs/tiny.yaml --workers 2,5000", 2, "is neither a number of workers");
    expect("plan configs/tiny.yaml --workers 0", 2, "is neither a number of workers");
    expect("plan configs/tiny.yaml --host-workers none", 2, "not a whole number");
    expect("plan configs/tiny.yaml --workers 2,4 --worker 1", 2, "not for a list");
    expect("bench machine --steps 3", 2,
           "--steps is an option of bench train, not of bench machine");
    expect("bench machine now", 2, "one argument too many");
}

/* A machine file from before bf16 had speeds of its own serves for all other types. */
static void test_old_machine(void **state) {
    (void)state;
    static const char table[] = "product_bf16:\n  1x1x1: 1 1\n";
    ls_buf text = {0};
    round_machine_text(&text);
    char *at = strstr(text.data, table);
    assert_non_null(at);
    memset(at, '\n', sizeof table - 1);
    write_file("old.yaml", text.data, text.len);
    ls_buf_free(&text);
    free(output_of("plan configs/tiny.yaml --machine @/old.yaml"));
    free(output_of("plan configs/tiny.yaml --machine @/old.yaml --set train.compute=f16"));
    free(output_of("plan configs/tiny.yaml --machine @/round.yaml --set train.compute=bf16"));
    expect("plan configs/tiny.yaml --machine @/old.yaml --set train.compute=bf16", 1,
           "the machine file of 'round' has no speeds of 'product_bf16'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_plan),   cmocka_unit_test(test_answers),
        cmocka_unit_test(test_servers),    cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_table),      cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_old_machine)};
    return cmocka_run_group_tests(tests, make_files, folder_remove);
}
