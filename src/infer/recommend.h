/* recommend.h - the items that a trained model recommends to users, and those that are similar to
 * an item, as rows:
 *
 *     user,rank,item,score            item,rank,similar,similarity
 *     u17,1,m4,2.31                   m4,1,m31,0.97
 *
 * A user's items are ranked by the model's scores, without those that the user has chosen in the
 * training data, unless `seen`; of equal scores the item with the lower number comes first. Two
 * items are as similar as the cosine of their vectors: what the last layer gives that reads items
 * alone (a row of a table, or the end of a tower). */
#ifndef LS_INFER_RECOMMEND_H
#define LS_INFER_RECOMMEND_H

#include "infer/predictor.h"

typedef struct ls_recommender ls_recommender;

typedef struct ls_recommender_options {
    const char *const *users; /* [nusers] ids; none: all users */
    int nusers;
    const char *const
        *items; /* [nitems] ids: what is similar to them is wanted, in place of users */
    int nitems;
    bool seen;   /* items that a user has chosen count, too: the ratings need not be there */
    int64_t top; /* rows of each, at most LS_PREDICTED_TOP */
    bool json;
} ls_recommender_options;

/* The predictor and the texts must outlive it. LS_EINVAL: an id is not in the training data, or the
 * model has no vectors of items. LS_EIO: the ratings are not there. */
ls_status ls_recommender_open(ls_predictor *, const ls_recommender_options *, ls_recommender **r_p,
                              ls_error *);
void ls_recommender_close(ls_recommender *); /* NULL is fine */

uint64_t ls_recommender_count(const ls_recommender *); /* users, or items */
void ls_recommender_begin(const ls_recommender *, ls_buf *);
/* Appends the rows of users, or items, [first, end). Any threads at the same time. */
ls_status ls_recommender_rows(const ls_recommender *, uint64_t first, uint64_t end, ls_buf *,
                              ls_error *);

#endif
