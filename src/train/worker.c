/* worker.c - the loop: a step, its metrics, and now and then an evaluation or a checkpoint.
 *
 * All workers make the same decisions at the same steps. Where the state outlives them, other
 * processes write checkpoints (snapshot.h); else worker 0 does, while the others wait for it
 * without a time limit.
 */
#include "train/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "coll/virtual.h"
#include "exec/store_backup.h"
#include "report/metrics.h"
#include "report/report.h"
#include "storage/best.h"
#include "storage/checkpoint.h"
#include "storage/folder.h"
#include "train/audit.h"
#include "train/evaluate.h"
#include "train/in_flight.h"
#include "train/layout.h"

typedef struct ls_train_loop {
    const ls_train_job *job;
    const ls_run *run;
    ls_member m;
    ls_corpus corpus;
    ls_folder *folder;    /* worker 0's; NULL: it has none yet */
    ls_metrics *metrics;  /* worker 0's */
    ls_evaluation latest; /* the same on all */
    ls_picture picture;   /* worker 0's */
    ls_best best;         /* the same on all */
    ls_tracer tracer;
    ls_in_flight *flight; /* worker 0's */
    int64_t steps;        /* complete */
    int64_t saved;        /* steps complete at the latest checkpoint; -1: none */
    int64_t evaluated;    /* and at the latest evaluation of workers that were lost */
    int64_t saved_ns;
    int64_t measured;    /* steps of this view */
    double seconds;      /* of all its steps */
    int64_t nsteps;      /* } */
    bool evicts;         /* a worker leaves, for what an audit found */
    ls_asked asked;      /* after the latest step */
    bool follows;        /* these workers go on from what others have left in memory */
    bool shared;         /* no host has all of the state: each writes its part of checkpoints */
    int64_t asked_share; /* of this worker, for a part (storage/snapshot.h) */
} loop;

static bool is_due(int64_t every, int64_t steps) { return every > 0 && steps % every == 0; }

/* Workers to come will know what has been done after so many steps. */
static void note_evaluated(const loop *l) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    if (notes) atomic_store(&notes->evaluated, l->steps + 1);
}

static void note_saved(const loop *l) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    if (notes) atomic_store(&notes->saved, l->steps + 1);
}

/* ---- now and then ---- */

static void note_loss(loop *l) {
    ls_best_note(&l->best, l->steps, l->latest.loss);
    ls_run_notes *notes = ls_run_notes_of(l->run);
    if (notes) ls_best_save(&l->best, &notes->best);
}

/* After the last step metrics have the whole alone. */
static ls_status evaluate(loop *l, bool whole, ls_error *e) {
    uint64_t n = whole ? 0 : (uint64_t)l->run->config.train.eval_samples;
    ls_world *w = &l->m.worlds[0];
    LS_TRY(ls_world_gather_params(w, &l->run->layout.plan, e));
    LS_TRY(ls_evaluate(&l->m, n, &l->latest, e));
    ls_world_drop_params(w, &l->run->layout.plan);
    if (!whole) note_loss(l);
    if (l->metrics && (whole || l->steps < l->run->config.train.steps)) {
        LS_TRY(ls_metrics_evaluation(l->metrics, l->steps, &l->latest, e));
        if (!whole) ls_report_picture(&l->picture, l->run->dir, false);
    }
    note_evaluated(l);
    return LS_OK;
}

static ls_status write_checkpoint(const loop *l, ls_error *e) {
    const ls_world *w = &l->m.worlds[0];
    ls_train_state s = {.model = &l->run->layout.model,
                        .step = l->steps,
                        .params = w->master,
                        .m = w->m,
                        .v = w->v};
    if (ls_run_has_scale(l->run)) s.scaler = l->m.scaler;
    ls_buf record = {0};
    ls_corpus_record_write(&l->corpus.record, &record);
    ls_checkpoint_extra x = {.tokenizer = &l->corpus.tokenizer_json,
                             .config = &l->run->config_text,
                             .record = &record,
                             .keep = l->run->config.checkpoint.keep};
    ls_best_describe(&l->best, &l->run->config, l->steps, &x);
    ls_status status = ls_checkpoint_write(l->run->dir, &s, &x, e);
    ls_buf_free(&record);
    return status;
}

static void tell_failed(const loop *l, const ls_error *why) {
    ls_log("the checkpoint of step %lld failed: %s", (long long)l->steps, why->msg);
}

