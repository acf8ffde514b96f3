/* verify_sync.c - checks the plans that bring replicas together (sync.c). */
#include <stdlib.h>

#include "plan/plan.h"
#include "share/codes.h"

typedef struct walk {
    const ls_plan *p;
    int at;
    int *deltas;        /* [V][nbuckets] */
    int *adds;          /* [V][nbuckets] folds so far */
    int *encodes;       /* [V][nbuckets] */
    int *exchanges;     /* [nbuckets] */
    int *decodes;       /* [nbuckets][nworkers] */
    int *sums, *copies; /* [nbuckets], [nbuckets][nworkers] */
    int *mixes;         /* [nbuckets][nworkers] terms so far */
    int *arrived;       /* [nbuckets][nworkers] terms with the latest one that was sent */
    int *updates;       /* [nbuckets][nworkers] */
    int decisions, waited;
    ls_status status;
    ls_error *e;
} walk;

static void wrong(walk *w, const char *what) {
    if (w->status == LS_OK) w->status = ls_plan_wrong(w->p, w->at, what, w->e);
}

/* Deltas come in the order of the virtual workers, each followed by its folds. */
static void check_delta(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    int slot = 0, i = ls_share_vw_index(sh, a->worker, a->vw),
        cell = a->vw * sh->nbuckets + a->bucket;
    if (i < 0 || i >= sh->workers[a->worker].nvws) {
        wrong(w, "belongs to another worker");
        return;
    }
    int folds = ls_share_fold(sh, a->worker, i, &slot);
    bool delta = a->kind == LS_DELTA;
    if (!ls_task_is_common(sh->task) || !ls_share_changes_bucket(sh, a->bucket))
        wrong(w, "is in the wrong plan");
    if (w->decisions || w->sums[a->bucket]) wrong(w, "comes too late");
    if (delta && (w->deltas[cell]++ || a->slot != slot)) wrong(w, "adds to the wrong sum");
    if (!delta && (!w->deltas[cell] || ++w->adds[cell] > folds || a->slot != slot - w->adds[cell]))
        wrong(w, "is not a fold of the tree");
}

/* A Delta is rounded once, before anything is added to it. */
static void check_encode(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    int cell = a->vw * sh->nbuckets + a->bucket;
    if (!sh->compress.on || !ls_share_is_coded(sh, a->vw)) wrong(w, "encodes what has no code");
    if (w->deltas[cell] != 1 || w->adds[cell] || w->encodes[cell]++ || w->decisions)
        wrong(w, "comes before its Delta, or too late");
}

static bool is_encoded(const walk *w, int vw, int bucket) {
    bool coded = w->p->share.compress.on && ls_share_is_coded(&w->p->share, vw);
    return w->encodes[vw * w->p->share.nbuckets + bucket] == coded;
}

static void check_exchange(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    for (int vw = 0; vw < sh->V; vw++)
        if (!is_encoded(w, vw, a->bucket)) wrong(w, "comes before an Encode");
    if (!sh->sends_codes || w->exchanges[a->bucket]++ || w->decisions)
        wrong(w, "sends codes twice, or too late");
}

static void check_decode(walk *w, const ls_action *a) {
    if (w->exchanges[a->bucket] != 1 || w->decisions) wrong(w, "comes before its Exchange");
    if (w->decodes[a->bucket * w->p->share.nworkers + a->worker]++) wrong(w, "decodes twice");
}

static void check_sum(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    for (int worker = 0; worker < sh->nworkers; worker++)
        for (int i = 0; i < sh->workers[worker].nvws; i++) {
            int slot = 0, cell = ls_share_vw(sh, worker, i) * sh->nbuckets + a->bucket;
            if (w->deltas[cell] != 1 || !is_encoded(w, ls_share_vw(sh, worker, i), a->bucket) ||
                w->adds[cell] != ls_share_fold(sh, worker, i, &slot))
                wrong(w, "comes before a Delta or a fold");
        }
    if (w->sums[a->bucket]++ || w->decisions) wrong(w, "sums twice, or too late");
}

/* A worker that is ready to decide must have what the change needs (buffer.c). */
static void count_sum(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    if (how == LS_USE_READ) w->waited += ls_plan_buffer_of(w->p, buffer).kind == LS_BUF_SUM;
}

/* Sums, copies or mixes of buckets that a worker needs for its updates. */
static int needed_by(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    int n = 0, nbuckets = sh->segment_buckets;
    for (int k = 0; sh->task == LS_TASK_MIX && k < sh->nbuckets; k++)
        n += ls_share_has(sh, k, worker) && ls_share_changes_bucket(sh, k);
    for (int k = 0; sh->task != LS_TASK_MIX && k < nbuckets; k++)
        n += ls_share_changes_bucket(sh,
                                     sh->task == LS_TASK_ADOPT ? ls_share_bucket_in(sh, k, 1) : k);
    return n;
}

static void check_decision(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    for (int worker = 0; worker < p->share.nworkers; worker++) {
        int needed = needed_by(p, worker);
        w->waited = 0;
        ls_action_uses(p, a, worker, count_sum, w);
        if (w->waited != needed) wrong(w, "does not wait for what the change needs");
    }
    w->decisions++;
}

