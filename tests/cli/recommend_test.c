/* recommend_test.c - runs on ratings and clicks: the same bits for any layout, killed and resumed;
 * what evaluations print; what is refused. */
/* ctest: slow seconds=4 */
#include "cli/killed_at.h"
#include "cli/program.h"

#include <math.h>

#include "weights/safetensors.h"

enum { USERS = 60, ITEMS = 90 };

static char alone[256]; /* `ckpt hash` of the run with one worker */

/* data: members of this key */
#define FACTORS(data)                                                                              \
    "model:\n"                                                                                     \
    "  kind: factors\n"                                                                            \
    "  width: 8\n"                                                                                 \
    "  loss: {bpr: {target: clicked}}\n"                                                           \
    "  metrics: [hr: 10, ndcg: 10, ndcg: {k: 10, candidates: 20}]\n"                               \
    "data:\n" data                                                                                 \
    "train: {steps: 60, batch: 32, virtual_workers: 8, micro_batch: 2, eval_every: 30}\n"          \
    "checkpoint: {every: 20}\n"                                                                    \
    "log: {every: 1000}\n"                                                                         \
    "optim: {optimizer: adam, lr: 0.02, weight_decay: 0, warmup: 0}\n"                             \
    "survival: {balance: \"off\"}\n"
#define RATINGS(u, i, r, t)                                                                        \
    "  ratings: {user: " u ", item: " i ", rating: " r ", time: " t                                \
    ", at_least: 2, negatives: 3, split: leave_one_out}\n"
static const char CONFIG[] = FACTORS("  path: ratings.csv\n" RATINGS("u", "i", "r", "t"));
/* These rows in another form, among others that lack values. */
static const char FORMED[] = FACTORS(
    "  path: formed.dat\n  missing: {\"*\": drop}\n  na: [\"-\"]\n"
    "  csv: {separator: \"::\", quote: \"'\", decimal: \",\", header: no, skip: 2}\n" RATINGS(
        "column4", "column1", "column2", "column3"));

static const char RATED[] =
    "model: {kind: factors, width: 8, loss: {mean_squared_error: {target: rating}}}\n"
    "data: {path: ratings.csv, ratings: {user: u, item: i, rating: r, time: t, at_least: 2, "
    "split: leave_one_out}}\n"
    "train: {steps: 20, batch: 32, virtual_workers: 2}\n"
    "optim: {warmup: 0}\n";

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
static const char SCALED[] = CLICKS(", numbers: [t], scale: standard");
/* Columns with 50 ids, some of which stand for several texts. */
static const char HASHED[] = CLICKS(", hash: 50");

enum { CHOSEN = 14 }; /* items of a user */

/* The item that a user has chosen as k-th: users like items of their own third. */
static int item_of(int u, int k) { return u % 3 + 3 * ((7 * u + 11 * k) % (ITEMS / 3)); }

static void make_formed(void) {
    ls_buf b = {0};
    ls_buf_printf(&b, "a title\n\n");
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < CHOSEN; k++) {
            if (k % 5 == 1) ls_buf_printf(&b, "17::-::%d::u%d\n3::NA::1::u1\n::2::1::u1\n", k, u);
            ls_buf_printf(&b, "'%d'::%d,0::%d::u%d\n", item_of(u, k), 1 + (u + k) % 5, 100 * k + u,
                          u);
        }
    write_file("formed.dat", b.data, b.len);
    write_file("formed.yaml", FORMED, sizeof FORMED - 1);
    ls_buf_free(&b);
}

static int make(void **state) {
    if (folder_make(state)) return -1;
    ls_buf b = {0};
    ls_buf_printf(&b, "u,i,r,t\n");
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < CHOSEN; k++)
            ls_buf_printf(&b, "u%d,%d,%d,%d\n", u, item_of(u, k), 1 + (u + k) % 5, 100 * k + u);
    write_file("ratings.csv", b.data, b.len);
    make_formed();
    write_file("mf.yaml", CONFIG, sizeof CONFIG - 1);
    write_file("dlrm.yaml", NUMBERS, sizeof NUMBERS - 1);
    write_file("bare.yaml", BARE, sizeof BARE - 1);
    write_file("hashed.yaml", HASHED, sizeof HASHED - 1);
    ls_buf_free(&b);
    return 0;
}

#define TRAIN "train @/mf.yaml -o @/%s --set data.path=@/ratings.csv "

static void train(const char *run, const char *more, int code, const char *says) {
    expectf(code, says, TRAIN "%s", run, more);
}

static void has_bits_of_alone(const char *run) { assert_hash(run, alone); }

