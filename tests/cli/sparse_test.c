/* sparse_test.c - tables of which steps touch few rows (model.sparse): the bits of tables that are
 * updated as a whole, for any layout, with workers killed at random, and resumed; what is
 * refused. */
/* ctest: busy seconds=60 */
/* ctest: long-asan: table and exec/dlrm run the same code */
#include "cli/program.h"

enum { USERS = 400, ITEMS = 700, KILLS = 8 };

static char dense[256]; /* `ckpt hash` of a run whose tables are updated as a whole */
static char adam[256];  /* of one worker with sparse tables and Adam, which differs by design */

static const char CONFIG[] =
    "model:\n"
    "  kind: factors\n"
    "  width: 12\n"
    "  loss: {bpr: {target: clicked}}\n"
    "  metrics: [ndcg: {k: 10, candidates: 20}]\n"
    "data:\n"
    "  path: ratings.csv\n"
    "  ratings: {user: u, item: i, negatives: 2, split: leave_one_out}\n"
    "train: {steps: 400, batch: 32, virtual_workers: 8, micro_batch: 2, eval_every: 100}\n"
    "checkpoint: {every: 40}\n"
    "log: {every: 1000}\n"
    "optim: {optimizer: adagrad, lr: 0.05, weight_decay: 0, warmup: 0, clip: 0}\n"
    "survival: {balance: \"off\"}\n";

#define TRAIN "train @/mf.yaml -o @/%s --set data.path=@/ratings.csv --set model.sparse=on "

static void train(const char *run, const char *more) { expectf(0, NULL, TRAIN "%s", run, more); }

static const char WITH_ADAM[] = " --set optim.optimizer=adam --set optim.lr=0.01 "
                                "--set optim.clip=1 --set optim.weight_decay=0.01";

static void write_ratings(const char *name, int users, int items) {
    ls_buf b = {0};
    ls_buf_printf(&b, "u,i\n");
    for (int u = 0; u < users; u++)
        for (int k = 0; k < 10; k++) ls_buf_printf(&b, "%d,%d\n", u, (17 * u + 31 * k) % items);
    write_file(name, b.data, b.len);
    ls_buf_free(&b);
}

static int make(void **state) {
    if (folder_make(state)) return -1;
    write_ratings("ratings.csv", USERS, ITEMS);
    write_file("mf.yaml", CONFIG, sizeof CONFIG - 1);
    expect("train @/mf.yaml -o @/dense -n 2 --set data.path=@/ratings.csv", 0, NULL);
    hash_of("dense", dense);
    train("adam", WITH_ADAM);
    hash_of("adam", adam);
    return 0;
}

static void has_bits(const char *run, const char *wanted) {
    char hash[256];
    hash_of(run, hash);
    if (strcmp(hash, wanted) != 0) fail_msg("%s: other bits:\n%s%s", run, wanted, hash);
}

/* Rows without a gradient stay as they are also where Adagrad updates all of them. */
static void test_same_as_dense(void **state) {
    (void)state;
    static const char *const layouts[][2] = {
        {"one", "-n 1"},
        {"two", "-n 2 --set parallel.zero=0"},
        {"three", "-n 3 --set parallel.zero=1"},
        {"five", "-n 5 --set parallel.zero=3 --set train.micro_batch=4"},
        {"groups", "-n 4 --set parallel.zero=2 --set parallel.shard_group=2"},
        {"messages", "-n 3 --set parallel.transport=tcp"},
        {"replicas", "-n 2 --set parallel.transport=tcp --set parallel.zero=0"},
        {"audit", "-n 3 --set survival.audit=50"}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!runs_case((int)i, 3)) continue;
        train(layouts[i][0], layouts[i][1]);
        has_bits(layouts[i][0], dense);
    }
    expect("eval @/one", 0, ", ndcg10_sampled20 0.");
}

static bool is_over(const program *p) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* Kills workers at any moment of a step: the run is not slowed down. */
static void killed(const char *run, const char *more, bool all, const char *wanted) {
    char *output = NULL;
    unsigned seed = 7;
    int times = 0;
    program p = startf(TRAIN "%s", run, more);
    while (times < KILLS && !is_over(&p)) {
        pid_t pids[16];
        seed = seed * 1103515245u + 12345u;
        sleep_ms(10 + (long)(seed >> 16) % 60);
        int n = children_of(p.pid, pids, 16);
        for (int i = 0; i < n; i++)
            if (all || i == (int)(seed >> 8) % n) times += kill(pids[i], SIGKILL) == 0;
    }
    int code = program_end(&p, &output);
    if (code != 0) fail_msg("%s: exit code %d:\n%s", run, code, output);
    print_message("%s: %d workers were killed\n", run, times);
    assert_true(times > 0);
    free(output);
    has_bits(run, wanted);
}

