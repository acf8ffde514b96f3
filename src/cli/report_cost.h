/* report_cost.h - lockstep report --cost */
#ifndef LS_CLI_REPORT_COST_H
#define LS_CLI_REPORT_COST_H

#include <stdbool.h>

#include "base/error.h"

/* Prints what each of the runs [n] has used so far, by the prices in the machine's file. */
ls_status cli_cost_print(const char *const *runs, int n, const char *machine, bool json,
                         ls_error *);

#endif
