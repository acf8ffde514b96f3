/* busy.h - processes that compute all the time, to load the machine during a measurement. */
#ifndef LS_PERF_BUSY_H
#define LS_PERF_BUSY_H

#include <sys/types.h>

#include "base/error.h"

enum { LS_BUSY_MOST = 64 };

typedef struct ls_busy {
    pid_t pids[LS_BUSY_MOST];
    int n;
} ls_busy;

/* Starts n processes; they end with this process at the latest. LS_ENOMEM: none is left running. */
ls_status ls_busy_start(int n, ls_busy *b_p, ls_error *);
void ls_busy_end(ls_busy *);

#endif
