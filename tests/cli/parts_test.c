/* parts_test.c - checkpoints of state that is sharded over hosts: each host writes its part beside
 * training, the files equal those of one host, and a failure on one host fails only the checkpoint.
 *
 * The disk of one of two hosts fails, or delays a writer. After 40 steps a checkpoint is written
 * beside training, after 80 the last one.
 */
/* ctest: slow seconds=10 */
#include "cli/hosts.h"

static const char SETTINGS[] = SMALLER "--set train.virtual_workers=8 --set train.steps=80 "
                                       "--set train.eval_every=0 --set checkpoint.every=40 "
                                       "--set log.every=1000 --set survival.balance=off";

static const char THIRD[] = "--set parallel.zero=3";

static host start(int workers, const char *run, const char *how, const char *more) {
    char held[128];
    snprintf(held, sizeof held, "%s/held", folder);
    setenv("LOCKSTEP_HELD", held, 1);
    return host_start("train configs/tiny.yaml -n %d -o @/%s %s %s %s", workers, run, how, SETTINGS,
                      more);
}

/* Sets the faults of the hosts that are started next; NULL: none. */
static void set_faults(const char *faults) {
    if (faults)
        setenv("LOCKSTEP_FAULTS", faults, 1);
    else
        unsetenv("LOCKSTEP_FAULTS");
}

/* Starts two hosts, each with its faults or NULL. */
static pair two(const char *run, const char *more, const char *first, const char *second) {
    pair p = pair_of(start, run, more);
    set_faults(first);
    p.a = pair_listen(&p, 2, "--hosts 2");
    set_faults(second);
    p.b = pair_join(&p, 2, "");
    set_faults(NULL);
    return p;
}

static void release(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/held", folder);
    assert_int_equal(unlink(path), 0);
}

/* Whether the run's checkpoints have a directory whose name begins with `name`. */
static bool has(const char *run, const char *name) {
    char line[256];
    snprintf(line, sizeof line, "ls -d %s/%s/checkpoints/%s* > /dev/null 2>&1", folder, run, name);
    return system(line) == 0;
}

/* The checkpoint's files equal, byte by byte, those that threads of one process write while all
 * wait. */
static void same_as_of_threads(const char *run, int step) {
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors"};
    expectf(0, ": good: step ", "ckpt verify @/%s/checkpoints/step-%d", run, step);
    for (int i = 0; i < 2; i++) {
        shellf("cmp %s/undisturbed/checkpoints/step-%d/%s %s/%s/checkpoints/step-%d/%s", folder,
               step, names[i], folder, run, step, names[i]);
    }
}

static void end_well(pair *p) {
    host_expect(&p->a, 0, NULL);
    host_expect(&p->b, 0, "the run has ended");
    check_run("undisturbed", p->run, &p->a);
    same_as_of_threads(p->run, 80);
    assert_false(has(p->run, ".step-"));
}

static int make_undisturbed(void **state) {
    if (folder_make(state) != 0) return -1;
    host h = start(2, "undisturbed", "", "--set parallel.transport=thread");
    return host_end(&h);
}

/* ---- without faults ---- */

static void test_same_files(void **state) {
    (void)state;
    static const char *const runs[][2] = {
        {"first", "--set parallel.zero=1"}, {"second", "--set parallel.zero=2"}, {"third", THIRD}};
    for (int i = 0; i < 3; i++) {
        pair p = two(runs[i][0], runs[i][1], NULL, NULL);
        end_well(&p);
        same_as_of_threads(p.run, 40);
        assert_false(host_says(&p.a, "failed"));
        assert_false(host_says(&p.b, "failed"));
    }
}

/* Workers of one host do not finish a step at the same moment. */
static void test_one_host(void **state) {
    (void)state;
    host h = start(2, "one", "", "--set parallel.zero=3 --set checkpoint.every=4");
    host_expect(&h, 0, NULL);
    check_run("undisturbed", "one", &h);
    if (host_says(&h, "failed")) host_fail(&h, "a checkpoint failed");
}

