/* export_peft_test.c - lockstep export of a run with adapters: names, values and config of peft's
 * form; adapters added to the weights; what is refused. */
/* ctest: long-asan: weights/safetensors and train/lora run the same code */
#include <math.h>

#include "base/json.h"
#include "cli/program.h"
#include "weights/safetensors.h"

#define LLAMA                                                                                      \
    "--set model.kind=llama --set model.heads=6 --set model.kv_heads=2 --set train.steps=4 "       \
    "--set train.eval_every=0 --set optim.warmup=1 "

static ls_json *read_json(const char *name) {
    ls_json *j = NULL;
    ls_error e = {0};
    char *path = ls_format("%s/%s", folder, name);
    assert_ls_ok(ls_json_read(path, 1 << 20, &j, &e), e);
    assert_non_null(j);
    free(path);
    return j;
}

static ls_safetensors open_tensors(const char *name) {
    ls_safetensors s;
    ls_error e = {0};
    char *path = ls_format("%s/%s", folder, name);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    free(path);
    return s;
}

static char *line_of(const ls_json *o, const char *key) {
    ls_buf text = {0};
    assert_non_null(ls_json_get(o, key));
    ls_json_write(ls_json_get(o, key), 0, &text);
    return text.data;
}

static void says(const ls_json *o, const char *key, const char *want) {
    char *got = line_of(o, key);
    assert_string_equal(got, want);
    free(got);
}

/* Every tensor of the checkpoint is in the adapter, under peft's name, with the same bits. */
static void test_peft(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 2 -o @/run " LLAMA
           "--set lora.rank=4 --set lora.rs=on --set lora.dora=on --set lora.alpha=6 "
           "--set lora.targets=[q_proj,layers.0.mlp.up_proj] --set lora.train=embed_tokens",
           0, NULL);
    expect("export @/run --to peft -o @/adapter", 0, "in 11 tensors");
    ls_safetensors ours = open_tensors("run/checkpoints/latest/model.safetensors");
    ls_safetensors theirs = open_tensors("adapter/adapter_model.safetensors");
    assert_int_equal(theirs.n, ours.n + 1); /* the tied embedding is two layers there */
    for (size_t i = 0; i < ours.n; i++) {
        const ls_tensor *t = &ours.tensors[i];
        char *name = ls_format("base_model.model.%s", t->name);
        const ls_tensor *u = ls_safetensors_find(&theirs, name);
        assert_non_null(u);
        assert_int_equal(u->count, t->count);
        assert_int_equal(u->dims[0], t->dims[0]);
        assert_memory_equal(u->data, t->data, t->count * sizeof(float));
        free(name);
    }
    assert_non_null(ls_safetensors_find(&theirs, "base_model.model.lm_head.weight"));
    assert_non_null(ls_safetensors_find(&theirs, "base_model.model.model.layers.1.self_attn.q_proj."
                                                 "lora_magnitude_vector"));
    ls_safetensors_close(&ours), ls_safetensors_close(&theirs);
    ls_json *o = read_json("adapter/adapter_config.json");
    says(o, "peft_type", "\"LORA\"");
    says(o, "r", "4");
    says(o, "lora_alpha", "6.0");
    says(o, "use_rslora", "true");
    says(o, "use_dora", "true");
    says(o, "target_modules", "[\"q_proj\", \"model.layers.0.mlp.up_proj\"]");
    says(o, "modules_to_save", "[\"model.embed_tokens\", \"lm_head\"]");
    says(o, "bias", "\"none\"");
    says(o, "fan_in_fan_out", "false");
    ls_json_free(o);
}

static double loss_of(const char *what) {
    char *output = NULL, *line = ls_format("eval %s --data @/text --set model.context=16", what);
    output = output_of("%s", line);
    const char *at = strstr(output, "loss ");
    assert_non_null(at);
    double loss = strtod(at + 5, NULL);
    free(line);
    free(output);
    return loss;
}