static void tell_busy(const loop *l) {
    ls_log("no checkpoint of step %lld: the one before is still being written",
           (long long)l->steps);
}

/* The last one must succeed: what is there to go on from? */
static ls_status fail_last(const loop *l, ls_error *e) {
    char *path = NULL;
    int64_t step = 0;
    ls_error none;
    if (ls_checkpoint_newest_good(l->run->dir, &path, &step, &none) != LS_OK) path = NULL;
    ls_fail(e, LS_EIO, "the checkpoint of step %lld could not be written; %s%s",
            (long long)l->steps, path ? "the newest good one is " : "there is no good one",
            path ? path : "");
    free(path);
    return e->code;
}

/* What was taken away of the run's folder is made again. */
static ls_status mend_folder(loop *l, ls_error *e) {
    ls_error lost;
    LS_TRY(ls_folder_mend(l->folder, &l->corpus, e));
    if (ls_metrics_mend(l->metrics, &lost) != LS_OK) ls_log("%s", lost.msg);
    return LS_OK;
}

/* Without a store: worker 0 writes, the others wait for it. */
static ls_status save_now(loop *l, bool last, ls_error *e) {
    const ls_plan *p = &l->run->layout.plan;
    ls_status s = LS_OK;
    ls_error why;
    LS_TRY(ls_world_collect(&l->m.worlds[0], p, e));
    if (l->m.worker == 0) {
        s = mend_folder(l, &why);
        if (s == LS_OK) s = write_checkpoint(l, &why);
        if (s != LS_OK) tell_failed(l, &why);
    }
    ls_world_drop_collected(&l->m.worlds[0], p);
    int32_t good = s == LS_OK;
    LS_TRY(ls_member_wait(&l->m, good || !last ? LS_OK : fail_last(l, e), e));
    LS_TRY(ls_broadcast(l->m.group, &good, 1, LS_I32, 0, e));
    if (good) l->saved = l->steps;
    return LS_OK;
}

/* How much a checkpoint matters: it is left out where the one before is still being written; it
 * waits for that; it is waited for itself, and must succeed. */
typedef enum urgency { IF_IDLE, FOR_SURE, LAST } urgency;

/* Another process writes. */
static ls_status save_beside(loop *l, urgency u, ls_error *e) {
    bool last = u == LAST;
    ls_snapshot_state *state = &ls_run_notes_of(l->run)->snapshot;
    ls_error why;
    if (l->m.worker != 0) {
        if (l->run->survival.view.first > 0) note_saved(l);
        return LS_OK;
    }
    if (u != IF_IDLE) (void)ls_snapshot_wait_written(state, &why);
    ls_status s = mend_folder(l, &why);
    if (s != LS_OK)
        tell_failed(l, &why);
    else if (!ls_snapshot_ask(state, l->steps))
        tell_busy(l);
    note_saved(l);
    if (last && s == LS_OK) s = ls_snapshot_wait_written(state, &why);
    return last && s != LS_OK ? fail_last(l, e) : LS_OK;
}

