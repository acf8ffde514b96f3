/* optimizers_test.c - every optimizer, and groups of parameters: the same bits for any number of
 * workers, any sharding and after a resumption; checkpoints have the optimizer's states. */
/* ctest: busy */
#include <string.h>

#include "base/mem.h"
#include "folder.h"
#include "model/safetensors.h"
#include "storage/checkpoint.h"
#include "test.h"
#include "train/train.h"

enum { MOST_SETS = 12 };

static const char GROUPS[] = "optim.groups=[{match: \"*.bias\", optimizer: sgd, momentum: 0.5}, "
                             "{match: \"wte.*\", optimizer: "
                             "lion, lr_scale: 0.25}, {match: \"h.1.*\", weight_decay: 0}]";

/* The settings of a run, and the states of two parameters in its checkpoints. */
typedef struct optimizer {
    const char *sets[3];
    const char *table, *bias; /* of wte.weight and of h.0.ln_1.bias, e.g. "exp_avg exp_avg_sq" */
} optimizer;

static const optimizer optimizers[] = {
    {{"optim.optimizer=adam"}, "exp_avg exp_avg_sq", "exp_avg exp_avg_sq"},
    {{"optim.optimizer=sgd", "optim.schedule=step"}, "", ""},
    {{"optim.optimizer=sgd", "optim.momentum=0.9", "optim.nesterov=on"},
     "momentum_buffer",
     "momentum_buffer"},
    {{"optim.optimizer=lion", "optim.schedule=wsd"}, "exp_avg", "exp_avg"},
    {{GROUPS, "optim.schedule=linear"}, "exp_avg", "momentum_buffer"},
};
enum { NOPTIMIZERS = sizeof optimizers / sizeof *optimizers };

static int nruns;

typedef struct result {
    char weights[LS_HASH_TEXT], states[LS_HASH_TEXT];
} result;

static void train(const char *run, int n, const char *const *sets, int nsets, bool resume) {
    bool unfinished = false;
    ls_error e = {0};
    ls_train_options o = {.config = "configs/tiny.yaml",
                          .sets = sets,
                          .nsets = nsets,
                          .nworkers = n,
                          .run = run,
                          .resume = resume};
    assert_ls_ok(ls_train(&o, &unfinished, &e), e);
}

/* Six steps on n threads; in two parts: it ends after three, and n + 1 workers continue. */
static result run_with(const optimizer *o, int n, const char *more, bool in_two_parts) {
    const char *sets[MOST_SETS] = {"log.every=1000",
                                   "train.steps=6",
                                   "optim.warmup=2",
                                   "train.eval_every=0",
                                   "parallel.transport=thread",
                                   more};
    char *run = ls_format("%s/run-%d", folder, nruns++), *path = NULL;
    int nsets = 6;
    for (int i = 0; i < 3 && o->sets[i]; i++) sets[nsets++] = o->sets[i];
    if (in_two_parts) {
        sets[nsets] = "train.steps=3";
        train(run, n, sets, nsets + 1, false);
    }
    train(run, n + in_two_parts, sets, nsets, in_two_parts);
    ls_error e = {0};
    ls_checkpoint_info i;
    result r;
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    assert_ls_ok(ls_checkpoint_verify(path, &i, &e), e);
    ls_hash_text(i.weights, r.weights);
    ls_hash_text(i.optimizer, r.states);
    free(path);
    free(run);
    return r;
}

static void assert_same(const optimizer *o, int n, const char *more, bool in_two_parts,
                        const result *want) {
    result got = run_with(o, n, more, in_two_parts);
    if (memcmp(&got, want, sizeof got) != 0)
        print_error("%s, %s: other bits with %d workers, %s\n", o->sets[0], o->sets[1], n, more);
    assert_string_equal(got.weights, want->weights);
    assert_string_equal(got.states, want->states);
}

