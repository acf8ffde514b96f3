/* memory.c - see memory.h.
 *
 * Most memory is in use from the beginning to the end of a step. Gathered parameters, and gradients
 * that are freed once they are summed, are tracked from their first use to their Free.
 */
#include "plan/memory.h"

#include <stdlib.h>

#include "base/plural.h"
#include "base/wrap.h"
#include "share/codes.h"
#include "share/mesh.h"

static const char *const names[LS_NPURPOSES] = {
    [LS_MEM_PARAMS] = "parameters",
    [LS_MEM_FROZEN] = "frozen parameters",
    [LS_MEM_GRADS] = "gradients",
    [LS_MEM_ERRORS] = "compression errors",
    [LS_MEM_CODES] = "codes",
    [LS_MEM_OPTIMIZER] = "optimizer states",
    [LS_MEM_WIDE] = "sums of micro-batches",
    [LS_MEM_ACTIVATIONS] = "activations",
    [LS_MEM_WORK] = "work of a layer",
    [LS_MEM_SCRATCH] = "scratch of threads",
    [LS_MEM_WRITING] = "keys and values",
    [LS_MEM_SAMPLES] = "samples",
    [LS_MEM_SUMS] = "norms and losses",
    [LS_MEM_ROOM] = "update of a parameter",
    [LS_MEM_ARRIVALS] = "neighbours' parameters",
};

const char *ls_purpose_name(ls_purpose p) { return names[p]; }

ls_purpose ls_memory_worst(const ls_memory *m) {
    int worst = 0;
    for (int i = 1; i < LS_NPURPOSES; i++)
        if (m->nbytes[i] > m->nbytes[worst]) worst = i;
    return (ls_purpose)worst;
}

/* The bytes of the errors of the virtual workers that a worker runs. */
static size_t own_errors_nbytes(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    if (!sh->has_errors) return 0;
    return 2 * (size_t)sh->workers[worker].nvws * sh->error_floats * sizeof(float);
}

/* ---- the table ---- */

typedef struct walk {
    const ls_plan *p;
    int worker;
    bool one;
    bool *live;    /* [nbuffers] */
    size_t now[2]; /* live bytes of transient parameters and gradients */
    size_t most[2], both;
    size_t late; /* freed by the latest reduction, which may still be running (project.c) */
    int action, peak_action;
} walk;

/* 0: the buffer counts as parameters, 1: as gradients, -1: as neither. */
static int kind_of(const walk *w, int buffer, size_t *nbytes_p) {
    ls_buffer b = ls_plan_buffer_of(w->p, buffer);
    *nbytes_p = ls_plan_buffer_nbytes(w->p, buffer, w->worker);
    if (!ls_plan_transient(w->p, b)) return -1;
    if (b.kind == LS_BUF_PARAM) return w->one ? -1 : 0;
    return b.kind == LS_BUF_GRAD ? 1 : -1;
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    size_t nbytes = 0;
    int kind = kind_of(w, buffer, &nbytes);
    if (kind < 0 || how == LS_USE_READ || w->live[buffer]) return;
    w->live[buffer] = true;
    w->now[kind] += nbytes;
    if (w->now[kind] > w->most[kind]) w->most[kind] = w->now[kind];
    if (w->now[0] + w->now[1] <= w->both) return;
    w->both = w->now[0] + w->now[1];
    w->peak_action = w->action;
}

static void on_free(walk *w, int buffer) {
    size_t nbytes = 0;
    int kind = kind_of(w, buffer, &nbytes);
    if (kind < 0 || !w->live[buffer]) return;
    w->live[buffer] = false;
    if (kind == 1)
        w->late += nbytes;
    else
        w->now[kind] -= nbytes;
}

static void follow(walk *w) {
    const ls_plan *p = w->p;
    for (w->action = 0; w->action < p->nactions; w->action++) {
        const ls_action *a = &p->actions[w->action];
        if (!ls_action_concerns(a, w->worker)) continue;
        if (ls_action_reduces(a)) {
            w->now[1] -= w->late;
            w->late = 0;
        }
        if (a->kind == LS_FREE)
            on_free(w, a->buffer);
        else
            ls_action_uses(p, a, w->worker, on_use, w);
    }
}

/* The worker with the most sums: no other one of its cell needs more. */
static int neediest(const ls_plan *p) {
    const ls_share *sh = &p->share;
    int most = 0;
    for (int i = 1; i < sh->data; i++) {
        int w = ls_share_worker(sh, 0, i);
        if (sh->workers[w].nslots > sh->workers[most].nslots) most = w;
    }
    return most;
}

