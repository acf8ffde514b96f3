/* worker.c - the loop: a step, its metrics, and now and then an evaluation or a checkpoint.
 *
 * All workers make the same decisions at the same steps; worker 0 alone writes to disk, while the
 * others wait at a barrier without a time limit.
 */
#include "train/worker.h"

#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/metrics.h"

typedef struct loop {
    ls_member m;
    ls_run *run;
    ls_metrics *metrics; /* worker 0's, where the run has a folder */
    int64_t steps;       /* complete */
    int64_t saved;       /* steps complete at the latest checkpoint; -1: none */
} loop;

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

static ls_status evaluate(loop *l, bool whole, ls_error *e) {
    ls_evaluation v;
    uint64_t n = whole ? 0 : (uint64_t)l->run->config.train.eval_samples;
    LS_TRY(ls_evaluate(&l->m, n, &v, e));
    if (l->m.worker != 0) return LS_OK;
    l->run->report[LS_REPORT_VAL_LOSS] = v.loss;
    l->run->report[LS_REPORT_VAL_BITS] = v.bits_per_byte;
    return l->metrics ? ls_metrics_evaluation(l->metrics, l->steps, &v, e) : LS_OK;
}

static ls_status save(loop *l, ls_error *e) {
    ls_run *r = l->run;
    if (!r->dir || l->saved == l->steps) return LS_OK;
    l->saved = l->steps;
    if (l->m.worker == 0) {
        ls_train_state s = {.model = &r->model,
                            .step = l->steps,
                            .params = r->world.params,
                            .m = r->world.m,
                            .v = r->world.v};
        ls_checkpoint_extra x = {.tokenizer = &r->corpus.tokenizer_json,
                                 .config = &r->config_text,
                                 .keep = r->config.checkpoint.keep};
        LS_TRY(ls_checkpoint_write(r->dir, &s, &x, e));
    }
    ls_waiter usual = l->m.local.waiter;
    l->m.local.waiter.timeout_ns = -1;
    ls_status s = ls_local_barrier(&l->m.local, e);
    l->m.local.waiter = usual;
    return s;
}

/* Whether to end after this step: worker 0 looks, all agree. */
static ls_status agree_on_stop(loop *l, bool *stop_p, ls_error *e) {
    ls_region_header *h = l->run->region.header;
    if (l->m.worker == 0) atomic_store(&h->stopping, atomic_load(&h->stop));
    LS_TRY(ls_local_barrier(&l->m.local, e));
    *stop_p = atomic_load(&h->stopping) != 0;
    return LS_OK;
}

static ls_status one_step(loop *l, ls_error *e) {
    ls_step_in in = ls_run_step(l->run, l->steps);
    ls_step_out out = {0};
    int64_t begin = ls_clock_ns();
    LS_TRY(ls_member_step(&l->m, &in, &out, e));
    double seconds = (double)(ls_clock_ns() - begin) / 1e9;
    l->steps++;
    if (!isfinite(out.loss) || !isfinite(out.grad_norm))
        return ls_fail(
            e, LS_EINVAL,
            "step %lld: the loss is %g and the gradient's norm %g; lower optim.lr, or go "
            "on from an earlier checkpoint",
            (long long)l->steps, out.loss, out.grad_norm);
    return l->metrics ? ls_metrics_step(l->metrics, l->steps, &in, &out, seconds, e) : LS_OK;
}

static ls_status run_steps(loop *l, ls_error *e) {
    const ls_config *c = &l->run->config;
    bool stop = false;
    while (!stop && l->steps < c->train.steps) {
        LS_TRY(one_step(l, e));
        bool end = l->steps == c->train.steps;
        if (!end && is_due(c->train.eval_every, l->steps)) LS_TRY(evaluate(l, false, e));
        if (!end && is_due(c->checkpoint.every, l->steps)) LS_TRY(save(l, e));
        LS_TRY(agree_on_stop(l, &stop, e));
    }
    LS_TRY(save(l, e));
    if (l->steps == c->train.steps) LS_TRY(evaluate(l, true, e));
    if (l->m.worker == 0) l->run->report[LS_REPORT_STEP] = (double)l->steps;
    return LS_OK;
}

static ls_status run_member(loop *l, ls_error *e) {
    ls_run *r = l->run;
    LS_TRY(ls_member_join(&l->m, r, l->m.worker, e));
    if (l->m.worker == 0 && r->dir) LS_TRY(ls_metrics_open(r, &l->metrics, e));
    if (l->m.worker == 0)
        ls_log("first step after %.2f s", (double)(ls_clock_ns() - r->began_ns) / 1e9);
    LS_TRY(run_steps(l, e));
    ls_metrics *metrics = l->metrics;
    l->metrics = NULL;
    return ls_metrics_close(metrics, e);
}

ls_status ls_train_worker(int worker, void *arg, ls_error *e) {
    loop l = {.run = arg, .saved = -1};
    l.steps = l.run->first_step;
    l.m.worker = worker;
    ls_status s = run_member(&l, e);
    ls_metrics_close(l.metrics, NULL);
    ls_member_leave(&l.m);
    return s;
}
