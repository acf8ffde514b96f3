/* export_adapter_test.c - lockstep export of a run's adapters as GGUF: keys, names and values, rows
 * in the order of llama.cpp; read again; what is refused. */
#include <math.h>

#include "cli/program.h"
#include "weights/gguf.h"
#include "weights/safetensors.h"

/* Heads of 4 elements. */
#define TRAIN                                                                                      \
    "train configs/tiny.yaml -n 1 --set model.kind=llama --set model.width=24 --set "              \
    "model.heads=6 "                                                                               \
    "--set model.kv_heads=2 --set train.steps=3 --set train.eval_every=0 --set optim.warmup=1 "
enum { RANK = 4, HEAD = 4 };

static ls_gguf file;
static ls_safetensors weights;

static void open_files(void) {
    ls_error e = {0};
    char *a = ls_format("%s/adapter.gguf", folder);
    char *b = ls_format("%s/run/checkpoints/latest/model.safetensors", folder);
    assert_ls_ok(ls_gguf_open(a, &file, &e), e);
    assert_ls_ok(ls_safetensors_open(b, &weights, &e), e);
    free(a), free(b);
}

/* Row i of a head in the file: the pairs of the rotation are adjacent. */
static int64_t row_in_head(int64_t i) { return i % 2 * (HEAD / 2) + i / 2; }

static const float *run_values(const char *name, int64_t count) {
    const ls_tensor *t = ls_safetensors_find(&weights, name);
    assert_non_null(t);
    assert_int_equal(t->count, count);
    return (const float *)t->data;
}

static void has_tensor(const char *gguf, const char *name, int64_t width, int64_t rows,
                       bool pairs) {
    const ls_gguf_tensor *t = ls_gguf_find_tensor(&file, gguf);
    assert_non_null(t);
    assert_int_equal(t->ndims, 2);
    assert_int_equal(t->dims[0], width);
    assert_int_equal(t->dims[1], rows);
    const float *want = run_values(name, width * rows);
    bool moved = false;
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = pairs ? i / HEAD * HEAD + row_in_head(i % HEAD) : i;
        moved = moved || row != i;
        assert_memory_equal(t->data + (size_t)(i * width) * sizeof *want, want + row * width,
                            (size_t)width * sizeof *want);
    }
    assert_int_equal(moved, pairs);
}

static void test_file(void **state) {
    (void)state;
    double alpha = 0;
    expect(TRAIN "-o @/run --set lora.rank=4 --set lora.alpha=6 --set lora.rs=on --set "
                 "lora.targets=[q_proj,layers.1.mlp.down_proj]",
           0, NULL);
    expect("export @/run --to gguf -o @/adapter.gguf", 0, "in 6 tensors, for the base model");
    open_files();
    assert_int_equal(file.ntensors, 6);
    assert_true(ls_gguf_is_text(ls_gguf_find(&file, "general.architecture"), "llama"));
    assert_true(ls_gguf_is_text(ls_gguf_find(&file, "general.type"), "adapter"));
    assert_true(ls_gguf_is_text(ls_gguf_find(&file, "adapter.type"), "lora"));
    assert_true(ls_gguf_number(ls_gguf_find(&file, "adapter.lora.alpha"), 0, &alpha));
    assert_true(alpha == 12); /* / 4 is 6 / sqrt(4) */
    has_tensor("blk.0.attn_q.weight.lora_a", "model.layers.0.self_attn.q_proj.lora_A.weight", 24,
               RANK, false);
    has_tensor("blk.1.attn_q.weight.lora_b", "model.layers.1.self_attn.q_proj.lora_B.weight", RANK,
               24, true);
    has_tensor("blk.1.ffn_down.weight.lora_a", "model.layers.1.mlp.down_proj.lora_A.weight", 64,
               RANK, false);
    has_tensor("blk.1.ffn_down.weight.lora_b", "model.layers.1.mlp.down_proj.lora_B.weight", RANK,
               24, false);
    ls_gguf_close(&file);
    ls_safetensors_close(&weights);
    expect("export @/run/checkpoints/latest --to gguf -o @/json.gguf --json", 0,
           "\"form\": \"gguf adapter\", \"tensors\": 6");
    expect("export @/run --to gguf --merge -o @/merged.gguf", 0, "hash ");
    expect("weights @/adapter.gguf", 1,
           "is an adapter, without the model: `lockstep serve MODEL --adapter NAME=");
}

