/* timeline_svg.c - a step as a picture: a row for each lane of each worker, time to the right.
 *
 * A row is pale grey while its lane is idle, and beige while a communication waits for other
 * workers. Actions too narrow to be seen are drawn together if they are adjacent and of one kind,
 * so that a file's size has a limit; each rectangle has a tooltip that names it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"
#include "report/timeline.h"

enum { WIDTH = 1200, LEFT = 104, RIGHT = 1184, LEGEND = 66, LEGEND_LINE = 20 };
static const double NARROW = 0.5, LEAST = 0.4, GAP = 0.25; /* pixels */
static const char INK[] = LS_SVG_INK, GREY[] = LS_SVG_GREY, GRID[] = LS_SVG_GRID;
static const char IDLE[] = "#f0f2f5", WAITING[] = "#e8d9b5";

static const char *const colours[LS_NACTION_KINDS] = {
    [LS_LOAD] = "#bab0ac",       [LS_FORWARD] = "#4e79a7",     [LS_RECOMPUTE] = "#9ecae9",
    [LS_BACKWARD] = "#e0823d",   [LS_SQUARES] = "#edc948",     [LS_ENCODE] = "#d37295",
    [LS_DECODE] = "#fabfd2",     [LS_EXCHANGE] = "#499894",    [LS_ADD] = "#b07aa1",
    [LS_NORM] = "#d4b106",       [LS_UPDATE] = "#9c755f",      [LS_REDUCE_SCATTER] = "#2f8f4e",
    [LS_ALL_REDUCE] = "#86c166", [LS_ALL_GATHER] = "#17807e",  [LS_FREE] = "#8a94a0",
    [LS_DELTA] = "#c7a0c4",      [LS_COPY] = "#e6cfe3",        [LS_MIX] = "#9d5fa0",
    [LS_SEND] = "#5aa9b5",       [LS_TAKE] = "#a8d5db",        [LS_SUM_FACTORS] = "#3f7f78",
    [LS_DECIDE] = "#b6992d",     [LS_REPLICA_NORM] = "#f1ce63"};

typedef struct picture {
    const ls_timeline *t;
    int step;
    int64_t length_ns;
    double unit;           /* ns of the axis's unit */
    const char *unit_name; /* "ms" */
    ls_timeline_times times;
    ls_timeline_starts starts;
    int row, gap;    /* heights: of a lane, between workers */
    int size;        /* of letters */
    int top, bottom; /* of the rows */
    ls_buf *out;
} picture;

static double x_of(const picture *p, int64_t ns) {
    return LEFT + (RIGHT - LEFT) * ((double)ns / (double)p->length_ns);
}
static int y_of(const picture *p, int worker, int lane) {
    return p->top + worker * (2 * p->row + 1 + p->gap) + lane * (p->row + 1);
}

static void put_label(const picture *p, double x, double y, const char *style, const char *label) {
    ls_buf_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    ls_svg_escape(label, p->out);
    ls_buf_printf(p->out, "</text>\n");
}

/* ---- what is drawn ---- */

/* The step whose length is the median. */
static int median_step(const ls_timeline *t) {
    for (int i = 0; i < t->nsteps; i++) {
        int shorter = 0, equal = 0;
        int64_t own = ls_timeline_step_ns(t, i);
        for (int k = 0; k < t->nsteps; k++) {
            int64_t other = ls_timeline_step_ns(t, k);
            shorter += other < own;
            equal += other == own;
        }
        int middle = (t->nsteps - 1) / 2;
        if (shorter <= middle && middle < shorter + equal) return i;
    }
    return 0;
}

static picture picture_of(const ls_timeline *t, ls_buf *out) {
    picture p = {.t = t, .step = median_step(t), .out = out};
    int n = t->nworkers;
    p.length_ns = t->nsteps ? ls_timeline_step_ns(t, p.step) : 0;
    if (p.length_ns < 1) p.length_ns = 1;
    p.unit = p.length_ns < 2000000 ? 1e3 : p.length_ns < 10000000000 ? 1e6 : 1e9;
    p.unit_name = p.unit < 1e6 ? "µs" : p.unit < 1e9 ? "ms" : "s";
    p.row = n <= 4 ? 24 : n <= 8 ? 16 : n <= 16 ? 11 : n <= 32 ? 8 : n <= 64 ? 6 : 3;
    p.gap = p.row / 2 + 1;
    p.size = p.row < 11 ? 10 : 12;
    ls_timeline_measure(t, t->nsteps ? p.step : -1, &p.times);
    ls_timeline_starts_open(t, t->nsteps ? p.step : -1, &p.starts);
    return p;
}

static double percent(const picture *p, double ns) { return 100 * ns / (double)p->length_ns; }

