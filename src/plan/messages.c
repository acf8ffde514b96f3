/* messages.c - the pass that connects the workers who have a model together.
 *
 * It takes the lists of all workers and makes one order of them: workers take turns, action by
 * action, and one whose next action needs a message that was not sent yet waits. After the Forward
 * of a layer that layers of another cell read its output is sent there; after the last Backward of
 * these layers the gradient is sent back. So each Send stands where its sender is done, and no
 * order in which actions run can deadlock.
 *
 * What a cell adds to the gradient of another cell's bucket (share/mesh.h) is sent after the
 * virtual worker's last Backward there, and waits in an inbox until the bucket's own cell comes to
 * that virtual worker: only then is the sum free that it belongs to.
 */
#include <stdlib.h>

#include "plan/plan.h"
#include "share/mesh.h"

typedef struct walk {
    ls_plan *p;     /* its actions: the lists */
    ls_plan to;     /* the order */
    int *at, *stop; /* [nworkers] the next action of each list, and its end */
    int *ahead;     /* [nlayers][data] micro-batches whose value has been sent */
    int *back;      /* [nlayers][data] whose value's gradient has been sent back */
    int *parts;     /* [nworkers][nbuckets][nchunks] virtual workers whose part of the bucket it has
                     * sent */
} walk;

static int cell(const walk *w, int layer, int worker) {
    return layer * w->p->share.data + w->p->share.workers[worker].place;
}

static int *parts_of(const walk *w, int worker, int bucket, int chunk) {
    const ls_share *sh = &w->p->share;
    return &w->parts[(worker * sh->nbuckets + bucket) * sh->nchunks + chunk];
}

/* Does the action complete gradients of a bucket that other cells have parts of? */
static bool completes(const ls_plan *p, const ls_action *a, int bucket) {
    const ls_share *sh = &p->share;
    return sh->buckets[bucket].shared &&
           ls_share_closer(sh, bucket, ls_share_layer_chunk(sh, a->layer)) == a->layer;
}

/* Have the other cells sent their parts of what this action completes? */
static bool has_parts(const walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    const int *touched = NULL;
    int n = ls_share_touched(sh, a->layer, &touched), chunk = ls_share_layer_chunk(sh, a->layer);
    for (int j = 0; j < n; j++)
        for (int cell = 0; completes(p, a, touched[j]) && cell < sh->ncells; cell++) {
            int from = ls_share_worker(sh, cell, sh->workers[a->worker].place);
            if (!ls_share_sends_part(sh, touched[j], cell, chunk)) continue;
            if (*parts_of(w, from, touched[j], chunk) <= ls_share_vw_index(sh, a->worker, a->vw))
                return false;
        }
    return true;
}

/* Has a value come that another cell computes, of a worker's k-th micro-batch? */
static bool has_come(const walk *w, const ls_action *a, int layer, int k) {
    return !ls_share_crosses(&w->p->share, layer) || w->ahead[cell(w, layer, a->worker)] > k;
}

/* Has the next action of a worker all that it needs of other cells? What a layer computes is sent
 * at once, with the scores that choose its rows. */
static bool may_run(const walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    if (!ls_action_calls_layer(a)) return true;
    if (a->kind == LS_BACKWARD && a->last && !has_parts(w, a)) return false;
    const ls_layer *l = &sh->model->layers[a->layer];
    int k = ls_share_sequence(sh, a->worker, a->vw, a->micro);
    bool enters = a->kind == LS_FORWARD || l->traits.loss;
    for (int i = 0; enters && i < l->ninputs; i++)
        if (!has_come(w, a, l->inputs[i], k)) return false;
    bool chooses =
        enters && l->chosen.width && !l->chosen.gradient && ls_share_crosses(sh, a->layer);
    if (chooses && !has_come(w, a, l->chosen.scores, k)) return false;
    bool back = a->kind == LS_BACKWARD && a->back != LS_BACK_PARAMS;
    return !back || !ls_share_crosses(sh, a->layer) || w->back[cell(w, a->layer, a->worker)] > k;
}