/* Merged, the model has the loss of the run, which is not that of its base. */
static void test_merge(void **state) {
    (void)state;
    static const char *const kinds[] = {"lora.rank=4", "lora.dora=on"};
    ls_buf text = {0};
    for (int i = 0; i < 400; i++) ls_buf_printf(&text, "%d bottles of beer on the wall\n", i);
    write_file("text", text.data, text.len);
    ls_buf_free(&text);
    expect("train configs/tiny.yaml -n 2 -o @/base " LLAMA "--set model.context=16", 0, NULL);
    double base = loss_of("@/base");
    for (int i = 0; i < 2; i++) {
        char *line = ls_format("train configs/tiny.yaml -n 2 -o @/tuned%d " LLAMA
                               "--set model.context=16 --set train.from=@/base --set optim.lr=0.02 "
                               "--set lora.rank=4 --set lora.targets=all-linear --set %s",
                               i, kinds[i]);
        expect(line, 0, NULL);
        free(line);
        line = ls_format("export @/tuned%d --to safetensors -o @/merged --merge", i);
        expect(line, 0, "hash ");
        free(line);
        line = ls_format("@/tuned%d", i);
        double loss = loss_of(line), merged = loss_of("@/merged");
        assert_true(fabs(loss - base) > 0.01);
        assert_true(fabs(loss - merged) < 2e-4);
        free(line);
        char *path = ls_format("%s/merged", folder);
        if (i == 0) assert_int_equal(ls_file_remove_tree(path, NULL), LS_OK);
        free(path);
    }
}

#define CONTINUE                                                                                   \
    "train configs/tiny.yaml -n 2 --set model.from=@/merged --set model.context=16 "               \
    "--set optim.warmup=0 --set train.steps=1 --set train.eval_every=0 "

/* A run begins with the adapter of another one: with a learning rate of 0 it has the same
 * weights. */
static void test_adapter(void **state) {
    (void)state;
    expect("export @/base --to safetensors -o @/published", 0, NULL);
    char *path = ls_format("%s/merged", folder);
    assert_int_equal(ls_file_remove_tree(path, NULL), LS_OK);
    char *published = ls_format("%s/published", folder);
    assert_int_equal(rename(published, path), 0); /* no other base is there */
    expect(CONTINUE
           "-o @/one --set lora.rank=3 --set lora.dora=on --set optim.lr=0.01 "
           "--set lora.targets=[q_proj,layers.1.mlp.up_proj] --set lora.train=embed_tokens",
           0, NULL);
    expect("export @/one --to peft -o @/two", 0, "/merged, a path of this machine; --base NAME");
    expect("export @/one --to peft --base some/one -o @/new/named", 0,
           "base_model_name_or_path: some/one\n");
    shell_of_run("new/named", "grep -q 'path\": \"some/one\"' $r/adapter_config.json");
    expect("export @/merged --to gguf -o @/new/base.gguf", 0, NULL);
    expect(
        "export @/one --to peft --base @/new/base.gguf -o @/new/blocks", 0,
        "/base.gguf: transformers can't load that: it has its weights as GGUF; `lockstep import ");
    expect("export @/one --to peft --base @/run -o @/new/run", 0,
           "/run: transformers can't load that: it is a run of Lockstep; `lockstep export ");
    shell_of_run("", "mkdir bare && cp merged/config.json bare && mkdir void");
    expect("export @/one --to peft --base @/bare -o @/new/bare", 0,
           "/bare: transformers can't load that: it has no model.safetensors");
    expect("export @/one --to peft --base @/void -o @/new/void", 0,
           "/void: transformers can't load that: it has no config.json");
    shell_of_run("", "mv new/base.gguf bare/model.gguf");
    expect("export @/one --to peft --base @/bare -o @/new/packed", 0,
           "/bare: transformers can't load that: it has its weights as GGUF");
    expect(CONTINUE "-o @/three --set model.adapter=@/two --set optim.lr=0 --set optim.min_lr=0 "
                    "--set optim.weight_decay=0 --set parallel.zero=3",
           0, NULL);
    ls_safetensors a = open_tensors("one/checkpoints/latest/model.safetensors");
    ls_safetensors b = open_tensors("three/checkpoints/latest/model.safetensors");
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++) {
        assert_string_equal(a.tensors[i].name, b.tensors[i].name);
        assert_memory_equal(a.tensors[i].data, b.tensors[i].data,
                            a.tensors[i].count * sizeof(float));
    }
    ls_safetensors_close(&a), ls_safetensors_close(&b);
    expect(CONTINUE "-o @/three --resume --set model.adapter=@/two --set optim.lr=0 "
                    "--set optim.min_lr=0 --set optim.weight_decay=0 --set train.steps=2",
           0, NULL);
    expect(CONTINUE "-o @/four --set model.adapter=@/two --set lora.rank=2", 1,
           "lora.rank acts only with model.kind: llama and no model.adapter");
    expect(CONTINUE "-o @/four --set model.adapter=@/none", 1, "/none: can't be opened");
    expect("train configs/tiny.yaml -o @/four --set model.adapter=@/two", 1,
           "model.adapter acts only with model.from and no train.from");
    assert_int_equal(rename(path, published), 0);
    expect("export @/plain --to safetensors -o @/merged", 0, NULL); /* of another width */
    expect(CONTINUE "-o @/four --set model.adapter=@/two", 1, "it is the adapter of another model");
    expect(
        "train configs/tiny.yaml -n 1 -o @/four --set model.context=16 --set model.adapter=@/two "
        "--set model.from=@/published",
        1, "is an adapter of ");
    free(path), free(published);
}

