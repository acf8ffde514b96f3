/* runtime_supervised.c - workers whose state outlives them; see runtime.h. */
#include <unistd.h>

#include "base/log.h"
#include "state/errors.h"
#include "train/audit.h"
#include "train/backup.h"
#include "train/host.h"
#include "train/loop.h"
#include "train/steps_apart.h"

/* Has the run completed its last step, or ended early? */
static bool is_complete(const ls_host *h, int64_t steps) {
    ls_best best = {0};
    ls_best_load(&best, &h->notes->best);
    return steps >= h->run->config.train.steps || ls_best_ends(&best, &h->run->config, steps);
}

static ls_status finish(const ls_host *h, bool stopped, bool *unfinished_p, ls_error *e) {
    (void)stopped;
    int64_t ended = h->survival.ended;
    bool untrained = h->folder && ended == INT64_MAX;
    if (untrained && !is_complete(h, h->folder->notes->step))
        return ls_fail(e, LS_EPEER, "%s: the workers ended before the first step", h->run->dir);
    *unfinished_p = ended >= 0 && !is_complete(h, ended);
    return LS_OK;
}

/* ---- a worker's executor ---- */

static bool gives_up(void *arg) {
    const ls_member *m = arg;
    return atomic_load_explicit(&m->slot->gives_up, memory_order_relaxed) != 0;
}

/* A note for the workers that finish the step, should this one be lost. */
static void note_decided(void *arg, const ls_store_note *decided) {
    const ls_member *m = arg;
    ls_store_note n = *decided;
    ls_scaler_config scaler = ls_run_scaler(m->run);
    n.began_ns = m->step_began_ns;
    n.scaler = m->scaler;
    if (ls_run_has_scale(m->run) && n.task == LS_TASK_TRAIN)
        ls_scaler_next(&n.scaler, &scaler, n.out.skipped);
    ls_snapshot_wait_copied(&m->host->notes->snapshot);
    ls_store_decide(m->host->store, m->worker, &n);
}

static void connect(ls_member *m, ls_exec_config *x) {
    x->gives_up = gives_up;
    x->gives_up_arg = m;
    x->decided = note_decided;
    x->decided_arg = m;
    if (!ls_layout_has_backups(&m->run->config, &m->layout->plan, true)) return;
    m->backup = ls_backup_new(m);
    x->helpers = ls_backup_helpers(m->backup);
}

/* ---- the state of a view ---- */

static void has_made(const ls_member *m) {
    ls_store_mark_filled(m->host->store, &m->layout->plan.share, m->worker, m->first_step);
    ls_errors_mark_own(m->worlds, &m->layout->plan.share, m->first_step);
}

static ls_status take_up(ls_member *m, bool found, ls_error *e) {
    ls_store *store = m->host->store;
    if (found) {
        const ls_config *c = &m->run->config;
        int64_t last = m->first_step + ls_apart_possible(c, m->first_step);
        LS_TRY(ls_world_adopt(m->worlds, &m->layout->plan.share, ls_exec_compute(m->execs[0]),
                              last * m->layout->plan.share.changes, e));
        m->scaler = ls_store_scaler(store);
    } else if (m->worker == m->host->survival.view.first) {
        ls_store_begin(store, m->first_step, &m->scaler);
    }
    ls_store_set_finding(store, LS_STORE_WHOLE);
    return ls_exec_take_up(m->execs[0], m->first_step, e);
}

/* ---- between steps ---- */

/* A signal to a worker is for that worker alone: the supervisor asks all of them. */
static ls_asked asked(const ls_loop *l) {
    int asked = atomic_load(&l->m.slot->asked);
    if (l->evicts && asked < LS_ASKED_RENEW) asked = LS_ASKED_RENEW;
    if (!ls_interrupted()) return (ls_asked)asked;
    atomic_store(&l->m.slot->leaves, 1);
    return asked > LS_ASKED_RENEW ? (ls_asked)asked : LS_ASKED_RENEW;
}

/* Called by the worker that the audit found faulty. */
static void leave(const ls_loop *l, const ls_verdict *v, const char *what) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    ls_log("audit after step %lld: worker %d (process %d on %s) differs from the others in %s; it "
           "leaves",
           (long long)l->steps, l->m.worker, (int)getpid(), host, what);
    atomic_store(&l->m.slot->leaves, 1);
    if (v->parameters && !l->m.layout->plan.share.shards_moments)
        ls_store_distrust(l->host->store, l->m.worker);
}

static ls_status evict(const ls_loop *l, const ls_verdict *v, const char *what, ls_error *e) {
    (void)e;
    if (v->culprit == l->m.worker) leave(l, v, what);
    return LS_OK;
}

/* If another worker was lost, the results of this one can be retained. */
static bool may_rest(const ls_host *h, ls_status how) {
    return h->survival.stays && (how == LS_EPEER || how == LS_EABORT);
}

const ls_runtime ls_runtime_supervised = {
    .survives = true,
    .when_lost = "",
    .finish = finish,
    .connect = connect,
    .has_made = has_made,
    .take_up = take_up,
    .asked = asked,
    .evict = evict,
    .may_rest = may_rest,
};
