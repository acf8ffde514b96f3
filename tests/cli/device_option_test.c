/* device_option_test.c - generate, chat, eval and predict with --device write the bytes that cores
 * give: on device `c`, whose copies and kernels run late, and on `cuda` with a driver made for
 * tests (fake_cuda.c). */
/* ctest: slow seconds=10 */
/* The program is this test, with arguments: the driver needs functions that it exports. */
#undef LOCKSTEP_PROGRAM
#define LOCKSTEP_PROGRAM "/proc/self/exe"
#include "cli/cli.h"
#include "cli/models.h"
#include "device/drivers.h"

/* ---- commands on both ---- */

/* A command prints the same with and without each of these devices. */
static void same_on(const char *const *devices, const char *line) {
    char *want = output_of("%s", line);
    for (int i = 0; devices[i]; i++) {
        char *got = output_of("%s --device %s", line, devices[i]);
        if (strcmp(got, want) != 0)
            fail_msg("lockstep %s --device %s\n%s\nnot:\n%s", line, devices[i], got, want);
        free(got);
    }
    free(want);
}

static void same(const char *line) {
    same_on((const char *const[]){"c:7", all_cases() ? "cuda:0" : NULL, NULL}, line);
}
static void same_on_both(const char *line) {
    same_on((const char *const[]){"c:7", "cuda:0", NULL}, line);
}

/* The same of a command that reads this input. */
static void same_of_input(const char *line, const char *input) {
    char *outputs[3] = {0};
    static const char *const devices[] = {"", "--device c:3", "--device cuda"};
    for (int i = 0; i < 3; i++) {
        char *whole = ls_format("%s %s", line, devices[i]);
        outputs[i] = output_with_input(whole, input, 0);
        free(whole);
        assert_string_equal(outputs[i], outputs[0]);
    }
    for (int i = 0; i < 3; i++) free(outputs[i]);
}

static int make(void **state) {
    if (models_make(state)) return -1;
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC ":" FAKE_NCCL, 1);
    write_text("prompts", "the license\nof\nYou may reproduce and distribute copies of the Work\n");
    write_text("some", "The work of others, as it is said in the license, is the work of others; a "
                       "copy of it is a copy, and not the work.");
    return 0;
}

/* ---- runs on a text ---- */

#define TINY                                                                                       \
    "train configs/tiny.yaml -n 1 --set model.context=8 --set train.steps=4 --set "                \
    "optim.warmup=1 "                                                                              \
    "--set train.eval_every=0 --set log.every=1000 --set data.val_fraction=0.01 "
#define LLAMA                                                                                      \
    TINY "--set model.kind=llama --set model.heads=6 --set model.kv_heads=2 --set model.width=24 "

/* Texts that are longer than the context, one token after the other, and prompts that are. */
static void same_texts(const char *run) {
    char *line = ls_format("generate @/%s --tokens 14 --temperature 0 --prompt The", run);
    same(line);
    free(line);
    line = ls_format("generate @/%s --tokens 7 --seed 5 --prompts @/prompts --json", run);
    same(line);
    free(line);
}

static void same_losses(const char *run) {
    char *line = ls_format("eval @/%s --json", run);
    same(line);
    free(line);
    line = ls_format("predict @/%s @/prompts --top 3", run);
    same(line);
    free(line);
}

static void test_gpt(void **state) {
    (void)state;
    expect(TINY "-o @/gpt", 0, "validation loss");
    same_texts("gpt");
    same_losses("gpt");
    same_on_both("generate @/gpt --prompts @/prompts --tokens 3 --temperature 2");
    same_on_both("eval @/gpt --data @/some");
    same("predict @/gpt @/prompts --vectors -n 2");
    same("eval @/gpt @/gpt --data @/some");
}

/* Grouped heads, windows, and a head of its own. */
static void test_llama(void **state) {
    (void)state;
    expect(LLAMA "-o @/llama", 0, "validation loss");
    same_texts("llama");
    same_losses("llama");
    expect(LLAMA "--set model.no_rope_every=2 --set model.window=5 --set model.head=own --set "
                 "model.qk_norm=on --set "
                 "model.bias=all -o @/window",
           0, "validation loss");
    same_texts("window");
    same("predict @/window @/prompts --vectors --json");
    expect(LLAMA "--set model.window=5 --set model.full_attention_every=2 --set "
                 "model.block=gemma3 --set model.qk_norm=on --set model.query_scalar=20 -o @/gemma",
           0, "validation loss");
    same_texts("gemma");
    same_losses("gemma");
}

