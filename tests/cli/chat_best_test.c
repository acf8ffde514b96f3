/* chat_best_test.c - a run on conversations ends when its validation loss no longer falls, and the
 * best checkpoint is used as any other: with a part of the file or a file of its own for
 * validation, with adapters, with an average of the weights, in any layout. */
/* ctest: busy seconds=20 */
/* ctest: long-asan: cli/chat runs the same code */
#include <math.h>

#include "cli/best.h"
#include "cli/models.h"

#define ENDS                                                                                       \
    "train @/chat.yaml --set model.from=@/a --set data.path=@/chats.jsonl --set "                  \
    "data.template=@/chat.jinja --set train.patience=2 "

/* In validation the answers to the same questions are others: what is learned by heart is wrong
 * there. */
static void write_chats(const char *name, int from, int n, const char *word) {
    ls_buf chats = {0};
    for (int i = from; i < from + n; i++)
        ls_buf_printf(&chats,
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"%d?\"}, {\"role\": "
                      "\"assistant\", \"content\": \"%s %d\"}]}\n",
                      i, word, i * 7919 % 1000);
    write_file(name, chats.data, chats.len);
    ls_buf_free(&chats);
}

static int make(void **state) {
    if (models_make(state)) return -1;
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    write_chats("chats.jsonl", 0, 24, "yes");
    write_chats("val.jsonl", 0, 6, "oh no");
    write_text("chat.jinja",
               "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"
               "{% if add_generation_prompt %}<assistant>{% endif %}");
    write_text("chat.yaml", "model: {context: 46}\ndata: {format: chat, val_fraction: 0.3}\n"
                            "train: {steps: 400, batch: 6, virtual_workers: 6, eval_every: 5}\n"
                            "optim: {lr: 0.03, min_lr: 0.01, warmup: 0}\n"
                            "checkpoint: {keep: 1}\nsurvival: {balance: off}\n");
    return 0;
}

static void trains(const char *run, const char *options) {
    char *line = ls_format(ENDS "-o @/%s %s", run, options);
    expect(line, 0, "stopped early after step ");
    free(line);
}

/* The run ended two evaluations after the best, whose checkpoint has the loss that was recorded. */
static void ends_well(const char *run, const char *eval) {
    char *output = NULL, *line = ls_format("eval @/%s/checkpoints/best %s", run, eval);
    double lowest = 0;
    int last = step_at(run, "latest"), best = step_at(run, "best");
    assert_int_equal(last, best + 10);
    assert_int_equal(lowest_of(run, last + 1, &lowest), best);
    output = output_of("%s", line);
    const char *at = strstr(output, " loss ");
    assert_non_null(at);
    double loss = strtod(at + strlen(" loss "), NULL);
    if (fabs(loss - lowest) > 1e-4) fail_msg("%s: %g at best, now %g", run, lowest, loss);
    free(output), free(line);
}

static void ended_the_same(const char *run, const char *as) {
    static const char *const links[] = {"best", "latest"};
    for (int i = 0; i < 2; i++) {
        char *x = ls_format("%s/checkpoints/%s", run, links[i]);
        char *y = ls_format("%s/checkpoints/%s", as, links[i]);
        assert_int_equal(step_at(run, links[i]), step_at(as, links[i]));
        same_hash(x, y);
        free(x), free(y);
    }
}

static void test_ends(void **state) {
    (void)state;
    trains("split", "-n 1");
    ends_well("split", "");
    trains("split3", "-n 3 --set parallel.zero=3");
    ended_the_same("split3", "split");
    trains("file", "-n 2 --set data.val_path=@/val.jsonl --set data.packing=on");
    ends_well("file", "");
    expect("generate @/file/checkpoints/best --prompt x --tokens 3", 0, "x");
    expect("chat @/file/checkpoints/best --tokens 3", 0, NULL);
    char *best = hash_after("export @/file/checkpoints/best --to gguf -o @/best.gguf", "\nhash ");
    char *run = hash_after("ckpt hash @/file/checkpoints/best", "weights ");
    assert_string_equal(best, run);
    free(best), free(run);
}

static void test_average(void **state) {
    static const char options[] = "--set data.val_path=@/val.jsonl --set optim.ema=0.8 --set "
                                  "train.eval_weights=ema ";
    (void)state;
    char *one = ls_format("-n 1 %s", options),
         *two = ls_format("-n 2 --set parallel.zero=2 %s", options);
    trains("average", one);
    ends_well("average", "--ema");
    trains("average2", two);
    ended_the_same("average2", "average");
    expect("generate @/average/checkpoints/best --ema --prompt x --tokens 3", 0, "x");
    free(one), free(two);
}

static void test_adapters(void **state) {
    static const char options[] = "--set data.val_path=@/val.jsonl --set lora.rank=4 --set "
                                  "lora.targets=all-linear --set lora.dropout=0.1 ";
    (void)state;
    char *one = ls_format("-n 1 %s", options),
         *two = ls_format("-n 3 --set parallel.zero=3 %s", options);
    trains("lora", one);
    ends_well("lora", "");
    trains("lora3", two);
    ended_the_same("lora3", "lora");
    expect("chat @/lora/checkpoints/best --tokens 3", 0, NULL);
    expect("export @/lora/checkpoints/best --to peft -o @/adapter", 0, NULL);
    expect("export @/lora/checkpoints/best --to safetensors --merge -o @/merged", 0, "hash ");
    free(one), free(two);
}

/* A run that is killed after its best step, and resumed. */
static void test_resumed(void **state) {
    (void)state;
    int best = step_at("split", "best");
    pace("again", best + 5);
    program p = program_start(ENDS "-n 2 -o @/again", 0);
    char *there = ls_format("again/checkpoints/step-%d/manifest.json", best);
    wait_for_file(there);
    free(there);
    assert_int_equal(kill(p.pid, SIGKILL), 0);
    program_expect(&p, 128 + SIGKILL, NULL);
    let_go("again");
    expect(ENDS "-n 3 -o @/again --resume", 0, "stopped early after step ");
    ended_the_same("again", "split");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends), cmocka_unit_test(test_average),
                                       cmocka_unit_test(test_adapters),
                                       cmocka_unit_test(test_resumed)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
