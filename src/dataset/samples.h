/* samples.h - a run's samples from files of data: a training part and a validation part, with the
 * fields that the model reads, in its layout.
 *
 * The files stay where they are and are read while the run trains. Constant once they are open: any
 * threads may read.
 */
#ifndef LS_DATASET_SAMPLES_H
#define LS_DATASET_SAMPLES_H

#include "config/config.h"
#include "data/order.h"
#include "data/split.h"
#include "dataset/data_record.h"
#include "model/model.h"
#include "source/ids.h"
#include "source/tables/csv_rules.h"
#include "source/tables/ratings.h"

typedef struct ls_samples {
    ls_source *source;
    ls_source *val;            /* of data.val_path; NULL: the split's part of `source`; `source`:
                                * there is no training part */
    const ls_source *files[2]; /* of both as they were opened, to verify them; belong to them */
    ls_split split;
    ls_mix mix;     /* of the training part; 0 parts: each sample once */
    ls_order order; /* of an epoch */
    uint64_t nval;
    const ls_ratings *ratings; /* that the samples are made of; NULL: they are made of no ratings */
    ls_data_record record;
    ls_buf record_text, ids_text; /* of data.json; of ids.json, empty: there are no ids */
    ls_ids given;                 /* ids of another source, by which these are read */
} ls_samples;

/* Opens the files that the config names as they are, without a model; images have the form that
 * data.resize and the keys beside it say. fresh: an index in the cache is not used, but made
 * again. */
ls_status ls_samples_open_files(const ls_config *, bool fresh, ls_source **s_p, ls_error *);

/* The training samples of an epoch, of the files that the config names. */
ls_status ls_samples_count(const ls_config *, uint64_t *n_p, ls_error *);

/* Opens the files that the config names. run: the directory of a run that has begun, and r its
 * record, which says where relative paths begin, if not in the working directory; NULL: a new run.
 * LS_EINVAL: the files lack what the model reads, or are damaged. LS_EIO: they are missing, or
 * can't be read. */
ls_status ls_samples_open(const ls_config *, const ls_model *, const char *run,
                          const ls_data_record *r, ls_samples **s_p, ls_error *);
/* Other files than the run's, e.g. without labels. */
typedef struct ls_other_samples {
    const char *paths, *labels; /* as data.path and data.labels; labels may be "" */
    const bool *fields;         /* [ninputs] of the model: those that are read; NULL: all */
    const char *dir;            /* the run or checkpoint, for the ids that it keeps */
    int *missing_p; /* gets the number of the model's input that the files lack, if `fields` is NULL
                     * and they lack one; NULL: not wanted */
} ls_other_samples;
/* Opens the samples of other files, all as the validation part, as a run whose training data have
 * this numbering reads them. */
ls_status ls_samples_open_other(const ls_config *, const ls_model *, const ls_numbering *,
                                const ls_other_samples *, ls_samples **s_p, ls_error *);
/* All samples of a source that has the model's layout, for training, in the global order of the
 * seed. Takes it over. */
ls_samples *ls_samples_of(ls_source *, uint64_t seed);
void ls_samples_close(ls_samples *); /* NULL is fine */

/* The order of an epoch if the files have the samples of the record. */
ls_status ls_samples_order(const ls_config *, const ls_data_record *, ls_order *o_p, ls_error *);
/* Are these the samples of the record in the directory `dir`? LS_EINVAL: no; the message says what
 * to do. */
ls_status ls_samples_check(const ls_samples *, const ls_config *, const ls_data_record *,
                           const char *dir, ls_error *);

/* A training sample, for the loader (data/loader.h); samples: an ls_samples. */
ls_status ls_samples_train(const void *samples, const ls_draw *, size_t nbytes, void *sample,
                           ls_error *);
/* Sample i < nval of the validation part. */
ls_status ls_samples_val(const ls_samples *, uint64_t i, void *sample, ls_error *);
/* The number of sample i of the validation part in the source that has it. */
uint64_t ls_samples_val_at(const ls_samples *, uint64_t i, const ls_source **source_p);

/* The record of sample i of the validation part (ls_source_record()). */
ls_record_at ls_samples_record(const ls_samples *, uint64_t i);
/* Do samples have names (ls_source_put_name())? Appends that of sample i of the validation part;
 * "": it has none. */
bool ls_samples_have_names(const ls_samples *);
void ls_samples_put_name(const ls_samples *, uint64_t i, ls_buf *);

/* Checks that the files have not changed since they were opened. LS_EIO: one has. */
ls_status ls_samples_verify(const ls_samples *, ls_error *);

/* Appends the fields of a sample, and how many damaged records are left out, if any: "image u8
 * [28, 28, 1], label i32 (2 damaged records left out)". */
void ls_samples_describe(const ls_samples *, ls_buf *);

#endif
