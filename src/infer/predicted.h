/* predicted.h - the input of predictions: samples of files, read as the model's run reads its own
 * data, pairs of users and items (rated_pairs.h), or texts (texts.h).
 *
 * Only the fields of files that the predictions need are read: labels may be missing. Only the last
 * tokens of a text count, as many as the model's context has.
 *
 * The number of a sample is that of its row, or record, in the data: those that are left out count.
 * Data of several files have keys: the file's name, and the number of the row in it. */
#ifndef LS_INFER_PREDICTED_H
#define LS_INFER_PREDICTED_H

#include "infer/predictor.h"
#include "report/predictions.h"

typedef struct ls_predicted ls_predicted;

/* paths, labels: as data.path and data.labels; paths NULL: the validation part of the run's own
 * data, of samples that are no ratings. The predictor must outlive it. LS_EINVAL: they lack what
 * the model reads, or are damaged. */
ls_status ls_predicted_open(ls_predictor *, const char *paths, const char *labels,
                            ls_predicted **d_p, ls_error *);
void ls_predicted_close(ls_predicted *); /* NULL is fine */
uint64_t ls_predicted_count(const ls_predicted *);
/* Logs what was left out, and why, if anything was. */
void ls_predicted_log(const ls_predicted *);
/* Adds the keys of rows. */
void ls_predicted_set_keys(const ls_predicted *, ls_predictions *);
/* Output k of a row. */
ls_predictor_output ls_predicted_output(const ls_predicted *, int k);

/* Appends the rows of samples [first, end). Any threads at the same time. */
ls_status ls_predicted_rows(const ls_predicted *, const ls_predictions *, uint64_t first,
                            uint64_t end, ls_buf *, ls_error *);
/* LS_EIO: a file has changed since it was opened. */
ls_status ls_predicted_verify(const ls_predicted *, ls_error *);

#endif
