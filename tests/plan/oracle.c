/* oracle.c - see oracle.h. Its memory is in oracle_state.h, sums of gradients in oracle_sums.h,
 * codes of gradients in oracle_codes.h. */
#include "plan/oracle.h"

#include <stdio.h>
#include <string.h>

#include "plan/oracle_codes.h"
#include "plan/oracle_sums.h"
#include "tensor/dtype.h"

/* ---- one action ---- */

static bool is_of(const oracle *o, const ls_layer *l, int i) {
    return rules_has_param(l, o->atoms[i].param);
}

static int *times_of(const oracle *o, int *times, const ls_action *a, int micro) {
    return &times[(a->vw * o->u.M + micro) * o->u.m->nlayers + a->layer];
}

/* The buffer must hold what the action reads. */
static void expect(oracle *o, cell *c, const ls_action *a, int micro, const char *what) {
    oracle_touch(o, c);
    if (!c->used)
        oracle_wrong(o, "the %s is not there", what);
    else if (c->vw != a->vw || c->micro != micro)
        oracle_wrong(o, "the %s is of virtual worker %d, micro-batch %d", what, c->vw, c->micro);
}

static void fill(oracle *o, cell *c, const ls_action *a, int micro) {
    if (c->used) oracle_wrong(o, "a buffer that is in use is written over");
    *c = (cell){.used = true, .vw = a->vw, .micro = micro, .touched = o->at};
}

static void check_params(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    if (!rules_reads_params(&o->u, a)) return;
    for (int i = 0; i < o->natoms; i++) {
        if (!is_of(o, &o->u.m->layers[a->layer], i)) continue;
        if (w->version[i] != 0)
            oracle_wrong(o, "parameter %s is %s", o->u.m->params[o->atoms[i].param].name,
                         w->version[i] == GONE ? "not there" : "updated already");
        cell *c = &w->gathered[o->atoms[i].bucket];
        if (rules_params_sharded(&o->u, o->atoms[i].bucket) && !c->used)
            oracle_wrong(o, "bucket %d is not gathered", o->atoms[i].bucket);
        oracle_touch(o, c);
    }
}

static void run_forward(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    const ls_layer *l = &o->u.m->layers[a->layer];
    bool ends = false, segment = rules_in_segment(&o->u, a->layer, &ends);
    int *before = times_of(o, o->forwards, a, a->micro),
        *again = times_of(o, o->again, a, a->micro);
    if (l->traits.loss) oracle_wrong(o, "the loss has no Forward");
    if (a->kind == LS_FORWARD && (*before)++) oracle_wrong(o, "it is done twice");
    if (a->kind == LS_RECOMPUTE && (!segment || !*before || (*again)++))
        oracle_wrong(o, "it is not to be computed again");
    check_params(o, a);
    for (int k = 0; k < l->ninputs; k++) expect(o, &w->act[l->inputs[k]], a, a->micro, "input");
    fill(o, &w->act[a->layer], a, a->micro);
    if (l->memory.saved) fill(o, &w->saved[a->layer], a, a->micro);
}

/* The number of times that layers read a value: its gradient has as many parts. */
static int reads_of(const oracle *o, int value) {
    int n = 0;
    for (int l = 0; l < o->u.m->nlayers; l++)
        for (int k = 0; k < o->u.m->layers[l].ninputs; k++)
            n += o->u.m->layers[l].inputs[k] == value;
    return n;
}

/* The gradient of input k goes to the layer that computed it, which may take all micro-batches at
 * once. The first reader that runs Backward begins it, the others add. */
static void pass_down(oracle *o, const ls_action *a, int k) {
    worker *w = &o->workers[a->worker];
    const ls_layer *l = &o->u.m->layers[a->layer];
    cell *below = &w->dact[l->inputs[k]];
    bool whole = o->u.m->layers[l->inputs[k]].traits.backward_whole;
    if (l->link.adds[k]) {
        expect(o, below, a, whole ? a->micro + 1 : a->micro, "gradient that it adds to");
    } else if (!whole || a->micro == 0) {
        fill(o, below, a, whole ? 1 : a->micro);
    } else {
        expect(o, below, a, a->micro, "gradient of the micro-batches before");
        if (below->parts != a->micro * reads_of(o, l->inputs[k]))
            oracle_wrong(o, "the gradient of a micro-batch before lacks a part");
        below->micro = a->micro + 1;
    }
    below->parts++;
}

