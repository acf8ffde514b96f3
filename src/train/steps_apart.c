/* steps_apart.c - see steps_apart.h. */
#include "train/steps_apart.h"

#include <math.h>
#include <stdlib.h>

#include "coll/virtual.h"
#include "state/apart.h"
#include "train/loop.h"
#include "train/replica_sync.h"

struct ls_apart_steps {
    int left;                         /* steps apart that follow */
    int n;                            /* since the latest step that all decided */
    double seconds;                   /* that the latest step took */
    ls_loop_step made[LS_APART_MOST]; /* [n] */
};

ls_apart_steps *ls_apart_new(void) { return LS_NEW(ls_apart_steps); }

bool ls_apart_follow(const ls_apart_steps *a) { return a->left > 0; }

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

/* Does something follow that all workers take part in? Only workers that mix take part in a round
 * of gossip. */
static bool is_common(const ls_config *c, int64_t steps) {
    ls_sync_due due = ls_sync_due_after(c, steps);
    bool exchange = due.outer != LS_SYNC_NOTHING || due.adopt != LS_SYNC_NOTHING || due.mean;
    return exchange || is_due(c->train.eval_every, steps) || is_due(c->checkpoint.every, steps) ||
           steps >= c->train.steps;
}

int ls_apart_possible(const ls_config *c, int64_t steps) {
    int n = 0;
    if (!ls_config_has_replicas(c)) return 0;
    while (n < LS_APART_MOST && !is_common(c, steps + n + 1)) n++;
    return n;
}

/* Where workers survive, those of an island must share the memory in which they note what they
 * decide. Whether f16 skips a step is decided by all. */
static bool is_able(const ls_loop *l) {
    const ls_run *r = l->run;
    const ls_plan *p = &l->m.layout->plan;
    const ls_group *island = l->m.worlds[0].island;
    bool near = !l->host->runtime->survives || ls_group_near(island) == ls_group_size(island);
    return near && !ls_run_is_sequential(r) && !ls_run_has_scale(r) && !p->share.noise &&
           !l->out.tracer.path;
}

int ls_apart_wanted(const ls_loop *l) {
    enum { MOST_NBYTES = 8 << 20 }; /* of what is joined */
    const ls_run *r = l->run;
    if (!is_able(l) || l->apart->seconds <= 0) return 0;
    int64_t n = ls_apart_possible(&r->config, l->steps);
    int64_t most = MOST_NBYTES / (int64_t)(ls_apart_row(&l->m.layout->plan.share) * sizeof(double));
    double fit = r->config.survival.stop_s / 2 / l->apart->seconds;
    if (r->until && n > r->until - l->steps - 1) n = r->until - l->steps - 1;
    if (n > most) n = most;
    if ((double)n > fit) n = (int64_t)fit;
    return n > 0 ? (int)n : 0;
}

/* Another replica may take `steps` times as long as for a step that all decide. */
static void set_patience(const ls_loop *l, int steps) {
    double timeout_s = l->run->config.parallel.timeout_s * steps;
    ls_group_set_patience(l->m.group, timeout_s, 0);
    ls_group_set_patience(l->m.worlds[0].island, timeout_s, 0);
}

bool ls_apart_begin(ls_loop *l, int agreed) {
    int64_t ahead = ls_apart_most_ahead(&l->m.worlds[0], &l->m.layout->plan.share, l->steps);
    l->apart->left = ahead > agreed ? (int)ahead : agreed;
    l->apart->n = 0;
    if (l->apart->left) set_patience(l, l->apart->left + 1);
    return ahead > 0;
}

/* ---- steps ---- */

static ls_status report(ls_loop *l, ls_loop_step *x, const double *row, ls_error *e) {
    int64_t steps = x->in.step + 1;
    ls_exec_joined(l->m.execs[0], &x->in, row, &x->out);
    if (!isfinite(x->out.loss) || !isfinite(x->out.grad_norm))
        return ls_loop_diverged(l, steps, &x->out, e);
    return l->out.metrics ? ls_metrics_step(l->out.metrics, steps, &x->in, &x->out, &x->time, e)
                          : LS_OK;
}

/* All get the results of the steps apart, worker 0 writes them. */
static ls_status join(ls_loop *l, ls_error *e) {
    const ls_plan *p = &l->m.layout->plan;
    ls_apart_steps *a = l->apart;
    size_t each = ls_apart_row(&p->share);
    ls_apart_notes x = {.first = a->made[0].in.step, .n = a->n};
    for (int i = 0; i < a->n; i++) x.counts[i] = a->made[i].out.batch.count;
    x.rows = LS_NEW_ARRAY(double, (size_t)a->n *each);
    ls_status s = ls_apart_join(&l->m.worlds[0], &p->share, &x, e);
    for (int i = 0; s == LS_OK && i < a->n; i++)
        s = report(l, &a->made[i], x.rows + (size_t)i * each, e);
    free(x.rows);
    return s;
}

static ls_status one_step(ls_loop *l, ls_error *e) {
    ls_apart_steps *a = l->apart;
    ls_loop_step s = {.in = ls_member_inputs(&l->m, l->steps)};
    s.in.apart = a->left > 0;
    s.in.certain = s.in.apart || a->n > 0;
    LS_TRY(ls_loop_take(l, &s, e));
    if (l->asked != LS_ASKED_NOTHING) return LS_OK; /* it was given up */
    a->seconds = s.time.seconds;
    if (s.in.apart) {
        a->made[a->n++] = s;
        return --a->left > 0 ? LS_OK : join(l, e);
    }
    if (a->n) set_patience(l, 1);
    a->n = 0;
    return ls_loop_report(l, &s, e);
}

ls_status ls_apart_run(ls_loop *l, ls_error *e) {
    bool apart = true;
    while (apart && l->asked == LS_ASKED_NOTHING) {
        apart = l->apart->left > 0;
        LS_TRY(one_step(l, e));
    }
    return LS_OK;
}
