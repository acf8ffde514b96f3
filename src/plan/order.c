/* order.c - the plain order: a worker runs its virtual workers one after the other, each of these
 * its micro-batches one after the other, each micro-batch forward through all layers and backward.
 *
 * The head has no Forward: its Backward computes the loss. In the global order workers take turns.
 * A layer whose backward is whole runs it once, after the last micro-batch of the virtual worker.
 */
#include <stdlib.h>

#include "plan/plan.h"
#include "share/mesh.h"

/* Is the layer one of the worker's cell? */
static bool runs(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    return sh->ncells == 1 || ls_share_runner(sh, a->worker, a->layer) == a->worker;
}

static void add_forward(ls_plan *to, const ls_plan *p, ls_action base, int first, int end) {
    base.kind = LS_FORWARD;
    for (base.layer = first; base.layer < end; base.layer++)
        if (!p->share.model->layers[base.layer].traits.loss && runs(p, &base))
            ls_plan_append(to, &base);
}

/* Where passes are split, a layer that can't be takes part in one of them. false: the layer has
 * nothing to do in this pass. */
static bool take_part(const ls_plan *p, ls_back back, ls_action *a) {
    const ls_share *sh = &p->share;
    if (!ls_share_splits(sh, a->layer)) return ls_share_writes_in(sh, a->layer) == back;
    a->back = back;
    if (back == LS_BACK_INPUTS) a->start = a->last = false;
    return true;
}

/* start: of the virtual worker's chains, where this is the first micro-batch. */
static void add_backward(ls_plan *to, const ls_plan *p, ls_action base, ls_back back, int first,
                         int end) {
    const ls_share *sh = &p->share;
    const ls_model *m = sh->model;
    base.kind = LS_BACKWARD;
    base.last = base.micro == sh->micros - 1;
    bool start = base.start;
    base.start = start && base.micro == 0;
    for (base.layer = end - 1; base.layer >= first; base.layer--) {
        ls_action a = base;
        if (m->layers[a.layer].link.is_constant || !runs(p, &a)) continue;
        if (m->layers[a.layer].traits.backward_whole) {
            if (!a.last) continue;
            a.micro = -1;
            a.start = start;
        }
        a.slot = ls_share_slot_of(sh, a.worker, ls_share_layer_chunk(sh, a.layer), base.slot);
        if (take_part(p, back, &a)) ls_plan_append(to, &a);
    }
}

/* The k-th micro-batch of a worker: of which virtual worker, and to which sum. */
static ls_action micro_at(const ls_plan *p, int worker, int k) {
    const ls_share *sh = &p->share;
    int i = k / sh->micros;
    ls_action base = {.worker = worker, .vw = ls_share_vw(sh, worker, i), .micro = k % sh->micros};
    base.start = sh->config->tree || sh->by_rounds || i == 0;
    ls_share_fold(sh, worker, i, &base.slot); /* of its chunk's stack */
    return base;
}

/* Do two stages of the cell write one bucket? */
static bool shares_bucket(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    const ls_model *m = sh->model;
    int *stage = LS_NEW_ARRAY(int, (size_t)sh->nbuckets); /* 1 + the stage that writes it */
    bool shares = false;
    for (int l = 0; l < m->nlayers; l++) {
        const int *touched = NULL;
        if (ls_share_runner(sh, worker, l) != worker) continue;
        for (int j = 0, n = ls_share_touched(sh, l, &touched); j < n; j++) {
            int *first = &stage[touched[j]];
            shares = shares || (*first && *first != 1 + sh->stage_of[l]);
            *first = 1 + sh->stage_of[l];
        }
    }
    free(stage);
    return shares;
}

/* Puts off passes for gradients of parameters until those of all earlier virtual workers are done,
 * as a sum is free for the next virtual worker only then. Nothing waits for such a pass. */
