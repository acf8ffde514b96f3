/* save.c - see save.h. */
#include "train/save.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "storage/checkpoint.h"
#include "storage/model_step.h"
#include "table/step_rows.h"
#include "train/inputs.h"
#include "train/loop.h"
#include "train/member_state.h"

/* Notes that a checkpoint is due now: the next one by time is counted from here on, also by the
 * workers of later views. */
static void note_due(ls_loop *l) {
    l->saver.due_ns = ls_clock_ns();
    atomic_store(&l->host->notes->saved_ns, l->saver.due_ns);
}

/* For the workers of later views. */
static void note_saved(const ls_loop *l) { atomic_store(&l->host->notes->saved, l->steps); }

void ls_saver_open(ls_loop *l) {
    l->saver =
        (ls_saver){.steps = -1, .part = -1, .due_ns = atomic_load(&l->host->notes->saved_ns)};
    if (!l->saver.due_ns) note_due(l);
}

void ls_saver_begin(ls_loop *l, int64_t saved, int n) {
    l->saver.steps = saved;
    l->saver.part = -1;
    l->saver.shared = ls_snapshot_is_shared(&l->m.layout->plan, n);
}

/* ---- when ---- */

bool ls_save_is_time(const ls_loop *l) {
    enum { OF_BEST = 10 }; /* the best state is due this much sooner */
    const ls_config *c = &l->run->config;
    double minutes = c->checkpoint.minutes;
    double since = (double)(ls_clock_ns() - l->saver.due_ns) / 60e9;
    if (l->m.worker != 0 || minutes == 0 || l->evicts) return false;
    bool best = ls_validation_is_best(l) && c->checkpoint.best == LS_BEST_AUTO;
    return since >= (best ? minutes / OF_BEST : minutes);
}

/* None takes the room of the run's last checkpoint, so one that is being written must be complete,
 * which shows the room that is left. */
bool ls_save_is_due_by_time(ls_loop *l) {
    enum { ROOM = 3 }; /* it, the last one, and as much for files that grow until then */
    if (!ls_save_is_time(l) || ls_snapshot_is_pending(&l->host->notes->snapshot)) return false;
    if (ls_folder_check_room(l->out.folder, ROOM, NULL) == LS_OK) return true;
    note_due(l); /* it is tried again */
    if (l->saver.nroomless++ == 0)
        ls_log("no checkpoint by time after step %lld: %s has room for the run's last one alone; "
               "make room there",
               (long long)l->steps, l->run->dir);
    return false;
}

void ls_save_say(const ls_loop *l, int32_t *words) {
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    ls_snapshot_say(&own, l->m.worker, l->saver.part, words);
}

void ls_save_hear(const ls_loop *l, const int32_t *words) {
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    ls_snapshot_hear(&own, l->m.worker, l->saver.part, words);
}

/* ---- how ---- */

static void log_save_failed(const ls_loop *l, const ls_error *why) {
    ls_log("the checkpoint of step %lld failed: %s", (long long)l->steps, why->msg);
}

/* Logs the first of several skipped checkpoints in a row; log_skips_end() logs their number. */
static void log_save_skipped(ls_loop *l) {
    if (l->saver.nskipped++ == 0)
        ls_log("the checkpoint of step %lld is skipped: the previous one is still being written",
               (long long)l->steps);
}

static void log_skips_end(ls_loop *l) {
    if (l->saver.nskipped > 1)
        ls_log("%lld checkpoints in a row were skipped: the previous one was still being written",
               (long long)l->saver.nskipped);
    l->saver.nskipped = 0;
}

