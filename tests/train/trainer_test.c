/* trainer_test.c - training in a loop of the program's own: bits, samples, checkpoints, errors. */
#include "lockstep/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "report/compare.h"
#include "report/ledger.h"
#include "report/run_status.h"
#include "test.h"
#include "weights/safetensors.h"

enum { COUNT = 50, STEPS = 12, MOST = 5 };

static void build(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = ls_relu(m, ls_linear(m, x, .name = "first", .out = ls_key_int(k, "width")));
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = 4), label, LS_DEFAULTS);
}

static const ls_key_spec keys[] = {{.name = "width", .type = LS_KEY_INT, .usual = "16"}, {0}};
static const ls_program program = {.name = "mine", .keys = keys, .build = build};

/* What a run is asked to do, and what its workers saw. */
typedef struct run {
    const char *sets[8]; /* besides those of all runs */
    const char *dir, *file;
    int64_t steps, checkpoint; /* checkpoint: after this step; 0: none */
    int64_t broken;            /* in the step after this one samples are no numbers; 0: in none */
    uint64_t hash;
    bool resume, leaves; /* leaves: a trainer is closed with samples that nobody has written */
    bool differs;        /* worker 1 has another seed */
    bool evaluates;      /* after step 5, where a sample can't be read, and after the last one */
    ls_trainer_score score;
    int taken[COUNT]; /* how often each number was computed */
    double loss[STEPS + 1];
} run;

static void fill(ls_sample *s, uint64_t number) {
    float *x = ls_sample_field(s, "x");
    int32_t *label = ls_sample_field(s, "label");
    for (int i = 0; i < 3; i++) x[i] = (float)((number * (uint64_t)(7 + i)) % 11) / 5 - 1;
    *label = (int32_t)(number % 4);
}

/* ---- samples that are not trained on ---- */

enum { VALIDATION = 37, DAMAGED = 29 };

static ls_status read_sample(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    const bool *damaged = own;
    fill(s, COUNT + 3 * i);
    if (!*damaged || i != DAMAGED) return LS_OK;
    snprintf(e->msg, sizeof e->msg, "line 30 has no label");
    return LS_EINVAL;
}

static ls_status evaluate(ls_trainer *t, bool damaged, ls_trainer_score *out, ls_error *e) {
    const ls_own_source samples = {.count = VALIDATION, .read = read_sample, .own = &damaged};
    return ls_trainer_evaluate(t, &samples, out, e);
}

/* One worker names the damaged sample; all of them fail, and go on. */
static void evaluate_damaged(ls_trainer *t) {
    ls_trainer_score unused;
    ls_error e = {0};
    assert_int_equal(evaluate(t, true, &unused, &e), LS_EINVAL);
    if (e.msg[0])
        assert_string_equal(e.msg, "sample 29 of the program's data: line 30 has no label");
}

/* ---- workers ---- */

static ls_status loop(ls_trainer *t, run *r, ls_error *e) {
    ls_trainer_result out;
    assert_int_equal(ls_trainer_end(t), STEPS);
    while (ls_trainer_steps(t) < r->steps) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++) {
            uint64_t number = ls_trainer_number(t, i);
            assert_true(number < COUNT);
            __atomic_fetch_add(&r->taken[number], 1, __ATOMIC_RELAXED);
            fill(ls_trainer_sample(t, i), number);
            if (r->broken && ls_trainer_steps(t) == r->broken)
                *(float *)ls_sample_field(ls_trainer_sample(t, i), "x") = NAN;
        }
        LS_TRY(ls_trainer_step(t, &out, e));
        assert_int_equal(out.step, ls_trainer_steps(t));
        if (ls_trainer_rank(t) == 0) r->loss[out.step] = out.loss;
        if (r->evaluates && out.step == 5) evaluate_damaged(t);
        if (out.step == r->checkpoint) LS_TRY(ls_trainer_checkpoint(t, e));
    }
    ls_trainer_score score = {0};
    if (r->evaluates) LS_TRY(evaluate(t, false, &score, e));
    if (ls_trainer_rank(t) == 0) r->score = score;
    return r->file ? ls_trainer_save(t, r->file, e) : LS_OK;
}

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    run *r = arg;
    const char *sets[16] = {"train.batch=12", "train.virtual_workers=6", "optim.warmup=0",
                            "optim.lr=0.05", "train.steps=12"};
    for (int i = 0; r->sets[i]; i++) sets[5 + i] = r->sets[i];
    if (r->differs && ls_group_rank(g) == 1) sets[5] = "train.seed=9";
    ls_trainer_options o = {.program = &program,
                            .sets = sets,
                            .count = COUNT,
                            .hash = r->hash,
                            .group = g,
                            .run = r->dir,
                            .resume = r->resume};
    ls_trainer *t = NULL;
    LS_TRY(ls_trainer_open(&o, &t, e));
    ls_status s = r->leaves ? LS_OK : loop(t, r, e);
    ls_trainer_close(t);
    return s;
}

