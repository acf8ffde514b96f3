/* compress_test.c - training with compressed gradients: the same bits for any number of workers,
 * any sharding, and after a resumption; errors are part of checkpoints; what is refused. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: compress/codec and exec/encode run the same code */
#include <string.h>

#include "train/tiny_run.h"
#include "weights/safetensors.h"

enum { OWN_SETS = 3, MOST_SETS = 16 };

typedef struct kind {
    const char *sets[OWN_SETS];
} kind;

static const kind kinds[] = {
    {{"compress.kind=topk", "compress.ratio=0.05"}},
    {{"compress.kind=topk", "compress.feedback=ef21", "compress.warmup=2"}},
    {{"compress.kind=onebit", "compress.block=128", "compress.warmup=3"}},
    {{"compress.kind=int8", "compress.feedback=none"}},
    {{"compress.kind=int4", "compress.min_size=0"}},
    {{"compress.kind=powersgd", "compress.rank=2"}},
};
enum { NKINDS = sizeof kinds / sizeof *kinds, FACTORS = NKINDS - 1 };

static int first_sets(const char **sets) {
    static const char *const usual[] = {"log.every=1000", "train.steps=6", "optim.warmup=2",
                                        "train.eval_every=0", "optim.schedule=constant"};
    memcpy(sets, usual, sizeof usual);
    return sizeof usual / sizeof *usual;
}

/* Six steps on n workers; in two parts: it ends after three, and n + 1 workers continue. */
static result run_with(const kind *k, int n, const char *more, bool in_two_parts) {
    const char *sets[MOST_SETS];
    int nsets = first_sets(sets);
    for (int i = 0; k && i < OWN_SETS && k->sets[i]; i++) sets[nsets++] = k->sets[i];
    for (const char *at = more; *at; at += strlen(at) + 1) sets[nsets++] = at;
    return train_parts(n, sets, nsets, in_two_parts ? 3 : 0);
}

static void assert_same(const kind *k, int n, const char *more, bool in_two_parts,
                        const result *want) {
    result got = run_with(k, n, more, in_two_parts);
    if (memcmp(&got, want, sizeof got) != 0)
        print_error("%s: other bits with %d workers, %s\n", k->sets[0], n, more);
    same(got, *want);
}

#define THREADS "parallel.transport=thread\0"
#define ZERO    "parallel.zero=0\0"

static void test_same_bits(void **state) {
    (void)state;
    result none = run_with(NULL, 1, THREADS, false), one[NKINDS];
    for (int i = 0; i < NKINDS; i++) {
        const kind *k = &kinds[i];
        one[i] = run_with(k, 1, THREADS "parallel.zero=0\0", false);
        assert_string_not_equal(one[i].weights, none.weights);
        for (int other = 0; other < i; other++)
            assert_string_not_equal(one[i].weights, one[other].weights);
        static const struct {
            int n;
            const char *sets;
        } ways[] = {{3, THREADS "parallel.zero=0\0parallel.threads=2\0"},
                    {5, THREADS "parallel.zero=3\0parallel.bucket_mb=0.02\0"},
                    {2, "parallel.zero=1\0train.micro_batch=2\0"},
                    {5, THREADS "compress.send=codes\0parallel.zero=1\0parallel.threads=2\0"},
                    {3, "parallel.transport=tcp\0parallel.zero=0\0"}};
        for (int w = 0; w < 5; w++)
            if (runs_case(i + w, 3)) assert_same(k, ways[w].n, ways[w].sets, false, &one[i]);
    }
}

/* Every way in which workers can be laid out, for codes and for factors, which have no values. */
static void test_layouts(void **state) {
    enum { NVALUES = 2 };
    (void)state;
    static const char *const layouts[] = {
        THREADS "parallel.zero=2\0parallel.accumulate=early\0",
        "parallel.transport=tcp\0compress.send=values\0",
        "parallel.transport=tcp\0parallel.zero=0\0",
        "parallel.transport=tcp\0parallel.zero=1\0parallel.overlap=on\0",
        THREADS "parallel.zero=2\0parallel.shard_group=2\0",
        "parallel.executor=sequential\0parallel.zero=1\0",
        "parallel.executor=sequential\0parallel.zero=0\0compress.send=codes\0",
        "parallel.transport=tcp\0parallel.zero=3\0parallel.shard_group=2\0",
        "parallel.optimizer_state=file\0",
        "survival.backup_workers=2\0parallel.recompute=2\0",
        "survival.audit=2\0",
    };
    for (int other = 0; other < 2; other++) {
        const kind *k = &kinds[other ? FACTORS : 0];
        result one = run_with(k, 1, "", false);
        for (int i = other ? NVALUES : 0; i < (int)(sizeof layouts / sizeof *layouts); i++)
            if (runs_case(i + other, 2)) assert_same(k, 4, layouts[i], false, &one);
    }
}

