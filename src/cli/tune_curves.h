/* tune_curves.h - the curves of a search's trials, for its picture: DIR/tune.svg. */
#ifndef LS_CLI_TUNE_CURVES_H
#define LS_CLI_TUNE_CURVES_H

#include "perf/search.h"

typedef struct cli_tune_curves cli_tune_curves;

cli_tune_curves *cli_tune_curves_open(const ls_search *, const ls_space *);
void cli_tune_curves_close(cli_tune_curves *); /* NULL is allowed */

/* Reads the curve of a part of a trial again, from its run directory, up to a step. */
ls_status cli_tune_curves_read(cli_tune_curves *, const char *run, int trial, int part,
                               int64_t until, ls_error *);
/* Writes the picture, in place of an earlier one. */
ls_status cli_tune_curves_write(const cli_tune_curves *, const char *path, ls_error *);

#endif
