/* sync.c - see sync.h. */
#include "train/sync.h"

#include <stdlib.h>

#include "base/cores.h"
#include "coll/virtual.h"
#include "plan/memory.h"
#include "tensor/dtype.h"
#include "train/member.h"

/* ---- when ---- */

/* Fragment p is synchronized after its share of sync.every steps, then every sync.every steps; the
 * sum over the replicas is made sync.delay steps earlier. */
static void find_due(const ls_config *c, int64_t steps, ls_sync_due *due) {
    int64_t every = c->sync.every, n = c->sync.fragments;
    for (int p = 0; p < (int)n; p++) {
        int64_t since = steps - every * (p + 1) / n, early = since + c->sync.delay;
        if (since >= 0 && since % every == 0) due->adopt = p;
        if (early < 0 || early % every) continue;
        due->outer = p;
        due->updates = early / every;
    }
}

ls_sync_due ls_sync_due_after(const ls_config *c, int64_t steps) {
    ls_sync_due due = {.outer = LS_SYNC_NOTHING, .adopt = LS_SYNC_NOTHING};
    bool warms_up = steps <= c->sync.warmup;
    if (warms_up) return (ls_sync_due){LS_SYNC_ALL, LS_SYNC_ALL, .averages = true};
    find_due(c, steps - c->sync.warmup, &due);
    return due;
}

/* Where fragment p begins: at the first parameter that begins in its share of the floats. */
static size_t begin_of(const ls_config *c, const ls_model *m, int fragment) {
    size_t n = (size_t)c->sync.fragments, at = m->nfloats / n * (size_t)fragment;
    for (int i = 0; fragment > 0 && i < m->nparams; i++)
        if (!m->params[i].frozen && m->params[i].offset >= at) return m->params[i].offset;
    return fragment > 0 ? m->nfloats : 0;
}

void ls_sync_fragment(const ls_config *c, const ls_model *m, int fragment, size_t *first_p,
                      size_t *end_p) {
    bool all = fragment == LS_SYNC_ALL, last = fragment == c->sync.fragments - 1;
    *first_p = all ? 0 : begin_of(c, m, fragment);
    *end_p = all || last ? m->nfloats : begin_of(c, m, fragment + 1);
}

int64_t ls_sync_changes(const ls_config *c, const ls_plan *p, int64_t step) {
    if (!p->c.islands) return step + 1;
    ls_sync_due due = ls_sync_due_after(c, step + 1);
    if (due.outer != LS_SYNC_NOTHING) return 3 * step + 1;
    return due.adopt != LS_SYNC_NOTHING ? 3 * step + 2 : 3 * step + 3;
}

bool ls_sync_whole(const ls_plan *p, ls_store_note *n) {
    int each = ls_plan_changes(p);
    bool whole = n->steps % each == 0;
    n->steps /= each;
    return whole;
}

/* ---- the plans ---- */

ls_status ls_sync_plan(const ls_config *c, const ls_plan *p, ls_plan_task task, int fragment,
                       ls_plan *plan_p, ls_error *e) {
    ls_plan_config pc = p->c;
    pc.first = NULL;
    pc.task = task;
    pc.averages = fragment == LS_SYNC_ALL;
    ls_sync_fragment(c, pc.model, fragment, &pc.part_first, &pc.part_end);
    return ls_plan_make(&pc, plan_p, e);
}

/* ---- what it sends ---- */

static void count_traffic(const ls_plan *p, double times, ls_sync_traffic *t) {
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        double nbytes = times * (double)a->nbytes;
        if (a->axis == LS_AXIS_ISLAND)
            t->within += nbytes;
        else
            t->between += nbytes;
    }
}

static ls_status count_one_model(const ls_plan *p, double *sum_p, ls_error *e) {
    ls_plan_config pc = p->c;
    ls_plan one;
    pc.islands = 0;
    pc.optim.replicas = 0;
    pc.first = NULL;
    LS_TRY(ls_plan_make(&pc, &one, e));
    for (int i = 0; i < one.nactions; i++) *sum_p += (double)one.actions[i].nbytes;
    ls_plan_free(&one);
    return LS_OK;
}

ls_status ls_sync_traffic_of(const ls_config *c, const ls_plan *p, ls_sync_traffic *t_p,
                             ls_error *e) {
    ls_sync_traffic t = {0};
    count_traffic(p, 1, &t);
    for (int i = 0; i < 2 * (int)c->sync.fragments; i++) {
        ls_plan sync;
        LS_TRY(ls_sync_plan(c, p, i % 2 ? LS_TASK_ADOPT : LS_TASK_OUTER, i / 2, &sync, e));
        count_traffic(&sync, 1.0 / (double)c->sync.every, &t);
        ls_plan_free(&sync);
    }
    LS_TRY(count_one_model(p, &t.synchronous, e));
    *t_p = t;
    return LS_OK;
}