static void draw_head(const picture *p) {
    const ls_timeline *t = p->t;
    char line[320];
    snprintf(line, sizeof line, "%s: step %" PRId64 ", %.4g %s, %d worker%s", t->label,
             t->first_step + p->step, (double)p->length_ns / p->unit, p->unit_name, t->nworkers,
             t->nworkers == 1 ? "" : "s");
    snprintf(line + strlen(line), sizeof line - strlen(line), " (%s)", t->machine);
    char *fitting = ls_svg_fit(line, 15, WIDTH - 32);
    put_label(p, 16, 26, "class=\"h\"", fitting);
    free(fitting);
    snprintf(line, sizeof line,
             "mean of workers: computing %.1f%%, idle %.1f%%, communication %.1f%%, of which "
             "waiting for other workers %.1f%%, exposed (nothing computed meanwhile) %.1f%%; "
             "plan %.12s",
             percent(p, p->times.busy[LS_LANE_COMPUTE]),
             100 - percent(p, p->times.busy[LS_LANE_COMPUTE]),
             percent(p, p->times.busy[LS_LANE_COMM]), percent(p, p->times.waiting),
             percent(p, p->times.exposed), t->plan);
    put_label(p, 16, 45, "class=\"g\"", line);
}

/* An entry of the legend at (x, y), or in the next line; returns the place of the next. */
static double put_next(const picture *p, double x, int *y, const char *style, const char *label) {
    double width = 32 + ls_svg_width(label, p->size);
    if (x + width > RIGHT) x = 16, *y += LEGEND_LINE;
    ls_buf_printf(p->out, "<rect %s x=\"%.0f\" y=\"%d\" width=\"12\" height=\"12\"/>\n", style, x,
                  *y - 10);
    put_label(p, x + 17, *y, "", label);
    return x + width;
}

/* The kinds that occur, with their share of the step, in which they don't wait. Returns where the
 * legend ends. */
static int draw_legend(const picture *p) {
    double x = 16;
    int y = LEGEND;
    char label[64], style[64];
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        if (p->times.counts[k] == 0) continue;
        snprintf(label, sizeof label, "%s %.1f%%", ls_action_kind_name((ls_action_kind)k),
                 percent(p, p->times.moving[k]));
        snprintf(style, sizeof style, "class=\"k%d\"", k);
        x = put_next(p, x, &y, style, label);
    }
    snprintf(label, sizeof label, "waiting for other workers %.1f%%", percent(p, p->times.waiting));
    if (p->times.waiting > 0) x = put_next(p, x, &y, "class=\"w\"", label);
    snprintf(style, sizeof style, "fill=\"%s\" stroke=\"%s\"", IDLE, GRID);
    put_next(p, x, &y, style, "idle");
    return y + 14;
}

static void draw_axis(const picture *p) {
    double range = (double)p->length_ns / p->unit, tick = ls_svg_tick(range, 12), used = 0;
    for (int i = 0; i * tick <= range * (1 + 1e-9); i++) {
        char label[40];
        double x = LEFT + (RIGHT - LEFT) * (i * tick / range);
        ls_buf_printf(p->out, "<path stroke=\"%s\" d=\"M%.1f %dV%d\"/>\n", GRID, x, p->top - 4,
                      p->bottom + 4);
        snprintf(label, sizeof label, "%.6g%s%s", i * tick, i ? "" : " ", i ? "" : p->unit_name);
        double half = ls_svg_width(label, p->size) / 2, at = fmin(x, WIDTH - 2 - half);
        if (at - half < used) continue;
        put_label(p, at, p->bottom + 18, "class=\"g m\"", label);
        used = at + half + 8;
    }
}

