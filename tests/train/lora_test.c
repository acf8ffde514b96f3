/* lora_test.c - training with adapters: the same bits for any workers and layout, what a run begins
 * with, and what is refused. */
/* ctest: seconds=8 */
#include <math.h>

#include "infer/generate.h"
#include "train/tiny_run.h"

static const char *const usual[] = {"model.kind=llama", "model.heads=6",      "model.kv_heads=2",
                                    "model.head=own",   "log.every=1000",     "train.steps=5",
                                    "optim.warmup=1",   "train.eval_every=0", NULL};
#define TRAIN(nworkers, ...) train_new(nworkers, usual, (const char *const[]){__VA_ARGS__, NULL})

static const char THREAD[] = "parallel.transport=thread", ALL[] = "lora.targets=all-linear";
static const char RANK[] = "lora.rank=4", DORA[] = "lora.dora=on", DROP[] = "lora.dropout=0.2";

static void test_bits(void **state) {
    (void)state;
    static const char *const zero[] = {"parallel.zero=0", "parallel.zero=1", "parallel.zero=2",
                                       "parallel.zero=3"};
    static const char TRAINED[] = "lora.train=[lm_head, \"*norm.weight\"]";
    result one = TRAIN(1, RANK, ALL, DORA, DROP, TRAINED, THREAD);
    same(TRAIN(2, RANK, ALL, DORA, DROP, TRAINED, zero[0], THREAD, "train.micro_batch=2"), one);
    same(TRAIN(3, RANK, ALL, DORA, DROP, TRAINED, zero[1]), one);
    same(TRAIN(5, RANK, ALL, DORA, DROP, TRAINED, zero[2], "parallel.bucket_mb=0.02"), one);
    same(TRAIN(3, RANK, ALL, DORA, DROP, TRAINED, zero[3], THREAD, "train.micro_batch=2"), one);
    same(TRAIN(2, RANK, ALL, DORA, DROP, TRAINED, "parallel.recompute=2", THREAD), one);
    same(TRAIN(2, RANK, ALL, DORA, DROP, TRAINED, "parallel.threads=2", THREAD), one);
    same(TRAIN(3, RANK, ALL, DORA, DROP, TRAINED, "parallel.executor=sequential"), one);
    result plain = TRAIN(1, RANK, THREAD);
    for (int i = 0; i < 4; i++) same(TRAIN(i + 2, RANK, zero[i], THREAD), plain);
    assert_string_not_equal(TRAIN(1, RANK, "lora.rs=on", THREAD).weights, plain.weights);
    assert_string_not_equal(TRAIN(1, RANK, "lora.alpha=9", THREAD).weights, plain.weights);
    same(TRAIN(1, RANK, "lora.targets=[self_attn.v_proj, \"*.q_proj\"]", THREAD), plain);
}

static void test_half(void **state) {
    (void)state;
    static const char BF16[] = "train.compute=bf16";
    result one = TRAIN(1, RANK, ALL, DORA, BF16, THREAD);
    same(TRAIN(3, RANK, ALL, DORA, BF16, "parallel.zero=3"), one);
    same(TRAIN(2, RANK, ALL, DORA, BF16, "train.micro_batch=2", THREAD), one);
}

static void test_resume(void **state) {
    (void)state;
    ls_error e = {0};
    result want = TRAIN(1, RANK, DORA, DROP, THREAD, "train.steps=6");
    int number = nruns++;
    const char *const part[] = {RANK, DORA, DROP, THREAD, "train.steps=6", "checkpoint.every=3",
                                NULL};
    const char *const rest[] = {RANK, DORA, DROP, "parallel.zero=3", "train.steps=6", NULL};
    assert_ls_ok(try_number(number, 2, usual, part, &e), e);
    char *run = run_path(number), *newest = ls_format("%s/checkpoints/step-6", run);
    assert_ls_ok(ls_file_remove_tree(newest, &e), e);
    assert_ls_ok(try_number(number, 3, usual, rest, &e), e);
    same(last_of_number(number), want);
    free(newest);
    free(run);
}

/* ---- the beginning ---- */

/* The loss on the validation part, by the run's own forward alone. */
static double loss_of(int number) {
    char *run = run_path(number);
    ls_trained t;
    ls_evaluation v;
    ls_error e = {0};
    ls_dataset d;
    assert_ls_ok(ls_trained_open(run, &(ls_trained_options){0}, &t, &e), e);
    assert_ls_ok(ls_dataset_open(&d, run, &t.config, &t.model, &e), e);
    assert_ls_ok(ls_trained_evaluate_data(&t, &d, &v, NULL, &e), e);
    ls_dataset_free(&d);
    ls_trained_close(&t);
    free(run);
    return v.loss;
}

/* An adapter that has not learned anything changes nothing; B is 0, and DoRA's norms those of the
 * weights, which come from another run. */
static void test_origin(void **state) {
    (void)state;
    static const char NOTHING[] = "optim.lr=0", LEAST[] = "optim.min_lr=0";
    TRAIN(2, THREAD);
    double base = loss_of(nruns - 1);
    char *first = run_path(nruns - 1), *from = ls_format("train.from=%s", first);
    static const char *const kinds[] = {"lora.rs=on", DORA, "lora.dropout=0.5"};
    for (int i = 0; i < 3; i++) {
        TRAIN(i + 1, RANK, ALL, kinds[i], from, NOTHING, LEAST, "parallel.zero=3");
        assert_true(fabs(loss_of(nruns - 1) - base) < 2e-6 * base);
    }
    TRAIN(2, RANK, ALL, DORA, from, "optim.lr=0.01", THREAD);
    assert_true(loss_of(nruns - 1) < base);
    char *again = run_path(nruns - 1), *tuned = ls_format("train.from=%s", again);
    double loss = loss_of(nruns - 1);
    TRAIN(1, RANK, ALL, DORA, tuned, NOTHING, LEAST, THREAD);
    assert_true(loss_of(nruns - 1) == loss);
    free(first), free(from), free(again), free(tuned);
}

/* ---- what is refused ---- */

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *sets[3], *why;
    } cases[] = {
        {{ALL}, "acts only with lora.rank > 0"},
        {{RANK, "model.kind=gpt2"}, "acts only with model.kind: llama"},
        {{RANK, "lora.targets=[q_proj, wq]"},
         "lora.targets: 'wq' matches no linear layer; there are q_proj, k_proj, v_proj, o_proj, "
         "gate_proj, up_proj, down_proj; all-linear"},
        {{RANK, "lora.train=[embed]"}, "lora.train: 'embed' matches no layer or parameter"},
        {{RANK, "lora.train=[\"*.q_proj.weight\"]"}, "whose layer has an adapter; leave it out"},
        {{RANK, DORA, "train.freeze=[\"*magnitude*\"]"}, "lora_magnitude_vector is trained"},
        {{"lora.rank=-1"}, "lora.rank"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[4] = {cases[i].sets[0], cases[i].sets[1], cases[i].sets[2], NULL};
        ls_error e = {0};
        assert_ls_fails(try_number(nruns++, 1, usual, sets, &e), LS_EINVAL, cases[i].why, e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {plain_unit_test(test_bits), cmocka_unit_test(test_half),
                                       cmocka_unit_test(test_resume), cmocka_unit_test(test_origin),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
