/* mesh_test.c - parallel.mesh: auto on the command line: the table of meshes, a run that takes the
 * first, resumed with another number of workers to the bits of one worker, a picture, and bad
 * input.
 */
/* ctest: slow seconds=10 */
#include "cli/program.h"
#include "report/frame_check.h"

#define SMALL                                                                                      \
    "--set train.steps=4 --set train.eval_every=0 --set checkpoint.every=2 "                       \
    "--set optim.warmup=2 --set train.virtual_workers=2 "

static void test_table(void **state) {
    (void)state;
    expect("plan configs/tiny.yaml -n 4 --mesh auto", 0, "meshes of 4 workers, the fastest first");
    expect("plan configs/tiny.yaml -n 4 --mesh auto", 0, "The first computes for");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --fit 3.05MB", 0, "need more than 3.05 MB");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --fit 1MB", 1, "the nearest needs");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --machine configs/machines/v100.yaml", 0,
           "predicted for machines as in");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --link 10Gb/s,20us", 0, "meshes of 4 workers");
    expect("plan configs/tiny.yaml -n 4 --set parallel.mesh=auto", 0, "parallel.mesh auto: ");
    expect("bench train configs/tiny.yaml -n 2 --steps 1 --set parallel.mesh=auto", 0,
           "parallel.mesh auto: ");
    expect("plan configs/tiny.yaml -n 29 --mesh auto", 1,
           "the nearest numbers of workers: 28 or 30");
    expect("plan configs/tiny.yaml -n 4 --mesh 2x2", 2, "auto is expected");
    expect("plan configs/tiny.yaml -n 4,8 --mesh auto", 2, "not for a list");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --worker 1", 2, "not with --worker");
    expect("plan configs/tiny.yaml -n 8 --set parallel.mesh.pipe=3", 1,
           "use a multiple of 3 workers, or pipe 2 or 4");
    expect("plan configs/tiny.yaml -n 3 --set parallel.tensor_virtual=3 "
           "--set parallel.mesh.pipe=2 --set parallel.mesh.tensor=2",
           1, "3 workers can't be divided into groups of 4 (pipe 2 times tensor 2)");
    expect("plan configs/tiny.yaml -n 2 --set parallel.mesh.pipe=2 --set parallel.schedule=zb-v", 1,
           "set parallel.chunks=2");
    expect("plan configs/tiny.yaml -n 2 --set parallel.mesh.pipe=2 --set parallel.schedule=zb-v "
           "--set parallel.chunks=2 --actions",
           0, ", of parameters");
    expect("plan configs/tiny.yaml -n 4 --set parallel.mesh.pipe=4 --set parallel.schedule=zb-v "
           "--set parallel.chunks=2 --set model.layers=4 --set train.batch=8 --set "
           "train.virtual_workers=4",
           0, "bubble");
    expect("plan configs/tiny.yaml -n 2 --set parallel.mesh.pipe=2 --machine "
           "configs/machines/a100.yaml",
           0, "of a step, of some workers up to");
}

/* The small config, with `mesh: auto` as YAML has it. */
static void write_config(void) {
    static const char more[] = "parallel:\n  mesh: auto\n";
    ls_buf text = {0};
    ls_error e;
    assert_ls_ok(ls_file_read("configs/tiny.yaml", 1 << 16, &text, &e), e);
    ls_buf_append(&text, more, sizeof more - 1);
    write_file("auto.yaml", text.data, text.len);
    ls_buf_free(&text);
}

/* Two virtual workers: four workers need pipelines, two don't. */
static void test_run(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -o @/one -n 1 " SMALL, 0, NULL);
    write_config();
    expect("train @/auto.yaml -o @/auto -n 4 --until 2 " SMALL, 75, "parallel.mesh.pipe=2");
    expect("ckpt ledger @/auto", 0, NULL); /* more workers than virtual workers */
    expect("train --resume @/auto -n 2", 0, "parallel.mesh.pipe=1");
    same_hash("one", "auto");
}

/* Stages share the embedding, so zero 3 does not shard it: each worker that has it loads all of it,
 * also where workers share no memory. */
static void test_tied(void **state) {
    (void)state;
    expect("train configs/tiny.yaml -o @/tied -n 1 --until 2 " SMALL, 75, NULL);
    expect("train --resume @/tied -n 4 --set parallel.mesh.pipe=2 --set parallel.zero=3 "
           "--set parallel.transport=tcp",
           0, NULL);
    same_hash("one", "tied");
}

