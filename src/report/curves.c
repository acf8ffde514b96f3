/* curves.c - see curves.h. */
#include "report/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/output.h"
#include "report/svg.h"

static const char *const letters[LS_CURVES_MOST] = {"a", "b", "c", "d", "e", "f", "g", "h"};
static ls_plot plot_of(const ls_curves *c, int x_ticks, int y_ticks) {
    ls_plot p;
    ls_plot_open_log(&p, c->log_x, false);
    for (int i = 0; i < c->n; i++) ls_plot_widen(&p, &c->lines[i].series);
    if (c->y_low < c->y_high) ls_plot_widen_level(&p, c->y_low), ls_plot_widen_level(&p, c->y_high);
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
        double x = ls_plot_drawn_x(p, s->steps[i]), y = s->values[i];
        if (begun && x - x0 < width && i + 1 < s->n) continue; /* in the same column */
        for (double at = x0 + width; begun && at < x - width / 2; at += width)
            put_mark(v, p, at, y0 + (y - y0) * (at - x0) / (x - x0), letter);
        put_mark(v, p, x, y, letter);
        x0 = x, y0 = y, begun = true;
    }
}

static bool shows(const ls_curve_series *s) {
    size_t i = 0;
    while (i < s->n && !ls_plot_shows_point(s, i)) i++;
    return i < s->n;
}

void ls_curves_print(const ls_curves *c, int columns, int rows, ls_buf *out) {
    ls_plot_cells v;
    ls_plot_cells_open(&v, columns, rows);
    ls_plot p = plot_of(c, v.columns / 12, v.rows / 3);
    for (int i = 0; i < c->n; i++) put_line(&v, &p, &c->lines[i].series, letters[i]);
    ls_buf_printf(out, "%10s%s\n", "", c->title);
    ls_plot_print(&v, &p, out);
    for (int i = 0; i < c->n; i++)
        ls_buf_put(out, "%10s%s %s%s\n", "", letters[i], c->lines[i].label,
                   shows(&c->lines[i].series) ? "" : " (has no value)");
    ls_plot_cells_close(&v);
}

/* ---- SVG ---- */

enum { NAME_HEIGHT = 18, NAME_LINE = 44, TEXT_SIZE = 12 };

/* A line as it is drawn. */
typedef struct drawn {
    const ls_curve_line *line;
    ls_plot_point *points; /* [n] */
    size_t n;
    int under; /* how many lines lie under it */
} drawn;

/* The height of a line at x, which lies in its range. */
static double height_at(const drawn *d, size_t *i, double x) {
    while (*i + 2 < d->n && d->points[*i + 1].x < x) ++*i;
    if (d->n == 1) return d->points[0].y;
    const ls_plot_point *a = &d->points[*i], *b = a + 1;
    return b->x > a->x ? a->y + (b->y - a->y) * (x - a->x) / (b->x - a->x) : b->y;
}

/* Does a line hide a part of another, or its only point? */
static bool lies_on(const drawn *top, const drawn *under) {
    static const double NEAR = 1.5, PART = 24; /* pixels */
    double begin = NAN;
    size_t at = 0;
    if (!top->n || !under->n) return false;
    for (size_t i = 0; i < top->n; i++) {
        const ls_plot_point *p = &top->points[i];
        bool inside =
            p->x >= under->points[0].x - NEAR && p->x <= under->points[under->n - 1].x + NEAR;
        bool near = inside && fabs(height_at(under, &at, p->x) - p->y) < NEAR;
        if (near && (top->n == 1 || under->n == 1)) return true;
        if (near && isnan(begin)) begin = p->x;
        if (near && p->x - begin >= PART) return true;
        if (!near) begin = NAN;
    }
    return false;
}

/* Where n lines coincide, each is visible in an nth of their length. */
static void write_style(const drawn *d, int i, char style[96]) {
    enum { DASH = 10, SHORT = 6, SPACE = 4 };
    int dash = d->line->dashed ? SHORT : DASH;
    int space = (d->line->dashed ? SPACE : 0) + d->under * dash;
    int n = snprintf(style, 96, "stroke=\"%s\" stroke-width=\"1.8\"", ls_svg_colours[i]);
    if (space) snprintf(style + n, 96 - (size_t)n, " stroke-dasharray=\"%d %d\"", dash, space);
}

static void draw_line(const ls_plot *p, const drawn *d, int i, ls_buf *out) {
    char style[96];
    const ls_curve_series *s = &d->line->series;
    write_style(d, i, style);
    ls_plot_svg_series(out, p, s, style);
    for (size_t k = 0; d->line->points && k < s->n; k++)
        if (ls_plot_shows_point(s, k))
            ls_plot_svg_point(out, ls_plot_x(p, s->steps[k]), ls_plot_y(p, s->values[k]),
                              ls_svg_colours[i]);
}

static void draw_name(const drawn *d, int i, double y, ls_buf *out) {
    char style[96];
    double x = LS_PLOT_LEFT + NAME_LINE + 8;
    char *name = ls_svg_fit(d->line->label, TEXT_SIZE, LS_PLOT_RIGHT - x);
    write_style(d, i, style);
    ls_plot_svg_line(out, LS_PLOT_LEFT, y, LS_PLOT_LEFT + NAME_LINE, y, style);
    ls_plot_svg_text(out, x, y + 4, "start", LS_SVG_INK, name);
    free(name);
}

/* Returns the number of lines that are seen. */
static int find_drawn(const ls_curves *c, const ls_plot *p, drawn *all) {
    int seen = 0;
    for (int i = 0; i < c->n; i++) {
        const ls_curve_series *s = &c->lines[i].series;
        all[i] = (drawn){&c->lines[i], LS_NEW_ARRAY(ls_plot_point, s->n + 1), 0, 0};
        all[i].n = ls_plot_points(p, s, all[i].points);
        seen += all[i].n > 0;
        for (int k = 0; k < i; k++)
            if (lies_on(&all[i], &all[k]) && all[k].under >= all[i].under)
                all[i].under = all[k].under + 1;
    }
    return seen;
}

void ls_curves_svg(const ls_curves *c, ls_buf *out) {
    ls_plot p = plot_of(c, 8, 7);
    drawn all[LS_CURVES_MOST];
    int seen = find_drawn(c, &p, all);
    double y = LS_PLOT_HEIGHT;
    ls_plot_svg_begin(&p, LS_PLOT_HEIGHT + NAME_HEIGHT * seen, c->title, c->x_label, out);
    for (int i = 0; i < c->n; i++)
        if (all[i].n) draw_line(&p, &all[i], i, out);
    for (int i = 0; i < c->n; i++) {
        if (all[i].n) draw_name(&all[i], i, y, out);
        if (all[i].n) y += NAME_HEIGHT;
        free(all[i].points);
    }
    ls_buf_printf(out, "</svg>\n");
}

ls_status ls_curves_svg_write(const char *path, const ls_curves *p, ls_error *e) {
    ls_buf svg = {0};
    ls_curves_svg(p, &svg);
    ls_status s = ls_output_write(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
