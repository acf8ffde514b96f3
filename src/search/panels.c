/* panels.c - see panels.h. One panel has the whole width; more of them stand in two columns. All
 * have the same y axis, which is logarithmic where the values differ by more than a factor of
 * WIDE. */
#include "search/panels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "report/plot.h"
#include "report/svg.h"

enum { WIDTH = 800, HEAD = 58, LEFT = 62, RIGHT = 18, TOP = 14, BOTTOM = 52, LABEL = 34 };
enum { FEW = 6 }; /* as many different values are the ticks themselves, unless they were drawn */
static const double WIDE = 20;
static const char DOT[] = "#4e79a7", BEST[] = "#cb6e17", BAD[] = "#b3382c";

/* An axis, in its own scale: of numbers or their logarithms. */
typedef struct axis {
    bool is_log;
    double low, high; /* as they are drawn */
    double from, to;  /* places in the picture */
} axis;

typedef struct frame {
    const ls_keys_picture *p;
    const ls_keys_panel *panel;
    double left, right, top, bottom;
    axis x, y;
    ls_buf *out;
} frame;

static double drawn(const axis *a, double value) { return a->is_log ? log10(value) : value; }

static double place(const axis *a, double value) {
    return a->from + (a->to - a->from) * (drawn(a, value) - a->low) / (a->high - a->low);
}

/* With a margin at both ends. */
static void widen(axis *a, const double *values, int n, double margin) {
    a->low = INFINITY, a->high = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (!isfinite(values[i])) continue;
        a->low = fmin(a->low, drawn(a, values[i]));
        a->high = fmax(a->high, drawn(a, values[i]));
    }
    if (!isfinite(a->low)) a->low = 0, a->high = 1;
    double more = a->high > a->low ? margin * (a->high - a->low) : fmax(fabs(a->low) * 0.05, 0.05);
    a->low -= more;
    a->high += more;
}

/* ---- ticks ---- */

static void put_x_tick(const frame *f, double at, const char *text) {
    char style[48];
    snprintf(style, sizeof style, "stroke=\"%s\"", LS_SVG_GREY);
    ls_plot_svg_line(f->out, at, f->bottom, at, f->bottom + 4, style);
    ls_plot_svg_text(f->out, at, f->bottom + 18, "middle", LS_SVG_GREY, text);
}

static void put_y_tick(const frame *f, double value) {
    char text[32], style[48];
    double at = place(&f->y, value);
    snprintf(style, sizeof style, "stroke=\"%s\"", LS_SVG_GRID);
    snprintf(text, sizeof text, "%.4g", value);
    ls_plot_svg_line(f->out, f->left, at, f->right, at, style);
    ls_plot_svg_text(f->out, f->left - 7, at + 4, "end", LS_SVG_GREY, text);
}

static void put_x_number(const frame *f, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    put_x_tick(f, place(&f->x, value), text);
}

/* 1, 2 and 5 times powers of ten; only these where there are many. */
static void put_logs(const frame *f, const axis *a, void (*put)(const frame *, double)) {
    static const int steps[] = {1, 2, 5};
    bool many = a->high - a->low > 2.5;
    for (int e = (int)floor(a->low); e <= (int)ceil(a->high); e++)
        for (int k = 0; k < (many ? 1 : 3); k++) {
            double value = steps[k] * pow(10, e);
            if (log10(value) >= a->low && log10(value) <= a->high) put(f, value);
        }
}

static void put_ticks(const frame *f, const axis *a, int n, void (*put)(const frame *, double)) {
    if (a->is_log && a->high - a->low > 0.7) {
        put_logs(f, a, put);
        return;
    }
    double low = a->is_log ? pow(10, a->low) : a->low,
           high = a->is_log ? pow(10, a->high) : a->high;
    double tick = ls_svg_tick(high - low, n);
    for (double i = ceil(low / tick); i * tick <= high; i++) put(f, i * tick);
}

/* The different values of a panel, ascending; returns how many, at most `most` + 1. */
static int different(const ls_keys_panel *p, int n, double *list, int most) {
    int found = 0;
    for (int i = 0; i < n && found <= most; i++) {
        int k = found;
        if (!isfinite(p->x[i])) continue;
        while (k > 0 && list[k - 1] > p->x[i]) k--;
        if (k > 0 && list[k - 1] == p->x[i]) continue;
        memmove(list + k + 1, list + k, (size_t)(found - k) * sizeof *list);
        list[k] = p->x[i];
        found++;
    }
    return found;
}

static void put_x_ticks(const frame *f) {
    const ls_keys_panel *p = f->panel;
    double list[FEW + 2], last = -INFINITY;
    for (int i = 0; i < p->nlabels; i++) {
        char text[16];
        snprintf(text, sizeof text, "%.14s", p->labels[i]);
        put_x_tick(f, place(&f->x, i), text);
    }
    if (p->labels) return;
    int n = different(p, f->p->n, list, FEW);
    if (n > FEW || p->is_drawn) {
        put_ticks(f, &f->x, 5, put_x_number);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (place(&f->x, list[i]) - last < LABEL) continue;
        last = place(&f->x, list[i]);
        put_x_number(f, list[i]);
    }
}