/* ---- how ---- */

ls_status ls_sync_check(const ls_plan *p, const ls_world *w, ls_error *e) {
    bool apart = ls_plan_shards_moments(p) && p->c.nworkers > 1 && !w->shares_state;
    if (!p->c.islands || !apart || !ls_plan_has_masters(p)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "sync.replicas with parallel.zero 1 and train.compute %s: the f32 weights are "
                   "sharded over workers that share no memory; use parallel.zero 0, or f32",
                   ls_dtype_name(p->c.compute));
}

/* The plan of a task for a fragment, and its executors. */
typedef struct piece {
    ls_plan plan;
    ls_exec **execs; /* [nexecs of the member]; NULL: not made yet */
    int nexecs;
} piece;

struct ls_sync {
    int npieces; /* of a task: the whole, then each fragment */
    piece *pieces[2];
};

static piece *piece_of(ls_sync *s, ls_plan_task task, int fragment) {
    return &s->pieces[task == LS_TASK_ADOPT][1 + fragment];
}

static ls_status make_exec(ls_member *m, piece *x, int i, ls_error *e) {
    const ls_config *c = &m->run->config;
    int near = ls_group_near(m->group);
    ls_exec_config ec = {.plan = &x->plan,
                         .world = &m->worlds[i],
                         .slot = m->slot,
                         .worker = ls_run_is_sequential(m->run) ? i : m->worker,
                         .threads = (int)c->parallel.threads,
                         .busy = near * (int)c->parallel.threads,
                         .cores = ls_cores_among(near),
                         .compute = ls_exec_compute(m->execs[i])};
    m->host->runtime->connect(m, &ec);
    ec.gives_up = NULL; /* what is left of a step takes no time worth saving */
    return ls_exec_create(&ec, &x->execs[i], e);
}

static ls_status make_piece(ls_member *m, piece *x, ls_plan_task task, int fragment, ls_error *e) {
    LS_TRY(ls_sync_plan(&m->run->config, &m->layout->plan, task, fragment, &x->plan, e));
    x->nexecs = m->nexecs;
    x->execs = LS_NEW_ARRAY(ls_exec *, (size_t)x->nexecs);
    for (int i = 0; i < x->nexecs; i++) LS_TRY(make_exec(m, x, i, e));
    return LS_OK;
}

static void free_piece(piece *x) {
    for (int i = 0; i < x->nexecs; i++) ls_exec_free(x->execs[i]);
    free(x->execs);
    ls_plan_free(&x->plan);
}

void ls_sync_free(ls_sync *s) {
    if (!s) return;
    for (int task = 0; task < 2; task++) {
        for (int i = 0; i < s->npieces; i++) free_piece(&s->pieces[task][i]);
        free(s->pieces[task]);
    }
    free(s);
}

static ls_sync *new_sync(const ls_config *c) {
    ls_sync *s = LS_NEW(ls_sync);
    s->npieces = 1 + (int)c->sync.fragments;
    for (int task = 0; task < 2; task++) s->pieces[task] = LS_NEW_ARRAY(piece, (size_t)s->npieces);
    return s;
}

/* Changes of the state, as in sync.h. */
static ls_status run_task(ls_member *m, ls_plan_task task, int fragment, const ls_step_in *in,
                          ls_error *e) {
    ls_step_out out;
    if (!m->sync) m->sync = new_sync(&m->run->config);
    piece *x = piece_of(m->sync, task, fragment);
    if (!x->execs) LS_TRY(make_piece(m, x, task, fragment, e));
    return ls_run_is_sequential(m->run) ? ls_exec_step_all(x->execs, in, &out, e)
                                        : ls_exec_step(x->execs[0], in, &out, e);
}

ls_status ls_sync_after(ls_member *m, const ls_step_in *in, const ls_step_out *out, int64_t changes,
                        ls_error *e) {
    const ls_config *c = &m->run->config;
    ls_sync_due due = ls_sync_due_after(c, in->step + 1);
    bool averages = due.averages || c->sync.mode == LS_SYNC_LOCAL;
    ls_step_in own = {.step = in->step,
                      .updates = due.updates,
                      .lr = averages ? 1 : c->sync.outer_lr,
                      .loss_scale = 1,
                      .training = in,
                      .trained = out};
    int64_t end = 3 * in->step + 3;
    own.changes = due.adopt == LS_SYNC_NOTHING ? end : end - 1;
    if (changes == end - 2) LS_TRY(run_task(m, LS_TASK_OUTER, due.outer, &own, e));
    own.changes = end;
    if (due.adopt == LS_SYNC_NOTHING || changes == end) return LS_OK;
    return run_task(m, LS_TASK_ADOPT, due.adopt, &own, e);
}
