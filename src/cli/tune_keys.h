/* tune_keys.h - the picture of a search whose trials are all trained to the end: DIR/tune.svg. */
#ifndef LS_CLI_TUNE_KEYS_H
#define LS_CLI_TUNE_KEYS_H

#include "cli/tune_print.h"

/* Writes the picture, in place of an earlier one. */
ls_status cli_tune_keys_write(const cli_tune_view *, const char *path, ls_error *);

#endif
