/* export_test.c - lockstep export: published models and runs, in both forms; what is imported again
 * has the same hash, tokenizer and template; and what is refused. */
/* ctest: long-asan: weights/safetensors and weights/gguf write the same files */
#include "cli/models.h"

/* Both forms of @/a have this hash, also when they are read again. */
static void check_forms(const char *from, const char *hash) {
    char *line = ls_format("export %s --to safetensors -o @/c", from);
    char *got = hash_after(line, "\nhash ");
    assert_string_equal(got, hash);
    free(line), free(got);
    line = ls_format("export %s --to gguf -o @/d", from);
    got = hash_after(line, "\nhash ");
    assert_string_equal(got, hash);
    free(line), free(got);
    import_same("@/c -o @/e", hash);
    import_same("@/d -o @/f", hash);
    same_files("a/generation_config.json", "e/generation_config.json");
    same_files("a/generation_config.json", "f/generation_config.json");
    same_files("a/chat_template.jinja", "e/chat_template.jinja");
    same_files("a/chat_template.jinja", "f/chat_template.jinja");
    same_files("a/tokenizer.json", "e/tokenizer.json");
    same_files("a/config.json", "e/config.json");
}

static void test_published(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_MODELS; i++) {
        small_write_whole(&small_models[i], gguf);
        remove_models();
        char *hash = import("@/m.gguf -o @/a --type f32");
        check_forms("@/a", hash);
        free(hash);
        expect("export @/m.gguf --to gguf --type q8_0 -o @/b", 0, " Q8_0, ");
        expect("generate @/b --prompt beer --tokens 3", i == SMALL_GPT2 - 1 ? 1 : 0, NULL);
    }
}

static void expect_file(const char *name, const char *want) {
    size_t n = 0;
    char *text = read_file(name, &n);
    assert_string_equal(text, want);
    free(text);
}

/* The greedy text of a model, without the tokens that stand for rows which no token has. */
static char *text_of(const char *model) {
    char *line = ls_format("generate %s --prompt beer --tokens 20 --temperature 0", model);
    char *output = output_of("%s", line);
    free(line);
    for (char *pad; (pad = strstr(output, "[PAD"));)
        memmove(pad, strchr(pad, ']') + 1, strlen(strchr(pad, ']')));
    return output;
}

static void check_run(const char *more) {
    char *line = ls_format(TRAIN_FROM "-o @/b --set model.from=@/a --set optim.lr=1e-3 %s", more);
    expect(line, 0, "parameters");
    free(line);
    char *hash = hash_after("ckpt hash @/b", "weights "), *was = import("@/m.gguf -o @/g");
    assert_string_not_equal(hash, was);
    check_forms("@/b", hash);
    char *text[] = {text_of("@/b"), text_of("@/c"), text_of("@/d")};
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], text[2]);
    for (int i = 0; i < 3; i++) free(text[i]);
    free(hash), free(was);
    char *g = ls_format("%s/g", folder);
    assert_int_equal(ls_file_remove_tree(g, NULL), LS_OK);
    free(g);
}

/* A run's model has the hash of its weights, and writes the same text; all of it is trained, or a
 * part is frozen. */
static void test_runs(void **state) {
    (void)state;
    write_long_text();
    for (int i = 0; i < SMALL_MODELS; i++) {
        if (i == SMALL_GPT2 - 1) continue;
        small_write_whole(&small_models[i], gguf);
        remove_models();
        free(import("@/m.gguf -o @/a --type f32"));
        check_run(i == SMALL_GPT2 ? "--set model.context=48" /* all of its positions */
                  : i == 2        ? "--set train.freeze=model.layers.*.mlp.*"
                                  : "");
    }
}

/* A flag of an added token for which GGUF has no key is named, and the rest is written. */
static void check_flag(const char *flag) {
    size_t n = 0;
    char *path = ls_format("%s/c/tokenizer.json", folder),
         *text = read_file("c/tokenizer.json", &n);
    char *added = strstr(text, "\"added_tokens\": []");
    assert_non_null(added);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fprintf(f, "%.*s", (int)(added - text), text);
    fprintf(f,
            "\"added_tokens\": [{\"id\": 5, \"content\": \"&\", \"%s\": true, \"special\": false, "
            "\"normalized\": false}]",
            flag);
    fprintf(f, "%s", added + strlen("\"added_tokens\": []"));
    assert_int_equal(fclose(f), 0);
    expect("export @/c --to gguf -o @/flag.gguf", 0,
           "GGUF has no keys for lstrip, rstrip and single_word, one of which 1 token of this "
           "tokenizer has ('&')");
    remove(path);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n - 1, f), n - 1);
    assert_int_equal(fclose(f), 0);
    char *gguf_path = ls_format("%s/flag.gguf", folder);
    remove(gguf_path);
    free(gguf_path), free(text), free(path);
}

/* A model that was trained from nothing, with its own tokenizer; and one whose origin is gone: the
 * run has what it needs, and so has a run that begins with it. */
