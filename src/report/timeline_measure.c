/* timeline_measure.c - how workers spent their time.
 *
 * A lane is busy while any of its spans is: overlapping spans, which a file may have, are merged
 * first. Communication is exposed while its lane is busy and the computing lane of its worker is
 * not.
 */
#include <stdlib.h>

#include "report/timeline.h"

static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_row(const void *pa, const void *pb) {
    const ls_timeline_event *a = *(const ls_timeline_event *const *)pa;
    const ls_timeline_event *b = *(const ls_timeline_event *const *)pb;
    if (a->step != b->step) return compare(a->step, b->step);
    if (a->span.worker != b->span.worker) return compare(a->span.worker, b->span.worker);
    if (a->span.lane != b->span.lane) return compare(a->span.lane, b->span.lane);
    if (a->span.begin_ns != b->span.begin_ns) return compare(a->span.begin_ns, b->span.begin_ns);
    return compare(a->span.action, b->span.action);
}

const ls_timeline_event **ls_timeline_sorted(const ls_timeline *t, int step, size_t *n_p) {
    const ls_timeline_event **list = LS_NEW_ARRAY(const ls_timeline_event *, t->nevents);
    size_t n = 0;
    for (size_t i = 0; i < t->nevents; i++)
        if (step < 0 || t->events[i].step == step) list[n++] = &t->events[i];
    qsort(list, n, sizeof *list, by_row);
    *n_p = n;
    return list;
}

/* ---- waiting for others ---- */

static int by_start(const void *pa, const void *pb) {
    const struct ls_timeline_start *a = pa, *b = pb;
    if (a->step != b->step) return compare(a->step, b->step);
    if (a->action != b->action) return compare(a->action, b->action);
    return compare(a->begin_ns, b->begin_ns);
}

void ls_timeline_starts_open(const ls_timeline *t, int step, ls_timeline_starts *s) {
    *s = (ls_timeline_starts){LS_NEW_ARRAY(struct ls_timeline_start, t->nevents + 1), 0};
    for (size_t i = 0; i < t->nevents; i++) {
        const ls_timeline_event *v = &t->events[i];
        if (v->span.lane == LS_LANE_COMM && (step < 0 || v->step == step))
            s->list[s->n++] = (struct ls_timeline_start){v->step, v->span.action, v->span.begin_ns};
    }
    qsort(s->list, s->n, sizeof *s->list, by_start);
}

void ls_timeline_starts_close(ls_timeline_starts *s) { free(s->list); }

int64_t ls_timeline_waits_ns(const ls_timeline_starts *s, const ls_timeline_event *v) {
    const struct ls_timeline_start last = {v->step, v->span.action, v->span.end_ns};
    size_t low = 0, high = s->n; /* the first that is not before `last` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_start(&s->list[middle], &last) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct ls_timeline_start *x = low ? &s->list[low - 1] : NULL;
    bool same = x && x->step == v->step && x->action == v->span.action;
    return same && v->span.lane == LS_LANE_COMM && x->begin_ns > v->span.begin_ns
               ? x->begin_ns
               : v->span.begin_ns;
}

/* ---- measuring ---- */

/* Times during which a lane is busy: disjoint and in order. */
typedef struct busy {
    struct interval {
        int64_t begin, end;
    } * at;
    size_t n;
} busy;

static void merge(busy *b, int64_t begin, int64_t end) {
    if (b->n && begin <= b->at[b->n - 1].end) {
        if (end > b->at[b->n - 1].end) b->at[b->n - 1].end = end;
        return;
    }
    b->at[b->n].begin = begin;
    b->at[b->n++].end = end;
}

static double length(const busy *b) {
    double sum = 0;
    for (size_t i = 0; i < b->n; i++) sum += (double)(b->at[i].end - b->at[i].begin);
    return sum;
}

static double common(const busy *a, const busy *b) {
    double sum = 0;
    for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
        int64_t begin = a->at[i].begin > b->at[j].begin ? a->at[i].begin : b->at[j].begin;
        int64_t end = a->at[i].end < b->at[j].end ? a->at[i].end : b->at[j].end;
        if (end > begin) sum += (double)(end - begin);
        if (a->at[i].end < b->at[j].end)
            i++;
        else
            j++;
    }
    return sum;
}

