/* program.c - see program.h. */
#include "coll/algo/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ls_coll_program_begin(ls_coll_program *s, ls_dtype dtype, ls_op op, int rank, int size) {
    *s = (ls_coll_program){.dtype = dtype, .op = op, .rank = rank, .size = size};
    s->sent = LS_NEW_ARRAY(uint32_t, (size_t)size);
    s->received = LS_NEW_ARRAY(uint32_t, (size_t)size);
}

void ls_coll_program_free(ls_coll_program *s) {
    free(s->steps);
    free(s->edges);
    free(s->sent);
    free(s->received);
    *s = (ls_coll_program){0};
}

ls_place ls_coll_program_temp(ls_coll_program *s, size_t count) {
    ls_place p = {LS_TEMP, s->ntemp};
    s->ntemp += count;
    return p;
}

ls_place ls_coll_program_wide(ls_coll_program *s, size_t count) {
    ls_place p = {LS_WIDE, s->nwide};
    s->nwide += count;
    return p;
}

ls_dtype ls_coll_program_dtype(const ls_coll_program *s, ls_coll_program_buffer b) {
    return b == LS_WIDE ? LS_F32 : s->dtype;
}

/* Where `in` and `out` share memory, places are given in the outer one, so that overlaps show. */
static ls_place outer(const ls_coll_program *s, ls_place p) {
    if (s->place.overlap == LS_OUT_IN_IN && p.buffer == LS_OUT)
        return (ls_place){LS_IN, p.first + s->place.first};
    if (s->place.overlap == LS_IN_IN_OUT && p.buffer == LS_IN)
        return (ls_place){LS_OUT, p.first + s->place.first};
    return p;
}

static bool same(ls_place a, ls_place b) { return a.buffer == b.buffer && a.first == b.first; }

static void add(ls_coll_program *s, ls_step step) {
    if (step.count == 0 && !step.counted) return;
    if (s->nsteps == s->step_cap) {
        s->step_cap = s->step_cap ? 2 * s->step_cap : 64;
        s->steps = ls_realloc(s->steps, (size_t)s->step_cap * sizeof *s->steps);
    }
    step.a = outer(s, step.a);
    step.b = outer(s, step.b);
    step.out = outer(s, step.out);
    s->steps[s->nsteps++] = step;
}

void ls_coll_program_send(ls_coll_program *s, int peer, ls_place a, size_t count) {
    if (count == 0) return;
    add(s, (ls_step){.kind = LS_STEP_SEND,
                     .peer = peer,
                     .message = s->sent[peer]++,
                     .a = a,
                     .count = count});
}

void ls_coll_program_recv(ls_coll_program *s, int peer, ls_place out, size_t count) {
    if (count == 0) return;
    add(s, (ls_step){.kind = LS_STEP_RECV,
                     .peer = peer,
                     .message = s->received[peer]++,
                     .out = out,
                     .count = count});
}

void ls_coll_program_send_counted(ls_coll_program *s, int peer, ls_place a, size_t count,
                                  size_t back) {
    add(s, (ls_step){.kind = LS_STEP_SEND,
                     .peer = peer,
                     .message = s->sent[peer]++,
                     .a = a,
                     .count = count,
                     .counted = true,
                     .back = back});
}

void ls_coll_program_recv_counted(ls_coll_program *s, int peer, ls_place out, size_t count,
                                  size_t back) {
    add(s, (ls_step){.kind = LS_STEP_RECV,
                     .peer = peer,
                     .message = s->received[peer]++,
                     .out = out,
                     .count = count,
                     .counted = true,
                     .back = back});
}

void ls_coll_program_combine(ls_coll_program *s, ls_place a, ls_place b, ls_place out,
                             size_t count) {
    add(s, (ls_step){.kind = LS_STEP_COMBINE, .a = a, .b = b, .out = out, .count = count});
}

