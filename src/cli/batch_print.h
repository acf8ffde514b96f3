/* batch_print.h - what lockstep batch prints. */
#ifndef LS_CLI_BATCH_PRINT_H
#define LS_CLI_BATCH_PRINT_H

#include "search/branches.h"
#include "search/targets.h"

void cli_branches_print(const ls_branches *);
void cli_branches_print_json(const ls_branches *);
void cli_targets_print(const ls_targets *);
void cli_targets_print_json(const ls_targets *);

#endif
