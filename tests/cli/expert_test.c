/* expert_test.c - experts among workers that divide samples (parallel.expert_virtual), or the
 * chunks of each sample: runs have one hash for any number of workers, way to shard and
 * micro-batch; they are resumed with another mesh, survive lost workers, write text, and have the
 * losses of models that are not cut. */
/* ctest: slow seconds=10 */
#include <math.h>

#include "cli/models.h"
#include "cli/ways.h"
#include "report/frame_check.h"

#define SMALL                                                                                      \
    "configs/tiny.yaml --set train.eval_every=0 --set optim.warmup=2 --set "                       \
    "train.virtual_workers=4 --set model.kind=llama --set model.heads=4 --set model.layers=1 "     \
    "--set model.experts=5 --set model.ffn=20 "
#define JOINT "--set parallel.expert_virtual=2 --set train.micro_batch=2 "
#define RICH                                                                                       \
    "--set model.router_bias_rate=0.02 --set model.expert_capacity=1 --set "                       \
    "model.shared_experts=1 "

static void check_ways(const char *model, const char *const *ways, size_t n) {
    train_ways(SMALL, model, ways, (int)n, 1, 3);
    shell_of_run("one", "rm -r $r");
}

static void test_workers(void **state) {
    (void)state;
    static const char *const ways[] = {
        "-n 3 --set parallel.zero=0 --set train.micro_batch=4", "-n 2 --set parallel.mesh.expert=2",
        "-n 4 --set parallel.mesh.expert=2 --set parallel.zero=3 --set parallel.transport=tcp",
        ("-n 2 --set parallel.mesh.expert=2 --set parallel.zero=2 --set "
         "parallel.executor=sequential"),
        "-n 4 --set parallel.mesh.expert=2 --set parallel.zero=0"};
    size_t n = sizeof ways / sizeof *ways;
    check_ways(JOINT, ways, n);
    check_ways(JOINT RICH "--set train.compute=bf16", ways, n);
}

static void test_chunks(void **state) {
    (void)state;
    static const char *const ways[] = {"-n 2",
                                       "-n 4 --set parallel.mesh.context=4 --set parallel.zero=2",
                                       "-n 4 --set parallel.mesh.context=2 --set parallel.zero=3",
                                       "-n 3 --set parallel.mesh.context=3 --set parallel.zero=0"};
    check_ways("--set parallel.context_virtual=4 " RICH, ways, sizeof ways / sizeof *ways);
}

#define PARTS  JOINT "--set parallel.context_virtual=2 "
#define ONCE   "--set train.virtual_workers=1 --set train.batch=2 "
#define SLICES "--set model.kv_heads=2 --set parallel.tensor_virtual=2 "

/* Slices, chunks and samples that are computed together, in any combination, divided by any number
 * of workers. */
static void test_combinations(void **state) {
    (void)state;
    static const char *const parts[] = {
        "-n 2 --set parallel.mesh.expert=2",
        "-n 2 --set parallel.mesh.context=2 --set parallel.zero=0",
        ("-n 4 --set parallel.mesh.expert=2 --set parallel.mesh.context=2 --set "
         "train.micro_batch=4"),
        "-n 3 --set parallel.zero=3"};
    static const char *const slices[] = {
        ("-n 4 --set parallel.mesh.tensor=2 --set parallel.mesh.context=2 --set parallel.zero=1 "
         "--set parallel.transport=tcp"),
        "-n 2 --set parallel.mesh.tensor=2 --set parallel.recompute=2",
        "-n 4 --set parallel.mesh.pipe=2 --set parallel.mesh.context=2 --set "
        "parallel.schedule=zb-h1"};
    static const char *const all[] = {
        ("-n 8 --set parallel.mesh.tensor=2 --set parallel.mesh.expert=2 --set "
         "parallel.mesh.context=2 --set parallel.zero=1"),
        ("-n 8 --set parallel.mesh.tensor=2 --set parallel.mesh.expert=2 --set "
         "parallel.mesh.pipe=2 --set parallel.zero=3"),
        "-n 4 --set parallel.mesh.tensor=2 --set parallel.mesh.expert=2"};
    check_ways(PARTS RICH, parts, sizeof parts / sizeof *parts);
    check_ways("--set model.layers=2 --set parallel.context_virtual=2 " SLICES RICH, slices,
               sizeof slices / sizeof *slices);
    check_ways("--set model.layers=2 " PARTS SLICES RICH
               "--set parallel.sequence=on --set train.compute=bf16",
               all, sizeof all / sizeof *all);
}

/* As many slices as experts: of each slice there is one group, and shared experts read what it
 * reads. */
static void test_one_group(void **state) {
    (void)state;
    static const char *const way = "-n 2 --set parallel.mesh.context=2";
    train_ways(SMALL,
               "--set parallel.tensor_virtual=4 --set parallel.context_virtual=2 --set "
               "model.shared_experts=1 " ONCE,
               &way, 1, 0, 1);
    shell_of_run("one", "rm -r $r");
}