/* buffer: its kind until the slots are known. */
static void send(walk *w, const ls_action *a, ls_buffer_kind what, int layer, int to) {
    const ls_layer *l = &w->p->share.model->layers[layer];
    int64_t floats = ls_share_samples(&w->p->share, a->micro) * (int64_t)l->y_floats;
    ls_plan_append(
        &w->to, &(ls_action){.kind = LS_SEND,
                             .worker = a->worker,
                             .peer = to,
                             .vw = a->vw,
                             .micro = a->micro,
                             .layer = layer,
                             .buffer = (int)what,
                             .bucket = LS_NO_BUCKET,
                             .comm.nbytes = floats * (int64_t)ls_dtype_size(w->p->share.compute)});
}

/* The parts of other cells' buckets that are complete with this Backward. */
static void send_parts(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    const int *touched = NULL;
    int n = ls_share_touched(sh, a->layer, &touched), chunk = ls_share_layer_chunk(sh, a->layer);
    for (int j = 0; j < n; j++) {
        int k = touched[j], cell = sh->workers[a->worker].cell;
        ls_range part = ls_share_touched_part(sh, k, cell);
        if (ls_share_has(sh, k, a->worker) || !ls_share_closes(sh, k, a->layer)) continue;
        ++*parts_of(w, a->worker, k, chunk);
        ls_plan_append(&w->to,
                       &(ls_action){.kind = LS_SEND,
                                    .worker = a->worker,
                                    .peer = ls_share_worker(sh, ls_share_receiver(sh, k, cell),
                                                            sh->workers[a->worker].place),
                                    .vw = a->vw,
                                    .micro = -1,
                                    .chunk = chunk,
                                    .bucket = k,
                                    .slot = a->slot,
                                    .part = part,
                                    .buffer = LS_BUF_INBOX,
                                    .comm.nbytes = (int64_t)((part.end - part.first) *
                                                             ls_dtype_size(sh->reduce))});
    }
}

/* The parts of other cells, before the Backward that completes a bucket. */
static void take_parts(walk *w, const ls_action *a) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    const int *touched = NULL;
    int n = ls_share_touched(sh, a->layer, &touched), chunk = ls_share_layer_chunk(sh, a->layer);
    for (int j = 0; j < n; j++) {
        int k = touched[j];
        for (int cell = 0; completes(p, a, k) && cell < sh->ncells; cell++) {
            if (!ls_share_sends_part(sh, k, cell, chunk)) continue;
            ls_plan_append(&w->to, &(ls_action){.kind = LS_TAKE,
                                                .worker = a->worker,
                                                .peer = ls_share_worker(
                                                    sh, cell, sh->workers[a->worker].place),
                                                .vw = a->vw,
                                                .micro = -1,
                                                .chunk = chunk,
                                                .bucket = k,
                                                .slot = a->slot,
                                                .part = ls_share_touched_part(sh, k, cell),
                                                .buffer = LS_BUF_INBOX});
        }
    }
}

/* The gradients that are complete with this Backward. */
static void send_back(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    const ls_layer *l = &sh->model->layers[a->layer];
    for (int i = 0; i < l->ninputs; i++) {
        int v = l->inputs[i];
        bool again = i > 0 && l->inputs[0] == v;
        bool is_last = ls_share_crosses(sh, v) && sh->crossings[v].reader == a->layer;
        if (!is_last || again || sh->model->layers[v].link.is_constant) continue;
        send(w, a, LS_BUF_DACT, v, ls_share_runner(sh, a->worker, v));
        w->back[cell(w, v, a->worker)]++;
    }
}

static void run(walk *w, const ls_action *a) {
    const ls_share *sh = &w->p->share;
    bool last = a->kind == LS_BACKWARD && a->last;
    if (last) take_parts(w, a);
    ls_plan_append(&w->to, a);
    if (last) send_parts(w, a);
    if (a->kind == LS_FORWARD && ls_share_crosses(sh, a->layer)) {
        send(w, a, LS_BUF_ACT, a->layer,
             ls_share_runner(sh, a->worker, sh->crossings[a->layer].reader));
        w->ahead[cell(w, a->layer, a->worker)]++;
    }
    if (a->kind == LS_BACKWARD && a->back != LS_BACK_PARAMS) send_back(w, a);
}