/* What hosts that write together have to know of each other. */
static ls_status await_written(loop *l, ls_error *e) {
    ls_snapshot_run own = ls_run_snapshot(l->run);
    int32_t words[LS_SNAPSHOT_WORDS];
    for (;;) {
        ls_snapshot_say(&own, l->m.worker, l->asked_share, words);
        LS_TRY(ls_all_reduce(l->m.group, words, words, LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
        ls_snapshot_hear(&own, l->m.worker, l->asked_share, words);
        if (!words[LS_SNAPSHOT_PENDING]) return LS_OK;
        usleep(1000);
    }
}

/* Each host's writer is asked for its part, or none is. */
enum { CAN_ASK, IS_BUSY, NEED_NOT };

/* As far as this worker knows; worker 0 also looks after the folder. */
static int32_t look_at_share(loop *l, bool last) {
    ls_snapshot_run own = ls_run_snapshot(l->run);
    int32_t words[LS_SNAPSHOT_WORDS];
    ls_error why;
    ls_snapshot_say(&own, l->m.worker, l->asked_share, words);
    if (words[LS_SNAPSHOT_PENDING]) return IS_BUSY;
    if (l->m.worker != 0) return CAN_ASK;
    if (last && ls_snapshot_is_written(&ls_run_notes_of(l->run)->snapshot, l->steps))
        return NEED_NOT;
    if (mend_folder(l, &why) == LS_OK) return CAN_ASK;
    tell_failed(l, &why);
    return NEED_NOT;
}

static ls_status save_share(loop *l, urgency u, ls_error *e) {
    bool last = u == LAST;
    note_saved(l);
    if (u != IF_IDLE) LS_TRY(await_written(l, e));
    int32_t what = look_at_share(l, last);
    ls_snapshot_run own = ls_run_snapshot(l->run);
    LS_TRY(ls_all_reduce(l->m.group, &what, &what, 1, LS_I32, LS_MAX, e));
    if (what == CAN_ASK)
        ls_snapshot_ask_share(&own, l->m.worker, l->steps, &l->asked_share);
    else if (what == IS_BUSY && l->m.worker == 0)
        tell_busy(l);
    if (!last) return LS_OK;
    LS_TRY(await_written(l, e));
    bool good =
        l->m.worker != 0 || ls_snapshot_is_written(&ls_run_notes_of(l->run)->snapshot, l->steps);
    return ls_member_wait(&l->m, good ? LS_OK : fail_last(l, e), e);
}

/* One that can't be written is told, and the next is tried when it is due; the last must succeed.
 */
static ls_status save(loop *l, urgency u, ls_error *e) {
    bool saved = l->saved == l->steps, last = u == LAST;
    l->saved_ns = ls_clock_ns();
    if (!l->run->store) return saved ? LS_OK : save_now(l, last, e);
    l->saved = l->steps;
    if (saved && !last) return LS_OK;
    ls_status s = l->shared ? save_share(l, u, e) : save_beside(l, u, e);
    if (u != IF_IDLE && !l->shared) s = ls_member_wait(&l->m, s, e);
    if (last) return s;
    ls_snapshot_note_held(&ls_run_notes_of(l->run)->snapshot, ls_clock_ns() - l->saved_ns);
    return s;
}

/* The worker that an audit has found to be wrong. */
static void leave(const loop *l, const ls_verdict *v, const char *what) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    ls_log("audit after step %lld: worker %d (process %d on %s) differs from the others in %s; it "
           "leaves",
           (long long)l->steps, l->m.worker, (int)getpid(), host, what);
    atomic_store(&l->m.slot->leaves, 1);
    if (v->parameters && !ls_plan_shards_moments(&l->run->layout.plan))
        ls_store_void(l->run->store, l->m.worker);
}

static ls_status audit(loop *l, ls_error *e) {
    static const char go_on[] = "go on from an earlier checkpoint, on other hardware";
    ls_verdict v;
    char what[256];
    LS_TRY(ls_audit(&l->m, l->steps, &v, e));
    if (v.good) return LS_OK;
    if (v.parameters)
        snprintf(what, sizeof what, "parameters, first in %s", v.tensor);
    else
        snprintf(what, sizeof what, "virtual worker %d's gradient, first in %s", v.vw, v.tensor);
    if (v.culprit < 0)
        return ls_fail(e, LS_EINVAL,
                       "audit after step %lld: two workers differ in %s, and no third can tell "
                       "which is wrong; %s",
                       (long long)l->steps, what, go_on);
    if (!l->run->store)
        return ls_fail(e, LS_EINVAL,
                       "audit after step %lld: worker %d differs from the others in %s; %s",
                       (long long)l->steps, v.culprit, what, go_on);
    l->evicts = true;
    if (v.culprit == l->m.worker) leave(l, &v, what);
    return LS_OK;
}

/* What is due after a step: not what workers that were lost have done already. */
static ls_status after_step(loop *l, ls_error *e) {
    const ls_config *c = &l->run->config;
    bool evaluated = l->evaluated == l->steps;
    if (l->steps == c->train.steps)
        return ls_best_is_kept(c) && !evaluated ? evaluate(l, false, e) : LS_OK;
    if (is_due(c->survival.audit, l->steps)) LS_TRY(audit(l, e));
    if (l->evicts) return LS_OK; /* the next view does the rest */
    return is_due(c->train.eval_every, l->steps) && !evaluated ? evaluate(l, false, e) : LS_OK;
}

/* Worker 0's clock. */
static bool is_time(const loop *l) {
    double minutes = l->run->config.checkpoint.minutes;
    if (l->m.worker != 0 || minutes == 0 || l->evicts) return false;
    return (double)(ls_clock_ns() - l->saved_ns) / 60e9 >= minutes;
}

/* What this worker is asked to do. A signal is for all, or where one process asks them all, for
 * this worker alone: it leaves. */
static ls_asked own_asked(const loop *l) {
    bool survives = l->run->store != NULL;
    int asked = atomic_load(&l->m.slot->asked);
    if (l->evicts && asked < LS_ASKED_RENEW) asked = LS_ASKED_RENEW;
    if (!ls_interrupted()) return (ls_asked)asked;
    if (!survives) return LS_ASKED_STOP;
    atomic_store(&l->m.slot->leaves, 1);
    return asked > LS_ASKED_RENEW ? (ls_asked)asked : LS_ASKED_RENEW;
}

/* All steps are done, or the run ends early. */
static bool is_complete(const loop *l) {
    const ls_config *c = &l->run->config;
    return l->steps >= c->train.steps || ls_best_ends(&l->best, c, l->steps);
}

/* All do after a step what one is asked to. All have updated what is theirs then, and it can be
 * saved. */
static ls_status agree_on_asked(loop *l, ls_error *e) {
    int32_t asked[2 + LS_SNAPSHOT_WORDS] = {(int32_t)own_asked(l), is_time(l)};
    ls_snapshot_run own = ls_run_snapshot(l->run);
    ls_snapshot_say(&own, l->m.worker, l->asked_share, asked + 2);
    LS_TRY(ls_all_reduce(l->m.group, asked, asked, 2 + LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
    ls_snapshot_hear(&own, l->m.worker, l->asked_share, asked + 2);
    l->asked = (ls_asked)asked[0];
    const ls_config *c = &l->run->config;
    bool best = ls_best_is_kept(c) && l->best.step == l->steps && l->steps > 0;
    bool due = best || asked[1] || (is_due(c->checkpoint.every, l->steps) && !l->evicts);
    if (due && l->steps < c->train.steps) LS_TRY(save(l, best ? FOR_SURE : IF_IDLE, e));
    if (due && l->m.worker == 0) LS_TRY(ls_tokens_verify(&l->corpus.tokens, e));
    if (l->asked == LS_ASKED_STOP && l->m.worker == 0 && !is_complete(l))
        ls_log("interrupted: stopping after step %lld, with a checkpoint; again to end at once",
               (long long)l->steps);
    return LS_OK;
}

/* ---- the loop ---- */

/* For whoever shares out the work. */
static void tell_computed(loop *l) {
    static const ls_action_kind kinds[] = {LS_FORWARD, LS_RECOMPUTE, LS_BACKWARD, LS_ADD};
    int64_t all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all += ls_exec_time(l->m.execs[0], kinds[i]);
    atomic_store(&l->m.slot->measured, 0);
    atomic_store(&l->m.slot->compute_ns, all);
    atomic_store(&l->m.slot->measured, ++l->measured);
}

/* Nothing of the step has been applied: the run ends with the step before it. */
static void give_up_step(loop *l, double seconds) {
    l->asked = LS_ASKED_STOP;
    if (l->m.worker != 0) return;
    ls_log(
        "interrupted: step %lld was given up after %.1f s (survival.stop_s %g); it is done again "
        "when the run goes on",
        (long long)l->steps + 1, seconds, l->run->config.survival.stop_s);
}

static ls_status one_step(loop *l, ls_error *e) {
    ls_step_in in = ls_run_step(l->run, l->steps, &l->m.scaler);
    ls_step_out out = {0};
    int64_t begin = ls_clock_ns();
    ls_in_flight_begin(l->flight, l->steps);
    ls_status s = ls_member_step(&l->m, &in, &out, e);
    ls_in_flight_end(l->flight);
    LS_TRY(s);
    double seconds = (double)(ls_clock_ns() - begin) / 1e9;
    if (ls_exec_gave_up(l->m.execs[0])) {
        give_up_step(l, seconds);
        return LS_OK;
    }
    l->steps++;
    l->seconds += seconds;
    l->nsteps++;
    tell_computed(l);
    if (!out.skipped && (!isfinite(out.loss) || !isfinite(out.grad_norm)))
        return ls_fail(
            e, LS_EINVAL,
            "step %lld: the loss is %g and the gradient's norm %g; lower optim.lr, or go "
            "on from an earlier checkpoint",
            (long long)l->steps, out.loss, out.grad_norm);
    return l->metrics ? ls_metrics_step(l->metrics, l->steps, &in, &out, seconds, e) : LS_OK;
}

/* A checkpoint of workers that ended before they could evaluate it. */
static bool is_unevaluated(const loop *l) {
    const ls_config *c = &l->run->config;
    bool due = l->steps > 0 && is_due(c->train.eval_every, l->steps);
    return due && ls_best_is_kept(c) && l->best.val_step != l->steps;
}

static ls_status run_steps(loop *l, ls_error *e) {
    int64_t all = l->run->config.train.steps;
    if (l->follows || is_unevaluated(l)) {
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    } else {
        note_evaluated(l); /* not before the first step: it keeps what it has */
    }
    while (l->asked == LS_ASKED_NOTHING && !is_complete(l)) {
        LS_TRY(ls_tracer_before(&l->tracer, l->steps, e));
        LS_TRY(one_step(l, e));
        if (l->asked != LS_ASKED_NOTHING) break; /* it was given up */
        LS_TRY(ls_tracer_after(&l->tracer, l->steps - 1, e));
        LS_TRY(after_step(l, e));
        LS_TRY(agree_on_asked(l, e));
    }
    LS_TRY(ls_tracer_finish(&l->tracer, e));
    if (l->asked == LS_ASKED_RENEW && !is_complete(l)) {
        atomic_store(&l->m.slot->renews, 1);
        return LS_OK;
    }
    l->asked = LS_ASKED_STOP;
    if (l->steps > 0) LS_TRY(save(l, LAST, e)); /* else there is nothing to go on from */
    return l->steps == all ? evaluate(l, true, e) : LS_OK;
}

/* ---- before and after ---- */

/* From the view before. */
static ls_status keep_folder(loop *l, ls_error *e) {
    l->folder->notes->step = ls_store_steps(l->run->store);
    return ls_corpus_is_saved(l->run->dir) ? LS_OK : mend_folder(l, e);
}

/* Whoever starts all workers has opened it for them. */
static ls_status take_folder(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    const ls_run_notes *notes = ls_run_notes_of(r);
    ls_folder_phase phase = notes ? ls_folder_phase_of(&notes->folder) : LS_FOLDER_UNTOUCHED;
    if (l->metrics) return keep_folder(l, e);
    if (!l->folder) l->folder = r->folder;
    ls_folder_run own = ls_run_folder(r);
    if (!l->folder) LS_TRY(ls_folder_open(&own, phase != LS_FOLDER_UNTOUCHED, &l->folder, e));
    return phase == LS_FOLDER_MADE ? ls_folder_follow(l->folder, e)
                                   : ls_folder_take_up(l->folder, e);
}

/* What all decide by is worker 0's, as its host has been there before. For workers to come, each
 * host notes it. */
typedef struct agreed {
    int64_t steps; /* complete */
    int64_t n;     /* workers of worker 0's host */
    int64_t begun_at, saved, evaluated, tokens;
} agreed;

static agreed own_agreed(const loop *l) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    agreed a = {.steps = l->folder ? l->folder->notes->step : 0, .n = l->run->survival.view.n};
    if (!notes) return a;
    if (l->folder && ls_folder_phase_of(&notes->folder) != LS_FOLDER_MADE)
        atomic_store(&notes->folder.step, a.steps);
    a.begun_at = atomic_load(&notes->folder.step);
    a.saved = atomic_load(&notes->saved);
    a.evaluated = atomic_load(&notes->evaluated);
    a.tokens = atomic_load(&notes->tokens);
    return a;
}

static ls_status agree_on_done(loop *l, ls_error *e) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    agreed a = own_agreed(l);
    LS_TRY(ls_broadcast(l->m.group, &a, sizeof a / sizeof(int64_t), LS_I64, 0, e));
    l->steps = a.steps;
    if (!notes) return LS_OK;
    l->shared = ls_snapshot_is_shared(&l->run->layout.plan, (int)a.n);
    atomic_store(&notes->folder.step, a.begun_at);
    atomic_store(&notes->saved, a.saved);
    atomic_store(&notes->evaluated, a.evaluated);
    atomic_store(&notes->tokens, a.tokens);
    ls_folder_set_made(&notes->folder);
    l->saved = a.saved - 1;
    l->evaluated = a.evaluated - 1;
    return LS_OK;
}

/* The same tokens in all views of a run, whatever becomes of its directory; one from before there
 * was a record of them gets it. */
static ls_status open_corpus(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    LS_TRY(ls_corpus_open(&l->corpus, r->dir, &r->config, e));
    const ls_hash *h = &l->corpus.record.tokens;
    int64_t mark = (int64_t)((h->hi ^ h->lo) | 1), was = 0; /* 0: not known yet */
    ls_run_notes *notes = ls_run_notes_of(r);
    if (notes) was = atomic_load(&notes->tokens);
    if (was && was != mark)
        return ls_fail(e, LS_EINVAL,
                       "%s/tokens.bin: has other tokens than this run has been trained on; was it "
                       "made again from a text that has changed? Put it back and go on with "
                       "--resume",
                       r->dir);
    if (notes) atomic_store(&notes->tokens, mark);
    return ls_group_rank(l->m.group) == 0 ? ls_corpus_save(&l->corpus, r->dir, e) : LS_OK;
}

/* What workers before these have found; where their state is lost, what its checkpoints say. */
static ls_status agree_on_best(loop *l, ls_error *e) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    int64_t wanted = l->run->config.train.eval_samples, most = (int64_t)l->corpus.nval;
    ls_best b = {.nsamples = wanted < most ? wanted : most};
    if (l->folder && l->follows)
        ls_best_load(&b, &notes->best);
    else if (l->folder)
        ls_best_find(&b, l->run->dir, l->steps);
    LS_TRY(ls_broadcast(l->m.group, &b, sizeof b, LS_U8, 0, e));
    l->best = b;
    if (notes) ls_best_save(&b, &notes->best);
    return LS_OK;
}

