/* trace_test.c - lockstep train --trace: the recorded actions are those of the plan.
 *
 * The proof of a trace is the plan: each worker's actions, each once a step, in the order of its
 * lanes, and none before those of the other lane that it has to wait for.
 */
/* ctest: long-asan: the tests of report write the same files */
#include "cli/program.h"
#include "exec/spans.h"
#include "report/frame_check.h"
#include "report/timeline.h"
#include "train/layout.h"

enum { STEPS = 5 };

/* Makes the plan of configs/tiny.yaml with n workers and more keys set: "key=value key=value". */
static void make_plan(int n, const char *sets, ls_layout *l) {
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    char text[256];
    snprintf(text, sizeof text, "%s", sets);
    for (char *set = strtok(text, " "); set; set = strtok(NULL, " "))
        assert_ls_ok(ls_config_set(&c, set, &e), e);
    assert_ls_ok(ls_layout_make(&c, n, NULL, l, &e), e);
}

/* A worker's part of a step, whose events [n] are sorted. */
static void check_worker(const ls_plan *p, int worker, const ls_timeline_event **sorted, size_t n) {
    ls_span *spans = LS_NEW_ARRAY(ls_span, n);
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        const ls_timeline_event *v = sorted[i];
        if (v->span.worker != worker) continue;
        assert_int_equal(v->kind, p->actions[v->span.action].kind);
        if (v->layer >= 0) assert_int_equal(v->layer, p->actions[v->span.action].layer);
        spans[count++] = v->span;
    }
    assert_spans(p, worker, spans, count);
    free(spans);
}

/* The norm and the loss are summed over all workers: none ends before all have begun. */
static void check_sums(const ls_plan *p, const ls_timeline_event **sorted, size_t n) {
    for (int i = 0; i < p->nactions; i++) {
        if (p->actions[i].kind != LS_DECIDE) continue;
        int64_t last_begin = INT64_MIN, first_end = INT64_MAX;
        for (size_t k = 0; k < n; k++) {
            const ls_span *s = &sorted[k]->span;
            if (s->action != i) continue;
            if (s->begin_ns > last_begin) last_begin = s->begin_ns;
            if (s->end_ns < first_end) first_end = s->end_ns;
        }
        assert_true(last_begin <= first_end);
    }
}

static void check_timeline(const char *name, int n, const char *sets, int first, int nsteps) {
    ls_layout l;
    ls_timeline t;
    ls_error e = {0};
    char path[128], hash[LS_HASH_TEXT];
    make_plan(n, sets, &l);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ls_ok(ls_timeline_read(path, &t, &e), e);
    ls_hash_text(ls_plan_hash(&l.plan), hash);
    assert_string_equal(t.plan, hash);
    assert_string_equal(t.label, "measured");
    assert_int_equal(t.nworkers, n);
    assert_int_equal(t.first_step, first);
    assert_int_equal(t.nsteps, nsteps);
    for (int step = 0; step < nsteps; step++) {
        size_t count = 0;
        const ls_timeline_event **sorted = ls_timeline_sorted(&t, step, &count);
        for (int w = 0; w < n; w++) check_worker(&l.plan, w, sorted, count);
        check_sums(&l.plan, sorted, count);
        if (step)
            assert_true(t.begins_ns[step - 1] + ls_timeline_step_ns(&t, step - 1) <=
                        t.begins_ns[step]);
        free(sorted);
    }
    ls_timeline_free(&t);
    ls_layout_free(&l);
}

/* Trains with --trace, and checks the timeline and that the weights are those of @/plain. */
static void check_run(int n, const char *sets, int steps, const char *options, int first,
                      int nsteps) {
    char line[512], *a = NULL, *b = NULL;
    int length = snprintf(line, sizeof line,
                          "train configs/tiny.yaml -n %d -o @/traced --set optim.warmup=0 --set "
                          "survival.balance=off --set train.steps=%d --trace @/t.json %s",
                          n, steps, options);
    for (const char *set = sets; *set; set += strcspn(set, " "), set += *set == ' ')
        length += snprintf(line + length, sizeof line - (size_t)length, " --set %.*s",
                           (int)strcspn(set, " "), set);
    expect(line, 0, "timeline of step");
    check_timeline("t.json", n, sets, first, nsteps);
    if (steps == STEPS) {
        a = output_of("ckpt hash @/plain");
        b = output_of("ckpt hash @/traced");
        assert_string_equal(a, b);
        free(a);
        free(b);
    }
    char path[128];
    snprintf(path, sizeof path, "%s/traced", folder);
    assert_int_equal(ls_file_remove_tree(path, NULL), LS_OK);
}

static void test_traces_are_of_the_plan(void **state) {
    (void)state;
    expectf(0, NULL,
            "train configs/tiny.yaml -n 1 -o @/plain --set optim.warmup=0 --set train.steps=%d",
            STEPS);
    for (int n = 1; n <= 3; n++) check_run(n, "", STEPS, "", 2, 3);
    check_run(5, "", STEPS, "", 2, 3);
}