/* The last checkpoint must succeed. The message names the one from which the run can continue. */
static ls_status fail_last(const ls_loop *l, ls_error *e) {
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

ls_status ls_save_restore_folder(ls_loop *l, ls_error *e) {
    ls_error lost;
    LS_TRY(ls_folder_repair(l->out.folder, &l->data, l->m.frozen.file.values, e));
    if (ls_metrics_repair(l->out.metrics, &lost) != LS_OK) ls_log("%s", lost.msg);
    return LS_OK;
}

/* Worker 0 writes while the others wait, without a time limit. */
static ls_status save_plain(ls_loop *l, ls_urgency u, ls_error *e) {
    bool last = u == LS_SAVE_LAST;
    if (l->saver.steps == l->steps) return LS_OK;
    const ls_plan *p = &l->m.layout->plan;
    ls_status s = LS_OK;
    ls_error why;
    LS_TRY(ls_world_collect(&l->m.worlds[0], &p->share, e));
    LS_TRY(ls_world_collect_errors(&l->m.worlds[0], &p->share, l->steps, e));
    LS_TRY(ls_step_rows_collect(l->m.rows, e));
    if (l->m.worker == 0) {
        s = ls_save_restore_folder(l, &why);
        if (s == LS_OK) s = ls_member_write(&l->m, l->steps, &l->val.best, &l->saver.known, &why);
        if (s != LS_OK) log_save_failed(l, &why);
        if (s != LS_OK) ls_frozen_file_doubt(&l->m.frozen.file);
    }
    ls_world_drop_collected(&l->m.worlds[0], &p->share);
    LS_TRY(ls_step_rows_drop_collected(l->m.rows, e));
    int32_t good = s == LS_OK;
    LS_TRY(ls_member_wait(&l->m, good || !last ? LS_OK : fail_last(l, e), e));
    LS_TRY(ls_broadcast(l->m.group, &good, 1, LS_I32, 0, e));
    if (good) l->saver.steps = l->steps;
    return LS_OK;
}

/* One host has all of the state, and its writer writes the checkpoint. */
static ls_status save_beside(ls_loop *l, ls_urgency u, ls_error *e) {
    bool last = u == LS_SAVE_LAST;
    ls_snapshot_state *state = &l->host->notes->snapshot;
    ls_error why;
    if (l->m.worker != 0) {
        if (l->host->survival.view.first > 0) note_saved(l);
        return LS_OK;
    }
    if (u != LS_SAVE_IF_IDLE) (void)ls_snapshot_wait_written(state, &why);
    ls_status s = ls_save_restore_folder(l, &why);
    if (s != LS_OK)
        log_save_failed(l, &why);
    else if (!ls_snapshot_ask(state, l->steps))
        log_save_skipped(l);
    else
        log_skips_end(l);
    note_saved(l);
    if (last && s == LS_OK) s = ls_snapshot_wait_written(state, &why);
    return last && s != LS_OK ? fail_last(l, e) : LS_OK;
}

/* Waits until no writer of any host is writing. Meanwhile the workers exchange what the writers
 * need to know about each other. *killed_p, on all workers: one has failed since it was killed. */
static ls_status await_written(ls_loop *l, bool *killed_p, ls_error *e) {
    int32_t words[LS_SNAPSHOT_WORDS];
    for (;;) {
        ls_save_say(l, words);
        LS_TRY(ls_all_reduce(l->m.group, words, words, LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
        ls_save_hear(l, words);
        *killed_p = words[LS_SNAPSHOT_FAILURE] >= LS_SNAPSHOT_WAS_KILLED;
        if (!words[LS_SNAPSHOT_PENDING]) return LS_OK;
        usleep(1000);
    }
}

/* What the workers agree on: the writers of all hosts are asked for their parts, or none is. */
enum { CAN_ASK, IS_BUSY, NEED_NOT };

/* What this worker knows. Worker 0 also restores the run directory. */
static int32_t own_readiness(ls_loop *l, bool last) {
    int32_t words[LS_SNAPSHOT_WORDS];
    ls_error why;
    ls_save_say(l, words);
    if (words[LS_SNAPSHOT_PENDING]) return IS_BUSY;
    if (l->m.worker != 0) return CAN_ASK;
    if (last && ls_snapshot_is_written(&l->host->notes->snapshot, l->steps)) return NEED_NOT;
    if (ls_save_restore_folder(l, &why) == LS_OK) return CAN_ASK;
    log_save_failed(l, &why);
    return NEED_NOT;
}

static void log_handed_over(const ls_loop *l, bool good) {
    if (l->m.worker != 0) return;
    if (good)
        ls_log("a host leaves: step %lld is saved, with the parts of the state that it has",
               (long long)l->steps);
    else
        ls_log("a host leaves, and step %lld could not be saved: steps since the newest checkpoint "
               "may be repeated",
               (long long)l->steps);
}

/* Asks all hosts for their parts, if all are ready. */
static ls_status ask_parts(ls_loop *l, bool last, ls_error *e) {
    int32_t what = own_readiness(l, last);
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    LS_TRY(ls_all_reduce(l->m.group, &what, &what, 1, LS_I32, LS_MAX, e));
    if (what == CAN_ASK)
        ls_snapshot_ask_share(&own, l->m.worker, l->steps, &l->saver.part);
    else if (what == IS_BUSY && l->m.worker == 0)
        log_save_skipped(l);
    if (what == CAN_ASK && l->m.worker == 0) log_skips_end(l);
    return LS_OK;
}

/* Each host writes its part of the state. No other attempt follows the last checkpoint by itself:
 * if a writer was killed, the parts are written again. */
static ls_status save_parts(ls_loop *l, ls_urgency u, ls_error *e) {
    enum { MOST_ATTEMPTS = 3 };
    bool last = u >= LS_SAVE_HAND_OVER, killed = false;
    int attempts = 0;
    note_saved(l);
    if (u != LS_SAVE_IF_IDLE) LS_TRY(await_written(l, &killed, e));
    do {
        LS_TRY(ask_parts(l, last, e));
        if (!last) return LS_OK;
        LS_TRY(await_written(l, &killed, e));
        killed = killed && ++attempts < MOST_ATTEMPTS;
        if (killed && l->m.worker == 0)
            ls_log("the checkpoint of step %lld is written again, since a writer was killed",
                   (long long)l->steps);
    } while (killed);
    bool good = l->m.worker != 0 || ls_snapshot_is_written(&l->host->notes->snapshot, l->steps);
    if (u == LS_SAVE_HAND_OVER) {
        log_handed_over(l, good);
        return LS_OK;
    }
    return ls_member_wait(&l->m, good ? LS_OK : fail_last(l, e), e);
}

/* Saves a checkpoint that another process writes (storage/snapshot.h). */
static ls_status save_supervised(ls_loop *l, ls_urgency u, ls_error *e) {
    bool saved = l->saver.steps == l->steps, last = u >= LS_SAVE_HAND_OVER;
    l->saver.steps = l->steps;
    if (saved && !last) return LS_OK;
    ls_status s = l->saver.shared ? save_parts(l, u, e) : save_beside(l, u, e);
    if (u != LS_SAVE_IF_IDLE && !l->saver.shared) s = ls_member_wait(&l->m, s, e);
    if (last) return s;
    ls_snapshot_note_held(&l->host->notes->snapshot, ls_clock_ns() - l->saver.due_ns);
    return s;
}

ls_status ls_save(ls_loop *l, ls_urgency u, ls_error *e) {
    bool failed = ls_snapshot_has_failed(&l->host->notes->snapshot);
    note_due(l);
    if (failed) ls_frozen_file_doubt(&l->m.frozen.file); /* as its writer may have found */
    LS_TRY(ls_member_wait(&l->m, ls_inputs_check(&l->data, &l->m.frozen.file, e), e));
    if (u >= LS_SAVE_HAND_OVER && l->m.worker == 0)
        ls_model_step_log(&l->run->config, l->steps, "the last checkpoint");
    return l->host->runtime->survives ? save_supervised(l, u, e) : save_plain(l, u, e);
}
