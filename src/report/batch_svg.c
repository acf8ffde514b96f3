/* batch_svg.c - see batch_svg.h. */
#include "report/batch_svg.h"

#include <math.h>

#include "base/file.h"
#include "report/svg.h"

enum { WIDTH = 800, HEIGHT = 450, LEFT = 80, RIGHT = 770, TOP = 60, BOTTOM = 400 };
static const char *const colours[LS_BATCH_LINES] = {"#4e79a7", "#e0823d", "#2f8f4e", "#b07aa1"};

typedef struct frame {
    const ls_batch_picture *p;
    double low, high; /* of the values' axis, as they are drawn */
    ls_buf *out;
} frame;

static double drawn(const frame *f, double value) { return f->p->log_values ? log10(value) : value; }

static double x_of(const frame *f, double batch) {
    double first = log2(f->p->batches[0]), last = log2(f->p->batches[f->p->n - 1]);
    double part = last > first ? (log2(batch) - first) / (last - first) : 0.5;
    return LEFT + 20 + fmin(fmax(part, 0), 1) * (RIGHT - LEFT - 40);
}

static double y_of(const frame *f, double value) {
    return BOTTOM - (drawn(f, value) - f->low) / (f->high - f->low) * (BOTTOM - TOP);
}

static void find_range(frame *f) {
    f->low = INFINITY;
    f->high = -INFINITY;
    for (int l = 0; l < f->p->nlines; l++)
        for (int i = 0; i < f->p->n; i++) {
            double y = drawn(f, f->p->lines[l].values[i]);
            if (!isfinite(y)) continue;
            f->low = fmin(f->low, y);
            f->high = fmax(f->high, y);
        }
    if (!isfinite(f->low)) f->low = 0, f->high = 1;
    double margin = f->high > f->low ? 0.06 * (f->high - f->low) : 0.5;
    f->low -= margin;
    f->high += margin;
}

static void put_axes(const frame *f) {
    double tick = ls_svg_tick(f->high - f->low, 6);
    for (double y = ceil(f->low / tick) * tick; y <= f->high; y += tick) {
        double at = BOTTOM - (y - f->low) / (f->high - f->low) * (BOTTOM - TOP);
        ls_buf_printf(f->out,
                      "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"" LS_SVG_GRID
                      "\"/>\n<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"" LS_SVG_GREY
                      "\">%.4g</text>\n",
                      LEFT, at, RIGHT, at, LEFT - 8, at + 4, f->p->log_values ? pow(10, y) : y);
    }
    for (int i = 0; i < f->p->n; i++)
        ls_buf_printf(f->out,
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"" LS_SVG_GREY
                      "\">%g</text>\n",
                      x_of(f, f->p->batches[i]), BOTTOM + 20, f->p->batches[i]);
    ls_buf_printf(f->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"" LS_SVG_INK "\">",
                  (LEFT + RIGHT) / 2, BOTTOM + 40);
    ls_svg_escape(f->p->unit, f->out);
    ls_buf_printf(f->out, "</text>\n");
}

static void put_mark(const frame *f) {
    if (f->p->mark <= 0) return;
    double low = x_of(f, f->p->low);
    double high = isfinite(f->p->high) ? x_of(f, f->p->high) : RIGHT;
    ls_buf_printf(f->out,
                  "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#fbf3d5\"/>\n"
                  "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#d4b106\" "
                  "stroke-width=\"1.6\"/>\n",
                  low, TOP, high - low, BOTTOM - TOP, x_of(f, f->p->mark), TOP,
                  x_of(f, f->p->mark), BOTTOM);
}

static void put_points(const frame *f, const ls_batch_line *l, const char *colour) {
    for (int i = 0; i < f->p->n; i++) {
        double x = x_of(f, f->p->batches[i]), v = l->values[i];
        if (!isfinite(drawn(f, v))) continue;
        ls_buf_printf(f->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s\"/>\n", x,
                      y_of(f, v), colour);
        if (!l->errors || !isfinite(l->errors[i]) || l->errors[i] == 0) continue;
        ls_buf_printf(f->out,
                      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x,
                      y_of(f, v - l->errors[i]), x, y_of(f, v + l->errors[i]), colour);
    }
}

static void put_line(const frame *f, int index) {
    const ls_batch_line *l = &f->p->lines[index];
    const char *colour = colours[index];
    ls_buf_printf(f->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"",
                  colour, l->dashed ? " stroke-dasharray=\"6 4\"" : "");
    for (int i = 0; i < f->p->n; i++)
        if (isfinite(drawn(f, l->values[i])))
            ls_buf_printf(f->out, "%.1f,%.1f ", x_of(f, f->p->batches[i]), y_of(f, l->values[i]));
    ls_buf_printf(f->out, "\"/>\n");
    if (!l->dashed) put_points(f, l, colour);
    ls_buf_printf(f->out, "<text x=\"%d\" y=\"48\" fill=\"%s\">", LEFT + 175 * index, colour);
    ls_svg_escape(l->label, f->out);
    ls_buf_printf(f->out, "</text>\n");
}

void ls_batch_svg(const ls_batch_picture *p, ls_buf *out) {
    frame f = {.p = p, .out = out};
    find_range(&f);
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
                  WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_mark(&f);
    put_axes(&f);
    for (int i = 0; i < p->nlines; i++) put_line(&f, i);
    ls_buf_printf(out,
                  "<text x=\"%d\" y=\"26\" font-size=\"15\" font-weight=\"600\" fill=\"" LS_SVG_INK
                  "\">",
                  LEFT);
    ls_svg_escape(p->title, out);
    ls_buf_printf(out, "</text>\n</svg>\n");
}

ls_status ls_batch_svg_write(const char *path, const ls_batch_picture *p, ls_error *e) {
    ls_buf svg = {0};
    ls_batch_svg(p, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return s;
}