#define FROM                                                                                       \
    "train configs/tiny.yaml -n 2 --set train.steps=1 --set train.eval_every=0 "                   \
    "--set optim.warmup=0 --set model.context=32 --set model.from=@/"

/* A run that begins with an adapter has the same bits, in whichever form the adapter is, and the
 * base. */
static void test_read(void **state) {
    (void)state;
    expect(TRAIN "-o @/base", 0, NULL);
    expect("export @/base --to safetensors -o @/published", 0, NULL);
    expect("export @/base --to gguf -o @/base.gguf", 0, NULL);
    expect("import @/base.gguf -o @/imported", 0, NULL);
    expect(FROM "published -o @/one --set lora.rank=3 --set lora.alpha=5 --set optim.lr=0.01 "
                "--set lora.targets=[q_proj,k_proj,layers.1.mlp.up_proj]",
           0, NULL);
    expect("export @/one --to peft -o @/peft", 0, NULL);
    expect("export @/one --to gguf -o @/one.gguf", 0, NULL);
    expect(FROM "published -o @/two --set model.adapter=@/peft", 0, NULL);
    expect(FROM "published -o @/three --set model.adapter=@/one.gguf --set parallel.zero=3", 0,
           NULL);
    expect(FROM "imported -o @/four --set model.adapter=@/one.gguf", 0, NULL);
    same_hash("two", "three");
    same_hash("two", "four");
    expect(FROM "published -o @/five --set model.adapter=@/base.gguf", 1, "general.type is model");
    expect("serve @/published --port 0 --adapter x=@/base.gguf", 1, "general.type is model");
}

static ls_safetensors open_weights(const char *name) {
    ls_safetensors f;
    ls_error e = {0};
    char *path = ls_format("%s/%s", folder, name);
    assert_ls_ok(ls_safetensors_open(path, &f, &e), e);
    free(path);
    return f;
}

/* merged [rows, width] = base + scale B A */
static void check_merged(const float *base, const float *merged, const float *a, const float *b,
                         const int64_t sizes[3], double scale) {
    const int64_t rows = sizes[0], width = sizes[1], rank = sizes[2];
    double most = 0;
    for (int64_t i = 0; i < rows * width; i++) {
        double sum = 0;
        for (int64_t k = 0; k < rank; k++)
            sum += (double)b[i / width * rank + k] * (double)a[k * width + i % width];
        most = fmax(most, fabs(scale * sum));
        assert_true(fabs((double)base[i] + scale * sum - (double)merged[i]) < 1e-6);
    }
    assert_true(most > 1e-4);
}

#define AS_IT_IS "--set optim.lr=0 --set optim.min_lr=0 "

/* A run that begins with the adapter and learns nothing, merged: it has the weights of `merged`,
 * within the limit. */
static void begins(const char *base, const char *adapter, const char *merged, double limit) {
    char *names[] = {ls_format("%s/model.safetensors", merged),
                     ls_format("%s-as-it-is/model.safetensors", adapter)};
    expectf(0, NULL, FROM "%s -o @/begun-%s " AS_IT_IS "--set model.adapter=@/%s", base, adapter,
            adapter);
    expectf(0, NULL, "export @/begun-%s --to safetensors --merge -o @/%s-as-it-is", adapter,
            adapter);
    ls_safetensors want = open_weights(names[0]), got = open_weights(names[1]);
    for (size_t i = 0; i < want.n; i++) {
        const ls_tensor *a = &want.tensors[i], *b = ls_safetensors_find(&got, a->name);
        assert_non_null(b);
        for (size_t k = 0; k < a->count; k++)
            assert_true(fabs((double)((const float *)a->data)[k] -
                             (double)((const float *)b->data)[k]) <= limit);
    }
    ls_safetensors_close(&want);
    ls_safetensors_close(&got);
    free(names[0]), free(names[1]);
}

