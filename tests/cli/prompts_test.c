/* prompts_test.c - what a model writes while it trains (train.sample_prompts): the texts of
 * `generate` and `chat`, the same for any layout, after kills and when a run is resumed; the run
 * stays as it is. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: infer/infer, chat and cli/chat run the same code */
#include "cli/hosts.h"
#include "cli/models.h"

#define PROMPTS                                                                                    \
    "--set train.sample_prompts=[The,you] --set train.sample_file=@/prompts "                      \
    "--set train.sample_tokens=9 --set train.sample_temperature=0.8 "
#define TINY                                                                                       \
    "train configs/tiny.yaml " SMALL_MODEL                                                         \
    "--set model.layers=1 --set train.steps=20 --set train.eval_every=5 "                          \
    "--set survival.balance=off --set checkpoint.every=10 --set log.every=1000 "

static int make(void **state) {
    if (models_make(state)) return -1;
    write_text("prompts", "the license\r\n\nof\n");
    write_text("all", "The\nyou\nthe license\nof\n");
    return 0;
}

static void train(const char *run, const char *options) {
    char *line = ls_format(TINY "-o @/%s %s", run, options);
    expect(line, 0, "validation loss");
    free(line);
}

static void has_samples_of(const char *run, const char *of) {
    char *a = ls_format("%s/samples.jsonl", run), *b = ls_format("%s/samples.jsonl", of);
    same_files(a, b);
    free(a), free(b);
}

/* The texts of the last step are those that the finished run writes. */
static void writes_samples_of(const char *run, const char *options) {
    size_t n = 0;
    char *line = ls_format("generate @/%s --prompts @/all --tokens 9 --json %s", run, options);
    char *path = ls_format("%s/samples.jsonl", run), *samples = read_file(path, &n), *output = NULL;
    output = output_of("%s", line);
    char *last = strstr(samples, "{\"step\": 20, ");
    assert_non_null(last);
    assert_int_equal(occurrences(samples, "{\"step\": "), 16);
    assert_int_equal(occurrences(last, "{\"step\": 20, "), 4);
    for (char *want = output, *got = last, *end; *want; want = end + 1) {
        end = strchr(want, '\n');
        got = strstr(got, "\"prompt\"");
        size_t length = (size_t)(end - want) - 1;
        if (!got || strncmp(want + 1, got, length) != 0) fail_msg("%s\n%s", want, got);
        got += length;
    }
    free(line), free(path), free(samples), free(output);
}

static void test_layouts(void **state) {
    static const char *const layouts[] = {
        "-n 2 --set parallel.zero=1", "-n 3 --set parallel.zero=3",
        "-n 5 --set parallel.zero=2 --set parallel.transport=thread",
        "-n 1 --set parallel.threads=2",
        "-n 2 --set parallel.executor=sequential --set parallel.transport=thread"};
    (void)state;
    train("plain", "-n 1");
    assert_false(file_exists("plain/samples.jsonl"));
    train("one", "-n 1 " PROMPTS);
    same_hash("one", "plain");
    writes_samples_of("one", "--temperature 0.8");
    for (int i = 0; i < (int)(sizeof layouts / sizeof *layouts); i++) {
        char *run = ls_format("layout%d", i), *options = ls_format(PROMPTS "%s", layouts[i]);
        train(run, options);
        same_hash(run, "one");
        has_samples_of(run, "one");
        free(run), free(options);
    }
    train("half", "-n 2 --set train.compute=bf16 --set parallel.zero=3 " PROMPTS);
    writes_samples_of("half", "--temperature 0.8");
    train("average", "-n 2 --set optim.ema=0.9 --set train.eval_weights=ema " PROMPTS);
    writes_samples_of("average", "--temperature 0.8 --ema");
    /* matrices that stay whole have other places than the model of the texts gives them */
    train("whole", "-n 2 --set optim.optimizer=muon " PROMPTS);
    writes_samples_of("whole", "--temperature 0.8");
    train("factors", "-n 2 --set compress.kind=powersgd --set compress.min_size=0 " PROMPTS);
    writes_samples_of("factors", "--temperature 0.8");
    train("likeliest", "-n 2 " PROMPTS "--set train.sample_temperature=0");
    writes_samples_of("likeliest", "--temperature 0");
}

