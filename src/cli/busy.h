/* busy.h - processes that compute all the time, to load the machine during a measurement. */
#ifndef LS_CLI_BUSY_H
#define LS_CLI_BUSY_H

#include <sys/types.h>

#include "base/error.h"

enum { CLI_BUSY_MAX = 64 };

typedef struct cli_busy {
    pid_t pids[CLI_BUSY_MAX];
    int n;
} cli_busy;

/* Starts n processes; they end with this process at the latest. LS_ENOMEM: none is left running. */
ls_status cli_busy_start(int n, cli_busy *b_p, ls_error *);
void cli_busy_end(cli_busy *);

#endif
