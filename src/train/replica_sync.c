/* replica_sync.c - see replica_sync.h. */
#include "train/replica_sync.h"

#include <stdlib.h>

#include "share/config.h"
#include "state/round.h"
#include "train/member.h"

/* ---- when ---- */

/* Fragment p is synchronized after its share of sync.every steps, then every sync.every steps; the
 * sum over the replicas is made sync.delay steps earlier. */
static void find_due(const ls_config *c, int64_t steps, ls_sync_due *due) {
    int64_t every = ls_config_sync_every(c), n = c->sync.fragments;
    for (int p = 0; p < (int)n; p++) {
        int64_t since = steps - every * (p + 1) / n, early = since + c->sync.delay;
        if (since >= 0 && since % every == 0) due->adopt = p;
        if (early < 0 || early % every) continue;
        due->outer = p;
        due->updates = early / every;
    }
}

static void find_gossip_due(const ls_config *c, int64_t steps, ls_sync_due *due) {
    int64_t every = ls_config_sync_every(c);
    if (steps % every == 0) due->round = steps / every - 1;
    due->mean = steps > 0 && ls_config_model_step(c, steps) == steps;
}

ls_sync_due ls_sync_due_after(const ls_config *c, int64_t steps) {
    ls_sync_due due = {
        .outer = LS_SYNC_NOTHING, .adopt = LS_SYNC_NOTHING, .round = LS_SYNC_NOTHING};
    bool warms_up = steps <= c->sync.warmup;
    if (c->sync.mode == LS_SYNC_GOSSIP) {
        find_gossip_due(c, steps, &due);
        return due;
    }
    if (warms_up) {
        due.outer = due.adopt = LS_SYNC_ALL;
        due.averages = true;
        return due;
    }
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

/* The floats of a fragment: whole parameters in the order of the model. */
static void fragment_of(const ls_config *c, const ls_model *m, int fragment, size_t *first_p,
                        size_t *end_p) {
    bool all = fragment == LS_SYNC_ALL, last = fragment == c->sync.fragments - 1;
    *first_p = all ? 0 : begin_of(c, m, fragment);
    *end_p = all || last ? m->nfloats : begin_of(c, m, fragment + 1);
}

/* What is due, in order; returns the number. */
static int tasks_of(const ls_sync_due *due, ls_task tasks[2]) {
    int n = 0;
    if (due->outer != LS_SYNC_NOTHING) tasks[n++] = LS_TASK_OUTER;
    if (due->adopt != LS_SYNC_NOTHING) tasks[n++] = LS_TASK_ADOPT;
    if (due->round != LS_SYNC_NOTHING) tasks[n++] = LS_TASK_MIX;
    if (due->mean) tasks[n++] = LS_TASK_MEAN;
    return n;
}

/* The number of changes with the training step `step`. */
static int64_t changes_with(const ls_config *c, const ls_plan *p, int64_t step) {
    ls_task tasks[2];
    if (!p->share.islands) return step + 1;
    ls_sync_due due = ls_sync_due_after(c, step + 1);
    return 3 * (step + 1) - tasks_of(&due, tasks);
}

bool ls_sync_whole(const ls_plan *p, ls_store_note *n) {
    int each = p->share.changes;
    bool whole = n->steps % each == 0;
    n->steps /= each;
    return whole;
}

/* ---- the plans ---- */

/* The plan of Outer or Adopt for a fragment, beside the training plan. */
static ls_status plan_of(const ls_config *c, const ls_plan *p, ls_task task, int fragment,
                         ls_plan *plan_p, ls_error *e) {
    ls_share_config pc = *p->share.config;
    pc.first = NULL;
    pc.task = task;
    if (task == LS_TASK_OUTER) pc.compress = pc.sync.deltas;
    pc.sync.averages = fragment == LS_SYNC_ALL;
    fragment_of(c, pc.model, fragment, &pc.sync.part_first, &pc.sync.part_end);
    return ls_plan_make(&pc, plan_p, e);
}

/* ---- gossip ---- */

ls_gossip ls_sync_gossip(const ls_config *c) {
    return (ls_gossip){.graph = c->sync.graph,
                       .algorithm = c->sync.algorithm,
                       .replicas = (int)c->sync.replicas,
                       .seed = (uint64_t)c->train.seed};
}

/* The state of push-sum before the first round. */
static void begin_mix(const ls_gossip *g, ls_mixing *m) {
    *m = (ls_mixing){.replicas = g->replicas};
    for (int i = 0; i < g->replicas; i++) m->mass[i] = 1;
}

int ls_sync_rounds(const ls_config *c) {
    ls_gossip g = ls_sync_gossip(c);
    int period = ls_gossip_period(&g);
    return period ? period : LS_SYNC_SAMPLED;
}

/* The plan of Mean or Mix beside the training plan; the mix outlives it. */
static ls_status mix_plan(const ls_plan *p, ls_task task, const ls_mixing *mix, ls_plan *plan_p,
                          ls_error *e) {
    ls_share_config pc = *p->share.config;
    pc.first = NULL;
    pc.task = task;
    pc.sync.mix = mix;
    pc.sync.part_end = pc.model->nfloats;
    return ls_plan_make(&pc, plan_p, e);
}

static ls_status each_mix(const ls_config *c, const ls_plan *p, ls_sync_fn *fn, void *arg,
                          ls_error *e) {
    ls_gossip g = ls_sync_gossip(c);
    ls_mixing mix;
    int rounds = ls_sync_rounds(c);
    begin_mix(&g, &mix);
    for (int r = 0; r < rounds; r++) {
        ls_plan plan;
        ls_mixing_make(&g, r, mix.mass, &mix);
        LS_TRY(mix_plan(p, LS_TASK_MIX, &mix, &plan, e));
        ls_status s = fn(&plan, 1.0 / ((double)ls_config_sync_every(c) * rounds), arg, e);
        ls_plan_free(&plan);
        LS_TRY(s);
    }
    return LS_OK;
}

ls_status ls_sync_each(const ls_config *c, const ls_plan *p, ls_sync_fn *fn, void *arg,
                       ls_error *e) {
    if (c->sync.mode == LS_SYNC_GOSSIP) return each_mix(c, p, fn, arg, e);
    for (int i = 0; i < 2 * (int)c->sync.fragments; i++) {
        ls_plan sync;
        LS_TRY(plan_of(c, p, i % 2 ? LS_TASK_ADOPT : LS_TASK_OUTER, i / 2, &sync, e));
        ls_status s = fn(&sync, 1.0 / (double)ls_config_sync_every(c), arg, e);
        ls_plan_free(&sync);
        LS_TRY(s);
    }
    return LS_OK;
}

/* ---- what it sends ---- */

static void count_traffic(const ls_plan *p, double times, ls_sync_traffic *t) {
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        double nbytes = times * (double)a->comm.nbytes;
        if (a->kind == LS_SEND)
            nbytes /= p->share.nworkers; /* others have the mean of all workers */
        if (a->comm.axis == LS_AXIS_ISLAND)
            t->within += nbytes;
        else
            t->between += nbytes;
    }
}