/* The number of elements that a worker updates. */
static size_t updated_count(const ls_plan *p, int worker) {
    size_t own = 0;
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range s = ls_share_owned(&p->share, k, worker);
        own += s.end - s.first;
    }
    return own;
}

/* The floats of a flat buffer that a worker uses, but for those of other cells. */
static size_t all_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    const ls_worker_share *x = &sh->workers[worker];
    size_t own = 0;
    bool divides = sh->divides;
    for (int k = 0; divides && k < sh->nbuckets; k++)
        if (ls_share_has(sh, k, worker)) own += sh->buckets[k].end - sh->buckets[k].first;
    if (divides) return own;
    return (size_t)(1 + x->end_island - x->first_island) * sh->segment_floats;
}

/* The floats of all gradient sums of these buckets. */
static size_t sums_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t n = 0;
    if (sh->nchunks == 1) return (size_t)sh->workers[worker].nslots * all_count(p, worker);
    for (int k = 0; k < sh->nbuckets; k++)
        if (ls_share_has(sh, k, worker))
            n += (size_t)ls_share_bucket_slots(sh, k, worker) *
                 (sh->buckets[k].end - sh->buckets[k].first);
    return n;
}

/* Another cell's bucket whose parameters it has, and adds gradients to. */
static bool is_foreign(const ls_plan *p, int bucket, int worker) {
    const ls_share *sh = &p->share;
    const ls_worker_share *x = &sh->workers[worker];
    int chunk = sh->buckets[bucket].chunk;
    if (!sh->divides || ls_share_has(sh, bucket, worker)) return false;
    return (chunk < 0 || (chunk >= x->first_chunk && chunk < x->end_chunk)) &&
           ls_share_touches(sh, bucket, x->cell);
}

static size_t foreign_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t sum = 0;
    for (int k = 0; k < sh->nbuckets; k++)
        if (is_foreign(p, k, worker)) sum += sh->buckets[k].end - sh->buckets[k].first;
    return sum;
}

/* The floats of the sums over micro-batches: one for each of the worker's chunks. */
static size_t wide_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    const ls_worker_share *x = &sh->workers[worker];
    size_t n = 0;
    if (!sh->wide) return 0;
    if (sh->nchunks == 1) return all_count(p, worker) + foreign_count(p, worker);
    for (int k = 0; k < sh->nbuckets; k++) {
        const ls_bucket *b = &sh->buckets[k];
        size_t chunks = b->chunk < 0 ? (size_t)(x->end_chunk - x->first_chunk) : 1;
        if (ls_share_has(sh, k, worker) || is_foreign(p, k, worker))
            n += chunks * (b->end - b->first);
    }
    return n;
}

/* What other cells have sent of its own gradients. */
static size_t inbox_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t sum = 0;
    int own = sh->workers[worker].cell;
    for (int k = 0; sh->ninbox > 0 && k < sh->nbuckets; k++)
        for (int cell = 0; ls_share_has(sh, k, worker) && cell < sh->ncells; cell++)
            if (!ls_share_has(sh, k, ls_share_worker(sh, cell, 0)) &&
                ls_share_receiver(sh, k, cell) == own) {
                ls_range part = ls_share_touched_part(sh, k, cell);
                sum += part.end - part.first;
            }
    return sum * (size_t)sh->ninbox;
}

/* The number of parameters that a worker holds throughout the step. */
static size_t held_count(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t held = foreign_count(p, worker);
    for (int k = 0; k < sh->nbuckets; k++) {
        if (!ls_share_has(sh, k, worker)) continue;
        ls_range b =
            sh->buckets[k].is_gathered ? ls_share_shard(sh, k, worker) : ls_share_range(sh, k);
        held += b.end - b.first;
    }
    return held;
}