/* Layers with ranks and alphas of their own: peft's patterns; in GGUF B makes up for an alpha. */
static void test_patterns(void **state) {
    (void)state;
    static const struct {
        const char *layer;
        int64_t sizes[3]; /* rows, width, rank */
        double alpha;
    } want[] = {{"model.layers.0.self_attn.q_proj", {24, 24, 2}, 5},
                {"model.layers.1.self_attn.q_proj", {24, 24, 3}, 5},
                {"model.layers.1.self_attn.v_proj", {8, 24, 3}, 9},
                {"model.layers.0.mlp.up_proj", {64, 24, 4}, 0.1}};
    expect(FROM "published -o @/own --set lora.rank=3 --set lora.alpha=5 --set optim.lr=0.05 --set "
                "lora.targets=[q_proj,v_proj,up_proj] --set "
                "lora.rank_pattern=[\"*.0.self_attn.q_proj=2\",up_proj=4,q_proj=3] --set "
                "lora.alpha_pattern=[v_proj=9,mlp.up_proj=0.1]",
           0, NULL);
    expect("export @/own --to peft -o @/own-peft", 0, NULL);
    expect("export @/own --to gguf -o @/own.gguf", 0, NULL);
    expect("export @/own --to safetensors --merge -o @/own-merged", 0, NULL);
    size_t n = 0;
    char *text = read_file("own-peft/adapter_config.json", &n);
    assert_output_has(text, "\"model.layers.0.self_attn.q_proj\": 2");
    assert_output_has(text, "\"up_proj\": 0.1");
    free(text);
    ls_safetensors base = open_weights("published/model.safetensors");
    ls_safetensors merged = open_weights("own-merged/model.safetensors");
    ls_safetensors peft = open_weights("own-peft/adapter_model.safetensors");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const float *of[4];
        for (int k = 0; k < 4; k++) {
            char *name =
                k < 2 ? ls_format("base_model.model.%s.lora_%c.weight", want[i].layer, "AB"[k])
                      : ls_format("%s.weight", want[i].layer);
            const ls_tensor *t = ls_safetensors_find(k < 2    ? &peft
                                                     : k == 2 ? &base
                                                              : &merged,
                                                     name);
            assert_non_null(t);
            if (k < 2) assert_int_equal(t->dims[k], want[i].sizes[2]);
            of[k] = (const float *)t->data;
            free(name);
        }
        check_merged(of[2], of[3], of[0], of[1], want[i].sizes,
                     want[i].alpha / (double)want[i].sizes[2]);
    }
    ls_safetensors_close(&base);
    ls_safetensors_close(&merged);
    ls_safetensors_close(&peft);
    begins("published", "own-peft", "own-merged", 0);
    shellf("rm -r %s/begun-own-peft %s/own-peft-as-it-is", folder, folder);
    begins("published", "own.gguf", "own-merged", 1e-7);
    expect(FROM "published -o @/none --set lora.rank=3 --set lora.rank_pattern=[up_proj=2]", 1,
           "lora.rank_pattern: 'up_proj=2' matches no layer with an adapter (lora.targets)");
    expect(FROM "published -o @/none --set lora.rank=3 --set lora.rank_pattern=[q_proj=1.5]", 1,
           "lora.rank_pattern: 'q_proj=1.5' is not NAME=RANK, a whole number from 1 to 65536");
    expect(FROM "published -o @/none --set lora.rank=3 --set lora.alpha_pattern=[q_proj]", 1,
           "lora.alpha_pattern: 'q_proj' is not NAME=ALPHA, 1e-6 to 1e6");
    assert_false(file_exists("none"));
}

/* Layers that the config does not name are those of which the file has adapters. */
static void test_by_file(void **state) {
    (void)state;
    static const char *const layers[] = {
        "\"(?:.*?(?:self_attn).*?(?:q_proj).*?)|(?:\\\\bmodel.*(?:v|up)_proj)\"",
        "[\"q_proj\", \"v_proj\", \"up_proj\"], \"layers_to_transform\": [0, 1]",
        "\"all-linear\", \"exclude_modules\": \".*(k|o|gate|down)_proj\""};
    static const char begin[] = "{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 5, ";
    ls_error e = {0};
    char *path = ls_format("%s/own-peft/adapter_config.json", folder);
    for (int i = 0; i < 3; i++) {
        char *text = ls_format("%s\"rank_pattern\": {\"0.self_attn.q_proj\": 2, \"up_proj\": 4}, "
                               "\"alpha_pattern\": {\"v_proj\": 9, \"up_proj\": 0.1}, "
                               "\"target_modules\": %s}",
                               begin, layers[i]);
        assert_ls_ok(ls_file_replace(path, text, strlen(text), &e), e);
        begins("published", "own-peft", "own-merged", 0);
        shellf("rm -r %s/begun-own-peft %s/own-peft-as-it-is", folder, folder);
        free(text);
    }
    free(path);
}

/* Phi-3's files have one tensor of q, k and v, and one of gate and up: so have its adapters, and
 * with the patterns of peft and GGUF's alpha / rank they are those of the merged model. */