/* ---- dots ---- */

static void put_dots(const frame *f) {
    for (int i = 0; i < f->p->n; i++) {
        double x = f->panel->x[i], y = f->p->values[i];
        if (!isfinite(x) || isnan(y)) continue;
        if (isfinite(y) && i != f->p->best)
            ls_buf_printf(f->out,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" "
                          "fill-opacity=\"0.7\"><title>trial %d: %.6g</title></circle>\n",
                          place(&f->x, x), place(&f->y, y), DOT, i + 1, y);
        if (!isfinite(y))
            ls_plot_svg_text(f->out, place(&f->x, x), f->top + 12, "middle", BAD, "×");
    }
    int i = f->p->best;
    if (i >= 0 && isfinite(f->panel->x[i]))
        ls_buf_printf(f->out,
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" fill=\"%s\">"
                      "<title>trial %d: %.6g</title></circle>\n",
                      place(&f->x, f->panel->x[i]), place(&f->y, f->p->values[i]), BEST, i + 1,
                      f->p->values[i]);
}

static void put_panel(frame *f) {
    char style[48];
    ls_buf label = {0};
    ls_buf_printf(&label, "%s%s", f->panel->key, f->x.is_log ? " (log)" : "");
    put_ticks(f, &f->y, 6, put_y_tick);
    put_x_ticks(f);
    snprintf(style, sizeof style, "stroke=\"%s\"", LS_SVG_GREY);
    ls_plot_svg_line(f->out, f->left, f->bottom, f->right, f->bottom, style);
    ls_plot_svg_text(f->out, (f->left + f->right) / 2, f->bottom + 38, "middle", LS_SVG_INK,
                     label.data);
    ls_buf_free(&label);
    put_dots(f);
}

/* ---- all of it ---- */

static void put_head(const ls_keys_picture *p, int height, ls_buf *out) {
    bool diverged = false;
    for (int i = 0; i < p->n; i++) diverged = diverged || isinf(p->values[i]);
    ls_plot_svg_open(WIDTH, height, out);
    ls_buf_printf(out, "<g font-size=\"15\" font-weight=\"600\">\n");
    ls_plot_svg_text(out, LEFT, 24, "start", LS_SVG_INK, p->title);
    ls_buf_printf(out, "</g>\n");
    ls_plot_svg_point(out, LEFT + 4, 42, BEST);
    ls_plot_svg_text(out, LEFT + 14, 46, "start", LS_SVG_INK, "best");
    ls_plot_svg_point(out, LEFT + 60, 42, DOT);
    ls_plot_svg_text(out, LEFT + 70, 46, "start", LS_SVG_INK, "a trial");
    if (diverged) ls_plot_svg_text(out, LEFT + 126, 46, "start", BAD, "× diverged");
}

void ls_keys_svg(const ls_keys_picture *p, ls_buf *out) {
    int columns = p->npanels > 1 ? 2 : 1, rows = (p->npanels + columns - 1) / columns;
    int width = WIDTH / columns, height = columns > 1 ? 300 : 392;
    axis y = {0};
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < p->n; i++)
        if (isfinite(p->values[i]))
            least = fmin(least, p->values[i]), most = fmax(most, p->values[i]);
    y.is_log = least > 0 && most > WIDE * least;
    widen(&y, p->values, p->n, 0.08);
    put_head(p, HEAD + rows * height, out);
    for (int i = 0; i < p->npanels; i++) {
        frame f = {.p = p, .panel = &p->panels[i], .y = y, .out = out};
        f.left = i % columns * width + LEFT;
        f.right = i % columns * width + width - RIGHT;
        f.top = HEAD + i / columns * height + TOP;
        f.bottom = HEAD + (i / columns + 1) * height - BOTTOM;
        f.y.from = f.bottom, f.y.to = f.top;
        f.x = (axis){.is_log = f.panel->is_log, .from = f.left, .to = f.right};
        if (f.panel->labels)
            f.x.low = -0.6, f.x.high = f.panel->nlabels - 0.4;
        else
            widen(&f.x, f.panel->x, p->n, 0.06);
        if (i % columns == 0)
            ls_plot_svg_text(out, f.left, f.top - 2, "start", LS_SVG_GREY, p->metric);
        put_panel(&f);
    }
    ls_buf_printf(out, "</svg>\n");
}

/* ---- the panels of a search: a key whose value is the same in all trials has none, unless there
 * is no other ---- */

/* A panel, and its memory. */
typedef struct panel {
    ls_keys_panel drawn;
    double *x;           /* [trials] */
    const char **labels; /* [drawn.nlabels] borrowed */
} panel;