static void add_gradient(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    const ls_layer *l = &o->u.m->layers[a->layer];
    if (a->slot < 0 || a->slot >= o->u.p->share.nslots) {
        oracle_wrong(o, "there is no such sum");
        return;
    }
    for (int i = 0; i < o->natoms; i++) {
        if (!is_of(o, l, i)) continue;
        int layer = o->u.m->nlayers - 1, *sum = oracle_grad_at(o, a->worker, a->slot, i);
        while (!is_of(o, &o->u.m->layers[layer], i)) layer--;
        if (a->start && layer == a->layer) *sum = TERM_EMPTY; /* the first that writes it */
        if (*sum == TERM_NOTHING) oracle_wrong(o, "the chain that it continues is missing");
        if (w->summed[i]) oracle_wrong(o, "the sum over workers is made already");
        *sum = term_link(&o->terms, *sum, (link_term){a->layer, a->vw, a->micro});
        cell *c = &w->grads[o->atoms[i].bucket * o->u.p->share.nslots + a->slot];
        c->used = true;
        oracle_touch(o, c);
    }
}

/* When Backward begins, only the inputs of segments are in memory. */
static void check_segments(oracle *o, const ls_action *a) {
    const worker *w = &o->workers[a->worker];
    for (int l = 1; l < o->u.m->nlayers - 1; l++) {
        bool ends = false;
        if (!rules_in_segment(&o->u, l, &ends)) continue;
        if (w->saved[l].used || (w->act[l].used && !ends))
            oracle_wrong(o, "%s is saved, and computed again", o->u.m->layers[l].name);
    }
}

static void run_backward(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    const ls_layer *l = &o->u.m->layers[a->layer];
    bool whole = l->traits.backward_whole;
    if (l->link.is_constant) oracle_wrong(o, "no parameter depends on it");
    if (whole != (a->micro == -1)) oracle_wrong(o, "it takes the wrong micro-batches");
    if (a->last != (whole || a->micro == o->u.M - 1))
        oracle_wrong(o, "`last` is set at the wrong micro-batch");
    if ((*times_of(o, o->backs, a, whole ? 0 : a->micro))++) oracle_wrong(o, "it is done twice");
    if (l->traits.loss) {
        o->losses[a->vw * o->u.M + a->micro]++;
        check_segments(o, a);
    }
    check_params(o, a);
    for (int k = 0; k < l->ninputs; k++)
        if (!l->unread[k]) expect(o, &w->act[l->inputs[k]], a, a->micro, "input");
    if (l->memory.saved) expect(o, &w->saved[a->layer], a, a->micro, "saved part of Forward");
    if (!l->traits.loss)
        expect(o, &w->dact[a->layer], a, whole ? o->u.M : a->micro, "gradient of the output");
    if (!l->traits.loss && w->dact[a->layer].parts != (whole ? o->u.M : 1) * reads_of(o, a->layer))
        oracle_wrong(o, "the gradient of the output lacks a part");
    for (int k = 0; k < l->ninputs; k++)
        if (!o->u.m->layers[l->inputs[k]].link.is_constant) pass_down(o, a, k);
    add_gradient(o, a);
}

static void run_compute(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    w->done++;
    if (a->layer < 0 || a->layer >= o->u.m->nlayers || a->micro < -1 || a->micro >= o->u.M)
        oracle_wrong(o, "there is no such layer or micro-batch");
    else if (!rules_runs(&o->u, a->worker, a->vw))
        oracle_wrong(o, "the virtual worker belongs to another worker");
    else if (!w->loaded)
        oracle_wrong(o, "samples are not there");
    else if (a->kind == LS_BACKWARD)
        run_backward(o, a);
    else if (a->micro < 0)
        oracle_wrong(o, "it takes the wrong micro-batches");
    else
        run_forward(o, a);
}