static ls_status count_one_model(const ls_plan *p, double *sum_p, ls_error *e) {
    ls_share_config pc = *p->share.config;
    ls_plan one;
    pc.islands = 0;
    pc.optim.replicas = 0;
    pc.first = NULL;
    LS_TRY(ls_plan_make(&pc, &one, e));
    for (int i = 0; i < one.nactions; i++) *sum_p += (double)one.actions[i].comm.nbytes;
    ls_plan_free(&one);
    return LS_OK;
}

static ls_status add_traffic(const ls_plan *p, double times, void *arg, ls_error *e) {
    (void)e;
    count_traffic(p, times, arg);
    return LS_OK;
}

/* Adds the bytes of the mean over all replicas that gossip makes now and then. */
static ls_status count_mean(const ls_config *c, const ls_plan *p, ls_sync_traffic *t, ls_error *e) {
    ls_gossip g = ls_sync_gossip(c);
    ls_mixing mix;
    ls_plan plan;
    begin_mix(&g, &mix);
    LS_TRY(mix_plan(p, LS_TASK_MEAN, &mix, &plan, e));
    for (int i = 0; i < plan.nactions; i++) t->mean += (double)plan.actions[i].comm.nbytes;
    ls_plan_free(&plan);
    return LS_OK;
}

ls_status ls_sync_traffic_of(const ls_config *c, const ls_plan *p, ls_sync_traffic *t_p,
                             ls_error *e) {
    ls_sync_traffic t = {0};
    count_traffic(p, 1, &t);
    LS_TRY(ls_sync_each(c, p, add_traffic, &t, e));
    if (c->sync.mode == LS_SYNC_GOSSIP) LS_TRY(count_mean(c, p, &t, e));
    LS_TRY(count_one_model(p, &t.synchronous, e));
    *t_p = t;
    return LS_OK;
}