static bool take_turns(walk *w) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int n = 0; n < w->p->share.nworkers; n++) {
            const ls_action *a = &w->p->actions[w->at[n]];
            if (w->at[n] == w->stop[n] || !may_run(w, a)) continue;
            run(w, a);
            w->at[n]++;
            moved = true;
        }
    }
    for (int n = 0; n < w->p->share.nworkers; n++)
        if (w->at[n] < w->stop[n]) return false;
    return true;
}

/* ---- how many slots ---- */

/* A worker's micro-batches of one chunk, in ascending order: the first and the last action of
 * each. */
typedef struct life {
    int first, last;
} life;

static void live(life *x, int at) {
    if (x->first < 0) x->first = at;
    x->last = at;
}

/* The largest window of micro-batches that are live together. A worker without a slice of its stage
 * has none. */
static int window(const life *x, int n) {
    int most = 1;
    for (int k = 0, oldest = 0; k < n; k++) {
        if (x[k].first < 0) continue;
        while (x[oldest].last < x[k].first) oldest++;
        if (k - oldest + 1 > most) most = k - oldest + 1;
    }
    return most;
}

/* A worker that has two stages in a row reads the lower one's output in place. */
static void live_below(const walk *w, const ls_action *a, life *lives, int micros, int at) {
    const ls_share *sh = &w->p->share;
    int first = 0, end = 0;
    ls_share_stage_layers(sh, sh->stage_of[a->layer], &first, &end);
    int below = first - 1;
    if (below < 0 || ls_share_crosses(sh, below)) return;
    int chunk = sh->stage_of[below] / sh->pipe;
    live(&lives[chunk * micros + ls_share_sequence(sh, a->worker, a->vw, a->micro)], at);
}

static int count_in_flight(const walk *w) {
    const ls_share *sh = &w->p->share;
    int chunks = sh->stages_each, micros = 0, most = 1;
    for (int n = 0; n < sh->nworkers; n++)
        if (sh->workers[n].nvws > micros) micros = sh->workers[n].nvws;
    micros *= sh->micros;
    size_t cells = (size_t)sh->nworkers * (size_t)chunks * (size_t)micros;
    life *lives = LS_NEW_ARRAY(life, cells);
    for (size_t i = 0; i < cells; i++) lives[i].first = -1;
    for (int i = 0; i < w->to.nactions; i++) {
        const ls_action *a = &w->to.actions[i];
        bool message = a->kind == LS_SEND && a->micro >= 0;
        if (!message && (!ls_action_calls_layer(a) || a->micro < 0)) continue;
        int k = ls_share_sequence(sh, a->worker, a->vw, a->micro), stage = sh->stage_of[a->layer];
        int chunk = stage / sh->pipe;
        if (!message) {
            live(&lives[(a->worker * chunks + chunk) * micros + k], i);
            live_below(w, a, &lives[a->worker * chunks * micros], micros, i);
            continue;
        }
        int readers = sh->stage_of[sh->crossings[a->layer].reader];
        int own = a->buffer == LS_BUF_ACT ? stage : readers;
        int other = a->buffer == LS_BUF_ACT ? readers : stage; /* of the message's other end */
        live(&lives[(a->worker * chunks + own / sh->pipe) * micros + k], i);
        live(&lives[(a->peer * chunks + other / sh->pipe) * micros + k], i);
    }
    for (int n = 0; n < sh->nworkers; n++)
        for (int c = 0; c < chunks; c++) {
            int count = sh->workers[n].nvws * sh->micros;
            int size = window(&lives[(n * chunks + c) * micros], count);
            if (size > most) most = size;
        }
    free(lives);
    return most;
}

