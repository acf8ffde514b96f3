/* loop.c - see loop.h: a step, its metrics, and now and then an evaluation or a checkpoint. */
#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "async/bounded.h"
#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "train/async_steps.h"
#include "train/audit.h"
#include "train/evaluate.h"
#include "train/inputs.h"
#include "train/save.h"

bool ls_loop_is_complete(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    return l->steps >= c->train.steps || ls_best_ends(&l->best, c, l->steps);
}

/* For the workers of later views: notes that an evaluation was made after l->steps steps. */
static void note_evaluated(const ls_loop *l) {
    atomic_store(&l->host->notes->evaluated, l->steps + 1);
}

void ls_loop_note_saved(const ls_loop *l) { atomic_store(&l->host->notes->saved, l->steps + 1); }

void ls_loop_note_due(ls_loop *l) {
    l->saved_ns = ls_clock_ns();
    atomic_store(&l->host->notes->saved_ns, l->saved_ns);
}

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

static void note_loss(ls_loop *l) {
    ls_best_note(&l->best, l->steps, l->latest.loss);
    ls_best_save(&l->best, &l->host->notes->best);
}

static void report_answers(ls_loop *l, const ls_answer *list) {
    ls_error why;
    if (l->steps <= l->answered) return; /* they are repeated, with the same texts */
    if (ls_answers_write(l->run->dir, l->steps, list, l->prompts.n, &why) != LS_OK)
        ls_log("%s; these answers are lost", why.msg);
    ls_answers_log(l->run->dir, list, l->prompts.n);
    l->answered = l->steps;
}

/* What the model writes after the prompts of train.sample_prompts. */
static ls_status answer(ls_loop *l, ls_error *e) {
    ls_answer *list = NULL;
    if (!l->prompts.n) return LS_OK;
    LS_TRY(ls_prompts_answer(&l->prompts, &l->m, l->steps, &list, e));
    if (list) report_answers(l, list);
    ls_prompts_free_answers(&l->prompts, list);
    return LS_OK;
}

/* whole: over the whole validation part. Metrics of the last step have only this evaluation. */
static ls_status evaluate(ls_loop *l, bool whole, ls_error *e) {
    const ls_evaluate_request q = {.data = l->m.data,
                                   .nsamples =
                                       whole ? 0 : (uint64_t)l->run->config.train.eval_samples,
                                   .steps = l->steps};
    free(l->records); /* of an earlier view */
    l->records = NULL;
    double **records_p = whole && l->m.worker == 0 ? &l->records : NULL;
    ls_mllog_begin(l->mllog);
    LS_TRY(ls_evaluate(&l->m, &q, &l->latest, records_p, e));
    LS_TRY(ls_member_wait(&l->m, ls_inputs_check(&l->data, &l->m.frozen.file, e), e));
    if (!whole) note_loss(l);
    if (l->metrics && (whole || l->steps < l->run->config.train.steps)) {
        LS_TRY(ls_metrics_evaluation(l->metrics, l->steps, &l->latest, e));
        ls_mllog_evaluation(l->mllog, l->steps, &l->latest, whole);
        if (!whole) ls_report_picture(&l->picture, l->run->dir, false);
    }
    if (whole || l->steps < l->run->config.train.steps) LS_TRY(answer(l, e));
    note_evaluated(l);
    return LS_OK;
}

static ls_status audit(ls_loop *l, ls_error *e) {
    ls_verdict v;
    char what[256];
    LS_TRY(ls_audit(&l->m, l->steps, &v, e));
    if (v.good) return LS_OK;
    if (v.parameters)
        snprintf(what, sizeof what, "parameters, first in %s", v.tensor);
    else
        snprintf(what, sizeof what, "virtual worker %d's gradient, first in %s", v.vw, v.tensor);
    if (v.culprit >= 0) return l->host->runtime->evict(l, &v, what, e);
    return ls_fail(
        e, LS_EINVAL,
        "audit after step %lld: two workers differ in %s, and there is no third to show which "
        "is wrong; " LS_AUDIT_ADVICE,
        (long long)l->steps, what);
}

/* Does what is due after a step, unless earlier workers did it before they were lost. */
static ls_status after_step(ls_loop *l, ls_error *e) {
    const ls_config *c = &l->run->config;
    bool evaluated = l->evaluated == l->steps;
    if (l->steps == c->train.steps)
        return ls_best_is_sought(c) && !evaluated ? evaluate(l, false, e) : LS_OK;
    if (is_due(c->survival.audit, l->steps)) LS_TRY(audit(l, e));
    if (l->evicts) return LS_OK; /* the next view does the rest */
    return is_due(c->train.eval_every, l->steps) && !evaluated ? evaluate(l, false, e) : LS_OK;
}