/* Worker 0 makes or takes up the folder; then all read from it. */
static ls_status open_folder(loop *l, ls_error *e) {
    bool first = ls_group_rank(l->m.group) == 0;
    LS_TRY(ls_member_wait(&l->m, first ? take_folder(l, e) : LS_OK, e));
    LS_TRY(agree_on_done(l, e));
    ls_status s = LS_OK;
    if (!l->corpus.tokenizer) s = open_corpus(l, e); /* else it stayed */
    LS_TRY(ls_agree(l->m.group, s, e));
    return agree_on_best(l, e);
}

/* `lockstep plan` prints the whole table. */
static void tell_memory(const ls_run *r) {
    ls_memory_config how = ls_layout_memory_config(&r->config, r->nworkers, r->nworkers);
    ls_memory m;
    ls_plan_memory(&r->layout.plan, &how, &m);
    ls_purpose most = ls_memory_worst(&m);
    ls_log("memory of a worker: %.1f MB at most, %.1f of it %s", (double)m.peak / 1e6,
           (double)m.nbytes[most] / 1e6, ls_purpose_name(most));
}

/* More threads than cores take turns: steps get slower, not faster. */
static void warn_of_crowd(const ls_member *m) {
    int threads = (int)m->run->config.parallel.threads, near = ls_group_near(m->group);
    int cores = ls_cores_among(near), fit = cores / near;
    char advice[64];
    if ((long long)near * threads <= cores) return;
    if (fit > 0)
        snprintf(advice, sizeof advice, "parallel.threads=%d", fit);
    else
        snprintf(advice, sizeof advice, "%d worker%s", cores, cores == 1 ? "" : "s");
    ls_log(
        "warning: %d worker%s with %d thread%s each, on %d core%s: they take turns; %s would fit",
        near, near == 1 ? "" : "s", threads, threads == 1 ? "" : "s", cores, cores == 1 ? "" : "s",
        advice);
}