/* Virtual workers of which a bucket's parts wait at one time, at most. */
static int count_inbox(const walk *w) {
    const ls_share *sh = &w->p->share;
    int chunks = sh->nchunks, most = 0;
    int *taken = LS_NEW_ARRAY(int, (size_t)(sh->nworkers * sh->nbuckets * chunks));
    for (int i = 0; i < w->to.nactions; i++) {
        const ls_action *a = &w->to.actions[i];
        bool message = a->kind == LS_SEND && a->buffer == LS_BUF_INBOX;
        if (!message && a->kind != LS_TAKE) continue;
        int at = ls_share_vw_index(sh, a->worker, a->vw) + 1;
        int worker = message ? a->peer : a->worker;
        int *n = &taken[(worker * sh->nbuckets + a->bucket) * chunks + a->chunk];
        if (message && at - *n > most) most = at - *n;
        if (!message) *n = at;
    }
    free(taken);
    return most * sh->most_chunks;
}

/* The place of a part in the inbox: virtual workers take turns, with a place for each chunk. */
static int place_of_part(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    int first = sh->workers[a->worker].first_chunk, most = sh->most_chunks;
    int turn = ls_share_vw_index(sh, a->worker, a->vw) % (sh->ninbox / most);
    return turn * most + a->chunk - first;
}

static void number_buffers(ls_plan *p) {
    for (int i = 0; i < p->nactions; i++) {
        ls_action *a = &p->actions[i];
        if (a->kind != LS_SEND && a->kind != LS_TAKE) continue;
        if (a->buffer == LS_BUF_INBOX)
            a->buffer = ls_plan_buffer(p, LS_BUF_INBOX, a->bucket, place_of_part(p, a));
        else
            a->buffer = ls_plan_layer_buffer(p, (ls_buffer_kind)a->buffer, a, a->layer);
    }
}

static void begin(walk *w) {
    ls_plan *p = w->p;
    size_t cells = (size_t)p->share.model->nlayers * (size_t)p->share.data;
    size_t n = (size_t)p->share.nworkers;
    w->at = LS_NEW_ARRAY(int, n);
    w->stop = LS_NEW_ARRAY(int, n);
    w->ahead = LS_NEW_ARRAY(int, cells);
    w->back = LS_NEW_ARRAY(int, cells);
    w->parts = LS_NEW_ARRAY(int, n *(size_t)(p->share.nbuckets * p->share.nchunks));
    for (int i = 0; i < p->nactions; i++) w->stop[p->actions[i].worker]++;
    for (size_t i = 1; i < n; i++) {
        w->at[i] = w->stop[i - 1];
        w->stop[i] += w->at[i];
    }
}

ls_status ls_plan_add_messages(ls_plan *p, ls_error *e) {
    walk w = {.p = p, .to = *p};
    w.to.actions = NULL;
    w.to.nactions = w.to.capacity = 0;
    begin(&w);
    bool whole = take_turns(&w);
    if (whole) {
        w.to.in_flight = count_in_flight(&w);
        w.to.share.ninbox = count_inbox(&w);
        ls_plan_count_buffers(&w.to);
    }
    free(w.at);
    free(w.stop);
    free(w.ahead);
    free(w.back);
    free(w.parts);
    free(p->actions);
    *p = w.to;
    if (!whole)
        return ls_fail(
            e, LS_EINVAL,
            "parallel.schedule: in this order of passes workers of the pipeline would wait "
            "for each other for ever; use 1f1b");
    number_buffers(p);
    return LS_OK;
}

/* Each layer of attention exchanges all of its rows; or each product does. What a stage sends to
 * another one has a buffer for each micro-batch in flight. */
bool ls_plan_arrives_late(const ls_plan *p, const ls_action *a) {
    const ls_share *sh = &p->share;
    int beside = sh->beside;
    bool many = sh->context > 1 || sh->model->gathers;
    return a->kind == LS_SEND && many &&
           sh->workers[a->worker].cell / beside == sh->workers[a->peer].cell / beside &&
           ls_buffer_in_arena(ls_plan_buffer_of(p, a->buffer).kind);
}
