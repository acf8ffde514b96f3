/* sparse_rows_test.c - rows of tables that are trained once their ids were seen often, and begin
 * anew when these were not seen for long (model.filter_freq, model.steps_to_live). */
/* ctest: busy seconds=10 */
/* ctest: long-asan: table and exec/dlrm run the same code */
#include "cli/program.h"
#include "weights/safetensors.h"

enum { USERS = 200, ITEMS = 900, STEPS = 120, FREQ = 4, LIVE = 30, ALWAYS = 1 << 24 };

static const char CONFIG[] =
    "model:\n"
    "  kind: factors\n"
    "  width: 6\n"
    "  sparse: on\n"
    "  loss: {bpr: {target: clicked}}\n"
    "data:\n"
    "  path: ratings.csv\n"
    "  ratings: {user: u, item: i, negatives: 1, split: leave_one_out}\n"
    "train: {steps: 120, batch: 16, virtual_workers: 8, micro_batch: 2, eval_every: 50}\n"
    "checkpoint: {every: 20}\n"
    "log: {every: 1000}\n"
    "optim: {optimizer: adagrad, lr: 0.05, lr_decay: 0.01, weight_decay: 0.01, warmup: 0, clip: "
    "1}\n"
    "survival: {balance: \"off\"}\n";

#define TRAIN                                                                                      \
    "train @/mf.yaml -o @/%s --set data.path=@/ratings.csv %s --set model.filter_freq=%d "         \
    "--set model.steps_to_live=%d"

static void train(const char *run, const char *how, int freq, int live) {
    expectf(0, NULL, TRAIN, run, how, freq, live);
}

static int make(void **state) {
    ls_buf b = {0};
    if (folder_make(state)) return -1;
    ls_buf_printf(&b, "u,i\n");
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < 1 + u % 12; k++)
            ls_buf_printf(&b, "%d,%d\n", u, u * (k + 1) * 7 % ITEMS * (u * k % 3 + 1) / 3);
    write_file("ratings.csv", b.data, b.len);
    write_file("mf.yaml", CONFIG, sizeof CONFIG - 1);
    ls_buf_free(&b);
    train("both", "-n 1", FREQ, LIVE);
    return 0;
}

/* ---- what rows have ---- */

typedef struct table {
    ls_safetensors weights, states;
    const float *rows, *sums, *seen; /* [n][6], [n][6], [n][2] how often, and the last time */
    int n;
} table;

static table open_table(const char *run, const char *name) {
    table t = {0};
    ls_error e = {0};
    char path[256], tensor[64];
    snprintf(path, sizeof path, "%s/%s/checkpoints/step-%d/model.safetensors", folder, run, STEPS);
    assert_ls_ok(ls_safetensors_open(path, &t.weights, &e), e);
    snprintf(path, sizeof path, "%s/%s/checkpoints/step-%d/optimizer.safetensors", folder, run,
             STEPS);
    assert_ls_ok(ls_safetensors_open(path, &t.states, &e), e);
    const ls_tensor *rows = ls_safetensors_find(&t.weights, name);
    snprintf(tensor, sizeof tensor, "%s.sum", name);
    const ls_tensor *sums = ls_safetensors_find(&t.states, tensor);
    snprintf(tensor, sizeof tensor, "%s.seen", name);
    const ls_tensor *seen = ls_safetensors_find(&t.states, tensor);
    assert_true(rows && sums && seen && seen->dims[0] == rows->dims[0] && seen->dims[1] == 2);
    t.rows = rows->data, t.sums = sums->data, t.seen = seen->data;
    t.n = (int)rows->dims[0];
    return t;
}

static void close_table(table *t) {
    ls_safetensors_close(&t->weights);
    ls_safetensors_close(&t->states);
}

static bool same_row(const table *a, const table *b, int i) {
    return memcmp(a->rows + 6 * i, b->rows + 6 * i, 6 * sizeof(float)) == 0;
}

static bool is_clear(const float *sums, int i) {
    static const float zeros[6];
    return memcmp(sums + 6 * i, zeros, sizeof zeros) == 0;
}

/* Compares with runs in which no row is ever trained: these have initial values, and note what was
 * seen. */
