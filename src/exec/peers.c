/* peers.c - see peers.h. */
#include "exec/peers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/min.h"
#include "coll/algo/tree.h"
#include "exec/exec_state.h"
#include "model/mixed_device.h"
#include "model/row_device.h"
#include "tensor/dtype.h"

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
                       "%s and worker %d on %s",
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

/* Some machines do not let devices read each other. */
static ls_status advise(ls_status s, ls_error *e) {
    if (s == LS_OK) return LS_OK;
    const ls_error why = *e;
    return ls_fail(e, s, "%s; parallel.device_link: host does without", why.msg);
}

/* Collective. */
static ls_status open_memory(ls_peers *p, const ls_on_device *on, ls_group *g, ls_error *e) {
    size_t n = (size_t)p->n;
    offer own = {.status = LS_OK}, *all = LS_NEW_ARRAY(offer, n);
    ls_error other = {0};
    ls_status made = advise(make_offer(on, &own, e), e);
    p->grads = LS_NEW_ARRAY(char *, n);
    p->params = LS_NEW_ARRAY(char *, n);
    own.status = made;
    ls_status s = ls_all_gather(g, &own, all, sizeof own, LS_U8, made == LS_OK ? e : &other);
    for (int i = 0; s == LS_OK && made == LS_OK && i < p->n; i++)
        s = advise(take_offer(p, on, all, i, e), e);
    free(all);
    return made == LS_OK ? s : made;
}

/* Collective. Without an id the others fail, too, and say that it was worker 0's. */
static ls_status open_nccl(ls_peers *p, const ls_on_device *on, ls_group *g, ls_error *e) {
    struct {
        int status;
        ls_nccl_id id;
    } it = {.status = LS_OK};
    ls_status s = p->own == 0 ? ls_device_nccl_id(&it.id, e) : LS_OK;
    it.status = s;
    LS_TRY(ls_broadcast(g, &it, sizeof it, LS_U8, 0, s == LS_OK ? e : NULL));
    if (s != LS_OK) return s;
    if (it.status != LS_OK) return ls_fail(e, (ls_status)it.status, "worker 0 can't use NCCL");
    return ls_device_nccl_open(on->compute.device, &it.id, p->own, p->n, &p->nccl, e);
}

static ls_status open_peers(ls_exec *x, ls_group *g, ls_error *e) {
    x->peers = (ls_peers){.n = ls_group_size(g), .own = ls_group_rank(g)};
    return x->c.plan->share.receives ? open_nccl(&x->peers, &x->on, g, e)
                                     : open_memory(&x->peers, &x->on, g, e);
}

void ls_peers_close(ls_peers *p, const ls_on_device *on) {
    ls_device_nccl_close(p->nccl);
    if (p->grads) ls_on_device_await(on, NULL);
    for (int i = 0; p->grads && i < p->n; i++) {
        if (i == p->own) continue;
        ls_device_close_shared(on->compute.device, p->grads[i]);
        ls_device_close_shared(on->compute.device, p->params[i]);
    }
    free(p->grads);
    free(p->params);
    *p = (ls_peers){0};
}

/* ---- the call ---- */

/* This device has done what the others will read. Messages wait in the device's own order. */
ls_status ls_exec_start_peers(ls_exec *x, ls_group *g, ls_request **r_p, ls_error *e) {
    if (ls_group_size(g) > 1 && !x->peers.n) LS_TRY(open_peers(x, g, e));
    if (x->peers.grads) LS_TRY(ls_device_finish(x->on.compute.device, LS_DEVICE_COMPUTE, e));
    return ls_barrier_start(g, r_p, e);
}

typedef struct walk {
    const ls_exec *x;
    const ls_leaves *leaves;
    int bucket, leaf; /* the next leaf, from left to right */
    ls_range own;
    size_t at, n, room;
} walk;

/* A worker's sum of a bucket that is a leaf: this device's own, or where it reads it. */
static const float *leaf_at(const walk *w, int leaf, size_t at) {
    const ls_share *sh = &w->x->c.plan->share;
    const ls_peers *p = &w->x->peers;
    int worker = w->leaves->worker[leaf];
    if (p->nccl && worker != p->own)
        return (const float *)(const void *)w->x->on.incoming +
               (size_t)leaf * (w->own.end - w->own.first) + (at - w->own.first);
    int slot = ls_share_first_slot(sh, w->bucket, worker) + w->leaves->slot[leaf];
    const char *grads = p->nccl ? w->x->on.grads : p->grads[worker];
    return (const float *)(const void *)grads + (size_t)slot * sh->floats + at;
}

/* The sum of node [lo, hi): a leaf, or queued to be computed into out. The left child's sum waits
 * at `depth` while the right child uses what is behind it. */
