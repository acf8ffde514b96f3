/* async_steps.c - see async_steps.h. */
#include "train/async_steps.h"

#include <math.h>

#include "async/async.h"
#include "async/bounded.h"
#include "base/clock.h"
#include "dataset/reference.h"
#include "net/tcp/admission.h"
#include "storage/identity.h"
#include "train/loop.h"

/* In a worker: the log-probabilities of the reference, which the coordinator has computed and
 * saved. */
static ls_status read_reference(ls_loop *l, ls_error *e) {
    ls_chats *c = &l->data.text.chats;
    bool there = false;
    if (!ls_config_has_pairs(&l->run->config) || c->has_reference) return LS_OK;
    LS_TRY(ls_reference_read(l->run->dir, l->data.text.record.tokens, c, &there, e));
    c->has_reference = there;
    if (there) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s/" LS_REFERENCE_FILE ": is missing", l->run->dir);
}

/* In a worker: a member of this process's group of one, with the worker's executor. */
static ls_status prepare(void *arg, ls_exec *exec, const ls_frozen_value **values_p, ls_error *e) {
    ls_loop *l = arg;
    LS_TRY(read_reference(l, e));
    if (!l->m.layout->model.frozen_count) return LS_OK;
    l->m.execs[0] = exec;
    LS_TRY(ls_frozen_values_open(&l->m, &l->m.frozen, e));
    *values_p = l->m.frozen.values;
    return LS_OK;
}

/* What hosts that join must have, too. */
static ls_status write_settings(ls_loop *l, ls_error *e) {
    ls_run_must_match(&l->run->config, &l->async.settings);
    const ls_admission g = {.settings = l->async.settings.data};
    if (l->run->listen) LS_TRY(ls_admission_check_size(&g, e));
    return ls_identity_write(l->run->dir, &l->run->config, &l->async.settings, e);
}

ls_status ls_async_steps_open(ls_loop *l, ls_error *e) {
    LS_TRY(write_settings(l, e));
    const ls_async_config c = {.run = l->run->dir,
                               .config = &l->run->config,
                               .plan = &l->m.layout->plan,
                               .world = &l->m.worlds[0],
                               .prepare = prepare,
                               .prepare_arg = l,
                               .loader = ls_dataset_loader(&l->data, &l->run->config),
                               .nworkers = l->run->nasync,
                               .listen = l->run->listen,
                               .settings = l->async.settings.data,
                               .steps = l->steps};
    return l->run->config.sync.mode == LS_SYNC_SSP ? ls_bounded_open(&c, &l->m.bounded, e)
                                                   : ls_async_open(&c, &l->async.run, e);
}

ls_status ls_async_steps_begin(ls_loop *l, ls_error *e) {
    if (l->async.run) LS_TRY(ls_async_begin(l->async.run, e));
    if (l->m.bounded) ls_bounded_stepped(l->m.bounded, l->steps);
    return LS_OK;
}

void ls_async_steps_close(ls_loop *l, bool over) {
    ls_async_close(l->async.run, over);
    ls_bounded_close(l->m.bounded, over);
    ls_buf_free(&l->async.settings);
}

static int64_t next_multiple(int64_t every, int64_t steps, int64_t most) {
    int64_t next = every > 0 ? (steps / every + 1) * every : most;
    return next < most ? next : most;
}

/* The steps after which something is due next. */
static int64_t next_stop(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    int64_t next = next_multiple(c->train.eval_every, l->steps, c->train.steps);
    return next_multiple(c->checkpoint.every, l->steps, next);
}

static bool stops(void *arg) {
    const ls_loop *l = arg;
    return l->host->runtime->asked(l) != LS_ASKED_NOTHING || ls_save_is_time(l);
}

/* The time of a step is that between its end and the one before: workers overlap. */
static ls_status on_step(void *arg, const ls_async_step *s, ls_error *e) {
    ls_loop *l = arg;
    int64_t now = ls_clock_ns();
    const ls_step_push push = {s->worker, s->staleness, s->nshards};
    const ls_step_time t = {.seconds = (double)(now - l->async.latest_ns) / 1e9,
                            .data_wait_s = s->data_wait_s,
                            .push = &push};
    const ls_step_in in = {.step = s->step, .updates = s->step, .lr = s->lr, .loss_scale = 1};
    l->async.latest_ns = now;
    ls_loop_took(l, t.seconds, s->data_wait_s / l->run->nasync);
    bool diverged = !isfinite(s->out.loss) || !isfinite(s->out.grad_norm);
    if (diverged) LS_TRY(ls_metrics_diverged(l->out.metrics, s->step + 1, e));
    if (diverged)
        return ls_step_diverged(l->run->dir, s->step + 1, &s->out, "set sync.delay_aware: on", e);
    return ls_metrics_step(l->out.metrics, s->step + 1, &in, &s->out, &t, e);
}

ls_status ls_async_steps(ls_loop *l, ls_error *e) {
    const ls_async_watch w = {.step = on_step, .stops = stops, .arg = l};
    l->async.latest_ns = ls_clock_ns();
    return ls_async_run(l->async.run, next_stop(l), &w, &l->steps, e);
}