/* Worker 0 tells of a run's beginning; workers that follow others are told of by who starts them.
 */
static void tell_beginning(const loop *l) {
    const ls_run *r = l->run;
    if (r->survival.view.id.number > 1) return;
    ls_log("%s: %zu parameters, %llu training samples of %lld tokens, %d worker%s (%s), %lld "
           "virtual worker%s",
           r->dir, r->layout.model.count, (unsigned long long)l->corpus.ntrain,
           (long long)r->config.model.context, r->nworkers, r->nworkers == 1 ? "" : "s",
           ls_run_workers_name(r), (long long)r->config.train.virtual_workers,
           ls_plural(r->config.train.virtual_workers));
    tell_memory(r);
    warn_of_crowd(&l->m);
    ls_log("first step after %.2f s", (double)(ls_clock_ns() - r->began_ns) / 1e9);
}

/* After the lines of steps that will be done again are cut off; those of a view before this one
 * stay. */
static ls_status open_new_metrics(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    bool follows = r->store && r->survival.view.id.number > 1, old = false;
    ls_logged logged = {0};
    LS_TRY(ls_folder_keep(l->folder, &old, e));
    int64_t steps = follows ? INT64_MAX : l->folder->notes->step;
    if (old) LS_TRY(ls_metrics_cut(r->dir, steps, &logged, e));
    return ls_metrics_open(r->dir, &r->config, logged, &l->metrics, e);
}

