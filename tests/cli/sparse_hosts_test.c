/* sparse_hosts_test.c - tables that workers of several hosts divide, or workers of a launcher
 * (model.sparse): the bits of one worker, whatever joins, leaves or is lost. */
/* ctest: slow busy seconds=30 */
#include "cli/hosts.h"

enum { USERS = 300, ITEMS = 701, STEPS = 120 };

static const char CONFIG[] =
    "model:\n"
    "  kind: factors\n"
    "  width: 12\n"
    "  sparse: on\n"
    "  loss: {bpr: {target: clicked}}\n"
    "  metrics: [ndcg: 5, ndcg: {k: 10, candidates: 20}]\n"
    "data:\n"
    "  path: ratings.csv\n"
    "  ratings: {user: u, item: i, negatives: 2, split: leave_one_out}\n"
    "train: {steps: 120, batch: 32, virtual_workers: 8, micro_batch: 2, eval_every: 40, "
    "eval_samples: 20}\n"
    "checkpoint: {every: 30}\n"
    "log: {every: 1000}\n"
    "optim: {optimizer: adam, lr: 0.01, weight_decay: 0.01, warmup: 0, clip: 1}\n"
    "survival: {balance: \"off\", rejoin_s: 3, heartbeat_s: 4}\n";

#define TRAIN "train @/mf.yaml -o @/%s --set data.path=@/ratings.csv -n %d %s %s"
#define ROWWISE                                                                                    \
    "--set optim.optimizer=rowwise_adagrad --set optim.lr=0.05 --set model.filter_freq=3 "         \
    "--set model.steps_to_live=15 "

static host start(int workers, const char *run, const char *how, const char *more) {
    return host_start(TRAIN, run, workers, how, more);
}

static pair two_until(const char *run, int step, const char *more) {
    pace(run, step);
    pair p = pair_begin(start, run, 2, 2, more);
    p.b = pair_join(&p, 1, "");
    await_step(run, step, &p.a);
    return p;
}

static const char *undisturbed_by(const char *more) {
    return strstr(more, "rowwise") ? "rowwise" : "undisturbed";
}

static void check(pair *p) {
    let_go(p->run);
    host_expect(&p->a, 0, NULL);
    if (p->b.pid) host_expect(&p->b, 0, "the run has ended");
    check_run(undisturbed_by(p->more), p->run, &p->a);
}

static int make(void **state) {
    ls_buf b = {0};
    setenv("LOCKSTEP_KEY", "11223344556677889900aabbccddeeff00112233445566778899aabbccddeeff", 1);
    if (folder_make(state)) return -1;
    ls_buf_printf(&b, "u,i\n");
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < 10; k++) ls_buf_printf(&b, "%d,%d\n", u, (17 * u + 31 * k) % ITEMS);
    write_file("ratings.csv", b.data, b.len);
    write_file("mf.yaml", CONFIG, sizeof CONFIG - 1);
    ls_buf_free(&b);
    host one = start(1, "undisturbed", "", ""), rowwise = start(2, "rowwise", "", ROWWISE);
    host_expect(&one, 0, "ndcg5_full");
    host_expect(&rowwise, 0, NULL);
    return 0;
}

/* ---- hosts ---- */

static void without_faults(const char *run, int a, int b, const char *more) {
    pair p = pair_begin(start, run, a, 2, more);
    p.b = pair_join(&p, b, "");
    check(&p);
    assert_int_equal(host_count(&p.a, "view "), 1);
}

static void test_without_faults(void **state) {
    (void)state;
    without_faults("zero-1", 2, 3, "");
    without_faults("zero-3", 1, 1, "--set parallel.zero=3 --set parallel.bucket_mb=0.01");
    if (!all_cases()) return;
    without_faults("audit", 2, 1, ROWWISE "--set parallel.zero=0 --set survival.audit=40");
    without_faults("helped", 2, 2, "--set survival.backup_workers=1");
}

