/* loop.c - see loop.h: a step, its metrics, and now and then an evaluation or a checkpoint. */
#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "train/audit.h"
#include "train/inputs.h"

bool ls_loop_is_complete(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    return l->steps >= c->train.steps || ls_best_ends(&l->val.best, c, l->steps);
}

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

static ls_status audit(ls_loop *l, ls_error *e) {
    ls_verdict v;
    char what[256];
    LS_TRY(ls_audit(&l->m, l->steps, &v, e));
    if (v.good) return LS_OK;
    if (v.parameters)
        snprintf(what, sizeof what, "parameters, first in %s", v.tensor);
    else
        snprintf(what, sizeof what, "virtual worker %d's gradient, first in %s", v.vw, v.tensor);
    if (v.culprit >= 0) {
        LS_TRY(l->host->runtime->evict(l, &v, what, e));
        l->evicts = true;
        return LS_OK;
    }
    return ls_fail(
        e, LS_EINVAL,
        "audit after step %lld: two workers differ in %s, and there is no third to show which "
        "is wrong; " LS_AUDIT_ADVICE,
        (long long)l->steps, what);
}

/* Does what is due after a step, unless earlier workers did it before they were lost. */
static ls_status after_step(ls_loop *l, ls_error *e) {
    const ls_config *c = &l->run->config;
    bool evaluated = l->val.noted == l->steps;
    if (l->steps == c->train.steps)
        return ls_best_is_sought(c) && !evaluated ? ls_validate(l, false, e) : LS_OK;
    if (is_due(c->survival.audit, l->steps)) LS_TRY(audit(l, e));
    if (l->evicts) return LS_OK; /* the next view does the rest */
    return is_due(c->train.eval_every, l->steps) && !evaluated ? ls_validate(l, false, e) : LS_OK;
}

/* Has the run got as far as it was asked to (train --until)? */
static bool is_until(const ls_loop *l) { return l->run->until && l->steps >= l->run->until; }

static void log_stop(const ls_loop *l) {
    if (l->asked != LS_ASKED_STOP || l->m.worker != 0 || ls_loop_is_complete(l)) return;
    if (is_until(l))
        ls_log("stopping after step %lld (--until), with a checkpoint", (long long)l->steps);
    else
        ls_log("interrupted: stopping after step %lld, with a checkpoint; interrupt "
               "again to end at once",
               (long long)l->steps);
}

/* After a step all workers do what any of them was asked to do. By then each has updated its part
 * of the state, which can be saved. */
