/* manifest.h - manifest.json of a checkpoint: its step, and the hashes of its files and of its
 * state.
 *
 * It is written last, so a directory with a manifest is complete.
 */
#ifndef LS_STORAGE_MANIFEST_H
#define LS_STORAGE_MANIFEST_H

#include "base/json.h"
#include "dataset/record_advice.h"
#include "storage/checkpoint.h"

/* Files of a checkpoint, beside those of its data (data_files.h). */
#define LS_WEIGHTS_FILE   "model.safetensors"
#define LS_OPTIMIZER_FILE "optimizer.safetensors"
#define LS_CONFIG_FILE    "config.yaml"

/* Appends the name, size and hash of a written file to the array `files`. */
ls_status ls_manifest_list(const char *folder, const char *name, ls_json *files, ls_error *);

/* A manifest's hashes of the logical state. */
typedef struct ls_state_hashes {
    ls_hash weights, optimizer;
} ls_state_hashes;

/* Writes the file. Takes ownership of `files`. */
ls_status ls_manifest_write(const char *folder, const ls_train_state *, const ls_state_hashes *,
                            const ls_checkpoint_extra *, ls_json *files, ls_error *);

typedef struct ls_manifest {
    ls_json *json;
    int64_t step;
    ls_scaler scaler; /* scale 0: none */
} ls_manifest;

/* On failure there is nothing to free. */
ls_status ls_manifest_read(const char *folder, ls_manifest *m_p, ls_error *);
void ls_manifest_free(ls_manifest *);
/* Checks that the manifest lists all files that a reader needs, and that they have the listed sizes
 * and hashes. */
ls_status ls_manifest_check_files(const ls_manifest *, const char *folder, ls_error *);
/* Has the checkpoint frozen parameters, in a file of their own (frozen_file.h)? */
bool ls_manifest_has_frozen(const ls_manifest *);
/* The hash of a listed file; false: it is not listed. */
bool ls_manifest_listed(const ls_manifest *, const char *name, ls_hash *h_p);
/* Checks that the manifest's hash `key` is this one. */
ls_status ls_manifest_check_hash(const ls_manifest *, const char *folder, const char *key, ls_hash,
                                 ls_error *);
/* The name of the order of products in bf16 (tensor/sum_order.h); NULL: it has none. */
const char *ls_manifest_sum(const ls_manifest *);
/* The validation loss over nsamples samples; false: it has none. */
bool ls_manifest_val_loss(const ls_manifest *, int64_t nsamples, double *loss_p);

#endif
