/* models.h - for tests of commands on published models: models in the test's directory. */
#ifndef LS_TEST_MODELS_H
#define LS_TEST_MODELS_H

#include "cli/program.h"

#include "weights/small_text.h"

static char gguf[96]; /* @/m.gguf */

static inline int models_make(void **state) {
    if (folder_make(state)) return -1;
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    return 0;
}

/* Runs the line, and returns the 32 digits that follow `label`; the caller frees them. */
static inline char *hash_after(const char *line, const char *label) {
    char *output = NULL;
    int code = run_program(line, &output);
    const char *at = strstr(output, label);
    if (code || !at) fail_msg("lockstep %s: exit code %d\n%s", line, code, output);
    char *hash = ls_format("%.32s", at + strlen(label));
    free(output);
    return hash;
}

static inline char *import(const char *words) {
    char *line = ls_format("import %s", words), *hash = hash_after(line, "hash       ");
    free(line);
    return hash;
}

/* Imports, and expects this hash. */
static inline void import_same(const char *words, const char *hash) {
    char *got = import(words);
    assert_string_equal(got, hash);
    free(got);
}

/* Removes the directories and files a to f. */
static inline void remove_models(void) {
    for (char name = 'a'; name <= 'f'; name++) {
        char *path = ls_format("%s/%c", folder, name);
        unlink(path);
        assert_int_equal(ls_file_remove_tree(path, NULL), LS_OK);
        free(path);
    }
}

/* A text for training. */
static inline void write_long_text(void) {
    ls_buf text = {0};
    for (int i = 0; i < 200; i++) ls_buf_printf(&text, "%d bottles of beer on the wall. ", i);
    write_file("long", text.data, text.len);
    ls_buf_free(&text);
}

#define TRAIN_FROM                                                                                 \
    "train configs/tiny.yaml -n 2 --set data.path=@/long --set train.steps=2 --set "               \
    "optim.warmup=0 --set model.context=24 --set optim.min_lr=0 "

#endif
