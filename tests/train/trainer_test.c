/* trainer_test.c - training in a loop of the program's own: bits, samples, checkpoints, errors. */
#include "lockstep/train.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"

enum { COUNT = 50, STEPS = 12, MOST = 5 };

static char folder[64];

static int folder_make(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/lockstep-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state) {
    (void)state;
    return ls_file_remove_tree(folder, NULL);
}

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
    uint64_t hash;
    bool resume, leaves; /* leaves: a trainer is closed with samples that nobody has written */
    int taken[COUNT];    /* how often each number was computed */
    double loss[STEPS + 1];
} run;

static void fill(ls_sample *s, uint64_t number) {
    float *x = ls_sample_field(s, "x");
    int32_t *label = ls_sample_field(s, "label");
    for (int i = 0; i < 3; i++) x[i] = (float)((number * (uint64_t)(7 + i)) % 11) / 5 - 1;
    *label = (int32_t)(number % 4);
}

static ls_status loop(ls_trainer *t, run *r, ls_error *e) {
    ls_trainer_result out;
    while (ls_trainer_steps(t) < r->steps) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++) {
            uint64_t number = ls_trainer_number(t, i);
            assert_true(number < COUNT);
            __atomic_fetch_add(&r->taken[number], 1, __ATOMIC_RELAXED);
            fill(ls_trainer_sample(t, i), number);
        }
        LS_TRY(ls_trainer_step(t, &out, e));
        assert_int_equal(out.step, ls_trainer_steps(t));
        if (ls_trainer_rank(t) == 0) r->loss[out.step] = out.loss;
        if (out.step == r->checkpoint) LS_TRY(ls_trainer_checkpoint(t, e));
    }
    return r->file ? ls_trainer_save(t, r->file, e) : LS_OK;
}

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    run *r = arg;
    const char *sets[16] = {"train.batch=12", "train.virtual_workers=6", "optim.warmup=0",
                            "optim.lr=0.05", "train.steps=12"};
    for (int i = 0; r->sets[i]; i++) sets[5 + i] = r->sets[i];
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

static void test_errors(void **state) {
    (void)state;
    ls_error e = {0};
    ls_trainer *t = NULL;
    run left = {.leaves = true}; /* closes while the loader waits for samples */
    assert_ls_ok(ls_run_threads(3, work, &left, &e), e);
    run many = {.steps = 1};
    assert_int_equal(ls_run_threads(7, work, &many, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "7 workers for train.virtual_workers 6"));
    run unknown = {.steps = 1, .sets = {"mine.depth=3"}};
    assert_int_equal(work(NULL, &unknown, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "unknown key 'mine.depth'"));
    run sequential = {.steps = 1, .sets = {"parallel.executor=sequential"}};
    assert_int_equal(work(NULL, &sequential, &e), LS_EINVAL);
    run no_directory = {.steps = 1, .checkpoint = 1};
    assert_int_equal(work(NULL, &no_directory, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "no run directory"));
    run high = {.steps = STEPS, .sets = {"optim.lr=1000", "optim.clip=0", "optim.optimizer=sgd"}};
    assert_int_equal(work(NULL, &high, &e), LS_EINVAL);
    if (!strstr(e.msg, "lower optim.lr")) fail_msg("%s", e.msg);
    assert_int_equal(ls_trainer_open(&(ls_trainer_options){.program = &program}, &t, &e),
                     LS_EINVAL);
    assert_non_null(strstr(e.msg, "count of samples is 0"));
    assert_int_equal(ls_trainer_open(&(ls_trainer_options){.count = 5}, &t, &e), LS_EINVAL);
    ls_trainer_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_resume),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
