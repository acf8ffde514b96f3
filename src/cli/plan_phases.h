/* plan_phases.h - the part of lockstep plan about a train.batch that grows (config/phases.h). */
#ifndef LS_CLI_PLAN_PHASES_H
#define LS_CLI_PLAN_PHASES_H

#include "base/json.h"
#include "config/config.h"

/* step_s [nphases]: predicted seconds of a step in each phase; NULL: they are not predicted. */

/* Appends a table of the phases; nothing if all steps have the same batch. */
void cli_phases_print(const ls_config *, const double *step_s, ls_buf *out);
/* A list of the phases. */
ls_json *cli_phases_json(const ls_config *, const double *step_s);

#endif