static void test_killed(void **state) {
    (void)state;
    pace("killed", 12);
    host h = host_start(TINY "-n 3 --set parallel.zero=3 -o @/killed " PROMPTS);
    await_step("killed", 12, &h);
    host_kill_children(&h, 2);
    let_go("killed");
    host_expect(&h, 0, "was killed");
    same_hash("killed", "one");
    has_samples_of("killed", "one");
}

/* Lines of steps that are repeated, and a torn one, are cut off. */
static void test_resumed(void **state) {
    (void)state;
    pace("again", 16);
    host h = host_start(TINY "-n 2 -o @/again " PROMPTS);
    await_step("again", 16, &h);
    wait_for_file("again/checkpoints/step-10/manifest.json");
    assert_int_equal(kill(h.pid, SIGKILL), 0);
    host_expect(&h, 128 + SIGKILL, NULL);
    let_go("again");
    shell_of_run("again", "printf '{\"step\": 3' >> $r/samples.jsonl && test $(wc -l < "
                          "$r/samples.jsonl) = 12");
    expect(TINY "-n 1 -o @/again --resume " PROMPTS, 0, "continuing from");
    same_hash("again", "one");
    has_samples_of("again", "one");
}

#define CHAT                                                                                       \
    "train @/chat.yaml --set model.from=@/a --set data.path=@/chats.jsonl "                        \
    "--set data.template=@/chat.jinja "

static void write_chats(void) {
    ls_buf chats = {0};
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    for (int i = 0; i < 24; i++)
        ls_buf_printf(&chats,
                      "{\"prompt\": [{\"role\": \"user\", \"content\": \"%d?\"}], "
                      "\"completion\": [{\"role\": \"assistant\", \"content\": \"yes\"}]}\n",
                      i);
    write_file("chats.jsonl", chats.data, chats.len);
    ls_buf_free(&chats);
    write_text("chat.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"
               "{% if add_generation_prompt %}<assistant>{% endif %}");
    write_text("chat.yaml",
               "model: {context: 46}\ndata: {format: chat, val_fraction: 0.2, packing: on}\n"
               "train: {steps: 4, batch: 6, virtual_workers: 6, eval_every: 2, sample_tokens: 7, "
               "sample_prompts: [7?, <user>]}\noptim: {lr: 0.05, min_lr: 0, warmup: 0}\n");
}

/* The answer to `message` after step 4. */
static void chats_samples_of(const char *run, const char *message) {
    size_t n = 0;
    char *path = ls_format("%s/samples.jsonl", run), *samples = read_file(path, &n);
    char *input = ls_format("%s/input", folder), *output = NULL;
    char *line = ls_format("chat @/%s --temperature 0 --tokens 7 --json", run);
    char *text = ls_format("%s\n", message);
    write_text("input", text);
    int saved = dup(STDIN_FILENO), file = open(input, O_RDONLY);
    dup2(file, STDIN_FILENO);
    int code = run_program(line, &output);
    dup2(saved, STDIN_FILENO);
    close(saved), close(file);
    assert_int_equal(code, 0);
    char *said = strstr(output, "\"answer\": ") + strlen("\"answer\": ");
    said[strcspn(said, "}")] = 0;
    char *want = ls_format("{\"step\": 4, \"prompt\": \"%s\", \"text\": %s}", message, said);
    if (!strstr(samples, want)) fail_msg("%s\n%s", want, samples);
    free(path), free(samples), free(input), free(output), free(line), free(text), free(want);
}

