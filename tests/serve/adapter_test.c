/* adapter_test.c - texts with adapters beside a model: each has the bits that it has alone, from
 * the run with that adapter, whatever other adapters the texts beside it have; on a device, too. */
/* ctest: seconds=5 */
#include "infer/adapter.h"

#include "device/drivers.h"
#include "infer/decode.h"
#include "serve/replies.h"
#include "storage/adapter_gguf.h"
#include "storage/peft.h"
#include "train/tiny_run.h"
#include "weights/import.h"
#include "weights/small_text.h"

enum {
    ADAPTERS = 3,
    EACH = 2,
    REPLIES = (ADAPTERS + 1) * EACH,
    MOST = 12,
    PROMPT = 70,
    SHORT_PROMPT = 30
};

/* A model, adapters of it, and its texts with each of these alone. */
typedef struct fixture {
    char *paths[ADAPTERS + 1]; /* the model's first */
    const char *const *sets;   /* [nsets] with which all are read */
    int nsets;
    int64_t prompt; /* tokens of the longer one */
    ls_trained t;
    ls_adapter adapters[ADAPTERS];
    ls_reply_rule rule;
    ls_reply alone[REPLIES];
    int nleft;
} fixture;

static const char *const usual[] = {"model.kind=llama",
                                    "model.heads=6",
                                    "model.kv_heads=2",
                                    "model.bias=all",
                                    "model.context=160",
                                    "train.steps=3",
                                    "train.batch=8",
                                    "optim.warmup=1",
                                    "optim.lr=0.02",
                                    "train.eval_every=0",
                                    "parallel.transport=thread",
                                    "log.every=1000",
                                    NULL};

static char *train(const char *const *sets) {
    ls_error e = {0};
    char *path = run_path(nruns++);
    assert_ls_ok(try_run(path, 1, usual, sets, &e), e);
    return path;
}

/* device NULL: cores compute. */
static void open_model(const fixture *f, const char *path, const char *device, ls_trained *t) {
    ls_error e = {0};
    const ls_trained_options o = {
        .writes = true, .device = device, .sets = f->sets, .nsets = f->nsets};
    assert_ls_ok(ls_trained_open(path, &o, t, &e), e);
}

static void make(fixture *f, const ls_trained *t, int i, ls_reply *r, int *left_p) {
    uint32_t tokens[PROMPT];
    int64_t n = i % EACH ? f->prompt : 5;
    for (int64_t k = 0; k < n; k++) tokens[k] = (uint32_t)(3 + k * 7 % 90);
    f->rule = (ls_reply_rule){.most = MOST, .top = 2};
    f->rule.sampler.temperature = 1;
    ls_reply_make(r, &f->rule, t->tokenizer, tokens, n);
    r->seed = 5;
    r->number = (uint64_t)(i % EACH);
    r->left = count_left;
    r->arg = left_p;
}

static ls_engine *open_engine(fixture *f, const ls_trained *t, int64_t rows, int nadapters) {
    ls_engine *g = NULL;
    ls_error e = {0};
    const ls_engine_options o = {.texts = REPLIES,
                                 .rows = rows,
                                 .memory_nbytes = 64 << 20,
                                 .progress = nothing,
                                 .adapters = f->adapters,
                                 .nadapters = nadapters};
    assert_ls_ok(ls_engine_open(t, &o, &g, &e), e);
    return g;
}

/* The likeliest first token, by the decoder that `lockstep generate` uses. */
static uint32_t first_of(const ls_trained *t, const ls_reply *r) {
    ls_decode d;
    ls_error e = {0};
    assert_ls_ok(ls_decode_open(&t->infer, &d, &e), e);
    const float *logits = ls_decode_prompt(&d, r->tokens, r->nprompt);
    uint32_t best = 0;
    for (uint32_t i = 0; i < ls_tokenizer_used(t->tokenizer); i++)
        if (logits[i] > logits[best]) best = i;
    ls_decode_close(&d);
    return best;
}

/* Replies by the model of each path alone. */
static void write_alone(fixture *f) {
    for (int i = 0; i < REPLIES; i++) {
        ls_trained t;
        int left = 0;
        ls_reply *r = &f->alone[i];
        open_model(f, f->paths[i / EACH], NULL, &t);
        ls_engine *g = open_engine(f, &t, 64, 0);
        make(f, &t, i, r, &left);
        ls_engine_lock(g);
        ls_engine_add(g, r);
        ls_engine_unlock(g);
        wait_until_left(g, &left, 1);
        ls_engine_close(g);
        assert_int_equal(r->notes[0].top[0], first_of(&t, r));
        ls_trained_close(&t);
    }
}

