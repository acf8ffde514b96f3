/* context_test.c - parallel.context_virtual: runs of models whose samples are cut into chunks have
 * one hash for any number of workers and way to shard; they are resumed with another mesh, write
 * text, and have the losses of models that are not cut. */
/* ctest: slow seconds=10 */
#include <math.h>

#include "cli/models.h"
#include "cli/ways.h"
#include "report/frame_check.h"

#define SMALL                                                                                      \
    "configs/tiny.yaml --set train.eval_every=0 --set optim.warmup=2 --set "                       \
    "train.virtual_workers=4 --set model.kind=llama --set model.heads=6 --set model.kv_heads=3 "

static void check_workers(const char *model) {
    static const char *const ways[] = {
        "-n 2",
        "-n 3 --set parallel.zero=3",
        "-n 2 --set parallel.mesh.context=2",
        "-n 4 --set parallel.mesh.context=4 --set parallel.zero=2",
        "-n 6 --set parallel.mesh.context=3 --set parallel.zero=1 --set parallel.transport=tcp",
        "-n 4 --set parallel.mesh.context=2 --set parallel.zero=3",
        "-n 2 --set parallel.mesh.context=2 --set parallel.executor=sequential",
        "-n 4 --set parallel.mesh.context=2 --set parallel.mesh.pipe=2",
        ("-n 8 --set parallel.mesh.context=2 --set parallel.mesh.pipe=2 --set parallel.zero=3 "
         "--set parallel.schedule=zb-v --set parallel.chunks=2"),
        "-n 2 --set parallel.mesh.pipe=2 --set parallel.zero=1 --set parallel.transport=tcp",
        "-n 1 --set train.micro_batch=4 --set parallel.zero=1"};
    train_ways(SMALL, model, ways, (int)(sizeof ways / sizeof *ways), 1, 3);
    shell_of_run("one", "rm -r $r");
}

#define GPT "--set model.kind=gpt2 --set model.kv_heads=0 "

/* GPT-2's samples, cut as Llama's. */
static void check_gpt(void) {
    static const char gpt[] = GPT "--set parallel.context_virtual=4";
    train_way(SMALL, "one", gpt, "-n 1");
    train_way(SMALL, "many", gpt, "-n 4 --set parallel.mesh.context=2 --set parallel.zero=3");
    same_hash("one", "many");
    expect("generate @/many --tokens 10 --seed 3", 0, NULL);
    shell_of_run("one", "rm -r $r");
    shell_of_run("many", "rm -r $r");
}

/* Models that are cut into slices, too. */
static void check_slices(const char *model) {
    static const char *const ways[] = {
        "-n 4 --set parallel.mesh.context=2 --set parallel.mesh.tensor=2",
        "-n 8 --set parallel.mesh.context=2 --set parallel.mesh.tensor=2 --set "
        "parallel.mesh.pipe=2 "
        "--set parallel.zero=3",
        "-n 3 --set parallel.mesh.tensor=3 --set parallel.transport=tcp"};
    train_ways(SMALL, model, ways, (int)(sizeof ways / sizeof *ways), 1, 3);
    shell_of_run("one", "rm -r $r");
}

static void test_slices(void **state) {
    (void)state;
    check_slices("--set parallel.context_virtual=2 --set parallel.tensor_virtual=3 "
                 "--set model.head=own --set model.qk_norm=true");
    check_slices("--set parallel.context_virtual=2 --set parallel.tensor_virtual=3 "
                 "--set model.block=gemma3 --set model.qk_norm=on --set model.window=5 "
                 "--set model.full_attention_every=2 --set model.no_rope_every=2");
    check_slices(GPT "--set parallel.context_virtual=2 --set parallel.tensor_virtual=4 "
                     "--set parallel.sequence=on --set train.compute=bf16");
    if (!all_cases()) return;
    check_slices("--set parallel.context_virtual=2 --set parallel.tensor_virtual=4 "
                 "--set parallel.sequence=on --set model.heads=4 --set model.kv_heads=2");
    check_slices(GPT "--set parallel.context_virtual=2 --set parallel.tensor_virtual=3");
}

static void test_workers(void **state) {
    (void)state;
    check_workers("--set parallel.context_virtual=4 --set model.head=own --set model.qk_norm=true");
    check_workers(
        "--set parallel.context_virtual=4 --set model.head=tied --set train.compute=bf16");
    check_gpt();
}

static void test_resume(void **state) {
    (void)state;
    expect("train " SMALL "-o @/whole -n 1 --set train.steps=6 --set parallel.context_virtual=4", 0,
           NULL);
    expect("train " SMALL "-o @/part -n 2 --set train.steps=6 --set parallel.context_virtual=4 "
           "--until 3 --set parallel.mesh.context=2",
           75, NULL);
    expect("train --resume @/part -n 2 --set parallel.context_virtual=2", 1,
           "parallel.context_virtual is 2, but the run began with 4");
    expect("train --resume @/part -n 4 --set parallel.mesh.context=2 --set parallel.mesh.pipe=2 "
           "--until 4",
           75, NULL);
    expect("train --resume @/part -n 3 --set parallel.mesh.context=3 --set parallel.mesh.pipe=1", 0,
           NULL);
    same_hash("whole", "part");
    expect("generate @/part --tokens 40 --seed 3", 0, NULL);
    expect("eval @/part", 0, "loss");
}

