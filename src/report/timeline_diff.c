/* timeline_diff.c - two timelines side by side: where the time of a step goes, and where they
 * differ.
 *
 * Times are milliseconds of a step, mean of workers and steps, so the numbers of either may differ.
 * Layers and buckets are compared by name, so the plans may differ, too.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/timeline.h"

enum { MOST_PARTS = 10 };

/* All actions of one name: "Forward h.0.mlp". */
typedef struct part {
    char name[128];
    double ms[2]; /* of a and b */
} part;

static double ms_of(double ns) { return ns / 1e6; }

static void print_heads(const ls_timeline *a, const ls_timeline *b, ls_buf *out) {
    const ls_timeline *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const ls_timeline *t = both[i];
        ls_buf_printf(out,
                      "%c  %-10s %d worker%s, %d step%s from step %" PRId64 ", plan %.12s, %s\n",
                      'A' + i, t->label, t->nworkers, t->nworkers == 1 ? "" : "s", t->nsteps,
                      t->nsteps == 1 ? "" : "s", t->first_step, t->plan, t->machine);
    }
    if (strcmp(a->plan, b->plan) != 0)
        ls_buf_printf(out, "the plans differ: their actions are compared by kind and name\n");
}

static void print_row(ls_buf *out, const char *name, double a, double b) {
    ls_buf_printf(out, "  %-24s %12.3f %12.3f %12.3f", name, ms_of(a), ms_of(b), ms_of(b - a));
    if (a > 0 && b < 10 * a)
        ls_buf_printf(out, " %+8.1f%%\n", 100 * (b - a) / a);
    else if (a > 0 && b < 1e6 * a)
        ls_buf_printf(out, " %8.0fx\n", b / a);
    else
        ls_buf_printf(out, "\n");
}

static void print_lanes(const ls_timeline_times *a, const ls_timeline_times *b, ls_buf *out) {
    ls_buf_printf(out, "\nms of a step, mean of workers %11s %12s %12s\n", "A", "B", "B - A");
    print_row(out, "step", a->step, b->step);
    print_row(out, "computing", a->busy[LS_LANE_COMPUTE], b->busy[LS_LANE_COMPUTE]);
    print_row(out, "  idle", a->step - a->busy[LS_LANE_COMPUTE],
              b->step - b->busy[LS_LANE_COMPUTE]);
    print_row(out, "communication", a->busy[LS_LANE_COMM], b->busy[LS_LANE_COMM]);
    print_row(out, "  waiting", a->waiting, b->waiting);
    print_row(out, "  exposed", a->exposed, b->exposed);
}

static void print_share(ls_buf *out, const ls_timeline_times *m, int kind) {
    ls_buf_printf(out, " %7.0f %10.3f %6.1f%%", m->counts[kind], ms_of(m->kinds[kind]),
                  m->step > 0 ? 100 * m->kinds[kind] / m->step : 0);
}

static void print_kinds(const ls_timeline_times *a, const ls_timeline_times *b, ls_buf *out) {
    ls_buf_printf(out, "\n%-15s %7s %10s %7s %7s %10s %7s %10s\n", "by action", "A count", "ms",
                  "of step", "B count", "ms", "of step", "B - A ms");
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        if (a->counts[k] == 0 && b->counts[k] == 0) continue;
        ls_buf_printf(out, "  %-13s", ls_action_kind_name((ls_action_kind)k));
        print_share(out, a, k);
        print_share(out, b, k);
        ls_buf_printf(out, " %+10.3f\n", ms_of(b->kinds[k] - a->kinds[k]));
    }
}

/* ---- where they differ ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const part *)a)->name, ((const part *)b)->name);
}

static int by_difference(const void *a, const void *b) {
    const part *x = a, *y = b;
    double dx = fabs(x->ms[1] - x->ms[0]), dy = fabs(y->ms[1] - y->ms[0]);
    return dx != dy ? (dx < dy) - (dx > dy) : by_name(a, b);
}

/* Sums by kind and layer or bucket; the last place is for actions that have neither. */
static size_t add_parts(const ls_timeline *t, int side, part *parts) {
    size_t width = (size_t)(t->nlayers > t->nbuckets ? t->nlayers : t->nbuckets) + 1, n = 0;
    part *table = LS_NEW_ARRAY(part, LS_NACTION_KINDS * width);
    for (size_t i = 0; i < t->nevents; i++) {
        const ls_timeline_event *v = &t->events[i];
        int place = v->layer >= 0 ? v->layer : v->bucket;
        part *p = &table[(size_t)v->kind * width + (place >= 0 ? (size_t)place : width - 1)];
        if (!p->name[0]) ls_timeline_event_name(t, v, p->name, sizeof p->name);
        p->ms[side] += ms_of((double)(v->span.end_ns - v->span.begin_ns)) / t->nworkers / t->nsteps;
    }
    for (size_t i = 0; i < LS_NACTION_KINDS * width; i++)
        if (table[i].name[0]) parts[n++] = table[i];
    free(table);
    return n;
}

static size_t most_parts(const ls_timeline *t) {
    return LS_NACTION_KINDS * ((size_t)t->nlayers + (size_t)t->nbuckets + 1);
}

static void print_parts(const ls_timeline *a, const ls_timeline *b, ls_buf *out) {
    part *parts = LS_NEW_ARRAY(part, most_parts(a) + most_parts(b));
    size_t all = add_parts(a, 0, parts), n = 0;
    all += add_parts(b, 1, parts + all);
    qsort(parts, all, sizeof *parts, by_name);
    for (size_t i = 0; i < all; i++) {
        if (n && strcmp(parts[n - 1].name, parts[i].name) == 0) {
            parts[n - 1].ms[0] += parts[i].ms[0];
            parts[n - 1].ms[1] += parts[i].ms[1];
        } else {
            parts[n++] = parts[i];
        }
    }
    qsort(parts, n, sizeof *parts, by_difference);
    ls_buf_printf(out, "\nlargest differences, ms        %11s %12s %12s\n", "A", "B", "B - A");
    for (size_t i = 0; i < n && i < MOST_PARTS; i++)
        print_row(out, parts[i].name, parts[i].ms[0] * 1e6, parts[i].ms[1] * 1e6);
    free(parts);
}

void ls_timeline_diff(const ls_timeline *a, const ls_timeline *b, ls_buf *out) {
    ls_timeline_times times_a, times_b;
    ls_timeline_measure(a, -1, &times_a);
    ls_timeline_measure(b, -1, &times_b);
    print_heads(a, b, out);
    print_lanes(&times_a, &times_b, out);
    print_kinds(&times_a, &times_b, out);
    print_parts(a, b, out);
}
