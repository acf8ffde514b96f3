/* curve.c - see curve.h. Both pictures share the frame: the ranges, and ticks at round numbers. */
#include "report/curve.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"

enum { MAX_POINTS = 800 };

typedef struct frame {
    double x0, x1, y0, y1; /* what the picture shows */
    double x_tick, y_tick; /* distance between ticks */
    int decimals;          /* of labels at the y axis */
} frame;

/* Not NaN, not infinite, and small enough that differences are finite, too. */
static bool is_shown(double v) { return fabs(v) < 1e300; }

static bool point_is_shown(const ls_curve_series *s, size_t i) {
    return is_shown(s->steps[i]) && is_shown(s->values[i]);
}

static bool has_level(const ls_curve *c) { return c->level_label && is_shown(c->level); }

static void widen(const ls_curve_series *s, frame *f) {
    for (size_t i = 0; i < s->n; i++) {
        if (!point_is_shown(s, i)) continue;
        if (s->steps[i] < f->x0) f->x0 = s->steps[i];
        if (s->steps[i] > f->x1) f->x1 = s->steps[i];
        if (s->values[i] < f->y0) f->y0 = s->values[i];
        if (s->values[i] > f->y1) f->y1 = s->values[i];
    }
}

static frame frame_of(const ls_curve *c, int x_ticks, int y_ticks) {
    frame f = {.x0 = 0, .x1 = 1, .y0 = INFINITY, .y1 = -INFINITY};
    widen(&c->train, &f);
    widen(&c->val, &f);
    if (has_level(c)) {
        if (c->level < f.y0) f.y0 = c->level;
        if (c->level > f.y1) f.y1 = c->level;
    }
    if (!(f.y0 <= f.y1)) f.y0 = 0, f.y1 = 1;
    if (f.y1 - f.y0 < 1e-9 * (1 + fabs(f.y1))) {
        double room = 0.5 + 1e-6 * fabs(f.y1); /* all values are equal */
        f.y0 -= room, f.y1 += room;
    }
    f.y_tick = ls_svg_tick(f.y1 - f.y0, y_ticks);
    f.x_tick = ls_svg_tick(f.x1 - f.x0, x_ticks);
    if (f.x_tick < 1) f.x_tick = 1;
    f.y0 = floor(f.y0 / f.y_tick) * f.y_tick;
    f.y1 = ceil(f.y1 / f.y_tick) * f.y_tick;
    f.decimals = f.y_tick >= 1 ? 0 : (int)ceil(-log10(f.y_tick) - 1e-9);
    return f;
}

/* The label of a tick of the y axis: at most 8 characters, 9 below 1e-99 and from 1e100. */
static void write_tick(const frame *f, double tick, char text[16]) {
    bool wide = f->decimals > 5 || fabs(f->y0) >= 1e5 || fabs(f->y1) >= 1e5;
    if (fabs(tick) < f->y_tick / 2) tick = 0; /* not -0 */
    if (wide)
        snprintf(text, 16, "%.3g", tick);
    else
        snprintf(text, 16, "%.*f", f->decimals, tick);
}

/* ---- terminal: each character has 2 x 4 braille dots ---- */

typedef struct canvas {
    int columns, rows;   /* of characters in the plot */
    unsigned char *dots; /* [rows][columns] braille bits */
    const char **marks;  /* [rows][columns] a character instead, or NULL */
} canvas;

static void put_dot(canvas *v, int x, int y) {
    static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= 2 * v->columns || y >= 4 * v->rows) return;
    v->dots[y / 4 * v->columns + x / 2] |= bit[y % 4][x % 2];
}

static int place(double value, double low, double high, int n) {
    return (int)lround((value - low) / (high - low) * (n - 1));
}

static void put_series(canvas *v, const frame *f, const ls_curve_series *s) {
    int last_x = -1, last_y = 0, height = 4 * v->rows;
    for (size_t i = 0; i < s->n; i++) {
        if (!point_is_shown(s, i)) continue;
        int x = place(s->steps[i], f->x0, f->x1, 2 * v->columns);
        int y = height - 1 - place(s->values[i], f->y0, f->y1, height);
        put_dot(v, x, y);
        for (int k = last_x + 1; last_x >= 0 && k < x; k++) /* between two far points */
            put_dot(v, k, last_y + (y - last_y) * (k - last_x) / (x - last_x));
        last_x = x;
        last_y = y;
    }
}

