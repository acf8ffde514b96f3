/* dataset.h - what a run is trained on: a text or conversations as tokens (corpus.h), or samples of
 * files (samples.h), as ls_config_has_corpus() says.
 *
 * Constant once it is open: any threads may read samples, in any order.
 */
#ifndef LS_DATASET_DATASET_H
#define LS_DATASET_DATASET_H

#include "data/loader.h"
#include "dataset/corpus.h"
#include "dataset/data_files.h"
#include "dataset/samples.h"
#include "model/model.h"

typedef struct ls_dataset {
    ls_corpus text;        /* empty if there are samples of files; may have conversations */
    ls_samples *samples;   /* NULL: a text */
    uint64_t ntrain, nval; /* samples; ntrain 0: it is not open */
    size_t sample_nbytes;  /* as the model reads them */
} ls_dataset;

/* Makes the data set of a new run from the files that the config names. Writes nothing. */
ls_status ls_dataset_make(ls_dataset *, const ls_config *, const ls_model *, ls_error *);
/* The data set of a text. Takes the corpus over. */
ls_dataset ls_dataset_of_text(const ls_corpus *, const ls_config *);
/* Samples of other files, all as the validation part, as the run of other->dir reads its own.
 * LS_EINVAL, LS_EIO: they can't be read in this way, or the run has no record of its data. */
ls_status ls_dataset_open_files(ls_dataset *, const ls_config *, const ls_model *,
                                const ls_other_samples *, ls_error *);
/* All samples of a source, which have the model's layout, for training. Takes the source over. */
ls_dataset ls_dataset_of_source(ls_source *, const ls_config *);
/* Bytes that ls_dataset_save() writes, without small files. */
double ls_dataset_saved_nbytes(const ls_dataset *);
/* Writes the data set's files if `run` lacks them, each completely or not at all. Replaces small
 * files that differ, and logs that. */
ls_status ls_dataset_save(const ls_dataset *, const char *run, ls_error *);
bool ls_dataset_is_saved(const char *run, const ls_config *);
/* Writes files that `run` lacks: copies of those of the checkpoint (NULL: there is none, and
 * nothing has been trained), or new ones from the config's files. Logs it. LS_EINVAL: those have
 * changed. LS_EIO: they can't be read. Both messages say what to do. */
ls_status ls_dataset_restore(const char *run, const char *checkpoint, const ls_config *,
                             const ls_model *, ls_error *);
/* Opens the data set of a run directory. LS_EINVAL: a file is damaged, or differs from the run's
 * record. */
ls_status ls_dataset_open(ls_dataset *, const char *run, const ls_config *, const ls_model *,
                          ls_error *);
/* The samples of another data.val_path than the run's, for an evaluation: their texts get the
 * numbers that they have in the training data or, if those are not there, in the run's record. */
ls_status ls_dataset_open_other(ls_dataset *, const char *run, const ls_config *, const ls_model *,
                                ls_error *);
void ls_dataset_free(ls_dataset *);

bool ls_dataset_is_text(const ls_dataset *);
/* The order of a run's training samples, without reading samples. */
ls_status ls_dataset_order_of(const char *run, const ls_config *, ls_order *o_p, ls_error *);

/* A hash that two data sets share if their samples are the same. */
ls_hash ls_dataset_identity(const ls_dataset *);
/* The error of a run directory whose data set is not that of an earlier view. */
ls_status ls_dataset_fail_changed(const ls_dataset *, const char *run, ls_error *);
/* "900 training samples of 64 tokens", "... of image u8 [28, 28, 1], label i32" */
void ls_dataset_describe(const ls_dataset *, ls_buf *);
/* The copies for a checkpoint; the caller frees them. */
void ls_dataset_files(const ls_dataset *, ls_data_files *f_p);

/* The training samples of all virtual workers. */
ls_loader_config ls_dataset_loader(const ls_dataset *, const ls_config *);
/* Reads sample i < nval of the validation part: out [sample_nbytes]. */
ls_status ls_dataset_val_sample(const ls_dataset *, uint64_t i, void *out, ls_error *);
/* The number of bytes of text that one sample's targets stand for. */
double ls_dataset_text_nbytes(const ls_dataset *, const void *sample);
/* Checks that files have not changed since they were opened: at each checkpoint. */
ls_status ls_dataset_verify(ls_dataset *, ls_error *);

#endif