static char *path_of(const char *name) { return ls_format("%s/%s", folder, name); }

/* Trains, and returns the bytes of the weights' file. */
static ls_buf weights_of(run *r, int nworkers) {
    ls_error e = {0};
    ls_buf b = {0};
    char *file = path_of("weights");
    r->file = file;
    assert_ls_ok(ls_run_threads(nworkers, work, r, &e), e);
    assert_ls_ok(ls_file_read(file, SIZE_MAX, &b, &e), e);
    free(file);
    return b;
}

static void expect_same(ls_buf *a, const ls_buf *b) {
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, b->len);
    ls_buf_free(a);
}

/* The same bits for any number of workers and layout; an epoch takes each sample once. */
static void test_bits(void **state) {
    (void)state;
    run one = {.steps = STEPS};
    ls_buf want = weights_of(&one, 1), got;
    assert_true(one.loss[STEPS] < one.loss[1]);
    int most = 0, all = 0;
    for (int i = 0; i < COUNT; i++) {
        all += one.taken[i];
        if (one.taken[i] > most) most = one.taken[i];
    }
    assert_int_equal(all, 2 * COUNT + 2 * 12); /* epochs of 5 steps, the last one of 2 samples */
    assert_int_equal(most, 3);
    run epochs = {.steps = STEPS, .sets = {"train.epochs=2.4"}}; /* as many steps */
    got = weights_of(&epochs, 2);
    expect_same(&got, &want);
    for (int n = 2; n <= MOST; n++) {
        run r = {.steps = STEPS};
        got = weights_of(&r, n);
        expect_same(&got, &want);
        assert_memory_equal(r.taken, one.taken, sizeof r.taken);
        assert_memory_equal(r.loss, one.loss, sizeof r.loss);
    }
    run sharded = {.steps = STEPS, .sets = {"parallel.zero=3", "train.micro_batch=1"}};
    got = weights_of(&sharded, 3);
    expect_same(&got, &want);
    run alone = {.steps = STEPS}; /* without a group: this process is the only worker */
    ls_error e = {0};
    char *file = path_of("weights");
    alone.file = file;
    assert_ls_ok(work(NULL, &alone, &e), e);
    assert_ls_ok(ls_file_read(file, SIZE_MAX, &got, &e), e);
    expect_same(&got, &want);
    free(file);
    ls_buf_free(&want);
}

