/* apart.h - steps that islands make apart: an island's workers decide them alone, so no worker waits
 * for those of another island.
 *
 * Islands need nothing of each other between two exchanges of parameters. In a step apart, norms
 * and losses are summed over the workers of an island, which note the sums and then change the
 * island's part of the state. After some steps apart, all workers join their notes: the results
 * have the bits that a common sum gives. All workers decide the next step again. A step
 * apart does not change the common parameters: their blocks keep the mark of the latest step that
 * all decided.
 *
 * If workers are lost, some islands are ahead of others. Each host knows how far its islands are
 * from the marks of their blocks (store.h). In the next view all workers begin after the latest step
 * that all decided; where an island is ahead, its steps are skipped, and its notes are used. This is
 * exact, since what an island becomes until the next exchange follows from its own state.
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

/* A worker's step, after which the state has had `changes`, with `count` samples. */
typedef struct ls_apart_step {
    int worker;
    int64_t step, changes;
    uint64_t count;
} ls_apart_step;
/* After a step apart: notes what the worker's islands have of it. False: all of these are ahead, and
 * had it before. */
bool ls_apart_note(const ls_world *, const ls_share *, const ls_apart_step *);

/* Collective, where a view begins: finds how far each island is (ls_world.ahead), on any host, up to
 * `last` changes. LS_EPEER: no host has the notes of an island that is ahead. */
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