static ls_status agree_on_asked(ls_loop *l, ls_error *e) {
    enum { ASKED, DUE, WAITED, APART, OWN };
    const ls_config *c = &l->run->config;
    ls_asked wanted = l->host->runtime->asked(l);
    if (is_until(l) && wanted < LS_ASKED_STOP) wanted = LS_ASKED_STOP;
    int32_t words[OWN + LS_SNAPSHOT_WORDS] = {(int32_t)wanted, ls_save_is_due_by_time(l),
                                              l->pace.waited_us};
    if (l->apart) words[APART] = -ls_apart_wanted(l);
    if (l->saver.shared) ls_save_say(l, words + OWN);
    LS_TRY(ls_all_reduce(l->m.group, words, words, OWN + LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
    if (l->saver.shared) ls_save_hear(l, words + OWN);
    l->asked = (ls_asked)words[ASKED];
    l->pace.data_wait_s += words[WAITED] / 1e6;
    l->pace.waited_us = 0;
    if (l->apart && ls_apart_begin(l, l->asked == LS_ASKED_NOTHING ? -words[APART] : 0)) {
        l->asked = LS_ASKED_NOTHING; /* an island is ahead: it is asked again once none is */
        return LS_OK;
    }
    bool best = ls_best_is_sought(c) && ls_validation_is_best(l);
    bool due = best || words[DUE] || (is_due(c->checkpoint.every, l->steps) && !l->evicts);
    if (due && l->steps < c->train.steps)
        LS_TRY(ls_save(l, best ? LS_SAVE_FOR_SURE : LS_SAVE_IF_IDLE, e));
    if (due && l->apart && ls_apart_follow(l->apart))
        LS_TRY(ls_barrier(l->m.group, e)); /* before an island goes ahead */
    log_stop(l);
    return LS_OK;
}

/* ---- steps ---- */

/* Notes the computing time, for the process that divides the virtual workers (ranges.h). */
static void report_computed(ls_loop *l) {
    static const ls_action_kind kinds[] = {LS_FORWARD, LS_RECOMPUTE, LS_BACKWARD, LS_SQUARES,
                                           LS_ENCODE,  LS_DECODE,    LS_ADD};
    int64_t all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all += ls_exec_time(l->m.execs[0], kinds[i]);
    atomic_store(&l->m.slot->measured, 0);
    atomic_store(&l->m.slot->compute_ns, all);
    atomic_store(&l->m.slot->measured, ++l->pace.measured);
}

/* No part of the step was applied: the run ends with the step before it. */
static void give_up_step(ls_loop *l, double seconds) {
    l->asked = LS_ASKED_STOP;
    if (l->m.worker != 0) return;
    ls_log("interrupted: step %lld was given up after %.1f s (survival.stop_s %g); it is repeated "
           "when the run continues",
           (long long)l->steps + 1, seconds, l->run->config.survival.stop_s);
}

/* All wait for worker 0's line: it would be ended with the first worker that fails. */
ls_status ls_loop_diverged(ls_loop *l, int64_t steps, const ls_step_out *out, ls_error *e) {
    ls_status s = l->out.metrics ? ls_metrics_diverged(l->out.metrics, steps, e) : LS_OK;
    LS_TRY(ls_member_wait(&l->m, s, e));
    return ls_step_diverged(l->run->dir, steps, out, NULL, e);
}

/* Bytes that were lost while a step read them were zeros to it: whatever it says then does not
 * count. A nanosecond if nothing is lost. */
static ls_status check_lost(ls_loop *l, ls_error *e) {
    if (ls_guard_check(NULL) == LS_OK) return LS_OK;
    return ls_inputs_check(&l->data, &l->m.frozen.file, e);
}

void ls_loop_took(ls_loop *l, double seconds, double data_wait_s) {
    l->pace.seconds += seconds;
    l->pace.data_wait_s += data_wait_s;
    l->pace.nsteps++;
}

ls_status ls_loop_take(ls_loop *l, ls_loop_step *s, ls_error *e) {
    int64_t begin = ls_clock_ns();
    ls_in_flight_begin(l->out.flight, l->steps);
    ls_status status = ls_member_step(&l->m, &s->in, &s->out, e);
    ls_in_flight_end(l->out.flight);
    LS_TRY(check_lost(l, e));
    LS_TRY(status);
    s->time.seconds = (double)(ls_clock_ns() - begin) / 1e9;
    if (ls_exec_gave_up(l->m.execs[0])) {
        give_up_step(l, s->time.seconds);
        return LS_OK;
    }
    l->steps++;
    s->time.data_wait_s = (double)ls_member_data_wait_ns(&l->m) / 1e9;
    l->pace.waited_us = (int32_t)fmin(l->pace.waited_us + s->time.data_wait_s * 1e6, 2e9);
    ls_loop_took(l, s->time.seconds, 0);
    report_computed(l);
    return LS_OK;
}

ls_status ls_loop_report(ls_loop *l, const ls_loop_step *s, ls_error *e) {
    const ls_step_out *out = &s->out;
    if (!out->skipped && (!isfinite(out->loss) || !isfinite(out->grad_norm))) {
        LS_TRY(ls_inputs_check(&l->data, &l->m.frozen.file, e)); /* that would be the reason */
        return ls_loop_diverged(l, l->steps, out, e);
    }
    return l->out.metrics ? ls_metrics_step(l->out.metrics, l->steps, &s->in, out, &s->time, e)
                          : LS_OK;
}

static ls_status one_step(ls_loop *l, ls_error *e) {
    ls_loop_step s = {.in = ls_member_inputs(&l->m, l->steps)};
    LS_TRY(ls_loop_take(l, &s, e));
    return l->asked == LS_ASKED_NOTHING ? ls_loop_report(l, &s, e) : LS_OK; /* else: given up */
}

/* What makes a step; it may make several. */
typedef ls_status step_maker(ls_loop *, ls_error *);

static step_maker *choose_step(ls_loop *l) {
    if (l->async.run) return ls_async_steps;
    if (!l->m.layout->plan.share.islands) return one_step;
    if (!l->apart) l->apart = ls_apart_new();
    return ls_apart_run;
}

/* Does the run continue from a checkpoint whose workers ended before they evaluated it? */
static bool is_unevaluated(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    bool due = l->steps > 0 && is_due(c->train.eval_every, l->steps);
    if (due && l->run->nasync && ls_history_lacks_evaluation(l->run->dir, l->steps)) return true;
    return due && ls_best_is_sought(c) && l->val.best.val_step != l->steps;
}

/* Earlier workers were lost in the middle of a step. */
static ls_status finish_step(ls_loop *l, ls_error *e) {
    ls_step_in in = ls_member_inputs(&l->m, l->steps);
    ls_step_out out = {0};
    int64_t begin = ls_clock_ns();
    LS_TRY(ls_member_finish_step(&l->m, &in, &out, e));
    l->steps++;
    ls_step_time t = {.seconds = (double)(ls_clock_ns() - begin) / 1e9, .data_wait_s = -1};
    return l->out.metrics ? ls_metrics_step(l->out.metrics, l->steps, &in, &out, &t, e) : LS_OK;
}

/* A host that leaves may have the only copy of a part of the state: the others continue from a
 * checkpoint of this step. */
static ls_status hand_over(ls_loop *l, ls_error *e) {
    bool needed = l->asked == LS_ASKED_LEAVE && l->saver.shared && l->steps > 0 && !l->evicts;
    return needed ? ls_save(l, LS_SAVE_HAND_OVER, e) : LS_OK;
}

/* A trace that can't be written ends no run: its error is the run's when the run has ended. */
static ls_status note_lost(ls_loop *l, ls_status s, const ls_error *own, ls_error *e) {
    if (s != LS_OK && s != LS_EIO) *e = *own;
    if (s != LS_EIO) return s;
    if (l->m.worker == 0) ls_log("%s; the training continues", own->msg);
    l->out.lost = *own;
    return LS_OK;
}

ls_status ls_loop_run(ls_loop *l, ls_error *e) {
    ls_error own;
    int64_t all = l->run->config.train.steps;
    step_maker *make_step = choose_step(l);
    if (l->m.rest) LS_TRY(finish_step(l, e));
    if (l->follows || is_unevaluated(l)) {
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    } else {
        ls_validation_note(l); /* nothing is evaluated before the first step */
    }
    if (is_until(l)) l->asked = LS_ASKED_STOP; /* it continues from there */
    while (l->asked == LS_ASKED_NOTHING && !ls_loop_is_complete(l)) {
        LS_TRY(ls_tracer_before(&l->out.tracer, l->steps, e));
        ls_status s = make_step(l, e);
        LS_TRY(check_lost(l, e));
        LS_TRY(s);
        if (l->asked != LS_ASKED_NOTHING) break; /* the step was given up */
        LS_TRY(note_lost(l, ls_tracer_after(&l->out.tracer, l->steps - 1, &own), &own, e));
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    }
    LS_TRY(note_lost(l, ls_tracer_finish(&l->out.tracer, &own), &own, e));
    bool renews = l->asked == LS_ASKED_RENEW || l->asked == LS_ASKED_LEAVE;
    if (renews && !ls_loop_is_complete(l)) {
        LS_TRY(hand_over(l, e));
        atomic_store(&l->m.slot->renews, 1);
        return LS_OK;
    }
    l->asked = LS_ASKED_STOP;
    if (l->steps > 0) LS_TRY(ls_save(l, LS_SAVE_LAST, e)); /* else there is nothing to save */
    if (l->steps == all) return ls_validate(l, true, e);
    if (ls_loop_is_complete(l)) ls_mllog_end(l->out.mllog, l->steps);
    return LS_OK;
}
