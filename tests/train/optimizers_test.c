/* optimizers_test.c - every optimizer, groups of parameters, the average of weights: the same bits
 * for any number of workers, any sharding and after a resumption; checkpoints have the optimizer's
 * states. */
/* ctest: busy seconds=15 */
/* ctest: long-asan: optim/whole and train/recorded_bits run the same code */
#include <math.h>
#include <string.h>

#include "train/tiny_run.h"
#include "weights/safetensors.h"

enum { OWN_SETS = 6, MOST_SETS = 16 };

static const char GROUPS[] = "optim.groups=[{match: \"*.bias\", optimizer: sgd, momentum: 0.5}, "
                             "{match: \"wte.*\", optimizer: "
                             "lion, lr_scale: 0.25}, {match: \"h.1.*\", weight_decay: 0}]";

/* The settings of a run, and the states of two parameters in its checkpoints. */
typedef struct optimizer {
    const char *sets[OWN_SETS];
    const char *table, *bias; /* of wte.weight and of h.0.ln_1.bias, e.g. "exp_avg exp_avg_sq" */
} optimizer;

static const optimizer optimizers[] = {
    {{"optim.optimizer=adam"}, "exp_avg exp_avg_sq", "exp_avg exp_avg_sq"},
    {{"optim.optimizer=sgd", "optim.schedule=step"}, "", ""},
    {{"optim.optimizer=sgd", "optim.momentum=0.9", "optim.nesterov=on"},
     "momentum_buffer",
     "momentum_buffer"},
    {{"optim.optimizer=lion", "optim.schedule=wsd"}, "exp_avg", "exp_avg"},
    {{GROUPS, "optim.schedule=linear", "optim.ema=0.75"}, "exp_avg ema", "momentum_buffer ema"},
    {{"optim.optimizer=sgd", "optim.ema=0.75"}, "ema", "ema"},
    {{"optim.optimizer=adagrad"}, "sum", "sum"},
    {{"optim.optimizer=schedule-free", "optim.schedule=constant"},
     "z exp_avg_sq y",
     "z exp_avg_sq y"},
    {{"optim.optimizer=lars", "parallel.bucket_mb=0.02"}, "momentum_buffer", "momentum_buffer"},
    {{"optim.optimizer=lamb", "parallel.bucket_mb=0.02"},
     "exp_avg exp_avg_sq",
     "exp_avg exp_avg_sq"},
    {{"optim.optimizer=adafactor", "parallel.bucket_mb=0.02"}, "row_var col_var", "variance"},
    {{"optim.optimizer=muon", "parallel.bucket_mb=0.02"},
     "exp_avg exp_avg_sq",
     "exp_avg exp_avg_sq"},
    {{"optim.optimizer=soap", "parallel.bucket_mb=0.02"},
     "exp_avg exp_avg_sq",
     "exp_avg exp_avg_sq"},
    {{"optim.optimizer=rowwise_adagrad", "parallel.bucket_mb=0.02"}, "sum", "sum"},
};
enum { SCHEDULE_FREE = 7 }; /* its number */
enum { NOPTIMIZERS = sizeof optimizers / sizeof *optimizers };

/* Six steps on n threads; in two parts: it ends after three, and n + 1 workers continue. */
static result run_with(const optimizer *o, int n, const char *more, bool in_two_parts) {
    const char *sets[MOST_SETS] = {"log.every=1000",
                                   "train.steps=6",
                                   "optim.warmup=2",
                                   "train.eval_every=0",
                                   "parallel.transport=thread",
                                   more};
    int nsets = 6;
    for (int i = 0; i < OWN_SETS && o->sets[i]; i++) sets[nsets++] = o->sets[i];
    return train_parts(n, sets, nsets, in_two_parts ? 3 : 0);
}

