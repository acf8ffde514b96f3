/* local.c - see local.h.
 *
 * A barrier: each worker posts how many barriers it has come to, and waits until all others have
 * posted as many. Collectives through staging memory take chunks: all write their own stage,
 * barrier, all read, barrier, so that the stage may be written again.
 */
#include "coll/local.h"

#include <string.h>

#include "net/spawn.h"

size_t ls_local_shared_cost(int size) { return ls_region_cost((size_t)size * LS_LOCAL_STAGE); }

void ls_local_share(ls_region *r, int size, ls_local_shared *s_p) {
    s_p->stage = ls_region_take(r, (size_t)size * LS_LOCAL_STAGE);
}

void ls_local_join(ls_local *g, ls_region *region, const ls_local_shared *shared,
                   const ls_kernels *k, int rank, int size, int busy_threads, double timeout_s) {
    *g = (ls_local){.region = region, .shared = shared, .k = k, .rank = rank, .size = size};
    g->waiter = (ls_waiter){.aborted = &region->header->aborted,
                            .spins = ls_waiter_spins(busy_threads, ls_cores()),
                            .timeout_ns = (int64_t)(timeout_s * 1e9)};
}

static ls_status wait_failed(const ls_local *g, int other, ls_status s, ls_error *e) {
    const ls_worker_slot *slot = &g->region->header->workers[other];
    if (s == LS_EABORT) return ls_fail(e, s, "worker %d: another worker failed", g->rank);
    return ls_fail(e, s,
                   "worker %d waited %.1f s for worker %d (pid %d), which is in action %d of step "
                   "%lld; if it is only slow, raise parallel.timeout_s",
                   g->rank, (double)g->waiter.timeout_ns / 1e9, other, atomic_load(&slot->pid),
                   atomic_load(&slot->action), atomic_load(&slot->step));
}

ls_status ls_local_barrier(ls_local *g, ls_error *e) {
    if (g->size == 1) return LS_OK;
    ls_worker_slot *slots = g->region->header->workers;
    ls_signal_post(&slots[g->rank].arrived, ++g->arrivals);
    for (int i = 1; i < g->size; i++) {
        int other = (g->rank + i) % g->size;
        ls_status s = ls_signal_wait(&slots[other].arrived, g->arrivals, &g->waiter);
        if (s != LS_OK) return wait_failed(g, other, s, e);
    }
    return LS_OK;
}

static unsigned char *stage_of(const ls_local *g, int rank) {
    return g->shared->stage + (size_t)rank * LS_LOCAL_STAGE;
}

static size_t chunk_of(size_t left, size_t most) { return left < most ? left : most; }

ls_status ls_local_broadcast(ls_local *g, void *buf, size_t nbytes, int root, ls_error *e) {
    if (root < 0 || root >= g->size)
        return ls_fail(e, LS_EINVAL, "broadcast: root %d is not in 0..%d", root, g->size - 1);
    if (g->size == 1) return LS_OK;
    unsigned char *p = buf;
    while (nbytes) {
        size_t n = chunk_of(nbytes, LS_LOCAL_STAGE);
        if (g->rank == root) memcpy(stage_of(g, root), p, n);
        LS_TRY(ls_local_barrier(g, e));
        if (g->rank != root) memcpy(p, stage_of(g, root), n);
        LS_TRY(ls_local_barrier(g, e));
        p += n;
        nbytes -= n;
    }
    return LS_OK;
}

ls_status ls_local_all_gather(ls_local *g, const void *in, size_t nbytes, void *out, ls_error *e) {
    unsigned char *to = out;
    if (g->size == 1) {
        if (nbytes) memmove(to, in, nbytes);
        return LS_OK;
    }
    for (size_t at = 0; at < nbytes; at += LS_LOCAL_STAGE) {
        size_t n = chunk_of(nbytes - at, LS_LOCAL_STAGE);
        memcpy(stage_of(g, g->rank), (const unsigned char *)in + at, n);
        LS_TRY(ls_local_barrier(g, e));
        for (int i = 0; i < g->size; i++) memcpy(to + (size_t)i * nbytes + at, stage_of(g, i), n);
        LS_TRY(ls_local_barrier(g, e));
    }
    return LS_OK;
}

/* One chunk of n floats: the sum of share r is left in worker r's stage, in its place. */
static ls_status all_reduce_chunk(ls_local *g, const float *in, float *out, size_t n,
                                  const ls_local_reduce *r, ls_error *e) {
    float *own = (float *)(void *)stage_of(g, g->rank);
    memcpy(own, in, n * sizeof *own);
    size_t share = (n + (size_t)g->size - 1) / (size_t)g->size;
    size_t first = share * (size_t)g->rank < n ? share * (size_t)g->rank : n;
    LS_TRY(ls_local_reduce_scatter(g, r, first, chunk_of(n - first, share), own + first, e));
    LS_TRY(ls_local_barrier(g, e));
    for (int i = 0; i < g->size; i++) {
        size_t a = share * (size_t)i < n ? share * (size_t)i : n;
        const float *sum = (const float *)(void *)stage_of(g, i);
        memcpy(out + a, sum + a, chunk_of(n - a, share) * sizeof *out);
    }
    return ls_local_barrier(g, e);
}

ls_status ls_local_all_reduce(ls_local *g, const float *in, float *out, size_t count, ls_error *e) {
    if (g->size == 1) {
        if (count && in != out) memmove(out, in, count * sizeof *out);
        return LS_OK;
    }
    if (g->size > LS_LOCAL_MAX)
        return ls_fail(e, LS_EINVAL, "all-reduce: %d workers; at most %d here", g->size,
                       LS_LOCAL_MAX);
    ls_node nodes[LS_LOCAL_MAX];
    const void *data[LS_LOCAL_MAX];
    for (int i = 0; i < g->size; i++) {
        nodes[i] = (ls_node){i, i + 1};
        data[i] = stage_of(g, i);
    }
    ls_local_reduce r = {
        .tree = true,
        .sum = {.dtype = LS_F32, .V = g->size, .nleaves = g->size, .nodes = nodes, .data = data}};
    const size_t most = LS_LOCAL_STAGE / sizeof(float);
    for (size_t at = 0; at < count; at += most)
        LS_TRY(all_reduce_chunk(g, in + at, out + at, chunk_of(count - at, most), &r, e));
    return LS_OK;
}

ls_status ls_local_reduce_scatter(ls_local *g, const ls_local_reduce *r, size_t first, size_t count,
                                  float *out, ls_error *e) {
    LS_TRY(ls_local_barrier(g, e));
    if (r->tree)
        ls_tree_sum_run(&r->sum, g->k, first, count, out);
    else
        ls_chain_sum_run(&r->sum, g->k, first, count, out);
    return LS_OK;
}
