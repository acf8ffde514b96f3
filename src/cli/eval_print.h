/* eval_print.h - what lockstep eval has measured: for people, several models side by side, and for
 * programs. */
#ifndef LS_CLI_EVAL_PRINT_H
#define LS_CLI_EVAL_PRINT_H

#include "infer/evaluated.h"

/* One result; or several of the same data, a line each. */
void cli_evaluated_print(const ls_evaluated *, int n);
/* One line each. */
void cli_evaluated_print_json(const ls_evaluated *, int n);

#endif