static void assert_same(const optimizer *o, int n, const char *more, bool in_two_parts,
                        const result *want) {
    result got = run_with(o, n, more, in_two_parts);
    if (memcmp(&got, want, sizeof got) != 0)
        print_error("%s, %s: other bits with %d workers, %s\n", o->sets[0], o->sets[1], n, more);
    same(got, *want);
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
        for (int k = 0; k < OWN_SETS; k++)
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
    for (int i = 1; i < NOPTIMIZERS; i++) {
        const optimizer *o = &optimizers[i];
        result one = run_with(o, 1, "train.compute=bf16", false);
        assert_same(o, 3, "train.compute=bf16", false, &one);
    }
}

/* The parameter has these states in the file, and no others. */
static void check_states(const ls_safetensors *f, const char *name, const char *states) {
    static const char *const all[] = {"exp_avg", "exp_avg_sq", "momentum_buffer", "ema", "sum",
                                      "z",       "y"};
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
        if (strcmp(o->sets[0], "optim.optimizer=muon") == 0)
            check_states(&f, "h.0.attn.c_attn.weight", "momentum_buffer");
        if (strcmp(o->sets[0], "optim.optimizer=soap") == 0)
            check_states(&f, "h.0.attn.c_attn.weight", "exp_avg exp_avg_sq GG Q");
        ls_safetensors_close(&f);
        free(path);
    }
}

/* The tensors of a step's checkpoint of the latest run. */
static void open_tensors(int step, const char *name, ls_safetensors *f_p) {
    ls_error e = {0};
    char *path = ls_format("%s/run-%d/checkpoints/step-%d/%s", folder, nruns - 1, step, name);
    assert_ls_ok(ls_safetensors_open(path, f_p, &e), e);
    free(path);
}

/* Checkpoints of schedule-free have the average x as the weight, and y = 0.1 z + 0.9 x beside
 * it. */
static void test_schedule_free(void **state) {
    (void)state;
    ls_safetensors weights, states;
    double most = 0;
    run_with(&optimizers[SCHEDULE_FREE], 2, "parallel.zero=1", false);
    open_tensors(6, "model.safetensors", &weights);
    open_tensors(6, "optimizer.safetensors", &states);
    const float *x = ls_safetensors_find(&weights, "wte.weight")->data;
    const float *y = ls_safetensors_find(&states, "wte.weight.y")->data;
    const ls_tensor *z = ls_safetensors_find(&states, "wte.weight.z");
    for (size_t i = 0; i < z->count; i++) {
        double zi = (double)((const float *)z->data)[i];
        assert_true(fabs((double)y[i] - (0.1 * zi + 0.9 * (double)x[i])) < 1e-6);
        most = fmax(most, fabs((double)y[i] - (double)x[i]));
    }
    assert_true(most > 1e-5);
    ls_safetensors_close(&weights);
    ls_safetensors_close(&states);
}

/* ---- the average of the weights ---- */

/* Includes the weights after a step, if it changed them. */
static bool include(int step, double *mean, size_t n, bool first) {
    ls_safetensors now, before;
    bool changed = step == 1;
    open_tensors(step, "model.safetensors", &now);
    if (step > 1) {
        open_tensors(step - 1, "model.safetensors", &before);
        for (size_t i = 0; i < now.n; i++)
            changed = changed || memcmp(now.tensors[i].data, before.tensors[i].data,
                                        now.tensors[i].count * sizeof(float)) != 0;
        ls_safetensors_close(&before);
    }
    size_t at = 0;
    for (size_t i = 0; changed && i < now.n; i++)
        for (size_t k = 0; k < now.tensors[i].count; k++, at++) {
            double x = (double)((const float *)now.tensors[i].data)[k];
            mean[at] = first ? x : 0.75 * mean[at] + 0.25 * x;
        }
    assert_true(!changed || at == n);
    ls_safetensors_close(&now);
    return changed;
}

/* Compares the average of the last checkpoint with a loop in double precision over the weights of
 * all checkpoints; `skipped` steps are skipped. */
