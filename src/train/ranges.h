/* ranges.h - the range of virtual workers that each worker of a view runs.
 *
 * Ranges are even, unless measured times show that other ranges would make the step faster
 * (cluster/balance.h). Such ranges are proposed while a view runs, and take effect in the next view
 * if it has the same number of workers.
 */
#ifndef LS_TRAIN_RANGES_H
#define LS_TRAIN_RANGES_H

#include "cluster/balance.h"
#include "config/config.h"
#include "net/local/board.h"
#include "plan/plan.h"

typedef struct ls_ranges {
    int *now;      /* [n + 1] of this view (plan.h); NULL: even ranges */
    int *next;     /* [n + 1] of the next view; NULL: the same */
    int *proposal; /* [V + 1] memory for `next` */
    ls_balance balance;
    int64_t balanced_view; /* the view that `balance` measures */
} ls_ranges;

/* What is measured in a view. */
typedef struct ls_ranges_view {
    const ls_plan *plan;
    const ls_board *board;
    int64_t number; /* of the view */
    int64_t steps;  /* complete by now */
} ls_ranges_view;

/* Checks the times that workers have noted. True: a new view should begin, with other ranges or
 * (survival.slow_limit) without a slow worker. Logs the reason. */
bool ls_ranges_look(ls_ranges *, const ls_config *, const ls_ranges_view *);
/* Begins a view with a new layout. same: it has as many workers as the view before. */
void ls_ranges_begin(ls_ranges *, bool same);
void ls_ranges_free(ls_ranges *);

#endif