/* A run that continues from a checkpoint, with another number of workers, has the same bits. */
static void test_resume(void **state) {
    (void)state;
    ls_error e = {0};
    char *dir = path_of("run");
    run whole = {.steps = STEPS}, begun = {.steps = 7, .dir = dir, .checkpoint = 7, .hash = 3};
    ls_buf want = weights_of(&whole, 2);
    begun.resume = true; /* there is nothing yet */
    assert_ls_ok(ls_run_threads(3, work, &begun, &e), e);
    run rest = {.steps = STEPS, .dir = dir, .hash = 3};
    assert_int_equal(ls_run_threads(2, work, &rest, &e), LS_EINVAL);
    if (!strstr(e.msg, "has checkpoints; set the trainer's `resume`")) fail_msg("%s", e.msg);
    rest.resume = true;
    rest.hash = 4;
    assert_int_equal(ls_run_threads(2, work, &rest, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "is not the data that this run was trained with"));
    rest.hash = 3;
    rest.sets[0] = "mine.width=17";
    assert_int_equal(ls_run_threads(2, work, &rest, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "mine.width is 17, but the run began with 16"));
    rest.sets[0] = NULL;
    ls_buf got = weights_of(&rest, 2);
    expect_same(&got, &want);
    assert_true(rest.loss[7] == 0 && rest.loss[8] == whole.loss[8]);
    ls_buf_free(&want);
    free(dir);
}

