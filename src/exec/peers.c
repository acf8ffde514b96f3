/* peers.c - see peers.h. */
#include "exec/peers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "coll/algo/tree.h"
#include "exec/exec_state.h"
#include "model/row_device.h"

/* ---- memory ---- */

/* What a worker tells the others. */
typedef struct offer {
    char host[64];
    int status; /* an ls_status: it has no handles */
    ls_device_handle grads, params;
} offer;

static ls_status make_offer(const ls_on_device *on, offer *o, ls_error *e) {
    gethostname(o->host, sizeof o->host - 1);
    LS_TRY(ls_device_share(on->compute.device, on->grads, &o->grads, e));
    return ls_device_share(on->compute.device, on->params, &o->params, e);
}

static ls_status take_offer(ls_peers *p, const ls_on_device *on, const offer *all, int worker,
                            ls_error *e) {
    const offer *o = &all[worker];
    void *grads = on->grads, *params = on->params;
    if (o->status != LS_OK)
        return ls_fail(e, (ls_status)o->status, "worker %d can't share its device's memory",
                       worker);
    if (strcmp(o->host, all[p->own].host) != 0)
        return ls_fail(e, LS_EINVAL,
                       "parallel.device_link: peers is for workers of one host; worker %d is on "
                       "%s and worker %d on %s: use host",
                       p->own, all[p->own].host, worker, o->host);
    if (worker != p->own) {
        LS_TRY(ls_device_open_shared(on->compute.device, &o->grads, &grads, e));
        p->grads[worker] = grads;
        LS_TRY(ls_device_open_shared(on->compute.device, &o->params, &params, e));
    }
    p->grads[worker] = grads;
    p->params[worker] = params;
    return LS_OK;
}

/* Collective. */
static ls_status open_peers(ls_peers *p, const ls_on_device *on, ls_group *g, ls_error *e) {
    int n = ls_group_size(g);
    offer own = {.status = LS_OK}, *all = LS_NEW_ARRAY(offer, (size_t)n);
    ls_status made = make_offer(on, &own, e);
    *p = (ls_peers){.n = n, .own = ls_group_rank(g)};
    p->grads = LS_NEW_ARRAY(char *, (size_t)n);
    p->params = LS_NEW_ARRAY(char *, (size_t)n);
    own.status = made;
    ls_error other = {0};
    ls_status s = ls_all_gather(g, &own, all, sizeof own, LS_U8, made == LS_OK ? e : &other);
    for (int i = 0; s == LS_OK && made == LS_OK && i < n; i++) s = take_offer(p, on, all, i, e);
    free(all);
    return made == LS_OK ? s : made;
}

void ls_peers_close(ls_peers *p, const ls_on_device *on) {
    for (int i = 0; i < p->n; i++) {
        if (i == p->own) continue;
        ls_device_close_shared(on->compute.device, p->grads[i]);
        ls_device_close_shared(on->compute.device, p->params[i]);
    }
    free(p->grads);
    free(p->params);
    *p = (ls_peers){0};
}

/* ---- the call ---- */

/* This device has done what the others will read. */
ls_status ls_exec_start_peers(ls_exec *x, ls_group *g, ls_request **r_p, ls_error *e) {
    if (ls_group_size(g) > 1 && !x->peers.n) LS_TRY(open_peers(&x->peers, &x->on, g, e));
    if (ls_group_size(g) > 1) LS_TRY(ls_device_finish(x->on.compute.device, LS_DEVICE_COMPUTE, e));
    return ls_barrier_start(g, r_p, e);
}

typedef struct walk {
    const ls_exec *x;
    const ls_leaves *leaves;
    int bucket, leaf; /* the next leaf, from left to right */
    size_t at, n, room;
} walk;

static const float *leaf_at(const walk *w, int leaf) {
    const ls_share *sh = &w->x->c.plan->share;
    int worker = w->leaves->worker[leaf];
    int slot = ls_share_first_slot(sh, w->bucket, worker) + w->leaves->slot[leaf];
    const float *grads = (const float *)(const void *)w->x->peers.grads[worker];
    return grads + (size_t)slot * sh->floats + w->at;
}

/* The sum of node [lo, hi): a leaf, or queued to be computed into out. The left child's sum waits at
 * `depth` while the right child uses what is behind it. */
static const float *sum_node(walk *w, int lo, int hi, int depth, float *out) {
    const ls_node *leaf = &w->leaves->nodes[w->leaf];
    if (leaf->lo == lo && leaf->hi == hi) return leaf_at(w, w->leaf++);
    int middle = ls_tree_split(lo, hi);
    float *wait = (float *)(void *)w->x->on.sums + (size_t)depth * w->room;
    const float *left = sum_node(w, lo, middle, depth, wait);
    const float *right = sum_node(w, middle, hi, depth + 1, wait + w->room);
    ls_row_device_add(&w->x->on.compute, (int64_t)w->n, left, right, out);
    return out;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* The worker's shard of a bucket's sum, in the place of that of its own lowest sum. */
static void sum_shard(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    ls_tree_parts parts = sh->buckets[a->bucket].leaves;
    ls_range own = ls_share_shard(sh, a->bucket, x->c.worker);
    ls_leaves leaves;
    parts.V = a->comm.V;
    parts.first = sh->ranges;
    ls_leaves_make(&parts, x->peers.n, &leaves);
    walk w = {.x = x,
              .leaves = &leaves,
              .bucket = a->bucket,
              .room = smaller(own.end - own.first, LS_DEVICE_PIECE)};
    for (w.at = own.first; w.at < own.end; w.at += w.n) {
        w.n = smaller(own.end - w.at, LS_DEVICE_PIECE);
        w.leaf = 0;
        float *out = (float *)(void *)ls_exec_sum_there(x, ls_exec_sum_slot(x, a->bucket), w.at);
        const float *sum = sum_node(&w, 0, leaves.V, 0, out);
        if (sum != out)
            ls_device_copy(x->on.compute.device, LS_DEVICE_COMPUTE, out, sum, w.n * sizeof *out);
    }
    ls_leaves_free(&leaves);
}

/* The other workers' shards of a bucket's parameters. */
static void gather(const ls_exec *x, const ls_action *a) {
    const ls_share *sh = &x->c.plan->share;
    for (int i = 0; i < x->peers.n; i++) {
        ls_range r = ls_share_shard(sh, a->bucket, i);
        size_t at = r.first * sizeof(float), nbytes = (r.end - r.first) * sizeof(float);
        if (i != x->peers.own)
            ls_device_copy(x->on.compute.device, LS_DEVICE_COMPUTE, x->on.params + at,
                           x->peers.params[i] + at, nbytes);
    }
}

/* All have come to the barrier. */
void ls_exec_finish_peers(const ls_exec *x, const ls_action *a) {
    if (!x->peers.n) return; /* one worker: it is in place */
    if (a->kind == LS_ALL_GATHER)
        gather(x, a);
    else
        sum_shard(x, a);
}
