/* batch_svg.c - see batch_svg.h. */
#include "search/batch_svg.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "report/plot.h"
#include "report/svg.h"

static const char BAND[] = "#f5e2a8", MARK[] = "#b8860b";

static ls_plot plot_of(const ls_batch_picture *p) {
    ls_plot plot;
    ls_plot_open_log(&plot, true, p->log_values);
    for (int l = 0; l < p->nlines; l++) {
        const ls_batch_line *line = &p->lines[l];
        ls_plot_widen(&plot, &(ls_curve_series){p->batches, line->values, (size_t)p->n});
        for (int i = 0; line->errors && i < p->n; i++) {
            if (!isfinite(line->errors[i]) || !isfinite(line->values[i])) continue;
            ls_plot_widen_level(&plot, line->values[i] - line->errors[i]);
            ls_plot_widen_level(&plot, line->values[i] + line->errors[i]);
        }
    }
    ls_plot_close(&plot, 8, 7);
    return plot;
}

/* A batch may lie beside the picture, as the end of a band does that is not known. */
static double x_of(const ls_plot *plot, double batch) {
    return fmin(fmax(ls_plot_x(plot, batch), LS_PLOT_LEFT), LS_PLOT_RIGHT);
}

/* The lowest value that a bar shows is the plot's. */
static double y_of(const ls_plot *plot, double value) {
    double y = ls_plot_y(plot, value);
    return y < LS_PLOT_BOTTOM ? y : LS_PLOT_BOTTOM;
}

static void put_mark(const ls_batch_picture *p, const ls_plot *plot, ls_buf *out) {
    char style[64];
    double low = x_of(plot, p->low), high = x_of(plot, p->high), mark = ls_plot_x(plot, p->mark);
    ls_buf_printf(out,
                  "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
                  "fill-opacity=\"0.5\"/>\n",
                  low, LS_PLOT_TOP, high - low, LS_PLOT_BOTTOM - LS_PLOT_TOP, BAND);
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.6\"", MARK);
    if (mark >= LS_PLOT_LEFT && mark <= LS_PLOT_RIGHT)
        ls_plot_svg_line(out, mark, LS_PLOT_TOP, mark, LS_PLOT_BOTTOM, style);
}

static void put_points(const ls_plot *plot, const ls_curve_series *s, const double *errors,
                       const char *colour, ls_buf *out) {
    char style[64];
    snprintf(style, sizeof style, "stroke=\"%s\"", colour);
    for (size_t i = 0; i < s->n; i++) {
        double x = ls_plot_x(plot, s->steps[i]), v = s->values[i], y = ls_plot_y(plot, v);
        if (!ls_plot_shows_point(s, i) || !isfinite(y)) continue;
        ls_plot_svg_point(out, x, y, colour);
        if (!errors || !isfinite(errors[i]) || errors[i] == 0) continue;
        ls_plot_svg_line(out, x, y_of(plot, v - errors[i]), x, y_of(plot, v + errors[i]), style);
    }
}

static double put_line(const ls_batch_picture *p, const ls_plot *plot, int i, double key,
                       ls_buf *out) {
    const ls_batch_line *l = &p->lines[i];
    const ls_curve_series s = {p->batches, l->values, (size_t)p->n};
    char style[96];
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"1.8\"%s", ls_svg_colours[i],
             l->dashed ? " stroke-dasharray=\"6 4\"" : "");
    ls_plot_svg_series(out, plot, &s, style);
    if (!l->dashed) put_points(plot, &s, l->errors, ls_svg_colours[i], out);
    return ls_plot_svg_key(out, key, style, l->label);
}

void ls_batch_svg(const ls_batch_picture *p, ls_buf *out) {
    const ls_plot plot = plot_of(p);
    double key = LS_PLOT_LEFT;
    char style[64];
    ls_plot_svg_begin(&plot, LS_PLOT_HEIGHT, p->title, p->unit, out);
    if (p->mark > 0) put_mark(p, &plot, out);
    for (int i = 0; i < p->nlines; i++) key = put_line(p, &plot, i, key, out);
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"12\"", BAND);
    if (p->mark > 0) ls_plot_svg_key(out, key, style, p->mark_label);
    ls_buf_printf(out, "</svg>\n");
}

ls_status ls_batch_svg_write(const char *path, const ls_batch_picture *p, ls_error *e) {
    ls_buf svg = {0};
    ls_batch_svg(p, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
