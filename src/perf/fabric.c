/* fabric.c - see fabric.h. */
#include "perf/fabric.h"

#include <math.h>

#include "coll/choose.h"
#include "tensor/dtype.h"

static int nhosts(const ls_fabric *f) { return f->nworkers / f->host_workers; }

/* How many times the bytes that a worker sends go through its host's card, at the same time: of
 * trees and rings, whose neighbours are mostly on the same host, those of one worker. */
static double card_load(const ls_fabric *f, const ls_algorithm *a) {
    double n = f->nworkers, host = f->host_workers;
    bool near = a == &ls_ring || a == &ls_binomial || a == &ls_double_tree;
    return near ? 1 : host * (n - host) / (n - 1);
}

static ls_link link_of(const ls_fabric *f, const ls_algorithm *a) {
    ls_link l = f->link;
    if (nhosts(f) == 1) return l;
    l.latency_s += f->latency_s;
    l.byte_s = fmax(l.byte_s, f->byte_s);
    l.busy_byte_s = fmax(l.busy_byte_s, f->byte_s * card_load(f, a));
    return l;
}

/* Inside each host, then between hosts, then inside again; the host's workers each have a part of
 * what goes between. As in hierarchical.c. */
static double hierarchical_s(const ls_fabric *f, const ls_call *c) {
    ls_link near = f->link, far = link_of(f, &ls_ring);
    double h = f->host_workers, H = nhosts(f), m = (double)(c->count * ls_dtype_size(c->dtype));
    double inside = 2 * (h - 1) / h * m, between = 2 * (H - 1) / H * m;
    double added = ((h - 1) / h + (H - 1) / H / h) * m;
    return (h > 1 ? 2 * near.latency_s : 0) + inside * fmax(near.byte_s, near.busy_byte_s) +
           2 * far.latency_s + between * far.byte_s + added * near.reduce_s +
           (2 * (h - 1) + 2 * (H - 1)) * near.busy_message_s;
}

static double seconds_of(const ls_fabric *f, const ls_algorithm *a, const ls_call *c) {
    ls_link l = link_of(f, a);
    if (a == &ls_hierarchical) return hierarchical_s(f, c);
    return ls_choose_seconds(a, c, f->nworkers, &l);
}

/* As ls_choose(), where each algorithm loads the card in its own way. */
static const ls_algorithm *choose(const ls_fabric *f, const ls_call *c) {
    const ls_algorithm *best = &ls_direct;
    const ls_algorithm *forced = f->algorithm ? ls_algorithm_named(f->algorithm) : NULL;
    double least = INFINITY;
    if (forced && ls_algorithm_does(forced, c)) return forced;
    for (int i = 0; ls_algorithms[i]; i++) {
        const ls_algorithm *a = ls_algorithms[i];
        if (a == &ls_hierarchical || !ls_choose_allows(a, c, f->nworkers)) continue;
        double seconds = seconds_of(f, a, c);
        if (seconds < least) {
            least = seconds;
            best = a;
        }
    }
    return best;
}

static ls_call call_of(const ls_fabric *f, const ls_fabric_call *x) {
    static const ls_collective whats[] = {[LS_FABRIC_SUM_TO_ALL] = LS_CALL_ALL_REDUCE,
                                          [LS_FABRIC_SUM] = LS_CALL_REDUCE_SCATTER,
                                          [LS_FABRIC_GATHER] = LS_CALL_ALL_GATHER};
    size_t n = (size_t)f->nworkers;
    ls_call c = {.what = whats[x->what], .dtype = x->dtype, .op = LS_SUM, .V = x->V};
    c.count = x->what == LS_FABRIC_SUM_TO_ALL ? x->count : (x->count + n - 1) / n;
    return c;
}

bool ls_fabric_knows(const char *algorithm) { return ls_algorithm_named(algorithm) != NULL; }

/* A thread is busy with messages, with their bytes and with adding; the rest is on the wire.
 * Whoever has several partial sums sends them all. */
ls_fabric_price ls_fabric_price_of(const ls_fabric *f, const ls_fabric_call *x) {
    ls_call c = call_of(f, x);
    const ls_algorithm *a = choose(f, &c);
    ls_cost cost = ls_choose_cost(a, &c, f->nworkers);
    double more = x->V ? (double)x->nleaves / f->nworkers : 1;
    double total = more * seconds_of(f, a, &c),
           cpu = more * ls_choose_work_seconds(&cost, &f->link);
    if (f->host_workers > f->cores) cpu *= (double)f->host_workers / f->cores;
    return (ls_fabric_price){cpu, fmax(0, total - cpu), a->name};
}