/* What is in use throughout the step. */
static void count_state(const ls_plan *p, const ls_memory_config *c, ls_memory *m) {
    const ls_share *sh = &p->share;
    size_t all = all_count(p, m->worker), own = ls_share_shards_count(&p->share, m->worker);
    size_t param = ls_dtype_size(sh->compute), grad = ls_dtype_size(sh->reduce);
    size_t state = (size_t)sh->nflats * sizeof(float);
    size_t slots = (size_t)sh->workers[m->worker].nslots, sums = (size_t)sh->nsums;
    m->nbytes[LS_MEM_PARAMS] = (c->one ? own : held_count(p, m->worker)) * param;
    m->nbytes[LS_MEM_GRADS] =
        (ls_plan_transient(p, (ls_buffer){.kind = LS_BUF_GRAD}) ? sums * own
                                                                : sums_count(p, m->worker)) *
        grad;
    m->nbytes[LS_MEM_GRADS] +=
        (slots * foreign_count(p, m->worker) + inbox_count(p, m->worker)) * grad;
    size_t frozen = c->frozen_nbytes ? c->frozen_nbytes : sh->nbytes.frozen;
    m->nbytes[LS_MEM_FROZEN] = frozen / (size_t)(c->near ? c->near : 1);
    m->nbytes[LS_MEM_WIDE] = wide_count(p, m->worker) * sizeof(float);
    m->nbytes[LS_MEM_CODES] =
        ls_share_own_codes_nbytes(sh, m->worker) + ls_share_all_codes_nbytes(sh, m->worker) +
        ls_share_sent_codes_nbytes(sh, m->worker) + ls_share_factors_nbytes(sh, m->worker);
    m->nbytes[LS_MEM_ERRORS] = own_errors_nbytes(p, m->worker);
    m->nbytes[LS_MEM_OPTIMIZER] = (sh->shards_moments ? own : all) * state;
    if (!c->in_file) return;
    m->file = m->nbytes[LS_MEM_OPTIMIZER];
    m->nbytes[LS_MEM_OPTIMIZER] = 0;
}

static size_t samples_count(const ls_plan *p, int worker) {
    return (size_t)(p->share.batch / p->share.V) * (size_t)p->share.workers[worker].nvws;
}

/* A sum waits at each level of the tree (coll/algo/tree.h). */
static size_t sums_nbytes(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t most = 0, levels = 2;
    if (!sh->sums_on_device || sh->nworkers == 1) return 0;
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range own = ls_share_shard(sh, k, worker);
        if (own.end - own.first > most) most = own.end - own.first;
    }
    if (most > LS_DEVICE_PIECE) most = LS_DEVICE_PIECE;
    for (int n = 1; n<sh->V; n = n> sh->V / 2 ? sh->V : 2 * n) levels++;
    return levels * most * sizeof(float);
}

/* A worker's shard of all sums of the bucket that has most of them. */
static size_t incoming_nbytes(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    size_t most = 0;
    for (int k = 0; sh->receives && k < sh->nbuckets; k++) {
        ls_range own = ls_share_shard(sh, k, worker);
        size_t sums = 0;
        for (int w = 0; w < sh->nworkers; w++) sums += (size_t)ls_share_sums(sh, k, w);
        if (sums * (own.end - own.first) > most) most = sums * (own.end - own.first);
    }
    return most * sizeof(float);
}

/* The host's memory for activations: beside a device, as much as there, for evaluations. */
static size_t arena_nbytes(const ls_plan *p, int worker) {
    size_t most = 0;
    for (int there = 0; there <= p->share.on_device; there++) {
        ls_arena_plan arena;
        ls_plan_arena(p, worker, there, &arena);
        if (arena.nbytes > most) most = arena.nbytes;
        ls_arena_plan_free(&arena);
    }
    return most;
}

ls_device_memory ls_plan_device_memory(const ls_plan *p, int worker) {
    const ls_share *sh = &p->share;
    ls_arena_plan arena;
    if (!sh->on_device) return (ls_device_memory){0};
    ls_plan_arena(p, worker, true, &arena);
    ls_device_memory m = {
        .params = sh->floats * sizeof(float),
        .state =
            sh->state_on_device ? (size_t)sh->nflats * updated_count(p, worker) * sizeof(float) : 0,
        .sums = sums_nbytes(p, worker),
        .incoming = incoming_nbytes(p, worker),
        .norms = sh->state_on_device ? sh->floats / LS_BLOCK * sizeof(double) : 0,
        .grads = (size_t)sh->workers[worker].all_slots * sh->floats * sizeof(float),
        .arena = arena.nbytes,
        .work = ls_plan_work_nbytes(p, true),
        .samples = samples_count(p, worker) * sh->model->sample_nbytes,
        .losses =
            (size_t)(sh->model->nlosses + sh->model->nnotes) * (size_t)sh->batch * sizeof(double),
        .held = ls_model_held_floats(sh->model) * sizeof(float)};
    if (ls_weighing_is_on(&sh->model->weighing)) m.weights = (size_t)sh->batch * sizeof(double);
    if (ls_dtype_is_half(sh->compute) || ls_dtype_is_half(sh->reduce))
        m.halves = (m.params + m.grads + m.arena) / 2;
    ls_arena_plan_free(&arena);
    return m;
}

