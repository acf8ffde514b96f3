/* plan_answers.h - the first lines of lockstep plan: does it fit, what does a step take, and the run? */
#ifndef LS_CLI_PLAN_ANSWERS_H
#define LS_CLI_PLAN_ANSWERS_H

#include "cli/plan_forecast.h"

/* Prints at most six lines. why: the reason why x has no step; NULL: it has one. */
void cli_answers_print(const cli_forecast *, const ls_config *, const ls_plan *,
                       const cli_predicted *x, const ls_error *why);

#endif