static int by_begin(const void *pa, const void *pb) {
    const struct interval *a = pa, *b = pb;
    return compare(a->begin, b->begin);
}

/* Makes the intervals [n] of a list disjoint. */
static void merge_all(busy *b) {
    size_t n = b->n;
    if (n) qsort(b->at, n, sizeof *b->at, by_begin);
    b->n = 0;
    for (size_t i = 0; i < n; i++) {
        struct interval x = b->at[i];
        merge(b, x.begin, x.end);
    }
}

/* The intervals of work: of each lane, of communications that don't wait, and these of one kind. */
enum { MOVING = LS_NLANES, OF_KIND, NLISTS };

static void measure_moving(const ls_timeline_event *const *events, size_t n,
                           const ls_timeline_starts *starts, busy *lists, ls_timeline_times *m) {
    lists[MOVING].n = 0;
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        busy *own = &lists[OF_KIND];
        own->n = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t begin = 0, end = events[i]->span.end_ns;
            if ((int)events[i]->kind != k) continue;
            begin = ls_timeline_waits_ns(starts, events[i]);
            if (end > begin) own->at[own->n++] = (struct interval){begin, end};
            if (end > begin && events[i]->span.lane == LS_LANE_COMM)
                lists[MOVING].at[lists[MOVING].n++] = (struct interval){begin, end};
        }
        merge_all(own);
        m->moving[k] += length(own);
    }
    merge_all(&lists[MOVING]);
    m->waiting += length(&lists[LS_LANE_COMM]) - length(&lists[MOVING]);
}

/* One worker in one step: events [n]. */
static void measure_worker(const ls_timeline_event *const *events, size_t n,
                           const ls_timeline_starts *starts, busy *lists, ls_timeline_times *m) {
    int64_t ends[LS_NACTION_KINDS]; /* of each kind so far */
    for (int k = 0; k < LS_NACTION_KINDS; k++) ends[k] = INT64_MIN;
    for (int lane = 0; lane < LS_NLANES; lane++) lists[lane].n = 0;
    for (size_t i = 0; i < n; i++) {
        const ls_timeline_event *v = events[i];
        int64_t begin = v->span.begin_ns, *end = &ends[v->kind];
        if (begin < *end) begin = *end; /* several messages are in flight */
        if (v->span.end_ns > begin) m->kinds[v->kind] += (double)(v->span.end_ns - begin);
        if (v->span.end_ns > *end) *end = v->span.end_ns;
        merge(&lists[v->span.lane], v->span.begin_ns, v->span.end_ns);
        m->counts[v->kind]++;
    }
    for (int lane = 0; lane < LS_NLANES; lane++) m->busy[lane] += length(&lists[lane]);
    m->exposed +=
        length(&lists[LS_LANE_COMM]) - common(&lists[LS_LANE_COMM], &lists[LS_LANE_COMPUTE]);
    measure_moving(events, n, starts, lists, m);
}

void ls_timeline_measure(const ls_timeline *t, int step, ls_timeline_times *m_p) {
    size_t n = 0;
    const ls_timeline_event **events = ls_timeline_sorted(t, step, &n);
    ls_timeline_times m = {0};
    ls_timeline_starts starts;
    busy lists[NLISTS];
    ls_timeline_starts_open(t, step, &starts);
    for (int i = 0; i < NLISTS; i++) lists[i].at = LS_NEW_ARRAY(struct interval, n + 1);
    for (size_t i = 0, end = 0; i < n; i = end) {
        while (end < n && events[end]->step == events[i]->step &&
               events[end]->span.worker == events[i]->span.worker)
            end++;
        measure_worker(events + i, end - i, &starts, lists, &m);
    }
    double steps = step < 0 ? t->nsteps : 1, all = steps * t->nworkers;
    if (steps < 1) all = steps = 1;
    for (int i = 0; i < t->nsteps; i++)
        if (step < 0 || i == step) m.step += (double)ls_timeline_step_ns(t, i) / steps;
    m.exposed /= all;
    m.waiting /= all;
    for (int lane = 0; lane < LS_NLANES; lane++) m.busy[lane] /= all;
    for (int i = 0; i < NLISTS; i++) free(lists[i].at);
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        m.kinds[k] /= all;
        m.moving[k] /= all;
        m.counts[k] /= steps;
    }
    ls_timeline_starts_close(&starts);
    free(events);
    *m_p = m;
}