static size_t device_nbytes(const ls_plan *p, int worker) {
    ls_device_memory m = ls_plan_device_memory(p, worker);
    return m.params + m.state + m.grads + m.arena + m.work + m.samples + m.losses + m.norms +
           m.weights + m.held + m.sums + m.incoming + m.halves;
}

static ls_memory memory_of(const ls_plan *p, const ls_memory_config *c, int worker) {
    const ls_share *sh = &p->share;
    const ls_model *model = sh->model;
    ls_memory m = {.worker = worker, .peak_action = -1};
    walk w = {.p = p, .worker = m.worker, .one = c->one, .peak_action = -1};
    w.live = LS_NEW_ARRAY(bool, (size_t)ls_plan_nbuffers(p));
    follow(&w);
    free(w.live);
    size_t arena = arena_nbytes(p, m.worker);
    count_state(p, c, &m);
    m.nbytes[LS_MEM_ACTIVATIONS] = arena;
    m.nbytes[LS_MEM_WORK] = ls_plan_work_nbytes(p, false);
    m.nbytes[LS_MEM_SCRATCH] = ls_compute_nbytes(c->threads, ls_model_scratch_floats(model));
    if (c->writing_nbytes > arena) m.nbytes[LS_MEM_WRITING] = c->writing_nbytes;
    m.nbytes[LS_MEM_SAMPLES] = 2 * (samples_count(p, m.worker) + 1) * model->sample_nbytes;
    m.nbytes[LS_MEM_SUMS] = 2 * sh->nbytes.scalars;
    m.nbytes[LS_MEM_ROOM] = sh->nbytes.room;
    m.device = device_nbytes(p, worker);
    if (sh->sync.gossips) m.nbytes[LS_MEM_ARRIVALS] = ls_share_received(sh) * sizeof(float);
    m.peak = w.both;
    for (int i = 0; i < LS_NPURPOSES; i++) m.peak += m.nbytes[i];
    m.peak_action = w.peak_action;
    for (int i = 0; i < 2; i++) {
        m.extra[i] = w.most[i];
        m.nbytes[i ? LS_MEM_GRADS : LS_MEM_PARAMS] += w.most[i];
    }
    return m;
}

/* In a pipeline each cell has another part of the model. */
void ls_plan_memory(const ls_plan *p, const ls_memory_config *c, ls_memory *m_p) {
    const ls_share *sh = &p->share;
    int worker = neediest(p);
    *m_p = memory_of(p, c, worker);
    for (int cell = 1; cell < sh->ncells; cell++) {
        ls_memory m = memory_of(p, c, ls_share_worker(sh, cell, sh->workers[worker].place));
        if (m.peak > m_p->peak) *m_p = m;
    }
}

enum { NOTE_COLUMN = 39 };

/* The names of the states, and where they are. */
static void note_states(const ls_plan *p, const ls_memory *m, ls_buf *out) {
    const ls_share *sh = &p->share;
    size_t start = out->len;
    if (sh->has_masters) ls_buf_printf(out, "f32 weights");
    if (sh->has_masters && ls_optim_nstates(&sh->optim) > 0) ls_buf_printf(out, ", ");
    ls_optim_list_states(&sh->optim, out);
    if (out->len == start) return;
    if (m->file)
        ls_buf_printf(out, ", in a file: %.3f MB", (double)m->file / 1e6);
    else if (sh->nworkers > 1)
        ls_buf_printf(out, sh->shards_moments ? ", of the own shard" : ", of all parameters");
}