static void test_alone(void **state) {
    (void)state;
    train("alone", "-n 1", 0, ", ndcg10_sampled20 0.");
    hash_of("alone", alone);
    expect("eval @/alone", 0, "60 samples of the validation part\nmodel    loss 0.");
    expect("eval @/alone --json", 0, "\"ndcg10_full\":");
    train("float", "-n 1 --set model.kind=two_towers --set model.hidden=[16,8]", 0,
          ", hr10_full 0.");
}

static void test_form(void **state) {
    (void)state;
    expect("train @/formed.yaml -o @/formed -n 1 --set data.path=@/formed.dat", 0,
           "formed.dat: 540 rows without a value left out");
    has_bits_of_alone("formed");
    expect("predict @/formed --user u7 --top 2", 0, "u7,2,");
    expect("train @/formed.yaml -o @/refused -n 1 --set data.path=@/formed.dat --set "
           "data.missing=mean",
           1, "column 'column2' has no value, and ratings, times and clicks have no mean");
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
    char one[256], hash[256];
    for (int k = 0; k < 3; k++)
        for (int n = 1; n <= 5; n += 2) {
            char run[32];
            snprintf(run, sizeof run, "clicks-%d-%d", k, n);
            expectf(0, ", auc 0.", "train @/%s -o @/%s -n %d --set data.path=@/ratings.csv",
                    kinds[k], run, n);
            hash_of(run, n == 1 ? one : hash);
            if (n > 1) assert_string_equal(hash, one);
        }
}

/* Ids that are hashes, in tables of which a step touches few rows and in others. */
static void test_hashed(void **state) {
    (void)state;
    static const char *const layouts[] = {"-n 1", "-n 3 --set model.sparse=on",
                                          "-n 2 --set model.sparse=on --set parallel.zero=0"};
    char one[256], hash[256];
    for (int k = 0; k < 3; k++) {
        char run[32];
        snprintf(run, sizeof run, "hashed-%d", k);
        expectf(0, ", auc 0.",
                "train @/hashed.yaml -o @/%s %s --set data.path=@/ratings.csv --set "
                "optim.optimizer=rowwise_adagrad --set optim.weight_decay=0 --set optim.clip=0",
                run, layouts[k]);
        hash_of(run, k == 0 ? one : hash);
        if (k > 0) assert_string_equal(hash, one);
    }
}

/* ---- predictions ---- */

static const float *find_tensor(const ls_safetensors *f, const char *name) {
    const ls_tensor *t = ls_safetensors_find(f, name);
    assert_non_null(t);
    return t->data;
}

/* The row of an id, as its text first appears in the ratings that count: those of 2 or more. */
static int row_of(int column, const char *id) {
    enum { MOST = 200 };
    char seen[MOST][16];
    int n = 0;
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < 14; k++) {
            char text[16];
            if (1 + (u + k) % 5 < 2) continue;
            if (column == 0)
                snprintf(text, sizeof text, "u%d", u);
            else
                snprintf(text, sizeof text, "%d", u % 3 + 3 * ((7 * u + 11 * k) % (ITEMS / 3)));
            int i = 0;
            while (i < n && strcmp(seen[i], text) != 0) i++;
            if (strcmp(text, id) == 0) return i;
            if (i == n) memcpy(seen[n++], text, sizeof text);
        }
    fail_msg("no id %s", id);
    return -1;
}

enum { WIDTH = 8 };

typedef struct weights {
    ls_safetensors file;
    const float *users, *items, *user_bias, *item_bias, *mean; /* NULL: the model has none */
} weights;

static weights open_weights(const char *run, bool rates) {
    weights w = {.mean = NULL};
    ls_error e = {0};
    char *path = ls_format("%s/%s/checkpoints/latest/model.safetensors", folder, run);
    assert_ls_ok(ls_safetensors_open(path, &w.file, &e), e);
    free(path);
    w.users = find_tensor(&w.file, "user.weight");
    w.items = find_tensor(&w.file, "item.weight");
    w.item_bias = find_tensor(&w.file, "item_bias.weight");
    if (rates) w.user_bias = find_tensor(&w.file, "user_bias.weight");
    if (rates) w.mean = find_tensor(&w.file, "mean.weight");
    return w;
}

static double score_of(const weights *w, int u, int v) {
    double score = (double)w->item_bias[v];
    for (int k = 0; k < WIDTH; k++)
        score += (double)w->users[u * WIDTH + k] * (double)w->items[v * WIDTH + k];
    return w->mean ? score + (double)w->user_bias[u] + (double)*w->mean : score;
}