static void check_average(const optimizer *o, const char *more, int skipped) {
    enum { STEPS = 6 };
    run_with(o, 2, more, false);
    ls_safetensors last, states;
    size_t n = 0, at = 0;
    int included = 0;
    open_tensors(STEPS, "model.safetensors", &last);
    open_tensors(STEPS, "optimizer.safetensors", &states);
    for (size_t i = 0; i < last.n; i++) n += last.tensors[i].count;
    double *mean = LS_NEW_ARRAY(double, n);
    for (int step = skipped ? 2 : 1; step <= STEPS; step++) /* the first one is skipped */
        included += include(step, mean, n, included == 0);
    assert_int_equal(included, STEPS - skipped);
    for (size_t i = 0; i < last.n; i++) {
        char *name = ls_format("%s.ema", last.tensors[i].name);
        const ls_tensor *t = ls_safetensors_find(&states, name);
        assert_non_null(t);
        for (size_t k = 0; k < t->count; k++, at++)
            assert_true(fabs((double)((const float *)t->data)[k] - mean[at]) <=
                        1e-6 * fabs(mean[at]) + 1e-8);
        free(name);
    }
    free(mean);
    ls_safetensors_close(&last);
    ls_safetensors_close(&states);
}

static void test_average(void **state) {
    (void)state;
    const optimizer o = {{"optim.ema=0.75", "checkpoint.every=1", "checkpoint.keep=10"}, "", ""};
    check_average(&o, "parallel.zero=1", 0);
    check_average(&o, "train.compute=bf16", 0);
    const optimizer overflows = {{"optim.ema=0.75", "checkpoint.every=1", "checkpoint.keep=10",
                                  "train.compute=f16", "optim.loss_scale=1e6",
                                  "optim.loss_scale_hysteresis=1"},
                                 "",
                                 ""};
    check_average(&overflows, "parallel.zero=1", 3);
}

/* The line of the last evaluation in the latest run's metrics; free() it. */
static char *last_evaluation(void) {
    ls_error e = {0};
    ls_buf text = {0};
    char *path = ls_format("%s/run-%d/metrics.jsonl", folder, nruns - 1);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    ls_buf_append(&text, "", 1);
    char *line = strstr(text.data, "\"val_loss\"");
    assert_non_null(line);
    line = ls_strdup(line);
    ls_buf_free(&text);
    free(path);
    return line;
}

/* Evaluations of the average have the same bits for any layout, and other ones than those of the
 * last weights. */
static void test_evaluated(void **state) {
    (void)state;
    static const char *const layouts[] = {"parallel.zero=1", "parallel.zero=3",
                                          "parallel.optimizer_state=file",
                                          "parallel.executor=sequential", "parallel.zero=0"};
    optimizer o = {{"optim.ema=0.75", "train.eval_weights=ema"}, "", ""};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        o.sets[2] = bf16 ? "train.compute=bf16" : NULL;
        run_with(&o, 1, "parallel.zero=0", false);
        char *want = last_evaluation();
        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
            run_with(&o, 3, layouts[i], false);
            char *got = last_evaluation();
            assert_string_equal(got, want);
            free(got);
        }
        o.sets[1] = "train.eval_weights=last";
        run_with(&o, 2, "parallel.zero=1", false);
        char *last = last_evaluation();
        assert_string_not_equal(last, want);
        o.sets[1] = "train.eval_weights=ema";
        free(last);
        free(want);
    }
}

/* A run does not continue with another optimizer. */
static void test_refused(void **state) {
    (void)state;
    const char *const sets[] = {"train.steps=2", "optim.warmup=0", "optim.optimizer=lion",
                                "parallel.transport=thread", "log.every=1000"};
    const char *other[] = {"train.steps=4",       "optim.warmup=0",
                           "optim.optimizer=sgd", "parallel.transport=thread",
                           "log.every=1000",      "model.context=8"};
    char *run = ls_format("%s/refused", folder);
    bool unfinished = false;
    ls_error e = {0};
    train_short(run, 1, sets, 5);
    ls_train_options o = {.config = "configs/tiny.yaml", .sets = other, .nsets = 6, .nworkers = 1};
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
        cmocka_unit_test(test_average),   cmocka_unit_test(test_evaluated),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_schedule_free),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