/* Where they are open they stay so; the line of the latest step may be missing. */
static ls_status open_metrics(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    ls_store_note last;
    if (!l->metrics) LS_TRY(open_new_metrics(l, e));
    ls_folder_stay(l->folder);
    ls_metrics_set_view(l->metrics, r->store ? r->survival.view.id.number : 1, r->nworkers);
    bool known = r->store && ls_store_latest(r->store, &last);
    return known ? ls_metrics_missing(l->metrics, &last, e) : LS_OK;
}

static ls_status begin(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    l->m.corpus = &l->corpus;
    LS_TRY(ls_member_join(&l->m, e));
    char *path = ls_checkpoint_path(r->dir, l->steps);
    ls_status s = ls_member_begin(&l->m, l->steps, path, e);
    free(path);
    LS_TRY(s);
    if (l->m.worker == 0) {
        s = open_metrics(l, e);
        tell_beginning(l);
        ls_in_flight_config flight = {l->m.slot, r->config.train.steps, r->config.survival.stop_s,
                                      LS_IN_FLIGHT_S};
        if (s == LS_OK && !l->flight) s = ls_in_flight_open(&flight, &l->flight, e);
    }
    ls_tracer_close(&l->tracer);
    ls_traced_workers traced = ls_member_traced(&l->m);
    ls_tracer_open(&l->tracer, &l->job->trace, &traced, l->steps, r->config.train.steps);
    return ls_agree(l->m.group, s, e);
}