/* Replaces `from` by `to`, which is as long, in the manifest of a run's checkpoint of step 7. */
static void edit_manifest(const char *dir, const char *from, const char *to) {
    ls_error e = {0};
    ls_buf b = {0};
    char *path = ls_format("%s/checkpoints/step-7/manifest.json", dir);
    assert_ls_ok(ls_file_read(path, 1 << 20, &b, &e), e);
    char *at = memmem(b.data, b.len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_ls_ok(ls_file_replace(path, b.data, b.len, &e), e);
    ls_buf_free(&b);
    free(path);
}

/* A run whose products have an order of summation that is not known does not continue; one of a
 * version that recorded no order does. */
static void test_order(void **state) {
    (void)state;
    ls_error e = {0};
    char *dir = path_of("order");
    run begun = {.steps = 7, .dir = dir, .checkpoint = 7, .sets = {"train.compute=bf16"}};
    assert_ls_ok(ls_run_threads(2, work, &begun, &e), e);
    run rest = {.steps = STEPS, .dir = dir, .resume = true, .sets = {"train.compute=bf16"}};
    edit_manifest(dir, "blocks32", "blocks64");
    assert_int_equal(ls_run_threads(2, work, &rest, &e), LS_EINVAL);
    if (!strstr(e.msg, "in the order 'blocks64'")) fail_msg("%s", e.msg);
    edit_manifest(dir, "\"sum\"", "\"old\"");
    assert_ls_ok(ls_run_threads(2, work, &rest, &e), e);
    free(dir);
}

/* The mean loss and the accuracy of the model with these weights, in double precision. */
static void reference(const char *file, double *loss_p, double *accuracy_p) {
    ls_safetensors w;
    ls_error e = {0};
    assert_ls_ok(ls_safetensors_open(file, &w, &e), e);
    const float *a = ls_safetensors_find(&w, "first.weight")->data,
                *b = ls_safetensors_find(&w, "first.bias")->data;
    const float *c = ls_safetensors_find(&w, "head.weight")->data,
                *d = ls_safetensors_find(&w, "head.bias")->data;
    double loss = 0;
    int right = 0;
    for (uint64_t i = 0; i < VALIDATION; i++) {
        uint64_t number = COUNT + 3 * i;
        double h[16], z[4], sum = 0;
        int best = 0;
        for (int k = 0; k < 16; k++) {
            h[k] = (double)b[k];
            for (int j = 0; j < 3; j++)
                h[k] +=
                    ((double)((number * (uint64_t)(7 + j)) % 11) / 5 - 1) * (double)a[j * 16 + k];
            if (h[k] < 0) h[k] = 0;
        }
        for (int k = 0; k < 4; k++) {
            z[k] = (double)d[k];
            for (int j = 0; j < 16; j++) z[k] += h[j] * (double)c[j * 4 + k];
            sum += exp(z[k]);
            if (z[k] > z[best]) best = k;
        }
        loss += log(sum) - z[number % 4];
        right += best == (int)(number % 4);
    }
    ls_safetensors_close(&w);
    *loss_p = loss / VALIDATION;
    *accuracy_p = (double)right / VALIDATION;
}

/* The score is that of the saved weights, to the same bits for any number of workers and layout,
 * and changes no weights. */
static void test_evaluation(void **state) {
    (void)state;
    char *file = path_of("weights");
    double loss = 0, accuracy = 0;
    run plain = {.steps = STEPS}, one = {.steps = STEPS, .evaluates = true};
    ls_buf want = weights_of(&plain, 1), got = weights_of(&one, 1);
    expect_same(&got, &want);
    reference(file, &loss, &accuracy);
    assert_true(fabs(one.score.loss - loss) < 1e-5);
    assert_int_equal(one.score.nmetrics, 1);
    assert_string_equal(one.score.metrics[0].name, "accuracy");
    assert_true(fabs(one.score.metrics[0].value - accuracy) < 1e-9);
    for (int n = 2; n <= MOST; n++) {
        run r = {.steps = STEPS, .evaluates = true};
        if (n == 3) r.sets[0] = "parallel.zero=3";
        if (n == 4) r.sets[0] = "train.micro_batch=1";
        got = weights_of(&r, n);
        expect_same(&got, &want);
        assert_memory_equal(&r.score.loss, &one.score.loss, sizeof r.score.loss);
        assert_true(r.score.metrics[0].value == one.score.metrics[0].value);
    }
    double means[2];
    for (int i = 0; i < 2; i++) { /* the average of the weights */
        run r = {
            .steps = STEPS, .evaluates = true, .sets = {"optim.ema=0.9", "train.eval_weights=ema"}};
        got = weights_of(&r, 1 + 2 * i);
        expect_same(&got, &want);
        means[i] = r.score.loss;
    }
    assert_true(means[0] == means[1] && means[0] != one.score.loss);
    ls_buf_free(&want);
    free(file);
}

/* Frozen parameters: without a run directory in memory, else in its file; in 16 bits rounded. */
static void test_frozen(void **state) {
    (void)state;
    static const char FREEZE[] = "train.freeze=[first.*]";
    static const char *const types[] = {"train.compute=f32", "train.compute=bf16"};
    ls_error e = {0};
    for (int i = 0; i < 2; i++) {
        char *dir = path_of(i ? "frozen-bf16" : "frozen-f32");
        run one = {.steps = STEPS, .sets = {FREEZE, types[i]}};
        run all = {.steps = STEPS, .sets = {types[i]}};
        ls_buf want = weights_of(&one, 1), got = weights_of(&all, 1);
        assert_true(got.len == want.len && memcmp(got.data, want.data, got.len) != 0);
        ls_buf_free(&got);
        run more = {.steps = STEPS, .sets = {FREEZE, types[i], "parallel.zero=3"}};
        got = weights_of(&more, 3);
        expect_same(&got, &want);
        run begun = {.steps = 7, .dir = dir, .checkpoint = 7, .resume = true};
        begun.sets[0] = FREEZE;
        begun.sets[1] = types[i];
        assert_ls_ok(ls_run_threads(3, work, &begun, &e), e);
        char *file = ls_format("%s/frozen.safetensors", dir);
        if (i) assert_int_equal(unlink(file), 0); /* it is restored */
        run rest = begun;
        rest.steps = STEPS;
        rest.checkpoint = STEPS;
        ls_buf saved = weights_of(&rest, 2);
        expect_same(&saved, &want);
        assert_true(ls_file_exists(file));
        free(file), free(dir);
        ls_buf_free(&want);
    }
}

static void test_errors(void **state) {
    (void)state;
    ls_error e = {0};
    ls_trainer *t = NULL;
    run left = {.leaves = true}; /* closes while the loader waits for samples */
    assert_ls_ok(ls_run_threads(3, work, &left, &e), e);
    run many = {.steps = 1};
    assert_int_equal(ls_run_threads(7, work, &many, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "7 workers for train.virtual_workers 6"));
    run differs = {.steps = 1, .differs = true};
    assert_int_equal(ls_run_threads(3, work, &differs, &e), LS_EINVAL);
    assert_string_equal(e.msg, "worker 1 has train.seed 9, worker 0 has 1; these must match");
    run large = {.steps = 1, .sets = {"parallel.memory_limit_mb=1"}};
    assert_int_equal(ls_run_threads(3, work, &large, &e), LS_ENOMEM);
    assert_non_null(strstr(e.msg, ", parallel.memory_limit_mb is 1, and no parallel.zero, "));
    run unknown = {.steps = 1, .sets = {"mine.depth=3"}};
    assert_int_equal(work(NULL, &unknown, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "sets: unknown key 'mine.depth'"));
    run sequential = {.steps = 1, .sets = {"parallel.executor=sequential"}};
    assert_int_equal(work(NULL, &sequential, &e), LS_EINVAL);
    run noise = {.steps = 1, .sets = {"train.noise_scale=on"}};
    assert_int_equal(work(NULL, &noise, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "not in a program with a loop of its own"));
    run mesh = {.steps = 1, .sets = {"parallel.mesh=auto"}};
    assert_int_equal(work(NULL, &mesh, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "parallel.mesh auto is decided by `lockstep train`"));
    run sparse = {.steps = 1, .sets = {"model.sparse=on"}};
    assert_int_equal(work(NULL, &sparse, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "model.sparse acts only with"));
    run no_directory = {.steps = 1, .checkpoint = 1};
    assert_int_equal(work(NULL, &no_directory, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "no run directory"));
    run high = {.steps = STEPS, .sets = {"optim.lr=1000", "optim.clip=0", "optim.optimizer=sgd"}};
    assert_int_equal(work(NULL, &high, &e), LS_EINVAL);
    if (!strstr(e.msg, "lower optim.lr")) fail_msg("%s", e.msg);
    assert_int_equal(ls_trainer_open(&(ls_trainer_options){.program = &program}, &t, &e),
                     LS_EINVAL);
    assert_non_null(strstr(e.msg, "count of samples is 0"));
    ls_trainer_options endless = {.program = &program, .count = UINT64_MAX};
    assert_int_equal(ls_trainer_open(&endless, &t, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "it must be below 2^62"));
    ls_trainer_options unnamed = {.program = &program, .count = 5, .run = ""};
    assert_int_equal(ls_trainer_open(&unnamed, &t, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "run is ''"));
    assert_null(ls_sample_field(NULL, "x"));
    assert_int_equal(ls_trainer_open(&(ls_trainer_options){.count = 5}, &t, &e), LS_EINVAL);
    assert_ls_ok(ls_trainer_open(&(ls_trainer_options){.program = &program, .count = 50}, &t, &e),
                 e);
    assert_int_equal(ls_trainer_evaluate(t, &(ls_own_source){.count = 1}, NULL, &e), LS_EINVAL);
    ls_trainer_close(t);
    ls_trainer_close(NULL);
}

/* ---- the run directory ---- */

/* Lines of metrics.jsonl that contain `what`. */
static int lines_with(const char *dir, const char *what) {
    char *path = ls_format("%s/metrics.jsonl", dir);
    ls_buf b = {0};
    ls_error e = {0};
    int n = 0;
    assert_ls_ok(ls_file_read(path, SIZE_MAX, &b, &e), e);
    ls_buf_append(&b, "", 1);
    for (const char *at = b.data; (at = strstr(at, what)); at++) n++;
    ls_buf_free(&b);
    free(path);
    return n;
}

/* Runs are compared as those of `lockstep train`: the same lines for any number of workers. */
static void test_compare(void **state) {
    (void)state;
    ls_error e = {0};
    ls_comparison c;
    char *dirs[2] = {path_of("first"), path_of("second")};
    for (int i = 0; i < 2; i++) {
        run r = {.steps = STEPS, .dir = dirs[i], .checkpoint = STEPS, .hash = 3};
        r.evaluates = true;
        assert_ls_ok(ls_run_threads(2 + i, work, &r, &e), e);
        assert_true(ls_file_exists_in(dirs[i], "config.yaml") &&
                    ls_file_exists_in(dirs[i], "data.json"));
        assert_int_equal(lines_with(dirs[i], "\"grad_norm\""), STEPS);
        assert_int_equal(lines_with(dirs[i], "\"val_accuracy\""), 1);
        assert_int_equal(lines_with(dirs[i], "\"data_wait_s\""), STEPS);
    }
    assert_ls_ok(ls_compare_runs((const char *const *)dirs, 2, "loss", &c, &e), e);
    assert_int_equal(c.runs[1].nlines, STEPS);
    assert_true(ls_compare_must_match(&c.runs[1]) && !ls_compare_parted(&c.runs[1]));
    assert_int_equal(c.runs[1].val_step, STEPS);
    assert_true(c.runs[0].workers[0] == 2 && c.runs[1].workers[1] == 3);
    ls_compare_free(&c);
    free(dirs[0]), free(dirs[1]);
}

/* Steps that are repeated have one line. A directory of something else is left alone. */
static void test_lines(void **state) {
    (void)state;
    ls_error e = {0};
    char *dir = path_of("lines"), *other = path_of("other"), *config = path_of("other/config.yaml");
    run begun = {.steps = 9, .dir = dir, .checkpoint = 7};
    assert_ls_ok(ls_run_threads(2, work, &begun, &e), e);
    assert_int_equal(lines_with(dir, "\"grad_norm\""), 9);
    run rest = {.steps = STEPS, .dir = dir, .resume = true};
    assert_ls_ok(ls_run_threads(3, work, &rest, &e), e);
    assert_int_equal(lines_with(dir, "\"grad_norm\""), STEPS);
    assert_int_equal(lines_with(dir, "\"step\": 8, \"epoch\""), 1);
    assert_ls_ok(ls_file_make_dirs(other, &e), e);
    assert_ls_ok(ls_file_replace(config, "mine", 4, &e), e);
    run foreign = {.steps = 1, .dir = other};
    assert_int_equal(ls_run_threads(2, work, &foreign, &e), LS_EINVAL);
    if (!strstr(e.msg, "is no run directory")) fail_msg("%s", e.msg);
    run again = {.steps = 1, .dir = path_of("again")}; /* a start that left no checkpoint */
    for (int i = 0; i < 2; i++) assert_ls_ok(ls_run_threads(2, work, &again, &e), e);
    assert_int_equal(lines_with(again.dir, "\"step\": 1, \"epoch\""), 1);
    free((void *)(uintptr_t)again.dir);
    free(dir), free(other), free(config);
}

/* Is the run's last start in its log, with the lines of steps? */
static void expect_log(const char *dir, int starts, const char *line) {
    char *path = ls_format("%s/log.txt", dir);
    ls_buf b = {0};
    ls_error e = {0};
    int n = 0;
    assert_ls_ok(ls_file_read(path, SIZE_MAX, &b, &e), e);
    ls_buf_append(&b, "", 1);
    for (const char *at = b.data; (at = strstr(at, "Z ---- started on ")); at++) n++;
    assert_int_equal(n, starts);
    if (!strstr(b.data, line)) fail_msg("%s is not in %s", line, b.data);
    ls_buf_free(&b);
    free(path);
}

static void expect_state(const char *dir, ls_run_state state, int64_t step) {
    ls_run_status s;
    ls_run_status_read(dir, &s);
    assert_string_equal(ls_run_state_name(s.state), ls_run_state_name(state));
    assert_int_equal(s.step, step);
    assert_int_equal(s.pid, getpid());
    assert_non_null(strstr(ls_json_text(ls_json_get(s.start, "command")), "trainer_test"));
    assert_true(s.mfu > 0 && s.mfu < 1);
    ls_run_status_free(&s);
}

/* `lockstep status` knows such runs: one that is stopped, complete with a checkpoint and without
 * one, diverged. The ledger is clean, although an epoch ends in the run: no samples are held
 * out. */
static void test_status(void **state) {
    (void)state;
    ls_error e = {0};
    ls_ledger l;
    char *dir = path_of("known"), *wild = path_of("wild");
    run begun = {.steps = 7, .dir = dir, .checkpoint = 7};
    assert_ls_ok(ls_run_threads(2, work, &begun, &e), e);
    expect_state(dir, LS_RUN_STOPPED, 7);
    run rest = {.steps = STEPS, .dir = dir, .resume = true, .evaluates = true};
    assert_ls_ok(ls_run_threads(3, work, &rest, &e), e);
    expect_state(dir, LS_RUN_COMPLETE, STEPS);
    expect_log(dir, 2, "Z step 12/12  loss ");
    expect_log(dir, 2, "Z step 12/12  val ");
    assert_ls_ok(ls_ledger_check(dir, &l, &e), e);
    assert_true(l.steps == STEPS && l.epochs > 0);
    ls_ledger_free(&l);
    run bad = {.steps = STEPS, .dir = wild, .broken = 5};
    assert_int_equal(ls_run_threads(2, work, &bad, &e), LS_EINVAL);
    assert_int_equal(lines_with(wild, "\"diverged\": true"), 1);
    assert_int_equal(lines_with(wild, "\"ended\""), 0);
    ls_run_status s;
    ls_run_status_read(wild, &s);
    assert_int_equal(s.state, LS_RUN_DIVERGED);
    assert_int_equal(s.step, 5);
    ls_run_status_free(&s);
    free(dir), free(wild);
}

/* Steps beyond train.steps go on with the last rate. A closed trainer refuses. */
static void test_beyond(void **state) {
    (void)state;
    static const char *const sets[] = {"train.batch=12",
                                       "train.virtual_workers=6",
                                       "optim.warmup=0",
                                       "optim.lr=0.05",
                                       "optim.min_lr=0.01",
                                       "train.steps=4",
                                       NULL};
    ls_error e = {0};
    ls_trainer *t = NULL;
    ls_trainer_result out = {0};
    const ls_trainer_options o = {.program = &program, .sets = sets, .count = COUNT};
    assert_ls_ok(ls_trainer_open(&o, &t, &e), e);
    for (int step = 1; step <= 7; step++) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
            fill(ls_trainer_sample(t, i), ls_trainer_number(t, i));
        assert_ls_ok(ls_trainer_step(t, step % 2 ? &out : NULL, NULL), e);
        if (step > 4 && step % 2) assert_true(fabs(out.lr - 0.01) < 1e-9);
    }
    assert_int_equal(ls_trainer_steps(t), 7);
    assert_null(ls_trainer_sample(t, -1));
    assert_null(ls_trainer_sample(t, ls_trainer_nsamples(t)));
    static const char none[] = "the path of the weights is empty, or NULL";
    assert_ls_fails(ls_trainer_save(t, NULL, &e), LS_EINVAL, none, e);
    assert_ls_fails(ls_trainer_save(t, "", &e), LS_EINVAL, none, e);
    char *weights = path_of("beyond.safetensors"), *mine = path_of("beyond.safetensors.part/mine");
    assert_ls_ok(ls_file_make_dirs(mine, &e), e);
    for (int i = 0; i < 2; i++) assert_ls_ok(ls_trainer_save(t, weights, &e), e);
    assert_true(ls_file_is_dir(mine)); /* what the user has beside the file is not touched */
    assert_ls_fails(ls_trainer_save(t, mine, &e), LS_EINVAL, "is a directory", e);
    free(weights), free(mine);
    ls_trainer_close(t);
    assert_ls_fails(ls_trainer_step(t, &out, &e), LS_EINVAL, "the trainer is closed", e);
    assert_int_equal(ls_trainer_save(t, "nowhere", NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_checkpoint(t, NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_evaluate(t, NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_nsamples(t), 0);
    assert_null(ls_trainer_sample(t, 0));
    ls_trainer_close(t);
    assert_int_equal(ls_trainer_open(&(ls_trainer_options){.count = 5}, &t, NULL), LS_EINVAL);
}

/* The path of a run is relative, and its text is not needed after the call. */
static void test_moved(void **state) {
    (void)state;
    char *here = getcwd(NULL, 0), *name = ls_strdup("moved"),
         *latest = path_of("moved/checkpoints");
    static const char *const sets[] = {"train.batch=12", "train.virtual_workers=6",
                                       "train.steps=12", "optim.warmup=0", NULL};
    ls_trainer_options o = {.program = &program, .sets = sets, .count = COUNT, .run = name};
    ls_trainer *t = NULL;
    ls_error e = {0};
    assert_int_equal(chdir(folder), 0);
    assert_ls_ok(ls_trainer_open(&o, &t, &e), e);
    memset(name, 'x', strlen(name));
    free(name);
    assert_int_equal(chdir(here), 0);
    for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
        fill(ls_trainer_sample(t, i), ls_trainer_number(t, i));
    assert_ls_ok(ls_trainer_step(t, NULL, &e), e);
    assert_ls_ok(ls_trainer_checkpoint(t, &e), e);
    ls_trainer_close(t);
    assert_true(ls_file_exists_in(latest, "step-1"));
    free(here), free(latest);
}

static void test_null(void **state) {
    (void)state;
    ls_error e = {0};
    ls_trainer *t = NULL;
    assert_ls_fails(ls_trainer_open(NULL, &t, &e), LS_EINVAL,
                    "ls_trainer_open(): options or t_p is NULL", e);
    assert_int_equal(ls_trainer_rank(NULL), 0);
    assert_int_equal(ls_trainer_steps(NULL), 0);
    assert_int_equal(ls_trainer_end(NULL), 0);
    assert_int_equal(ls_trainer_nsamples(NULL), 0);
    assert_int_equal(ls_trainer_number(NULL, 0), 0);
    assert_null(ls_trainer_sample(NULL, 0));
    assert_int_equal(ls_trainer_step(NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_evaluate(NULL, NULL, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_save(NULL, "nowhere", NULL), LS_EINVAL);
    assert_int_equal(ls_trainer_checkpoint(NULL, NULL), LS_EINVAL);
    ls_trainer_close(NULL);
}

static void classify(ls_model *m, const ls_keys *k) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(2)), *y = ls_input(m, "y", LS_I32, LS_SCALAR);
    (void)k;
    ls_cross_entropy(m, ls_linear(m, x, .out = 3), y, LS_DEFAULTS);
}

/* A label beyond the classes would be a place beyond the logits. */
static void test_label_beyond(void **state) {
    static const ls_program classifier = {.name = "classifier", .build = classify};
    static const char *const sets[] = {"train.batch=8", "train.steps=2", NULL};
    (void)state;
    ls_trainer *t = NULL;
    ls_error e = {0};
    ls_trainer_options o = {.program = &classifier, .sets = sets, .count = 20};
    assert_ls_ok(ls_trainer_open(&o, &t, &e), e);
    *(int32_t *)ls_sample_field(ls_trainer_sample(t, 1), "y") = -1;
    assert_ls_ok(ls_trainer_step(t, NULL, &e), e);
    *(int32_t *)ls_sample_field(ls_trainer_sample(t, 2), "y") = 3;
    assert_ls_fails(ls_trainer_step(t, NULL, &e), LS_EINVAL,
                    "field 'y' has 3; the model reads 0 to 2, and a negative number for none", e);
    *(int32_t *)ls_sample_field(ls_trainer_sample(t, 2), "y") = 0;
    static const char dead[] = "a step of the trainer has failed: it can only be closed";
    assert_ls_fails(ls_trainer_step(t, NULL, &e), LS_EINVAL, dead, e);
    assert_ls_fails(ls_trainer_save(t, "nowhere", &e), LS_EINVAL, dead, e);
    assert_ls_fails(ls_trainer_checkpoint(t, &e), LS_EINVAL, dead, e);
    ls_trainer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_label_beyond), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_resume),       cmocka_unit_test(test_order),
        cmocka_unit_test(test_evaluation),   cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_compare),      cmocka_unit_test(test_lines),
        cmocka_unit_test(test_status),       cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_null),
        cmocka_unit_test(test_moved)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
