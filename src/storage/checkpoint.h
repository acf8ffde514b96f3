/* checkpoint.h - a step's state on disk, complete or absent.
 *
 *     RUN/checkpoints/step-N/model.safetensors       weights, by GPT-2's names
 *                            optimizer.safetensors   the optimizer's states, NAME.exp_avg and so
 *                                                    on, and what compression has yet to send,
 *                                                    NAME.error.V
 *                            frozen.safetensors      weights that are not trained (frozen_file.h)
 *                            config.yaml             and what it was trained on (data_files.h)
 *                            manifest.json           step, hashes of files and of the logical state
 *     RUN/checkpoints/latest -> step-N
 *     RUN/checkpoints/best -> step-M                 the lowest validation loss, if it is retained
 *
 * A checkpoint is written to a hidden directory beside its final name, each file synced, the
 * manifest last, and read back; then the directory is renamed. So a directory step-N with a
 * manifest is complete, whether or not `latest` points to it. The hashes of the logical state are
 * those of `lockstep ckpt hash`: over tensors sorted by name, whatever the layout in files.
 */
#ifndef LS_STORAGE_CHECKPOINT_H
#define LS_STORAGE_CHECKPOINT_H

#include "base/json.h"
#include "base/mem.h"
#include "dataset/data_files.h"
#include "storage/state.h"

/* The best of the checkpoints on disk, as determined when the last one was written. */
typedef struct ls_checkpoint_known {
    int64_t step; /* 0: not known */
    double loss;
} ls_checkpoint_known;

typedef struct ls_checkpoint_extra {
    const ls_data_files *data;
    const ls_buf *config;       /* the file's text */
    ls_hash frozen;             /* of the run's frozen parameters, at opening (frozen_file.h) */
    const char *sum;            /* the order of products in bf16 (tensor/sum_order.h); NULL: the run
                                 * has none */
    int64_t keep;               /* number of the newest to retain; 0: all */
    double val_loss;            /* after this step */
    int64_t val_samples;        /* of that evaluation; 0: there was none */
    int64_t best_samples;       /* the checkpoint with the lowest val_loss over this many samples is
                                 * retained, too; 0: it is not */
    ls_checkpoint_known *known; /* read, and set on success: saves reading all manifests; NULL: they
                                 * are read */
} ls_checkpoint_extra;

/* Makes missing directories. On failure no partly written file remains, and older checkpoints are
 * untouched; a later call, for this step or another one, can succeed. */
ls_status ls_checkpoint_write(const char *run, const ls_train_state *, const ls_checkpoint_extra *,
                              ls_error *);

/* ---- a checkpoint that several processes write, on hosts that share the file system ----
 *
 * One process begins; then all write the parts of their workers at the same time; when all have
 * written, the first process finishes, which is as atomic as ls_checkpoint_write(). */

/* The hidden directory of an attempt: free() it. No other attempt uses it, even if processes of
 * this one live on. */
char *ls_checkpoint_hidden(const char *run, int64_t step, uint32_t attempt);
/* Makes the directory, and files of the final size. On failure nothing remains. */
ls_status ls_checkpoint_begin(const char *hidden, const ls_train_state *, ls_error *);
/* The state that workers first to end - 1 own by the plan. */
typedef struct ls_owners {
    const ls_plan *plan;
    int first, end;
} ls_owners;
ls_status ls_checkpoint_part(const char *hidden, const ls_train_state *, const ls_owners *,
                             ls_error *);
/* Call it when the parts of workers 0 to end - 1, which own the whole state, are written. On
 * failure nothing remains. */
ls_status ls_checkpoint_finish(const char *run, const char *hidden, const ls_train_state *,
                               const ls_owners *, const ls_checkpoint_extra *, ls_error *);
void ls_checkpoint_drop(const char *hidden);

/* The directory of a step's checkpoint: free() it. */
char *ls_checkpoint_path(const char *run, int64_t step);

/* The directory of RUN's newest checkpoint (the caller frees *path_p) and, if step_p is not NULL,
 * its step. */