/* Is the state that of the lowest validation loss so far? */
static bool is_best(const ls_loop *l) { return l->best.step == l->steps && l->steps > 0; }

bool ls_loop_is_time(const ls_loop *l) {
    enum { OF_BEST = 10 }; /* so much sooner is it time for the best state */
    const ls_config *c = &l->run->config;
    double minutes = c->checkpoint.minutes;
    double since = (double)(ls_clock_ns() - l->saved_ns) / 60e9;
    if (l->m.worker != 0 || minutes == 0 || l->evicts) return false;
    bool best = is_best(l) && c->checkpoint.best == LS_BEST_AUTO;
    return since >= (best ? minutes / OF_BEST : minutes);
}

/* Is a checkpoint due by time? None takes the room of the run's last one, so one that is being
 * written must be complete, which shows the room that is left. */
static bool is_due_by_time(ls_loop *l) {
    enum { ROOM = 3 }; /* it, the last one, and as much for files that grow until then */
    if (!ls_loop_is_time(l) || ls_snapshot_is_pending(&l->host->notes->snapshot)) return false;
    if (ls_folder_check_room(l->folder, ROOM, NULL) == LS_OK) return true;
    ls_loop_note_due(l); /* it is tried again */
    if (l->nroomless++ == 0)
        ls_log("no checkpoint by time after step %lld: %s has room for the run's last one alone; "
               "make room there",
               (long long)l->steps, l->run->dir);
    return false;
}

/* Has the run got as far as it was asked to (train --until)? */
static bool is_until(const ls_loop *l) { return l->run->until && l->steps >= l->run->until; }

/* After a step all workers do what any of them was asked to do. By then each has updated its part
 * of the state, which can be saved. */
