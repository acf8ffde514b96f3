/* recommend_test.c - runs on ratings and clicks: the same bits for any layout, killed and resumed; what
 * evaluations print; what is refused. */
/* ctest: slow seconds=4 */
#include "cli/killed_at.h"
#include "cli/program.h"

enum { USERS = 60, ITEMS = 90 };

static char alone[256]; /* `ckpt hash` of the run with one worker */

static const char CONFIG[] =
    "model:\n"
    "  kind: factors\n"
    "  width: 8\n"
    "  loss: {bpr: {target: clicked}}\n"
    "  metrics: [hr: 10, ndcg: 10, ndcg: {k: 10, candidates: 20}]\n"
    "data:\n"
    "  path: ratings.csv\n"
    "  ratings: {user: u, item: i, rating: r, time: t, at_least: 2, negatives: 3, split: "
    "leave_one_out}\n"
    "train: {steps: 60, batch: 32, virtual_workers: 8, micro_batch: 2, eval_every: 30}\n"
    "checkpoint: {every: 20}\n"
    "log: {every: 1000}\n"
    "optim: {optimizer: adam, lr: 0.02, weight_decay: 0, warmup: 0}\n"
    "survival: {balance: \"off\"}\n";

/* numbers: ", numbers: [t], scale: log", or "" */
#define CLICKS(numbers)                                                                            \
    "model: {kind: dlrm, width: 4, hidden: [8], bottom: [6], loss: {binary_cross_entropy: "        \
    "{target: clicked}}}\n"                                                                        \
    "data: {path: ratings.csv, val_fraction: 0.1, clicks: {clicked: r, positive: \"5\", ids: [u, " \
    "i]" numbers "}}\n"                                                                            \
    "train: {steps: 20, batch: 32, virtual_workers: 8, micro_batch: 2}\n"                          \
    "log: {every: 1000}\n"                                                                         \
    "optim: {warmup: 0}\n"
static const char NUMBERS[] = CLICKS(", numbers: [t], scale: log"), BARE[] = CLICKS("");
/* Columns with 50 ids, some of which stand for several texts. */
static const char HASHED[] = CLICKS(", hash: 50");

/* Users like items of their own third. */
static int make(void **state) {
    if (folder_make(state)) return -1;
    ls_buf b = {0};
    ls_buf_printf(&b, "u,i,r,t\n");
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < 14; k++)
            ls_buf_printf(&b, "u%d,%d,%d,%d\n", u, u % 3 + 3 * ((7 * u + 11 * k) % (ITEMS / 3)),
                          1 + (u + k) % 5, 100 * k + u);
    write_file("ratings.csv", b.data, b.len);
    write_file("mf.yaml", CONFIG, sizeof CONFIG - 1);
    write_file("dlrm.yaml", NUMBERS, sizeof NUMBERS - 1);
    write_file("bare.yaml", BARE, sizeof BARE - 1);
    write_file("hashed.yaml", HASHED, sizeof HASHED - 1);
    ls_buf_free(&b);
    return 0;
}

#define TRAIN "train @/mf.yaml -o @/%s --set data.path=@/ratings.csv "

static void train(const char *run, const char *more, int code, const char *says) {
    char line[1024];
    snprintf(line, sizeof line, TRAIN "%s", run, more);
    expect(line, code, says);
}

static void has_bits_of_alone(const char *run) {
    char hash[256];
    hash_of(run, hash);
    assert_string_equal(hash, alone);
}

static void test_alone(void **state) {
    (void)state;
    train("alone", "-n 1", 0, ", ndcg10_sampled20 0.");
    hash_of("alone", alone);
    expect("eval @/alone", 0, "60 samples of the validation part\nmodel    loss 0.");
    expect("eval @/alone --json", 0, "\"ndcg10_full\":");
    train("float", "-n 1 --set model.kind=two_towers --set model.hidden=[16,8]", 0,
          ", hr10_full 0.");
}

static void test_same_bits(void **state) {
    (void)state;
    static const char *const layouts[][2] = {
        {"two", "-n 2 --set parallel.zero=0"},
        {"three", "-n 3 --set parallel.zero=3"},
        {"five", "-n 5 --set parallel.zero=1 --set train.micro_batch=4"},
        {"threads", "-n 3 --set parallel.transport=thread"}};
    for (int i = 0; i < 4; i++) {
        train(layouts[i][0], layouts[i][1], 0, NULL);
        has_bits_of_alone(layouts[i][0]);
    }
}

static void test_killed(void **state) {
    (void)state;
    char line[1024];
    snprintf(line, sizeof line, TRAIN "-n 2", "killed");
    kill_worker_at_20(line, "killed");
    has_bits_of_alone("killed");

    snprintf(line, sizeof line, TRAIN "-n 2", "ended");
    kill_run_at_20(line, "ended");
    train("ended", "-n 3 --resume", 0, "continuing from");
    has_bits_of_alone("ended");
}

/* A DLRM and a wide and deep model, with numbers and without. */
static void test_clicks(void **state) {
    (void)state;
    static const char *const kinds[] = {"dlrm.yaml", "dlrm.yaml --set model.kind=wide_deep",
                                        "bare.yaml"};
    char line[512], one[256], hash[256];
    for (int k = 0; k < 3; k++)
        for (int n = 1; n <= 5; n += 2) {
            char run[32];
            snprintf(run, sizeof run, "clicks-%d-%d", k, n);
            snprintf(line, sizeof line, "train @/%s -o @/%s -n %d --set data.path=@/ratings.csv",
                     kinds[k], run, n);
            expect(line, 0, ", auc 0.");
            hash_of(run, n == 1 ? one : hash);
            if (n > 1) assert_string_equal(hash, one);
        }
}

/* Ids that are hashes, in tables of which a step touches few rows and in others. */
static void test_hashed(void **state) {
    (void)state;
    static const char *const layouts[] = {"-n 1", "-n 3 --set model.sparse=on",
                                          "-n 2 --set model.sparse=on --set parallel.zero=0"};
    char line[512], one[256], hash[256];
    for (int k = 0; k < 3; k++) {
        char run[32];
        snprintf(run, sizeof run, "hashed-%d", k);
        snprintf(line, sizeof line,
                 "train @/hashed.yaml -o @/%s %s --set data.path=@/ratings.csv --set "
                 "optim.optimizer=rowwise_adagrad --set optim.weight_decay=0 --set optim.clip=0",
                 run, layouts[k]);
        expect(line, 0, ", auc 0.");
        hash_of(run, k == 0 ? one : hash);
        if (k > 0) assert_string_equal(hash, one);
    }
}

static void test_refused(void **state) {
    (void)state;
    expect_line("train @/mf.yaml -o @/no --set model.loss=", 1, "model.loss is missing, e.g. {bpr");
    expect_line("train @/mf.yaml -o @/no --set data.ratings=", 1,
                "model.kind factors and two_towers read interactions");
    expect_line("train @/mf.yaml -o @/no --set data.folds=5", 1,
                "this config has data.ratings");
    train("no", "--set data.ratings={user:film,item:i}", 1, "data.ratings");
    train("no", "--set model.loss={bpr:1}", 1, NULL);
    expect_line("train @/dlrm.yaml -o @/no --set data.val_path=x", 1,
                "data.val_path acts only with");
    expect_line("train @/dlrm.yaml -o @/no --set data.clicks=", 1,
                "model.kind dlrm and wide_deep read ids and numbers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),   cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_clicks),
        cmocka_unit_test(test_hashed),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