/* Is the gradient that of the virtual worker, complete and not changed yet? */
static void run_squares(oracle *o, const ls_action *a) {
    if (a->slot < 0 || a->slot >= o->u.p->share.nslots || !rules_runs(&o->u, a->worker, a->vw)) {
        oracle_wrong(o, "there is no such sum");
        return;
    }
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        if (*oracle_grad_at(o, a->worker, a->slot, i) !=
            oracle_chain(o, TERM_EMPTY, o->atoms[i].param, a->vw))
            oracle_wrong(o, "the gradient is not that of the virtual worker, or not complete");
        if (o->workers[a->worker].summed[i]) oracle_wrong(o, "its place may have the sum by now");
    }
    if (o->measured[a->vw * o->u.p->share.nbuckets + a->bucket]++)
        oracle_wrong(o, "it is measured twice");
    oracle_touch(o, &o->workers[a->worker].grads[a->bucket * o->u.p->share.nslots + a->slot]);
}

static void run_add(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    int slots = a->summed && o->u.c->early ? o->u.p->share.nsums : o->u.p->share.nslots;
    if (a->slot < 0 || a->slot + 1 >= slots || a->summed != o->u.c->early) {
        oracle_wrong(o, "there are no such sums");
        return;
    }
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        if (a->summed && !oracle_in_shard(o, a->worker, &o->atoms[i])) continue;
        int *lower = a->summed ? oracle_sum_at(o, a->worker, a->slot, i)
                               : oracle_grad_at(o, a->worker, a->slot, i);
        int *upper = lower + o->natoms;
        if (*lower == TERM_NOTHING || *upper == TERM_NOTHING) oracle_wrong(o, "a sum is not there");
        *lower = term_sum(&o->terms, *lower, *upper);
        *upper = TERM_NOTHING; /* it must not be used again */
    }
    for (int s = 0; s < 2 && !a->summed; s++)
        oracle_touch(o, &w->grads[a->bucket * o->u.p->share.nslots + a->slot + s]);
}

static size_t length_of(ls_range b) { return b.end - b.first; }

/* Each worker of a group sums its shard; it reads what others have of it. */
static void reduce_scatter(oracle *o, const ls_action *a) {
    for (int w = 0; w < o->u.n; w++) {
        leaves l = oracle_leaves(o, w / o->u.S * o->u.S, o->u.S, 1);
        ls_range own = rules_shard_of(&o->u, a->bucket, w);
        for (int i = 0; i < o->natoms; i++)
            if (o->atoms[i].bucket == a->bucket && oracle_inside(&o->atoms[i], own))
                *oracle_sum_at(o, w, a->slot, i) =
                    oracle_sum_node(o, &(summing){&l, true, 0, i}, 0, l.size);
        for (int i = 0; i < l.n; i++)
            if (l.list[i].worker != w)
                o->read += (int64_t)(length_of(own) * ls_dtype_size(o->u.c->reduce));
    }
}

/* Owners of the same shard sum it; each gets all of it. */
static void reduce_replicas(oracle *o, const ls_action *a) {
    for (int s = 0; s < o->u.S; s++) {
        leaves l = oracle_leaves(o, s, o->u.R, o->u.S);
        for (int i = 0; i < o->natoms; i++) {
            if (o->atoms[i].bucket != a->bucket || !oracle_in_shard(o, s, &o->atoms[i])) continue;
            int got = oracle_sum_node(o, &(summing){&l, false, a->slot, i}, 0, l.size);
            for (int w = s; w < o->u.n; w += o->u.S) *oracle_sum_at(o, w, a->slot, i) = got;
        }
        o->read += (int64_t)(length_of(rules_shard_of(&o->u, a->bucket, s)) *
                             ls_dtype_size(o->u.c->reduce)) *
                   2 * (o->u.R - 1);
    }
}

/* All workers sum all of a bucket: each a part, which then goes to all. */
static void reduce_all(oracle *o, const ls_action *a) {
    leaves l = oracle_leaves(o, 0, o->u.n, 1);
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        int got = oracle_sum_node(o, &(summing){&l, true, 0, i}, 0, l.size);
        for (int w = 0; w < o->u.n; w++) *oracle_grad_at(o, w, 0, i) = got;
    }
    int64_t nbytes = (int64_t)(length_of(ls_share_range(&o->u.p->share, a->bucket)) *
                               ls_dtype_size(o->u.c->reduce));
    o->read += nbytes * (o->u.n - 1) * l.n / o->u.n + nbytes * (o->u.n - 1);
}