/* A worker is killed; the others go on, and a resumed run has another mesh. */
static void test_resume(void **state) {
    (void)state;
    expect("train " SMALL JOINT "-o @/whole -n 1 --set train.steps=6", 0, NULL);
    expect("train " SMALL JOINT "-o @/part -n 4 --set train.steps=6 --until 3 --set "
           "parallel.mesh.expert=2",
           75, NULL);
    expect(
        "train --resume @/part -n 2 --set parallel.mesh.expert=1 --set parallel.expert_virtual=1",
        1, "parallel.expert_virtual is 1, but the run began with 2");
    expect("train --resume @/part -n 3 --set parallel.mesh.expert=1", 0, NULL);
    same_hash("whole", "part");
    expect("generate @/part --tokens 40 --seed 3", 0, NULL);
    expect("eval @/part", 0, "loss");
    expect("export @/part --to safetensors -o @/published", 0, NULL);
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
    static const char *const ways[] = {JOINT "--set parallel.mesh.expert=2",
                                       "--set parallel.context_virtual=2",
                                       "--set parallel.expert_virtual=4 --set train.micro_batch=4",
                                       PARTS SLICES "--set parallel.mesh.context=2"};
    double whole = loss_of("--set model.shared_experts=1 --set model.kv_heads=2");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *way = ls_format("--set model.shared_experts=1 --set model.kv_heads=2 %s", ways[i]);
        double cut = loss_of(way);
        assert_true(whole > 0 && fabs(whole - cut) < 2e-4);
        free(way);
    }
}

static void test_plan(void **state) {
    (void)state;
    expect("plan " SMALL JOINT "-n 2 --set parallel.mesh.expert=2", 0, "expert 2 of 2 parts");
    expect("plan " SMALL JOINT "-n 2 --set parallel.mesh.expert=2", 0, "2 to 4");
    expect("plan " SMALL JOINT RICH "-n 4 --set parallel.tensor_virtual=4 --set "
           "parallel.mesh.tensor=2 --set parallel.mesh.expert=2",
           0, "expert 2 of 2 parts");
    expect("plan " SMALL JOINT "-n 4 --set parallel.mesh.expert=2 --json", 0, "\"expert\": 2");
    expect("plan " SMALL "-n 2 --set parallel.context_virtual=2 --set parallel.mesh.context=2", 0,
           "2 to 4");
    expect("plan " SMALL PARTS SLICES ONCE "-n 4 --set parallel.mesh.expert=2 --set "
           "parallel.mesh.tensor=2",
           0, "expert and context 2 of 4 parts");
    expect("plan " SMALL SLICES ONCE "--set model.experts=8 --set parallel.context_virtual=4 -n 4 "
           "--set parallel.mesh.context=2 --set parallel.mesh.tensor=2",
           0, "5, 7");
    expect("plan " SMALL PARTS "-n 4 --set parallel.mesh.expert=2 --set parallel.mesh.context=2 "
           "--json",
           0, "\"context\": 2");
    expect("plan " SMALL JOINT "-n 2 --set parallel.mesh.expert=2 --svg @/mesh.svg", 0, NULL);
    expect("plan " SMALL PARTS SLICES "-n 8 --set parallel.mesh.expert=2 --set "
           "parallel.mesh.tensor=2 --set parallel.mesh.context=2 --svg @/mesh.svg",
           0, NULL);
    frame_check_file(folder, "mesh.svg");
    expect("plan " SMALL PARTS "-n 4 --mesh auto", 0, "tensor context expert");
}

static void test_refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"--set parallel.mesh.expert=2",
         "which is 1; set parallel.expert_virtual to 2, or a multiple"},
        {"--set parallel.expert_virtual=6 --set train.batch=48 --set train.micro_batch=6",
         "the model has 5 experts (model.experts), which as many parts divide; use at most 5"},
        {"--set parallel.expert_virtual=2",
         "micro-batches have 1 samples (train.micro_batch), and virtual workers 4"},
        {"--set parallel.expert_virtual=3 --set train.micro_batch=4", "use 2 or 4"},
        {JOINT "--set model.experts=0", "acts only with model.experts > 0"},
        {JOINT "--set parallel.context_virtual=8",
         "makes 16 parts of the samples that are computed together, and 8 are possible; use "
         "parallel.context_virtual 4"},
        {JOINT "--set parallel.context_virtual=3", "does not divide the 32 positions"},
        {PARTS "--set parallel.mesh.context=3", "chunks of parallel.context_virtual, which is 2"},
        {JOINT "--set lora.rank=2", "adapters"},
        {JOINT "--set survival.audit=2",
         "parallel.expert_virtual: 2 does not go with survival.audit: 2"},
        {JOINT "-n 3 --set parallel.mesh.expert=2",
         "3 workers can't be divided into groups of 2 (pipe 1 times expert 2)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = ls_format("train " SMALL "-o @/no -n 2 --set train.steps=4 %s", cases[i][0]);
        expect(line, 1, cases[i][1]);
        free(line);
    }
    expect("train configs/tiny.yaml -o @/no -n 2 --set parallel.expert_virtual=2 --set "
           "train.micro_batch=2",
           1, "parallel.expert_virtual acts only with model.experts > 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),      cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_combinations), cmocka_unit_test(test_one_group),
        cmocka_unit_test(test_resume),       cmocka_unit_test(test_losses),
        cmocka_unit_test(test_plan),         cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
