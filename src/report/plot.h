/* plot.h - a picture with two axes, for a terminal and as SVG: what curves share.
 *
 * A plot begins with ls_plot_open(), is widened by all that it shows, and is finished by
 * ls_plot_close(), which puts ticks at round numbers.
 */
#ifndef LS_REPORT_PLOT_H
#define LS_REPORT_PLOT_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct ls_curve_series {
    const double *steps, *values; /* [n]; steps rise; points that are not finite are left out */
    size_t n;
} ls_curve_series;

enum { LS_PLOT_TICKS = 32 };

typedef struct ls_plot {
    double x0, x1, y0, y1; /* what the picture shows; of a logarithmic axis, logarithms */
    bool log_x, log_y;     /* to the bases 2 and 10 */
    double x_tick, y_tick; /* distance between ticks of axes that are not logarithmic */
    int decimals;          /* of labels at the y axis */
    double xs[LS_PLOT_TICKS], ys[LS_PLOT_TICKS]; /* [nxs], [nys] values that have a tick */
    int nxs, nys;
    size_t most;    /* points of the longest series */
    double stretch; /* of the x axis, of which a series has one point: a mean; 0: all points */
} ls_plot;

/* Is a value small enough that differences are finite, too? Not NaN, not infinite. */
bool ls_plot_shows(double value);
bool ls_plot_shows_point(const ls_curve_series *, size_t i);

void ls_plot_open(ls_plot *);
/* With logarithmic axes. Then the x axis has ticks at the series' own places, if they are few. */
void ls_plot_open_log(ls_plot *, bool x, bool y);
void ls_plot_widen(ls_plot *, const ls_curve_series *);
void ls_plot_widen_level(ls_plot *, double level);
void ls_plot_close(ls_plot *, int x_ticks, int y_ticks);

/* ---- terminal: each character has 2 x 4 braille dots ---- */

typedef struct ls_plot_cells {
    int columns, rows;   /* of characters in the plot */
    unsigned char *dots; /* [rows][columns] braille bits */
    const char **marks;  /* [rows][columns] a character instead, or NULL */
} ls_plot_cells;

/* columns, rows: of the whole picture, with four rows and 16 columns for axes and texts; at least
 * 40 and 10. */
void ls_plot_cells_open(ls_plot_cells *, int columns, int rows);
void ls_plot_cells_close(ls_plot_cells *);
/* The place of a value in n cells between low and high. */
int ls_plot_place(double value, double low, double high, int n);
/* A series in dots. */
void ls_plot_dots(ls_plot_cells *, const ls_plot *, const ls_curve_series *);
/* The cell of a point; x as it is drawn: ls_plot_drawn_x(). */
const char **ls_plot_mark(ls_plot_cells *, const ls_plot *, double x, double y);
/* A value of the x axis as it is drawn: its logarithm, if the axis is logarithmic. */
double ls_plot_drawn_x(const ls_plot *, double x);
/* Appends the rows, with the axes. */
void ls_plot_print(const ls_plot_cells *, const ls_plot *, ls_buf *out);

/* ---- SVG ---- */

enum { LS_PLOT_WIDTH = 800, LS_PLOT_HEIGHT = 450 };
enum { LS_PLOT_LEFT = 72, LS_PLOT_RIGHT = 776, LS_PLOT_TOP = 64, LS_PLOT_BOTTOM = 398 };

double ls_plot_x(const ls_plot *, double x);
double ls_plot_y(const ls_plot *, double y);
/* The head of a white picture. */
void ls_plot_svg_open(int width, int height, ls_buf *out);
/* The head of a file of this height, the axes with the label of the x axis, and the title. */
void ls_plot_svg_begin(const ls_plot *, int height, const char *title, const char *x_label,
                       ls_buf *out);
void ls_plot_svg_text(ls_buf *out, double x, double y, const char *anchor, const char *colour,
                      const char *text);
void ls_plot_svg_line(ls_buf *out, double x1, double y1, double x2, double y2, const char *style);
/* The points of a series in the picture; those of a long plot are means of the plot's stretches,
 * which are the same for all of its series. points [s->n]; returns their number. */
typedef struct ls_plot_point {
    double x, y;
} ls_plot_point;
size_t ls_plot_points(const ls_plot *, const ls_curve_series *, ls_plot_point *points);
/* Draws a line through them. A single point becomes a dash. */
void ls_plot_svg_series(ls_buf *out, const ls_plot *, const ls_curve_series *, const char *style);
void ls_plot_svg_point(ls_buf *out, double x, double y, const char *colour);
/* One entry of the key, at x; returns the place of the next. */
double ls_plot_svg_key(ls_buf *out, double x, const char *style, const char *text);

#endif