void ls_coll_program_copy(ls_coll_program *s, ls_place a, ls_place out, size_t count) {
    if (same(outer(s, a), outer(s, out))) return;
    add(s, (ls_step){.kind = LS_STEP_COPY, .a = a, .out = out, .count = count});
}

void ls_coll_program_average(ls_coll_program *s, ls_place out, size_t count, int by) {
    add(s, (ls_step){.kind = LS_STEP_AVERAGE, .a = out, .out = out, .by = by, .count = count});
}

/* ---- waits ---- */

static bool meet(ls_place a, size_t na, ls_place b, size_t nb) {
    return a.buffer == b.buffer && a.first < b.first + nb && b.first < a.first + na;
}

static bool reads(const ls_step *s, ls_place p, size_t n) {
    switch (s->kind) {
    case LS_STEP_RECV: return false;
    case LS_STEP_COMBINE: return meet(s->a, s->count, p, n) || meet(s->b, s->count, p, n);
    default: return meet(s->a, s->count, p, n);
    }
}

static bool writes(const ls_step *s, ls_place p, size_t n) {
    return s->kind != LS_STEP_SEND && meet(s->out, s->count, p, n);
}

/* Must `later` wait for `earlier`? */
static bool conflict(const ls_step *earlier, const ls_step *later) {
    if (later->kind != LS_STEP_SEND &&
        (reads(earlier, later->out, later->count) || writes(earlier, later->out, later->count)))
        return true;
    if (later->kind == LS_STEP_RECV) return false;
    if (writes(earlier, later->a, later->count)) return true;
    return later->kind == LS_STEP_COMBINE && writes(earlier, later->b, later->count);
}

typedef struct edge {
    int from, to;
} edge;

typedef struct edge_list {
    edge *edges;
    size_t n, cap;
} edge_list;

static void add_edge(edge_list *l, int from, int to) {
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->edges = ls_realloc(l->edges, l->cap * sizeof *l->edges);
    }
    l->edges[l->n++] = (edge){from, to};
}

/* Edges that others imply are left out: `before[i]` is the set of all steps that come before i. */
static void find_edges(ls_coll_program *s, edge_list *l) {
    size_t words = ((size_t)s->nsteps + 63) / 64;
    uint64_t *before = LS_NEW_ARRAY(uint64_t, words * (size_t)s->nsteps);
    for (int i = 0; i < s->nsteps; i++) {
        uint64_t *mine = before + (size_t)i * words;
        for (int j = i - 1; j >= 0; j--) {
            if (mine[j / 64] >> (j % 64) & 1) continue;
            if (!conflict(&s->steps[j], &s->steps[i])) continue;
            const uint64_t *theirs = before + (size_t)j * words;
            for (size_t w = 0; w < words; w++) mine[w] |= theirs[w];
            mine[j / 64] |= (uint64_t)1 << (j % 64);
            s->steps[i].nwaits++;
            add_edge(l, j, i);
        }
    }
    free(before);
}

static int by_from(const void *a, const void *b) {
    const edge *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

void ls_coll_program_finish(ls_coll_program *s) {
    edge_list l = {0};
    find_edges(s, &l);
    if (l.n) qsort(l.edges, l.n, sizeof *l.edges, by_from);
    s->edges = LS_NEW_ARRAY(int, l.n + (size_t)s->nsteps + 1);
    size_t e = 0;
    int at = 0;
    for (int i = 0; i < s->nsteps; i++) {
        s->steps[i].unblocks = at;
        while (e < l.n && l.edges[e].from == i) s->edges[at++] = l.edges[e++].to;
        s->edges[at++] = -1;
    }
    free(l.edges);
}

ls_traffic ls_coll_program_traffic(const ls_coll_program *s) {
    ls_traffic t = {0};
    for (int i = 0; i < s->nsteps; i++) {
        const ls_step *step = &s->steps[i];
        if (step->kind != LS_STEP_SEND) continue;
        t.messages++;
        t.nbytes += step->count * ls_dtype_size(ls_coll_program_dtype(s, step->a.buffer));
    }
    return t;
}
