/* frozen_test.c - runs with frozen parameters, as a user would start them: workers and a host that
 * are killed, a file that is deleted, and the commands that read checkpoints. */
/* ctest: busy seconds=15 */
/* ctest: long-asan: train/frozen runs the same code */
#include "cli/hosts.h"
#include "weights/safetensors.h"

#define STEPS  "60"
#define FREEZE "--set train.freeze=[wte.*,wpe.*,h.0.*] "

static const char LINE[] =
    "train configs/tiny.yaml -n %d -o @/%s --set train.steps=" STEPS " " SMALLER
    "--set checkpoint.every=20 --set checkpoint.keep=3 --set log.every=1000 "
    "--set train.eval_every=0 "
    "--set survival.balance=off " FREEZE "%s";

static host start(int workers, const char *run, const char *more) {
    return host_start(LINE, workers, run, more);
}

static void check(const char *run, const char *undisturbed) {
    char want[256], got[256];
    hash_of(undisturbed, want);
    hash_of(run, got);
    if (strcmp(want, got) != 0) fail_msg("%s: other bits:\n%s%s", run, want, got);
    expectf(0, ": clean: " STEPS " steps", "ckpt ledger @/%s", run);
}

static void test_undisturbed(void **state) {
    (void)state;
    host a = start(1, "f32", ""), b = start(2, "bf16", "--set train.compute=bf16");
    host_expect(&a, 0, NULL);
    host_expect(&b, 0, NULL);
}

static void killed(const char *run, int workers, const char *more, const char *undisturbed) {
    pace(run, 25);
    host h = start(workers, run, more);
    await_step(run, 25, &h);
    host_kill_children(&h, 2);
    let_go(run);
    host_expect(&h, 0, "was killed");
    check(run, undisturbed);
}

/* The values are in the run's file, or rounded in memory that outlives workers. */
static void test_killed(void **state) {
    (void)state;
    killed("killed-3", 3, "--set parallel.zero=3", "f32");
    killed("killed-half", 2, "--set train.compute=bf16", "bf16");
    killed("killed-tcp", 2, "--set train.compute=bf16 --set parallel.transport=tcp", "bf16");
}

/* The workers have the file mapped, and write it again before a new one opens it. */
static void test_deleted(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/deleted/frozen.safetensors", folder);
    pace("deleted", 25);
    host h = start(2, "deleted", "");
    await_step("deleted", 25, &h);
    assert_int_equal(unlink(path), 0);
    assert_true(host_signal_child(&h, SIGKILL));
    sleep_ms(300);
    let_go("deleted");
    host_expect(&h, 0, NULL);
    check("deleted", "f32");
    assert_true(file_exists("deleted/frozen.safetensors"));
}

#define F           "$r/frozen.safetensors"
#define SPOIL(file) "printf z | dd of=" file " bs=1 seek=9000 conv=notrunc status=none"

/* The run's file is changed after a step; it ends with a line before it saves again, its
 * checkpoints are good, and it continues to the same bits. */
static const struct {
    const char *change, *says; /* NULL: the run ends well */
    int after;
} changes[] = {
    {SPOIL(F), ": is not the file that this run opened; continue with --resume", 25},
    {"touch -r " F " t && " SPOIL(F) " && touch -r t " F, ": is not the file that this run ", 10},
    {"cp " F " t && " SPOIL("t") " && mv t " F, ": is not the file that this run opened", 50},
    {"cp " F " t && " SPOIL(F) " && dd if=t of=" F " conv=notrunc status=none",
     ": was written to while this run read it", 25},
    {"truncate -s 5000 " F, ": is not the file that this run opened; continue with --resume", 25},
    {SPOIL(F) " && rm " F, ": is not the file that this run opened", 50},
    {"chmod 600 " F " && cp " F " t && mv t " F, NULL, 50},
    {"until [ -e $r/checkpoints/latest ]; do sleep 0.02; done; " SPOIL(
         "$r/checkpoints/latest/frozen.safetensors"),
     NULL, 25}};