static void test_same_bits(void **state) {
    (void)state;
    char weights[NOPTIMIZERS][LS_HASH_TEXT];
    for (int i = 0; i < NOPTIMIZERS; i++) {
        const optimizer *o = &optimizers[i];
        result one = run_with(o, 1, "parallel.zero=0", false);
        assert_same(o, 3, "parallel.zero=0", false, &one);
        assert_same(o, 2, "parallel.zero=1", false, &one);
        assert_same(o, 3, "parallel.zero=3", false, &one);
        assert_same(o, 2, "parallel.optimizer_state=file", false, &one);
        memcpy(weights[i], one.weights, sizeof one.weights);
        for (int k = 0; k < i; k++) assert_string_not_equal(weights[i], weights[k]);
    }
}

/* Schedules that end with train.steps are those of the new value after a resumption. */
static void test_resumed(void **state) {
    (void)state;
    for (int i = 0; i < NOPTIMIZERS; i++) {
        optimizer o = optimizers[i];
        for (int k = 0; k < 3; k++)
            if (o.sets[k] && strncmp(o.sets[k], "optim.schedule=", 15) == 0)
                o.sets[k] = "optim.schedule=constant";
        if (i == 0) o.sets[1] = "optim.schedule=constant";
        if (i == 2) o.sets[2] = "optim.schedule=constant"; /* without Nesterov */
        result whole = run_with(&o, 2, "parallel.zero=1", false);
        assert_same(&o, 2, "parallel.zero=1", true, &whole);
        assert_same(&o, 1, "parallel.zero=0", true, &whole);
    }
}

/* In 16 bits the masters are trained. */
static void test_masters(void **state) {
    (void)state;
    for (int i = 1; i < NOPTIMIZERS; i += 2) {
        const optimizer *o = &optimizers[i];
        result one = run_with(o, 1, "train.compute=bf16", false);
        assert_same(o, 3, "train.compute=bf16", false, &one);
    }
}

/* The parameter has these states in the file, and no others. */
static void check_states(const ls_safetensors *f, const char *name, const char *states) {
    static const char *const all[] = {"exp_avg", "exp_avg_sq", "momentum_buffer"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *tensor = ls_format("%s.%s", name, all[i]), *pattern = ls_format(" %s ", all[i]);
        char *list = ls_format(" %s ", states);
        assert_int_equal(ls_safetensors_find(f, tensor) != NULL, strstr(list, pattern) != NULL);
        free(tensor);
        free(pattern);
        free(list);
    }
}

static void test_states(void **state) {
    (void)state;
    for (int i = 0; i < NOPTIMIZERS; i++) {
        const optimizer *o = &optimizers[i];
        run_with(o, 2, "parallel.zero=1", false);
        char *path =
            ls_format("%s/run-%d/checkpoints/step-6/optimizer.safetensors", folder, nruns - 1);
        ls_safetensors f;
        ls_error e = {0};
        assert_ls_ok(ls_safetensors_open(path, &f, &e), e);
        check_states(&f, "wte.weight", o->table);
        check_states(&f, "h.0.ln_1.bias", o->bias);
        ls_safetensors_close(&f);
        free(path);
    }
}

/* A run does not continue with another optimizer. */
static void test_refused(void **state) {
    (void)state;
    const char *const sets[] = {"train.steps=2", "optim.warmup=0", "optim.optimizer=lion",
                                "parallel.transport=thread", "log.every=1000"};
    const char *other[] = {"train.steps=4", "optim.warmup=0", "optim.optimizer=sgd",
                           "parallel.transport=thread", "log.every=1000"};
    char *run = ls_format("%s/refused", folder);
    bool unfinished = false;
    ls_error e = {0};
    train(run, 1, sets, 5, false);
    ls_train_options o = {.config = "configs/tiny.yaml", .sets = other, .nsets = 5, .nworkers = 1};
    o.run = run;
    o.resume = true;
    assert_ls_fails(ls_train(&o, &unfinished, &e), LS_EINVAL,
                    "optim.optimizer is \"sgd\", but the run began with \"lion\"", e);
    other[2] = "optim.groups=[{match: \"nothing\"}]";
    o.run = "/nowhere";
    o.resume = false;
    assert_ls_fails(ls_train(&o, &unfinished, &e), LS_EINVAL, "'nothing' matches no parameter", e);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_masters),   cmocka_unit_test(test_states),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
