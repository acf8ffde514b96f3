/* import_test.c - lockstep import: what a model's directory has, that it has the same hash in every
 * form, that eval and generate take it, and what is refused. */
#include "cli/models.h"

#include <dirent.h>

/* The values are such that F16 and BF16 hold them. */
static void test_forms(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        small_write_whole(&small_models[i], gguf);
        char *hash = import("@/m.gguf -o @/a");
        same_files("m.gguf", "a/model.gguf");
        import_same("@/m.gguf -o @/b/", hash);
        import_same("@/a -o @/c --type f32", hash);
        import_same("@/c -o @/d", hash);
        same_files("c/model.safetensors", "d/model.safetensors");
        same_files("a/tokenizer.json", "d/tokenizer.json");
        same_files("a/generation_config.json", "d/generation_config.json");
        import_same("@/d -o @/e --type bf16", hash);
        import_same("@/e -o @/f --type F16", hash);
        expect("weights @/f", 0, " F16\n");
        size_t n = 0;
        char *template = read_file("f/chat_template.jinja", &n);
        assert_string_equal(template, SMALL_CHAT);
        free(template);
        free(hash);
        if (i + 1 < SMALL_MODELS) remove_models();
    }
}

/* In blocks: the same as an export of this type, and small. */
static void test_blocks(void **state) {
    (void)state;
    static const char *const types[] = {"q8_0", "q5_1", "q4_0"};
    small_write_whole(&small_models[1], gguf);
    for (int i = 0; i < 3; i++) {
        remove_models();
        char *words = ls_format("@/m.gguf -o @/a --type %s", types[i]);
        char *line = ls_format("export @/m.gguf --to gguf -o @/b --type %s", types[i]);
        char *hash = import(words), *exported = hash_after(line, "\nhash ");
        assert_string_equal(hash, exported);
        assert_true(file_exists("a/model.gguf"));
        expect("generate @/a --prompt beer --tokens 3", 0, NULL);
        import_same("@/a -o @/c", hash);
        free(words), free(line), free(hash), free(exported);
    }
}

/* Another value is another hash. */
static void test_hash(void **state) {
    (void)state;
    small_write_whole(&small_models[1], gguf);
    remove_models();
    char *hash = import("@/m.gguf -o @/a");
    size_t nbytes = 0;
    char *bytes = read_file("m.gguf", &nbytes);
    bytes[nbytes - 1 - 40] ^= 1; /* the last byte is read_file()'s */
    write_file("m.gguf", bytes, nbytes - 1);
    char *other = import("@/m.gguf -o @/b");
    assert_string_not_equal(hash, other);
    free(bytes), free(hash), free(other);
}

static void fill(FILE *f, const ls_safetensors *file, const char *name, float value) {
    const ls_tensor *t = ls_safetensors_find(file, name);
    float values[64];
    if (!t) return;
    for (int i = 0; i < 64; i++) values[i] = value;
    assert_int_equal(fseek(f, (long)((const uint8_t *)t->data - file->map.data), SEEK_SET), 0);
    assert_int_equal(fwrite(values, sizeof *values, t->count, f), t->count);
}

/* Zeros as the last norm, in a Gemma 3 of weights of -1: all tokens are equally likely, and a loss
 * is ln 100. */
static void make_uniform(const char *name, bool gemma) {
    char *path = ls_format("%s/%s/model.safetensors", folder, name);
    ls_safetensors file;
    ls_error e = {0};
    assert_ls_ok(ls_safetensors_open(path, &file, &e), e);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fill(f, &file, "model.norm.weight", gemma ? -1 : 0);
    fill(f, &file, "ln_f.weight", 0);
    fill(f, &file, "ln_f.bias", 0);
    assert_int_equal(fclose(f), 0);
    ls_safetensors_close(&file);
    free(path);
}

