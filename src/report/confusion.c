/* confusion.c - see confusion.h. */
#include "report/confusion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "report/svg.h"

enum { TOP = 64, GAP = 8, RIGHT = 64, LETTER = 7, MOST_LETTERS = 20, LABEL = MOST_LETTERS + 4 };

ls_confusion_matrix ls_confusion_of(const double *pairs, uint64_t nsamples, size_t stride, int n) {
    ls_confusion_matrix c = {.n = n, .counts = LS_NEW_ARRAY(uint64_t, (size_t)n * (size_t)n)};
    for (uint64_t i = 0; i < nsamples; i++, pairs += stride)
        if (pairs[1] >= 0) c.counts[(size_t)pairs[1] * (size_t)n + (size_t)pairs[0]]++;
    return c;
}

/* ---- numbers ---- */

static uint64_t count_at(const ls_confusion_matrix *c, int right, int predicted) {
    return c->counts[(size_t)right * (size_t)c->n + (size_t)predicted];
}

/* The samples of a right class, or (`predicted`) those taken for a class. */
static uint64_t sum_of(const ls_confusion_matrix *c, int class, bool predicted) {
    uint64_t sum = 0;
    for (int i = 0; i < c->n; i++) sum += predicted ? count_at(c, i, class) : count_at(c, class, i);
    return sum;
}

ls_class_score ls_confusion_score(const ls_confusion_matrix *c, int class) {
    uint64_t right = count_at(c, class, class), all = sum_of(c, class, false),
             taken = sum_of(c, class, true);
    double nan = (double)NAN;
    return (ls_class_score){
        .samples = all,
        .precision = taken ? (double)right / (double)taken : nan,
        .recall = all ? (double)right / (double)all : nan,
        .f1 = all + taken ? 2 * (double)right / (double)(all + taken) : nan,
    };
}

/* "93.1%", or "" of no samples. */
static void write_part(uint64_t count, uint64_t of, char text[16]) {
    *text = 0;
    if (of) snprintf(text, 16, "%.1f%%", 100 * (double)count / (double)of);
}

/* A class's name, shortened. */
static void write_name(const ls_confusion_matrix *c, int class, char text[LABEL]) {
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
    const ls_confusion_matrix *c;
    ls_buf *svg;
    int cell, left, top; /* pixels */
    bool turns;          /* the names of columns, which are too long */
} drawing;

static double at(const drawing *d, int begin, double i) { return begin + i * d->cell; }

static void put_text(const drawing *d, ls_svg_text t) {
    if (*t.text) ls_svg_put_text(&t, d->svg);
}

/* Between white (0) and a colour (1). */
static int mix(int color, double deep) {
    int mixed = 0;
    for (int shift = 0; shift <= 16; shift += 8)
        mixed |= (int)lround(255 + deep * ((color >> shift & 255) - 255)) << shift;
    return mixed;
}

/* A count that is too long for a cell is in thousands, or millions; the tooltip has all of it. */
static void write_count(uint64_t count, int width, char text[32]) {
    snprintf(text, 32, "%llu", (unsigned long long)count);
    if ((int)strlen(text) * LETTER <= width) return;
    bool millions = count >= 999500;
    double n = (double)count / (millions ? 1e6 : 1e3);
    snprintf(text, 32, n < 9.95 && 4 * LETTER <= width ? "%.1f%c" : "%.0f%c", n,
             millions ? 'M' : 'k');
}

/* Right cells are blue, wrong ones orange, which small parts show too. */
static void put_cell(const drawing *d, int right, int predicted, uint64_t all) {
    enum { BLUE = 0x1f77b4, ORANGE = 0xe66101 };
    uint64_t count = count_at(d->c, right, predicted);
    double part = all ? (double)count / (double)all : 0, x = at(d, d->left, predicted);
    double deep = right == predicted ? part : sqrt(part), y = at(d, d->top, right);
    char name[2][LABEL], text[32], title[2 * LABEL + 48];
    write_name(d->c, right, name[0]);
    write_name(d->c, predicted, name[1]);
    snprintf(title, sizeof title, "%s taken for %s: %llu", name[0], name[1],
             (unsigned long long)count);
    ls_svg_put_box(&(ls_svg_box){.x = x,
                                 .y = y,
                                 .width = d->cell,
                                 .height = d->cell,
                                 .fill = mix(right == predicted ? BLUE : ORANGE, deep),
                                 .line = LS_GRID,
                                 .title = title},
                   d->svg);
    if (!count || d->cell < 24) return;
    write_count(count, d->cell, text);
    put_text(d, (ls_svg_text){.x = x + d->cell / 2.0,
                              .y = y + d->cell / 2.0 + 4,
                              .text = text,
                              .align = LS_ALIGN_MIDDLE,
                              .color = deep > 0.6 ? LS_WHITE : LS_INK});
}

