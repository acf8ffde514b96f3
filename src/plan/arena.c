/* arena.c - offsets of one worker's transient buffers in its arena.
 *
 * Two buffers that are live at the same time must not overlap. Buffers are placed in the order of
 * their first use, each at the lowest offset where it overlaps none of the buffers that it is ever
 * live with. A set of bits for each buffer says which these are; buffers that the worker never
 * writes are in none. Placed buffers are sorted by offset, so that one pass over them finds the
 * lowest gap. What messages write is always live: no computation has to wait for its place. Where
 * there are so many that they would be most of the memory, they wait for it
 * (ls_plan_arrives_late()).
 */
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "plan/plan.h"

enum { ALIGN = 64, WORD = 64 };

typedef struct walk {
    const ls_plan *p;
    int worker;
    int *actions; /* [nactions] that name the worker */
    int nactions;
    int nall;        /* buffers of all workers that may be in an arena */
    int first, end;  /* of these, those that may be in this one */
    int *numbers;    /* [nall] among those that the worker writes; -1: it is none of them */
    int *buffers;    /* [n] */
    int n, nwords;   /* buffers that it writes; words of a set of them */
    size_t *nbytes;  /* [n] */
    uint64_t *live;  /* [nwords] */
    uint64_t *clash; /* [n][nwords] buffers that are ever live with this one */
    bool *known;     /* [n] */
    bool *received;  /* [n] by a message, beside computation: it keeps its place all the time */
    int *order;      /* buffers by first use */
    int norder;
    int *placed; /* buffers by offset */
    int nplaced;
    size_t bytes, peak;
} walk;

static bool has(const uint64_t *set, int i) { return set[i / WORD] >> (i % WORD) & 1; }

static int number_of(const walk *w, int buffer) {
    return buffer >= w->first && buffer < w->end ? w->numbers[buffer] : -1;
}

/* Numbers the buffer when it is written first. */
static void on_first_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    bool may = buffer >= w->first && buffer < w->end && how != LS_USE_READ;
    if (!may || w->numbers[buffer] >= 0) return;
    w->numbers[buffer] = w->n;
    w->buffers[w->n++] = buffer;
}

static void on_use(int of_all, ls_use how, void *arg) {
    walk *w = arg;
    int buffer = number_of(w, of_all);
    if (buffer < 0 || how == LS_USE_READ || has(w->live, buffer)) return;
    uint64_t *clash = w->clash + (size_t)buffer * (size_t)w->nwords;
    for (int i = 0; i < w->nwords; i++) clash[i] |= w->live[i];
    w->live[buffer / WORD] |= (uint64_t)1 << (buffer % WORD);
    w->bytes += w->nbytes[buffer];
    if (!w->known[buffer]) w->order[w->norder++] = buffer;
    w->known[buffer] = true;
    if (w->bytes > w->peak) w->peak = w->bytes;
}

static void end_life(walk *w, int of_all) {
    int buffer = number_of(w, of_all);
    if (buffer < 0 || w->received[buffer]) return;
    w->live[buffer / WORD] &= ~((uint64_t)1 << (buffer % WORD));
    w->bytes -= w->nbytes[buffer];
}

/* A buffer's set has those that were live when it became live: puts it into theirs. */
static void complete_sets(walk *w) {
    size_t nwords = (size_t)w->nwords;
    for (size_t a = 0; a < (size_t)w->n; a++)
        for (size_t i = 0; i < nwords; i++)
            for (uint64_t left = w->clash[a * nwords + i]; left; left &= left - 1) {
                size_t b = i * WORD + (size_t)__builtin_ctzll(left);
                w->clash[b * nwords + a / WORD] |= (uint64_t)1 << (a % WORD);
            }
}

/* The lowest offset at which `buffer` overlaps no placed buffer that it is ever live with. */
static size_t lowest_offset(const walk *w, int buffer, const size_t *offsets) {
    const uint64_t *meets = w->clash + (size_t)buffer * (size_t)w->nwords;
    size_t at = 0;
    for (int i = 0; i < w->nplaced; i++) {
        int other = w->placed[i];
        if (offsets[other] >= at + w->nbytes[buffer]) break;
        size_t end = offsets[other] + w->nbytes[other];
        if (end > at && has(meets, other)) at = ls_round_up(end, ALIGN);
    }
    return at;
}

static void insert(walk *w, int buffer, const size_t *offsets) {
    int i = w->nplaced++;
    for (; i > 0 && offsets[w->placed[i - 1]] > offsets[buffer]; i--)
        w->placed[i] = w->placed[i - 1];
    w->placed[i] = buffer;
}

