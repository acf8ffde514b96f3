/* compress_test.c - a run with compressed gradients whose workers are killed has the bits of an
 * undisturbed one: the step that is repeated begins with the errors before it. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: half a minute; compress/codec and exec/encode run the same code */
#include "base/file.h"
#include "cli/hosts.h"
#include "perf/round_machine.h"

#define STEPS "60"

static const char LINE[] =
    "train configs/tiny.yaml -n %d -o @/%s --set train.steps=" STEPS " " SMALLER
    "--set checkpoint.every=20 --set log.every=1000 --set train.eval_every=0 "
    "--set survival.balance=off %s %s";
static const char TOPK[] = "--set compress.kind=topk --set compress.ratio=0.05";

static host start(int workers, const char *run, const char *more) {
    return host_start(LINE, workers, run, strstr(more, "compress.kind") ? "" : TOPK, more);
}

/* Steps that take long enough that most kills come between an Encode and the end of its step. */
#ifdef __SANITIZE_ADDRESS__ /* steps take several times as long */
#define LONG "--set model.width=48 --set train.batch=32 --set train.micro_batch=4 "
#else
#define LONG "--set model.width=96 --set train.batch=32 --set train.micro_batch=4 "
#endif

static void killed(const char *whole, const char *run, int workers, const char *more) {
    host h = start(workers, run, more);
    for (int i = 0; i < ncases(4, 10); i++) {
        sleep_ms(150);
        (void)host_signal_child(&h, SIGKILL); /* the run may be over */
    }
    host_expect(&h, 0, "was killed");
    same_hash(whole, run);
}

static void test_killed(void **state) {
    (void)state;
    host h = start(1, "whole", "");
    host_expect(&h, 0, NULL);
    h = start(1, "long", LONG "--set train.steps=60");
    host_expect(&h, 0, NULL);
    killed("long", "killed-3", 3, LONG "--set train.steps=60 --set parallel.zero=0");
    if (!all_cases()) return;
    killed("long", "killed-2", 2,
           LONG "--set train.steps=60 --set parallel.transport=tcp --set parallel.zero=2");
}

/* Factors also have what the step before has left of them. */
static void test_killed_factors(void **state) {
    (void)state;
    host h = start(1, "factors", LONG "--set train.steps=100 --set compress.kind=powersgd");
    host_expect(&h, 0, NULL);
    killed("factors", "factors-3", 3,
           LONG "--set train.steps=100 --set compress.kind=powersgd --set parallel.zero=0");
}

/* ---- two hosts ---- */

static host start_one(int workers, const char *run, const char *how, const char *more) {
    char all[1024];
    snprintf(all, sizeof all, "%s %s", how, more);
    return start(workers, run, all);
}

/* Two hosts of two workers, the first step of which is paced. */
static pair start_two(const char *run, const char *more) {
    pace(run, 25);
    pair p = pair_begin(start_one, run, 2, 2, more);
    p.b = pair_join(&p, 2, "");
    await_step(run, 25, &p.a);
    return p;
}

static void same_as_whole(const char *run) { same_hash("whole", run); }

/* Both hosts stay, and a worker of each is killed. */
static void test_hosts(void **state) {
    (void)state;
    pair p = start_two("hosts", "--set parallel.zero=0");
    assert_true(host_signal_child(&p.a, SIGKILL));
    sleep_ms(300);
    assert_true(host_signal_child(&p.b, SIGKILL));
    let_go("hosts");
    host_expect(&p.a, 0, "was killed");
    host_expect(&p.b, 0, "the run has ended");
    same_as_whole("hosts");
}

/* A host leaves after a step: its virtual workers' errors go to the other one. */
static void test_host_leaves(void **state) {
    (void)state;
    pair p = start_two("leaves", "--set parallel.zero=0");
    kill(p.b.pid, SIGTERM);
    host_expect(&p.b, 0, "this host has left the run");
    let_go("leaves");
    host_expect(&p.a, 0, NULL);
    same_as_whole("leaves");
}

/* A host is lost with errors that no other has: the run goes on from its newest checkpoint. */
static void test_host_lost(void **state) {
    (void)state;
    pair p = start_two("lost", "--set parallel.zero=1 --set survival.copies=2");
    host_kill(&p.b);
    sleep_ms(500);
    let_go("lost");
    host_expect(&p.a, 0, "compression errors of virtual worker");
    same_as_whole("lost");
}

/* ---- compress.kind auto ---- */

#define PAIR   "--set parallel.zero=0 --set train.virtual_workers=2 "
#define AUTO   "--set compress.kind=auto " PAIR
#define SPEEDS "--set compress.machine=@/machine.yaml --set compress.links=@/links.yaml "

static void write_speeds(void) {
    static const char links[] = "links:\n  latency_us: 100\n  byte_ns: 1000\n"
                                "  busy_message_us: 100\n  busy_byte_ns: 1000\n  reduce_ns: 0.1\n";
    ls_buf text = {0};
    round_machine_text(&text);
    write_file("machine.yaml", text.data, text.len);
    write_file("links.yaml", links, sizeof links - 1);
    ls_buf_free(&text);
}

/* The kind that the run has recorded. */
static void kind_of(const char *run, char kind[32]) {
    char path[512];
    ls_buf text = {0};
    ls_error e = {0};
    snprintf(path, sizeof path, "%s/%s/config.yaml", folder, run);
    assert_ls_ok(ls_file_read(path, SIZE_MAX, &text, &e), e);
    const char *group = strstr(text.data, "\ncompress:\n  kind: \"");
    assert_non_null(group);
    assert_int_equal(sscanf(group, "\ncompress:\n  kind: \"%31[a-z0-9]", kind), 1);
    ls_buf_free(&text);
}

/* One host needs no code; two hosts with slow links choose one, which any number of workers then
 * has. */
static void test_auto(void **state) {
    (void)state;
    char how[512], kind[32], again[32];
    write_speeds();
    host h = start(2, "alone", AUTO);
    host_expect(&h, 0, "compress.kind auto: none, since all workers are on this host");
    kind_of("alone", kind);
    assert_string_equal(kind, "none");
    pair p = pair_begin(start_one, "auto", 1, 2, AUTO SPEEDS);
    p.b = pair_join(&p, 1, "");
    host_expect(&p.a, 0, "predicted steps: none ");
    host_expect(&p.b, 0, "predicted steps: none ");
    kind_of("auto", kind);
    assert_string_not_equal(kind, "none");
    snprintf(how, sizeof how, PAIR "--set compress.kind=%s", kind);
    h = start(2, "chosen", how);
    host_expect(&h, 0, NULL);
    same_hash("chosen", "auto");
    h = host_start("train --resume @/auto -n 2 --set train.steps=70");
    host_expect(&h, 0, NULL);
    h = start(2, "auto", AUTO SPEEDS "--resume --set train.steps=90");
    host_expect(&h, 0, NULL);
    kind_of("auto", again);
    assert_string_equal(again, kind);
}

static void test_auto_refused(void **state) {
    (void)state;
    host h = start(1, "no-files", AUTO "--listen 127.0.0.1:0 --hosts 2");
    host_expect(&h, 1, "set compress.machine to what");
}

int main(void) {
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),      slow_unit_test(test_killed_factors),
        cmocka_unit_test(test_hosts),       slow_unit_test(test_host_leaves),
        cmocka_unit_test(test_host_lost),   cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_refused)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
