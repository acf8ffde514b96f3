/* plot.c - see plot.h. */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"

enum { MAX_POINTS = 800 };

bool ls_plot_shows(double v) { return fabs(v) < 1e300; }

bool ls_plot_shows_point(const ls_curve_series *s, size_t i) {
    return ls_plot_shows(s->steps[i]) && ls_plot_shows(s->values[i]);
}

void ls_plot_open(ls_plot *f) { *f = (ls_plot){.x0 = 0, .x1 = 1, .y0 = INFINITY, .y1 = -INFINITY}; }

void ls_plot_widen(ls_plot *f, const ls_curve_series *s) {
    for (size_t i = 0; i < s->n; i++) {
        if (!ls_plot_shows_point(s, i)) continue;
        if (s->steps[i] < f->x0) f->x0 = s->steps[i];
        if (s->steps[i] > f->x1) f->x1 = s->steps[i];
        if (s->values[i] < f->y0) f->y0 = s->values[i];
        if (s->values[i] > f->y1) f->y1 = s->values[i];
    }
}

void ls_plot_widen_level(ls_plot *f, double level) {
    if (level < f->y0) f->y0 = level;
    if (level > f->y1) f->y1 = level;
}

void ls_plot_close(ls_plot *f, int x_ticks, int y_ticks) {
    if (!(f->y0 <= f->y1)) f->y0 = 0, f->y1 = 1;
    if (f->y1 - f->y0 < 1e-9 * (1 + fabs(f->y1))) {
        double room = 0.5 + 1e-6 * fabs(f->y1); /* all values are equal */
        f->y0 -= room, f->y1 += room;
    }
    f->y_tick = ls_svg_tick(f->y1 - f->y0, y_ticks);
    f->x_tick = ls_svg_tick(f->x1 - f->x0, x_ticks);
    if (f->x_tick < 1) f->x_tick = 1;
    f->y0 = floor(f->y0 / f->y_tick) * f->y_tick;
    f->y1 = ceil(f->y1 / f->y_tick) * f->y_tick;
    f->decimals = f->y_tick >= 1 ? 0 : (int)ceil(-log10(f->y_tick) - 1e-9);
}

/* The label of a tick of the y axis: at most 8 characters, 9 below 1e-99 and from 1e100. */
static void write_tick(const ls_plot *f, double tick, char text[16]) {
    bool wide = f->decimals > 5 || fabs(f->y0) >= 1e5 || fabs(f->y1) >= 1e5;
    if (fabs(tick) < f->y_tick / 2) tick = 0; /* not -0 */
    if (wide)
        snprintf(text, 16, "%.3g", tick);
    else
        snprintf(text, 16, "%.*f", f->decimals, tick);
}

/* ---- terminal ---- */

void ls_plot_cells_open(ls_plot_cells *v, int columns, int rows) {
    v->columns = (columns < 40 ? 40 : columns) - 16;
    v->rows = (rows < 10 ? 10 : rows) - 4;
    v->dots = LS_NEW_ARRAY(unsigned char, (size_t)(v->columns * v->rows));
    v->marks = LS_NEW_ARRAY(const char *, (size_t)(v->columns * v->rows));
}

void ls_plot_cells_close(ls_plot_cells *v) {
    free(v->dots);
    free(v->marks);
}

static void put_dot(ls_plot_cells *v, int x, int y) {
    static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= 2 * v->columns || y >= 4 * v->rows) return;
    v->dots[y / 4 * v->columns + x / 2] |= bit[y % 4][x % 2];
}

int ls_plot_place(double value, double low, double high, int n) {
    return (int)lround((value - low) / (high - low) * (n - 1));
}

void ls_plot_dots(ls_plot_cells *v, const ls_plot *f, const ls_curve_series *s) {
    int last_x = -1, last_y = 0, height = 4 * v->rows;
    for (size_t i = 0; i < s->n; i++) {
        if (!ls_plot_shows_point(s, i)) continue;
        int x = ls_plot_place(s->steps[i], f->x0, f->x1, 2 * v->columns);
        int y = height - 1 - ls_plot_place(s->values[i], f->y0, f->y1, height);
        put_dot(v, x, y);
        for (int k = last_x + 1; last_x >= 0 && k < x; k++) /* between two far points */
            put_dot(v, k, last_y + (y - last_y) * (k - last_x) / (x - last_x));
        last_x = x;
        last_y = y;
    }
}