/* A slow writer, on either host, delays no step. */
static void test_beside(void **state) {
    (void)state;
    static const char *const runs[] = {"slow-first", "slow-second"};
    static const char hold[] = "pwrite .step-40 HOLD 3-4";
    for (int i = 0; i < 2; i++) {
        pair p = two(runs[i], THIRD, i ? NULL : hold, i ? hold : NULL);
        wait_for_file("held");
        await_step(p.run, 60, &p.a);
        assert_true(has(p.run, ".step-40"));
        assert_false(has(p.run, "step-40"));
        release();
        end_well(&p);
        same_as_of_threads(p.run, 40);
    }
}

/* ---- failures ---- */

static void failed(const char *run, const char *first, const char *second, const char *says) {
    pair p = two(run, THIRD, first, second);
    end_well(&p);
    assert_false(has(run, "step-40"));
    host *bad = first ? &p.a : &p.b;
    if (!host_says(bad, says)) host_fail(bad, says);
    assert_int_equal(host_count(&p.a, "the checkpoint of step 40 failed: "), 1);
    static const char other[] = "the host of worker 2 could not write its part: its output says";
    if (host_count(&p.a, other) != (second != NULL)) host_fail(&p.a, other);
    assert_int_equal(host_count(&p.b, "failed"), second != NULL);
}

static void test_faults(void **state) {
    (void)state;
    failed("no-space", NULL, "pwrite .step-40 ENOSPC 2", "can't be written: No space left");
    failed("no-sync", NULL, "fsync .step-40 EIO 1", "can't be written: Input/output error");
    failed("no-folder", "mkdir .step-40 EROFS 0", NULL, "can't be created: Read-only file system");
}

/* The last one must succeed. */
static void test_last(void **state) {
    (void)state;
    pair p = two("last", THIRD, NULL, "fsync .step-80 EIO 0");
    host_expect(&p.a, 1, "/last/checkpoints/step-40\n");
    host_expect(&p.b, 1, "the checkpoint of step 80 failed: ");
    assert_true(host_says(&p.a, "the checkpoint of step 80 could not be written; the newest good"));
    assert_false(has("last", ".step-"));
    same_as_of_threads("last", 40);
}

/* ---- killed processes ---- */

/* Kills a worker or a writer: the next view or the next checkpoint is good. */
static void killed(const char *run, bool writer) {
    pair p = two(run, THIRD, NULL, "pwrite .step-40 HOLD 3-4");
    pid_t pids[8];
    wait_for_file("held");
    int n = 0; /* two workers, and the writer; one that makes pages ready may not have ended */
    for (int i = 0; i < PATIENCE_S * 100 && n != 3; i++) {
        if (i) sleep_ms(10);
        n = children_of(p.b.pid, pids, 8);
    }
    assert_int_equal(n, 3);
    kill(pids[writer ? 2 : 0], SIGKILL);
    host_await(&p.a, "the checkpoint of step 40 failed: ");
    release();
    end_well(&p);
    assert_false(has(run, "step-40"));
    assert_int_equal(host_says(&p.a, "the host of worker 2 could not write its part: its "
                                     "writer was killed"),
                     writer);
    assert_int_equal(host_says(&p.a, "the workers ended before all hosts had"), !writer);
}

/* A whole host, and with it the only copy of its shards. */
static void test_killed(void **state) {
    (void)state;
    killed("worker", false);
    killed("writer", true);
    pair p = two("host", "--set parallel.zero=3 --set survival.rejoin_s=3", NULL,
                 "pwrite .step-40 HOLD 3-4");
    wait_for_file("held");
    host_kill(&p.b);
    host_await(&p.a, "the checkpoint of step 40 failed: ");
    release();
    p.b = pair_join(&p, 2, "");
    end_well(&p);
    assert_true(host_says(&p.a, "from the newest checkpoint"));
    same_as_of_threads(p.run, 40);
}

int main(void) {
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
    unsetenv("LOCKSTEP_KEY_FILE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_files), cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_beside),     cmocka_unit_test(test_faults),
        cmocka_unit_test(test_last),       cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, make_undisturbed, folder_remove);
}