static void draw_rows(const picture *p) {
    static const char *const lanes[] = {"compute", "comm"};
    for (int w = 0; w < p->t->nworkers; w++) {
        char label[48];
        for (int lane = 0; lane < LS_NLANES; lane++) {
            int y = y_of(p, w, lane);
            ls_buf_printf(p->out,
                          "<rect fill=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                          IDLE, LEFT, y, RIGHT - LEFT, p->row);
            snprintf(label, sizeof label, "w%d %s", w, lanes[lane]);
            if (p->row >= 11) put_label(p, LEFT - 8, y + p->row / 2.0 + 4, "class=\"g e\"", label);
        }
        snprintf(label, sizeof label, "w%d", w);
        if (p->row < 11 && (p->row >= 6 || w % 4 == 0))
            put_label(p, LEFT - 8, y_of(p, w, 1) + 3, "class=\"g e\"", label);
    }
}

/* ---- actions ---- */

/* A rectangle under construction: one action, or several narrow ones. */
typedef struct block {
    const ls_timeline_event *first;
    int64_t end_ns, busy_ns;
    int n;
} block;

static double width_of(const picture *p, int64_t begin, int64_t end) {
    return x_of(p, end) - x_of(p, begin);
}

static void put_tooltip(const picture *p, const block *b, int64_t waits_ns) {
    const ls_timeline_event *v = b->first;
    char name[160];
    ls_timeline_event_name(p->t, v, name, sizeof name);
    if (b->n > 1) {
        ls_buf_printf(p->out, "%d times %s", b->n, ls_action_kind_name(v->kind));
    } else {
        ls_svg_escape(name, p->out);
        if (v->vw >= 0) ls_buf_printf(p->out, " vw %d", v->vw);
        if (v->micro >= 0) ls_buf_printf(p->out, " micro %d", v->micro);
    }
    ls_buf_printf(p->out, ": %.4g %s from %.4g", (double)b->busy_ns / p->unit, p->unit_name,
                  (double)v->span.begin_ns / p->unit);
    if (waits_ns > 0) ls_buf_printf(p->out, ", of which it waits %.4g", (double)waits_ns / p->unit);
    if (b->n == 1) ls_buf_printf(p->out, " (action %d)", v->span.action);
}

static void put_part(const picture *p, const block *b, const char *class, int64_t begin,
                     int64_t end) {
    const ls_timeline_event *v = b->first;
    double width = width_of(p, begin, end), x = x_of(p, begin);
    if (width < LEAST) width = LEAST;
    if (x + width > RIGHT) x = RIGHT - width;
    ls_buf_printf(p->out,
                  "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>",
                  class, x, y_of(p, v->span.worker, (int)v->span.lane), width, p->row);
    put_tooltip(p, b, b->n == 1 ? ls_timeline_waits_ns(&p->starts, v) - v->span.begin_ns : 0);
    ls_buf_printf(p->out, "</title></rect>\n");
}

/* The part in which it waits for others, or the rest. */
static void put_block(const picture *p, const block *b, bool waiting) {
    const ls_timeline_event *v = b->first;
    int64_t begin = v->span.begin_ns, moves = begin;
    char class[16];
    if (b->n == 0 || (v->kind == LS_FREE && width_of(p, begin, b->end_ns) < LEAST)) return;
    snprintf(class, sizeof class, "k%d", (int)v->kind);
    if (b->n == 1) moves = ls_timeline_waits_ns(&p->starts, v);
    if (width_of(p, begin, moves) < LEAST) moves = begin;
    if (!waiting)
        put_part(p, b, class, moves, b->end_ns);
    else if (moves > begin)
        put_part(p, b, "w", begin, moves);
}

static bool is_row_of(const ls_timeline_event *a, const ls_timeline_event *b) {
    return a->span.worker == b->span.worker && a->span.lane == b->span.lane;
}

static void draw_actions(const picture *p, bool waiting) {
    size_t n = 0;
    const ls_timeline_event **events = ls_timeline_sorted(p->t, p->step, &n);
    block b = {0};
    for (size_t i = 0; i < n; i++) {
        const ls_timeline_event *v = events[i];
        int64_t begin = v->span.begin_ns, end = v->span.end_ns;
        bool narrow = width_of(p, begin, end) < NARROW;
        bool joins = b.n && narrow && v->kind == b.first->kind && is_row_of(v, b.first) &&
                     width_of(p, b.end_ns, begin) < GAP &&
                     (b.n > 1 || width_of(p, b.first->span.begin_ns, b.end_ns) < NARROW);
        if (!joins) {
            if (b.n) put_block(p, &b, waiting);
            b = (block){.first = v, .end_ns = end};
        }
        b.n++;
        b.busy_ns += end - begin;
        if (end > b.end_ns) b.end_ns = end;
    }
    if (b.n) put_block(p, &b, waiting);
    free(events);
}

void ls_timeline_svg(const ls_timeline *t, ls_buf *out) {
    ls_buf body = {0};
    picture p = picture_of(t, &body);
    draw_head(&p);
    p.top = draw_legend(&p);
    p.bottom = y_of(&p, t->nworkers, 0) - p.gap;
    draw_axis(&p);
    draw_rows(&p);
    draw_actions(&p, true); /* under the others: several messages are in flight */
    draw_actions(&p, false);
    int height = p.bottom + 28;
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"%d\" "
                  "fill=\"%s\">\n<style>.h{font-size:15px;font-weight:600}.g{fill:%s}.e{"
                  "text-anchor:end}.m{text-anchor:middle}",
                  WIDTH, height, WIDTH, height, p.size, INK, GREY);
    ls_buf_printf(out, ".w{fill:%s;stroke:#fff;stroke-width:.3}", WAITING);
    for (int k = 0; k < LS_NACTION_KINDS; k++)
        ls_buf_printf(out, ".k%d{fill:%s;stroke:#fff;stroke-width:.3}", k,
                      colours[k] ? colours[k] : GREY);
    ls_buf_printf(out, "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", WIDTH,
                  height);
    ls_buf_append(out, body.data, body.len);
    ls_buf_printf(out, "</svg>\n");
    ls_timeline_starts_close(&p.starts);
    ls_buf_free(&body);
}