/* A model of several chunks, in buckets of one chunk and more; with muon buckets begin where a
 * whole matrix does. */
static void test_chunks(void **state) {
    (void)state;
    static const kind large[] = {
        {{"compress.kind=topk", "model.width=96"}},
        {{"compress.kind=powersgd", "model.width=96", "compress.warmup=1"}},
        {{"compress.kind=int4", "model.width=96", "optim.optimizer=muon"}}};
    for (int i = 0; i < 3; i++) {
        result one = run_with(&large[i], 1, THREADS "parallel.zero=0\0train.steps=3\0", false);
        assert_same(&large[i], 3, "parallel.bucket_mb=0.3\0train.steps=3\0", false, &one);
        assert_same(&large[i], 2, "parallel.transport=tcp\0parallel.bucket_mb=0.6\0train.steps=3\0",
                    false, &one);
    }
}

static void test_resumed(void **state) {
    (void)state;
    static const int resumed[] = {0, 1, 2, FACTORS};
    for (int i = 0; i < 4; i++) {
        const kind *k = &kinds[resumed[i]];
        result whole = run_with(k, 1, THREADS, false);
        assert_same(k, 1, THREADS "parallel.zero=0\0", true, &whole);
        assert_same(k, 2, "parallel.zero=1\0", true, &whole);
        assert_same(k, 3, "parallel.transport=tcp\0parallel.zero=3\0", true, &whole);
    }
}

/* Lines of the newest run's metrics that have the text. */
static int nlines_with(const char *text) {
    ls_error e = {0};
    ls_buf file = {0};
    char *path = ls_format("%s/run-%d/metrics.jsonl", folder, nruns - 1);
    int n = 0;
    assert_ls_ok(ls_file_read(path, 1 << 20, &file, &e), e);
    for (const char *at = file.data; (at = strstr(at, text)); at++) n++;
    ls_buf_free(&file);
    free(path);
    return n;
}

/* A step that overflows leaves nothing behind: those after it are not skipped, on any worker. */
static void test_overflow(void **state) {
    (void)state;
    static const kind half[] = {{{"train.compute=f16", "compress.kind=int8"}},
                                {{"train.compute=f16", "compress.kind=powersgd"}}};
#define SCALE "train.reduce_dtype=f32\0optim.loss_scale=1e7\0optim.loss_scale_hysteresis=1\0"
    for (int i = 0; i < 2; i++) {
        result one = run_with(&half[i], 1, THREADS SCALE, false);
        assert_in_range(nlines_with("\"skipped\""), 1, 4);
        assert_same(&half[i], 3, THREADS ZERO SCALE, false, &one);
        assert_same(&half[i], 2, "parallel.transport=tcp\0" SCALE, false, &one);
    }
}

/* Optimizers that send signs of the momentum; their workers have the whole state. */
static void test_onebit(void **state) {
    (void)state;
    static const kind onebit[] = {{{"optim.optimizer=onebit_adam", "optim.freeze_step=2"}},
                                  {{"optim.optimizer=onebit_lamb", "optim.freeze_step=2"}}};
    for (int i = 0; i < 2; i++) {
        const kind *k = &onebit[i];
        result one = run_with(k, 1, ZERO, false);
        assert_same(k, 3, ZERO THREADS "parallel.threads=2\0", false, &one);
        assert_same(k, 5, ZERO "parallel.transport=tcp\0train.micro_batch=2\0", false, &one);
        assert_same(k, 2, ZERO "compress.send=codes\0parallel.bucket_mb=0.02\0", false, &one);
        assert_same(k, 2, ZERO, true, &one);
    }
    /* until the freeze it is adamw; then not */
    const kind early = {{"optim.optimizer=onebit_adam", "optim.freeze_step=6"}};
    result adamw = run_with(NULL, 1, ZERO, false), same = run_with(&early, 2, ZERO, false);
    result frozen = run_with(&onebit[0], 2, ZERO, false);
    assert_string_equal(same.weights, adamw.weights);
    assert_string_not_equal(frozen.weights, adamw.weights);
}

/* ---- what a checkpoint has ---- */

static void open_states(const char *run, ls_safetensors *f_p) {
    char *path = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    char *file = ls_format("%s/optimizer.safetensors", path);
    assert_ls_ok(ls_safetensors_open(file, f_p, &e), e);
    free(file);
    free(path);
}

static bool is_zero(const ls_safetensors *f, const char *name) {
    const ls_tensor *t = ls_safetensors_find(f, name);
    assert_non_null(t);
    bool zero = true;
    for (size_t i = 0; i < t->count; i++) zero = zero && ((const float *)t->data)[i] == 0;
    return zero;
}