static const char *value_of(const ls_search_view *v, int trial, int key) {
    return ls_search_part_of(v->search, trial, 0)->point.values[key];
}

static bool is_number(const char *text, double *x_p) {
    char *end = NULL;
    double x = strtod(text, &end);
    *x_p = x;
    return *text && !*end && isfinite(x);
}

/* The number of a word among the labels, which may be a new one. */
static int label_of(panel *p, const char *word) {
    for (int i = 0; i < p->drawn.nlabels; i++)
        if (strcmp(p->labels[i], word) == 0) return i;
    p->labels[p->drawn.nlabels] = word;
    return p->drawn.nlabels++;
}

static bool are_numbers(const ls_search_view *v, int key) {
    double x = 0;
    for (int t = 0; t < ls_search_ntrials(v->search); t++) {
        const char *value = value_of(v, t, key);
        if (value && !is_number(value, &x)) return false;
    }
    return true;
}

/* Numbers that differ by a factor of ten, or were drawn so, have a logarithmic axis. */
static bool is_log(const ls_search_view *v, int key, const double *x) {
    double least = INFINITY, most = -INFINITY;
    const ls_space_key *k = &v->space->keys[key];
    for (int t = 0; t < ls_search_ntrials(v->search); t++)
        if (isfinite(x[t])) least = fmin(least, x[t]), most = fmax(most, x[t]);
    bool drawn = k->nranges && k->ranges[0].kind == LS_RANGE_LOG_UNIFORM;
    return least > 0 && (drawn || most >= 10 * least);
}

/* Were values drawn between two numbers? */
static bool is_drawn(const ls_space_key *k) {
    for (int i = 0; i < k->nranges; i++)
        if (k->ranges[i].kind != LS_RANGE_CHOICE) return true;
    return false;
}

static panel make(const ls_search_view *v, int key) {
    int n = ls_search_ntrials(v->search);
    panel p = {.drawn = {.key = v->space->keys[key].name}, .x = LS_NEW_ARRAY(double, (size_t)n)};
    bool numbers = are_numbers(v, key);
    if (!numbers) p.labels = LS_NEW_ARRAY(const char *, (size_t)n);
    for (int t = 0; t < n; t++) {
        const char *value = value_of(v, t, key);
        p.x[t] = NAN;
        if (value && numbers) is_number(value, &p.x[t]);
        if (value && !numbers) p.x[t] = label_of(&p, value);
    }
    p.drawn.x = p.x;
    p.drawn.labels = p.labels;
    p.drawn.is_drawn = is_drawn(&v->space->keys[key]);
    p.drawn.is_log = numbers && is_log(v, key, p.x);
    return p;
}

static bool varies(const ls_search_view *v, const panel *p) {
    double first = NAN;
    for (int t = 0; t < ls_search_ntrials(v->search); t++) {
        if (isnan(p->x[t])) continue;
        if (!isnan(first) && p->x[t] != first) return true;
        first = p->x[t];
    }
    return false;
}

static double *metrics_of(const ls_search_view *v) {
    int n = ls_search_ntrials(v->search);
    double *values = LS_NEW_ARRAY(double, (size_t)n);
    for (int t = 0; t < n; t++) {
        int rung = ls_search_reached(v->search, t);
        bool diverged = ls_search_state_of(v->search, t) == LS_SEARCH_DIVERGED;
        values[t] = diverged ? INFINITY : rung < 0 ? NAN : ls_search_metric(v->search, t, rung);
    }
    return values;
}

ls_status ls_keys_write(const ls_search_view *v, const char *path, ls_error *e) {
    panel panels[LS_SPACE_KEYS];
    ls_keys_panel drawn[LS_SPACE_KEYS];
    int n = v->space->nkeys, ndrawn = 0, best = ls_search_best(v->search);
    double *values = metrics_of(v);
    for (int i = 0; i < n; i++) {
        panels[i] = make(v, i);
        if (varies(v, &panels[i])) drawn[ndrawn++] = panels[i].drawn;
    }
    if (ndrawn == 0) drawn[ndrawn++] = panels[0].drawn;
    ls_buf title = {0};
    ls_buf_printf(&title, "%s of %d trials", v->space->rules.metric, ls_search_ntrials(v->search));
    if (best >= 0) ls_buf_printf(&title, "; best: %.6g, trial %d", values[best], best + 1);
    const ls_keys_picture p = {.title = title.data,
                               .metric = v->space->rules.metric,
                               .values = values,
                               .n = ls_search_ntrials(v->search),
                               .best = best,
                               .panels = drawn,
                               .npanels = ndrawn};
    ls_buf svg = {0};
    ls_keys_svg(&p, &svg);
    ls_status s = ls_file_replace(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    for (int i = 0; i < n; i++) free(panels[i].x), free(panels[i].labels);
    ls_buf_free(&title);
    free(values);
    return s;
}
