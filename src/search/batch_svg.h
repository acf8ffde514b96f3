/* batch_svg.h - a picture of values by batch size: lines of points over a logarithmic axis. */
#ifndef LS_SEARCH_BATCH_SVG_H
#define LS_SEARCH_BATCH_SVG_H

#include <stdbool.h>

#include "base/mem.h"

enum { LS_BATCH_LINES = 4 };

typedef struct ls_batch_line {
    const char *label;
    const double *values; /* [n] of the picture; what is not finite is left out */
    const double *errors; /* [n] half lengths of bars; NULL: none */
    bool dashed;          /* a line without points */
} ls_batch_line;

typedef struct ls_batch_picture {
    const char *title, *unit; /* unit: of the batches; the title has that of the values */
    const double *batches;    /* [n] ascending */
    int n, nlines;
    ls_batch_line lines[LS_BATCH_LINES];
    bool log_values;        /* of the values' axis */
    double mark, low, high; /* a vertical line at this batch, and a band; mark 0: none */
    const char *mark_label;
} ls_batch_picture;

/* 800 x 450, self-contained. */
void ls_batch_svg(const ls_batch_picture *, ls_buf *out);
ls_status ls_batch_svg_write(const char *path, const ls_batch_picture *, ls_error *);

#endif
