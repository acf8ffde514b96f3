/* tensor_test.c - parallel.tensor_virtual: runs of models that are cut into slices have one hash
 * for any number of workers and way to shard; they are resumed, exported and begin with published
 * weights as models of one slice do.
 */
/* ctest: slow seconds=15 */
#include "cli/models.h"
#include "cli/ways.h"
#include "report/frame_check.h"

#define SMALL                                                                                      \
    "configs/tiny.yaml --set train.eval_every=0 --set optim.warmup=2 --set "                       \
    "train.virtual_workers=4 "
#define GEMMA                                                                                      \
    "--set model.block=gemma3 --set model.qk_norm=on --set model.window=5 "                        \
    "--set model.full_attention_every=2 --set model.no_rope_every=2 "
#define LLAMA                                                                                      \
    "--set model.kind=llama --set model.heads=6 --set model.kv_heads=3 --set model.head=own "

/* 5 experts of which slices have one or two each, and a shared one. */
#define EXPERTS                                                                                    \
    LLAMA "--set model.experts=5 --set model.ffn=16 --set model.router_aux_loss=0.1 "              \
          "--set parallel.tensor_virtual=3 "

/* `make check` tries every third way with a model, beginning with way `first`. */
static void check_workers(int first, const char *model) {
    static const char *const ways[] = {
        "-n 2",
        "-n 3 --set parallel.zero=3",
        "-n 2 --set parallel.mesh.tensor=2 --set parallel.recompute=2",
        "-n 3 --set parallel.mesh.tensor=3 --set parallel.zero=2",
        "-n 4 --set parallel.mesh.tensor=2",
        "-n 2 --set parallel.mesh.pipe=2 --set parallel.schedule=zb-h1",
        "-n 4 --set parallel.mesh.pipe=2 --set parallel.mesh.tensor=2 --set parallel.recompute=2",
        ("-n 6 --set parallel.mesh.tensor=3 --set parallel.mesh.pipe=2 --set "
         "parallel.schedule=zb-h1 --set parallel.transport=tcp"),
        "-n 1 --set train.micro_batch=4 --set parallel.zero=1"};
    train_ways(SMALL, model, ways, (int)(sizeof ways / sizeof *ways), first, 3);
    shell_of_run("one", "rm -r $r");
}

static void test_workers(void **state) {
    (void)state;
    check_workers(0, "--set parallel.tensor_virtual=3");
    check_workers(1, LLAMA "--set parallel.tensor_virtual=3 --set train.compute=bf16");
    check_workers(2, LLAMA GEMMA "--set parallel.tensor_virtual=3");
    check_workers(2, EXPERTS "--set model.shared_experts=1 --set model.expert_capacity=0.8 "
                             "--set model.router_bias_rate=0.01");
    if (!all_cases()) return;
    check_workers(2, LLAMA "--set parallel.tensor_virtual=3 --set model.head=tied");
    check_workers(0, LLAMA "--set model.kv_heads=1 --set parallel.tensor_virtual=4");
    check_workers(1, LLAMA "--set model.qk_norm=on --set parallel.tensor_virtual=6");
}

/* Slices that divide the rows between products, too. */
static void check_rows(int first, const char *model) {
    static const char *const ways[] = {
        "-n 2 --set parallel.mesh.tensor=2 --set parallel.recompute=20",
        "-n 4 --set parallel.mesh.tensor=4 --set parallel.transport=tcp",
        "-n 4 --set parallel.mesh.tensor=2 --set parallel.zero=3",
        "-n 4 --set parallel.mesh.pipe=2 --set parallel.mesh.tensor=2"};
    train_ways(SMALL, model, ways, (int)(sizeof ways / sizeof *ways), first, 3);
    expect("generate @/one --tokens 20 --seed 3", 0, NULL);
    shell_of_run("one", "rm -r $r");
}

static void test_rows(void **state) {
    (void)state;
    check_rows(0, "--set model.heads=4 --set parallel.tensor_virtual=4 --set parallel.sequence=on");
    check_rows(1, "--set model.kind=llama --set model.heads=4 --set parallel.tensor_virtual=4 "
                  "--set parallel.sequence=on --set train.compute=bf16 --set model.qk_norm=on");
    check_rows(2, "--set model.kind=llama " GEMMA "--set model.heads=4 "
                  "--set parallel.tensor_virtual=4 --set parallel.sequence=on");
}

