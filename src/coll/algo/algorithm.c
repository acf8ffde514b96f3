/* algorithm.c - see algorithm.h. */
#include "coll/algo/algorithm.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/dtype.h"

const ls_algorithm *const ls_algorithms[] = {
    &ls_direct,   &ls_exchange,    &ls_ring,         &ls_halving, &ls_doubling,
    &ls_binomial, &ls_double_tree, &ls_hierarchical, NULL,
};

static const char *const names[LS_NCALLS] = {
    [LS_CALL_ALL_REDUCE] = "all_reduce",
    [LS_CALL_REDUCE_SCATTER] = "reduce_scatter",
    [LS_CALL_ALL_GATHER] = "all_gather",
    [LS_CALL_BROADCAST] = "broadcast",
    [LS_CALL_REDUCE] = "reduce",
    [LS_CALL_GATHER] = "gather",
    [LS_CALL_SCATTER] = "scatter",
    [LS_CALL_ALL_TO_ALL] = "all_to_all",
    [LS_CALL_ALL_TO_ALL_V] = "all_to_all_v",
    [LS_CALL_GATHER_V] = "gather_v",
    [LS_CALL_SCATTER_V] = "scatter_v",
    [LS_CALL_SCAN] = "scan",
    [LS_CALL_EXSCAN] = "exscan",
    [LS_CALL_BARRIER] = "barrier",
};

const ls_algorithm *ls_algorithm_named(const char *name) {
    for (int i = 0; ls_algorithms[i]; i++)
        if (strcmp(ls_algorithms[i]->name, name) == 0) return ls_algorithms[i];
    return NULL;
}

bool ls_algorithm_supports(const ls_algorithm *a, const ls_call *c) {
    return ls_algorithm_has(a, c->what) && (c->V == 0 || a->virtual_workers);
}

const char *ls_collective_name(ls_collective what) { return names[what]; }

bool ls_collective_from_name(const char *name, ls_collective *what_p) {
    for (int i = 0; i < LS_NCALLS; i++)
        if (strcmp(names[i], name) == 0) {
            *what_p = (ls_collective)i;
            return true;
        }
    return false;
}

bool ls_collective_reduces(ls_collective what) {
    return what == LS_CALL_ALL_REDUCE || what == LS_CALL_REDUCE_SCATTER || what == LS_CALL_REDUCE ||
           ls_collective_is_prefix(what);
}

bool ls_collective_is_pairwise(ls_collective what) {
    return what == LS_CALL_ALL_TO_ALL_V || what == LS_CALL_GATHER_V || what == LS_CALL_SCATTER_V;
}

/* Do sums of halves travel as f32? Other algorithms sum where all inputs meet, and widen there. */
static bool sends_wide(const ls_algorithm *a, const ls_call *c) {
    return a->sends_sums && ls_dtype_is_half(c->dtype) && ls_collective_reduces(c->what);
}

/* Elements of the call's IN and OUT at this worker. */
static size_t in_count(const ls_call *c, int rank, int size) {
    if (c->what != LS_CALL_REDUCE_SCATTER) return c->count;
    (void)rank;
    size_t n = 0;
    for (int i = 0; i < size; i++) n += c->counts ? c->counts[i] : c->count;
    return n;
}

static size_t out_count(const ls_call *c, int rank) {
    if (c->what == LS_CALL_EXSCAN && rank == 0) return 0;
    if (c->what == LS_CALL_REDUCE) return rank == c->root ? c->count : 0;
    return c->what == LS_CALL_REDUCE_SCATTER && c->counts ? c->counts[rank] : c->count;
}

/* Copies places of a program of f32 over WIDE: IN begins at `in`, OUT at `out`, TEMP at `temp`. */
static ls_place moved(ls_place p, size_t in, size_t out, size_t temp) {
    size_t base = p.buffer == LS_IN ? in : p.buffer == LS_OUT ? out : temp;
    return (ls_place){LS_WIDE, base + p.first};
}

/* An algorithm that sends sums sends them in f32 where elements are halves: its program for f32,
 * between widening `in` and narrowing `out`. */
