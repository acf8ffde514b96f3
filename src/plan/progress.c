/* progress.c - see progress.h. */
#include "plan/progress.h"

enum { WAITS, BEGUN, COMPLETE };

static const ls_lane_step *comm_step(const ls_progress *g, int step) {
    return &g->lanes->steps[LS_LANE_COMM][step];
}

static unsigned char state_of(const ls_progress *g, int step) {
    int at = atomic_load(&g->at[LS_LANE_COMM]);
    if (step < at) return COMPLETE;
    return step < at + LS_PROGRESS_WINDOW ? atomic_load(&g->states[step % LS_PROGRESS_WINDOW])
                                          : WAITS;
}

static void set_state(ls_progress *g, int step, unsigned char state) {
    atomic_store(&g->states[step % LS_PROGRESS_WINDOW], state);
    atomic_store(&g->changed, true);
}

void ls_progress_begin(ls_progress *g, const ls_lanes *l, int compute) {
    g->lanes = l;
    atomic_store(&g->at[LS_LANE_COMPUTE], compute);
    atomic_store(&g->at[LS_LANE_COMM], 0);
    for (int i = 0; i < LS_PROGRESS_WINDOW; i++) set_state(g, i, WAITS);
}

static bool has_needs(const ls_progress *g, const ls_lane_step *s) {
    for (int i = s->first_need; i < s->end_need; i++)
        if (state_of(g, g->lanes->needs[i]) != COMPLETE) return false;
    return true;
}

bool ls_progress_may_compute(const ls_progress *g) {
    int at = atomic_load(&g->at[LS_LANE_COMPUTE]);
    if (at == g->lanes->n[LS_LANE_COMPUTE]) return false;
    const ls_lane_step *s = &g->lanes->steps[LS_LANE_COMPUTE][at];
    return s->wait <= atomic_load(&g->at[LS_LANE_COMM]) && has_needs(g, s);
}

void ls_progress_computed(ls_progress *g) {
    atomic_fetch_add(&g->at[LS_LANE_COMPUTE], 1);
    atomic_store(&g->changed, true);
}

static bool may_begin(const ls_progress *g, const ls_lane_step *s) {
    return s->wait <= atomic_load(&g->at[LS_LANE_COMPUTE]) &&
           s->own <= atomic_load(&g->at[LS_LANE_COMM]) && has_needs(g, s) &&
           (s->after < 0 || state_of(g, s->after) != WAITS);
}

int ls_progress_next(ls_progress *g) {
    if (!atomic_exchange(&g->changed, false)) return -1;
    int end = ls_progress_end(g);
    for (int i = atomic_load(&g->at[LS_LANE_COMM]); i < end; i++) {
        const ls_lane_step *s = comm_step(g, i);
        if (state_of(g, i) != WAITS) continue;
        if (may_begin(g, s)) {
            atomic_store(&g->changed, true); /* others may begin, too */
            return i;
        }
        if (!s->is_message) return -1;
    }
    return -1;
}

void ls_progress_begun(ls_progress *g, int step) { set_state(g, step, BEGUN); }
bool ls_progress_is_begun(const ls_progress *g, int step) { return state_of(g, step) == BEGUN; }

void ls_progress_complete(ls_progress *g, int step) {
    int at = atomic_load(&g->at[LS_LANE_COMM]), end = at + LS_PROGRESS_WINDOW;
    set_state(g, step, COMPLETE);
    while (at < end && state_of(g, at) == COMPLETE) {
        atomic_store(&g->at[LS_LANE_COMM], at + 1);
        set_state(g, at++, WAITS); /* the place is that of a later step now */
    }
}

bool ls_progress_is_over(const ls_progress *g) {
    for (int l = 0; l < LS_NLANES; l++)
        if (atomic_load(&g->at[l]) < g->lanes->n[l]) return false;
    return true;
}

int ls_progress_end(const ls_progress *g) {
    int end = atomic_load(&g->at[LS_LANE_COMM]) + LS_PROGRESS_WINDOW;
    return end < g->lanes->n[LS_LANE_COMM] ? end : g->lanes->n[LS_LANE_COMM];
}