/* Mixtures of experts: with a capacity, which acts in training alone, and with a bias. */
static void test_experts(void **state) {
    (void)state;
    expect(LLAMA "--set model.experts=4 --set model.ffn=20 --set model.expert_capacity=1 -o "
                 "@/experts",
           0, "validation loss");
    same_texts("experts");
    same_losses("experts");
    expect(LLAMA "--set model.experts=5 --set model.ffn=20 --set model.router_bias_rate=0.1 --set "
                 "model.shared_experts=1 --set train.compute=bf16 -o @/biases",
           0, "validation loss");
    same_texts("biases");
    same_losses("biases");
    expect("export @/experts --to safetensors -o @/published", 0, "");
    expect("import @/published -o @/half-experts --type bf16", 0, "hash");
    same("generate @/half-experts --tokens 5 --prompt be --seed 2");
}

/* Adapters over frozen weights, and the average of weights. */
static void test_adapters(void **state) {
    (void)state;
    expect(LLAMA "--set lora.rank=4 --set lora.dora=on --set lora.targets=all-linear --set "
                 "optim.ema=0.9 -o @/lora",
           0, "validation loss");
    same_texts("lora");
    same("generate @/lora --ema --tokens 5 --prompt of");
    same("eval @/lora --ema");
}

/* Models in 16 bits, which the device has in f32. */
static void test_halves(void **state) {
    (void)state;
    expect(TINY "--set train.compute=bf16 -o @/half", 0, "validation loss");
    same_texts("half");
    same_losses("half");
    expect(LLAMA "--set train.compute=bf16 -o @/half-llama", 0, "validation loss");
    same_texts("half-llama");
    same("predict @/half-llama @/prompts --vectors --json");
    if (!all_cases()) return;
    same_losses("half-llama");
    expect(LLAMA "--set train.compute=f16 -o @/half-f16", 0, "validation loss");
    same_texts("half-f16");
}

/* ---- published models ---- */

/* Frozen weights of several types are sent in f32; in strips on cores alone. */
static void test_published(void **state) {
    static const char *const types[] = {"q8_0", "q4_1", "bf16"};
    (void)state;
    for (int i = 0; i < ncases(1, 3); i++) {
        small_write_whole(&small_models[i == 2 ? SMALL_GPT2 : i], gguf);
        expectf(0, "hash", "import @/m.gguf -o @/%s --type %s", types[i], types[i]);
        char *line = ls_format("generate @/%s --tokens 9 --prompt be --seed 2", types[i]);
        same(line);
        free(line);
        line = ls_format("eval @/%s --data @/some --set model.context=32", types[i]);
        same(line);
        free(line);
    }
    expect("eval @/q8_0 --data @/some --set infer.activations=int8 --device c", 1,
           "device c: does not know infer.activations: int8");
}

/* What a conversation has so far is kept on the device. */
static void test_chat(void **state) {
    (void)state;
    small_write_whole(&small_models[0], gguf);
    same_of_input("chat @/m.gguf --tokens 3 --json", "to\nbe\n/reset\nor\nnot\n");
}

static const char PAIRS[] =
    "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"chosen\": [{\"role\": "
    "\"assistant\", \"content\": \"bcd\"}], \"rejected\": [{\"role\": \"assistant\", \"content\": "
    "\"e\"}]}\n";
