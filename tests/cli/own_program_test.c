/* own_program_test.c - a program with a model of its own (examples/cnn.c) has all commands. */
#undef LOCKSTEP_PROGRAM
#define LOCKSTEP_PROGRAM EXAMPLE_CNN
#include "cli/program.h"

static const char config[] = "cnn: {width: 8, blocks: 1}\n"
                             "data: {path: none}\n"
                             "train: {steps: 4, batch: 8, virtual_workers: 4}\n"
                             "optim: {warmup: 0}\n";

static int make(void **state) {
    if (folder_make(state)) return -1;
    write_file("cnn.yaml", config, strlen(config));
    return 0;
}

static void test_check(void **state) {
    (void)state;
    expect("check", 0, "block.1.swish                    right; 40 gradients within ");
    expect("check @/cnn.yaml", 0, "block.0.swish                    right; ");
    expect_line("check @/none.yaml", 1, "none.yaml: can't be opened");
    expect_line("check --set cnn.width=2", 1, "cnn.width: 2 is out of range; expected 4 to 512");
}

static void test_help(void **state) {
    (void)state;
    char *output = NULL;
    expect("--version", 0, "cnn 0.");
    expect("help config cnn", 0, "cnn.width = 16 (4 to 512)");
    expect("help scale", 0, "`cnn train`");
    assert_int_equal(run_program("help", &output), 0);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_check), cmocka_unit_test(test_help),
                                       cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