static void write_together(fixture *f, int64_t rows) {
    ls_engine *g = open_engine(f, &f->t, rows, ADAPTERS);
    ls_reply replies[2 * REPLIES];
    int left = 0;
    for (int i = 0; i < 2 * REPLIES; i++) {
        make(f, &f->t, i, &replies[i], &left);
        replies[i].adapter = i % REPLIES / EACH;
    }
    ls_engine_lock(g);
    for (int k = 0; k < 2 * REPLIES; k++) ls_engine_add(g, &replies[k * 5 % (2 * REPLIES)]);
    ls_engine_unlock(g);
    wait_until_left(g, &left, 2 * REPLIES);
    assert_true(ls_engine_count(g).found_tokens > 0);
    for (int i = 0; i < 2 * REPLIES; i++) {
        same_reply(&replies[i], &f->alone[i % REPLIES]);
        ls_reply_free(&replies[i]);
    }
    ls_engine_close(g);
}

/* The first replies to a prompt differ between all models, so that a mistaken one shows. */
static void check_differ(const fixture *f) {
    for (int i = 0; i < ADAPTERS + 1; i++)
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(&f->alone[i * EACH].notes[0].logprob,
                                    &f->alone[k * EACH].notes[0].logprob, sizeof(float));
}

static void check_same(const fixture *f, int i, const char *path) {
    ls_adapter a = {0};
    ls_error e = {0};
    assert_ls_ok(ls_adapter_open(&f->t, path, &a, &e), e);
    assert_int_equal(a.nbytes, f->adapters[i].nbytes);
    assert_memory_equal(a.memory, f->adapters[i].memory, a.nbytes);
    for (int k = 0; k < f->t.model.nparams; k++)
        assert_true(a.of[k].rank == f->adapters[i].of[k].rank &&
                    a.of[k].scale == f->adapters[i].of[k].scale);
    ls_adapter_close(&a);
}

/* The same adapter as peft saves it, and as llama.cpp loads it, which has no form for DoRA. The
 * host has its numbers also where a device computes: they are hashed. */
static void check_files(const fixture *f, int i, bool dora) {
    ls_error e = {0};
    ls_peft_written w = {0};
    char *path = ls_format("%s/peft-%d", folder, nruns++);
    assert_ls_ok(ls_peft_export(f->paths[i + 1], false, "some/model", path, &w, &e), e);
    check_same(f, i, path);
    free(w.base);
    free(path);
    if (dora) return;
    path = ls_format("%s/adapter-%d.gguf", folder, nruns++);
    assert_ls_ok(ls_adapter_gguf_export(f->paths[i + 1], false, path, &w, &e), e);
    check_same(f, i, path);
    free(path);
}

/* The model of the first path with the adapters of the others, all of which are freed. */
static void compare(fixture *f, const char *device) {
    ls_error e = {0};
    open_model(f, f->paths[0], device, &f->t);
    for (int i = 0; i < ADAPTERS; i++)
        assert_ls_ok(ls_adapter_open(&f->t, f->paths[i + 1], &f->adapters[i], &e), e);
    for (int i = 0; i < ADAPTERS; i++) check_files(f, i, i == 1);
    write_alone(f);
    check_differ(f);
    write_together(f, 64);
    write_together(f, 7);
    for (int i = 0; i < ADAPTERS; i++) ls_adapter_close(&f->adapters[i]);
    for (int i = 0; i < REPLIES; i++) ls_reply_free(&f->alone[i]);
    for (int i = 0; i <= ADAPTERS; i++) free(f->paths[i]);
    ls_trained_close(&f->t);
    free(f);
}

static void check(const char *compute, const char *device) {
    fixture *f = LS_NEW(fixture);
    f->prompt = PROMPT;
    f->paths[0] = train((const char *const[]){compute, NULL});
    char *from = ls_format("train.from=%s", f->paths[0]);
    f->paths[1] = train((const char *const[]){compute, from, "lora.rank=4", NULL});
    f->paths[2] =
        train((const char *const[]){compute, from, "lora.rank=3", "lora.dora=on", "lora.rs=on",
                                    "lora.targets=all-linear", "lora.dropout=0.1", NULL});
    f->paths[3] = train((const char *const[]){compute, from, "lora.rank=20", "lora.alpha=30",
                                              "lora.targets=all-linear", NULL});
    compare(f, device);
    free(from);
}

static void test_f32(void **state) {
    (void)state;
    check("train.compute=f32", NULL);
}

