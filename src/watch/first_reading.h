/* first_reading.h - runs that are read for the first time, by threads beside the one that serves.
 *
 * First the states of all, then the lines of each: of those first that someone waits for. A run
 * belongs to these threads until ls_first_reading_take() has returned it: its status at
 * LS_RUN_KNOWN, its lines at LS_RUN_READ.
 */
#ifndef LS_WATCH_FIRST_READING_H
#define LS_WATCH_FIRST_READING_H

#include "watch/watcher_run.h"

typedef struct ls_first_reading ls_first_reading;

ls_first_reading *ls_first_reading_open(void);
/* Ends in a moment, whatever is still to be read. */
void ls_first_reading_close(ls_first_reading *);

/* Reads these runs [n], too. */
void ls_first_reading_add(ls_first_reading *, ls_watcher_run *const *runs, int n);
/* Someone waits for the lines of the run. */
void ls_first_reading_want(ls_first_reading *, const ls_watcher_run *);

/* Sets the stage of runs that have reached one; returns whether there were any. *left_p: runs that
 * are not read yet; *found_p: of these, those whose state is not known. */
bool ls_first_reading_take(ls_first_reading *, int *left_p, int *found_p);
/* Waits until all are read; then take them. */
void ls_first_reading_wait(ls_first_reading *);

#endif