/* The longest that a worker of this host waited for one that was written beside training. */
static void tell_held(const loop *l) {
    ls_run_notes *notes = ls_run_notes_of(l->run);
    double held = notes ? (double)atomic_load(&notes->snapshot.held_ns) / 1e9 : 0;
    double part = l->seconds > 0 ? held * (double)l->nsteps / l->seconds : 0; /* of a step */
    if (part < 0.01) return; /* too little to speak of */
    ls_log("checkpoints held workers up for %.1f ms at most: %.0f%% of a step", held * 1e3,
           100 * part);
}

static void report_best(const loop *l) {
    const ls_run *r = l->run;
    long long step = (long long)l->best.step, n = ls_best_since(&l->best, &r->config, l->steps);
    if (!ls_best_is_kept(&r->config) || step == 0) return;
    char *path = ls_checkpoint_path(r->dir, step);
    bool there = ls_file_exists(path);
    if (l->steps < r->config.train.steps)
        ls_print("\nstopped early after step %lld: no lower validation loss in %lld evaluation%s; ",
                 (long long)l->steps, n, ls_plural(n));
    ls_print("the best is step %lld (loss %.4f)%s%s%s\n", step, l->best.loss,
             there ? ": " : ", whose checkpoint could not be written", there ? r->dir : "",
             there ? "/checkpoints/best" : "");
    free(path);
}