static const char CHATS[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a?\"}, {\"role\": \"assistant\", "
    "\"content\": \"yes\"}]}\n"
    "{\"messages\": [{\"role\": \"user\", \"content\": \"b or c?\"}, {\"role\": \"assistant\", "
    "\"content\": \"b\"}]}\n";

/* Samples are shortened to the longest; pairs need a reference, which is computed there, too. */
static void test_conversations(void **state) {
    (void)state;
    write_text("pairs.jsonl", PAIRS);
    write_text("chats.jsonl", CHATS);
    write_text("chat.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"
               "{% if add_generation_prompt %}<assistant>{% endif %}");
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    same("eval @/a --chat @/chats.jsonl --set model.context=46 --set data.template=@/chat.jinja");
    same_on((const char *const[]){"c:4", NULL},
            "eval @/a --chat @/pairs.jsonl --reference @/a --set model.context=46 --set "
            "data.template=@/chat.jinja");
}

/* ---- samples ---- */

enum { SIDE = 8, CLASSES = 5 };

static void write_images(const char *which, int n) {
    const unsigned char head[] = {0, 0, 8, 3,    0, 0, 0, (unsigned char)n,
                                  0, 0, 0, SIDE, 0, 0, 0, SIDE};
    const unsigned char labels_head[] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    char *images = ls_format("%s-images-idx3-ubyte", which);
    char *labels = ls_format("%s-labels-idx1-ubyte", which);
    ls_buf b = {0}, c = {0};
    ls_buf_append(&b, head, sizeof head);
    ls_buf_append(&c, labels_head, sizeof labels_head);
    for (int i = 0; i < n * SIDE * SIDE; i++)
        ls_buf_append(&b, &(unsigned char){(unsigned char)(i * i / 7 * 31 & 255)}, 1);
    for (int i = 0; i < n; i++)
        ls_buf_append(&c, &(unsigned char){(unsigned char)(i % CLASSES)}, 1);
    write_file(images, b.data, b.len);
    write_file(labels, c.data, c.len);
    ls_buf_free(&b);
    ls_buf_free(&c);
    free(images);
    free(labels);
}

static const char *const networks[] = {
    "{kind: mlp, hidden: [20, 12], metrics: [top: 2, confusion]}",
    "{kind: cnn, channels: [4, 6], norm: batch}",
    "{kind: resnet, channels: [4, 8], blocks: 1}",
    "{kind: vit, patch: 4, width: 12, heads: 2, layers: 1}",
};
static const char scaled[] = "{kind: layers, layers: [mean_pool, linear: 5, scale]}";
static const char images[] = "model: %s\n"
                             "data:\n"
                             "  path: %s/train-images-idx3-ubyte\n"
                             "  labels: %s/train-labels-idx1-ubyte\n"
                             "  val_path: %s/val-images-idx3-ubyte\n"
                             "  val_labels: %s/val-labels-idx1-ubyte\n"
                             "train: {steps: 3, batch: 6, virtual_workers: 3}\n"
                             "log: {every: 1000}\n"
                             "optim: {warmup: 0}\n";

/* More samples than cores evaluate at once. */
static void test_images(void **state) {
    (void)state;
    write_images("train", 40);
    write_images("val", 75);
    for (int i = 0; i < ncases(2, 4); i++) {
        char *text = ls_format(images, networks[i], folder, folder, folder, folder), *line = NULL;
        write_text("images.yaml", text);
        expectf(0, "validation", "train @/images.yaml -n 1 -o @/images%d", i);
        line = ls_format("eval @/images%d --json", i);
        same(line);
        free(line);
        line = ls_format("predict @/images%d --top 2", i);
        same(line);
        free(line);
        free(text);
    }
    same_on_both("predict @/images1 @/train-images-idx3-ubyte --vectors -n 3");
    same("predict @/images0 @/train-images-idx3-ubyte --logits --json");
}

#define RECOMMENDER(model)                                                                         \
    "model: {kind: " model ", width: 8, loss: {bpr: {target: clicked}}, metrics: [hr: 10, "        \
    "ndcg: {k: 10, candidates: 20}]}\n"                                                            \
    "data: {path: ratings.csv, ratings: {user: u, item: i, rating: r, time: t, at_least: 2, "      \
    "negatives: 3, split: leave_one_out}}\n"                                                       \
    "train: {steps: 10, batch: 32, virtual_workers: 4}\n"                                          \
    "log: {every: 1000}\n"                                                                         \
    "optim: {warmup: 0}\n"

/* Ranks of items, scores of pairs, and recommendations. */
static void test_recommenders(void **state) {
    ls_buf b = {0};
    (void)state;
    ls_buf_printf(&b, "u,i,r,t\n");
    for (int u = 0; u < 20; u++)
        for (int k = 0; k < 9; k++)
            ls_buf_printf(&b, "u%d,%d,%d,%d\n", u, u % 3 + 3 * ((7 * u + 11 * k) % 10),
                          1 + (u + k) % 5, 100 * k + u);
    write_file("ratings.csv", b.data, b.len);
    ls_buf_free(&b);
    write_text("factors.yaml", RECOMMENDER("factors"));
    write_text("towers.yaml", RECOMMENDER("two_towers, hidden: [16, 8]"));
    for (int i = 0; i < ncases(1, 2); i++) {
        const char *name = i ? "towers" : "factors";
        char *line = ls_format("eval @/%s", name);
        expectf(0, "ndcg", "train @/%s.yaml -n 1 -o @/%s --set data.path=@/ratings.csv", name,
                name);
        same(line);
        free(line);
        line = ls_format("predict @/%s --top 4", name);
        same(line);
        free(line);
    }
    same("predict @/factors @/ratings.csv");
    same("predict @/factors --similar 3 --similar 4 --json");
}

/* ---- measuring ---- */

static void test_bench(void **state) {
    (void)state;
    small_write_whole(&small_models[0], gguf);
    expect("bench generate configs/tiny.yaml --device c --tokens 2 --prompt 4 --set "
           "train.compute=bf16",
           0, "parameters in bf16, device ");
    expect("bench generate @/m.gguf --device c --tokens 2 --prompt 4 --json", 0, "\"device\": ");
    expect_line("bench generate configs/tiny.yaml --device tpu", 1, "device tpu: not known");
}

/* ---- what is refused, in one line ---- */

/* A worker whose device is lost is replaced: by a process that can use it again, or never. */
static void test_lost(void **state) {
    (void)state;
    char *once = ls_format("%s/once", folder);
    expect(TINY "-o @/kept", 0, NULL);
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:719", 1);
    expect(TINY "-o @/never --device cuda", 1, "given up after 3 views without a complete step");
    setenv("FAKE_CUDA_FAIL_ONCE", once, 1);
    write_text("once", "");
    expect(TINY "-o @/replaced --device cuda", 0,
           "view 1: device cuda:0 (Fake H100 0) is lost: embedding: ");
    unsetenv("FAKE_CUDA_FAIL"), unsetenv("FAKE_CUDA_FAIL_ONCE");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "optimizer" : "model";
        shellf("cmp %s/kept/checkpoints/step-4/%s.safetensors "
               "%s/replaced/checkpoints/step-4/%s.safetensors",
               folder, name, folder, name);
    }
    free(once);
}

