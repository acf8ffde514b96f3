/* hierarchical.c - first inside each host, then between hosts.
 *
 * all-reduce: the vector is cut into as many parts as the smallest host has workers. Inside each
 * host, part k is reduced at the k-th worker (direct reduce-scatter); then the k-th workers of all
 * hosts all-reduce it (direct); then each host gathers the parts. So each byte crosses between
 * hosts as often as with one worker a host, and all of a host's workers share in carrying it.
 *
 * broadcast: from the root to one worker of each host, then inside each host (binomial trees).
 *
 *     all-reduce   between hosts, h hosts of m workers: 2 (h-1)/h of 1/m of the bytes a worker;
 *                  inside: 2 (m-1)/m of the bytes
 *
 * Order: a tree over the workers of each host, then a tree over hosts. It depends on n.
 *
 * Source: as in Horovod's and NCCL's documentation of hierarchical all-reduce.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "coll/algo/algorithm.h"
#include "tensor/dtype.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

typedef struct layout {
    ls_team local,
        across; /* across: the workers with this worker's place in their hosts; size 0: none */
    int *local_ranks, *across_ranks;
    int parts;
} layout;

static int host_of(const ls_call *c, int rank) { return c->hosts ? c->hosts[rank] : 0; }

/* The place of `rank` among the workers of its host. */
static int place_of(const ls_call *c, int rank) {
    int place = 0;
    for (int i = 0; i < rank; i++) place += host_of(c, i) == host_of(c, rank);
    return place;
}

static int host_size(const ls_call *c, int n, int rank) {
    int size = 0;
    for (int i = 0; i < n; i++) size += host_of(c, i) == host_of(c, rank);
    return size;
}

static void layout_make(layout *l, const ls_call *c, int rank, int n) {
    *l = (layout){.parts = n, .local = {.size = 0}, .across = {.size = 0}};
    l->local_ranks = LS_NEW_ARRAY(int, (size_t)n);
    l->across_ranks = LS_NEW_ARRAY(int, (size_t)n);
    int place = place_of(c, rank);
    for (int i = 0; i < n; i++) {
        int size = host_size(c, n, i);
        if (size < l->parts) l->parts = size;
        if (host_of(c, i) == host_of(c, rank)) {
            if (i == rank) l->local.me = l->local.size;
            l->local_ranks[l->local.size++] = i;
        }
        if (place_of(c, i) == place) {
            if (i == rank) l->across.me = l->across.size;
            l->across_ranks[l->across.size++] = i;
        }
    }
    if (place >= l->parts) l->across.size = 0;
    l->local.ranks = l->local_ranks;
    l->across.ranks = l->across_ranks;
}

static void layout_free(layout *l) {
    free(l->local_ranks);
    free(l->across_ranks);
}

static void all_reduce(const ls_call *c, ls_coll_program *s, const layout *l) {
    ls_call sum = *c; /* the division comes last */
    if (sum.op == LS_AVG) sum.op = LS_SUM;
    size_t *part = LS_NEW_ARRAY(size_t, (size_t)l->local.size + 1);
    for (int i = 0; i <= l->local.size; i++)
        part[i] = i < l->parts ? ls_block(c->count, l->parts, i) : c->count;
    ls_place mine = ls_at(OUT, part[l->local.me]);
    ls_direct_reduce_scatter(&sum, s, &l->local, IN, part, mine);
    if (l->across.size) {
        size_t count = part[l->local.me + 1] - part[l->local.me];
        size_t *offset = ls_even_offsets(count, l->across.size);
        ls_direct_reduce_scatter(c, s, &l->across, mine, offset, ls_at(mine, offset[l->across.me]));
        ls_direct_all_gather(c, s, &l->across, mine, offset);
        free(offset);
    }
    ls_direct_all_gather(c, s, &l->local, OUT, part);
    free(part);
}

/* One worker of each host takes part between hosts: the root, and the first worker of each other
 * host. */
static void broadcast(const ls_call *c, ls_coll_program *s, const layout *l, int n) {
    int *carriers = LS_NEW_ARRAY(int, (size_t)n);
    ls_team heads = {.me = -1, .ranks = carriers};
    int root_head = 0, local_root = 0;
    for (int i = 0; i < n; i++) {
        bool root_host = host_of(c, i) == host_of(c, c->root);
        if (root_host ? i != c->root : place_of(c, i) != 0) continue;
        if (i == c->root) root_head = heads.size;
        if (i == s->rank) heads.me = heads.size;
        carriers[heads.size++] = i;
    }
    for (int i = 0; i < l->local.size; i++)
        if (l->local_ranks[i] == c->root) local_root = i;
    if (heads.me >= 0) ls_binomial_broadcast(c, s, &heads, OUT, c->count, root_head);
    ls_binomial_broadcast(c, s, &l->local, OUT, c->count, local_root);
    free(carriers);
}

static void make(const ls_call *c, ls_coll_program *s) {
    layout l;
    layout_make(&l, c, s->rank, s->size);
    if (c->what == LS_CALL_ALL_REDUCE)
        all_reduce(c, s, &l);
    else
        broadcast(c, s, &l, s->size);
    layout_free(&l);
}

static bool never(ls_collective what, int n) {
    (void)what;
    return n == 1;
}

/* ---- prices ---- */

static ls_cost cost(const ls_call *c, double nbytes, int n) {
    double others = n - 1.0, part = others / n;
    if (c->what == LS_CALL_BROADCAST) return ls_cost_tree(nbytes, n, 1, 0);
    return ls_cost_even((ls_even_cost){
        .steps = 6, .messages = 2 * others, .sent = 2 * part * nbytes, .added = part * nbytes});
}

/* For the all-reduce: each worker of a host carries a part of what goes between hosts, so that the
 * card carries each byte once. */
static double hosts_seconds(const ls_algorithm *a, const ls_call *c, const ls_hosts *hosts) {
    if (c->what != LS_CALL_ALL_REDUCE) return ls_hosts_seconds_near(a, c, hosts);
    ls_link near = hosts->inside, far = ls_hosts_link(hosts, 1);
    double h = hosts->host_workers, H = hosts->nworkers / hosts->host_workers;
    double nbytes = (double)(c->count * ls_dtype_size(c->dtype));
    double inside = 2 * (h - 1) / h * nbytes, between = 2 * (H - 1) / H * nbytes;
    double added = ((h - 1) / h + (H - 1) / H / h) * nbytes;
    return (h > 1 ? 2 * near.latency_s : 0) + inside * fmax(near.byte_s, near.busy_byte_s) +
           2 * far.latency_s + between * far.byte_s + added * near.reduce_s +
           (2 * (h - 1) + 2 * (H - 1)) * near.busy_message_s;
}

const ls_algorithm ls_hierarchical = {.name = "hierarchical",
                                      .collectives =
                                          1u << LS_CALL_ALL_REDUCE | 1u << LS_CALL_BROADCAST,
                                      .sends_sums = true,
                                      .tree_order = never,
                                      .make = make,
                                      .cost = cost,
                                      .hosts_seconds = hosts_seconds};
