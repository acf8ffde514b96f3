/* own_program_test.c - programs with models of their own have all commands: examples/cnn.c, and
 * examples/tabular.c with data of its own. */
/* ctest: busy seconds=8 */
static const char *tested; /* the path of the program */
#undef LOCKSTEP_PROGRAM
#define LOCKSTEP_PROGRAM tested
#include "cli/program.h"

static const char config[] = "cnn: {width: 8, blocks: 1}\n"
                             "data: {path: none}\n"
                             "train: {steps: 4, batch: 8, virtual_workers: 4}\n"
                             "optim: {warmup: 0}\n";

static const char table[] = "train: {steps: 40, batch: 24, virtual_workers: 6, eval_every: 20}\n"
                            "optim: {warmup: 5, lr: 0.01}\n"
                            "log: {every: 1}\n";

enum { IMAGES = 40, PIXELS = 28 * 28 };

/* IDX files of images and labels. */
static void make_images(void) {
    static unsigned char images[16 + IMAGES * PIXELS], labels[8 + IMAGES];
    static const unsigned char head[16] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(images, head, sizeof head);
    memcpy(labels, head, 8);
    labels[3] = 1;
    for (int i = 0; i < IMAGES * PIXELS; i++) images[16 + i] = (unsigned char)(i * 7 + i / PIXELS);
    for (int i = 0; i < IMAGES; i++) labels[8 + i] = (unsigned char)(i % 10);
    write_file("images", images, sizeof images);
    write_file("labels", labels, sizeof labels);
}

static int make(void **state) {
    tested = EXAMPLE_CNN;
    if (folder_make(state)) return -1;
    write_file("cnn.yaml", config, strlen(config));
    write_file("table.yaml", table, strlen(table));
    make_images();
    return 0;
}

static void test_check(void **state) {
    (void)state;
    expect("check", 0, "block.1.swish                    right; 46 gradients within ");
    expect("check @/cnn.yaml", 0, "block.0.swish                    right; ");
    expect_line("check @/none.yaml", 1, "none.yaml: can't be opened");
    expect_line("check --set cnn.width=2", 1, "cnn.width: 2 is out of range; expected 4 to 512");
}

static void test_help(void **state) {
    (void)state;
    expect("--version", 0, "cnn 0.");
    expect("help config cnn", 0, "cnn.width = 16 (4 to 512)");
    expect("help scale", 0, "`cnn train`");
    char *output = output_of("help");
    assert_output_has(output, "usage: cnn COMMAND [options]");
    assert_null(strstr(output, "generate "));
    free(output);
    expect_line("tran", 2,
                "cnn: there is no command 'tran' (did you mean 'train'?); see 'cnn help'");
    expect_line("generate @", 2, "there is no command 'generate'");
}

static void test_plan(void **state) {
    (void)state;
    expect("plan @/cnn.yaml -n 2", 0, "block.0.swish");
    expect_line("plan @/cnn.yaml --set model.kind=mlp", 1, "this program has a model of its own");
    expect_line("plan @/cnn.yaml --set cnn.wdth=9", 1, "did you mean 'cnn.width'?");
}

#define IMAGES_OF "--set data.path=@/images --set data.labels=@/labels --set data.val_fraction=0.1 "

/* The same bits for any number of workers; the run has the program's keys. */
static void test_train(void **state) {
    (void)state;
    char one[256], three[256], split[256];
    expect("train @/cnn.yaml -n 1 -o @/one " IMAGES_OF, 0,
           "training samples of image u8 [28, 28, 1]");
    expect("train @/cnn.yaml -n 3 -o @/three " IMAGES_OF, 0, "3 workers");
    expect("train @/cnn.yaml -n 2 -o @/split --set parallel.mesh.pipe=2 "
           "--set parallel.schedule=zb-h1 " IMAGES_OF,
           0, "2 workers");
    hash_of("one", one);
    hash_of("three", three);
    hash_of("split", split);
    assert_string_equal(one, three);
    assert_string_equal(one, split);
    shell_of_run("one", "grep -A2 '^cnn:' $r/config.yaml | grep -q 'width: 8'");
    expect("eval @/one", 0, "loss ");
    expect("predict @/one @/images --top 2", 0, "sample,label_1,label_1_probability,label_2,");
    expect("ckpt show @/one", 0, "block.0.swish.beta");
    expect("train --resume @/one -n 2 --set train.steps=6", 0, "step-6");
    expect_line("train --resume @/one --set cnn.width=12", 1,
                "cnn.width is 12, but the run began with 8");
    expect("bench train @/cnn.yaml -n 2 " IMAGES_OF, 0, "");
    tested = LOCKSTEP;
    expect_line("train --resume @/one", 1, "start that program, cnn");
    expect_line("eval @/one", 1, "start that program, cnn");
    expect_line("ckpt verify @/one", 0, "good: step 6");
    tested = EXAMPLE_CNN;
}

/* Workers of `run`; a worker that is killed is replaced; other data are refused. */
static void test_own_data(void **state) {
    (void)state;
    char one[256];
    tested = EXAMPLE_TABULAR;
    expect("check", 0, "second                           right; ");
    expect("train @/table.yaml -n 1 -o @/rows", 0, "training samples of point f32 [2], label i32");
    hash_of("rows", one);
    expect("run -n 2 " EXAMPLE_TABULAR " train @/table.yaml -o @/launched", 0, NULL);
    assert_hash("launched", one);
    pace("killed", 10);
    program p = program_start("train @/table.yaml -n 2 -o @/killed", 0);
    wait_for_file("killed/metrics.jsonl");
    pid_t workers[2];
    wait_for_children(p.pid, 2, workers, 2);
    kill(workers[1], SIGKILL);
    let_go("killed");
    program_expect(&p, 0, NULL);
    assert_hash("killed", one);
    expect_line("train @/table.yaml -o @/x --set data.path=@/images", 1,
                "data.path: this program has data of its own");
    shell_of_run("rows", "sed -i 's/00000001/00000002/' $r/data.json");
    expect("train --resume @/rows --set train.steps=50", 1, "its data.json is not that of the run");
    shell_of_run("rows", "rm -r $r/checkpoints/*");
    expect("train --resume @/rows --set train.steps=50", 1,
           "the program's data: is not the data that this run was trained with");
    tested = EXAMPLE_CNN;
}

int main(void) {
    const struct CMUnitTest tests[] = {plain_unit_test(test_check), cmocka_unit_test(test_help),
                                       cmocka_unit_test(test_plan), cmocka_unit_test(test_train),
                                       cmocka_unit_test(test_own_data)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