static void test_eval(void **state) {
    (void)state;
    static const char text[] =
        "What a model makes of a text that is longer than two contexts of it, "
        "each of which has as many as 48 tokens.";
    write_file("text", text, strlen(text));
    for (int i = 0; i < SMALL_MODELS; i++) {
        if (i == SMALL_GPT2 - 1) continue;
        small_write_whole(&small_models[i], gguf);
        remove_models();
        free(import("@/m.gguf -o @/a --type f32"));
        make_uniform("a", i == SMALL_GEMMA3);
        expect("eval @/a --data @/text", 0, "loss 4.6052 nats/token, perplexity 100.000");
        expect("eval @/a --data @/text --set model.context=7", 0, "loss 4.6052 nats/token");
    }
    expect_line("eval @/a", 1, "is a published model, without data: use --data FILE");
    expect_line("eval @/a --ema --data @/text", 1, "without an average of its weights");
    expect_line("eval @/a --data @/text --set model.context=49", 1,
                "was trained with at most 48 positions");
}

/* A run begins with the directory: with its weights, its tokenizer and fewer tokens than rows. */
static void test_train(void **state) {
    (void)state;
    write_long_text();
    for (int i = 1; i < SMALL_MODELS; i++) {
        if (i == SMALL_GPT2 - 1) continue;
        small_write_whole(&small_models[i], gguf);
        remove_models();
        free(import("@/m.gguf -o @/a --type f32"));
        make_uniform("a", i == SMALL_GEMMA3);
        expect(TRAIN_FROM "-o @/b --set model.from=@/a --set optim.lr=1e-9", 0, "parameters");
        expect("eval @/b", 0, "model    loss 4.6052 nats/token");
        expect("eval @/b --data @/long", 0, "model    loss 4.6052 nats/token");
        expect("generate @/b --tokens 5 --prompt beer", 0, NULL);
    }
}

/* Beside model.from a key of the architecture has the model's value, or is refused; one of a file
 * for another model is named. What training decides is used. */
static void test_written(void **state) {
    (void)state;
    static const struct {
        const char *set, *says;
    } refused[] = {{"model.layers=5", "model.layers is 5, and 2 in the model of model.from"},
                   {"model.norm_eps=0.001", "model.norm_eps is 0.001, and "},
                   {"model.window=9", "model.window is 9, and 0 in the model"},
                   {"model.kind=gpt2", "model.kind is \"gpt2\", and \"llama\" in the model"},
                   {"model.experts=4", "model.experts is 4, and 0 in the model"},
                   {"model.router_aux_loss=0.5", "model.router_aux_loss acts only with"}};
    write_long_text();
    small_write_whole(&small_models[0], gguf);
    remove_models();
    free(import("@/m.gguf -o @/a --type f32"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char *line = ls_format(TRAIN_FROM "-o @/b --set model.from=@/a --set %s", refused[i].set);
        expect(line, 1, refused[i].says);
        free(line);
    }
    expect("eval @/a --data @/long --set model.layers=5", 1, "model.layers is 5, and 2 in");
    expect(TRAIN_FROM "-o @/b --set model.from=@/a --set model.layers=2 --set model.ffn=0", 0,
           "model.from decides model.width, ");
    /* a mixture whose config has a loss of all layers */
    expect("train configs/tiny.yaml -o @/mix --set data.path=@/long --set train.steps=1 --set "
           "optim.warmup=0 --set model.kind=llama --set model.vocab=300 --set model.context=16 "
           "--set model.width=32 --set model.heads=2 --set model.layers=2 --set model.experts=3 "
           "--set model.ffn=16 --set model.router_aux_loss=0.25 --set model.router_aux_scope=model",
           0, "parameters");
    expect("export @/mix --to safetensors -o @/d", 0, "hash ");
    char *hashes[3];
    static const char *const sets[] = {"", "--set model.router_aux_loss=0",
                                       "--set model.router_aux_scope=layer"};
    for (int i = 0; i < 3; i++) {
        char *line = ls_format(TRAIN_FROM "--set model.context=16 -o @/mix%d --set model.from=@/d "
                                          "--set optim.lr=0.1 %s",
                               i, sets[i]);
        expect(line, 0, "parameters");
        free(line);
        line = ls_format("ckpt hash @/mix%d", i);
        hashes[i] = hash_after(line, "weights ");
        free(line);
    }
    assert_string_not_equal(hashes[0], hashes[1]);
    assert_string_not_equal(hashes[0], hashes[2]);
    assert_string_not_equal(hashes[1], hashes[2]);
    for (int i = 0; i < 3; i++) free(hashes[i]);
}

static void test_generate(void **state) {
    (void)state;
    small_write_whole(&small_models[2], gguf);
    remove_models();
    free(import("@/m.gguf -o @/a"));
    free(import("@/a -o @/b --type bf16"));
    char *from[3] = {0};
    static const char *const names[] = {"@/m.gguf", "@/a", "@/b"};
    for (int i = 0; i < 3; i++) {
        char *words = ls_format("generate %s --prompt Some --tokens 40 --seed 3", names[i]);
        from[i] = output_of("%s", words);
        assert_string_equal(from[i], from[0]);
        free(words);
    }
    assert_int_equal(strncmp(from[0], "Some", 4), 0);
    assert_true(strlen(from[0]) > 24);
    char *refusal = NULL;
    assert_int_equal(run_program("generate @/a --prompt Some --tokens 60", &refusal), 1);
    assert_non_null(strstr(refusal, "context has 48"));
    assert_null(strstr(refusal, "\n\n")); /* one line, and no line end on standard output */
    free(refusal);
    expect("bench generate @/a --prompt 20 --tokens 5", 0, "weights as stored: ");
    expect("bench generate @/m.gguf --prompt 5 --tokens 5 --json", 0, "\"prompt_tokens\": 5");
    for (int i = 0; i < 3; i++) free(from[i]);
}

/* Nothing is left of an import that fails. */
static void expect_none(const char *line, int code, const char *says) {
    expect_line(line, code, says);
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *at; (at = readdir(d));)
        if (strstr(at->d_name, "new")) fail_msg("%s is left", at->d_name);
    closedir(d);
}