/* ---- how ---- */

ls_status ls_sync_check(const ls_plan *p, bool shares_memory, ls_error *e) {
    bool sharded = p->share.shards_moments && p->share.nworkers > 1 && !shares_memory;
    if (!p->share.islands || !sharded || !p->share.has_masters) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "sync.replicas with parallel.zero 1 and train.compute %s: the f32 weights are "
                   "sharded over workers that share no memory; use parallel.zero 0, or f32",
                   ls_dtype_name(p->share.compute));
}

/* The plan of a task, and its executors. */
typedef struct piece {
    ls_plan plan;
    ls_mixing mix;   /* Mean, Mix: the plan's */
    int64_t round;   /* of a random graph: it was made for this one */
    ls_exec **execs; /* [nexecs of the member]; NULL: not made yet */
    int nexecs;
} piece;

struct ls_sync {
    int npieces; /* of a task: the whole, then each fragment; of Mix: each round */
    piece *pieces[LS_NTASKS];
    ls_mixing mix; /* gossip: the latest round */
    int64_t round; /* its number; -1: before the first */
    double scales[LS_PLAN_MAX_ISLANDS];
};

static ls_status make_exec(ls_member *m, piece *x, int i, ls_error *e) {
    int threads = ls_member_threads(m);
    ls_exec_config ec = {.plan = &x->plan,
                         .world = &m->worlds[i],
                         .slot = m->slot,
                         .worker = ls_run_is_sequential(m->run) ? i : m->worker,
                         .threads = threads,
                         .busy = m->seat.sharing * threads,
                         .cores = m->seat.cores,
                         .compute = ls_exec_compute(m->execs[i])};
    m->host->runtime->connect(m, &ec);
    ec.gives_up = NULL; /* what is left of a step takes no time worth saving */
    return ls_exec_create(&ec, &x->execs[i], e);
}

/* With the plan that it has. */
static ls_status make_execs(ls_member *m, piece *x, ls_error *e) {
    x->nexecs = m->nexecs;
    x->execs = LS_NEW_ARRAY(ls_exec *, (size_t)x->nexecs);
    for (int i = 0; i < x->nexecs; i++) LS_TRY(make_exec(m, x, i, e));
    return LS_OK;
}

static void free_piece(piece *x) {
    for (int i = 0; i < x->nexecs; i++) ls_exec_free(x->execs[i]);
    free(x->execs);
    ls_plan_free(&x->plan);
    *x = (piece){0};
}

void ls_sync_free(ls_sync *s) {
    if (!s) return;
    for (int task = 0; task < LS_NTASKS; task++) {
        for (int i = 0; i < s->npieces; i++) free_piece(&s->pieces[task][i]);
        free(s->pieces[task]);
    }
    free(s);
}

static ls_sync *sync_of(ls_member *m) {
    const ls_config *c = &m->run->config;
    if (m->sync) return m->sync;
    ls_sync *s = LS_NEW(ls_sync);
    ls_gossip g = ls_sync_gossip(c);
    s->npieces = c->sync.mode == LS_SYNC_GOSSIP ? ls_sync_rounds(c) : 1 + (int)c->sync.fragments;
    for (int task = 0; task < LS_NTASKS; task++)
        s->pieces[task] = LS_NEW_ARRAY(piece, (size_t)s->npieces);
    begin_mix(&g, &s->mix);
    s->round = -1;
    m->sync = s;
    return s;
}

/* Advances to a round: its weights depend on all before it. */
static void seek_round(const ls_config *c, ls_sync *s, int64_t round) {
    ls_gossip g = ls_sync_gossip(c);
    if (round < s->round) {
        begin_mix(&g, &s->mix);
        s->round = -1;
    }
    while (s->round < round) ls_mixing_make(&g, ++s->round, s->mix.mass, &s->mix);
}

