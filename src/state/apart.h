/* apart.h - steps that islands make apart: the workers of an island decide these steps alone, so no
 * worker waits for the workers of another island.
 *
 * Islands need nothing of each other between two exchanges of parameters. In a step apart, norms
 * and losses are summed over the workers of an island, which note the sums and then change the
 * island's part of the state. After a number of steps apart, all workers join their notes: the
 * results have the bits that a common sum would have. The next step is decided by all workers
 * again. A step apart does not change the common parameters: their blocks keep the mark of the
 * latest step that all workers decided.
 *
 * If workers are lost, some islands may be ahead of others. Each host knows from the marks of their
 * blocks (store.h) how many steps its islands have made. In the next view all workers begin after
 * the latest step that all decided; steps that an island has made already are skipped, and its
 * notes of them are used. This is exact, since the state of an island until the next exchange
 * follows from its own state alone.
 */
#ifndef LS_STATE_APART_H
#define LS_STATE_APART_H

#include "state/world.h"

enum { LS_APART_MOST = 64 /* steps apart in a row */ };

/* Doubles of the notes of a step: the square of each island's norm, and each sample's
 * losses and weight, as in the scalars of the plan. */
size_t ls_apart_row(const ls_share *);
size_t ls_apart_rows_nbytes(const ls_share *);
size_t ls_apart_marks_nbytes(const ls_share *);

/* Memory for notes in a world without a store. */
ls_status ls_apart_open(ls_world *, const ls_share *, ls_error *);
void ls_apart_close(ls_world *, const ls_share *);

/* A step of a worker, with `count` samples; after it the number of changes of the state is
 * `changes`. */
typedef struct ls_apart_step {
    int worker;
    int64_t step, changes;
    uint64_t count;
} ls_apart_step;
/* After a step apart: notes the sums of the worker's islands. False: all of these islands are
 * ahead, and made the step before. */
bool ls_apart_note(const ls_world *, const ls_share *, const ls_apart_step *);

/* Collective, at the beginning of a view: finds how many changes each island has had on any host
 * (ls_world.ahead), up to `last`. LS_EPEER: no host has the notes of an island that is ahead. */
ls_status ls_apart_agree(ls_world *, const ls_share *, int64_t last, ls_error *);
/* How many steps after `steps` an island is ahead, at most. */
int64_t ls_apart_most_ahead(const ls_world *, const ls_share *, int64_t steps);

/* The notes of n steps from `first` on. */
typedef struct ls_apart_notes {
    int64_t first;
    int n;
    uint64_t counts[LS_APART_MOST]; /* the samples of each step */
    double *rows;                   /* [n][ls_apart_row()] */
} ls_apart_notes;

/* Collective: rows gets the notes of all islands. */
ls_status ls_apart_join(const ls_world *, const ls_share *, const ls_apart_notes *, ls_error *);

#endif