static void keep_apart(const ls_plan *p, ls_pass *passes, int n) {
    const ls_share *sh = &p->share;
    ls_pass *list = LS_NEW_ARRAY(ls_pass, (size_t)n), *later = LS_NEW_ARRAY(ls_pass, (size_t)n);
    int micros = sh->micros, nlist = 0, nlater = 0, done = 0;
    int each = micros * sh->stages_each; /* such passes of a virtual worker */
    for (int i = 0; i < n; i++) {
        if (passes[i].back != LS_BACK_PARAMS) {
            list[nlist++] = passes[i];
            continue;
        }
        later[nlater++] = passes[i];
        for (int k = 0; k < nlater;) {
            if (later[k].micro / micros != done / each) {
                k++;
                continue;
            }
            list[nlist++] = later[k];
            nlater--;
            for (int j = k; j < nlater; j++) later[j] = later[j + 1];
            if (++done % each == 0) k = 0; /* the next virtual worker's may begin */
        }
    }
    for (int i = 0; i < n; i++) passes[i] = list[i];
    free(list);
    free(later);
}

/* A worker's passes in another order, in which first passes wait for second ones: a layer that
 * can't be split writes its gradients in the first pass, and other layers write others of the same
 * bucket in the second one. Then the next virtual worker's first pass may come only when the sum
 * that it adds to is free. Gradients of a later stage of the worker precede those of an earlier
 * one. */
typedef struct waiting {
    const ls_plan *p;
    int worker, chunks, micros;
    bool apart;
    unsigned
        *with; /* [chunks] bits of the chunks for whose second pass a chunk's first one waits */
    int *inputs, *params; /* [chunks] micro-batches whose passes are in the list */
    ls_pass *list;
    int n;
} waiting;

/* all: the worker's passes wait as those of other workers do, which send it parts of sums or take
 * them. Returns: does any wait? */
static bool find_waiting(waiting *x, bool all) {
    const ls_share *sh = &x->p->share;
    const int *touched = NULL;
    bool elsewhere = false;
    unsigned *first =
        LS_NEW_ARRAY(unsigned, (size_t)sh->nbuckets); /* chunks that write in passes */
    unsigned *second = LS_NEW_ARRAY(unsigned, (size_t)sh->nbuckets), any = 0;
    for (int l = 0; l < sh->model->nlayers; l++) {
        int n = ls_share_touched(sh, l, &touched);
        unsigned *in = ls_share_writes_in(sh, l) == LS_BACK_INPUTS ? first : second;
        elsewhere = elsewhere || (n && in == first);
        if (ls_share_runner(sh, x->worker, l) != x->worker) continue;
        for (int j = 0; j < n; j++) in[touched[j]] |= 1u << sh->stage_of[l] / sh->pipe;
    }
    for (int k = 0; k < sh->nbuckets; k++)
        for (int c = 0; c < x->chunks; c++)
            if (first[k] >> c & 1) x->with[c] |= second[k] | (first[k] & ~(1u << c));
    all = all && elsewhere;
    for (int c = 0; c < x->chunks; c++) {
        if (all || (x->with[c] && x->apart)) x->with[c] = (1u << x->chunks) - 1;
        any |= x->with[c];
    }
    x->apart = x->apart || all;
    free(first);
    free(second);
    return any;
}

/* The last virtual worker that must be done before the i-th may add to its sum. */
static int last_before(const waiting *x, int i) {
    int slot = 0, other = 0, last = i - 1;
    ls_share_fold(&x->p->share, x->worker, i, &slot);
    for (; !x->apart && last >= 0; last--) {
        ls_share_fold(&x->p->share, x->worker, last, &other);
        if (other >= slot) break;
    }
    return last;
}

/* Appends the passes of a kind up to a micro-batch, each after those for which it waits. */
static void add_waiting(waiting *x, ls_pass pass) {
    bool params = pass.back == LS_BACK_PARAMS;
    int *next = params ? &x->params[pass.chunk] : &x->inputs[pass.chunk];
    for (; *next <= pass.micro; ++*next) {
        ls_pass own = {true, pass.chunk, *next, pass.back};
        int done = (last_before(x, own.micro / x->micros) + 1) * x->micros;
        if (params) add_waiting(x, (ls_pass){true, own.chunk, own.micro, LS_BACK_INPUTS});
        for (int m = 0; !params && m <= own.micro; m++)
            for (int c = x->chunks - 1; c >= 0; c--)
                if (x->with[own.chunk] >> c & 1 && (m < done || c > own.chunk))
                    add_waiting(x, (ls_pass){true, c, m, LS_BACK_PARAMS});
        x->list[x->n++] = own;
    }
}

