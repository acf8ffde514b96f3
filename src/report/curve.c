/* curve.c - see curve.h. */
#include "report/curve.h"

#include <stdio.h>
#include <stdlib.h>

static bool has_level(const ls_curve *c) { return c->level_label && ls_plot_shows(c->level); }

static ls_plot plot_of(const ls_curve *c, int x_ticks, int y_ticks) {
    ls_plot f;
    ls_plot_open(&f);
    ls_plot_widen(&f, &c->train);
    ls_plot_widen(&f, &c->val);
    if (has_level(c)) ls_plot_widen_level(&f, c->level);
    ls_plot_close(&f, x_ticks, y_ticks);
    return f;
}

static void put_marks(ls_plot_cells *v, const ls_plot *f, const ls_curve *c) {
    if (has_level(c)) {
        int y = v->rows - 1 - ls_plot_place(c->level, f->y0, f->y1, v->rows);
        for (int x = 0; x < v->columns; x += 2) v->marks[y * v->columns + x] = "╌";
    }
    for (size_t i = 0; i < c->val.n; i++)
        if (ls_plot_shows_point(&c->val, i))
            *ls_plot_mark(v, f, c->val.steps[i], c->val.values[i]) = "●";
}

void ls_curve_print(const ls_curve *c, int columns, int rows, ls_buf *out) {
    ls_plot_cells v;
    ls_plot_cells_open(&v, columns, rows);
    ls_plot f = plot_of(c, v.columns / 12, v.rows / 3);
    ls_plot_dots(&v, &f, &c->train);
    put_marks(&v, &f, c);
    ls_buf_printf(out, "%10s%s\n", "", c->title);
    ls_plot_print(&v, &f, out);
    ls_buf_printf(out, "%10s⠒⠒ training", "");
    if (c->val.n) ls_buf_printf(out, "   ● validation");
    if (has_level(c)) ls_buf_printf(out, "   ╌╌ %s", c->level_label);
    ls_buf_printf(out, "\n");
    ls_plot_cells_close(&v);
}

static const char TRAIN[] = "#9fb3c8", VAL[] = "#0b69a3", LEVEL[] = "#cb6e17";

void ls_curve_svg(const ls_curve *c, ls_buf *out) {
    ls_plot f = plot_of(c, 8, 7);
    char train[96], val[96], level[96];
    snprintf(train, sizeof train, "stroke=\"%s\" stroke-width=\"1.2\"", TRAIN);
    snprintf(val, sizeof val, "stroke=\"%s\" stroke-width=\"2.2\"", VAL);
    snprintf(level, sizeof level, "stroke=\"%s\" stroke-width=\"1.6\" stroke-dasharray=\"6 4\"",
             LEVEL);
    ls_plot_svg_begin(&f, LS_PLOT_HEIGHT, c->title, "step", out);
    double y = ls_plot_y(&f, c->level);
    if (has_level(c)) ls_plot_svg_line(out, LS_PLOT_LEFT, y, LS_PLOT_RIGHT, y, level);
    ls_plot_svg_series(out, &f, &c->train, train);
    ls_plot_svg_series(out, &f, &c->val, val);
    for (size_t i = 0; i < c->val.n; i++)
        if (ls_plot_shows_point(&c->val, i))
            ls_plot_svg_point(out, ls_plot_x(&f, c->val.steps[i]), ls_plot_y(&f, c->val.values[i]),
                              VAL);
    double x = ls_plot_svg_key(out, LS_PLOT_LEFT, train, "training");
    if (c->val.n) x = ls_plot_svg_key(out, x, val, "validation");
    if (has_level(c)) ls_plot_svg_key(out, x, level, c->level_label);
    ls_buf_printf(out, "</svg>\n");
}
