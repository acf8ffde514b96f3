/* completion_test.c - the completion for bash, as bash makes it. */
#include "cli/program.h"

/* Returns the words of COMPREPLY, each followed by a space, for these words, of which the last is
 * being typed. */
static char *complete(const char *words) {
    static const char script[] =
        "cd '%s' && eval \"$('%s' help --bash)\" && COMP_WORDS=(lockstep %s) && "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _lockstep && printf '%%s ' \"${COMPREPLY[@]}\"";
    char program_path[512], command[2048];
    assert_non_null(realpath(LOCKSTEP_PROGRAM, program_path));
    snprintf(command, sizeof command, script, folder, program_path, words);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execlp("bash", "bash", "--norc", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    program p = {pid, ends[0]};
    char *output = NULL;
    assert_int_equal(program_end(&p, &output), 0);
    return output;
}

static void gives(const char *words, const char *want) {
    char *got = complete(words);
    if (strcmp(got, want) != 0) {
        print_error("lockstep %s\ngives: %s\nexpected: %s\n", words, got, want);
        fail();
    }
    free(got);
}

/* Checks that `word` is one of the completions. */
static void offers(const char *words, const char *word) {
    char *got = complete(words), list[16384], spaced[128];
    snprintf(list, sizeof list, " %s", got);
    snprintf(spaced, sizeof spaced, " %s ", word);
    if (!strstr(list, spaced)) {
        print_error("lockstep %s\ngives: %s\nwithout: %s\n", words, got, word);
        fail();
    }
    free(got);
}

static int make(void **state) {
    int bad = folder_make(state);
    char command[512];
    snprintf(
        command, sizeof command,
        "cd %s && mkdir -p configs runs/mine runs/other runs/none else && touch configs/a.yaml "
        "b.yml text.txt runs/mine/config.yaml runs/other/config.yaml a.json",
        folder);
    return bad || system(command);
}

static void test_commands(void **state) {
    (void)state;
    gives("tr", "train ");
    gives("--v", "--version ");
    offers("''", "ckpt");
    offers("''", "--help");
    gives("ckpt ''", "hash show verify export list ledger ");
    gives("ckpt v", "verify ");
    gives("bench ''", "train generate comm kernels machine ");
    gives("bench --json k", "kernels ");
    gives("help ck", "ckpt ");
    gives("help con", "config ");
    gives("help config op", "optim ");
    offers("help config ''", "checkpoint");
    gives("help train ''", " ");
}

static void test_options(void **state) {
    (void)state;
    gives("train a.yaml --res", "--resume ");
    gives("train a.yaml --mem", "--membership ");
    gives("ckpt hash --he", "--help ");
    gives("bench comm --op all_r", "all_reduce ");
    gives("bench comm --op = all_g", "all_gather ");
    gives("bench comm --transport ''", "shm thread tcp mpi ");
    gives("export runs/mine --to o", "onnx ");
    gives("serve runs/mine --cache ''", "f32 f16 q8 ");
    gives("eval runs/mine --device c", "cuda c ");
    gives("train -n ''", " "); /* a number */
    gives("train a.yaml -n 2 ''", " ");
}

static void test_sets(void **state) {
    (void)state;
    gives("train a.yaml --set train.com", "train.compute= ");
    gives("train a.yaml --set train.compute = ''", "f32 bf16 f16 ");
    gives("train a.yaml --set train.compute = b", "bf16 ");
    gives("train a.yaml --set train.compute =", "f32 bf16 f16 ");
    gives("train a.yaml --set = train.compute = b", "bf16 ");
    gives("train a.yaml --set = train.com", "train.compute= ");
    gives("train a.yaml --set parallel.recompute = a", "auto ");
    gives("train a.yaml --set train.steps = 5 --set parallel.fit = o", "off ");
    gives("train --set train.steps = 5 con", "configs ");
    gives("train a.yaml --set train.steps = ''", " ");
    gives("bench train a.yaml --set optim.l", "optim.lr= optim.lr_decay= optim.loss_scale= "
                                              "optim.loss_scale_window= "
                                              "optim.loss_scale_hysteresis= "
                                              "optim.loss_scale_min= ");
    gives("plan --set model.cont", "model.context= ");
}

static void test_files(void **state) {
    (void)state;
    gives("train configs/", "configs/a.yaml ");
    offers("train ''", "b.yml");
    offers("plan ''", "configs");
    gives("train b", "b.yml ");
    gives("train te", " "); /* no config */
    gives("train --resume runs/m", "runs/mine ");
    gives("eval runs/", "runs/mine runs/other ");
    gives("eval ''", "runs/mine runs/other ");
    gives("scale runs/o", "runs/other ");
    gives("serve runs/o", "runs/other ");
    gives("compare runs/mine runs/o", "runs/other ");
    gives("batch runs/o", "runs/other ");
    gives("report b", "b.yml ");
    gives("ckpt hash runs/m", "runs/mine ");
    gives("generate el", "else ");
    gives("eval runs/mine --data te", "text.txt ");
    gives("train b.yml -o el", "else ");
    gives("plan --diff a", "a.json ");
    gives("plan --diff a.json a", "a.json ");
    gives("bench generate b", "b.yml ");
    gives("bench comm b", " ");
    offers("run pri", "printf");
    gives("run cat te", "text.txt ");
    gives("data a.json te", "text.txt ");
    gives("data --labels te", "text.txt ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