/* One sample a step: workers can only divide the model, by its slices where it has some. */
static void test_sliced(void **state) {
    (void)state;
    static const char *const slices =
        "--set train.batch=1 --set train.virtual_workers=1 --set train.micro_batch=1 --set "
        "model.width=96 --set parallel.tensor_virtual=3 --set train.steps=4 --set "
        "train.eval_every=0 --set optim.warmup=2 ";
    char *line = ls_format("train configs/tiny.yaml -o @/whole -n 1 %s", slices);
    expect(line, 0, NULL);
    free(line);
    line = ls_format("train @/auto.yaml -o @/sliced -n 3 --until 2 %s", slices);
    expect(line, 75, "parallel.mesh.tensor=3");
    free(line);
    expect("train --resume @/sliced -n 2", 0, "parallel.mesh.tensor=2");
    same_hash("whole", "sliced");
    expect("plan configs/tiny.yaml -n 3 --mesh auto --json --set parallel.tensor_virtual=3 --set "
           "train.virtual_workers=1",
           0, "\"tensor\": 3");
    expect("plan configs/tiny.yaml -n 4 --mesh auto --set parallel.tensor_virtual=3", 0,
           "data pipe tensor schedule");
}

/* Each worker is a box, with its layers and its shard. */
static void test_picture(void **state) {
    (void)state;
    char path[300];
    ls_buf text = {0};
    ls_error e;
    expect("plan configs/tiny.yaml -n 4 --set parallel.mesh.pipe=2 --svg @/mesh.svg", 0, NULL);
    frame_check_file(folder, "mesh.svg");
    snprintf(path, sizeof path, "%s/mesh.svg", folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    static const char *const parts[] = {"worker 3", "embed to h.1.attn", "h.1.mlp to head",
                                        "shard 1 of 2 (zero 1)", "data 2, pipe 2, tensor 1"};
    for (int i = 0; i < 5; i++) assert_non_null(strstr(text.data, parts[i]));
    ls_buf_free(&text);
    expect(
        "plan configs/gpt2-124m.yaml -n 32 --set train.batch=32 --set train.virtual_workers=32 "
        "--set parallel.mesh.pipe=8 --set parallel.mesh.tensor=2 --set parallel.tensor_virtual=4 "
        "--set parallel.zero=0 --svg @/large.svg",
        0, NULL);
    frame_check_file(folder, "large.svg");
    expect("plan configs/gpt2-124m.yaml -n 2 --svg @/tied.svg", 0, "124439808 parameters");
    snprintf(path, sizeof path, "%s/tied.svg", folder);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    assert_non_null(strstr(text.data, ">124 M parameters<"));
    ls_buf_free(&text);
    expect("plan configs/tiny.yaml -n 2,4 --svg @/mesh.svg", 2, "--svg is for one number");
    expect("plan configs/tiny.yaml --svg @/mesh.svg/no.svg", 1, "mesh.svg/no.svg");
}

/* Stages by hand, in a run: bad ones leave nothing, and degrees without parts are refused first. */
static void test_refusals(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"-n 2 --set parallel.mesh.pipe=2 --set parallel.stages=[h.9.attn]",
         "there is no layer 'h.9.attn'"},
        {"-n 2 --set parallel.mesh.pipe=2 --set parallel.stages=[h.0.mlp,h.1.attn]",
         "names the first layers of 2 stages"},
        {"-n 3 --set parallel.mesh.pipe=3 --set parallel.stages=[h.1.attn,h.0.mlp]",
         "stage 2 would begin with 'h.0.mlp' (layer 2 of 6), and the one before begins with "
         "'h.1.attn' (layer 3)"},
        {"-n 2 --set parallel.mesh.tensor=5", "slices of parallel.tensor_virtual, which is 1"},
        {"-n 2 --set parallel.mesh.pipe=2 --set sync.mode=local --set sync.replicas=2",
         "parallel.mesh.pipe: 2 does not go with sync.mode: local"},
        {"-n 2 --set parallel.mesh.pipe=2 --set compress.kind=powersgd",
         "does not go with compress.kind: powersgd"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *line = ls_format("train configs/tiny.yaml -o @/no " SMALL "%s", cases[i][0]);
        expect_line(line, 1, cases[i][1]);
        free(line);
    }
    shell_of_run(".", "test ! -e no");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),  cmocka_unit_test(test_picture),
        cmocka_unit_test(test_run),    cmocka_unit_test(test_tied),
        cmocka_unit_test(test_sliced), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
