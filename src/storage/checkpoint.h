/* checkpoint.h - a step's state on disk, complete or absent.
 *
 *     RUN/checkpoints/step-N/model.safetensors       weights, by GPT-2's names
 *                            optimizer.safetensors   NAME.exp_avg and NAME.exp_avg_sq
 *                            tokenizer.json  config.yaml  corpus.json
 *                            manifest.json           step, hashes of files and of the logical state
 *     RUN/checkpoints/latest -> step-N
 *     RUN/checkpoints/best -> step-M                 the lowest validation loss, where it is kept
 *
 * Written to a hidden folder beside its final name, each file synced, the manifest last, and read
 * back; then the folder is renamed. So a step-N folder with a manifest is complete, whether or not
 * `latest` shows it. The hashes of
 * the logical state are those of `lockstep ckpt hash`: over tensors sorted by name, whatever the
 * layout in files.
 */
#ifndef LS_STORAGE_CHECKPOINT_H
#define LS_STORAGE_CHECKPOINT_H

#include "base/json.h"
#include "base/mem.h"
#include "storage/state.h"

/* The best of the checkpoints on disk, as the last one that was written found it. */
typedef struct ls_checkpoint_known {
    int64_t step; /* 0: not known */
    double loss;
} ls_checkpoint_known;

typedef struct ls_checkpoint_extra {
    const ls_buf *tokenizer, *config; /* the files' text */
    const ls_buf *record;             /* corpus.json's; NULL: there is none */
    int64_t keep;                     /* older checkpoints beyond these are removed; 0: all stay */
    double val_loss;                  /* after this step */
    int64_t val_samples;              /* of that evaluation; 0: there was none */
    int64_t best_samples; /* the checkpoint with the lowest val_loss over this many samples stays,
                             too; 0: it may go */
    ls_checkpoint_known
        *known; /* read, and set on success: spares reading all manifests; NULL: they
                                   are read */
} ls_checkpoint_extra;

/* On failure nothing half written remains, and older checkpoints are untouched. Call it again, for
 * this step or a later one: folders that are missing are made. */
ls_status ls_checkpoint_write(const char *run, const ls_train_state *, const ls_checkpoint_extra *,
                              ls_error *);

/* ---- one that several processes write, on hosts that share the file system ----
 *
 * One of them begins; then each writes the part of its workers, at the same time; when all have,
 * the first one finishes, which is as atomic as ls_checkpoint_write(). */

/* The hidden folder of an attempt, which no other has, whatever was killed and lives on: free() it.
 */
char *ls_checkpoint_hidden(const char *run, int64_t step, uint32_t attempt);
/* The folder, and files with room for what is written. On failure nothing remains. */
ls_status ls_checkpoint_begin(const char *hidden, const ls_train_state *, ls_error *);
/* What workers first to end - 1 own by the plan. */
typedef struct ls_owners {
    const ls_plan *plan;
    int first, end;
} ls_owners;
ls_status ls_checkpoint_part(const char *hidden, const ls_train_state *, const ls_owners *,
                             ls_error *);
/* The parts of workers 0 to end - 1 are written, and they own all. On failure nothing remains. */
ls_status ls_checkpoint_finish(const char *run, const char *hidden, const ls_train_state *,
                               const ls_owners *, const ls_checkpoint_extra *, ls_error *);
void ls_checkpoint_drop(const char *hidden);

/* That of a step: free() it. */
char *ls_checkpoint_path(const char *run, int64_t step);

/* The folder of the newest checkpoint of RUN (*path_p is free()d by the caller), and its step, if
 * step_p is not NULL. */
ls_status ls_checkpoint_newest(const char *run, char **path_p, int64_t *step_p, ls_error *);
/* The newest that ls_checkpoint_verify() finds good; those that it passes over are logged, with the
 * reason. Where there is none at all, good or bad: NULL, and 0. */
ls_status ls_checkpoint_newest_good(const char *run, char **path_p, int64_t *step_p, ls_error *);

/* Of RUN's checkpoints up to step `newest`: the step of the one with the lowest validation loss
 * over `nsamples` samples, by their manifests, the first of several; 0: none has one. */
int64_t ls_checkpoint_best(const char *run, int64_t newest, int64_t nsamples, double *loss_p);
/* The loss of one; false: it is not there, or was not evaluated over so many samples. */
bool ls_checkpoint_val(const char *run, int64_t step, int64_t nsamples, double *loss_p);

/* Readers check what they read against the manifest's hashes, once, before they use it. Where that
 * fails, and an older checkpoint beside it is good, the message names that. */

/* RUN, RUN/checkpoints/step-N or a link to it -> the checkpoint's folder. */
ls_status ls_checkpoint_resolve(const char *path, char **path_p, ls_error *);

/* Checks every file against the manifest, then fills the state. m and v may be NULL: weights alone.
 * The model must have the tensors' names and shapes. */
ls_status ls_checkpoint_load(const char *path, ls_train_state *, ls_error *);

typedef struct ls_checkpoint_info {
    int64_t step;
    ls_hash weights, optimizer; /* of the logical state, computed from the files */
    size_t ntensors, count, nbytes;
} ls_checkpoint_info;

/* Reads and checks all; manifest, files and logical hashes must agree. */
ls_status ls_checkpoint_verify(const char *path, ls_checkpoint_info *i_p, ls_error *);

/* The same, and no other checkpoint is looked at to name it in the message. */
ls_status ls_checkpoint_read_back(const char *path, ls_checkpoint_info *i_p, ls_error *);

/* Appends a table of the checkpoint's tensors. */
ls_status ls_checkpoint_show(const char *path, ls_buf *out, ls_error *);
/* The same for programs (docs/json.md): *j_p is the caller's. */
ls_status ls_checkpoint_show_json(const char *path, ls_json **j_p, ls_error *);

/* The newest step below this one of which RUN has a checkpoint; -1: there is none. */
ls_status ls_checkpoint_below(const char *run, int64_t below, int64_t *step_p, ls_error *);

#endif