/* Each line's score is that of the weights, in falling order; a user's own items are not there. */
static void test_recommended(void **state) {
    (void)state;
    weights w = open_weights("alone", false);
    char user[16], item[16];
    char *output = output_of("predict @/alone --top 5 -n 2");
    char *line = strtok(output, "\n");
    assert_string_equal(line, "user,rank,item,score");
    double before = 0;
    for (int i = 0; i < 5 * USERS; i++) {
        int rank = 0;
        double score = 0;
        line = strtok(NULL, "\n");
        assert_int_equal(sscanf(line, "%15[^,],%d,%15[^,],%lf", user, &rank, item, &score), 4);
        assert_int_equal(rank, i % 5 + 1);
        double want = score_of(&w, row_of(0, user), row_of(1, item));
        if (fabs(want - score) > 1e-5) fail_msg("%s; expected %.7f", line, want);
        assert_true(rank == 1 || score <= before);
        before = score;
    }
    assert_null(strtok(NULL, "\n"));
    free(output);
    ls_safetensors_close(&w.file);
}

/* Pairs of files get a score, or a rating, in the files' order, without ratings there; those with
 * an unknown id get none. lines: the number of lines of the output. */
static void check_pairs(const char *run, const char *name, bool rates, int lines) {
    weights w = open_weights(run, rates);
    char user[16], item[16], want[64];
    expectf(0, "2 of 71 rows have a user or an item that the training data do not have",
            "predict @/%s @/pairs.csv -n 3 -o @/pairs-of-%s.csv", run, run);
    char *output = output_of("predict @/%s @/pairs.csv", run);
    char *text = strstr(output, "sample,");
    assert_non_null(text);
    ls_buf file = {0};
    ls_error e = {0};
    char *path = ls_format("%s/pairs-of-%s.csv", folder, run);
    assert_ls_ok(ls_file_read(path, 1 << 20, &file, &e), e);
    assert_int_equal(file.len, strlen(text));
    assert_memory_equal(file.data, text, file.len);
    snprintf(want, sizeof want, "sample,user,item,%s", name);
    assert_string_equal(strtok(text, "\n"), want);
    for (int i = 0; i < lines; i++) {
        const char *line = strtok(NULL, "\n");
        int sample = 0, end = 0;
        assert_int_equal(sscanf(line, "%d,%15[^,],%15[^,],%n", &sample, user, item, &end), 3);
        assert_int_equal(sample, i);
        assert_int_equal(line[end] == 0, i == 5 || i == 6);
        if (!line[end]) continue;
        double should = score_of(&w, row_of(0, user), row_of(1, item));
        if (fabs(should - atof(line + end)) > 1e-5) fail_msg("%s; expected %.7f", line, should);
    }
    assert_null(strtok(NULL, "\n"));
    ls_buf_free(&file);
    free(path), free(output);
    ls_safetensors_close(&w.file);
}

static void test_pairs(void **state) {
    (void)state;
    enum { PAIRS = 71 };
    ls_buf b = {0};
    ls_buf_printf(&b, "i,other,u\n");
    for (int k = 0; k < PAIRS; k++)
        ls_buf_printf(&b, "%s,x,%s%d\n",
                      k == 5  ? "9999"
                      : k % 2 ? "4"
                              : "\"7\"",
                      k == 6 ? "v" : "u", k * 7 % USERS);
    write_file("pairs.csv", b.data, b.len);
    ls_buf_free(&b);
    write_file("rated.yaml", RATED, sizeof RATED - 1);
    expect("train @/rated.yaml -o @/rated --set data.path=@/ratings.csv", 0, NULL);
    check_pairs("alone", "clicked", false, PAIRS);
    check_pairs("rated", "rating", true, PAIRS);
    expect("predict @/rated @/pairs.csv --json", 0,
           "{\"sample\": 5, \"user\": \"u35\", \"item\": \"9999\", \"rating\": null}\n");
    static const char damaged[] = "u,i\nu1,4\n,7\nu2,7\n";
    write_file("half.csv", damaged, sizeof damaged - 1);
    expect("predict @/rated @/half.csv", 1, "half.csv:3: column 'u' is empty");
    expect("predict @/rated @/half.csv --set data.damaged=skip", 0, "\n2,u2,7,");
    expect_line("predict @/rated @/half.csv --user u1", 1, "--user recommends items");
    expect_line("predict @/rated @/half.csv --vectors", 1, "--similar compares the vectors");
    expect_line("predict @/rated @/pairs.csv --top 2", 1, "the model predicts no classes");
    expect_line("predict @/rated @/mf.yaml", 1, "has no column 'u'");
}

static void test_asked(void **state) {
    (void)state;
    char *some = output_of("predict @/alone --user u7 --top 200");
    char *all = output_of("predict @/alone --user u7 --top 200 --seen");
    int n = 0, m = 0;
    for (const char *c = some; *c; c++) n += *c == '\n';
    for (const char *c = all; *c; c++) m += *c == '\n';
    assert_true(n < m && m <= ITEMS + 1);
    free(some), free(all);
    expect("predict @/alone --similar 4 --top 3", 0, "item,rank,similar,similarity\n4,1,");
    expect("predict @/float --similar 4 --top 3 --json", 0,
           "{\"item\": \"4\", \"similar\": [{\"item\": ");
    expect_line("predict @/alone --user u999", 1, "'u999' is not in the column 'u'");
}