static void test_chats(void **state) {
    (void)state;
    write_chats();
    expect(CHAT "-n 1 -o @/tuned", 0, "    > 7?\n");
    chats_samples_of("tuned", "7?");
    chats_samples_of("tuned", "<user>");
    expect(CHAT "-n 3 --set parallel.zero=3 -o @/tuned3", 0, NULL);
    has_samples_of("tuned3", "tuned");
    expect(CHAT "-n 1 --set lora.rank=4 --set lora.dora=on --set lora.dropout=0.2 -o @/lora", 0,
           NULL);
    chats_samples_of("lora", "7?");
    expect(CHAT "-n 2 --set lora.rank=4 --set lora.dora=on --set lora.dropout=0.2 --set "
                "parallel.zero=2 -o @/lora2",
           0, NULL);
    has_samples_of("lora2", "lora");
    expect(CHAT "-n 1 --set train.sample_prompts=[] -o @/without", 0, NULL);
    same_hash("without", "tuned");
    write_text("pairs.jsonl",
               "{\"prompt\": \"a?\", \"chosen\": \"yes\", \"rejected\": \"no\"}\n"
               "{\"prompt\": \"b?\", \"chosen\": \"yes\", \"rejected\": \"never\"}\n"
               "{\"prompt\": \"c?\", \"chosen\": \"yes\", \"rejected\": \"nothing\"}\n");
    expect("train @/chat.yaml --set model.from=@/a --set data.path=@/pairs.jsonl --set "
           "data.template=@/chat.jinja --set train.loss=dpo --set train.batch=2 --set "
           "train.virtual_workers=2 --set data.packing=off --set lora.rank=4 -n 2 -o @/pairs",
           0, NULL);
    chats_samples_of("pairs", "7?");
    expect("train @/chat.yaml --set train.from=@/tuned --set data.path=@/chats.jsonl --set "
           "model.kind=llama --set model.vocab=100 --set model.width=64 --set model.heads=4 --set "
           "model.kv_heads=2 --set model.head_dim=16 --set model.ffn=96 --set model.layers=2 --set "
           "model.rope_base=50000 -n 1 -o @/second",
           0, NULL); /* the template is that of the first run */
    chats_samples_of("second", "7?");
}

static void test_refused(void **state) {
    (void)state;
    write_text("long", "a text that is longer than thirty-two tokens of a tokenizer with three "
                       "hundred tokens, which has few words\n");
    write_file("binary", "a\0b\n", 4);
    expect_line(TINY "-n 2 -o @/bad --set train.sample_file=@/long", 1,
                "a prompt has at least one and leaves room for an answer in model.context");
    assert_false(file_exists("bad"));
    expect_line(TINY "-n 1 -o @/bad --set train.sample_file=@/missing", 1, "missing");
    expect_line(TINY "-n 1 -o @/bad --set train.sample_file=@/binary", 1,
                "binary: has a zero byte, so it is no text");
    write_text("rows.csv", "a,b\n1,2\n3,4\n");
    expect_line("train configs/tiny.yaml -n 1 -o @/bad --set data.path=@/rows.csv --set "
                "data.format=csv --set model.kind=mlp --set train.sample_prompts=[a]",
                1, "train.sample_prompts acts only with model.kind: gpt2, llama");
}

static bool plan_has(const char *options, const char *text) {
    char *line = ls_format("plan configs/tiny.yaml -n 1 --set train.micro_batch=1 %s", options);
    char *output = output_of("%s", line);
    bool has = strstr(output, text) != NULL;
    free(line), free(output);
    return has;
}

/* Keys and values that take more than the activations are counted. */
static void test_memory(void **state) {
    static const char row[] = "  keys and values               0.095  while it writes after";
    (void)state;
#define RECOMPUTED "--set parallel.recompute=4 "
    assert_true(plan_has(RECOMPUTED "--set train.sample_prompts=a", row));
    assert_true(plan_has(RECOMPUTED "--set train.sample_prompts=a --json", "\"writing\": 94976,"));
    assert_true(plan_has(RECOMPUTED "--json", "\"writing\": 0,"));
    assert_false(plan_has(RECOMPUTED, "keys and values"));
    assert_false(plan_has("--set train.micro_batch=2 --set train.sample_prompts=a", "keys and"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_killed),
        cmocka_unit_test(test_resumed), cmocka_unit_test(test_chats),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