const char **ls_plot_mark(ls_plot_cells *v, const ls_plot *f, double x, double y) {
    int column = ls_plot_place(x, f->x0, f->x1, v->columns);
    int row = v->rows - 1 - ls_plot_place(y, f->y0, f->y1, v->rows);
    return &v->marks[row * v->columns + column];
}

static void put_cell(const ls_plot_cells *v, int cell, ls_buf *out) {
    unsigned char d = v->dots[cell];
    if (v->marks[cell])
        ls_buf_printf(out, "%s", v->marks[cell]);
    else if (d) /* U+2800 + dots, in UTF-8 */
        ls_buf_printf(out, "\xe2%c%c", 0xa0 | d >> 6, 0x80 | (d & 0x3f));
    else
        ls_buf_printf(out, " ");
}

static void print_rows(const ls_plot_cells *v, const ls_plot *f, ls_buf *out) {
    double last = INFINITY, row_height = (f->y1 - f->y0) / (v->rows - 1);
    for (int y = 0; y < v->rows; y++) {
        double value = f->y1 - row_height * y;
        double tick = round(value / f->y_tick) * f->y_tick;
        bool near = fabs(value - tick) <= row_height * 0.500001;
        if (near && tick < last - f->y_tick / 2) {
            char text[16];
            write_tick(f, tick, text);
            ls_buf_printf(out, "%8s ┤", text);
            last = tick;
        } else {
            ls_buf_printf(out, "%8s │", "");
        }
        for (int x = 0; x < v->columns; x++) put_cell(v, y * v->columns + x, out);
        ls_buf_printf(out, "\n");
    }
}

static void print_x_axis(const ls_plot_cells *v, const ls_plot *f, ls_buf *out) {
    char *labels = ls_alloc((size_t)v->columns + 32);
    memset(labels, ' ', (size_t)v->columns + 16);
    int used = -1;
    ls_buf_printf(out, "%8s └", "");
    for (int x = 0; x < v->columns; x++) {
        double step = f->x0 + (f->x1 - f->x0) * x / (v->columns - 1);
        double tick = round(step / f->x_tick) * f->x_tick;
        bool on = ls_plot_place(tick, f->x0, f->x1, v->columns) == x && x > used;
        ls_buf_printf(out, "%s", on ? "┴" : "─");
        if (!on) continue;
        char text[24];
        int n = snprintf(text, sizeof text, "%.0f", tick);
        memcpy(labels + x, text, (size_t)n);
        used = x + n;
    }
    for (int n = v->columns + 15; n >= 0 && labels[n] == ' '; n--) labels[n] = 0;
    ls_buf_printf(out, "\n%10s%s\n", "", labels);
    free(labels);
}

void ls_plot_print(const ls_plot_cells *v, const ls_plot *f, ls_buf *out) {
    print_rows(v, f, out);
    print_x_axis(v, f, out);
}

/* ---- SVG ---- */

static const char INK[] = LS_SVG_INK, GREY[] = LS_SVG_GREY, GRID[] = LS_SVG_GRID;

double ls_plot_x(const ls_plot *f, double step) {
    return LS_PLOT_LEFT + (LS_PLOT_RIGHT - LS_PLOT_LEFT) * (step - f->x0) / (f->x1 - f->x0);
}
double ls_plot_y(const ls_plot *f, double value) {
    return LS_PLOT_BOTTOM - (LS_PLOT_BOTTOM - LS_PLOT_TOP) * (value - f->y0) / (f->y1 - f->y0);
}

void ls_plot_svg_text(ls_buf *out, double x, double y, const char *anchor, const char *colour,
                      const char *text) {
    ls_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor,
                  colour);
    ls_svg_escape(text, out);
    ls_buf_printf(out, "</text>\n");
}

void ls_plot_svg_line(ls_buf *out, double x1, double y1, double x2, double y2, const char *style) {
    ls_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                  y2, style);
}

