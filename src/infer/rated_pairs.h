/* rated_pairs.h - pairs of a user and an item, the input of predictions by a model trained on
 * ratings: the rows of files, as data.ratings names their columns. Ratings and times need not be
 * there, and no row is left out for its rating. A pair is unknown if the training data lack the
 * user or the item.
 */
#ifndef LS_INFER_RATED_PAIRS_H
#define LS_INFER_RATED_PAIRS_H

#include "infer/rater.h"
#include "source/gaps.h"

typedef struct ls_rated_pairs {
    ls_rater rater;
    ls_id_names users, items; /* the texts of the files, known or not */
    int32_t *list;            /* [n][2] numbers of both among these texts */
    uint64_t n, nunknown;
    uint64_t ndamaged, nmissing; /* rows that are left out */
    ls_gaps gaps;                /* of these */
} ls_rated_pairs;

/* paths as data.path. The predictor must outlive it. LS_EINVAL: a column is missing, a row is
 * damaged, or the model reads something else. LS_EIO: a file can't be read. */
ls_status ls_rated_pairs_open(const ls_predictor *, const char *paths, ls_rated_pairs **p_p,
                              ls_error *);
void ls_rated_pairs_close(ls_rated_pairs *); /* NULL is fine */

const char *ls_rated_pairs_user(const ls_rated_pairs *, uint64_t i);
const char *ls_rated_pairs_item(const ls_rated_pairs *, uint64_t i);
/* The sample of pair i. False: it is unknown, and the sample is that of another pair. */
bool ls_rated_pairs_sample(const ls_rated_pairs *, uint64_t i, char *sample);
bool ls_rated_pairs_is_known(const ls_rated_pairs *, uint64_t i);

#endif
