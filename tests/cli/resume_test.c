/* resume_test.c - `lockstep train --resume RUN`: the run directory suffices, and the command
 * that a stopped run prints works when pasted.
 */
#include "cli/program.h"

enum { STEPS = 60, WORDS = 32 };
static char whole[256]; /* `ckpt hash` of an undisturbed run */
static char cwd[256];

/* Settings that another config file would not have. */
#define SETTINGS                                                                                   \
    "--set", "train.steps=60", "--set", "model.layers=1", "--set", "checkpoint.every=20", "--set", \
        "survival.balance=off", "--set", "train.eval_every=0"

/* Starts a command, given as words, in the test's directory, where `lockstep` is a link. */
static program start_words(const char *const *words) {
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        if (chdir(folder) != 0) _exit(126);
        char *argv[WORDS + 1] = {NULL};
        for (int i = 0; words[i] && i < WORDS; i++) argv[i] = (char *)(uintptr_t)words[i];
        exec_program(argv);
    }
    close(pipes[1]);
    assert_true(pid > 0);
    return (program){pid, pipes[0]};
}

/* Runs `line` in a shell, as a user would, in the test's directory. */
static void paste(const char *before, const char *line, const char *says) {
    char command[2048], *output = NULL;
    snprintf(command, sizeof command, "%s%s", before, line);
    const char *const words[] = {"/bin/sh", "-c", command, NULL};
    program p = start_words(words);
    int code = program_end(&p, &output);
    if (code != 0 || !strstr(output, says)) fail_msg("%s: %d\n%s", command, code, output);
    free(output);
}

/* Returns the rest of the line after `before`; ends it in place. */
static char *printed(char *output, const char *before) {
    char *at = strstr(output, before);
    if (!at) fail_msg("%s", output);
    at += strlen(before);
    at[strcspn(at, "\n")] = 0;
    return at;
}

static void stop(const char *run, program *p, char **output_p) {
    char first[128];
    snprintf(first, sizeof first, "%s/checkpoints/step-20", run);
    wait_for_file(first);
    assert_int_equal(stop_paced(p, run, output_p), 75);
}

static void same_bits(const char *run) {
    char got[256] = "", command[512];
    snprintf(command, sizeof command, "cd %s && ./lockstep ckpt hash \"$R\"", folder);
    setenv("R", run, 1);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = 0;
    assert_int_equal(pclose(f), 0);
    assert_string_equal(whole, got);
}

/* The test's directory has links to the program and the text, and a copy of the config. */
static int make_project(void **state) {
    char path[512];
    if (folder_make(state) != 0 || !getcwd(cwd, sizeof cwd)) return -1;
    snprintf(path, sizeof path, "%s/lockstep", folder);
    if (symlink(LOCKSTEP_PROGRAM, path) != 0) return -1;
    snprintf(path, sizeof path, "cp configs/tiny.yaml %s/tiny.yaml && ln -s %s/LICENSE %s/LICENSE",
             folder, cwd, folder);
    if (system(path) != 0) return -1;
    program p = start_words((const char *const[]){"./lockstep", "train", "tiny.yaml", "-n", "2",
                                                  "-o", "whole", SETTINGS, NULL});
    char *output = NULL;
    int code = program_end(&p, &output);
    if (code != 0) print_error("%s\n", output);
    free(output);
    if (code == 0) hash_of("whole", whole);
    return code;
}

/* Pastes the printed command, for names with special characters of the shell. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "two words",          "it's",
                                        "-dash", "a\"b$HOME`x`;#~&\\", "\xc3\xb6\xc3\xb6/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char run[64], *output = NULL;
        if (!runs_case((int)i, 2)) continue;
        snprintf(run, sizeof run, "%.*s", (int)strcspn(names[i], "/"), names[i]);
        pace(run, 30);
        program p = start_words((const char *const[]){"./lockstep", "train", "tiny.yaml", "-n", "3",
                                                      "-o", names[i], SETTINGS, NULL});
        stop(run, &p, &output);
        const char *line = printed(output, "of 60; continue with: ");
        assert_ptr_equal(strstr(line, "./lockstep train --resume "), line);
        assert_non_null(strstr(line, " -n 3"));
        paste("", line, "continuing from");
        same_bits(*run == '-' ? "./-dash" : run);
        free(output);
    }
}

/* Under a launcher the advice names it; pasted alone, it works as well. */
static void test_launched(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *run = i ? "alone" : "launched";
        char *output = NULL;
        pace(run, 30);
        program p =
            start_words((const char *const[]){"./lockstep", "run", "-n", "2", "./lockstep", "train",
                                              "tiny.yaml", "-o", run, SETTINGS, NULL});
        stop(run, &p, &output);
        const char *line = printed(output, "continue, under the same launcher, with: ");
        paste(i ? "" : "./lockstep run -n 2 ", line, "continuing from");
        same_bits(run);
        free(output);
    }
}

/* The settings come from the run, not from a config file; free keys may change, others may not. */
static void test_directory(void **state) {
    (void)state;
    char *output = NULL;
    pace("dir", 30);
    program p = start_words((const char *const[]){"./lockstep", "train", "tiny.yaml", "-n", "2",
                                                  "-o", "dir", SETTINGS, NULL});
    stop("dir", &p, &output);
    free(output);
    expect("train @/dir", 2, "dir is a run directory; to continue the run add --resume");
    expect("train @/dir --resume -o @/other", 2, "-o names another");
    expect("train @/dir --resume --set model.layers=2", 1,
           "model.layers is 2, but the run began with 1");
    expect("train configs/tiny.yaml --resume -o @/dir", 1, "but the run began with");
    expect("train --resume @/none", 1, "none: can't be opened");
    expect("train --resume @/dir/ --set parallel.zero=3 --set log.every=7 -n 1", 0,
           "continuing from");
    same_bits("dir");
    expect("train --resume @/dir --set parallel.zero=3", 0,
           "dir: is complete: step 60 of 60; raise train.steps to train on\n");
    expect("train --resume @/dir --set parallel.zero=2 --set log.every=7 --set optim.lr=1e-2", 0,
           "raise train.steps to train on; not used: parallel.zero, optim.lr\n");
}

/* Replicas that gossip have no mean when the run stops: who uses the model is told. */
static void test_model_of_gossip(void **state) {
    (void)state;
    static const char line[] =
        "train configs/tiny.yaml -n 2 -o @/gossip --set sync.mode=gossip --set sync.replicas=4 "
        "--set model.width=12 --set train.steps=12 --set train.eval_every=0 --until 2";
    expect(line, 75, "the last checkpoint: its model is the initial one: replicas that gossip");
    expect("eval @/gossip", 0, "step-2: its model is the initial one: ");
    expect("train --resume @/gossip -n 3 --set train.eval_every=3 --until 8", 75,
           "the last checkpoint: its model is that of step 6: ");
    expect("export @/gossip --to safetensors -o @/exported", 0,
           "step-8: its model is that of step 6: ");
    char *output = output_with_input("train --resume @/gossip -n 1 --until 9", "", 75);
    assert_null(strstr(output, "its model is"));
    free(output);
    output = output_of("eval @/gossip");
    assert_null(strstr(output, "its model is"));
    free(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_launched),
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_model_of_gossip),
    };
    return cmocka_run_group_tests(tests, make_project, folder_remove);
}