static void check_rows(const char *name) {
    table never = open_table("never", name), few = open_table("few", name);
    table gone = open_table("gone", name);
    int seldom = 0, often = 0, old = 0;
    for (int i = 0; i < never.n; i++) {
        float count = never.seen[2 * i], last = never.seen[2 * i + 1];
        assert_true(few.seen[2 * i] == (count < FREQ ? count : FREQ));
        assert_true(few.seen[2 * i + 1] == last);
        assert_int_equal(same_row(&few, &never, i), count < FREQ);
        assert_int_equal(is_clear(few.sums, i), count < FREQ);
        bool is_old = last <= STEPS - LIVE;
        assert_true(gone.seen[2 * i + 1] == (is_old ? 0 : last));
        assert_int_equal(same_row(&gone, &never, i), is_old);
        assert_int_equal(is_clear(gone.sums, i), is_old);
        seldom += count < FREQ, often += count >= FREQ, old += is_old && count > 0;
    }
    print_message("%s: %d rows seldom, %d often, %d not for long\n", name, seldom, often, old);
    assert_true(seldom > 5 && often > 5 && old > 5);
    close_table(&never), close_table(&few), close_table(&gone);
}

static void test_rows(void **state) {
    (void)state;
    train("never", "-n 2", ALWAYS, 0);
    train("few", "-n 2", FREQ, 0);
    train("gone", "-n 2", 0, LIVE);
    check_rows("user.weight");
    check_rows("item.weight");
}

/* ---- bits ---- */

static void has_bits(const char *run, const char *other) {
    char got[256], want[256];
    hash_of(run, got);
    hash_of(other, want);
    if (strcmp(got, want) != 0) fail_msg("%s: other bits:\n%s%s", run, want, got);
}

/* A row that is trained from the first time on, and never begins anew, is as without the keys. */
static void test_always(void **state) {
    (void)state;
    char a[256], b[256];
    train("off", "-n 2", 0, 0);
    train("always", "-n 2", 1, ALWAYS);
    hash_of("off", a);
    hash_of("always", b);
    *strchr(a, '\n') = *strchr(b, '\n') = 0; /* the weights' */
    assert_string_equal(a, b);
}

static void test_same_bits(void **state) {
    (void)state;
    train("replicas", "-n 3 --set parallel.zero=0 --set parallel.transport=tcp", FREQ, LIVE);
    train("apart",
          "-n 5 --set parallel.zero=3 --set parallel.transport=thread "
          "--set train.micro_batch=1",
          FREQ, LIVE);
    has_bits("replicas", "both");
    has_bits("apart", "both");
    expectf(75, NULL, TRAIN, "resumed", "-n 3 --until 75", FREQ, LIVE);
    expect("train --resume @/resumed -n 2", 0, NULL);
    has_bits("resumed", "both");
}

/* Without states of the optimizer, and for rows that are new in a run that begins from another. */
static void test_sgd(void **state) {
    (void)state;
    static const char SGD[] = "--set optim.optimizer=sgd --set optim.lr_decay=0";
    char how[256];
    snprintf(how, sizeof how, "-n 1 --set train.from=@/both %s", SGD);
    train("sgd", how, FREQ, LIVE);
    snprintf(how, sizeof how, "-n 2 --set train.from=@/both --until 50 %s", SGD);
    expectf(75, NULL, TRAIN, "sgd-2", how, FREQ, LIVE);
    expect("train --resume @/sgd-2 -n 3 --set parallel.transport=thread", 0, NULL);
    has_bits("sgd-2", "sgd");
}

static void test_killed(void **state) {
    (void)state;
    char *output = NULL;
    int times = 0;
    pace("killed", 1);
    program p = startf(TRAIN, "killed", "-n 3", FREQ, LIVE);
    for (int i = 1; i <= 6; i++) {
        pid_t pids[16];
        pace("killed", 18 * i);
        sleep_ms(60 + 7 * i);
        int n = children_of(p.pid, pids, 16);
        if (n) times += kill(pids[i % n], SIGKILL) == 0;
    }
    let_go("killed");
    int code = program_end(&p, &output);
    if (code != 0) fail_msg("exit code %d:\n%s", code, output);
    free(output);
    assert_true(times > 0);
    has_bits("killed", "both");
}

static void test_refused(void **state) {
    (void)state;
    expect("train @/mf.yaml -o @/no --set model.sparse=off --set model.filter_freq=2", 1,
           "model.filter_freq acts only with model.sparse: on");
    expect("train @/mf.yaml -o @/no --set model.steps_to_live=9 --set train.steps=20000000", 1,
           "model.steps_to_live counts steps up to 16777216");
    expect("train @/mf.yaml -o @/no --set optim.optimizer=adam", 1,
           "optim.lr_decay acts only with optim.optimizer: adagrad, rowwise_adagrad");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_always),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_killed),    cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
