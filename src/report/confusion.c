/* confusion.c - see confusion.h. */
#include "report/confusion.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/svg.h"

enum { TOP = 64, GAP = 8, RIGHT = 64, LETTER = 7, MOST_LETTERS = 20, LABEL = MOST_LETTERS + 4 };

ls_confusion ls_confusion_of(const double *pairs, uint64_t nsamples, size_t stride, int n) {
    ls_confusion c = {.n = n, .counts = LS_NEW_ARRAY(uint64_t, (size_t)n * (size_t)n)};
    for (uint64_t i = 0; i < nsamples; i++, pairs += stride)
        if (pairs[1] >= 0) c.counts[(size_t)pairs[1] * (size_t)n + (size_t)pairs[0]]++;
    return c;
}

/* ---- numbers ---- */

static uint64_t count_at(const ls_confusion *c, int right, int predicted) {
    return c->counts[(size_t)right * (size_t)c->n + (size_t)predicted];
}

/* The samples of a right class, or (`predicted`) those taken for a class. */
static uint64_t sum_of(const ls_confusion *c, int class, bool predicted) {
    uint64_t sum = 0;
    for (int i = 0; i < c->n; i++) sum += predicted ? count_at(c, i, class) : count_at(c, class, i);
    return sum;
}

/* "93.1%", or "" of no samples. */
static void write_part(uint64_t count, uint64_t of, char text[16]) {
    *text = 0;
    if (of) snprintf(text, 16, "%.1f%%", 100 * (double)count / (double)of);
}

/* A class's name, shortened. */
static void write_name(const ls_confusion *c, int class, char text[LABEL]) {
    const char *name = class < c->nnames ? c->names[class] : NULL;
    size_t n = name ? strlen(name) : 0;
    if (!name) {
        snprintf(text, LABEL, "%d", class);
        return;
    }
    if (n <= MOST_LETTERS) {
        memcpy(text, name, n + 1);
        return;
    }
    n = MOST_LETTERS - 1;
    while (n && ((unsigned char)name[n] & 0xc0) == 0x80) n--; /* not inside of a UTF-8 letter */
    memcpy(text, name, n);
    memcpy(text + n, "\u2026", sizeof "\u2026");
}

/* ---- drawing ---- */

typedef struct drawing {
    const ls_confusion *c;
    ls_buf *out;
    int cell, left, top; /* pixels */
    bool turns;          /* the names of columns, which are too long */
} drawing;

static void put_text(const drawing *d, double x, double y, const char *more, const char *text) {
    ls_buf_printf(d->out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more);
    ls_svg_escape(text, d->out);
    ls_buf_printf(d->out, "</text>\n");
}

static double at(const drawing *d, int begin, double i) { return begin + i * d->cell; }

/* Between white and a colour: right cells are blue, wrong ones orange, which small parts show too. */
static void put_cell(const drawing *d, int right, int predicted, uint64_t all) {
    static const int blue[3] = {31, 119, 180}, orange[3] = {230, 97, 1};
    uint64_t count = count_at(d->c, right, predicted);
    double part = all ? (double)count / (double)all : 0, x = at(d, d->left, predicted);
    double deep = right == predicted ? part : sqrt(part), y = at(d, d->top, right);
    const int *c = right == predicted ? blue : orange;
    int rgb[3];
    for (int i = 0; i < 3; i++) rgb[i] = (int)lround(255 + deep * (c[i] - 255));
    char name[2][LABEL], text[32];
    write_name(d->c, right, name[0]);
    write_name(d->c, predicted, name[1]);
    ls_buf_printf(d->out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"#%02x%02x%02x\" "
                  "stroke=\"" LS_SVG_GRID "\"><title>",
                  x, y, d->cell, d->cell, rgb[0], rgb[1], rgb[2]);
    ls_svg_escape(name[0], d->out);
    ls_buf_printf(d->out, " taken for ");
    ls_svg_escape(name[1], d->out);
    ls_buf_printf(d->out, ": %llu</title></rect>\n", (unsigned long long)count);
    if (!count || d->cell < 24) return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    put_text(d, x + d->cell / 2.0, y + d->cell / 2.0 + 4,
             deep > 0.6 ? "text-anchor=\"middle\" fill=\"#ffffff\"" : "text-anchor=\"middle\"",
             text);
}

