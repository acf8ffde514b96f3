/* trial_curves.h - the curves of a search's trials, for its picture: the metric by the step. */
#ifndef LS_SEARCH_TRIAL_CURVES_H
#define LS_SEARCH_TRIAL_CURVES_H

#include "search/view.h"

typedef struct ls_trial_curves ls_trial_curves;

/* v lives as long as the curves. */
ls_trial_curves *ls_trial_curves_open(const ls_search_view *v);
void ls_trial_curves_close(ls_trial_curves *); /* NULL is allowed */

/* Reads the curve of a part of a trial again, from its run directory, up to a rung. */
ls_status ls_trial_curves_read(ls_trial_curves *, int trial, int rung, ls_error *);
/* Writes the picture, in place of an earlier one: 800 x 450, self-contained. */
ls_status ls_trial_curves_write(const ls_trial_curves *, const char *path, ls_error *);

#endif