static void note(const ls_plan *p, const ls_memory_config *c, const ls_memory *m, ls_purpose what,
                 ls_buf *out) {
    const ls_share *sh = &p->share;
    bool some = sh->nworkers > 1;
    if (what == LS_MEM_PARAMS && m->extra[0])
        ls_buf_printf(out, "the own shard, and at most %.3f MB gathered",
                      (double)m->extra[0] / 1e6);
    else if (what == LS_MEM_PARAMS && c->one && some)
        ls_buf_printf(out, "a worker's part of the one copy that all workers of the host share");
    if (what == LS_MEM_FROZEN && c->near > 1)
        ls_buf_printf(out, "a worker's part of the one copy that all workers of the host share");
    if (what == LS_MEM_GRADS && m->extra[1])
        ls_buf_printf(out, "the own shard, and at most %.3f MB not summed yet",
                      (double)m->extra[1] / 1e6);
    else if (what == LS_MEM_GRADS && sh->workers[m->worker].nslots > 1)
        ls_buf_printf(out, "%d sums, of the tree over virtual workers",
                      sh->workers[m->worker].nslots);
    if (what == LS_MEM_WIDE && m->nbytes[what])
        ls_buf_printf(out, "gradients in f32 until they are complete");
    if (what == LS_MEM_ERRORS)
        ls_buf_printf(out, "before and after a step, of %d virtual worker%s",
                      sh->workers[m->worker].nvws, ls_plural(sh->workers[m->worker].nvws));
    if (what == LS_MEM_CODES)
        ls_buf_printf(out, sh->has_factors
                               ? "factors, and their sums"
                               : "its own, and those of all virtual workers that it decodes");
    if (what == LS_MEM_OPTIMIZER) note_states(p, m, out);
    if (what == LS_MEM_SCRATCH) ls_buf_printf(out, "packed panels, attention scores");
    if (what == LS_MEM_WRITING) ls_buf_printf(out, "while it writes after train.sample_prompts");
    if (what == LS_MEM_ROOM) ls_buf_printf(out, "the largest that the optimizer needs whole");
    if (what == LS_MEM_ARRIVALS) ls_buf_printf(out, "two buckets for each of its replicas");
    if (what == LS_MEM_SAMPLES) ls_buf_printf(out, "this step's and the next");
}

/* One line of the table, with a note that may continue below. */
static void put_row(const char *name, size_t nbytes, const char *text, ls_buf *out) {
    ls_buf_printf(out, "  %-22s %12.3f  ", name, (double)nbytes / 1e6);
    ls_buf_wrap(out, text ? text : "", NOTE_COLUMN, NOTE_COLUMN);
}

/* Left out where there are none. */
static bool is_rare(ls_purpose p) {
    return p == LS_MEM_FROZEN || p == LS_MEM_WRITING || p == LS_MEM_ERRORS || p == LS_MEM_CODES ||
           p == LS_MEM_ROOM || p == LS_MEM_ARRIVALS;
}

/* Tables of which parameters are windows are beside the workers. Hosts divide them. */
static void put_tables(const ls_plan *p, const ls_memory_config *c, ls_buf *out) {
    const ls_share *sh = &p->share;
    ls_buf text = {0};
    bool states = ls_optim_nstates(&sh->optim) > 0;
    int all = sh->nworkers, near = c->table_workers;
    double part = near && near < all ? (double)near / all : 1;
    if (part < 1) ls_buf_printf(&text, "%d/%d of the ", near, all);
    ls_buf_printf(&text, "one copy of weights%s", states ? " and " : "");
    ls_optim_list_states(&sh->optim, &text);
    put_row("tables of a host", (size_t)((double)sh->nbytes.tables * part), text.data, out);
    ls_buf_free(&text);
}

void ls_memory_print(const ls_plan *p, const ls_memory_config *c, const ls_memory *m, ls_buf *out) {
    const ls_share *sh = &p->share;
    ls_buf text = {0};
    ls_buf_printf(out, "  memory of a worker, MB\n");
    for (int i = 0; i < LS_NPURPOSES; i++) {
        if (is_rare((ls_purpose)i) && !m->nbytes[i]) continue;
        text.len = 0;
        ls_buf_append(&text, "", 0);
        note(p, c, m, (ls_purpose)i, &text);
        put_row(names[i], m->nbytes[i], text.data, out);
    }
    text.len = 0;
    ls_buf_append(&text, "", 0);
    if (m->peak_action >= 0) ls_buf_printf(&text, "in action %d", m->peak_action);
    put_row("at most at one time", m->peak, text.data, out);
    put_row(sh->nworkers == 1 ? "1 worker" : "all workers", m->peak * (size_t)sh->nworkers, NULL,
            out);
    if (sh->nbytes.tables) put_tables(p, c, out);
    if (m->device)
        put_row("device of a worker", m->device,
                sh->state_on_device ? "parameters, optimizer, gradients, activations"
                                    : "parameters, gradients, activations",
                out);
    ls_buf_free(&text);
}