static void put_row(const drawing *d, int class) {
    char name[LABEL], part[16];
    uint64_t all = sum_of(d->c, class, false);
    double y = at(d, d->top, class + 0.5) + 4;
    for (int i = 0; i < d->c->n; i++) put_cell(d, class, i, all);
    write_name(d->c, class, name);
    put_text(d, d->left - GAP, y, "text-anchor=\"end\"", name);
    write_part(count_at(d->c, class, class), all, part);
    put_text(d, at(d, d->left, d->c->n) + GAP, y, "fill=\"" LS_SVG_GREY "\"", part);
}

static void put_column(const drawing *d, int class, int bottom) {
    char name[LABEL], part[16], turned[96];
    double x = at(d, d->left, class + 0.5);
    write_name(d->c, class, name);
    snprintf(turned, sizeof turned, "transform=\"rotate(-90 %.1f %d)\"", x + 4, d->top - GAP);
    if (d->turns)
        put_text(d, x + 4, d->top - GAP, turned, name);
    else
        put_text(d, x, d->top - GAP, "text-anchor=\"middle\"", name);
    write_part(count_at(d->c, class, class), sum_of(d->c, class, true), part);
    snprintf(turned, sizeof turned,
             "fill=\"" LS_SVG_GREY "\" text-anchor=\"end\" transform=\"rotate(-90 %.1f %d)\"",
             x + 4, bottom + GAP);
    if (d->cell > 40)
        put_text(d, x, bottom + 2 * GAP, "fill=\"" LS_SVG_GREY "\" text-anchor=\"middle\"", part);
    else
        put_text(d, x + 4, bottom + GAP, turned, part);
}

static void put_title(const drawing *d) {
    uint64_t good = 0, all = 0;
    char text[128], part[16];
    for (int i = 0; i < d->c->n; i++) {
        good += count_at(d->c, i, i);
        all += sum_of(d->c, i, false);
    }
    write_part(good, all, part);
    snprintf(text, sizeof text, "%llu samples, %s right", (unsigned long long)all,
             *part ? part : "none");
    put_text(d, GAP, 24, "font-size=\"15\" font-weight=\"bold\"", text);
    put_text(d, GAP, 42, "fill=\"" LS_SVG_GREY "\"",
             "rows: the right class, recall; columns: the predicted class, precision");
}

void ls_confusion_svg(const ls_confusion *c, ls_buf *out) {
    enum { LEAST_WIDTH = 460 };
    drawing d = {.c = c, .out = out, .cell = c->n <= 12 ? 46 : c->n <= 40 ? 26 : 14};
    size_t longest = 1;
    for (int i = 0; i < c->n; i++) {
        char name[LABEL];
        write_name(c, i, name);
        if (strlen(name) > longest) longest = strlen(name);
    }
    d.left = GAP * 2 + (int)longest * LETTER;
    d.turns = (int)longest * LETTER > d.cell;
    d.top = TOP + (d.turns ? (int)longest * LETTER : 2 * GAP);
    int bottom = d.top + c->n * d.cell, width = d.left + c->n * d.cell + RIGHT;
    if (width < LEAST_WIDTH) width = LEAST_WIDTH;
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"" LS_SVG_INK
                  "\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  width, bottom + RIGHT, width, bottom + RIGHT);
    put_title(&d);
    for (int i = 0; i < c->n; i++) put_row(&d, i);
    for (int i = 0; i < c->n; i++) put_column(&d, i, bottom);
    ls_buf_printf(out, "</svg>\n");
}