static void make_widened(const ls_algorithm *a, const ls_call *c, ls_coll_program *s) {
    ls_call wide = *c;
    wide.dtype = LS_F32;
    ls_coll_program inner;
    ls_coll_program_begin(&inner, LS_F32, c->op, s->rank, s->size);
    a->make(&wide, &inner);
    size_t nin = in_count(c, s->rank, s->size), nout = out_count(c, s->rank);
    size_t in = ls_coll_program_wide(s, nin).first, out = ls_coll_program_wide(s, nout).first;
    size_t temp = ls_coll_program_wide(s, inner.ntemp).first;
    ls_coll_program_copy(s, (ls_place){LS_IN, 0}, (ls_place){LS_WIDE, in}, nin);
    for (int i = 0; i < inner.nsteps; i++) {
        const ls_step *t = &inner.steps[i];
        ls_place x = moved(t->a, in, out, temp), y = moved(t->b, in, out, temp);
        ls_place z = moved(t->out, in, out, temp);
        switch (t->kind) {
        case LS_STEP_SEND: ls_coll_program_send(s, t->peer, x, t->count); break;
        case LS_STEP_RECV: ls_coll_program_recv(s, t->peer, z, t->count); break;
        case LS_STEP_COMBINE: ls_coll_program_combine(s, x, y, z, t->count); break;
        case LS_STEP_COPY: ls_coll_program_copy(s, x, z, t->count); break;
        case LS_STEP_AVERAGE: ls_coll_program_average(s, z, t->count, t->by); break;
        }
    }
    ls_coll_program_copy(s, (ls_place){LS_WIDE, out}, (ls_place){LS_OUT, 0}, nout);
    ls_coll_program_free(&inner);
}

void ls_algorithm_make(const ls_algorithm *a, const ls_call *c, int rank, int size,
                       ls_in_place place, ls_coll_program *s_p) {
    ls_coll_program_begin(s_p, c->dtype, c->op, rank, size);
    s_p->place = place;
    if (sends_wide(a, c))
        make_widened(a, c, s_p);
    else
        a->make(c, s_p);
    ls_coll_program_finish(s_p);
}

/* ---- prices ---- */

ls_cost ls_algorithm_cost(const ls_algorithm *a, const ls_call *c, int n) {
    double size = (double)ls_dtype_size(c->dtype), count = (double)c->count;
    if (n == 1) return (ls_cost){0};
    for (int i = 0; c->counts && i < n; i++) count += (double)c->counts[i] / n;
    for (int i = 0; c->sends && i < n; i++) count += (double)c->sends[i] / n;
    for (int i = 0; !c->sends && c->receives && i < n; i++) count += (double)c->receives[i] / n;
    if (!c->sends && !c->receives) count += (double)c->own;
    ls_cost x = a->cost(c, count * size, n);
    if (!sends_wide(a, c)) return x;
    x.chain_sent *= 2;
    x.sent *= 2;
    return x;
}

static double hosts_seconds(const ls_algorithm *a, const ls_call *c, const ls_hosts *h,
                            double load) {
    ls_cost x = ls_algorithm_cost(a, c, h->nworkers);
    ls_link l = ls_hosts_link(h, load);
    return ls_cost_seconds(&x, &l);
}

double ls_hosts_seconds_near(const ls_algorithm *a, const ls_call *c, const ls_hosts *h) {
    return hosts_seconds(a, c, h, 1);
}

double ls_hosts_seconds_far(const ls_algorithm *a, const ls_call *c, const ls_hosts *h) {
    double n = h->nworkers, host = h->host_workers;
    return hosts_seconds(a, c, h, host * (n - host) / (n - 1));
}

/* Sixty-four pieces of what goes to one worker, none shorter than 512 KiB: over loopback TCP
 * shorter ones cost more system calls and wake-ups than they hide. */
size_t ls_call_piece(const ls_call *c, int n) {
    size_t size = ls_dtype_size(c->dtype), least = 524288 / size, count = c->count;
    for (int i = 0; c->counts && i < n; i++)
        if (c->counts[i] > count) count = c->counts[i];
    bool whole =
        c->what == LS_CALL_ALL_REDUCE || c->what == LS_CALL_REDUCE || c->what == LS_CALL_BROADCAST;
    size_t part = (whole ? count / (size_t)n : count) / 64 + 1;
    return part > least ? part : least;
}

/* ---- for algorithms ---- */

size_t *ls_call_offsets(const ls_call *c, int size) {
    size_t *offset = LS_NEW_ARRAY(size_t, (size_t)size + 1);
    for (int i = 0; i < size; i++)
        offset[i + 1] = offset[i] + (c->counts ? c->counts[i] : c->count);
    return offset;
}

size_t *ls_even_offsets(size_t count, int n) {
    size_t *offset = LS_NEW_ARRAY(size_t, (size_t)n + 1);
    for (int i = 0; i <= n; i++) offset[i] = ls_block(count, n, i);
    return offset;
}

void ls_finish_average(const ls_call *c, ls_coll_program *s, ls_place out, size_t count) {
    if (c->op == LS_AVG && !c->V) ls_coll_program_average(s, out, count, s->size);
}

bool ls_tree_order_always(ls_collective what, int n) {
    (void)what, (void)n;
    return true;
}

bool ls_tree_order_up_to_two(ls_collective what, int n) {
    (void)what;
    return n <= 2;
}