/* Each virtual worker has errors of its own; small parameters have none. */
static void test_errors(void **state) {
    (void)state;
    ls_safetensors f;
    run_with(&kinds[0], 2, THREADS, false);
    char *run = ls_format("%s/run-%d", folder, nruns - 1);
    open_states(run, &f);
    assert_false(is_zero(&f, "wte.weight.error.0"));
    assert_false(is_zero(&f, "wte.weight.error.7"));
    assert_true(is_zero(&f, "h.0.ln_1.bias.error.3"));
    assert_null(ls_safetensors_find(&f, "wte.weight.error.8"));
    ls_safetensors_close(&f);
    free(run);
}

/* The second factors are the same for all virtual workers; what is no matrix has none. */
static void test_factors(void **state) {
    (void)state;
    ls_safetensors f;
    run_with(&kinds[FACTORS], 2, THREADS, false);
    char *run = ls_format("%s/run-%d", folder, nruns - 1);
    open_states(run, &f);
    const ls_tensor *first = ls_safetensors_find(&f, "wte.weight.factor.0");
    const ls_tensor *last = ls_safetensors_find(&f, "wte.weight.factor.7");
    assert_non_null(first);
    assert_non_null(last);
    assert_int_equal(first->dims[0], 2);
    assert_false(is_zero(&f, "wte.weight.factor.0"));
    assert_memory_equal(first->data, last->data, first->count * sizeof(float));
    assert_null(ls_safetensors_find(&f, "h.0.ln_1.bias.factor.0"));
    ls_safetensors_close(&f);
    free(run);
}

/* Before the first compressed step all is as without compression. */
static void test_warmup(void **state) {
    (void)state;
    ls_safetensors f;
    const kind late = {{"compress.kind=topk", "compress.warmup=6"}};
    result none = run_with(NULL, 1, THREADS, false), got = run_with(&late, 3, THREADS, false);
    assert_string_equal(got.weights, none.weights);
    char *run = ls_format("%s/run-%d", folder, nruns - 1);
    open_states(run, &f);
    assert_true(is_zero(&f, "wte.weight.error.0"));
    ls_safetensors_close(&f);
    free(run);
}

static void refused(const char *const *own, int n, const char *message) {
    const char *sets[MOST_SETS];
    int nsets = first_sets(sets);
    bool unfinished = false;
    ls_error e = {0};
    char *run = ls_format("%s/refused", folder);
    for (int i = 0; i < n; i++) sets[nsets++] = own[i];
    ls_train_options o = {
        .config = "configs/tiny.yaml", .sets = sets, .nsets = nsets, .nworkers = 2, .run = run};
    assert_int_equal(ls_train(&o, &unfinished, &e), LS_EINVAL);
    if (!strstr(e.msg, message)) fail_msg("%s", e.msg);
    free(run);
}

static void test_refused(void **state) {
    (void)state;
    refused((const char *[]){"compress.kind=topk", "parallel.reduce=fastest"}, 2,
            "does not go with parallel.reduce: fastest");
    refused((const char *[]){"compress.kind=topk", "train.compute=bf16"}, 2,
            "set train.reduce_dtype: f32");
    refused((const char *[]){"compress.kind=int8", "compress.block=100"}, 2, "multiple of 32");
    refused((const char *[]){"compress.warmup=3"}, 1,
            "compress.warmup acts only with compress.kind: other than none");
    refused((const char *[]){"compress.kind=powersgd", "compress.feedback=none"}, 2,
            "leave compress.feedback out");
    refused((const char *[]){"compress.kind=powersgd", "compress.feedback=ef21"}, 2,
            "compress.feedback: ef21");
    refused((const char *[]){"optim.optimizer=onebit_adam", "optim.freeze_step=2"}, 2,
            "onebit_adam does not go with parallel.zero: 1");
    refused((const char *[]){"optim.optimizer=onebit_lamb", "parallel.zero=0"}, 2,
            "set optim.freeze_step to the steps");
    refused((const char *[]){"optim.freeze_step=2"}, 1,
            "optim.freeze_step acts only with optim.optimizer: onebit_adam");
    refused((const char *[]){"compress.kind=powersgd", "compress.send=values"}, 2,
            "does not go with compress.send: values");
    refused(
        (const char *[]){"compress.kind=powersgd", "parallel.zero=2", "parallel.accumulate=early"},
        3, "factors are of all virtual workers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_resumed),   cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_factors),
        cmocka_unit_test(test_warmup),    cmocka_unit_test(test_onebit),
        cmocka_unit_test(test_overflow),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