static const float *sum_node(walk *w, int lo, int hi, int depth, float *out) {
    const ls_node *leaf = &w->leaves->nodes[w->leaf];
    if (leaf->lo == lo && leaf->hi == hi) return leaf_at(w, w->leaf++, w->at);
    int middle = ls_tree_split(lo, hi);
    float *wait = (float *)(void *)w->x->on.sums + (size_t)depth * w->room;
    ls_dtype reduce = w->x->c.plan->share.reduce;
    const float *left = sum_node(w, lo, middle, depth, wait);
    const float *right = sum_node(w, middle, hi, depth + 1, wait + w->room);
    ls_row_device_add(&w->x->on.compute, (int64_t)w->n, left, right, out);
    if (ls_dtype_is_half(reduce)) ls_device_round(&w->x->on.compute, reduce, w->n, out);
    return out;
}

/* The worker's shard of a bucket's sum, in the place of that of its own lowest sum. */
static void sum_shard(walk *w) {
    const ls_exec *x = w->x;
    int slot = ls_exec_sum_slot(x, w->bucket);
    w->room = ls_min_size(w->own.end - w->own.first, LS_DEVICE_PIECE);
    for (w->at = w->own.first; w->at < w->own.end; w->at += w->n) {
        w->n = ls_min_size(w->own.end - w->at, LS_DEVICE_PIECE);
        w->leaf = 0;
        float *out = (float *)(void *)ls_exec_sum_there(x, slot, w->at);
        const float *sum = sum_node(w, 0, w->leaves->V, 0, out);
        if (sum != out)
            ls_device_copy(x->on.compute.device, LS_DEVICE_COMPUTE, out, sum, w->n * sizeof *out);
    }
}

/* Each worker's shard of this one's sums goes to it, and this one's shard of the others' comes. */
static ls_status exchange_sums(const walk *w, ls_error *e) {
    const ls_share *sh = &w->x->c.plan->share;
    const ls_peers *p = &w->x->peers;
    size_t most = (size_t)w->leaves->n * (size_t)p->n;
    ls_device_message *list = LS_NEW_ARRAY(ls_device_message, most);
    int n = 0;
    for (int leaf = 0; leaf < w->leaves->n; leaf++) {
        int from = w->leaves->worker[leaf];
        for (int to = 0; to < p->n; to++) {
            ls_range r = ls_share_shard(sh, w->bucket, to);
            bool sends = from == p->own;
            if (to == from || r.first == r.end || (!sends && to != p->own)) continue;
            const float *at = leaf_at(w, leaf, r.first);
            list[n++] = (ls_device_message){.peer = sends ? to : from,
                                            .from = sends ? at : NULL,
                                            .to = sends ? NULL : (void *)(uintptr_t)at,
                                            .nbytes = (r.end - r.first) * sizeof(float)};
        }
    }
    ls_status s = ls_device_nccl_exchange(p->nccl, list, n, e);
    free(list);
    return s;
}

static ls_status reduce(const ls_exec *x, const ls_action *a, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    ls_tree_parts parts = sh->buckets[a->bucket].leaves;
    ls_leaves leaves;
    parts.V = a->comm.V;
    parts.first = sh->ranges;
    ls_leaves_make(&parts, x->peers.n, &leaves);
    walk w = {.x = x,
              .leaves = &leaves,
              .bucket = a->bucket,
              .own = ls_share_shard(sh, a->bucket, x->c.worker)};
    ls_status s = x->peers.nccl ? exchange_sums(&w, e) : LS_OK;
    if (s == LS_OK) sum_shard(&w);
    ls_leaves_free(&leaves);
    return s;
}

/* The other workers' shards of a bucket's parameters. */
static ls_status gather(const ls_exec *x, const ls_action *a, ls_error *e) {
    const ls_share *sh = &x->c.plan->share;
    const ls_peers *p = &x->peers;
    ls_range own = ls_share_shard(sh, a->bucket, p->own);
    ls_device_message *list = LS_NEW_ARRAY(ls_device_message, 2 * (size_t)p->n);
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        ls_range r = ls_share_shard(sh, a->bucket, i);
        size_t at = r.first * sizeof(float), nbytes = (r.end - r.first) * sizeof(float);
        if (i == p->own) continue;
        if (!p->nccl) {
            ls_device_copy(x->on.compute.device, LS_DEVICE_COMPUTE, x->on.params + at,
                           p->params[i] + at, nbytes);
            continue;
        }
        if (own.first < own.end)
            list[n++] = (ls_device_message){.peer = i,
                                            .from = x->on.params + own.first * sizeof(float),
                                            .nbytes = (own.end - own.first) * sizeof(float)};
        if (nbytes)
            list[n++] = (ls_device_message){.peer = i, .to = x->on.params + at, .nbytes = nbytes};
    }
    ls_status s = p->nccl ? ls_device_nccl_exchange(p->nccl, list, n, e) : LS_OK;
    free(list);
    return s;
}

/* All have come to the barrier. */
ls_status ls_exec_finish_peers(const ls_exec *x, const ls_action *a, ls_error *e) {
    if (!x->peers.n) return LS_OK; /* one worker: it is in place */
    return a->kind == LS_ALL_GATHER ? gather(x, a, e) : reduce(x, a, e);
}