static void test_joined(void **state) {
    (void)state;
    static const struct {
        const char *layer, *gguf;
        int64_t sizes[3]; /* rows, width, rank */
        double scale;     /* alpha_pattern / rank_pattern */
    } want[] = {{"model.layers.0.self_attn.qkv_proj", "blk.0.attn_qkv", {40, 24, 9}, 15.0 / 9},
                {"model.layers.1.self_attn.qkv_proj", "blk.1.attn_qkv", {40, 24, 9}, 15.0 / 9},
                {"model.layers.1.mlp.gate_up_proj", "blk.1.ffn_up", {128, 24, 6}, 10.0 / 6},
                {"model.layers.0.self_attn.o_proj", "blk.0.attn_output", {24, 24, 3}, 5.0 / 3}};
    expect(TRAIN "-o @/phi --set model.rope_dims=2", 0, NULL);
    expect("export @/phi --to safetensors -o @/phi-base", 0, NULL);
    expect(FROM "phi-base -o @/tuned --set lora.rank=3 --set lora.alpha=5 --set optim.lr=0.05 "
                "--set lora.targets=[q_proj,v_proj,o_proj,layers.1.mlp.up_proj]",
           0, NULL);
    expect("export @/tuned --to peft -o @/phi-peft", 0, NULL);
    expect("export @/tuned --to gguf -o @/phi.gguf", 0, "in 10 tensors, for the base model");
    expect("export @/tuned --to safetensors --merge -o @/phi-merged", 0, NULL);
    ls_safetensors base = open_weights("phi-base/model.safetensors");
    ls_safetensors merged = open_weights("phi-merged/model.safetensors");
    ls_safetensors peft = open_weights("phi-peft/adapter_model.safetensors");
    ls_error e = {0};
    char *path = ls_format("%s/phi.gguf", folder);
    assert_ls_ok(ls_gguf_open(path, &file, &e), e);
    free(path);
    assert_int_equal(peft.n, 10);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char *weight = ls_format("%s.weight", want[i].layer), *names[2];
        const float *x = (const float *)ls_safetensors_find(&base, weight)->data, *of[2];
        const float *y = (const float *)ls_safetensors_find(&merged, weight)->data;
        for (int k = 0; k < 2; k++) {
            names[0] = ls_format("base_model.model.%s.lora_%c.weight", want[i].layer, "AB"[k]);
            names[1] = ls_format("%s.weight.lora_%c", want[i].gguf, "ab"[k]);
            const ls_tensor *t = ls_safetensors_find(&peft, names[0]);
            const ls_gguf_tensor *g = ls_gguf_find_tensor(&file, names[1]);
            assert_true(t && g && g->count == (int64_t)t->count);
            assert_int_equal(t->dims[0], want[i].sizes[k ? 0 : 2]);
            of[k] = (const float *)t->data;
            free(names[0]), free(names[1]);
        }
        check_merged(x, y, of[0], of[1], want[i].sizes, want[i].scale);
        names[0] = ls_format("%s.weight.lora_a", want[i].gguf);
        names[1] = ls_format("%s.weight.lora_b", want[i].gguf);
        of[0] = (const float *)(const void *)ls_gguf_find_tensor(&file, names[0])->data;
        of[1] = (const float *)(const void *)ls_gguf_find_tensor(&file, names[1])->data;
        check_merged(x, y, of[0], of[1], want[i].sizes, 5 / (double)want[i].sizes[2]);
        free(names[0]), free(names[1]), free(weight);
    }
    ls_gguf_close(&file);
    ls_safetensors_close(&base);
    ls_safetensors_close(&merged);
    ls_safetensors_close(&peft);
    begins("phi-base", "phi-peft", "phi-merged", 0);
    begins("phi-base", "phi.gguf", "phi-merged", 1e-7);
    expect(FROM "phi-base -o @/parts --set lora.rank=3 --set lora.rank_pattern=[q_proj=2]", 0,
           NULL);
    expect("export @/parts --to peft -o @/none", 1,
           "v_proj has another rank or alpha than the layers with which it is one in files of its "
           "model; use --merge");
    expect(FROM "phi-base -o @/dora-phi --set lora.rank=2 --set lora.dora=on", 0, NULL);
    expect("export @/dora-phi --to peft -o @/none", 1,
           "q_proj is a part of model.layers.0.self_attn.qkv_proj.weight in models of the family "
           "phi3, for whose DoRA adapters there is no form: use --merge");
    assert_false(file_exists("none"));
}

/* Adapters of the joined matrices alone, as peft makes them: q, k and v have one A. A step of no
 * size leaves them as they are. */