static void run_decide(oracle *o) {
    size_t blocks = o->u.m->nfloats / LS_BLOCK;
    if (o->u.p->actions[o->at].comm.axis != LS_AXIS_ALL)
        oracle_wrong(o, "it is not among all workers");
    for (size_t i = 0; i < blocks; i++)
        if (o->squared[i] != 1) oracle_wrong(o, "block %zu is squared %d times", i, o->squared[i]);
    for (int i = 0; i < o->u.c->V * o->u.M; i++)
        if (o->losses[i] != 1) oracle_wrong(o, "losses are not there");
    for (int w = 0; w < o->u.n; w++) {
        if (!o->workers[w].normed) oracle_wrong(o, "worker %d has no norm", w);
        if (o->workers[w].knows) oracle_wrong(o, "the norm is known");
        o->workers[w].knows = true;
    }
    /* norms, losses, weights where targets may be ignored, and the mark of a step given up */
    size_t each = o->u.m->weighing.ntargets > 0 || o->u.m->weighing.has_field;
    for (int l = 0; l < o->u.m->nlayers; l++) each += o->u.m->layers[l].traits.loss;
    size_t noise = o->u.c->noise ? (size_t)o->u.c->V * LS_NOISE_SUMS : 0;
    o->read += 2 * (int64_t)(blocks + each * (size_t)o->u.c->batch + noise + 1) * 8 * (o->u.n - 1);
}

static void touch_grads(oracle *o, const ls_action *a) {
    for (int w = 0; w < o->u.n; w++) {
        leaves l = oracle_leaves(o, w / o->u.S * o->u.S, o->u.S, 1);
        for (int i = 0; i < l.n; i++) {
            cell *c = &o->workers[w].grads[a->bucket * o->u.p->share.nslots + l.list[i].slot];
            if (l.list[i].worker != w) continue;
            if (!c->used) oracle_wrong(o, "a gradient of worker %d is not there", w);
            oracle_touch(o, c);
        }
    }
}

static void run_reduction(oracle *o, const ls_action *a) {
    int slots = o->u.c->early ? o->u.p->share.nsums : 1;
    bool scatters = a->kind == LS_REDUCE_SCATTER, fits = a->slot >= 0 && a->slot < slots;
    if (o->u.c->zero == 0)
        fits = fits && !scatters && a->comm.axis == LS_AXIS_ALL;
    else
        fits = fits && a->comm.axis == (scatters ? LS_AXIS_SHARDS : LS_AXIS_REPLICAS);
    if (!fits) {
        oracle_wrong(o, "it is no sum of these settings");
        return;
    }
    int *rounds = &o->rounds[2 * a->bucket + (a->comm.axis == LS_AXIS_REPLICAS)];
    if (a->round != (*rounds)++) oracle_wrong(o, "it is the sum of another round");
    if (a->comm.axis != LS_AXIS_REPLICAS) touch_grads(o, a);
    for (int i = 0; i < o->natoms && !o->u.c->early; i++)
        for (int w = 0; w < o->u.n && o->atoms[i].bucket == a->bucket; w++)
            o->workers[w].summed[i] = true;
    if (scatters)
        reduce_scatter(o, a);
    else if (a->comm.axis == LS_AXIS_REPLICAS)
        reduce_replicas(o, a);
    else
        reduce_all(o, a);
}

static void count_link(link_term x, void *arg) {
    const oracle *o = arg;
    int micro = o->u.m->layers[x.layer].traits.backward_whole ? 0 : x.micro;
    o->seen[(x.vw * o->u.M + micro) * o->u.m->nlayers + x.layer]++;
}

/* Is this the whole sum of an atom, in the tree's order? Where the order is free: every link
 * once. */
