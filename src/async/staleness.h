/* staleness.h - how stale the gradients of a run were: the versions of a shard between the pull and
 * the application, as a histogram. */
#ifndef LS_ASYNC_STALENESS_H
#define LS_ASYNC_STALENESS_H

#include <stdint.h>

#include "base/mem.h"

enum { LS_STALENESS_PLACES = 32 }; /* the last one counts all that are as high or higher */

typedef struct ls_staleness {
    int64_t counts[LS_STALENESS_PLACES];
    int64_t n, sum, most;
} ls_staleness;

void ls_staleness_add(ls_staleness *, int64_t staleness);
/* Appends "mean 2.9, most 7; 0: 12%, 1: 20%, ..." */
void ls_staleness_write(const ls_staleness *, ls_buf *out);

#endif
