/* dropout_test.c - dropout of language models: masks are those of the whole model, however it is
 * cut into slices, chunks and samples that are computed together; the same bits for any layout;
 * none in evaluation. */
#include <math.h>
#include <stdlib.h>

#include "train/tiny_run.h"

enum { MOST_SETS = 24 };

/* Two steps of a model of 4 heads. Returns the run's path, which the caller frees. */
static char *run(int nworkers, const char *const *sets) {
    const char *all[MOST_SETS] = {"model.heads=4",      "train.steps=2",          "train.batch=8",
                                  "log.every=1",        "train.micro_batch=2",    "optim.warmup=0",
                                  "train.eval_every=0", "train.virtual_workers=4"};
    int n = 8;
    for (int i = 0; sets[i]; i++) all[n++] = sets[i];
    char *path = ls_format("%s/run-%d", folder, nruns++);
    train_short(path, nworkers, all, n);
    return path;
}

/* The first number of this name in the run's metrics. */
static double number_of(const char *path, const char *name) {
    char *file = ls_format("%s/metrics.jsonl", path), *key = ls_format("\"%s\":", name);
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(file, 1 << 20, &text, &e), e);
    const char *at = strstr(text.data, key);
    assert_non_null(at);
    double x = strtod(at + strlen(key), NULL);
    ls_buf_free(&text);
    free(file), free(key);
    return x;
}

/* The training loss of the first step, whose weights are the initial ones. */
static double loss_of(const char *const *sets) {
    char *path = run(1, sets);
    double loss = number_of(path, "loss");
    free(path);
    return loss;
}
#define LOSS(...) loss_of((const char *const[]){__VA_ARGS__, NULL})

static void cut(const char *kind, const char *const *cuts, int n) {
    double plain = LOSS(kind), whole = LOSS(kind, "model.dropout=0.5");
    assert_true(fabs(whole - plain) > 1e-4);
    for (int i = 0; i < n; i++) {
        double loss = LOSS(kind, "model.dropout=0.5", "train.seed=1", cuts[2 * i], cuts[2 * i + 1]);
        if (fabs(loss - whole) > 1e-6)
            fail_msg("%s, %s, %s: the loss is %.9g, of the whole model %.9g", kind, cuts[2 * i],
                     cuts[2 * i + 1], loss, whole);
    }
}

static void test_cuts(void **state) {
    (void)state;
    static const char *const cuts[] = {
        "parallel.tensor_virtual=2",  "parallel.context_virtual=1", "parallel.tensor_virtual=4",
        "parallel.sequence=on",       "parallel.context_virtual=2", "parallel.tensor_virtual=1",
        "parallel.context_virtual=4", "parallel.tensor_virtual=2",
    };
    cut("model.kind=gpt2", cuts, 4);
    cut("model.kind=llama", cuts + 2, 3);
}

/* Samples that are computed together have each its own mask. */
static void test_together(void **state) {
    (void)state;
#define EXPERTS                                                                                    \
    "model.kind=llama", "model.experts=4", "model.ffn=16", "model.router_aux_loss=0",              \
        "model.dropout=0.5"
    double whole = LOSS(EXPERTS), together = LOSS(EXPERTS, "parallel.expert_virtual=2"),
           chunks = LOSS(EXPERTS, "parallel.expert_virtual=2", "parallel.context_virtual=2");
    assert_true(fabs(together - whole) <= 1e-6);
    assert_true(fabs(chunks - whole) <= 1e-6);
}

static result last_result(int nworkers, const char *const *sets) {
    char *path = run(nworkers, sets);
    result r = last_of(path);
    free(path);
    return r;
}
#define LAST(n, ...) last_result(n, (const char *const[]){__VA_ARGS__, NULL})

/* GPT-2 of one piece, whose layers have masks of their own. */
static void check_layouts(const char *type) {
    result one = LAST(1, "model.dropout=0.2", type);
    const result others[] = {
        LAST(1, "model.dropout=0.2", type, "parallel.recompute=1", "parallel.threads=2"),
        LAST(2, "model.dropout=0.2", type, "parallel.zero=3", "train.micro_batch=1"),
        LAST(2, "model.dropout=0.2", type, "parallel.mesh.pipe=2", "parallel.schedule=zb-h1"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_string_equal(others[i].weights, one.weights);
        assert_string_equal(others[i].states, one.states);
    }
}

static void test_layouts(void **state) {
    (void)state;
    check_layouts("train.compute=f32");
    check_layouts("train.compute=bf16");
}

/* A rate near 1 leaves nothing of what a step computes; an evaluation has all of it. */
static void test_evaluation(void **state) {
    (void)state;
    static const char *const kinds[] = {"model.kind=gpt2", "model.kind=llama"};
    for (int i = 0; i < 2; i++) {
        char *plain =
            run(1, (const char *const[]){kinds[i], "optim.lr=1e-12", "optim.min_lr=0", NULL});
        char *drops = run(1, (const char *const[]){kinds[i], "optim.lr=1e-12", "optim.min_lr=0",
                                                   "model.dropout=0.9", NULL});
        assert_true(fabs(number_of(plain, "loss") - number_of(drops, "loss")) > 1e-3);
        assert_true(fabs(number_of(plain, "val_loss") - number_of(drops, "val_loss")) < 1e-7);
        free(plain), free(drops);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts), cmocka_unit_test(test_together),
                                       cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_evaluation)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
