/* tune.h - lockstep tune: searches over configs (perf/search.h).
 *
 * Trials are run directories in DIR, trained by this program as other processes, several at a time,
 * from one rung to the next. What comes of it depends on neither their number nor their workers, as
 * runs have the same bits on any of these. The command may be killed at any moment: what a trial
 * came to is in DIR/tune.jsonl (tune_journal.h), or else found again from its run directory, and the
 * same command, or `lockstep tune --resume DIR`, goes on from there (tune_saved.h).
 */
#ifndef LS_CLI_TUNE_H
#define LS_CLI_TUNE_H

#include <stdbool.h>

#include "cli/tune_saved.h"
#include "config/config.h"

typedef struct cli_tune {
    const ls_config *config;
    const cli_tune_saved *asked; /* what the config was made of, and the text of the space */
    const char *space, *dir;     /* the name of the space; the directory of trials */
    int64_t workers;             /* that all trials have together; 0: one per core */
    int64_t parallel;            /* trials at once, at most; 0: as many as workers */
    bool list;                   /* prints the trials' values, and trains nothing */
    bool json;
} cli_tune;

ls_status cli_tune_run(const cli_tune *, ls_error *);

#endif