static void test_refusals(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -n 1 -o @/plain " LLAMA "--set model.width=48", 0, NULL);
    expect("export @/plain --to peft -o @/none", 1, "has no adapters (lora.rank is 0)");
    expect("export @/run --to peft -o @/adapter", 1, "exists");
    expect("export @/nothing --to peft -o @/other", 1, "/nothing: does not exist");
    expect("export @/run --to peft", 2, "-o PATH is missing");
    expect("export @/run --to gguf --base x -o @/other", 2, "--base NAME is of --to peft");
    expect("export @/run --to peft -o @/other --merge", 2, "leave --merge out");
    expect("export @/run --to peft -o @/other --type f16", 2, "leave --type out");
    expect("export @/run --to safetensors -o @/other", 1,
           "has adapters: --merge adds them to the weights");
    expect("export @/plain --to gguf -o @/other --merge", 1, "has no adapters to merge");
    expect("export @/merged --to gguf -o @/other --merge", 1, "without adapters to merge");
    expect("export @/run --to peft -o @/other --ema", 1, "has no average of the weights");
    char *other = ls_format("%s/other", folder);
    assert_false(ls_file_exists(other));
    free(other);
}

/* Configs of adapters that can't be trained here. */
static void test_configs(void **state) {
    (void)state;
    static const struct {
        const char *config, *why;
    } cases[] = {
        {"", "adapter_config.json"},
        {"{}", "peft_type is missing"},
        {"{'peft_type': 'IA3'}", "peft_type is IA3; adapters of type LORA"},
        {"{'peft_type': 'LORA', 'bias': 'all'}", "bias is \"all\"; none is possible"},
        {"{'peft_type': 'LORA', 'fan_in_fan_out': true}", "fan_in_fan_out"},
        {"{'peft_type': 'LORA', 'alora_invocation_tokens': [3]}",
         "alora_invocation_tokens is [3]; adapters here"},
        {"{'peft_type': 'LORA', 'target_modules': ['q_proj'], 'rank_pattern': {'(?=q)q_proj': 3}}",
         "adapter_config.json: rank_pattern: '(?=q)q_proj': character "},
        {"{'peft_type': 'LORA', 'r': 0, 'lora_alpha': 8}", "it is no rank"},
        {"{'peft_type': 'LORA', 'r': 1e9, 'lora_alpha': 8}", "it is no rank"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': -8}",
         "lora_alpha is -8; it is not a number above 0"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'lora_dropout': 1}",
         "lora_dropout is 1; it is not"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8}", "has no target_modules"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': '.*_proj'}",
         "adapter_model.safetensors: can't be opened"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': [7]}",
         "target_modules is not a list of names"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': ['q_proj'], "
         "'modules_to_save': ['lm_head']}",
         "which are one matrix in this model"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': ['wq']}",
         "matches no linear layer"},
        {"{'peft_type': 'LORA', 'r': 4, 'lora_alpha': 8, 'target_modules': 'all-linear'}",
         "adapter_model.safetensors"}};
    char *path = ls_format("%s/bad", folder);
    assert_ls_ok(ls_file_make_dirs(path, NULL), (ls_error){0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = ls_strdup(cases[i].config);
        for (char *at = text; *at; at++)
            if (*at == '\'') *at = '"';
        write_file("bad/adapter_config.json", text, strlen(text));
        char *run = ls_format("%s/five", folder);
        assert_int_equal(ls_file_remove_tree(run, NULL), LS_OK);
        expect(CONTINUE "-o @/five --set model.adapter=@/bad", 1, cases[i].why);
        free(run);
        free(text);
    }
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peft), cmocka_unit_test(test_merge), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_adapter), cmocka_unit_test(test_configs)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