static void put_row(const drawing *d, int class) {
    char name[LABEL], part[16];
    uint64_t all = sum_of(d->c, class, false);
    double y = at(d, d->top, class + 0.5) + 4;
    for (int i = 0; i < d->c->n; i++) put_cell(d, class, i, all);
    write_name(d->c, class, name);
    put_text(
        d, (ls_svg_text){
               .x = d->left - GAP, .y = y, .text = name, .align = LS_ALIGN_RIGHT, .color = LS_INK});
    write_part(count_at(d->c, class, class), all, part);
    put_text(d, (ls_svg_text){
                    .x = at(d, d->left, d->c->n) + GAP, .y = y, .text = part, .color = LS_GREY});
}

static void put_column(const drawing *d, int class, int bottom) {
    char name[LABEL], part[16];
    double x = at(d, d->left, class + 0.5);
    bool level = d->cell > 40;
    write_name(d->c, class, name);
    put_text(d, (ls_svg_text){.x = d->turns ? x + 4 : x,
                              .y = d->top - GAP,
                              .text = name,
                              .align = d->turns ? LS_ALIGN_LEFT : LS_ALIGN_MIDDLE,
                              .color = LS_INK,
                              .turned = d->turns});
    write_part(count_at(d->c, class, class), sum_of(d->c, class, true), part);
    put_text(d, (ls_svg_text){.x = level ? x : x + 4,
                              .y = bottom + (level ? 2 * GAP : GAP),
                              .text = part,
                              .align = level ? LS_ALIGN_MIDDLE : LS_ALIGN_RIGHT,
                              .color = LS_GREY,
                              .turned = !level});
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
    put_text(d, (ls_svg_text){.x = GAP, .y = 24, .text = text, .color = LS_INK, .is_title = true});
    put_text(d, (ls_svg_text){.x = GAP,
                              .y = 42,
                              .text = "rows: the right class, recall; columns: the predicted "
                                      "class, precision",
                              .color = LS_GREY});
}

void ls_confusion_svg(const ls_confusion_matrix *c, ls_buf *svg) {
    enum { LEAST_WIDTH = 490 };
    drawing d = {.c = c, .svg = svg, .cell = c->n <= 12 ? 46 : c->n <= 40 ? 26 : 14};
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
    ls_svg_begin(width, bottom + RIGHT, svg);
    put_title(&d);
    for (int i = 0; i < c->n; i++) put_row(&d, i);
    for (int i = 0; i < c->n; i++) put_column(&d, i, bottom);
    ls_buf_printf(svg, "</svg>\n");
}

/* ---- as a table ---- */

static void put_score(ls_buf *b, const ls_class_score *s) {
    const double values[] = {s->precision, s->recall, s->f1};
    ls_buf_printf(b, "  %8llu", (unsigned long long)s->samples);
    for (int i = 0; i < 3; i++) {
        char text[16];
        snprintf(text, sizeof text, "%.4f", values[i]);
        ls_buf_printf(b, "  %9s", isnan(values[i]) ? "-" : text);
    }
    ls_buf_printf(b, "\n");
}

/* The mean over the classes that have samples or are predicted; what has no value counts as 0. */
typedef struct score_sums {
    double precision, recall, f1;
    int n;
} score_sums;

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static void add_score(const ls_class_score *s, score_sums *sums) {
    if (isnan(s->f1)) return;
    sums->precision += or_zero(s->precision);
    sums->recall += or_zero(s->recall);
    sums->f1 += s->f1;
    sums->n++;
}

void ls_confusion_table(const ls_confusion_matrix *c, ls_buf *b) {
    score_sums sums = {0};
    ls_class_score all = {0};
    ls_buf_printf(b, "%-*s  %8s  %9s  %9s  %9s\n", MOST_LETTERS, "class", "samples", "precision",
                  "recall", "F1");
    for (int i = 0; i < c->n; i++) {
        char name[LABEL];
        ls_class_score s = ls_confusion_score(c, i);
        write_name(c, i, name);
        ls_buf_put(b, "%-*s", MOST_LETTERS, name);
        put_score(b, &s);
        all.samples += s.samples;
        add_score(&s, &sums);
    }
    all.precision = sums.precision / sums.n;
    all.recall = sums.recall / sums.n;
    all.f1 = sums.f1 / sums.n;
    ls_buf_printf(b, "%-*s", MOST_LETTERS, "mean");
    put_score(b, &all);
}
