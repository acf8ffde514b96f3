/* tiny_run.h - runs of configs/tiny.yaml in the test's directory, and the hashes of their last
 * checkpoints. */
#ifndef LS_TEST_TRAIN_TINY_RUN_H
#define LS_TEST_TRAIN_TINY_RUN_H

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "storage/checkpoint.h"
#include "test.h"
#include "train/train.h"

typedef struct result {
    char weights[LS_HASH_TEXT], states[LS_HASH_TEXT];
} result;

/* usual, sets: settings; NULL ends each list. A run that is there is continued. */
static inline ls_status try_run(const char *run, int n, const char *const *usual,
                                const char *const *sets, ls_error *e) {
    enum { MOST = 40 };
    const char *all[MOST];
    int nsets = 0;
    for (int i = 0; usual[i]; i++) all[nsets++] = usual[i];
    for (int i = 0; sets[i]; i++) all[nsets++] = sets[i];
    assert_true(nsets <= MOST);
    bool unfinished = false;
    ls_train_options o = {.config = "configs/tiny.yaml",
                          .sets = all,
                          .nsets = nsets,
                          .nworkers = n,
                          .run = run,
                          .resume = true};
    return ls_train(&o, &unfinished, e);
}

/* Trains with samples of 8 tokens, which must succeed. */
static inline void train_short(const char *run, int n, const char *const *sets, int nsets) {
    enum { MOST = 40 };
    static const char *const usual[] = {"model.context=8", NULL};
    const char *all[MOST] = {0};
    ls_error e = {0};
    assert_true(nsets < MOST);
    for (int i = 0; i < nsets; i++) all[i] = sets[i];
    assert_ls_ok(try_run(run, n, usual, all, &e), e);
}

static inline result last_of(const char *run) {
    char *path = NULL;
    ls_error e = {0};
    ls_checkpoint_info i;
    result r;
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    assert_ls_ok(ls_checkpoint_verify(path, &i, &e), e);
    ls_hash_text(i.weights, r.weights);
    ls_hash_text(i.optimizer, r.states);
    free(path);
    return r;
}

static inline void same(result a, result b) {
    assert_string_equal(a.weights, b.weights);
    assert_string_equal(a.states, b.states);
}

/* Runs with numbers. */
static int nruns;

static inline char *run_path(int number) { return ls_format("%s/run-%d", folder, number); }

static inline ls_status try_number(int number, int n, const char *const *usual,
                                   const char *const *sets, ls_error *e) {
    char *run = run_path(number);
    ls_status s = try_run(run, n, usual, sets, e);
    free(run);
    return s;
}

static inline result last_of_number(int number) {
    char *run = run_path(number);
    result r = last_of(run);
    free(run);
    return r;
}

/* What a run's evaluations measured: the rest of each line of metrics.jsonl from "val_loss" on. */
static inline char *evaluations_of(int number) {
    ls_error e = {0};
    ls_buf text = {0}, file = {0};
    char *run = run_path(number), *path = ls_format("%s/metrics.jsonl", run);
    assert_ls_ok(ls_file_read(path, 1 << 20, &file, &e), e);
    for (char *x = file.data; (x = strstr(x, "\"val_loss\": ")); x++)
        ls_buf_printf(&text, "%.*s\n", (int)strcspn(x, "}"), x);
    ls_buf_free(&file);
    free(path);
    free(run);
    assert_non_null(text.data);
    return text.data;
}

static inline void same_evaluations(int number, int other) {
    char *a = evaluations_of(number), *b = evaluations_of(other);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

/* A new one on n workers; break_at: it ends after these steps, and n + 1 workers continue; 0: it
 * does not. sets has room for one more. */
static inline result train_parts(int n, const char **sets, int nsets, int break_at) {
    char *run = run_path(nruns++), *some = ls_format("train.steps=%d", break_at);
    sets[nsets] = some;
    if (break_at) train_short(run, n, sets, nsets + 1);
    train_short(run, n + (break_at > 0), sets, nsets);
    result r = last_of(run);
    free(some), free(run);
    return r;
}

/* A new one. */
static inline result train_new(int n, const char *const *usual, const char *const *sets) {
    ls_error e = {0};
    assert_ls_ok(try_number(nruns, n, usual, sets, &e), e);
    return last_of_number(nruns++);
}

#endif
