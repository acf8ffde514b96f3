/* plan_text.h - a plan as `lockstep plan` shows it: where workers stand, memory, traffic, phases;
 * for people and for programs (docs/reference/json.md). */
#ifndef LS_PERF_PLAN_TEXT_H
#define LS_PERF_PLAN_TEXT_H

#include "base/json.h"
#include "config/config.h"
#include "plan/plan.h"

/* Appends all that follows the layers and the actions. workers: those of the run, where the plan is
 * that of one process. near: workers of a host; 0: there is one host. */
void ls_plan_print_rest(const ls_config *, const ls_plan *, int workers, int near, ls_buf *out);
/* The sizes of the plan and its memory; workers as above. The caller may add a prediction, and
 * frees the object. */
ls_json *ls_plan_json(const ls_config *, const ls_plan *, int workers);

/* Phases of a train.batch that grows (config/phases.h). step_s [nphases]: predicted seconds of a
 * step in each; NULL: they are not predicted. A table, or nothing if all steps have the same batch;
 * and a list. */
void ls_phases_print(const ls_config *, const double *step_s, ls_buf *out);
ls_json *ls_phases_json(const ls_config *, const double *step_s);

#endif
