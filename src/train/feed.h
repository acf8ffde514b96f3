/* feed.h - the samples that a program hands to its trainer, as a data set (lockstep/train.h).
 *
 * The executor's loader reads the samples of a step in a thread of its own, and begins with those
 * of the next step early: a read waits until the program has written that step's samples.
 */
#ifndef LS_TRAIN_FEED_H
#define LS_TRAIN_FEED_H

#include "lockstep/data.h"
#include "train/run.h"

typedef struct ls_feed ls_feed;

typedef struct ls_feed_config {
    const ls_config *config;
    const ls_plan *plan; /* with its model */
    int worker;
    uint64_t count, hash; /* of the data set */
} ls_feed_config;

ls_status ls_feed_open(const ls_feed_config *, ls_feed **f_p, ls_error *);
/* Reads that wait fail from now on. Call it before the loader is freed. */
void ls_feed_end(ls_feed *);
void ls_feed_close(ls_feed *); /* after the loader; NULL is fine */

/* The data set, for the member. It belongs to the feed. */
const ls_dataset *ls_feed_data(const ls_feed *);

/* Begins `step`: the program writes its samples from now on. */
void ls_feed_begin(ls_feed *, int64_t step);
/* LS_EINVAL: a label or an id of a written sample is beyond what the model reads. */
ls_status ls_feed_check(const ls_feed *, ls_error *);
/* The samples of the step are written, and can be read until the next ls_feed_begin(). */
void ls_feed_hand_over(ls_feed *);

int64_t ls_feed_nsamples(const ls_feed *);
uint64_t ls_feed_number(const ls_feed *, int64_t i);
ls_sample *ls_feed_sample(ls_feed *, int64_t i);

#endif
