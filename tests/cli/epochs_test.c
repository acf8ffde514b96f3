/* epochs_test.c - train.epochs: the steps of a text, of files and of packed conversations, for any
 * workers; resumed for more epochs; with the commands that train or plan; what is refused. */
/* ctest: long-asan: cli/resume and data/loader run the same code */
#include "cli/models.h"

#define TEXT                                                                                       \
    "configs/tiny.yaml --set train.eval_every=0 --set log.every=1000 --set "                       \
    "optim.warmup=auto " SMALLER

/* The run is one of as many steps; its ledger has whole epochs. */
static void test_text(void **state) {
    (void)state;
    expect("train " TEXT "-n 2 -o @/two --set train.epochs=1", 0, NULL);
    expect("ckpt ledger @/two", 0, "exactly once in each of 1 complete epoch; 0 of the");
    shell_of_run("two", "grep -q '^  steps: 51$' $r/config.yaml");
    expect("train " TEXT "-n 1 -o @/steps --set train.steps=51", 0, NULL);
    same_hash("two", "steps");
    expect("train " TEXT "-n 3 -o @/threads --set parallel.transport=thread --set train.epochs=1",
           0, NULL);
    same_hash("two", "threads");
    expect("run -n 2 " LOCKSTEP_PROGRAM " train " TEXT "-o @/launched --set train.epochs=1", 0,
           NULL);
    same_hash("two", "launched");
}

/* More epochs for a run that is complete; the same ones need no counting. */
static void test_resumed(void **state) {
    (void)state;
    write_text("x.csv", "a,label\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n7,0\n8,1\n9,0\n10,1\n");
    write_text("mlp.yaml",
               "model: {kind: mlp, hidden: [4]}\ndata: {path: x.csv, val_fraction: 0.1}\n"
               "train: {epochs: 2, batch: 4, virtual_workers: 2, eval_every: 0}\n"
               "checkpoint: {every: 4}\n");
    shell_of_run("", "sed -i \"s|x.csv|$r/x.csv|\" $r/mlp.yaml");
    expect("train @/mlp.yaml -n 2 -o @/csv", 0, "step 6/6");
    expect("train --resume @/csv", 0, "is complete: step 6 of 6; raise train.epochs to train on");
    expect("train --resume @/csv -n 1 --set train.epochs=3", 0, "step 9/9");
    expect("ckpt ledger @/csv", 0, "exactly once in each of 3 complete epochs; 0 of the");
    expect("train @/mlp.yaml --resume -o @/csv --set train.epochs=3", 0, "step 9 of 9");
    expect("train --resume @/csv --set train.steps=10", 0, "step 10/10");
    shell_of_run("csv", "grep -q '^  epochs: 0$' $r/config.yaml");
    expect("train @/mlp.yaml -o @/half -n 2 --until 5", 75, NULL);
    expect("train --resume @/half -n 1", 0, "step 6/6");
    expect("train @/mlp.yaml -o @/whole -n 1", 0, NULL);
    same_hash("half", "whole");
    expect("train @/mlp.yaml -o @/phases -n 1 --set train.batch=[[0,4],[2,8]]", 0, "step 5/5");
}

static void test_packed(void **state) {
    (void)state;
    ls_buf chats = {0};
    small_write_whole(&small_models[0], gguf);
    free(import("@/m.gguf -o @/a"));
    for (int i = 0; i < 24; i++)
        ls_buf_printf(&chats, "{\"prompt\": \"%d?\", \"completion\": \"%.*s\"}\n", i, 1 + i % 9,
                      "yes it is");
    write_file("chats.jsonl", chats.data, chats.len);
    ls_buf_free(&chats);
    write_text("chat.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}");
    write_text("chat.yaml",
               "model: {context: 46}\ndata: {format: chat, packing: on, val_fraction: 0.2}\n"
               "train: {epochs: 3, batch: 2, virtual_workers: 2, eval_every: 0}\n");
    expect("train @/chat.yaml --set model.from=@/a --set data.path=@/chats.jsonl "
           "--set data.template=@/chat.jinja -n 2 -o @/chat",
           0, NULL);
    expect("ckpt ledger @/chat", 0, "exactly once in each of 3 complete epochs; 0 of the");
}

static void test_commands(void **state) {
    (void)state;
    write_text("space.yaml", "method: grid\nspace:\n  optim.lr: {choice: [1e-3, 2e-3]}\n");
    expect("plan @/mlp.yaml -n 1 --machine configs/machines/v100.yaml", 0, "predicted for 6 steps");
    expect("tune @/mlp.yaml --space @/space.yaml -o @/tune -n 1", 0, "12 steps were trained");
    shell_of_run("tune", "grep -q '^  steps: 6$' $r/best.yaml");
    expect("batch @/mlp.yaml --steps-to 0.7 --batches 2,4 --rates 1 -n 1 -o @/batches --set "
           "train.epochs=20 --set data.normalize=off",
           0, "after 240");
    write_text("fixed.yaml", "method: grid\nspace:\n  train.epochs: {choice: [1, 2]}\n");
    expect("tune @/mlp.yaml --space @/fixed.yaml -o @/tune2", 1, "is the same in all trials");
}

static void test_refused(void **state) {
    (void)state;
    expect("train @/mlp.yaml -o @/no --set train.epochs=1 --set train.steps=2", 1,
           "both say how long the run is");
    expect("train @/mlp.yaml -o @/no --set optim.warmup=7", 1,
           "train.epochs 2: optim.warmup 7 is more than train.steps 6");
    expect("train @/mlp.yaml -o @/no --set train.epochs=-1", 1, "is out of range");
    expect("train @/mlp.yaml -o @/no --set data.path=@/none.csv", 1, "none.csv");
}

/* What the config and its model exclude is refused by a plan as by a training. */
static void test_planned(void **state) {
    (void)state;
    const char *const commands[] = {"plan", "train -o @/no"};
    small_write_whole(&small_models[SMALL_GPT2], gguf);
    free(import("@/m.gguf -o @/gpt2"));
    for (int i = 0; i < 2; i++) {
        char *line = ls_format("%s @/mlp.yaml -n 1 --set optim.warmup=3epochs", commands[i]);
        expect(line, 1, "lockstep: optim.warmup 3 epochs: train.steps 6 are fewer");
        free(line);
        line = ls_format("%s configs/tiny.yaml -n 1 --set optim.warmup=801samples", commands[i]);
        expect(line, 1, "lockstep: optim.warmup 801 samples: train.steps 50 are fewer");
        free(line);
        line = ls_format("%s @/chat.yaml -n 1 --set model.from=@/gpt2 --set train.epochs=0 "
                         "--set data.path=@/chats.jsonl --set data.template=@/chat.jinja",
                         commands[i]);
        expect(line, 1, "gpt2: conversations (data.format: chat) need a model of kind llama");
        free(line);
        line = ls_format("%s configs/tiny.yaml -n 2 --set sync.mode=local --set "
                         "train.compute=bf16 --set parallel.transport=tcp",
                         commands[i]);
        expect(line, 1, "sharded over workers that share no memory; use parallel.zero 0, or f32");
        free(line);
    }
    expect("plan configs/tiny.yaml -n 1 --set optim.warmup=800samples", 0, NULL);
    expect("plan configs/tiny.yaml -n 1 --set train.from=@/none", 0, "none: does not exist");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),    cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_packed),  cmocka_unit_test(test_commands),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_planned),
    };
    return cmocka_run_group_tests(tests, models_make, folder_remove);
}
