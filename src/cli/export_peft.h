/* export_peft.h - lockstep export RUN --to peft. */
#ifndef LS_CLI_EXPORT_PEFT_H
#define LS_CLI_EXPORT_PEFT_H

#include <stdbool.h>

#include "base/error.h"

/* Writes the run's adapters, and prints what was written. */
ls_status cli_export_peft(const char *from, bool ema, const char *to, bool json, ls_error *);

#endif