static void test_joined_read(void **state) {
    (void)state;
    static const char config[] = "{\"peft_type\": \"LORA\", \"r\": 9, \"lora_alpha\": 15, "
                                 "\"target_modules\": [\"self_attn.qkv_proj\"]}";
    static const char layer[] = "model.layers.1.self_attn.qkv_proj.weight";
    ls_error e = {0};
    char *path = ls_format("%s/qkv-peft/adapter_config.json", folder);
    expect(FROM "phi-base -o @/qkv --set lora.rank=3 --set lora.alpha=5 --set optim.lr=0.05 --set "
                "lora.targets=[q_proj,k_proj,v_proj]",
           0, NULL);
    expect("export @/qkv --to safetensors --merge -o @/qkv-merged", 0, NULL);
    expect("export @/qkv --to peft -o @/qkv-peft", 0, NULL);
    assert_ls_ok(ls_file_replace(path, config, sizeof config - 1, &e), e);
    free(path);
    expect(FROM "phi-base -o @/of-peft --set optim.lr=0 --set optim.min_lr=0 --set "
                "model.adapter=@/qkv-peft",
           0, NULL);
    expect("export @/of-peft --to safetensors --merge -o @/of-peft-merged", 0, NULL);
    ls_safetensors base = open_weights("phi-base/model.safetensors");
    ls_safetensors want = open_weights("qkv-merged/model.safetensors");
    ls_safetensors got = open_weights("of-peft-merged/model.safetensors");
    const ls_tensor *a = ls_safetensors_find(&want, layer), *b = ls_safetensors_find(&got, layer);
    assert_memory_equal(a->data, b->data, ls_tensor_nbytes(a));
    assert_memory_not_equal(a->data, ls_safetensors_find(&base, layer)->data, ls_tensor_nbytes(a));
    ls_safetensors_close(&base);
    ls_safetensors_close(&want);
    ls_safetensors_close(&got);
}

/* A Phi-4 is a Llama but for the form of its files: what begins with one stays one. */
static void test_family(void **state) {
    (void)state;
    static const char half[] = "\"partial_rotary_factor\": 0.5";
    ls_error e = {0};
    ls_buf text = {0};
    char *path = ls_format("%s/phi-base/config.json", folder), *at;
    assert_ls_ok(ls_file_read(path, 1 << 16, &text, &e), e);
    while ((at = strstr(text.data, half))) memcpy(at + sizeof half - 4, "1.0", 3);
    assert_ls_ok(ls_file_replace(path, text.data, text.len, &e), e);
    expect(FROM "phi-base -o @/phi4", 0, NULL);
    expect("export @/phi4 --to gguf -o @/phi4.gguf", 0, NULL);
    expect("weights @/phi4.gguf", 0, "phi3: 2 layers");
    expect("import @/phi4.gguf -o @/phi4-again", 0, NULL);
    char hash[256];
    hash_of("phi4", hash);
    *strchr(hash, '\n') = 0;
    expect("export @/phi4-again --to safetensors -o @/phi4-safe", 0, hash + strlen("weights "));
    ls_buf_free(&text);
    free(path);
}

static void test_refused(void **state) {
    (void)state;
    expect("export @/run --to gguf -o @/adapter.gguf", 1, "exists; give the name of a new file");
    expect("export @/run --to gguf -o @/none.gguf --type q8_0", 1, "leave --type out");
    expect("export @/run --to gguf -o @/none.gguf --ema", 1, "has no average of the weights");
    expect("export @/run --to gguf -o @/adapter.gguf/none.gguf", 1, "/adapter.gguf/none.gguf");
    expect("export @/missing --to gguf -o @/none.gguf", 1, "/missing: does not exist");
    expect(TRAIN "-o @/dora --set lora.rank=2 --set lora.dora=on", 0, NULL);
    expect("export @/dora --to gguf -o @/none.gguf", 1, "for which GGUF has no form: use --merge");
    expect(TRAIN "-o @/whole --set lora.rank=2 --set lora.train=embed_tokens", 0, NULL);
    expect("export @/whole --to gguf -o @/none.gguf", 1,
           "model.embed_tokens.weight is trained as a whole");
    assert_false(file_exists("none.gguf"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),     cmocka_unit_test(test_read),
        cmocka_unit_test(test_patterns), cmocka_unit_test(test_by_file),
        cmocka_unit_test(test_joined),   cmocka_unit_test(test_joined_read),
        cmocka_unit_test(test_family),   cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
