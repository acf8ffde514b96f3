/* stored_test.c - training on frozen weights as a published model's file has them: the bits of a
 * run that widens them, for any workers; the run's file, and what is written out of it. */
/* ctest: busy */
#include <unistd.h>

#include "config/relations.h"
#include "networks/llama.h"
#include "perf/bench_train.h"
#include "storage/frozen_file.h"
#include "storage/origin.h"
#include "train/tiny_run.h"
#include "weights/write_model.h"

enum { MOST_SETS = 24 };

static const char FREEZE[] = "train.freeze=[\"*_proj.weight\", model.embed_tokens.*]";
static const char NO_RATE[] = "optim.groups=[{match: \"*_proj.weight\", lr_scale: 0},"
                              "{match: model.embed_tokens.*, lr_scale: 0}]";

static char *in_folder(const char *name) { return ls_format("%s/%s", folder, name); }

static ls_status try(const char *name, int nworkers, const char *const *sets, ls_error *e) {
    const char *all[MOST_SETS] = {"log.every=1000", "train.steps=3", "optim.clip=0",
                                  "optim.warmup=1", "train.eval_every=0"};
    int n = 5;
    for (int i = 0; sets[i]; i++) all[n++] = sets[i];
    char *run = in_folder(name), *own = ls_format("%s/config.yaml", run);
    bool unfinished = false;
    ls_train_options o = {.config = ls_file_exists(own) ? own : "configs/tiny.yaml",
                          .sets = all,
                          .nsets = n,
                          .nworkers = nworkers,
                          .run = run,
                          .resume = true};
    ls_status s = ls_train(&o, &unfinished, e);
    free(run), free(own);
    return s;
}

static result train(const char *name, int nworkers, const char *const *sets) {
    ls_error e = {0};
    char *run = in_folder(name);
    assert_ls_ok(try(name, nworkers, sets, &e), e);
    result r = last_of(run);
    free(run);
    return r;
}
#define TRAIN(name, nworkers, ...) train(name, nworkers, (const char *const[]){__VA_ARGS__, NULL})

static void copy_file(const char *from, const char *to) {
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(from, SIZE_MAX, &b, &e), e);
    assert_ls_ok(ls_file_write(to, b.data, b.len, &e), e);
    ls_buf_free(&b);
}

/* A published model: the weights of a run that is trained here, in a directory with this type. */
static char *publish(const char *name, ls_block_type type) {
    ls_error e = {0};
    ls_weights w = {0};
    char *plain = in_folder("plain"), *to = in_folder(name);
    assert_ls_ok(ls_weights_open(plain, &w, &e), e);
    ls_model_source source = ls_source_of_weights(&w);
    assert_ls_ok(ls_file_make_dirs(to, &e), e);
    char *gguf = ls_format("%s/model.gguf", to), *tokenizer = ls_format("%s/tokenizer.json", to);
    char *from = ls_format("%s/tokenizer.json", plain);
    ls_gguf_writer keys = {0};
    assert_ls_ok(ls_write_config(&w.arch, to, type, &e), e);
    if (type == LS_BLOCK_BF16)
        assert_ls_ok(ls_write_safetensors(&source, to, type, 0, &e), e);
    else
        assert_ls_ok(ls_write_gguf(&source, gguf, type, &keys, &e), e);
    ls_gguf_writer_free(&keys);
    copy_file(from, tokenizer);
    ls_weights_close(&w);
    free(plain), free(gguf), free(tokenizer), free(from);
    return to;
}

static int make_plain(void **state) {
    ls_error e = {0};
    if (make_folder(state) != 0) return -1;
    TRAIN("first", 1, "model.kind=llama", "model.width=64", "model.heads=4", "model.kv_heads=2",
          "model.ffn=96", "train.steps=2");
    char *run = in_folder("first"), *plain = in_folder("plain");
    char *weights = ls_format("%s/model.safetensors", plain), *path = NULL;
    char *from = ls_format("%s/tokenizer.json", run), *to = ls_format("%s/tokenizer.json", plain);
    char *config = ls_format("%s/config.yaml", run);
    ls_config c;
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    assert_ls_ok(ls_file_make_dirs(plain, &e), e);
    assert_ls_ok(ls_checkpoint_export(path, false, weights, &e), e);
    assert_ls_ok(ls_config_read(config, &c, &e), e);
    ls_architecture a = ls_llama_architecture(&c);
    assert_ls_ok(ls_write_config(&a, plain, LS_BLOCK_F32, &e), e);
    copy_file(from, to);
    free(run), free(plain), free(weights), free(path), free(from), free(to), free(config);
    return 0;
}

/* The types of the frozen tensors in a run's file. */
static void check_file(const char *name, ls_block_type want) {
    ls_error e = {0};
    char *path = ls_format("%s/%s/" LS_FROZEN_FILE, folder, name);
    ls_safetensors s;
    assert_ls_ok(ls_safetensors_open_stored(path, &s, &e), e);
    for (size_t i = 0; i < s.n; i++) assert_int_equal(s.tensors[i].type, want);
    ls_safetensors_close(&s);
    free(path);
}