static void test_changed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char run[16], line[1024];
        if (!runs_case((int)i, 4)) continue;
        snprintf(run, sizeof run, "changed-%zu", i);
        hold_after(run, changes[i].after);
        host h = start(2, run, "");
        await_step(run, changes[i].after, &h);
        shell_of_run(run, changes[i].change);
        let_go(run);
        host_expect(&h, changes[i].says ? 1 : 0, changes[i].says);
        for (int step = 20; step <= 60; step += 20) { /* some may have been skipped */
            snprintf(line, sizeof line, "%s/checkpoints/step-%d", run, step);
            if (!file_exists(line)) continue;
            assert_true(step < changes[i].after || !changes[i].says);
            expectf(0, ": good: step ", "ckpt verify @/%s/checkpoints/step-%d", run, step);
        }
        snprintf(line, sizeof line, LINE, 3, run, "--resume");
        if (changes[i].says) expect(line, 0, NULL);
        check(run, "f32");
    }
}

/* Where no file is right, neither a checkpoint's nor the run's, it is made again from its seed. */
static void test_damaged(void **state) {
    (void)state;
    expectf(75, NULL, LINE, 2, "damaged", "--until 30");
    shell_of_run("damaged/checkpoints/step-30", SPOIL(F));
    expect("ckpt verify @/damaged", 1, "frozen.safetensors: is damaged");
    expectf(75, "step-30/frozen.safetensors: was damaged; restored", LINE, 2, "damaged",
            "--resume --until 50");
    expect("ckpt verify @/damaged/checkpoints/step-30", 0, ": good: step ");
    shell_of_run("damaged/checkpoints/step-50", SPOIL(F));
    shell_of_run("damaged", SPOIL(F));
    expectf(0, "damaged/frozen.safetensors: was damaged; made again", LINE, 2, "damaged",
            "--resume");
    check("damaged", "f32");
}

/* A host joins, and the first one is lost. */
static void test_hosts(void **state) {
    (void)state;
    char listen[96], join[96];
    int port = free_port();
    snprintf(listen, sizeof listen, "--listen 127.0.0.1:%d --hosts 2", port);
    snprintf(join, sizeof join, "--join 127.0.0.1:%d", port);
    pace("hosts", 25);
    host a = start(1, "hosts", listen), b = start(2, "hosts", join);
    await_step("hosts", 25, &a);
    assert_true(host_signal_child(&b, SIGKILL));
    sleep_ms(300);
    let_go("hosts");
    host_expect(&a, 0, NULL);
    host_expect(&b, 0, NULL);
    check("hosts", "f32");
}

static void test_commands(void **state) {
    (void)state;
    char path[128];
    ls_safetensors s;
    ls_error e = {0};
    expect("eval @/f32", 0, "loss ");
    expect("eval @/bf16", 0, "loss ");
    expect("generate @/f32 --tokens 5 --seed 1", 0, NULL);
    expect("generate @/bf16 --tokens 5 --seed 1", 0, NULL);
    expect("ckpt show @/f32", 0, "c_proj.bias          f32 [");
    expect("ckpt show @/f32", 0, "], frozen");
    expect("ckpt show @/f32 --json", 0, "\"frozen\": true}");
    expect("ckpt verify @/f32", 0, "28 tensors");
    expect("ckpt export @/f32 --to @/weights", 0, NULL);
    snprintf(path, sizeof path, "%s/weights", folder);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    assert_int_equal(s.n, 28);
    assert_non_null(ls_safetensors_find(&s, "wte.weight"));
    ls_safetensors_close(&s);
    expect("plan configs/tiny.yaml -n 2 " FREEZE, 0, "frozen parameters ");
    expect("plan configs/tiny.yaml -n 2 --json " FREEZE, 0, "\"frozen_parameters\": 15192, ");
    expect("check configs/tiny.yaml " FREEZE, 0, "h.0.attn                         right\n");
    expect("check configs/tiny.yaml " FREEZE, 0, "right; ");
}

int main(void) {
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 1);
    unsetenv("LOCKSTEP_KEY_FILE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_deleted),     cmocka_unit_test(test_changed),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_commands),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
