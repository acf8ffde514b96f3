/* tiny_run.h - runs of configs/tiny.yaml with samples of 8 tokens, and the hashes of their last
 * checkpoints. */
#ifndef LS_TEST_TRAIN_TINY_RUN_H
#define LS_TEST_TRAIN_TINY_RUN_H

#include "storage/checkpoint.h"
#include "test.h"
#include "train/train.h"

typedef struct result {
    char weights[LS_HASH_TEXT], states[LS_HASH_TEXT];
} result;

static inline void train(const char *run, int n, const char *const *sets, int nsets, bool resume) {
    enum { MOST = 40 };
    const char *all[MOST] = {"model.context=8"};
    bool unfinished = false;
    ls_error e = {0};
    assert_true(nsets < MOST);
    for (int i = 0; i < nsets; i++) all[1 + i] = sets[i];
    ls_train_options o = {.config = "configs/tiny.yaml",
                          .sets = all,
                          .nsets = 1 + nsets,
                          .nworkers = n,
                          .run = run,
                          .resume = resume};
    assert_ls_ok(ls_train(&o, &unfinished, &e), e);
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

#endif
