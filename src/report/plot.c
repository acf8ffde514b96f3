/* plot.c - see plot.h. */
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"

bool ls_plot_shows(double v) { return fabs(v) < 1e300; }

bool ls_plot_shows_point(const ls_curve_series *s, size_t i) {
    return ls_plot_shows(s->steps[i]) && ls_plot_shows(s->values[i]);
}

void ls_plot_open(ls_plot *f) { *f = (ls_plot){.x0 = 0, .x1 = 1, .y0 = INFINITY, .y1 = -INFINITY}; }

void ls_plot_open_log(ls_plot *f, bool x, bool y) {
    ls_plot_open(f);
    f->log_x = x, f->log_y = y;
    if (x) f->x0 = INFINITY, f->x1 = -INFINITY;
}

double ls_plot_drawn_x(const ls_plot *f, double x) { return f->log_x ? log2(x) : x; }
static double drawn_y(const ls_plot *f, double y) { return f->log_y ? log10(y) : y; }

static bool shows_at(const ls_plot *f, const ls_curve_series *s, size_t i) {
    return ls_plot_shows_point(s, i) && ls_plot_shows(ls_plot_drawn_x(f, s->steps[i])) &&
           ls_plot_shows(drawn_y(f, s->values[i]));
}

/* A place of the logarithmic axis; too many are not noted. */
static void note_place(ls_plot *f, double x) {
    int at = f->nxs;
    for (int i = 0; i < f->nxs; i++)
        if (f->xs[i] == x) return;
    if (f->nxs++ >= LS_PLOT_TICKS) return;
    for (; at > 0 && f->xs[at - 1] > x; at--) f->xs[at] = f->xs[at - 1];
    f->xs[at] = x;
}

void ls_plot_widen(ls_plot *f, const ls_curve_series *s) {
    if (s->n > f->most) f->most = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (!shows_at(f, s, i)) continue;
        double x = ls_plot_drawn_x(f, s->steps[i]);
        if (x < f->x0) f->x0 = x;
        if (x > f->x1) f->x1 = x;
        ls_plot_widen_level(f, s->values[i]);
        if (f->log_x && f->nxs <= LS_PLOT_TICKS) note_place(f, s->steps[i]);
    }
}

void ls_plot_widen_level(ls_plot *f, double level) {
    double y = drawn_y(f, level);
    if (!ls_plot_shows(y)) return;
    if (y < f->y0) f->y0 = y;
    if (y > f->y1) f->y1 = y;
}

/* ---- ticks ---- */

static double tick_above(const double *list, int n) { return n ? list[n - 1] : -INFINITY; }

/* The multiples of a distance between two values. */
static int put_multiples(double *list, double low, double high, double distance) {
    int n = 0;
    for (double i = ceil(low / distance - 1e-9); n < LS_PLOT_TICKS; i++) {
        if (i > floor(high / distance + 1e-9)) break;
        list[n++] = i * distance + 0.0; /* not -0 */
    }
    return n;
}

/* The powers of two in the range of the x axis. */
static void put_powers(ls_plot *f) {
    double every = ceil((f->x1 - f->x0) / 12);
    f->nxs = put_multiples(f->xs, f->x0, f->x1, every < 1 ? 1 : every);
    for (int i = 0; i < f->nxs; i++) f->xs[i] = exp2(f->xs[i]);
}

static void close_log_x(ls_plot *f) {
    if (!(f->x0 <= f->x1)) f->x0 = 0, f->x1 = 1;
    if (f->nxs > LS_PLOT_TICKS || f->nxs == 0) put_powers(f);
    double room = f->x1 > f->x0 ? 0.03 * (f->x1 - f->x0) : 0.5;
    f->x0 -= room, f->x1 += room;
}

/* 1, 2 and 5 times each `every`th power of ten, or the powers alone; from the last at or below the
 * lowest value to the first at or above the highest. */
