/* curve.h - the loss curve, for a terminal and as SVG. */
#ifndef LS_REPORT_CURVE_H
#define LS_REPORT_CURVE_H

#include "report/plot.h"

typedef struct ls_curve {
    const char *title;
    ls_curve_series train, val;
    double level;            /* a line across, e.g. the bigram level */
    const char *level_label; /* NULL: no such line */
} ls_curve;

/* Braille dots for the training loss, ● for validation, dashes for the level. At least 40 columns
 * and 10 rows. */
void ls_curve_print(const ls_curve *, int columns, int rows, ls_buf *out);

/* 800 x 450, self-contained. */
void ls_curve_svg(const ls_curve *, ls_buf *out);

#endif