static void test_bf16(void **state) {
    (void)state;
    check("train.compute=bf16", NULL);
}

/* Adapters are trained with activations in f32, and read beside weights in blocks with those of 8
 * bits. */
static void test_int8(void **state) {
    static const char *const sets[] = {"infer.activations=int8"};
    static const char *const lora[] = {"lora.dora=off", "lora.dora=on", "lora.targets=all-linear"};
    (void)state;
    fixture *f = LS_NEW(fixture);
    ls_imported imported = {0};
    ls_error e = {0};
    char *gguf = ls_format("%s/m.gguf", folder), *config = ls_format("%s/lora.yaml", folder);
    *f = (fixture){.sets = sets, .nsets = 1, .prompt = SHORT_PROMPT};
    f->paths[0] = ls_format("%s/blocks", folder);
    small_write_whole(&small_models[0], gguf);
    assert_ls_ok(ls_model_import(gguf, f->paths[0], LS_BLOCK_Q8_0, &imported, &e), e);
    ls_imported_free(&imported);
    char *text = ls_format("model: {from: \"%s\", context: 48}\ndata: {path: LICENSE}\n"
                           "train: {steps: 3, batch: 8, virtual_workers: 8, eval_every: 0}\n"
                           "lora: {rank: 4}\noptim: {lr: 0.02, warmup: 1}\n"
                           "parallel: {transport: thread}\n",
                           f->paths[0]);
    assert_ls_ok(ls_file_write(config, text, strlen(text), &e), e);
    for (int i = 0; i < ADAPTERS; i++) {
        f->paths[i + 1] = run_path(nruns++);
        bool unfinished = false;
        ls_train_options o = {
            .config = config, .sets = lora + i, .nsets = 1, .nworkers = 1, .run = f->paths[i + 1]};
        assert_ls_ok(ls_train(&o, &unfinished, &e), e);
    }
    compare(f, NULL);
    free(gguf), free(config), free(text);
}

static void test_f32_there(void **state) {
    (void)state;
    check("train.compute=f32", device_name);
}

static void test_bf16_there(void **state) {
    (void)state;
    check("train.compute=bf16", device_name);
}

#define YARN "model.rope=yarn", "model.rope_factor=2", "model.rope_high=32"

static void test_refused(void **state) {
    (void)state;
    char *base = train((const char *const[]){YARN, NULL});
    char *other = train((const char *const[]){YARN, "train.seed=2", NULL});
    char *from = ls_format("train.from=%s", base), *elsewhere = ls_format("train.from=%s", other);
    char *none = ls_format("%s/none", folder);
    const struct {
        char *path;
        const char *why;
    } cases[] = {
        {train((const char *const[]){YARN, elsewhere, "lora.rank=2", NULL}), "on other weights"},
        {train((const char *const[]){YARN, from, "lora.rank=2", "lora.train=[model.norm]", NULL}),
         "lora.train"},
        {train((const char *const[]){YARN, from, "lora.rank=2", "train.compute=bf16", NULL}),
         "--set train.compute=bf16"},
        {train((const char *const[]){YARN, "lora.rank=2", "model.kv_heads=3", NULL}),
         "another model"},
        {train((const char *const[]){YARN, from, "lora.rank=2", "model.rope_scale=1.5", NULL}),
         "differ in model.rope_scale"},
        {train((const char *const[]){YARN, from, "lora.rank=2", "model.rope_high=16", NULL}),
         "differ in model.rope_high"},
        {train((const char *const[]){YARN, from, "lora.rank=2", "model.window=9", NULL}),
         "differ in model.window"},
        {other, "lora.rank is 0"},
        {none, "none"}};
    ls_trained t;
    open_model(&(fixture){0}, base, NULL, &t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_adapter a = {0};
        ls_error e = {0};
        ls_status s = ls_adapter_open(&t, cases[i].path, &a, &e);
        if (s == LS_OK || !strstr(e.msg, cases[i].why)) fail_msg("%zu: %s", i, e.msg);
        free(cases[i].path);
    }
    ls_trained_close(&t);
    free(base), free(from), free(elsewhere);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), plain_unit_test(test_bf16),
                                       cmocka_unit_test(test_int8), cmocka_unit_test(test_refused)};
    const struct CMUnitTest there[] = {cmocka_unit_test(test_f32_there),
                                       plain_unit_test(test_bf16_there)};
    if (make_folder(NULL) != 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL) + run_layers_on_devices(there, 2);
    remove_folder(NULL);
    return failed;
}
