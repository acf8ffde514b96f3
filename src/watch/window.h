/* window.h - what a picture of a part of a run shows, as JSON for the page.
 *
 * A picture of `columns` columns gets as many stretches of rows, of each series the lowest,
 * highest, first and last value; or single rows, where there are no more of them than columns. The
 * stretches of a picture begin at multiples of their length, so that they stay the same while the
 * run goes on.
 *
 * A smoothed curve is an exponential mean over steps, from the first step on whatever the picture
 * shows, and not over what is drawn: a zoom does not change it. It is divided by the sum of its
 * weights, so that it begins at the first values.
 */
#ifndef LS_WATCH_WINDOW_H
#define LS_WATCH_WINDOW_H

#include "base/mem.h"
#include "watch/watched.h"

enum { LS_WINDOW_COLUMNS = 4000 };

typedef struct ls_window {
    int x;             /* LS_X_STEP, ... */
    double from, to;   /* on this axis; NaN: from the beginning, to the end */
    int columns;       /* 1 to LS_WINDOW_COLUMNS */
    double smooth;     /* steps over which means are taken, too; below 1: none */
    const char *names; /* of series and of evaluations' numbers, with commas between; NULL: all */
} ls_window;

/* Appends an object: docs/reference/json.md. */
void ls_window_write(const ls_watched *, const ls_window *, ls_buf *out);

/* Appends rows [from, to) of all series, with all axes, and the points and marks of lines from
 * offset `at` on. */
void ls_window_write_rows(const ls_watched *, int64_t from, int64_t to, uint64_t at, ls_buf *out);

/* Appends an array of numbers [n], with nine digits; null: they are not finite. */
void ls_window_put_numbers(ls_buf *out, const double *values, size_t n);

#endif