static bool is_whole(oracle *o, int at, int got) {
    int param = o->atoms[at].param, layers = o->u.m->nlayers, n = o->u.c->V * o->u.M * layers;
    if (o->u.c->tree) return got == o->expected[param];
    memset(o->seen, 0, (size_t)n * sizeof *o->seen);
    term_visit(&o->terms, got, count_link, o);
    for (int i = 0; i < n; i++) {
        const ls_layer *l = &o->u.m->layers[i % layers];
        bool first = i / layers % o->u.M == 0;
        if (o->seen[i] != (rules_has_param(l, param) && (first || !l->traits.backward_whole)))
            return false;
    }
    return true;
}

static void check_whole(oracle *o, int w, int i) {
    if (!is_whole(o, i, *oracle_sum_at(o, w, 0, i)))
        oracle_wrong(o, "the gradient of %s is not the whole sum",
                     o->u.m->params[o->atoms[i].param].name);
}

/* Each block is squared by the first of the workers that have its sum. */
static void run_norm(oracle *o, const ls_action *a) {
    if (o->workers[a->worker].normed) oracle_wrong(o, "it has a norm");
    for (int i = 0; i < o->u.c->V * o->u.p->share.nbuckets; i++)
        if (rules_runs(&o->u, a->worker, i / o->u.p->share.nbuckets) &&
            o->measured[i] != o->u.c->noise)
            oracle_wrong(o, "a virtual worker's gradient is not measured");
    o->workers[a->worker].normed = true;
    int rounds = o->u.c->early ? o->u.c->V / o->u.n : 1, groups = o->u.c->zero && o->u.R > 1;
    bool codes = rules_sends_codes(&o->u) && !o->warm;
    if (codes) rounds = 0;
    for (int k = 0; k < o->u.p->share.nbuckets; k++)
        if (o->workers[a->worker].decoded[k] != codes || o->rounds[2 * k] != rounds ||
            o->rounds[2 * k + 1] != groups * rounds)
            oracle_wrong(o, "bucket %d is not reduced", k);
    if (a->worker >= o->u.S) return;
    for (int k = 0; k < o->u.p->share.nbuckets; k++) {
        ls_range own = rules_shard_of(&o->u, k, a->worker);
        for (size_t at = own.first; at < own.end; at += LS_BLOCK) o->squared[at / LS_BLOCK]++;
    }
    for (int i = 0; i < o->natoms; i++)
        if (oracle_in_shard(o, a->worker, &o->atoms[i])) check_whole(o, a->worker, i);
}

static void run_update(oracle *o, const ls_action *a) {
    worker *w = &o->workers[a->worker];
    if (!w->knows) oracle_wrong(o, "the norm is not known");
    if (w->updated[a->bucket]++) oracle_wrong(o, "it is done twice");
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        if (o->u.c->zero > 0 && !oracle_in_shard(o, a->worker, &o->atoms[i])) continue;
        check_whole(o, a->worker, i);
        if (w->version[i]++ != 0) oracle_wrong(o, "parameters are not those of the step");
        if (w->moment[i]++ != 0) oracle_wrong(o, "moments are not those of the step");
    }
}

/* A gather comes `prefetch` calls of layers before the first use. Where ranges are uneven, a worker
 * may have fewer calls meanwhile than the others. */
static void check_ahead(oracle *o, const ls_action *a) {
    int best = -1, soonest = o->u.p->nactions, ahead = 0;
    for (int w = 0; w < o->u.n; w++) {
        const worker *x = &o->workers[w];
        for (int i = x->done; i < x->ncalls; i++) {
            const ls_action *call = &o->u.p->actions[x->calls[i]];
            if (!rules_touches(&o->u, call->layer, a->bucket) || !rules_reads_params(&o->u, call))
                continue;
            if (x->calls[i] < soonest) {
                soonest = x->calls[i];
                best = w;
                ahead = i - x->done;
            }
            break;
        }
    }
    if (best < 0) {
        oracle_wrong(o, "no call uses what is gathered");
        return;
    }
    int all = o->workers[best].done + ahead; /* calls before the use */
    int wanted = all < o->u.c->prefetch ? all : o->u.c->prefetch;
    bool even = !o->u.c->first && o->u.c->V % o->u.n == 0;
    if (ahead > wanted || (even && ahead < wanted))
        oracle_wrong(o, "it comes %d calls before the use instead of %d", ahead, wanted);
}