/* Worker 0's last word, on standard output. */
static ls_status summarize(loop *l, ls_error *e) {
    const ls_run *r = l->run;
    int64_t all = r->config.train.steps;
    ls_log_end_status();
    int64_t nbacked = r->store ? ls_store_nbacked(r->store) : 0;
    if (nbacked)
        ls_log("%lld time%s a backup worker had a virtual worker's gradient first",
               (long long)nbacked, ls_plural(nbacked));
    tell_held(l);
    if (l->steps < all) ls_report_picture(&l->picture, r->dir, true);
    if (l->steps < all && is_complete(l)) {
        report_best(l);
        if (fflush(stdout) != 0 || ferror(stdout)) ls_log("standard output can't be written");
        return LS_OK;
    }
    if (l->steps < all) {
        ls_log("stopped after step %lld of %lld; go on%s with: %s", (long long)l->steps,
               (long long)all, r->started ? ", under the same launcher," : "", l->job->again);
        return LS_OK;
    }
    const ls_corpus *c = &l->corpus;
    size_t nval = (size_t)c->nval * (size_t)r->config.model.context + 1;
    double bigram = 0, nbytes = 0;
    LS_TRY(ls_corpus_bigram(c, nval, &bigram, &nbytes, e));
    ls_evaluation level = ls_evaluation_of(bigram * (double)(nval - 1), nbytes, nval - 1, 1);
    LS_TRY(ls_report_curve(r->dir, bigram, e));
    ls_print("\nvalidation loss %.4f nats/token, %.4f bits/byte; bigram model of the same tokens "
             "%.4f, %.4f\n",
             l->latest.loss, l->latest.bits_per_byte, level.loss, level.bits_per_byte);
    ls_print("loss curve: %s/loss.svg; checkpoint: %s/checkpoints/step-%lld\n", r->dir, r->dir,
             (long long)all);
    report_best(l);
    if (fflush(stdout) != 0 || ferror(stdout)) ls_log("standard output can't be written");
    return LS_OK;
}

static void log_complete(const loop *l) {
    const ls_config *c = &l->run->config;
    if (l->steps >= c->train.steps)
        ls_log("%s: is complete: step %lld of %lld; raise train.steps to train on", l->run->dir,
               (long long)l->steps, (long long)c->train.steps);
    else
        ls_log("%s: is complete: stopped early after step %lld, with the best at step %lld; raise "
               "train.patience (%lld) to train on",
               l->run->dir, (long long)l->steps, (long long)l->best.step,
               (long long)c->train.patience);
}

static ls_status run_worker(loop *l, ls_error *e) {
    LS_TRY(ls_tracer_check(&l->job->trace, l->m.group, e));
    LS_TRY(open_folder(l, e));
    bool first = ls_group_rank(l->m.group) == 0;
    if (is_complete(l) && !l->follows) {
        if (first) log_complete(l);
        return LS_OK;
    }
    LS_TRY(begin(l, e));
    LS_TRY(run_steps(l, e));
    /* A launcher ends the others when the first has ended with an exit code: all wait for worker 0.
     */
    bool stops = l->asked == LS_ASKED_STOP && !is_complete(l);
    if (stops) atomic_store(l->job->unfinished, 1);
    ls_metrics *metrics = l->metrics;
    l->metrics = NULL;
    LS_TRY(ls_metrics_close(metrics, e));
    ls_status s = first && l->asked == LS_ASKED_STOP ? summarize(l, e) : LS_OK;
    return stops ? ls_member_wait(&l->m, s, e) : s;
}

static loop *new_loop(const ls_train_job *job, ls_board_slot *me) {
    loop *l = LS_NEW(loop);
    *l = (loop){.job = job, .run = &job->run, .saved = -1};
    l->saved_ns = ls_clock_ns();
    l->m = (ls_member){.run = l->run, .slot = me};
    return l;
}

/* With `how`: a start fails by an error of its own, not where another worker was lost. */
static void free_loop(loop *l, ls_status how) {
    bool fails = how != LS_OK && how != LS_EPEER && how != LS_EABORT && how != LS_ETIMEOUT;
    ls_metrics_close(l->metrics, NULL);
    ls_tracer_close(&l->tracer);
    ls_in_flight_close(l->flight);
    ls_member_leave(&l->m);
    ls_corpus_free(&l->corpus);
    if (l->folder != l->run->folder) ls_folder_close(l->folder, fails);
    free(l);
}

/* What it has is worth keeping: another worker was lost. */
static bool may_rest(const ls_run *r, ls_status s) {
    return r->store && r->survival.stays && (s == LS_EPEER || s == LS_EABORT);
}

ls_status ls_train_worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    ls_train_job *job = arg;
    bool rested = job->run.store && job->loop;
    loop *l = rested ? job->loop : new_loop(job, me);
    l->follows = l->run->store && ls_store_steps(l->run->store) >= 0;
    l->asked = LS_ASKED_NOTHING;
    l->evicts = false;
    l->m.group = g;
    ls_status s = run_worker(l, e);
    if (may_rest(l->run, s)) {
        ls_member_part(&l->m);
        job->loop = l;
        return s;
    }
    free_loop(l, s);
    if (rested) job->loop = NULL;
    return s;
}
