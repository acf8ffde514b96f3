/* trial_journal.h - the results of `lockstep tune`, as they come: DIR/tune.jsonl.
 *
 * The first line has the method, its settings and the space; each other line is the metric of a
 * trial at a rung: {"trial": 3, "step": 16, "metric": 4.2}, or null where the loss was no number. A
 * line is written at once and synced. One that was cut off by a kill is removed.
 */
#ifndef LS_SEARCH_TRIAL_JOURNAL_H
#define LS_SEARCH_TRIAL_JOURNAL_H

#include "search/space.h"

typedef struct ls_search_result {
    int trial; /* from 0 */
    int64_t step;
    double metric; /* NAN: it diverged */
} ls_search_result;

typedef struct ls_search_journal {
    char *path;
    int fd;
} ls_search_journal;

/* Calls use(arg, result) for each line that is there. LS_EINVAL: it is of another search. */
typedef void ls_search_use(void *arg, const ls_search_result *);
ls_status ls_search_journal_open(const char *dir, const ls_space *, ls_search_use *, void *arg,
                                 ls_search_journal *j_p, ls_error *);
ls_status ls_search_journal_add(ls_search_journal *, const ls_search_result *, ls_error *);
void ls_search_journal_close(ls_search_journal *);

#endif