static void run_gather(oracle *o, const ls_action *a) {
    bool sharded = rules_params_sharded(&o->u, a->bucket), delivers = o->u.S == 1;
    int version = sharded ? 0 : 1;
    if (o->u.c->zero == 0 || a->comm.axis != LS_AXIS_SHARDS)
        oracle_wrong(o, "nothing is to be gathered");
    if (sharded && o->in_order) check_ahead(o, a);
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != a->bucket) continue;
        for (int w = 0; w < o->u.n; w++) {
            int owner = w / o->u.S * o->u.S;
            while (!oracle_in_shard(o, owner, &o->atoms[i])) owner++;
            worker *x = &o->workers[w];
            if (o->workers[owner].version[i] != version)
                oracle_wrong(o, "the owner has other parameters");
            delivers |= x->version[i] != o->workers[owner].version[i];
            x->version[i] = o->workers[owner].version[i];
        }
    }
    if (!delivers) oracle_wrong(o, "all is there");
    for (int w = 0; w < o->u.n; w++) {
        cell *c = &o->workers[w].gathered[a->bucket];
        if (sharded && c->used) oracle_wrong(o, "worker %d has it", w);
        c->used = sharded;
        oracle_touch(o, c);
        size_t rest = length_of(ls_share_range(&o->u.p->share, a->bucket)) -
                      length_of(rules_shard_of(&o->u, a->bucket, w));
        o->read += (int64_t)(rest * ls_dtype_size(o->u.c->compute));
    }
}

/* ---- Free ---- */

static cell *cell_of(const oracle *o, const ls_action *a, ls_buffer b) {
    const worker *w = &o->workers[a->worker];
    switch (b.kind) {
    case LS_BUF_ACT: return &w->act[b.index];
    case LS_BUF_SAVED: return &w->saved[b.index];
    case LS_BUF_DACT: return &w->dact[b.index];
    case LS_BUF_PARAM: return rules_params_sharded(&o->u, b.index) ? &w->gathered[b.index] : NULL;
    case LS_BUF_GRAD:
        return rules_grads_are_freed(&o->u) ? &w->grads[b.index * o->u.p->share.nslots + b.slot]
                                            : NULL;
    default: return NULL;
    }
}

/* Parameters that the next call or the `prefetch` calls after it use are not freed. */
static void check_not_soon(oracle *o, const ls_action *a, int bucket) {
    const worker *w = &o->workers[a->worker];
    bool even = !o->u.c->first && o->u.c->V % o->u.n == 0;
    for (int i = w->done; even && i < w->ncalls && i <= w->done + o->u.c->prefetch; i++) {
        const ls_action *call = &o->u.p->actions[w->calls[i]];
        if (rules_touches(&o->u, call->layer, bucket) && rules_reads_params(&o->u, call))
            oracle_wrong(o, "it is used again in %d calls", i - w->done + 1);
    }
}

static void run_free(oracle *o, const ls_action *a) {
    if (a->buffer < 0 || a->buffer >= ls_plan_nbuffers(o->u.p)) {
        oracle_wrong(o, "there is no such buffer");
        return;
    }
    ls_buffer b = ls_plan_buffer_of(o->u.p, a->buffer);
    cell *c = cell_of(o, a, b);
    if (!c || !c->used) {
        oracle_wrong(o, "nothing is there");
        return;
    }
    c->used = false;
    bool later = o->warm && rules_sends_codes(&o->u); /* a Decode that this step leaves out */
    for (int i = c->touched + 1; i < o->at && o->in_order && !later; i++)
        if (o->u.p->actions[i].kind != LS_FREE) {
            oracle_wrong(o, "it could have been freed at action %d", i);
            break;
        }
    if (b.kind == LS_BUF_PARAM && o->in_order) check_not_soon(o, a, b.index);
    for (int i = 0; i < o->natoms; i++) {
        if (o->atoms[i].bucket != b.index) continue;
        bool own = oracle_in_shard(o, a->worker, &o->atoms[i]);
        if (b.kind == LS_BUF_PARAM && !own) o->workers[a->worker].version[i] = GONE;
        if (b.kind == LS_BUF_GRAD && !(own && !o->u.c->early && b.slot == 0))
            *oracle_grad_at(o, a->worker, b.slot, i) = TERM_NOTHING;
    }
}

