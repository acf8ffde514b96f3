/* trace.c - see trace.h. */
#include "exec/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void ls_trace_open(ls_trace *t, const ls_plan *p, int worker, int nsteps) {
    *t = (ls_trace){.worker = worker, .room = nsteps};
    for (int i = 0; i < p->nactions; i++)
        if (ls_action_concerns(&p->actions[i], worker))
            t->lanes[ls_plan_lane(p, &p->actions[i])].nactions++;
    t->origins_ns = LS_NEW_ARRAY(int64_t, (size_t)nsteps);
    for (int lane = 0; lane < LS_NLANES; lane++)
        t->lanes[lane].spans =
            LS_NEW_ARRAY(ls_span, (size_t)nsteps * (size_t)t->lanes[lane].nactions);
}

void ls_trace_free(ls_trace *t) {
    free(t->origins_ns);
    for (int lane = 0; lane < LS_NLANES; lane++) free(t->lanes[lane].spans);
    *t = (ls_trace){0};
}

void ls_trace_begin_step(ls_trace *t) {
    assert(t->nsteps < t->room);
    for (int lane = 0; lane < LS_NLANES; lane++) {
        t->lanes[lane].n = 0;
        t->lanes[lane].open = false;
    }
    t->origins_ns[t->nsteps++] = ls_clock_ns();
}

void ls_trace_add(ls_trace *t, ls_lane lane, int action, int64_t begin_ns, int64_t end_ns,
                  bool complete) {
    ls_trace_lane *l = &t->lanes[lane];
    int step = t->nsteps - 1;
    assert(l->n < l->nactions);
    ls_span *s = &l->spans[(size_t)step * (size_t)l->nactions + (size_t)l->n];
    if (!l->open) *s = (ls_span){action, t->worker, lane, begin_ns - t->origins_ns[step], 0};
    l->open = !complete;
    if (!complete) return;
    s->end_ns = end_ns - t->origins_ns[step];
    l->n++;
}

int ls_trace_nspans(const ls_trace *t) {
    return t->lanes[LS_LANE_COMPUTE].nactions + t->lanes[LS_LANE_COMM].nactions;
}

void ls_trace_spans(const ls_trace *t, int step, ls_span *spans) {
    for (int lane = 0; lane < LS_NLANES; lane++) {
        const ls_trace_lane *l = &t->lanes[lane];
        size_t n = (size_t)l->nactions;
        if (n) memcpy(spans, l->spans + (size_t)step * n, n * sizeof *spans);
        spans += n;
    }
}