static ls_status agree_on_asked(ls_loop *l, ls_error *e) {
    enum { OWN = 4 };
    ls_asked wanted = l->host->runtime->asked(l);
    if (is_until(l) && wanted < LS_ASKED_STOP) wanted = LS_ASKED_STOP;
    int32_t asked[OWN + LS_SNAPSHOT_WORDS] = {(int32_t)wanted, is_due_by_time(l), l->waited_us,
                                              -ls_apart_wanted(l)};
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    ls_snapshot_say(&own, l->m.worker, l->asked_share, asked + OWN);
    LS_TRY(ls_all_reduce(l->m.group, asked, asked, OWN + LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
    ls_snapshot_hear(&own, l->m.worker, l->asked_share, asked + OWN);
    l->asked = (ls_asked)asked[0];
    l->data_wait_s += asked[2] / 1e6;
    l->waited_us = 0;
    ls_apart_begin(l, l->asked == LS_ASKED_NOTHING ? -asked[3] : 0);
    const ls_config *c = &l->run->config;
    bool best = ls_best_is_sought(c) && is_best(l);
    bool due = best || asked[1] || (is_due(c->checkpoint.every, l->steps) && !l->evicts);
    due = due && !l->apart.must; /* an island can only be ahead if this has been done */
    if (due && l->steps < c->train.steps)
        LS_TRY(ls_save(l, best ? LS_SAVE_FOR_SURE : LS_SAVE_IF_IDLE, e));
    if (due && l->apart.left) LS_TRY(ls_barrier(l->m.group, e)); /* before an island goes ahead */
    bool stops = l->asked == LS_ASKED_STOP && l->m.worker == 0 && !ls_loop_is_complete(l);
    if (stops && is_until(l))
        ls_log("stopping after step %lld (--until), with a checkpoint", (long long)l->steps);
    else if (stops)
        ls_log("interrupted: stopping after step %lld, with a checkpoint; interrupt "
               "again to end at once",
               (long long)l->steps);
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
    atomic_store(&l->m.slot->measured, ++l->measured);
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
    ls_status s = l->metrics ? ls_metrics_diverged(l->metrics, steps, e) : LS_OK;
    LS_TRY(ls_member_wait(&l->m, s, e));
    return ls_step_diverged(steps, out, "or continue from an earlier checkpoint", e);
}

/* Bytes that were lost while a step read them were zeros to it: whatever it says then does not
 * count. A nanosecond if nothing is lost. */
static ls_status check_lost(ls_loop *l, ls_error *e) {
    if (ls_guard_check(NULL) == LS_OK) return LS_OK;
    return ls_inputs_check(&l->data, &l->m.frozen.file, e);
}

static ls_status one_step(ls_loop *l, ls_error *e) {
    ls_step_in in = ls_run_step(l->run, l->data.ntrain, l->steps, &l->m.scaler);
    ls_step_out out = {0};
    int64_t begin = ls_clock_ns();
    in.apart = l->apart.left > 0;
    in.certain = in.apart || l->apart.n > 0;
    ls_in_flight_begin(l->flight, l->steps);
    ls_status s = ls_member_step(&l->m, &in, &out, e);
    ls_in_flight_end(l->flight);
    LS_TRY(check_lost(l, e));
    LS_TRY(s);
    double seconds = (double)(ls_clock_ns() - begin) / 1e9;
    if (l->m.bounded) LS_TRY(ls_bounded_check(l->m.bounded, e));
    if (ls_exec_gave_up(l->m.execs[0])) {
        give_up_step(l, seconds);
        return LS_OK;
    }
    l->steps++;
    if (l->m.bounded) ls_bounded_stepped(l->m.bounded, l->steps);
    ls_step_time t = {.seconds = seconds,
                      .data_wait_s = (double)ls_member_data_wait_ns(&l->m) / 1e9};
    l->waited_us = (int32_t)fmin(l->waited_us + t.data_wait_s * 1e6, 2e9);
    l->seconds += seconds;
    l->nsteps++;
    report_computed(l);
    LS_TRY(ls_apart_stepped(l, &in, &out, &t, e));
    if (in.apart) return LS_OK;
    if (!out.skipped && (!isfinite(out.loss) || !isfinite(out.grad_norm))) {
        LS_TRY(ls_inputs_check(&l->data, &l->m.frozen.file, e)); /* that would be the reason */
        return ls_loop_diverged(l, l->steps, &out, e);
    }
    return l->metrics ? ls_metrics_step(l->metrics, l->steps, &in, &out, &t, e) : LS_OK;
}

/* Does the run continue from a checkpoint whose workers ended before they evaluated it? */
static bool is_unevaluated(const ls_loop *l) {
    const ls_config *c = &l->run->config;
    bool due = l->steps > 0 && is_due(c->train.eval_every, l->steps);
    if (due && l->run->nasync && ls_history_lacks_evaluation(l->run->dir, l->steps)) return true;
    return due && ls_best_is_sought(c) && l->best.val_step != l->steps;
}

/* Earlier workers were lost in the middle of a step. */
static ls_status finish_step(ls_loop *l, ls_error *e) {
    ls_step_in in = ls_run_step(l->run, l->data.ntrain, l->steps, &l->m.scaler);
    ls_step_out out = {0};
    int64_t begin = ls_clock_ns();
    LS_TRY(ls_member_finish_step(&l->m, &in, &out, e));
    l->steps++;
    ls_step_time t = {.seconds = (double)(ls_clock_ns() - begin) / 1e9, .data_wait_s = -1};
    return l->metrics ? ls_metrics_step(l->metrics, l->steps, &in, &out, &t, e) : LS_OK;
}

/* A host that leaves may have the only copy of a part of the state: the others continue from a
 * checkpoint of this step. */
static ls_status hand_over(ls_loop *l, ls_error *e) {
    bool needed = l->asked == LS_ASKED_LEAVE && l->shared && l->steps > 0 && !l->evicts;
    return needed ? ls_save(l, LS_SAVE_HAND_OVER, e) : LS_OK;
}

ls_status ls_loop_run(ls_loop *l, ls_error *e) {
    int64_t all = l->run->config.train.steps;
    if (l->m.rest) LS_TRY(finish_step(l, e));
    if (l->follows || is_unevaluated(l)) {
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    } else {
        note_evaluated(l); /* nothing is evaluated before the first step */
    }
    if (is_until(l)) l->asked = LS_ASKED_STOP; /* it continues from there */
    while ((l->asked == LS_ASKED_NOTHING || l->apart.must) && !ls_loop_is_complete(l)) {
        bool apart = l->apart.left > 0;
        LS_TRY(ls_tracer_before(&l->tracer, l->steps, e));
        ls_status s = l->async ? ls_async_steps(l, e) : one_step(l, e);
        LS_TRY(check_lost(l, e));
        LS_TRY(s);
        bool given_up = l->asked != LS_ASKED_NOTHING && !l->apart.must;
        if (given_up) break;
        LS_TRY(ls_tracer_after(&l->tracer, l->steps - 1, e));
        if (apart) continue;
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    }
    LS_TRY(ls_tracer_finish(&l->tracer, e));
    bool renews = l->asked == LS_ASKED_RENEW || l->asked == LS_ASKED_LEAVE;
    if (renews && !ls_loop_is_complete(l)) {
        LS_TRY(hand_over(l, e));
        atomic_store(&l->m.slot->renews, 1);
        return LS_OK;
    }
    l->asked = LS_ASKED_STOP;
    if (l->steps > 0) LS_TRY(ls_save(l, LS_SAVE_LAST, e)); /* else there is nothing to save */
    if (l->steps == all) return evaluate(l, true, e);
    if (ls_loop_is_complete(l)) ls_mllog_end(l->mllog, l->steps);
    return LS_OK;
}