/* ---- a whole plan ---- */

static void run_action(oracle *o, const ls_action *a) {
    bool scalars = a->kind == LS_DECIDE;
    bool comm = scalars || a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE ||
                a->kind == LS_ALL_GATHER || a->kind == LS_EXCHANGE || a->kind == LS_SUM_FACTORS;
    if (a->phase != LS_PHASE_ALL && o->warm != (a->phase == LS_PHASE_VALUES)) return;
    if (comm ? a->worker != LS_ALL_WORKERS : a->worker < 0 || a->worker >= o->u.n)
        oracle_wrong(o, "the wrong workers take part");
    else if (comm && (a->comm.of.from != 0 || a->comm.of.to != o->u.n || a->comm.of.step != 1))
        oracle_wrong(o, "not all workers take part");
    else if (!scalars && (a->bucket < 0 || a->bucket >= o->u.p->share.nbuckets))
        oracle_wrong(o, "there is no such bucket");
    if (o->r->wrong[0]) return;
    o->read = 0;
    switch (a->kind) {
    case LS_LOAD:
        if (o->workers[a->worker].loaded) oracle_wrong(o, "it is done twice");
        o->workers[a->worker].loaded = true;
        break;
    case LS_FORWARD:
    case LS_RECOMPUTE:
    case LS_BACKWARD: run_compute(o, a); break;
    case LS_SQUARES: run_squares(o, a); break;
    case LS_ENCODE: oracle_run_encode(o, a); break;
    case LS_EXCHANGE:
    case LS_SUM_FACTORS: oracle_run_exchange(o, a); break;
    case LS_DECODE: oracle_run_decode(o, a); break;
    case LS_ADD: run_add(o, a); break;
    case LS_NORM: run_norm(o, a); break;
    case LS_ALL_REDUCE:
    case LS_REDUCE_SCATTER: run_reduction(o, a); break;
    case LS_DECIDE: run_decide(o); break;
    case LS_UPDATE: run_update(o, a); break;
    case LS_ALL_GATHER: run_gather(o, a); break;
    case LS_TO_DEVICE:
    case LS_FROM_DEVICE: break; /* copies_test.c */
    case LS_FREE: run_free(o, a); break;
    case LS_DELTA:        /* } only in plans that bring replicas together */
    case LS_COPY:         /* } */
    case LS_MIX:          /* } */
    case LS_REPLICA_NORM: /* } */
    case LS_SEND:         /* } only in pipelines, whose bits exec_test compares */
    case LS_TAKE:         /* } */
    case LS_NACTION_KINDS: oracle_wrong(o, "it is of another plan"); break;
    }
    if (comm && a->comm.nbytes != o->read / o->u.n)
        oracle_wrong(o, "a worker reads %lld bytes from others", (long long)(o->read / o->u.n));
    if (scalars)
        o->r->scalars_nbytes += o->read;
    else
        o->r->nbytes[a->kind] += o->read;
}