static void svg_axes(ls_buf *out, const ls_plot *f, const char *x_label) {
    char text[32], style[64];
    snprintf(style, sizeof style, "stroke=\"%s\"", GRID);
    int ny = (int)lround((f->y1 - f->y0) / f->y_tick);
    int x_first = (int)ceil(f->x0 / f->x_tick - 1e-9);
    int x_last = (int)floor(f->x1 / f->x_tick + 1e-9);
    for (int i = 0; i <= ny; i++) {
        double value = f->y0 + i * f->y_tick;
        ls_plot_svg_line(out, LS_PLOT_LEFT, ls_plot_y(f, value), LS_PLOT_RIGHT, ls_plot_y(f, value),
                         style);
        write_tick(f, value, text);
        ls_plot_svg_text(out, LS_PLOT_LEFT - 8, ls_plot_y(f, value) + 4, "end", GREY, text);
    }
    for (int i = x_first; i <= x_last; i++) {
        double step = i * f->x_tick;
        ls_plot_svg_line(out, ls_plot_x(f, step), LS_PLOT_BOTTOM, ls_plot_x(f, step),
                         LS_PLOT_BOTTOM + 5, style);
        snprintf(text, sizeof text, "%.0f", step);
        ls_plot_svg_text(out, ls_plot_x(f, step), LS_PLOT_BOTTOM + 20, "middle", GREY, text);
    }
    snprintf(style, sizeof style, "stroke=\"%s\"", GREY);
    ls_plot_svg_line(out, LS_PLOT_LEFT, LS_PLOT_BOTTOM, LS_PLOT_RIGHT, LS_PLOT_BOTTOM, style);
    ls_plot_svg_text(out, (LS_PLOT_LEFT + LS_PLOT_RIGHT) / 2.0, LS_PLOT_BOTTOM + 40, "middle", GREY,
                     x_label);
}

/* If there are many points, draws the mean of each stretch of them. A single point becomes a
 * dash. */
void ls_plot_svg_begin(const ls_plot *f, int height, const char *title, const char *x_label,
                       ls_buf *out) {
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  LS_PLOT_WIDTH, height, LS_PLOT_WIDTH, height, LS_PLOT_WIDTH, height);
    svg_axes(out, f, x_label);
    ls_buf_printf(out, "<g font-size=\"15\" font-weight=\"600\">\n");
    ls_plot_svg_text(out, LS_PLOT_LEFT, 24, "start", INK, title);
    ls_buf_printf(out, "</g>\n");
}

void ls_plot_svg_series(ls_buf *out, const ls_plot *f, const ls_curve_series *s,
                        const char *style) {
    size_t stretch = s->n / MAX_POINTS + 1, ndrawn = 0;
    double x = 0, y = 0;
    ls_buf_printf(out, "<polyline fill=\"none\" stroke-linejoin=\"round\" %s points=\"", style);
    for (size_t i = 0; i < s->n; i += stretch) {
        double step = 0, value = 0, n = 0;
        for (size_t j = i; j < s->n && j < i + stretch; j++) {
            if (!ls_plot_shows_point(s, j)) continue;
            step += s->steps[j];
            value += s->values[j];
            n++;
        }
        if (n == 0) continue;
        x = ls_plot_x(f, step / n);
        y = ls_plot_y(f, value / n);
        ls_buf_printf(out, "%.1f,%.1f ", x, y);
        ndrawn++;
    }
    if (ndrawn == 1) ls_buf_printf(out, "%.1f,%.1f ", x > LS_PLOT_LEFT + 8 ? x - 8 : x + 8, y);
    ls_buf_printf(out, "\"/>\n");
}

void ls_plot_svg_point(ls_buf *out, double x, double y, const char *colour) {
    ls_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\"/>\n", x, y, colour);
}

double ls_plot_svg_key(ls_buf *out, double x, const char *style, const char *text) {
    ls_plot_svg_line(out, x, LS_PLOT_TOP - 18, x + 24, LS_PLOT_TOP - 18, style);
    ls_plot_svg_text(out, x + 30, LS_PLOT_TOP - 14, "start", INK, text);
    return x + 50 + 7.0 * (double)strlen(text);
}