static void put_marks(canvas *v, const frame *f, const ls_curve *c) {
    if (has_level(c)) {
        int y = v->rows - 1 - place(c->level, f->y0, f->y1, v->rows);
        for (int x = 0; x < v->columns; x += 2) v->marks[y * v->columns + x] = "╌";
    }
    for (size_t i = 0; i < c->val.n; i++) {
        if (!point_is_shown(&c->val, i)) continue;
        int x = place(c->val.steps[i], f->x0, f->x1, v->columns);
        int y = v->rows - 1 - place(c->val.values[i], f->y0, f->y1, v->rows);
        v->marks[y * v->columns + x] = "●";
    }
}

static void put_cell(const canvas *v, int cell, ls_buf *out) {
    unsigned char d = v->dots[cell];
    if (v->marks[cell])
        ls_buf_printf(out, "%s", v->marks[cell]);
    else if (d) /* U+2800 + dots, in UTF-8 */
        ls_buf_printf(out, "\xe2%c%c", 0xa0 | d >> 6, 0x80 | (d & 0x3f));
    else
        ls_buf_printf(out, " ");
}

static void print_rows(const canvas *v, const frame *f, ls_buf *out) {
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

static void print_x_axis(const canvas *v, const frame *f, ls_buf *out) {
    char *labels = ls_alloc((size_t)v->columns + 32);
    memset(labels, ' ', (size_t)v->columns + 16);
    int used = -1;
    ls_buf_printf(out, "%8s └", "");
    for (int x = 0; x < v->columns; x++) {
        double step = f->x0 + (f->x1 - f->x0) * x / (v->columns - 1);
        double tick = round(step / f->x_tick) * f->x_tick;
        bool on = place(tick, f->x0, f->x1, v->columns) == x && x > used;
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

void ls_curve_print(const ls_curve *c, int columns, int rows, ls_buf *out) {
    canvas v = {.columns = (columns < 40 ? 40 : columns) - 16, .rows = (rows < 10 ? 10 : rows) - 4};
    v.dots = LS_NEW_ARRAY(unsigned char, (size_t)(v.columns * v.rows));
    v.marks = LS_NEW_ARRAY(const char *, (size_t)(v.columns * v.rows));
    frame f = frame_of(c, v.columns / 12, v.rows / 3);
    put_series(&v, &f, &c->train);
    put_marks(&v, &f, c);
    ls_buf_printf(out, "%10s%s\n", "", c->title);
    print_rows(&v, &f, out);
    print_x_axis(&v, &f, out);
    ls_buf_printf(out, "%10s⠒⠒ training", "");
    if (c->val.n) ls_buf_printf(out, "   ● validation");
    if (has_level(c)) ls_buf_printf(out, "   ╌╌ %s", c->level_label);
    ls_buf_printf(out, "\n");
    free(v.dots);
    free(v.marks);
}

/* ---- SVG ---- */

enum { WIDTH = 800, HEIGHT = 450, LEFT = 64, RIGHT = 776, TOP = 64, BOTTOM = 398 };
static const char INK[] = LS_SVG_INK, GREY[] = LS_SVG_GREY, GRID[] = LS_SVG_GRID;
static const char TRAIN[] = "#9fb3c8", VAL[] = "#0b69a3", LEVEL[] = "#cb6e17";

static double x_of(const frame *f, double step) {
    return LEFT + (RIGHT - LEFT) * (step - f->x0) / (f->x1 - f->x0);
}
static double y_of(const frame *f, double value) {
    return BOTTOM - (BOTTOM - TOP) * (value - f->y0) / (f->y1 - f->y0);
}

static void svg_text(ls_buf *out, double x, double y, const char *anchor, const char *colour,
                     const char *text) {
    ls_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor,
                  colour);
    ls_svg_escape(text, out);
    ls_buf_printf(out, "</text>\n");
}

static void svg_line(ls_buf *out, double x1, double y1, double x2, double y2, const char *style) {
    ls_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                  y2, style);
}

static void svg_axes(ls_buf *out, const frame *f) {
    char text[32], style[64];
    snprintf(style, sizeof style, "stroke=\"%s\"", GRID);
    int ny = (int)lround((f->y1 - f->y0) / f->y_tick);
    int x_first = (int)ceil(f->x0 / f->x_tick - 1e-9);
    int x_last = (int)floor(f->x1 / f->x_tick + 1e-9);
    for (int i = 0; i <= ny; i++) {
        double value = f->y0 + i * f->y_tick;
        svg_line(out, LEFT, y_of(f, value), RIGHT, y_of(f, value), style);
        write_tick(f, value, text);
        svg_text(out, LEFT - 8, y_of(f, value) + 4, "end", GREY, text);
    }
    for (int i = x_first; i <= x_last; i++) {
        double step = i * f->x_tick;
        svg_line(out, x_of(f, step), BOTTOM, x_of(f, step), BOTTOM + 5, style);
        snprintf(text, sizeof text, "%.0f", step);
        svg_text(out, x_of(f, step), BOTTOM + 20, "middle", GREY, text);
    }
    snprintf(style, sizeof style, "stroke=\"%s\"", GREY);
    svg_line(out, LEFT, BOTTOM, RIGHT, BOTTOM, style);
    svg_text(out, (LEFT + RIGHT) / 2.0, BOTTOM + 40, "middle", GREY, "step");
}

/* If there are many points, draws the mean of each stretch of them. A single point becomes a
 * dash. */
static void svg_series(ls_buf *out, const frame *f, const ls_curve_series *s, const char *style) {
    size_t stretch = s->n / MAX_POINTS + 1, ndrawn = 0;
    double x = 0, y = 0;
    ls_buf_printf(out, "<polyline fill=\"none\" stroke-linejoin=\"round\" %s points=\"", style);
    for (size_t i = 0; i < s->n; i += stretch) {
        double step = 0, value = 0, n = 0;
        for (size_t j = i; j < s->n && j < i + stretch; j++) {
            if (!point_is_shown(s, j)) continue;
            step += s->steps[j];
            value += s->values[j];
            n++;
        }
        if (n == 0) continue;
        x = x_of(f, step / n);
        y = y_of(f, value / n);
        ls_buf_printf(out, "%.1f,%.1f ", x, y);
        ndrawn++;
    }
    if (ndrawn == 1) ls_buf_printf(out, "%.1f,%.1f ", x > LEFT + 8 ? x - 8 : x + 8, y);
    ls_buf_printf(out, "\"/>\n");
}

static double svg_key(ls_buf *out, double x, const char *style, const char *text) {
    svg_line(out, x, TOP - 18, x + 24, TOP - 18, style);
    svg_text(out, x + 30, TOP - 14, "start", INK, text);
    return x + 50 + 7.0 * (double)strlen(text);
}

void ls_curve_svg(const ls_curve *c, ls_buf *out) {
    frame f = frame_of(c, 8, 7);
    char train[96], val[96], level[96];
    snprintf(train, sizeof train, "stroke=\"%s\" stroke-width=\"1.2\"", TRAIN);
    snprintf(val, sizeof val, "stroke=\"%s\" stroke-width=\"2.2\"", VAL);
    snprintf(level, sizeof level, "stroke=\"%s\" stroke-width=\"1.6\" stroke-dasharray=\"6 4\"",
             LEVEL);
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    svg_axes(out, &f);
    if (has_level(c)) svg_line(out, LEFT, y_of(&f, c->level), RIGHT, y_of(&f, c->level), level);
    svg_series(out, &f, &c->train, train);
    svg_series(out, &f, &c->val, val);
    for (size_t i = 0; i < c->val.n; i++)
        if (point_is_shown(&c->val, i))
            ls_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\" fill=\"%s\"/>\n",
                          x_of(&f, c->val.steps[i]), y_of(&f, c->val.values[i]), VAL);
    ls_buf_printf(out, "<g font-size=\"15\" font-weight=\"600\">\n");
    svg_text(out, LEFT, 24, "start", INK, c->title);
    ls_buf_printf(out, "</g>\n");
    double x = svg_key(out, LEFT, train, "training");
    if (c->val.n) x = svg_key(out, x, val, "validation");
    if (has_level(c)) svg_key(out, x, level, c->level_label);
    ls_buf_printf(out, "</svg>\n");
}