/* Stored weights give the bits of widened ones, which "train" with a learning rate of 0. */
static void test_bits(void **state) {
    (void)state;
    static const struct {
        const char *model, *names[3];
        ls_block_type type;
    } all[] = {{"q8", {"q8-a", "q8-b", "q8-c"}, LS_BLOCK_Q8_0},
               {"q4", {"q4-a", "q4-b", "q4-c"}, LS_BLOCK_Q4_1},
               {"bf", {"bf-a", "bf-b", "bf-c"}, LS_BLOCK_BF16}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *to = publish(all[i].model, all[i].type), *from = ls_format("model.from=%s", to);
        result want = TRAIN(all[i].names[0], 1, from, NO_RATE);
        result one = TRAIN(all[i].names[1], 1, from, FREEZE, "train.micro_batch=2");
        result three = TRAIN(all[i].names[2], 3, from, FREEZE, "parallel.zero=2");
        assert_string_equal(one.weights, want.weights);
        assert_string_equal(three.weights, want.weights);
        check_file(all[i].names[1], all[i].type);
        free(to), free(from);
    }
}

/* The published model is no longer needed: a run goes on, and another begins with its weights. */
static void test_alone(void **state) {
    (void)state;
    ls_error e = {0};
    char *to = publish("gone", LS_BLOCK_Q4_0), *from = ls_format("model.from=%s", to);
    result want = TRAIN("whole", 1, from, FREEZE, "train.steps=5");
    assert_ls_ok(
        try("part", 2,
            (const char *const[]){from, FREEZE, "train.steps=5", "checkpoint.every=3", NULL}, &e),
        e);
    char *last = in_folder("part/checkpoints/step-5"), *first = in_folder("whole");
    assert_ls_ok(ls_file_remove_tree(to, &e), e);
    assert_ls_ok(ls_file_remove_tree(last, &e), e);
    result again = TRAIN("part", 3, "train.steps=5");
    assert_string_equal(again.weights, want.weights);
    char *origin = ls_format("train.from=%s", first);
    static const char *const sizes[] = {"model.kind=llama", "model.width=64", "model.heads=4",
                                        "model.kv_heads=2", "model.ffn=96"};
    TRAIN("next", 1, origin, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], NO_RATE);
    free(to), free(from), free(last), free(first), free(origin);
}

/* In 16 bits values are rounded once more, in memory, unless the file has them in this type. */
static void test_half(void **state) {
    (void)state;
    static const struct {
        const char *model, *names[3];
        ls_block_type type;
    } all[] = {{"half", {"half-a", "half-b", "half-c"}, LS_BLOCK_Q8_0},
               {"own", {"own-a", "own-b", "own-c"}, LS_BLOCK_BF16}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *to = publish(all[i].model, all[i].type), *from = ls_format("model.from=%s", to);
        result want = TRAIN(all[i].names[0], 1, from, NO_RATE, "train.compute=bf16");
        result one = TRAIN(all[i].names[1], 1, from, FREEZE, "train.compute=bf16");
        result two = TRAIN(all[i].names[2], 2, from, FREEZE, "train.compute=bf16");
        assert_string_equal(one.weights, want.weights);
        assert_string_equal(two.weights, want.weights);
        free(to), free(from);
    }
}

static void ignore(const ls_config *c, const ls_bench_train *b) {
    (void)c;
    (void)b;
}

/* The sum of the tensors' hashes: their order depends on which are frozen. */
static ls_hash sum_of(const char *path) {
    ls_error e = {0};
    ls_safetensors f;
    ls_hash sum = {0};
    assert_ls_ok(ls_safetensors_open(path, &f, &e), e);
    for (size_t i = 0; i < f.n; i++) {
        ls_hash h = ls_hash_bytes(f.tensors[i].data, ls_tensor_nbytes(&f.tensors[i]));
        sum = (ls_hash){sum.hi + h.hi, sum.lo + h.lo};
    }
    ls_safetensors_close(&f);
    return sum;
}

/* The weights with which bench train ends, whose runs have no directory. */
static ls_hash bench(const char *type, int nworkers, const char *from, const char *how) {
    ls_error e = {0};
    ls_config c;
    char *to = in_folder("bench"), *path = ls_format("%s/trained.safetensors", to);
    char *compute = ls_format("train.compute=%s", type);
    const char *sets[] = {from, how, compute, "optim.clip=0", "optim.warmup=0"};
    assert_ls_ok(ls_config_load("configs/tiny.yaml", sets, sizeof sets / sizeof *sets, &c, &e), e);
    assert_ls_ok(ls_origin_complete(&c, NULL, &e), e);
    const ls_bench_request q = {.nworkers = nworkers, .warmup = 1, .steps = 2, .export_dir = to};
    assert_ls_ok(ls_bench_train_run(&c, &q, ignore, &e), e);
    ls_hash h = sum_of(path);
    free(to), free(path), free(compute);
    return h;
}

static void test_without_directory(void **state) {
    (void)state;
    static const ls_block_type types[] = {LS_BLOCK_Q4_1, LS_BLOCK_BF16};
    static const char *const computes[] = {"f32", "bf16", "f16"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char *to = publish(i ? "bench-bf" : "bench-q4", types[i]);
        char *from = ls_format("model.from=%s", to);
        for (int k = 0; k < 3; k++) {
            ls_hash want = bench(computes[k], 1, from, NO_RATE);
            assert_true(ls_hash_same(bench(computes[k], 1, from, FREEZE), want));
            assert_true(ls_hash_same(bench(computes[k], 3, from, FREEZE), want));
        }
        free(to), free(from);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_half),
                                       cmocka_unit_test(test_without_directory)};
    return cmocka_run_group_tests(tests, make_plain, remove_folder);
}