static void place_all(walk *w, ls_arena_plan *arena) {
    size_t *offsets = LS_NEW_ARRAY(size_t, (size_t)w->n + 1);
    complete_sets(w);
    for (int i = 0; i < w->nall; i++) arena->offsets[i] = SIZE_MAX;
    for (int i = 0; i < w->norder; i++) {
        int buffer = w->order[i];
        size_t at = lowest_offset(w, buffer, offsets);
        arena->offsets[w->buffers[buffer]] = offsets[buffer] = at;
        insert(w, buffer, offsets);
        if (at + w->nbytes[buffer] > arena->nbytes) arena->nbytes = at + w->nbytes[buffer];
    }
    free(offsets);
}

static void list_received(walk *w) {
    const ls_plan *p = w->p;
    for (int i = 0; i < w->nactions; i++) {
        const ls_action *a = &p->actions[w->actions[i]];
        if (a->kind != LS_SEND || a->peer != w->worker || number_of(w, a->buffer) < 0) continue;
        if (ls_plan_arrives_late(p, a)) continue;
        w->received[number_of(w, a->buffer)] = true;
        on_use(a->buffer, LS_USE_WRITE, w);
    }
}

/* Does the worker write what the action names when it comes to it? */
static bool concerns(const walk *w, const ls_action *a) {
    return a->worker == w->worker || (a->peer == w->worker && ls_plan_arrives_late(w->p, a));
}

static void list_buffers(walk *w, bool there) {
    const ls_plan *p = w->p;
    w->nall = ls_plan_buffer(p, LS_BUF_PARAM, 0, 0);
    w->first = there ? ls_plan_buffer(p, LS_BUF_DEVICE_ACT, 0, 0) : LS_BUF_ACT;
    w->end = there || !p->share.on_device ? w->nall : ls_plan_buffer(p, LS_BUF_DEVICE_ACT, 0, 0);
    w->numbers = LS_NEW_ARRAY(int, (size_t)w->nall);
    w->buffers = LS_NEW_ARRAY(int, (size_t)w->nall);
    for (int i = 0; i < w->nall; i++) w->numbers[i] = -1;
    w->actions = LS_NEW_ARRAY(int, (size_t)p->nactions + 1);
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        bool comes = a->kind == LS_SEND && a->peer == w->worker;
        if (comes || a->worker == w->worker) w->actions[w->nactions++] = i;
    }
    for (int i = 0; i < w->nactions; i++) {
        const ls_action *a = &p->actions[w->actions[i]];
        if (a->kind == LS_SEND && a->peer == w->worker) on_first_use(a->buffer, LS_USE_WRITE, w);
        if (a->kind != LS_FREE && concerns(w, a)) ls_action_uses(p, a, w->worker, on_first_use, w);
    }
    w->nwords = (w->n + WORD - 1) / WORD;
}

static void follow(walk *w) {
    const ls_plan *p = w->p;
    list_received(w);
    for (int i = 0; i < w->nactions; i++) {
        const ls_action *a = &p->actions[w->actions[i]];
        if (!concerns(w, a)) continue;
        if (a->kind == LS_FREE)
            end_life(w, a->buffer);
        else
            ls_action_uses(p, a, w->worker, on_use, w);
    }
}

void ls_plan_arena(const ls_plan *p, int worker, bool there, ls_arena_plan *a_p) {
    walk w = {.p = p, .worker = worker};
    list_buffers(&w, there);
    size_t n = (size_t)w.n + 1;
    w.nbytes = LS_NEW_ARRAY(size_t, n);
    w.live = LS_NEW_ARRAY(uint64_t, (size_t)w.nwords + 1);
    w.clash = LS_NEW_ARRAY(uint64_t, n * (size_t)w.nwords);
    w.known = LS_NEW_ARRAY(bool, n);
    w.received = LS_NEW_ARRAY(bool, n);
    w.order = LS_NEW_ARRAY(int, n);
    w.placed = LS_NEW_ARRAY(int, n);
    for (int i = 0; i < w.n; i++) w.nbytes[i] = ls_plan_buffer_nbytes(p, w.buffers[i], worker);
    follow(&w);
    ls_arena_plan arena = {.peak = w.peak};
    arena.offsets = LS_NEW_ARRAY(size_t, (size_t)w.nall);
    place_all(&w, &arena);
    free(w.actions);
    free(w.numbers);
    free(w.buffers);
    free(w.nbytes);
    free(w.live);
    free(w.clash);
    free(w.known);
    free(w.received);
    free(w.order);
    free(w.placed);
    *a_p = arena;
}

void ls_arena_plan_free(ls_arena_plan *a) {
    free(a->offsets);
    *a = (ls_arena_plan){0};
}