/* Does the bucket begin with a matrix that the next cut would divide? */
static bool begins_matrix(const oracle *o, const ls_bucket *b) {
    size_t most = o->u.c->bucket_nbytes / sizeof(float) / LS_BLOCK * LS_BLOCK;
    if (!rules_has_factors(&o->u)) return false;
    if (most < LS_BLOCK) most = LS_BLOCK;
    size_t cut = b->end > most ? b->end - most : 0;
    for (int i = 0; i < o->u.m->nparams; i++) {
        const ls_param *q = &o->u.m->params[i];
        if (q->ndims >= 2 && !q->frozen && q->offset == b->first && q->offset < cut &&
            cut < q->offset + (q->count + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK)
            return true;
    }
    return false;
}

/* Buckets are cut from the end, at blocks, or where gradients are compressed at chunks of 64 blocks
 * (with factors: at blocks, and no matrix is divided); each has as many as its bytes allow, but at
 * least one, and the last has the rest. */
static void check_buckets(oracle *o) {
    const ls_share_compress *z = &o->u.c->compress;
    size_t end = o->u.m->nfloats, most = o->u.c->bucket_nbytes / sizeof(float), unit = LS_BLOCK;
    if (z->on && !rules_has_factors(&o->u)) unit *= 64;
    for (int k = 0; k < o->u.p->share.nbuckets; k++) {
        const ls_bucket *b = &o->u.p->share.buckets[k];
        size_t n = b->end - b->first;
        if (b->end != end || b->first >= end || b->first % LS_BLOCK)
            oracle_wrong(o, "bucket %d does not follow the one before", k);
        if (begins_matrix(o, b)) {
            end = b->first;
            continue;
        }
        if (n > most && n > unit) oracle_wrong(o, "bucket %d is too large", k);
        if ((n < unit || n + unit <= most) && b->first > 0)
            oracle_wrong(o, "bucket %d is too small", k);
        end = b->first;
    }
    if (end > 0) oracle_wrong(o, "buckets leave out a part");
}

static bool any_used(const cell *cells, int n) {
    for (int i = 0; i < n; i++)
        if (cells[i].used) return true;
    return false;
}

static void check_worker(oracle *o, int index) {
    const worker *w = &o->workers[index];
    int layers = o->u.m->nlayers;
    if (any_used(w->act, layers) || any_used(w->saved, layers) || any_used(w->dact, layers) ||
        any_used(w->gathered, o->u.p->share.nbuckets) ||
        (rules_grads_are_freed(&o->u) &&
         any_used(w->grads, o->u.p->share.nbuckets * o->u.p->share.nslots)))
        oracle_wrong(o, "worker %d ends with a buffer in use", index);
    for (int k = 0; k < o->u.p->share.nbuckets; k++)
        if (w->updated[k] != 1) oracle_wrong(o, "worker %d has not updated bucket %d", index, k);
    for (int i = 0; i < o->natoms; i++) {
        bool own = oracle_in_shard(o, index, &o->atoms[i]);
        int version = own || !rules_params_sharded(&o->u, o->atoms[i].bucket) ? 1 : GONE;
        if (w->version[i] != version)
            oracle_wrong(o, "worker %d ends with version %d of %s", index, w->version[i],
                         o->u.m->params[o->atoms[i].param].name);
        if (w->moment[i] != (own || o->u.c->zero == 0))
            oracle_wrong(o, "worker %d ends with moments that are not its own", index);
    }
}

static void check_end(oracle *o) {
    o->at = o->u.p->nactions;
    for (int i = 0; i < o->u.c->V * o->u.M * o->u.m->nlayers; i++) {
        int layer = i % o->u.m->nlayers;
        const ls_layer *l = &o->u.m->layers[layer];
        bool first = i / o->u.m->nlayers % o->u.M == 0, ends = false;
        if (o->forwards[i] != !l->traits.loss)
            oracle_wrong(o, "a Forward of %s is missing", l->name);
        if (o->backs[i] != (!l->link.is_constant && (first || !l->traits.backward_whole)))
            oracle_wrong(o, "a Backward of %s is missing", l->name);
        if (o->again[i] != rules_in_segment(&o->u, layer, &ends))
            oracle_wrong(o, "a Recompute of %s is missing", l->name);
    }
    for (int w = 0; w < o->u.n; w++) check_worker(o, w);
}

/* One step, in the warm-up or after it. */
static void run_step(const ls_plan *p, const int *order, bool warm, oracle_result *r_p) {
    oracle o = {.u = rules_of(p), .r = r_p, .in_order = !order, .at = p->nactions, .warm = warm};
    *r_p = (oracle_result){0};
    check_buckets(&o);
    if (r_p->wrong[0]) return;
    oracle_open(&o);
    for (int i = 0; i < o.u.m->nparams; i++) o.expected[i] = oracle_expected(&o, i, 0, o.u.c->V);
    for (int i = 0; i < p->nactions && !r_p->wrong[0]; i++) {
        o.at = order ? order[i] : i;
        run_action(&o, &p->actions[o.at]);
    }
    if (!r_p->wrong[0]) check_end(&o);
    oracle_close(&o);
}

void oracle_run(const ls_plan *p, const int *order, oracle_result *r_p) {
    *r_p = (oracle_result){0};
    if (p->share.compress.on && p->share.compress.warmup > 0) run_step(p, order, true, r_p);
    if (!r_p->wrong[0]) run_step(p, order, false, r_p);
}
