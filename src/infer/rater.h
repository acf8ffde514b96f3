/* rater.h - what a model trained on ratings reads: a user, and the items that it compares; and the
 * ids that the run has saved of both. */
#ifndef LS_INFER_RATER_H
#define LS_INFER_RATER_H

#include "infer/predictor.h"
#include "source/ids.h"

typedef struct ls_rater {
    const ls_model *model;
    ls_ids ids;
    const ls_id_names *user_names, *item_names; /* in `ids` */
    const ls_field *user, *items;               /* of a sample; user NULL: the model reads none */
    int64_t width;                              /* items of a sample */
} ls_rater;

/* Is the model trained on ratings? */
bool ls_rater_is_possible(const ls_predictor *);
/* The predictor must outlive it. LS_EIO: the run has no ids. LS_EINVAL: the ids, or the fields that
 * the model reads, do not fit. */
ls_status ls_rater_open(const ls_predictor *, ls_rater *r_p, ls_error *);
void ls_rater_close(ls_rater *);

/* A sample of a user and items [n], 1 <= n; the last of them fills it up. */
void ls_rater_fill(const ls_rater *, int32_t user, const int32_t *items, int64_t n, char *sample);

#endif