static void test_resume(void **state) {
    (void)state;
    expect("train " SMALL "-o @/whole -n 1 --set train.steps=6 --set parallel.tensor_virtual=3", 0,
           NULL);
    expect("train " SMALL "-o @/part -n 2 --set train.steps=6 --set parallel.tensor_virtual=3 "
           "--until 3 --set parallel.mesh.tensor=2",
           75, NULL);
    expect("train --resume @/part -n 2 --set parallel.tensor_virtual=2", 1,
           "parallel.tensor_virtual is 2, but the run began with 3");
    expect("train --resume @/part -n 3 --set parallel.mesh.tensor=3", 0, NULL);
    same_hash("whole", "part");
}

/* There are five experts: the first worker has those of the first two slices. */
static void test_plan(void **state) {
    (void)state;
    expect("plan " SMALL EXPERTS "-n 2 --set parallel.mesh.tensor=2 --svg @/mesh.svg", 0,
           "0                0  0 to 1   0 to 2 ");
    frame_check_file(folder, "mesh.svg");
    shell_of_run(".", "grep -q 'slices 0 to 1 of 3; experts 0 to 2' mesh.svg");
    shell_of_run(".", "grep -q 'slice 2 of 3; experts 3 to 4' mesh.svg");
}

/* What a run that learns nothing exports is what it began with. */
static void check_published(const char *from, const char *hash, int n) {
    char *line = ls_format("train " SMALL "-o @/run -n 1 --set train.steps=2 --set optim.lr=0 "
                           "--set optim.min_lr=0 --set model.from=%s "
                           "--set parallel.tensor_virtual=%d",
                           from, n);
    expect(line, 0, NULL);
    free(line);
    char *got = hash_after("export @/run --to safetensors -o @/out", "hash ");
    assert_string_equal(got, hash);
    free(got);
    shell_of_run("run", "rm -r $r out");
}

/* A mixture of experts. */
static void check_experts(void) {
    expect("train " SMALL EXPERTS "-o @/a -n 2 --set train.steps=4 --set parallel.mesh.tensor=2", 0,
           NULL);
    char *hash = hash_after("export @/a --to safetensors -o @/b", "hash ");
    char *same = hash_after("export @/a --to gguf -o @/c.gguf", "hash ");
    assert_string_equal(same, hash);
    import_same("@/c.gguf -o @/d", hash);
    for (int n = 1; n <= 3; n++) check_published(n == 2 ? "@/d" : "@/b", hash, n);
    expect("generate @/a --tokens 10 --seed 3", 0, NULL);
    expect("eval @/a", 0, "loss");
    free(hash), free(same);
    shell_of_run("a", "rm -r $r b c.gguf d");
}

static void check_model(const char *model) {
    char *line = ls_format("train " SMALL "-o @/a -n 1 --set train.steps=4 %s", model);
    expect(line, 0, NULL);
    free(line);
    char *hash = hash_after("export @/a --to safetensors -o @/b", "hash ");
    char *same = hash_after("export @/a --to gguf -o @/c.gguf", "hash ");
    assert_string_equal(same, hash);
    import_same("@/c.gguf -o @/d", hash);
    for (int n = 1; n <= 3; n++) {
        if (runs_case(n, 2)) check_published("@/b", hash, n);
        if (runs_case(n + 1, 2)) check_published("@/d", hash, n);
    }
    free(hash), free(same);
    shell_of_run("a", "rm -r $r b c.gguf d");
}

static void test_published(void **state) {
    (void)state;
    check_experts();
    check_model("--set parallel.tensor_virtual=2");
    check_model(LLAMA "--set model.bias=qkv --set parallel.tensor_virtual=3");
    check_model(LLAMA "--set model.bias=qkv --set parallel.tensor_virtual=6");
    check_model(LLAMA "--set model.qk_norm=on --set parallel.tensor_virtual=3");
}

static void test_text(void **state) {
    (void)state;
    expect("train " SMALL "-o @/t -n 1 --set train.steps=4 --set parallel.tensor_virtual=3", 0,
           NULL);
    expect("generate @/t --tokens 40 --seed 3", 0, NULL);
    expect("eval @/t", 0, "loss");
    expect("train " SMALL "-o @/u -n 1 --set model.kind=mlp --set parallel.tensor_virtual=3", 1,
           NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),   cmocka_unit_test(test_rows),
        cmocka_unit_test(test_resume),    cmocka_unit_test(test_plan),
        cmocka_unit_test(test_published), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