static void test_executors_and_transports(void **state) {
    (void)state;
    check_run(2, "parallel.overlap=on", STEPS, "", 2, 3);
    check_run(3, "parallel.overlap=off", STEPS, "--set parallel.transport=thread", 2, 3);
    check_run(3, "parallel.bucket_mb=0.01", STEPS, "--set parallel.executor=sequential", 2, 3);
    check_run(2, "parallel.zero=3", STEPS, "--set parallel.transport=tcp", 2, 3);
    check_run(3, "parallel.recompute=2", STEPS, "--set parallel.transport=tcp", 2, 3);
}

/* Communication among some workers only, or several times per step; other bits than f32's. */
static void test_settings(void **state) {
    (void)state;
    check_run(4, "parallel.zero=3 parallel.shard_group=2", STEPS, "", 2, 3);
    check_run(4, "parallel.zero=3 parallel.shard_group=2", STEPS, "--set parallel.transport=tcp", 2,
              3);
    check_run(2, "parallel.zero=2 parallel.accumulate=early", STEPS, "", 2, 3);
    check_run(2, "train.compute=bf16", STEPS - 1, "", 2, 3);
}

static void test_which_steps(void **state) {
    (void)state;
    check_run(2, "", 1, "", 1, 1);
    check_run(2, "", 2, "", 2, 1);
    check_run(2, "", 3, "--trace-steps 1", 2, 1);
    check_run(2, "", STEPS, "--trace-steps 100", 2, STEPS - 1);
}

static void test_resume(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/resumed --set optim.warmup=0 --set train.steps=2", 0,
           NULL);
    expect("train configs/tiny.yaml -n 3 -o @/resumed --set optim.warmup=0 --set train.steps=6 "
           "--resume "
           "--trace @/r.json",
           0, "timeline of steps 4 to 6");
    check_timeline("r.json", 3, "", 4, 3);
}

static void test_pictures(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/picture --set optim.warmup=0 --set train.steps=2 "
           "--trace @/t.svg",
           0, "timeline of step 2");
    frame_check_file(folder, "t.svg");
    expect("bench train configs/tiny.yaml -n 2 --steps 1 --trace @/b.json", 0, "timeline of steps");
    check_timeline("b.json", 2, "", 5, 3);
}

/* Refused before anything is made. */
static void test_refused(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/never --trace @/t.png", 1,
           "t.png: a timeline is written as FILE.json (for Perfetto) or FILE.svg");
    assert_false(file_exists("never"));
    expect("train configs/tiny.yaml -n 2 -o @/never --trace @/t.json --trace-steps 0", 2,
           "--trace-steps");
    assert_false(file_exists("never"));
    write_file("file", "x", 1);
    expect("train configs/tiny.yaml -n 2 -o @/never --trace @/file/t.json", 1,
           "file/t.json: can't be written: Not a directory");
    assert_false(file_exists("never"));
    expect("bench train configs/tiny.yaml -n 2 --trace @/t.txt", 1, "FILE.json");
    expect("bench comm --trace @/t.json", 2, "--trace is an option of bench train");
}

/* A trace that can't be written ends no training, whose exit code says so. */
static void fails(const char *run, const char *more) {
    char line[256], what[128];
    snprintf(
        line, sizeof line,
        "train configs/tiny.yaml -n 2 -o @/%s --set optim.warmup=0 --set train.steps=3 --trace "
        "@/lost.json%s",
        run, more);
    setenv("LOCKSTEP_FAULTS", "write lost.json ENOSPC 0", 1);
    program p = program_start(line, 0);
    unsetenv("LOCKSTEP_FAULTS");
    char *output = NULL;
    assert_int_equal(program_end(&p, &output), 1);
    snprintf(what, sizeof what, "lost.json: can't be written: No space left on device\n");
    assert_non_null(strstr(output, what));
    assert_string_equal(strstr(output, what) + strlen(what), ""); /* the last line */
    free(output);
    expectf(0, "complete   3/3", "status @/%s", run);
    assert_false(file_exists("lost.json"));
}

static void test_lost(void **state) {
    (void)state;
    fails("lost", "");
    fails("lost-threads", " --set parallel.transport=thread --trace-steps 9");
    expect("ckpt verify @/lost", 0, ": good: step 3");
}

static void test_diff(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/a --set optim.warmup=0 --set train.steps=3 --trace "
           "@/a.json",
           0, NULL);
    expect("train configs/tiny.yaml -n 2 -o @/b --set optim.warmup=0 --set train.steps=3 --trace "
           "@/b.json",
           0, NULL);
    expect("plan --diff @/a.json @/a.json", 0, "largest differences, ms");
    expect("plan --diff @/a.json @/b.json", 0, "the plans differ");
    expect("plan --diff @/a.json @/b.json", 0, "exposed");
    expect("plan --diff @/a.json", 2, "--diff compares two timelines");
    expect("plan @/a.json @/b.json", 2, "two timelines with --diff");
    expect("plan --diff @/a.json @/none.json", 1, "none.json");
    expect("plan --diff configs/tiny.yaml @/a.json", 1, "is not valid JSON");
    write_file("other.json", "{\"traceEvents\": []}", 19);
    expect("plan --diff @/a.json @/other.json", 1, "other.json: is not a lockstep timeline");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traces_are_of_the_plan),
        cmocka_unit_test(test_executors_and_transports),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_which_steps),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_diff),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
