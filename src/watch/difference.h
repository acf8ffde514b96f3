/* difference.h - the difference of two runs, step by step: by how much a number of one is above
 * that of the other. */
#ifndef LS_WATCH_DIFFERENCE_H
#define LS_WATCH_DIFFERENCE_H

#include "base/error.h"
#include "base/mem.h"

/* Appends {"steps": compared, "first": the first step that differs or null, "every", "x": the first
 * step of each stretch, "low", "high"}, of this number of metrics.jsonl, in at most `columns`
 * stretches. Reads both files; steps that only one of them has are left out. LS_EIO, LS_EINVAL:
 * they can't be compared. */
typedef struct ls_difference_query {
    const char *run, *base; /* run directories */
    const char *name;
    int columns;
} ls_difference_query;
ls_status ls_difference_write(const ls_difference_query *, ls_buf *out, ls_error *);

#endif