static void test_refusals(void **state) {
    (void)state;
    small_write_whole(&small_models[0], gguf);
    remove_models();
    free(import("@/m.gguf -o @/a"));
    expect_none("import @/m.gguf", 2, "-o DIR is missing");
    expect_none("import @/m.gguf -o @/a", 1, "/a: exists; give the name of a new directory");
    expect_none("import @/m.gguf -o @/new --type q4_k", 2,
                "--type q4_k: is not one of as-stored, F32, F16, BF16, Q8_0");
    expect_none("import @/none -o @/new", 1, "/none: can't be opened");
    expect_none("import @/m.gguf -o @/m.gguf/new", 1, "Not a directory");
    small_write_gguf(&small_models[0], gguf);
    expect_none("import @/m.gguf -o @/new", 1, "has no tokenizer: tokenizer.ggml.model is missing");
    small_write_folder(&small_models[0], folder);
    unlink(gguf);
    expect_none("import @ -o @/new", 1, "has no tokenizer.json");
    remove_models();
}

/* A number that is not finite, and a template that is no text. */
static void test_damage(void **state) {
    (void)state;
    small_write_whole(&small_models[3], gguf);
    size_t n = 0;
    char *bytes = read_file("m.gguf", &n);
    static const uint8_t infinite[] = {0, 0, 0x80, 0x7f};
    memcpy(bytes + n - 1 - 4 * 32 * 4, infinite, 4);
    write_file("m.gguf", bytes, n - 1);
    expect_none("import @/m.gguf -o @/new", 1, "has a number that is not finite");
    small_write_whole(&small_models[3], gguf);
    free(bytes);
    bytes = read_file("m.gguf", &n);
    for (size_t i = 0; i + 6 < n; i++)
        if (memcmp(bytes + i, "{% for", 6) == 0) bytes[i] = (char)0xff;
    write_file("m.gguf", bytes, n - 1);
    expect_none("import @/m.gguf -o @/new", 1, "the chat template is not UTF-8 text");
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),    cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_hash),     cmocka_unit_test(test_eval),
        cmocka_unit_test(test_train),    cmocka_unit_test(test_written),
        cmocka_unit_test(test_generate), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, models_make, folder_remove);
}
