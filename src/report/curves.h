/* curves.h - several curves over each other, for a terminal and as SVG. */
#ifndef LS_REPORT_CURVES_H
#define LS_REPORT_CURVES_H

#include "report/plot.h"

enum { LS_CURVES_MOST = 8 };

typedef struct ls_curve_line {
    const char *label;
    ls_curve_series series;
    bool dashed; /* e.g. predicted */
    bool points; /* a mark at each value, since there are few */
} ls_curve_line;

typedef struct ls_curves {
    const char *title, *x_label;
    const ls_curve_line *lines; /* [n] */
    int n;                      /* at most LS_CURVES_MOST */
    bool log_x;                 /* the x axis is logarithmic */
    double y_low, y_high;       /* what the y axis shows at least, if they differ */
} ls_curves;

/* Each line is drawn with its own letter, and with # where it covers another. At least 40 columns
 * and 10 rows, and then a row for each line's name. */
void ls_curves_print(const ls_curves *, int columns, int rows, ls_buf *out);

/* 800 x 450, and 18 more for each line's name; self-contained. A line that covers others is drawn
 * in dashes, between which the others are visible. A line without a value is neither drawn nor
 * named. */
void ls_curves_svg(const ls_curves *, ls_buf *out);
ls_status ls_curves_svg_write(const char *path, const ls_curves *, ls_error *);

#endif