static void let_wait(waiting x, bool all, ls_pass *passes, int n) {
    size_t chunks = (size_t)x.chunks;
    x.with = LS_NEW_ARRAY(unsigned, chunks);
    x.inputs = LS_NEW_ARRAY(int, chunks);
    x.params = LS_NEW_ARRAY(int, chunks);
    x.list = LS_NEW_ARRAY(ls_pass, (size_t)n);
    bool any = find_waiting(&x, all);
    for (int i = 0; any && i < n; i++)
        if (passes[i].backward)
            add_waiting(&x, passes[i]);
        else
            x.list[x.n++] = passes[i];
    for (int i = 0; i < x.n; i++) passes[i] = x.list[i];
    free(x.with);
    free(x.inputs);
    free(x.params);
    free(x.list);
}

/* In a pipeline, passes through the worker's stages. */
static void add_passes(ls_plan *to, const ls_plan *p, int worker, int micros, bool apart) {
    const ls_share *sh = &p->share;
    ls_pipe_schedule s = {.kind = sh->config->schedule,
                          .workers = sh->pipe,
                          .chunks = sh->stages_each,
                          .micros = micros};
    int place = sh->workers[worker].cell / sh->beside, n = ls_pipe_npasses(&s);
    ls_pass *passes = LS_NEW_ARRAY(ls_pass, (size_t)n);
    ls_pipe_list(&s, place, passes);
    waiting x = {.p = p, .worker = worker, .chunks = s.chunks, .micros = sh->micros};
    x.apart = s.chunks > 1 && (apart || shares_bucket(p, worker));
    if (ls_pipe_splits(s.kind) && x.apart) keep_apart(p, passes, n);
    if (ls_pipe_splits(s.kind)) let_wait(x, apart, passes, n);
    for (int i = 0; i < n; i++) {
        int first = 0, end = 0;
        ls_share_stage_layers(sh, ls_pipe_stage(&s, place, passes[i].chunk), &first, &end);
        ls_action base = micro_at(p, worker, passes[i].micro);
        if (passes[i].backward)
            add_backward(to, p, base, passes[i].back, first, end);
        else
            add_forward(to, p, base, first, end);
    }
    free(passes);
}

/* Appends everything that `worker` computes to the scratch plan `to`. */
static void add_worker(ls_plan *to, const ls_plan *p, int worker, bool apart) {
    const ls_share *sh = &p->share;
    int n = sh->workers[worker].nvws * sh->micros, layers = sh->model->nlayers;
    ls_plan_append(to, &(ls_action){.kind = LS_LOAD, .worker = worker});
    if (sh->ncells > 1) {
        add_passes(to, p, worker, n, apart);
        return;
    }
    for (int k = 0; k < n; k++) {
        ls_action base = micro_at(p, worker, k);
        add_forward(to, p, base, 0, layers);
        add_backward(to, p, base, LS_BACK_ALL, 0, layers);
    }
}

void ls_plan_take_turns(ls_plan *p, ls_plan *lists) {
    const ls_share *sh = &p->share;
    int n = sh->nworkers, most = 0;
    p->nactions = 0;
    for (int w = 0; w < n; w++)
        if (lists[w].nactions > most) most = lists[w].nactions;
    for (int i = 0; i < most && sh->ncells == 1; i++)
        for (int w = 0; w < n; w++)
            if (i < lists[w].nactions) ls_plan_append(p, &lists[w].actions[i]);
    for (int w = 0; w < n && sh->ncells > 1; w++)
        for (int i = 0; i < lists[w].nactions; i++) ls_plan_append(p, &lists[w].actions[i]);
    for (int w = 0; w < n; w++) free(lists[w].actions);
}

void ls_plan_order_plain(ls_plan *p, bool apart) {
    const ls_share *sh = &p->share;
    ls_plan *lists = LS_NEW_ARRAY(ls_plan, (size_t)sh->nworkers);
    for (int w = 0; w < sh->nworkers; w++) add_worker(&lists[w], p, w, apart);
    ls_plan_take_turns(p, lists);
    free(lists);
}