/* Other files are read with the ids and the scales of the training data; without the clicks,
 * too. */
static void test_other_files(void **state) {
    (void)state;
    static const char other[] = "i,t,u\n7,100,u1\n4,200,u2\n4,200,new\n";
    static const char rated[] = "t,u,i,r\n9,u1,4,5\n9,u2,8,3\n9,new,8,3\n";
    write_file("other.csv", other, sizeof other - 1);
    write_file("rated.csv", rated, sizeof rated - 1);
    write_file("scaled.yaml", SCALED, sizeof SCALED - 1);
    expect("train @/scaled.yaml -o @/scaled --set data.path=@/ratings.csv", 0, NULL);
    expect_line("predict @/scaled --user u1", 1, "is for runs that are trained on ratings");
    expect("predict @/scaled @/other.csv", 0, "1 of 3 rows have an id in 'u'");
    expect("eval @/scaled --data @/other.csv", 1, "; without labels there is `lockstep predict`");
    static const char some[] = "i,t,u,r\n7,100,u1,5\n4,200,u2,\n";
    write_file("some.csv", some, sizeof some - 1);
    expect_line("eval @/scaled --data @/some.csv", 1, "some.csv: 1 of 2 rows have no 'r'");
    expect("predict @/scaled @/some.csv", 0, "sample,clicked\n0,0.");
    char *a = output_of("eval @/scaled --data @/ratings.csv --json");
    assert_output_has(a, "\"samples\": 840");
    expect("eval @/alone --data @/rated.csv", 0, "2 samples of ");
    expect("eval @/alone --data @/other.csv", 1, "other.csv: has no column 'r'");
    char *b = output_of("predict @/scaled");
    expect("ckpt export @/alone --to @/alone.safetensors", 0,
           "alone.safetensors.ids.json: which id");
    assert_true(file_exists("alone.safetensors.ids.json"));
    free(a), free(b);
}

/* A user's latest item, of which the rating is at least 2, is what a run holds out. */
static void write_latest(void) {
    ls_buf b = {0};
    ls_buf_printf(&b, "r,u,t,i\n");
    for (int u = 0; u < USERS; u++) {
        int k = CHOSEN - 1;
        while (1 + (u + k) % 5 < 2) k--;
        ls_buf_printf(&b, "%d,u%d,%d,%d\n", 1 + (u + k) % 5, u, 100 * k + u, item_of(u, k));
    }
    write_file("latest.csv", b.data, b.len);
    ls_buf_free(&b);
}

/* What the run has held out, given as a file, is evaluated to the same numbers, with metrics of all
 * items and with a loss of the ratings alone. */
static void test_same_rows(void **state) {
    (void)state;
    write_latest();
    static const char *const runs[] = {"alone", "rated"};
    for (int i = 0; i < 2; i++) {
        char *own = output_of("eval @/%s --json", runs[i]);
        char *given = output_of("eval @/%s --data @/latest.csv --json", runs[i]);
        const char *a = strstr(own, "\"samples\": 60,"), *b = strstr(given, "\"samples\": 60,");
        assert_non_null(a);
        assert_non_null(b);
        assert_string_equal(a, b);
        free(own), free(given);
    }
}

static void test_refused(void **state) {
    (void)state;
    expect_line("train @/mf.yaml -o @/no --set model.loss=", 1,
                "model.kind: factors needs model.loss: set it, e.g. to {bpr");
    expect_line("train @/mf.yaml -o @/no --set data.ratings=", 1,
                "model.kind: factors needs data.ratings: it reads interactions");
    expect_line("train @/mf.yaml -o @/no --set data.folds=5", 1, "this config has data.ratings");
    train("no", "--set data.ratings={user:film,item:i}", 1, "data.ratings");
    train("no", "--set model.loss={bpr:1}", 1, NULL);
    expect_line("train @/dlrm.yaml -o @/no --set data.val_path=x", 1,
                "data.val_path acts only with");
    expect_line("train @/dlrm.yaml -o @/no --set data.clicks=", 1,
                "model.kind: dlrm needs data.clicks: it reads ids and numbers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),       cmocka_unit_test(test_form),
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_killed),
        cmocka_unit_test(test_clicks),      cmocka_unit_test(test_hashed),
        cmocka_unit_test(test_recommended), cmocka_unit_test(test_asked),
        cmocka_unit_test(test_pairs),       cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_same_rows),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