static void put_decades(ls_plot *f, int low, int high, bool alone, int every) {
    static const double part[] = {1, 2, 5};
    double y0 = pow(10, f->y0) * (1 + 1e-9), y1 = pow(10, f->y1) * (1 - 1e-9);
    f->nys = 0;
    for (int k = low; k <= high; k += every)
        for (int i = 0; i < (alone ? 1 : 3) && tick_above(f->ys, f->nys) < y1; i++) {
            double tick = part[i] * pow(10, k);
            if (tick <= y0) f->nys = 0;
            if (f->nys < LS_PLOT_TICKS) f->ys[f->nys++] = tick;
        }
}

static void close_log_y(ls_plot *f) {
    enum { FEW = 3 };
    if (!(f->y0 <= f->y1)) f->y0 = 0, f->y1 = 1;
    if (f->y1 - f->y0 < 0.3) { /* round numbers, as on another axis */
        double low = pow(10, f->y0), high = pow(10, f->y1);
        double tick = ls_svg_tick(high > low ? high - low : low, 6);
        f->nys = put_multiples(f->ys, floor(low / tick + 1e-9) * tick,
                               ceil(high / tick - 1e-9) * tick, tick);
        if (f->ys[0] <= 0) f->ys[0] = low / 2;
        if (f->nys < 2) f->ys[f->nys++] = f->ys[0] + tick;
    } else {
        int low = (int)floor(f->y0), high = (int)ceil(f->y1) + 1, decades = high - low;
        bool alone = decades > FEW + 1;
        put_decades(f, low, high + decades / 10, alone, alone ? 1 + decades / 10 : 1);
    }
    f->y0 = log10(f->ys[0]);
    f->y1 = log10(f->ys[f->nys - 1]);
}

static void close_y(ls_plot *f, int ticks) {
    if (!(f->y0 <= f->y1)) f->y0 = 0, f->y1 = 1;
    if (f->y1 - f->y0 < 1e-9 * (1 + fabs(f->y1))) {
        double room = 0.5 + 1e-6 * fabs(f->y1); /* all values are equal */
        f->y0 -= room, f->y1 += room;
    }
    f->y_tick = ls_svg_tick(f->y1 - f->y0, ticks);
    f->y0 = floor(f->y0 / f->y_tick) * f->y_tick;
    f->y1 = ceil(f->y1 / f->y_tick) * f->y_tick;
    f->decimals = f->y_tick >= 1 ? 0 : (int)ceil(-log10(f->y_tick) - 1e-9);
    f->nys = put_multiples(f->ys, f->y0, f->y1, f->y_tick);
}

void ls_plot_close(ls_plot *f, int x_ticks, int y_ticks) {
    enum { MAX_POINTS = 800 };
    if (f->log_x) {
        close_log_x(f);
    } else {
        f->x_tick = ls_svg_tick(f->x1 - f->x0, x_ticks);
        if (f->x_tick < 1) f->x_tick = 1;
        f->nxs = put_multiples(f->xs, f->x0, f->x1, f->x_tick);
        if (f->most > MAX_POINTS) f->stretch = ceil((f->x1 - f->x0) / MAX_POINTS);
    }
    if (f->log_y)
        close_log_y(f);
    else
        close_y(f, y_ticks);
}