static bool is_known(const walk *w, int bucket, int worker) {
    const ls_share *sh = &w->p->share;
    if (!ls_share_changes_bucket(sh, bucket)) return true;
    if (sh->sends_codes) return w->decodes[bucket * sh->nworkers + worker] == 1;
    if (ls_task_is_common(sh->task)) return w->sums[bucket] == 1;
    if (sh->task == LS_TASK_MIX) {
        int list[LS_MIXING_MOST], n = ls_share_terms_of(sh, sh->buckets[bucket].island, list);
        bool has = ls_share_has(sh, bucket, worker);
        return w->mixes[bucket * sh->nworkers + worker] == (has ? n : 0);
    }
    int common = ls_share_common_bucket(sh, bucket);
    return w->copies[common * sh->nworkers + worker] == 1;
}

static void check_update(walk *w, const ls_action *a) {
    if (w->decisions != 1) wrong(w, "changes the state before it is decided");
    if (!is_known(w, a->bucket, a->worker)) wrong(w, "comes before its sum");
    if (w->updates[a->bucket * w->p->share.nworkers + a->worker]++) wrong(w, "updates twice");
}

/* Before the decision the common parameters are gathered beside the state, after it what was
 * updated. */
static void check_gather(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    ls_worker_set of = sh->buckets[a->bucket].workers;
    for (int worker = of.from; worker < of.to; worker++)
        if (w->decisions && w->updates[a->bucket * sh->nworkers + worker] != 1)
            wrong(w, "gathers before an Update");
    for (int worker = 0; !w->decisions && worker < sh->nworkers; worker++)
        w->copies[a->bucket * sh->nworkers + worker]++;
}

static bool has_replica(const ls_plan *p, int bucket, int island, int worker) {
    const ls_share *sh = &p->share;
    return ls_share_has(sh, ls_share_bucket_in(sh, ls_share_common_bucket(sh, bucket), island),
                        worker);
}

static void check_send(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    if (sh->task != LS_TASK_MIX || !has_replica(p, a->bucket, a->island, a->worker))
        wrong(w, "sends what the worker has not");
    if (w->decisions) wrong(w, "comes too late");
    w->arrived[a->bucket * sh->nworkers + a->peer] = a->term + 1;
}

/* Terms are added in the order of the replicas; what another worker has must have come before. */
static void check_mix(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    int list[LS_MIXING_MOST], cell = a->bucket * sh->nworkers + a->worker;
    int *done = &w->mixes[cell];
    if (sh->task != LS_TASK_MIX || !ls_share_has(sh, a->bucket, a->worker)) {
        wrong(w, "is in the wrong plan");
        return;
    }
    int n = ls_share_terms_of(sh, sh->buckets[a->bucket].island, list);
    if (a->term != *done || a->term >= n || a->island != list[a->term] ||
        a->start != (a->term == 0))
        wrong(w, "is not the next term of the mix");
    ls_range own = ls_share_owned(sh, a->bucket, a->worker);
    bool comes = own.first < own.end && !has_replica(p, a->bucket, a->island, a->worker);
    if (w->decisions || (comes && w->arrived[cell] != a->term + 1))
        wrong(w, "comes before its Send, or too late");
    ++*done;
}

static void check(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    if (a->kind != LS_DECIDE && (a->bucket < 0 || a->bucket >= sh->nbuckets)) {
        wrong(w, "names a bucket that does not exist");
        return;
    }
    switch (a->kind) {
    case LS_DELTA:
    case LS_ADD: check_delta(w, a); break;
    case LS_ENCODE: check_encode(w, a); break;
    case LS_EXCHANGE: check_exchange(w, a); break;
    case LS_DECODE: check_decode(w, a); break;
    case LS_COPY: w->copies[a->bucket * sh->nworkers + a->worker]++; break;
    case LS_SEND: check_send(w, a); break;
    case LS_MIX: check_mix(w, a); break;
    case LS_REDUCE_SCATTER:
    case LS_ALL_REDUCE: check_sum(w, a); break;
    case LS_DECIDE: check_decision(w, a); break;
    case LS_UPDATE: check_update(w, a); break;
    case LS_ALL_GATHER: check_gather(w, a); break;
    default: wrong(w, "is in the wrong plan");
    }
}

ls_status ls_plan_verify_sync(const ls_plan *p, ls_error *e) {
    const ls_share *sh = &p->share;
    size_t n = (size_t)sh->nworkers, nbuckets = (size_t)sh->nbuckets, V = (size_t)sh->V;
    walk w = {.p = p, .e = e};
    w.deltas = LS_NEW_ARRAY(int, V *nbuckets);
    w.adds = LS_NEW_ARRAY(int, V *nbuckets);
    w.encodes = LS_NEW_ARRAY(int, V *nbuckets);
    w.exchanges = LS_NEW_ARRAY(int, nbuckets);
    w.decodes = LS_NEW_ARRAY(int, nbuckets *n);
    w.sums = LS_NEW_ARRAY(int, nbuckets);
    w.copies = LS_NEW_ARRAY(int, nbuckets *n);
    w.updates = LS_NEW_ARRAY(int, nbuckets *n);
    w.mixes = LS_NEW_ARRAY(int, nbuckets *n);
    w.arrived = LS_NEW_ARRAY(int, nbuckets *n);
    for (w.at = 0; w.at < p->nactions && w.status == LS_OK; w.at++) check(&w, &p->actions[w.at]);
    w.at = p->nactions - 1;
    for (size_t i = 0; i < nbuckets * n; i++)
        if (w.updates[i] != 1) wrong(&w, "ends a plan that leaves out an update");
    free(w.deltas);
    free(w.adds);
    free(w.encodes);
    free(w.exchanges);
    free(w.decodes);
    free(w.sums);
    free(w.copies);
    free(w.updates);
    free(w.mixes);
    free(w.arrived);
    return w.status;
}
