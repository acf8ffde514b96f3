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

/* Times during which a lane is busy: disjoint and in order. */
typedef struct busy {
    struct interval {
        int64_t begin, end;
    } * at;
    size_t n;
} busy;

static void merge(busy *b, const ls_span *s) {
    if (b->n && s->begin_ns <= b->at[b->n - 1].end) {
        if (s->end_ns > b->at[b->n - 1].end) b->at[b->n - 1].end = s->end_ns;
        return;
    }
    b->at[b->n].begin = s->begin_ns;
    b->at[b->n++].end = s->end_ns;
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

/* One worker in one step: events [n]. */
static void measure_worker(const ls_timeline_event *const *events, size_t n, busy *lanes,
                           ls_timeline_times *m) {
    int64_t ends[LS_NACTION_KINDS]; /* of each kind so far */
    for (int k = 0; k < LS_NACTION_KINDS; k++) ends[k] = INT64_MIN;
    for (int lane = 0; lane < LS_NLANES; lane++) lanes[lane].n = 0;
    for (size_t i = 0; i < n; i++) {
        const ls_timeline_event *v = events[i];
        int64_t begin = v->span.begin_ns, *end = &ends[v->kind];
        if (begin < *end) begin = *end; /* several messages are in flight */
        if (v->span.end_ns > begin) m->kinds[v->kind] += (double)(v->span.end_ns - begin);
        if (v->span.end_ns > *end) *end = v->span.end_ns;
        merge(&lanes[v->span.lane], &v->span);
        m->counts[v->kind]++;
    }
    for (int lane = 0; lane < LS_NLANES; lane++) m->busy[lane] += length(&lanes[lane]);
    m->exposed +=
        length(&lanes[LS_LANE_COMM]) - common(&lanes[LS_LANE_COMM], &lanes[LS_LANE_COMPUTE]);
}

void ls_timeline_measure(const ls_timeline *t, int step, ls_timeline_times *m_p) {
    size_t n = 0;
    const ls_timeline_event **events = ls_timeline_sorted(t, step, &n);
    ls_timeline_times m = {0};
    busy lanes[LS_NLANES];
    for (int lane = 0; lane < LS_NLANES; lane++) lanes[lane].at = LS_NEW_ARRAY(struct interval, n);
    for (size_t i = 0, end = 0; i < n; i = end) {
        while (end < n && events[end]->step == events[i]->step &&
               events[end]->span.worker == events[i]->span.worker)
            end++;
        measure_worker(events + i, end - i, lanes, &m);
    }
    double steps = step < 0 ? t->nsteps : 1, all = steps * t->nworkers;
    if (steps < 1) all = steps = 1;
    for (int i = 0; i < t->nsteps; i++)
        if (step < 0 || i == step) m.step += (double)ls_timeline_step_ns(t, i) / steps;
    m.exposed /= all;
    for (int lane = 0; lane < LS_NLANES; lane++) {
        m.busy[lane] /= all;
        free(lanes[lane].at);
    }
    for (int k = 0; k < LS_NACTION_KINDS; k++) {
        m.kinds[k] /= all;
        m.counts[k] /= steps;
    }
    free(events);
    *m_p = m;
}