static void test_killed(void **state) {
    (void)state;
    char more[512];
    killed("tcp", "-n 3 --set parallel.transport=tcp --set parallel.zero=0", false, dense);
    killed("all", "-n 3", true, dense);
    if (!all_cases()) return;
    killed("one-copy", "-n 4", false, dense);
    killed("areas", "-n 3 --set parallel.zero=0", false, dense);
    snprintf(more, sizeof more, "-n 3 %s", WITH_ADAM);
    killed("adam-killed", more, false, adam);
}

static void test_resumed(void **state) {
    (void)state;
    char line[1024], *output = NULL;
    hold_after("resumed", 40);
    program p = startf(TRAIN "-n 2 %s", "resumed", WITH_ADAM);
    wait_for_file("resumed/checkpoints/step-40");
    kill_paced(&p, "resumed");
    snprintf(line, sizeof line, "-n 3 --resume %s", WITH_ADAM);
    train("resumed", line);
    has_bits("resumed", adam);

    pace("stopped", 40);
    p = startf(TRAIN "-n 3", "stopped");
    wait_for_file("stopped/checkpoints/step-40");
    assert_int_equal(stop_paced(&p, "stopped", &output), 75);
    free(output);
    train("stopped", "-n 1 --resume");
    has_bits("stopped", dense);
    train("from", "-n 2 --set train.from=@/dense --set train.steps=10");
    expect("train @/mf.yaml -o @/from-dense -n 1 --set data.path=@/ratings.csv "
           "--set train.from=@/dense --set train.steps=10",
           0, NULL);
    char hash[256];
    hash_of("from-dense", hash);
    has_bits("from", hash);
}

static const char ROWWISE[] = " --set optim.optimizer=rowwise_adagrad";

/* A row has one sum of squares, in tables and in checkpoints. */
static void test_rowwise(void **state) {
    (void)state;
    char line[1024], rowwise[256];
    expectf(0, NULL,
            "train @/mf.yaml -o @/rowwise -n 3 --set data.path=@/ratings.csv --set "
            "parallel.zero=0 %s",
            ROWWISE);
    hash_of("rowwise", rowwise);
    assert_string_not_equal(rowwise, dense);
    static const char *const layouts[][2] = {{"rowwise-one", "-n 1"},
                                             {"rowwise-two", "-n 2 --set parallel.zero=0"},
                                             {"rowwise-five", "-n 5 --set parallel.zero=2"}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (!runs_case((int)i, 3)) continue;
        snprintf(line, sizeof line, "%s %s", layouts[i][1], ROWWISE);
        train(layouts[i][0], line);
        has_bits(layouts[i][0], rowwise);
    }
    snprintf(line, sizeof line, "-n 3 %s", ROWWISE);
    killed("rowwise-killed", line, false, rowwise);
    expectf(75, NULL, TRAIN "-n 2 --until 120 %s", "rowwise-resumed", ROWWISE);
    snprintf(line, sizeof line, "-n 3 --resume %s", ROWWISE);
    train("rowwise-resumed", line);
    has_bits("rowwise-resumed", rowwise);
    static const char *const states[][2] = {{"user.weight.sum", "[400, 1]"},
                                            {"item.weight.sum", "[700, 1]"}};
    ls_buf b = {0};
    ls_error e = {0};
    char *path = ls_format("%s/rowwise-one/checkpoints/step-400/optimizer.safetensors", folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    free(path);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "\"%s\": {\"dtype\": \"F32\", \"shape\": %s", states[i][0],
                 states[i][1]);
        assert_non_null(memmem(b.data, b.len, wanted, strlen(wanted)));
    }
    ls_buf_free(&b);
    /* 400 and 700 rows of 12 numbers and 700 of one, each with its sum */
    expectf(0, "tables of a host              0.063  one copy of weights and sum",
            "plan @/mf.yaml -n 2 --set data.path=@/ratings.csv --set model.sparse=on %s", ROWWISE);
}