static void killed(const char *run, const char *more) {
    pair p = two_until(run, 1, more);
    int times = 0;
    for (int i = 0; i < 4; i++) {
        pace(run, 25 * (i + 1));
        times += host_signal_child(draw(2) ? &p.a : &p.b, SIGKILL);
        sleep_ms(50 + (long)draw(300));
    }
    check(&p);
    assert_false(host_says(&p.a, "from the newest checkpoint"));
    assert_true(times > 0);
}

static void test_killed(void **state) {
    (void)state;
    if (all_cases()) killed("killed-0", "--set parallel.zero=0");
    killed("killed-rows", ROWWISE);
}

/* The rows of a lost host are lost, although other hosts have all parameters. */
static void test_host_lost(void **state) {
    (void)state;
    pair p = two_until("lost", 45, "--set parallel.zero=0");
    host_kill(&p.b);
    host_await(&p.a, "from the newest checkpoint");
    p.b = pair_join(&p, 2, "");
    host_await(&p.b, "of them here");
    check(&p);
    p = two_until("early", 10, "");
    host_kill(&p.b);
    p.b = pair_join(&p, 1, "");
    check(&p);
}

/* Blocks of rows move to hosts that come, and between the workers of more and fewer. */
static void test_come(void **state) {
    (void)state;
    pace("come", 40);
    pair p = pair_begin(start, "come", 2, 1, "");
    await_step("come", 40, &p.a);
    p.b = pair_join(&p, 2, "");
    host_await(&p.a, "with 4 workers on 2 hosts");
    host c = pair_join(&p, 1, "");
    host_await(&p.a, "with 5 workers on 3 hosts");
    wait_for_file("come/control/socket");
    expect("scale @/come 7", 0, "from 5 to 7 workers");
    host_await(&p.b, "with 7 workers on 3 hosts");
    expect("scale @/come 3", 0, "to 3 workers");
    host_await(&p.b, "with 3 workers on 3 hosts");
    check(&p);
    host_expect(&c, 0, "the run has ended");
    assert_false(host_says(&p.a, "from the newest checkpoint"));
}

/* A host that leaves takes its rows with it. */
static void test_leave(void **state) {
    (void)state;
    pair p = two_until("left", 45, ROWWISE "--set parallel.zero=0");
    kill(p.b.pid, SIGTERM);
    host_expect(&p.b, 0, "this host has left the run");
    host_await(&p.a, "no remaining host has rows");
    check(&p);
}

/* Without the leading host nobody has all rows; the run continues from a checkpoint, elsewhere with
 * one host. */
static void test_leader_lost(void **state) {
    (void)state;
    pair p = two_until("led", 35, "--set survival.rejoin_s=0.5");
    wait_for_file("led/checkpoints/latest");
    host_kill(&p.a);
    let_go("led");
    host_expect(&p.b, 1, "the leading host, 127.0.0.1:");
    host h = start(3, "led", "--resume", "");
    host_expect(&h, 0, "continuing from ");
    check_run("undisturbed", "led", &h);
}

/* ---- workers of a launcher ---- */

static void launched(const char *launcher, const char *run, const char *more) {
    char line[1024];
    snprintf(line, sizeof line,
             "cd %s && timeout 400 %s " LOCKSTEP_PROGRAM
             " train mf.yaml -o %s %s >launched.log 2>&1",
             folder, launcher, run, more);
    int how = system(line);
    if (how != 0) fail_msg("%s: %s: exit code %d", launcher, run, how >> 8);
    same_hash(undisturbed_by(more), run);
}

static void test_launched(void **state) {
    (void)state;
    launched(LOCKSTEP_PROGRAM " run -n 3", "run-3", "");
    launched(LOCKSTEP_PROGRAM " run -n 2", "run-2", ROWWISE "--set parallel.zero=0");
    launched("", "threads",
             "-n 3 --set parallel.transport=thread --set parallel.zero=3 "
             "--set train.micro_batch=4");
    if (system("command -v mpirun.mpich >/dev/null") != 0) skip_because("there is no mpirun.mpich");
    launched("mpirun.mpich -n 2", "mpich", "--set parallel.transport=mpi");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_faults),
        cmocka_unit_test(test_launched),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_come),
        slow_unit_test(test_leave),
        cmocka_unit_test(test_host_lost),
        slow_unit_test(test_leader_lost),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