static void test_own(void **state) {
    (void)state;
    write_long_text();
    remove_models();
    expect("train configs/tiny.yaml -o @/a --set data.path=@/long --set train.steps=2 --set "
           "optim.warmup=0 --set model.kind=llama --set model.vocab=300 --set model.context=16 "
           "--set model.width=32 --set model.heads=2 --set model.layers=1",
           0, "parameters");
    char *hash = hash_after("ckpt hash @/a", "weights ");
    char *got = hash_after("export @/a --to gguf -o @/b", "\nhash ");
    assert_string_equal(got, hash);
    free(got);
    expect("export @/a --to onnx -o @/a.onnx", 0,
           "input  tokens: i32 [N, T]\noutput logits: f32 [N, T, ");
    expect_line("export @/a --to onnx -o @/a.onnx", 1, "/a.onnx: exists");
    import_same("@/b -o @/c", hash);
    same_files("a/tokenizer.json", "c/tokenizer.json");
    check_flag("lstrip");
    check_flag("rstrip");
    check_flag("single_word");
    free(hash);
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/d"));
    expect(TRAIN_FROM "-o @/e --set model.from=@/d", 0, "parameters");
    char *gone = ls_format("%s/d", folder);
    assert_int_equal(ls_file_remove_tree(gone, NULL), LS_OK);
    free(gone);
    expect("export @/e --to safetensors -o @/f", 0, "hash ");
    expect_file("f/chat_template.jinja", SMALL_CHAT);
    expect("weights @/f", 0, "context 48");
    expect("train configs/tiny.yaml -o @/a2 --set model.kind=llama --set train.from=@/e --set "
           "model.vocab=100 --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set "
           "model.head_dim=16 --set model.ffn=96 --set model.layers=2 --set model.context=24 --set "
           "model.rope_base=50000 --set data.path=@/long --set train.steps=1 --set optim.warmup=0",
           0, "parameters");
    same_files("e/published.json", "a2/published.json");
}

/* A signal ends the command, and nothing is left of what it wrote. */
static void test_interrupted(void **state) {
    (void)state;
    static const char *const lines[] = {
        "export @/a --to gguf -o @/half", "export @/a --to safetensors -o @/half",
        "export @/a --to onnx -o @/half", "import @/m.gguf -o @/half", "tokens @/a --save @/half"};
    small_write_whole(&small_models[0], gguf);
    remove_models();
    free(import("@/m.gguf -o @/a"));
    for (int i = 0; i < 5; i++) {
        char *output = NULL;
        setenv("LOCKSTEP_FAULTS", "write .lockstep- TERM 0-1", 1);
        int code = run_program(lines[i], &output);
        unsetenv("LOCKSTEP_FAULTS");
        free(output);
        if (code != 128 + SIGTERM) fail_msg("%s: exit code %d", lines[i], code);
        assert_false(file_exists("half"));
        shell_of_run("a", "! ls -A | grep -q '^.lockstep-'");
    }
}

static void test_refusals(void **state) {
    (void)state;
    small_write_whole(&small_models[0], gguf);
    remove_models();
    free(import("@/m.gguf -o @/a"));
    expect_line("export @/a --to gguf", 2, "-o PATH is missing");
    expect_line("export @/a -o @/b", 2, "--to is missing: safetensors, gguf, peft or onnx");
    expect_line("export @/a --to torch -o @/b", 2, "--to torch: is not one of");
    expect_line("export @/a --to onnx --type f16 -o @/b", 2, "weights are written in f32");
    expect_line("export @/a --to onnx --merge -o @/b", 2, "leave --merge out");
    expect_line("export @/a --to onnx", 2, "-o PATH is missing");
    expect_line("export @/a --to safetensors --type q8_0 -o @/b", 2,
                "--type q8_0: safetensors has F32, F16 or BF16");
    expect_line("export @/a --to gguf --type q6_k -o @/b", 2, "--type q6_k: gguf has F32");
    expect_line("export @/a --to gguf -o @/a", 1, "/a: exists; give the name of a new file");
    expect_line("export @/a --to safetensors -o @/a", 1, "/a: exists; give the name of a new");
    expect_line("export @/a --to gguf --ema -o @/b", 1, "without an average of its weights");
    expect_line("export @/none --to gguf -o @/b", 1, "none");
    expect("train configs/tiny.yaml -o @/c --set train.steps=1 --set optim.warmup=0 --set "
           "model.kind=llama --set model.window=4 --set data.path=@/long --set model.vocab=300 "
           "--set model.width=32 --set model.heads=2 --set model.context=16",
           0, "parameters");
    expect("export @/c --to gguf -o @/e", 0, "the context is written as 4 instead of 16");
    expect("weights @/e", 0, "context 4");
    expect("export @/c --to safetensors -o @/d", 0, "hash ");
    expect("weights @/d", 0, "mistral: ");
    assert_false(file_exists("b"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published), cmocka_unit_test(test_runs),
        cmocka_unit_test(test_own),       cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, models_make, folder_remove);
}