/* Slices and chunks: resumed with other numbers of workers for both. */
static void test_resume_slices(void **state) {
    (void)state;
    static const char model[] = GPT "--set parallel.context_virtual=2 --set "
                                    "parallel.tensor_virtual=2 --set train.steps=4";
    char *whole = ls_format("train " SMALL "%s -o @/gpt -n 1", model);
    char *part = ls_format("train " SMALL "%s -o @/some -n 4 --until 2 --set "
                           "parallel.mesh.context=2 --set parallel.mesh.tensor=2",
                           model);
    expect(whole, 0, NULL);
    expect(part, 75, NULL);
    expect("train --resume @/some -n 2 --set parallel.mesh.context=1", 0, NULL);
    same_hash("gpt", "some");
    expect("generate @/some --tokens 10 --seed 3", 0, NULL);
    expect("export @/some --to safetensors -o @/published", 0, NULL);
    free(whole);
    free(part);
}

/* The loss that a run's last line tells. */
static double loss_of(const char *more) {
    char *line = ls_format("train " SMALL "-o @/l -n 2 --set train.steps=20 %s", more);
    char *text = hash_after(line, "validation loss ");
    free(line);
    double loss = strtod(text, NULL);
    free(text);
    shell_of_run("l", "rm -r $r");
    return loss;
}

static void test_losses(void **state) {
    (void)state;
    double whole = loss_of("");
    double cut = loss_of("--set parallel.context_virtual=8 --set parallel.mesh.context=2");
    double slices = loss_of("--set parallel.context_virtual=2 --set parallel.mesh.context=2 "
                            "--set parallel.tensor_virtual=3");
    assert_true(whole > 0 && fabs(whole - cut) < 2e-4 && fabs(whole - slices) < 2e-4);
    whole = loss_of(GPT);
    cut = loss_of(GPT "--set parallel.context_virtual=2 --set parallel.tensor_virtual=3");
    assert_true(whole > 0 && fabs(whole - cut) < 2e-4);
}

static void test_plan(void **state) {
    (void)state;
    expect("plan " SMALL "-n 2 --set parallel.context_virtual=2 --set parallel.mesh.context=2 "
           "--set train.virtual_workers=1 --set train.batch=1 --set model.layers=1",
           0, "context 2 of 2 chunks");
    expect("plan " SMALL "-n 4 --set parallel.context_virtual=4 --set parallel.mesh.context=2 "
           "--json",
           0, "\"context\": 2");
    expect("plan " SMALL
           "-n 2 --set parallel.context_virtual=2 --set parallel.mesh.context=2 --svg "
           "@/mesh.svg",
           0, NULL);
    expect("plan " SMALL "--mesh auto -n 1 --set parallel.context_virtual=8 --set "
           "parallel.tensor_virtual=12 --set model.heads=12 --set model.kv_heads=12 --set "
           "train.virtual_workers=1 --set train.batch=1 --set model.layers=1",
           0, "2 meshes: 2 simulated"); /* 288 queries, keys and values at a time */
    frame_check_file(folder, "mesh.svg");
    shell_of_run(".", "grep -q '>embed_tokens to ' mesh.svg && grep -q 'chunk 1 of 2' mesh.svg && "
                      "! grep -q 'model\\.\\|\\.chunk' mesh.svg");
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"-n 3 --set parallel.mesh.context=3 --set parallel.context_virtual=2",
         "chunks of parallel.context_virtual, which is 2"},
        {"-n 2 --set parallel.context_virtual=3", "does not divide the 32 positions"},
        {"-n 1 --set model.context=24 --set parallel.context_virtual=8 "
         "--set parallel.tensor_virtual=2 --set parallel.sequence=on",
         "does not divide the 3 positions of a chunk"},
        {"-n 2 --set parallel.context_virtual=2 --set parallel.reduce=fastest",
         "does not go with parallel.reduce: fastest"},
        {"-n 2 --set parallel.context_virtual=2 --set survival.audit=2",
         "survival.audit: 2: the latter computes the gradient of one virtual worker again"},
        {"-n 2 --set parallel.context_virtual=2 --set lora.rank=2", "adapters"},
        {"-n 3 --set parallel.context_virtual=2 --set parallel.mesh.context=2",
         "3 workers can't be divided into groups of 2 (pipe 1 times context 2)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = ls_format("train " SMALL "-o @/no --set train.steps=4 %s", cases[i][0]);
        expect(line, 1, cases[i][1]);
        free(line);
    }
    expect("train configs/tiny.yaml -o @/no -n 2 --set parallel.context_virtual=2 --set "
           "train.virtual_workers=3 --set train.batch=6 --set model.kind=llama",
           1, "need a power of two; use 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers), cmocka_unit_test(test_slices),
        cmocka_unit_test(test_resume),  cmocka_unit_test(test_resume_slices),
        cmocka_unit_test(test_losses),  cmocka_unit_test(test_plan),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