static void test_refused(void **state) {
    (void)state;
    expect(TINY "-o @/plain", 0, "validation loss");
    expect_line("eval @/plain --device tpu", 1,
                "device tpu: not known; devices are c, opencl and cuda, with a number as in cuda:1 "
                "where there are several, or auto");
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    expect_line("eval @/plain --device cuda:7", 1, "device cuda:7: the highest is cuda:1");
    setenv("FAKE_CUDA_MEMORY", "100000", 1);
    expect("generate @/plain --device cuda", 1, "device cuda:0 (Fake H100 0) has no room for ");
    unsetenv("FAKE_CUDA_MEMORY");
    unsetenv("FAKE_CUDA_DEVICES");
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:700", 1);
    expect("generate @/plain --device cuda --prompt a", 1, "is lost: embedding: ");
    expect_line("eval @/plain --device cuda", 1, "is lost: embedding: ");
    expect_line("predict @/plain @/prompts --device cuda", 1, "is lost: embedding: ");
    setenv("FAKE_CUDA_FAIL", "cuMemHostRegister:801", 1); /* slower, and no reason to fail */
    expect("bench machine --device cuda --small --rounds 1 --json", 0,
           "\"pinned_to_bytes_per_s\": ");
    unsetenv("FAKE_CUDA_FAIL");
    setenv("LD_LIBRARY_PATH", "", 1);
    expect_line("predict @/plain @/prompts --device cuda:0", 1, "needs an NVIDIA GPU");
    setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC ":" FAKE_NCCL, 1);
    write_images("train", 8);
    write_images("val", 8);
    char *text = ls_format(images, scaled, folder, folder, folder, folder);
    write_text("images.yaml", text);
    free(text);
    expect("train @/images.yaml -n 1 -o @/scaled", 0, "validation");
    expect_line("predict @/scaled --device c", 1,
                "(scale) has no kernels for a device; leave --device out");
    expect_line("train @/images.yaml -n 1 --device c -o @/there", 1,
                "parallel.device: layer scale (scale) has no kernels for a device");
}

/* The device that is there; a run that was trained on one is evaluated by cores. */
static void test_auto(void **state) {
    (void)state;
    expect(TINY "--device c --set train.steps=1 --set optim.warmup=0 -o @/there", 0,
           "validation loss");
    expect("eval @/there --device auto", 0, "device auto: cuda runs the layers");
    same("eval @/there");
}

/* Its compiler takes minutes, once. */
static void test_opencl(void **state) {
    (void)state;
    ls_device_close(opencl_or_skip());
    expect(TINY "-o @/opencl", 0, "validation loss");
    same_on((const char *const[]){"opencl:0", NULL}, "generate @/opencl --tokens 20");
    same_on((const char *const[]){"opencl:0", NULL}, "eval @/opencl");
    same_on((const char *const[]){"opencl:0", NULL}, "predict @/opencl @/prompts");
}

int main(int argc, char **argv) {
    static const ls_command *const commands[] = {&cmd_train,    &cmd_eval,  &cmd_predict,
                                                 &cmd_generate, &cmd_chat,  &cmd_import,
                                                 &cmd_export,   &cmd_bench, NULL};
    if (argc > 1) return cli_main(argc, argv, commands);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),     cmocka_unit_test(test_llama),
        cmocka_unit_test(test_experts), cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_halves),  cmocka_unit_test(test_published),
        cmocka_unit_test(test_chat),    cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_images),  cmocka_unit_test(test_recommenders),
        cmocka_unit_test(test_lost),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_auto),    slow_unit_test(test_opencl),
        cmocka_unit_test(test_bench),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
