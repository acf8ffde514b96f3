/* apart.c - see apart.h. */
#include "train/apart.h"

#include <math.h>
#include <stdlib.h>

#include "coll/virtual.h"
#include "train/loop.h"
#include "train/sync.h"

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

/* Does something follow that all workers take part in? In a round of gossip, only those who mix. */
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
    if (!p->share.islands) return false;
    bool near = !l->host->runtime->survives || ls_group_near(island) == ls_group_size(island);
    return near && !ls_run_is_sequential(r) && !ls_run_has_scale(r) && !p->share.noise &&
           !l->tracer.path;
}

int ls_apart_wanted(const ls_loop *l) {
    enum { MOST_NBYTES = 8 << 20 }; /* of what is joined */
    const ls_run *r = l->run;
    if (!is_able(l) || l->apart.seconds <= 0) return 0;
    int64_t n = ls_apart_possible(&r->config, l->steps);
    int64_t most = MOST_NBYTES / (int64_t)(ls_apart_row(&l->m.layout->plan.share) * sizeof(double));
    double fit = r->config.survival.stop_s / 2 / l->apart.seconds;
    if (r->until && n > r->until - l->steps - 1) n = r->until - l->steps - 1;
    if (n > most) n = most;
    if ((double)n > fit) n = (int64_t)fit;
    return n > 0 ? (int)n : 0;
}

/* Another replica may need as long for all steps as it may for one that all decide. */
static void set_patience(const ls_loop *l, int steps) {
    double timeout_s = l->run->config.parallel.timeout_s * steps;
    ls_group_set_patience(l->m.group, timeout_s, 0);
    ls_group_set_patience(l->m.worlds[0].island, timeout_s, 0);
}

void ls_apart_begin(ls_loop *l, int agreed) {
    int64_t ahead = ls_apart_most_ahead(&l->m.worlds[0], &l->m.layout->plan.share, l->steps);
    l->apart.must = ahead > 0;
    l->apart.left = ahead > agreed ? (int)ahead : agreed;
    l->apart.n = 0;
    if (l->apart.left) set_patience(l, l->apart.left + 1);
}

/* ---- results ---- */

static ls_status report(ls_loop *l, int i, const double *row, ls_error *e) {
    ls_apart_steps *a = &l->apart;
    ls_step_out *out = &a->out[i];
    int64_t steps = a->in[i].step + 1;
    ls_exec_joined(l->m.execs[0], &a->in[i], row, out);
    if (!isfinite(out->loss) || !isfinite(out->grad_norm))
        return ls_loop_diverged(l, steps, out, e);
    return l->metrics ? ls_metrics_step(l->metrics, steps, &a->in[i], out, &a->time[i], e) : LS_OK;
}

static ls_status join(ls_loop *l, ls_error *e) {
    const ls_plan *p = &l->m.layout->plan;
    ls_apart_steps *a = &l->apart;
    size_t each = ls_apart_row(&p->share);
    ls_apart_notes x = {.first = a->in[0].step, .n = a->n};
    for (int i = 0; i < a->n; i++) x.counts[i] = a->out[i].batch.count;
    x.rows = LS_NEW_ARRAY(double, (size_t)a->n *each);
    ls_status s = ls_apart_join(&l->m.worlds[0], &p->share, &x, e);
    for (int i = 0; s == LS_OK && i < a->n; i++) s = report(l, i, x.rows + (size_t)i * each, e);
    free(x.rows);
    return s;
}

ls_status ls_apart_stepped(ls_loop *l, const ls_step_in *in, const ls_step_out *out,
                           const ls_step_time *t, ls_error *e) {
    ls_apart_steps *a = &l->apart;
    a->seconds = t->seconds;
    if (!in->apart) {
        if (a->n) set_patience(l, 1);
        a->n = 0;
        return LS_OK;
    }
    a->in[a->n] = *in;
    a->out[a->n] = *out;
    a->time[a->n++] = *t;
    return --a->left > 0 ? LS_OK : join(l, e);
}