/* The plan of a step, without what it says of the tables' memory; free() it. */
static char *plan_of(const char *data, const char *more) {
    char *output = output_of("plan @/mf.yaml -n 2 --actions --set data.path=@/%s %s", data, more);
    char *tables = strstr(output, "  tables of a host"), *memory = strstr(output, "  memory of");
    assert_true(!tables == !strstr(more, "sparse") && memory);
    *memory = 0;
    char *actions = strstr(output, " actions a step\n"); /* without times, which were measured */
    assert_non_null(actions);
    memmove(output, actions, strlen(actions) + 1);
    return output;
}

static double bytes_reduced(const char *plan) {
    double sum = 0;
    for (const char *s = plan; (s = strstr(s, "ReduceScatter")); s++) {
        const char *bracket = strchr(s, ')');
        assert_non_null(bracket);
        sum += strtod(bracket + 1, NULL);
    }
    assert_true(sum > 0);
    return sum;
}

/* Four hosts with one worker each, which have a quarter of the rows. A worker's 8 samples, and one
 * if they are not as many for all, read 9 users and 27 items, each 12 floats, and 27 biases, by 8
 * bytes each. The window has 32, 96 and 96 rows with as many states: a quarter is updated by each
 * worker. Three of four rows are elsewhere. */
static void check_hosts(const char *data, const char *part) {
    char line[512];
    snprintf(line, sizeof line,
             "plan @/mf.yaml -n 4 --set data.path=@/%s --set model.sparse=on --link 10Gb/s,30us "
             "--machine configs/machines/a100.yaml",
             data);
    expect(line, 0, part);
    expect(line, 0, "differ: 1755 bytes that its samples read, 2448 that it updates, 2448");
}

/* The predicted seconds of communication, on four hosts whose messages take a millisecond. */
static double predicted(const char *sparse) {
    char *output =
        output_of("plan @/mf.yaml -n 4 --set data.path=@/ratings.csv --set model.sparse=%s --json "
                  "--link 10Gb/s,1ms --machine configs/machines/a100.yaml",
                  sparse);
    const char *at = strstr(output, "\"communication_s\": ");
    assert_non_null(at);
    double seconds = strtod(at + strlen("\"communication_s\": "), NULL);
    free(output);
    return seconds;
}

/* What a step sends depends on the rows that its samples touch, not on those of the tables. */
static void test_traffic(void **state) {
    (void)state;
    write_ratings("more.csv", 10 * USERS, 10 * ITEMS);
    check_hosts("ratings.csv", "tables of a host              0.028  1/4 of the one copy");
    assert_true(predicted("on") > predicted("off") + 0.0045); /* five exchanges more */
    check_hosts("more.csv", "tables of a host              0.278  1/4 of the one copy");
    char *few = plan_of("ratings.csv", "--set model.sparse=on");
    char *many = plan_of("more.csv", "--set model.sparse=on");
    assert_string_equal(few, many);
    char *twice = plan_of("more.csv", "--set model.sparse=on --set train.batch=64");
    char *whole = plan_of("ratings.csv", ""), *more = plan_of("more.csv", "");
    double touched = bytes_reduced(many), rows = bytes_reduced(whole);
    print_message("bytes of a step: %.0f touched, %.0f of all rows\n", touched, rows);
    assert_true(bytes_reduced(twice) > 1.4 * touched && bytes_reduced(twice) < 2.1 * touched);
    assert_true(bytes_reduced(more) > 9 * rows && rows > 5 * touched);
    free(few), free(many), free(twice), free(whole), free(more);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"train.compute=bf16", "train.compute"},
        {"parallel.optimizer_state=file", "parallel.optimizer_state"},
        {"optim.ema=0.9", "optim.ema"},
        {"compress.kind=topk", "compress.kind"},
        {"parallel.executor=sequential", "parallel.executor"},
        {"optim.optimizer=lamb", "optim.optimizer"},
        {"train.freeze=[user.*]", "train.freeze"}};
    char line[512], says[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(line, sizeof line, TRAIN "--set %s", "no", bad[i][0]);
        snprintf(says, sizeof says, "model.sparse: on does not go with %s: ", bad[i][1]);
        expect_line(line, 1, says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_dense), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_resumed),       cmocka_unit_test(test_rowwise),
        cmocka_unit_test(test_traffic),       cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