/* The label of a tick of the y axis: at most 8 characters, 9 below 1e-99 and from 1e100. */
static void write_tick(const ls_plot *f, double tick, char text[16]) {
    bool wide = f->decimals > 5 || fabs(f->y0) >= 1e5 || fabs(f->y1) >= 1e5;
    if (fabs(tick) < f->y_tick / 2) tick = 0; /* not -0 */
    if (f->log_y)
        snprintf(text, 16, "%.5g", tick);
    else if (wide)
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
        if (!shows_at(f, s, i)) continue;
        int x = ls_plot_place(ls_plot_drawn_x(f, s->steps[i]), f->x0, f->x1, 2 * v->columns);
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

/* The tick at this column, or NAN. */
static double tick_at(const ls_plot_cells *v, const ls_plot *f, int x) {
    for (int i = 0; i < f->nxs; i++)
        if (ls_plot_place(ls_plot_drawn_x(f, f->xs[i]), f->x0, f->x1, v->columns) == x)
            return f->xs[i];
    return NAN;
}

static void print_x_axis(const ls_plot_cells *v, const ls_plot *f, ls_buf *out) {
    char *labels = ls_alloc((size_t)v->columns + 32);
    memset(labels, ' ', (size_t)v->columns + 16);
    int used = -1;
    ls_buf_printf(out, "%8s └", "");
    for (int x = 0; x < v->columns; x++) {
        double tick = tick_at(v, f, x);
        bool on = !isnan(tick) && x > used;
        ls_buf_printf(out, "%s", on ? "┴" : "─");
        if (!on) continue;
        char text[24];
        int n = snprintf(text, sizeof text, "%.0f", tick);
        if (n > 15) n = snprintf(text, sizeof text, "%.4g", tick);
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

static const char INK[] = LS_SVG_INK, GREY[] = LS_SVG_GREY;

double ls_plot_x(const ls_plot *f, double step) {
    double x = ls_plot_drawn_x(f, step);
    return LS_PLOT_LEFT + (LS_PLOT_RIGHT - LS_PLOT_LEFT) * (x - f->x0) / (f->x1 - f->x0);
}
double ls_plot_y(const ls_plot *f, double value) {
    double y = drawn_y(f, value);
    return LS_PLOT_BOTTOM - (LS_PLOT_BOTTOM - LS_PLOT_TOP) * (y - f->y0) / (f->y1 - f->y0);
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

enum { TEXT_SIZE = 12, TITLE_SIZE = 15 };

static void svg_y_axis(ls_buf *out, const ls_plot *f) {
    for (int i = 0; i < f->nys; i++) {
        char text[32];
        double y = ls_plot_y(f, f->ys[i]);
        ls_plot_svg_line(out, LS_PLOT_LEFT, y, LS_PLOT_RIGHT, y, "stroke=\"" LS_SVG_GRID "\"");
        write_tick(f, f->ys[i], text);
        ls_plot_svg_text(out, LS_PLOT_LEFT - 8, y + 4, "end", GREY, text);
    }
}

/* Labels that would touch the one before, or the last, are left out. */
static void svg_x_axis(ls_buf *out, const ls_plot *f) {
    enum { APART = 8 };
    double used = 0, most = LS_PLOT_WIDTH - 2;
    char text[32];
    double last = most + 2 * APART; /* where the last label begins */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->nxs; i++) {
            bool is_last = i == f->nxs - 1;
            double x = ls_plot_x(f, f->xs[i]);
            snprintf(text, sizeof text, f->log_x ? "%.6g" : "%.0f", f->xs[i]);
            if (strlen(text) > 15) snprintf(text, sizeof text, "%.4g", f->xs[i]);
            double half = ls_svg_width(text, TEXT_SIZE) / 2, at = fmin(x, most - half);
            if (pass == 0 && is_last) last = at - half;
            if (pass == 0) continue;
            ls_plot_svg_line(out, x, LS_PLOT_BOTTOM, x, LS_PLOT_BOTTOM + 5,
                             "stroke=\"" LS_SVG_GRID "\"");
            if (!is_last && (at - half < used || at + half + APART > last)) continue;
            ls_plot_svg_text(out, at, LS_PLOT_BOTTOM + 20, "middle", GREY, text);
            used = at + half + APART;
        }
}

static void svg_axes(ls_buf *out, const ls_plot *f, const char *x_label) {
    char label[128];
    svg_y_axis(out, f);
    svg_x_axis(out, f);
    ls_plot_svg_line(out, LS_PLOT_LEFT, LS_PLOT_BOTTOM, LS_PLOT_RIGHT, LS_PLOT_BOTTOM,
                     "stroke=\"" LS_SVG_GREY "\"");
    int n = snprintf(label, sizeof label, "%.60s", x_label);
    if (f->stretch > 1)
        snprintf(label + n, sizeof label - (size_t)n, " (each point is the mean of %.0f %.30ss)",
                 f->stretch, x_label);
    ls_plot_svg_text(out, (LS_PLOT_LEFT + LS_PLOT_RIGHT) / 2.0, LS_PLOT_BOTTOM + 40, "middle", GREY,
                     label);
}

void ls_plot_svg_open(int width, int height, ls_buf *out) {
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  width, height, width, height, width, height);
}

void ls_plot_svg_begin(const ls_plot *f, int height, const char *title, const char *x_label,
                       ls_buf *out) {
    ls_plot_svg_open(LS_PLOT_WIDTH, height, out);
    svg_axes(out, f, x_label);
    ls_buf_printf(out, "<g font-size=\"15\" font-weight=\"600\">\n");
    char *fitting = ls_svg_fit(title, TITLE_SIZE, LS_PLOT_WIDTH - LS_PLOT_LEFT - 8);
    ls_plot_svg_text(out, LS_PLOT_LEFT, 24, "start", INK, fitting);
    free(fitting);
    ls_buf_printf(out, "</g>\n");
}

typedef struct mean {
    double stretch, x, y, n; /* sums of n points */
} mean;

static ls_plot_point point_of(const ls_plot *f, const mean *m) {
    return (ls_plot_point){ls_plot_x(f, m->x / m->n), ls_plot_y(f, m->y / m->n)};
}

size_t ls_plot_points(const ls_plot *f, const ls_curve_series *s, ls_plot_point *points) {
    size_t count = 0;
    mean last = {.stretch = NAN}, before = last;
    for (size_t i = 0; i < s->n; i++) {
        if (!shows_at(f, s, i)) continue;
        double own = f->stretch > 1 ? ceil(s->steps[i] / f->stretch) : (double)i;
        if (own != last.stretch) before = last, last = (mean){.stretch = own}, count++;
        last.x += s->steps[i], last.y += s->values[i], last.n++;
        points[count - 1] = point_of(f, &last);
    }
    if (2 * last.n < before.n) { /* a short rest would look noisier than all others */
        const mean both = {0, last.x + before.x, last.y + before.y, last.n + before.n};
        points[--count - 1] = point_of(f, &both);
    }
    return count;
}

void ls_plot_svg_series(ls_buf *out, const ls_plot *f, const ls_curve_series *s,
                        const char *style) {
    ls_plot_point *points = LS_NEW_ARRAY(ls_plot_point, s->n + 1);
    size_t n = ls_plot_points(f, s, points);
    ls_buf_printf(out, "<polyline fill=\"none\" stroke-linejoin=\"round\" %s points=\"", style);
    if (n == 1) {
        points[1] = points[0];
        points[n++].x += points[0].x > LS_PLOT_LEFT + 8 ? -8 : 8;
    }
    for (size_t i = 0; i < n; i++) ls_buf_printf(out, "%.1f,%.1f ", points[i].x, points[i].y);
    ls_buf_printf(out, "\"/>\n");
    free(points);
}

void ls_plot_svg_point(ls_buf *out, double x, double y, const char *colour) {
    ls_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\"/>\n", x, y, colour);
}

double ls_plot_svg_key(ls_buf *out, double x, const char *style, const char *text) {
    ls_plot_svg_line(out, x, LS_PLOT_TOP - 18, x + 24, LS_PLOT_TOP - 18, style);
    ls_plot_svg_text(out, x + 30, LS_PLOT_TOP - 14, "start", INK, text);
    return x + 50 + ls_svg_width(text, TEXT_SIZE);
}
