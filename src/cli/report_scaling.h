/* report_scaling.h - lockstep report --scaling */
#ifndef LS_CLI_REPORT_SCALING_H
#define LS_CLI_REPORT_SCALING_H

#include "cli/plan_print.h"

typedef struct cli_scaling {
    const ls_forecast_world_options *world;
    const int *counts; /* [n] numbers of workers */
    int n;
    int64_t steps;   /* that are measured */
    const char *svg; /* a file; NULL: none */
    bool json;
} cli_scaling;

ls_status cli_scaling_run(const cli_scaling *, const ls_config *, ls_error *);

#endif
