/* curves.c - see curves.h. */
#include "report/curves.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/output.h"
#include "report/svg.h"

static const char *const letters[LS_CURVES_MOST] = {"a", "b", "c", "d", "e", "f", "g", "h"};
static const char *const colours[LS_CURVES_MOST] = {"#0b69a3", "#cb6e17", "#2f8132", "#a61b1b",
                                                    "#653cad", "#8d2b0b", "#147d64", "#616e7c"};

static ls_plot plot_of(const ls_curves *c, int x_ticks, int y_ticks) {
    ls_plot p;
    ls_plot_open(&p);
    for (int i = 0; i < c->n; i++) ls_plot_widen(&p, &c->lines[i].series);
    ls_plot_close(&p, x_ticks, y_ticks);
    return p;
}

/* ---- terminal ---- */

static void put_mark(ls_plot_cells *v, const ls_plot *p, double x, double y, const char *letter) {
    const char **cell = ls_plot_mark(v, p, x, y);
    *cell = *cell && *cell != letter ? "#" : letter;
}

/* A mark in each column between two points. */
static void put_line(ls_plot_cells *v, const ls_plot *p, const ls_curve_series *s,
                     const char *letter) {
    double x0 = 0, y0 = 0, width = (p->x1 - p->x0) / v->columns;
    bool begun = false;
    for (size_t i = 0; i < s->n; i++) {
        if (!ls_plot_shows_point(s, i)) continue;
        double x = s->steps[i], y = s->values[i];
        if (begun && x - x0 < width && i + 1 < s->n) continue; /* in the same column */
        for (double at = x0 + width; begun && at < x - width / 2; at += width)
            put_mark(v, p, at, y0 + (y - y0) * (at - x0) / (x - x0), letter);
        put_mark(v, p, x, y, letter);
        x0 = x, y0 = y, begun = true;
    }
}

void ls_curves_print(const ls_curves *c, int columns, int rows, ls_buf *out) {
    ls_plot_cells v;
    ls_plot_cells_open(&v, columns, rows);
    ls_plot p = plot_of(c, v.columns / 12, v.rows / 3);
    for (int i = 0; i < c->n; i++) put_line(&v, &p, &c->lines[i].series, letters[i]);
    ls_buf_printf(out, "%10s%s\n", "", c->title);
    ls_plot_print(&v, &p, out);
    for (int i = 0; i < c->n; i++)
        ls_buf_put(out, "%10s%s %s\n", "", letters[i], c->lines[i].label);
    ls_plot_cells_close(&v);
}

/* ---- SVG ---- */

enum { NAME_HEIGHT = 18 };

static void draw_line(const ls_plot *p, const ls_curve_line *l, const char *colour, ls_buf *out) {
    char style[96];
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.6\"%s", colour,
             l->dashed ? " stroke-dasharray=\"6 4\"" : "");
    ls_plot_svg_series(out, p, &l->series, style);
    for (size_t i = 0; l->points && i < l->series.n; i++)
        if (ls_plot_shows_point(&l->series, i))
            ls_plot_svg_point(out, ls_plot_x(p, l->series.steps[i]),
                              ls_plot_y(p, l->series.values[i]), colour);
}

static void draw_name(const ls_curve_line *l, int i, ls_buf *out) {
    char style[96];
    double y = LS_PLOT_HEIGHT + NAME_HEIGHT * i;
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"%s", colours[i],
             l->dashed ? " stroke-dasharray=\"6 4\"" : "");
    ls_plot_svg_line(out, LS_PLOT_LEFT, y, LS_PLOT_LEFT + 24, y, style);
    ls_plot_svg_text(out, LS_PLOT_LEFT + 30, y + 4, "start", LS_SVG_INK, l->label);
}

void ls_curves_svg(const ls_curves *c, ls_buf *out) {
    ls_plot p = plot_of(c, 8, 7);
    ls_plot_svg_begin(&p, LS_PLOT_HEIGHT + NAME_HEIGHT * c->n, c->title, c->x_label, out);
    for (int i = 0; i < c->n; i++) draw_line(&p, &c->lines[i], colours[i], out);
    for (int i = 0; i < c->n; i++) draw_name(&c->lines[i], i, out);
    ls_buf_printf(out, "</svg>\n");
}

ls_status ls_curves_svg_write(const char *path, const ls_curves *p, ls_error *e) {
    ls_buf svg = {0};
    ls_curves_svg(p, &svg);
    ls_status s = ls_output_write(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
