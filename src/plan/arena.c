/* arena.c - places for the transient buffers of one worker.
 *
 * Two buffers that are live at the same time must not overlap. Buffers are placed in the order in
 * which they first come to life, each at the lowest place that is free of those it ever lives
 * beside.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

enum { ALIGN = 64 };

typedef struct walk {
    const ls_plan *p;
    int worker;
    int n;       /* buffers that may lie in the arena */
    bool *live;  /* [n] */
    bool *clash; /* [n][n] live at the same time at some point */
    int *order;  /* buffers by first life */
    int norder;
    size_t bytes, peak;
    int action, peak_action;
} walk;

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    if (!ls_buffer_in_arena(ls_plan_buffer_of(w->p, buffer).kind)) return;
    if (w->live[buffer] || how == LS_USE_READ) return;
    w->live[buffer] = true;
    w->bytes += ls_plan_buffer_nbytes(w->p, buffer, w->worker);
    bool known = false;
    for (int i = 0; i < w->norder; i++) known |= w->order[i] == buffer;
    if (!known) w->order[w->norder++] = buffer;
    for (int i = 0; i < w->n; i++)
        if (w->live[i]) w->clash[buffer * w->n + i] = w->clash[i * w->n + buffer] = true;
    if (w->bytes > w->peak) {
        w->peak = w->bytes;
        w->peak_action = w->action;
    }
}

/* The lowest offset at which `buffer` overlaps none of those placed that it clashes with. */
static size_t lowest_place(const walk *w, int buffer, size_t nbytes, const size_t *offsets) {
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < w->n; i++) {
            if (offsets[i] == SIZE_MAX || !w->clash[buffer * w->n + i]) continue;
            size_t end = offsets[i] + ls_plan_buffer_nbytes(w->p, i, w->worker);
            if (at >= end || offsets[i] >= at + nbytes) continue;
            at = (end + ALIGN - 1) / ALIGN * ALIGN;
            moved = true;
        }
    }
    return at;
}

void ls_plan_arena(const ls_plan *p, int worker, ls_arena_plan *a_p) {
    walk w = {.p = p, .worker = worker, .n = ls_plan_buffer(p, LS_BUF_PARAM, 0, 0)};
    w.live = LS_NEW_ARRAY(bool, (size_t)w.n);
    w.clash = LS_NEW_ARRAY(bool, (size_t)w.n *(size_t)w.n);
    w.order = LS_NEW_ARRAY(int, (size_t)w.n);
    for (w.action = 0; w.action < p->nactions; w.action++) {
        const ls_action *a = &p->actions[w.action];
        if (a->worker != worker) continue;
        if (a->kind != LS_FREE) {
            ls_action_uses(p, a, worker, on_use, &w);
            continue;
        }
        if (a->buffer >= w.n) continue;
        w.live[a->buffer] = false;
        w.bytes -= ls_plan_buffer_nbytes(p, a->buffer, worker);
    }
    ls_arena_plan arena = {.peak = w.peak, .peak_action = w.peak_action};
    arena.offsets = LS_NEW_ARRAY(size_t, (size_t)w.n);
    for (int i = 0; i < w.n; i++) arena.offsets[i] = SIZE_MAX;
    for (int i = 0; i < w.norder; i++) {
        int buffer = w.order[i];
        size_t nbytes = ls_plan_buffer_nbytes(p, buffer, worker);
        arena.offsets[buffer] = lowest_place(&w, buffer, nbytes, arena.offsets);
        if (arena.offsets[buffer] + nbytes > arena.nbytes)
            arena.nbytes = arena.offsets[buffer] + nbytes;
    }
    free(w.live);
    free(w.clash);
    free(w.order);
    *a_p = arena;
}

void ls_arena_plan_free(ls_arena_plan *a) {
    free(a->offsets);
    *a = (ls_arena_plan){0};
}
