/* tune_journal.h - the results of `lockstep tune`, as they come: DIR/tune.jsonl.
 *
 * The first line has the method, its settings and the space; each other line is the metric of a
 * trial at a rung: {"trial": 3, "step": 16, "metric": 4.2}, or null where the loss was no number. A
 * line is written at once and synced. One that was cut off by a kill is removed.
 */
#ifndef LS_CLI_TUNE_JOURNAL_H
#define LS_CLI_TUNE_JOURNAL_H

#include "perf/space.h"

typedef struct cli_tune_result {
    int trial; /* from 0 */
    int64_t step;
    double metric; /* NAN: it diverged */
} cli_tune_result;

typedef struct cli_tune_journal {
    char *path;
    int fd;
} cli_tune_journal;

/* Calls use(arg, result) for each line that is there. LS_EINVAL: it is of another search. */
typedef void cli_tune_use(void *arg, const cli_tune_result *);
ls_status cli_tune_journal_open(const char *dir, const ls_space *, cli_tune_use *, void *arg,
                                cli_tune_journal *j_p, ls_error *);
ls_status cli_tune_journal_add(cli_tune_journal *, const cli_tune_result *, ls_error *);
void cli_tune_journal_close(cli_tune_journal *);

#endif
