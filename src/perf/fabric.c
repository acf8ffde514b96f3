/* fabric.c - see fabric.h. */
#include "perf/fabric.h"

#include <math.h>

#include "coll/choose.h"

static ls_hosts hosts_of(const ls_fabric *f) {
    return (ls_hosts){.nworkers = f->nworkers,
                      .host_workers = f->host_workers,
                      .inside = f->link,
                      .card_latency_s = f->latency_s,
                      .card_byte_s = f->byte_s};
}

static const ls_algorithm *choose(const ls_fabric *f, const ls_call *c, const ls_hosts *hosts) {
    const ls_algorithm *forced = f->algorithm ? ls_algorithm_named(f->algorithm) : NULL;
    if (forced && ls_algorithm_supports(forced, c)) return forced;
    return ls_choose_among(ls_algorithms, c, hosts);
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

/* A thread handles messages, copies their bytes and adds; the rest of the time is on the wire. A
 * worker that has several partial sums sends them all. */
ls_fabric_price ls_fabric_price_of(const ls_fabric *f, const ls_fabric_call *x) {
    ls_call c = call_of(f, x);
    ls_hosts hosts = hosts_of(f);
    const ls_algorithm *a = choose(f, &c, &hosts);
    ls_cost cost = ls_algorithm_cost(a, &c, f->nworkers);
    double more = x->V ? (double)x->nleaves / f->nworkers : 1;
    double total = more * a->hosts_seconds(a, &c, &hosts);
    double cpu = more * ls_cost_work_seconds(&cost, &f->link);
    if (f->host_workers > f->cores) cpu *= (double)f->host_workers / f->cores;
    return (ls_fabric_price){cpu, fmax(0, total - cpu), a->name};
}