ls_status ls_checkpoint_newest(const char *run, char **path_p, int64_t *step_p, ls_error *);
/* The newest checkpoint that ls_checkpoint_verify() finds good; it logs those that it skips, with
 * the reason. NULL and 0 if there is none at all, good or bad. */
ls_status ls_checkpoint_newest_good(const char *run, char **path_p, int64_t *step_p, ls_error *);

/* The step of the checkpoint with the lowest validation loss over `nsamples` samples, by the
 * manifests of RUN's checkpoints up to step `newest`; the first if several are equal. 0: none has a
 * loss. */
int64_t ls_checkpoint_best(const char *run, int64_t newest, int64_t nsamples, double *loss_p);
/* The loss of one checkpoint; false: it does not exist, or was not evaluated over nsamples. */
bool ls_checkpoint_val(const char *run, int64_t step, int64_t nsamples, double *loss_p);

/* Readers check the files against the manifest's hashes, once, before they use them. If the check
 * fails and an older checkpoint beside it is good, the message names the older one. */

/* RUN, RUN/checkpoints/step-N or a link to it -> the checkpoint's directory. */
ls_status ls_checkpoint_resolve(const char *path, char **path_p, ls_error *);
/* The run directory of a checkpoint or of a link to one; of a run directory, itself. free() it. */
char *ls_checkpoint_run(const char *path);

/* Checks every file against the manifest, then fills the state. m and v may be NULL: only weights
 * are loaded. The model must have the tensors' names and shapes. */
ls_status ls_checkpoint_load(const char *path, ls_train_state *, ls_error *);

/* Before a run continues from a checkpoint: are its products in bf16 still summed in the order in
 * which those before were (tensor/sum_order.h)? If the checkpoint has no name of an order, an older
 * version wrote it: a line of the log says what that means. LS_EINVAL: an order that this version
 * does not have. Whoever only reads the weights need not ask. */
ls_status ls_checkpoint_check_order(const char *path, const ls_config *, ls_error *);

/* Sets errors [nerrors][ls_share.error_floats] to those of the virtual workers in wants [nerrors].
 * Checks the checkpoint's files. */
typedef struct ls_checkpoint_errors {
    const ls_plan *plan;
    const bool *wants;
    int nerrors;
    float *errors;
} ls_checkpoint_errors;
ls_status ls_checkpoint_load_errors(const char *path, const ls_checkpoint_errors *, ls_error *);

/* Sets a buffer [frozen_floats] to the weights of the model's frozen parameters, whether the
 * checkpoint's run has trained them or not. Checks its files. */
ls_status ls_checkpoint_load_frozen(const char *path, const ls_model *, float *buffer, ls_error *);

enum { LS_CHECKPOINT_SUM = 41 };

typedef struct ls_checkpoint_info {
    int64_t step;
    ls_hash weights, optimizer; /* of the logical state, computed from the files */
    size_t ntensors, count, nbytes;
    char sum[LS_CHECKPOINT_SUM]; /* of the manifest; "": it has none */
} ls_checkpoint_info;

/* Reads and checks everything; manifest, files and logical hashes must agree. */
ls_status ls_checkpoint_verify(const char *path, ls_checkpoint_info *i_p, ls_error *);

/* As ls_checkpoint_verify(), without looking for an older checkpoint to name in the message. */
ls_status ls_checkpoint_read_back(const char *path, ls_checkpoint_info *i_p, ls_error *);

/* Creates a safetensors file with the weights, or with their average (optim.ema) under the same
 * names. */
ls_status ls_checkpoint_export(const char *path, bool ema, const char *file, ls_error *);

/* Appends a table of the checkpoint's tensors. */
ls_status ls_checkpoint_show(const char *path, ls_buf *out, ls_error *);
/* The table as JSON (docs/reference/json.md); the caller frees *j_p. */
ls_status ls_checkpoint_show_json(const char *path, ls_json **j_p, ls_error *);

/* The newest step below `below` for which RUN has a checkpoint; -1: there is none. */
ls_status ls_checkpoint_below(const char *run, int64_t below, int64_t *step_p, ls_error *);

#endif