/* Rounds that are complete before a step, or after it with its own. */
static int64_t latest_round(const ls_config *c, int64_t steps) {
    return steps / ls_config_sync_every(c) - 1;
}

/* What changes with the round is made anew, on random graphs. */
static ls_status gossip_piece(ls_member *m, ls_task task, int64_t steps, piece **x_p, ls_error *e) {
    const ls_config *c = &m->run->config;
    ls_sync *s = m->sync;
    ls_gossip g = ls_sync_gossip(c);
    int64_t round = latest_round(c, steps);
    int period = ls_gossip_period(&g);
    piece *x = &s->pieces[task][period && task == LS_TASK_MIX ? round % period : 0];
    seek_round(c, s, round);
    if (x->execs && !period && x->round != round) free_piece(x);
    *x_p = x;
    if (x->execs) return LS_OK;
    x->round = round;
    x->mix = s->mix;
    LS_TRY(mix_plan(&m->layout->plan, task, &x->mix, &x->plan, e));
    return make_execs(m, x, e);
}

static ls_status fragment_piece(ls_member *m, ls_task task, int fragment, piece **x_p,
                                ls_error *e) {
    piece *x = &m->sync->pieces[task][1 + fragment];
    *x_p = x;
    if (x->execs) return LS_OK;
    LS_TRY(plan_of(&m->run->config, &m->layout->plan, task, fragment, &x->plan, e));
    return make_execs(m, x, e);
}

/* Changes of the state, as in replica_sync.h. */
static ls_status run_task(ls_member *m, ls_task task, const ls_sync_due *due, const ls_step_in *in,
                          ls_error *e) {
    ls_step_out out;
    piece *x = NULL;
    (void)sync_of(m);
    if (task == LS_TASK_MEAN || task == LS_TASK_MIX)
        LS_TRY(gossip_piece(m, task, in->step + 1, &x, e));
    else
        LS_TRY(fragment_piece(m, task, task == LS_TASK_OUTER ? due->outer : due->adopt, &x, e));
    if (task == LS_TASK_MIX) LS_TRY(ls_round_check(&m->worlds[0], &x->plan.share, in->changes, e));
    return ls_run_is_sequential(m->run) ? ls_exec_step_all(x->execs, in, &out, e)
                                        : ls_exec_step(x->execs[0], in, &out, e);
}

ls_status ls_sync_after(ls_member *m, const ls_step_in *in, const ls_step_out *out, int64_t changes,
                        ls_error *e) {
    const ls_config *c = &m->run->config;
    ls_sync_due due = ls_sync_due_after(c, in->step + 1);
    bool averages = due.averages || c->sync.mode == LS_SYNC_LOCAL;
    ls_task tasks[2];
    ls_step_in own = {.step = in->step,
                      .updates = due.updates,
                      .lr = averages ? 1 : c->sync.outer_lr,
                      .loss_scale = 1,
                      .apart = in->apart,
                      .certain = in->certain,
                      .training = in,
                      .trained = out};
    int64_t end = 3 * in->step + 3;
    int n = tasks_of(&due, tasks);
    for (int i = n - (int)(end - changes); i < n; i++) {
        own.changes = end - (n - 1 - i);
        LS_TRY(run_task(m, tasks[i], &due, &own, e));
    }
    return LS_OK;
}

/* With gossip, the replicas' learning rates are multiplied by 1 / push-sum weight. */
static ls_status before(ls_member *m, ls_step_in *in, ls_error *e) {
    const ls_config *c = &m->run->config;
    (void)e;
    in->changes = changes_with(c, &m->layout->plan, in->step);
    if (c->sync.mode != LS_SYNC_GOSSIP) return LS_OK;
    ls_sync *s = sync_of(m);
    seek_round(c, s, latest_round(c, in->step));
    for (int i = 0; i < s->mix.replicas; i++) s->scales[i] = 1 / s->mix.mass[i];
    in->lr_scales = s->scales;
    return LS_OK;
}

static ls_status after(ls_member *m, const ls_step_in *in, const ls_step_out *out, ls_error *e) {
    return ls_sync_after(m, in, out, in->changes, e);
}

const ls_step_part ls_sync_part = {before, after};
