/* save.c - see save.h. */
#include "train/save.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "storage/checkpoint.h"
#include "table/step_rows.h"
#include "train/inputs.h"

static ls_status write_checkpoint(ls_loop *l, ls_error *e) {
    const ls_world *w = &l->m.worlds[0];
    ls_train_state s = {.model = &l->m.layout->model,
                        .optim = &l->m.layout->plan.share.optim,
                        .step = l->steps,
                        .replicas = l->m.layout->plan.share.islands,
                        .flat = w->flat};
    if (ls_run_has_scale(l->run)) s.scaler = l->m.scaler;
    ls_member_errors(&l->m, l->steps, &s);
    s.tables = ls_step_rows_tables(l->m.rows);
    ls_data_files data;
    ls_dataset_files(&l->data, &data);
    ls_checkpoint_extra x = {.data = &data,
                             .config = &l->run->config_text,
                             .frozen = l->m.frozen.file.hash,
                             .known = &l->known,
                             .keep = l->run->config.checkpoint.keep};
    ls_best_describe(&l->best, &l->run->config, l->steps, &x);
    ls_status status = ls_data_files_add_published(&data, l->run->dir, e);
    if (status == LS_OK) status = ls_checkpoint_write(l->run->dir, &s, &x, e);
    ls_data_files_free(&data);
    return status;
}

static void log_save_failed(const ls_loop *l, const ls_error *why) {
    ls_log("the checkpoint of step %lld failed: %s", (long long)l->steps, why->msg);
}

/* Logs the first of several skipped checkpoints in a row; log_skips_end() logs their number. */
static void log_save_skipped(ls_loop *l) {
    if (l->nskipped++ == 0)
        ls_log("the checkpoint of step %lld is skipped: the previous one is still being written",
               (long long)l->steps);
}

static void log_skips_end(ls_loop *l) {
    if (l->nskipped > 1)
        ls_log("%lld checkpoints in a row were skipped: the previous one was still being written",
               (long long)l->nskipped);
    l->nskipped = 0;
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
    LS_TRY(ls_folder_repair(l->folder, &l->data, l->m.frozen.file.values, e));
    if (ls_metrics_repair(l->metrics, &lost) != LS_OK) ls_log("%s", lost.msg);
    return LS_OK;
}

ls_status ls_save_plain(ls_loop *l, ls_urgency u, ls_error *e) {
    bool last = u == LS_SAVE_LAST;
    if (l->saved == l->steps) return LS_OK;
    const ls_plan *p = &l->m.layout->plan;
    ls_status s = LS_OK;
    ls_error why;
    LS_TRY(ls_world_collect(&l->m.worlds[0], &p->share, e));
    LS_TRY(ls_world_collect_errors(&l->m.worlds[0], &p->share, l->steps, e));
    LS_TRY(ls_step_rows_collect(l->m.rows, e));
    if (l->m.worker == 0) {
        s = ls_save_restore_folder(l, &why);
        if (s == LS_OK) s = write_checkpoint(l, &why);
        if (s != LS_OK) log_save_failed(l, &why);
        if (s != LS_OK) ls_frozen_file_doubt(&l->m.frozen.file);
    }
    ls_world_drop_collected(&l->m.worlds[0], &p->share);
    LS_TRY(ls_step_rows_drop_collected(l->m.rows, e));
    int32_t good = s == LS_OK;
    LS_TRY(ls_member_wait(&l->m, good || !last ? LS_OK : fail_last(l, e), e));
    LS_TRY(ls_broadcast(l->m.group, &good, 1, LS_I32, 0, e));
    if (good) l->saved = l->steps;
    return LS_OK;
}

/* One host has all of the state, and its writer writes the checkpoint. */
static ls_status save_beside(ls_loop *l, ls_urgency u, ls_error *e) {
    bool last = u == LS_SAVE_LAST;
    ls_snapshot_state *state = &l->host->notes->snapshot;
    ls_error why;
    if (l->m.worker != 0) {
        if (l->host->survival.view.first > 0) ls_loop_note_saved(l);
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
    ls_loop_note_saved(l);
    if (last && s == LS_OK) s = ls_snapshot_wait_written(state, &why);
    return last && s != LS_OK ? fail_last(l, e) : LS_OK;
}

/* Waits until no writer of any host is writing. Meanwhile the workers exchange what the writers
 * need to know about each other. */
static ls_status await_written(ls_loop *l, ls_error *e) {
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    int32_t words[LS_SNAPSHOT_WORDS];
    for (;;) {
        ls_snapshot_say(&own, l->m.worker, l->asked_share, words);
        LS_TRY(ls_all_reduce(l->m.group, words, words, LS_SNAPSHOT_WORDS, LS_I32, LS_MAX, e));
        ls_snapshot_hear(&own, l->m.worker, l->asked_share, words);
        if (!words[LS_SNAPSHOT_PENDING]) return LS_OK;
        usleep(1000);
    }
}

/* What the workers agree on: the writers of all hosts are asked for their parts, or none is. */
enum { CAN_ASK, IS_BUSY, NEED_NOT };

/* What this worker knows. Worker 0 also restores the run directory. */
static int32_t own_readiness(ls_loop *l, bool last) {
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    int32_t words[LS_SNAPSHOT_WORDS];
    ls_error why;
    ls_snapshot_say(&own, l->m.worker, l->asked_share, words);
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

/* Each host writes its part of the state. */
static ls_status save_parts(ls_loop *l, ls_urgency u, ls_error *e) {
    bool last = u >= LS_SAVE_HAND_OVER;
    ls_loop_note_saved(l);
    if (u != LS_SAVE_IF_IDLE) LS_TRY(await_written(l, e));
    int32_t what = own_readiness(l, last);
    ls_snapshot_run own = ls_host_snapshot_run(l->host);
    LS_TRY(ls_all_reduce(l->m.group, &what, &what, 1, LS_I32, LS_MAX, e));
    if (what == CAN_ASK)
        ls_snapshot_ask_share(&own, l->m.worker, l->steps, &l->asked_share);
    else if (what == IS_BUSY && l->m.worker == 0)
        log_save_skipped(l);
    if (what == CAN_ASK && l->m.worker == 0) log_skips_end(l);
    if (!last) return LS_OK;
    LS_TRY(await_written(l, e));
    bool good = l->m.worker != 0 || ls_snapshot_is_written(&l->host->notes->snapshot, l->steps);
    if (u == LS_SAVE_HAND_OVER) {
        log_handed_over(l, good);
        return LS_OK;
    }
    return ls_member_wait(&l->m, good ? LS_OK : fail_last(l, e), e);
}

ls_status ls_save_supervised(ls_loop *l, ls_urgency u, ls_error *e) {
    bool saved = l->saved == l->steps, last = u >= LS_SAVE_HAND_OVER;
    l->saved = l->steps;
    if (saved && !last) return LS_OK;
    ls_status s = l->shared ? save_parts(l, u, e) : save_beside(l, u, e);
    if (u != LS_SAVE_IF_IDLE && !l->shared) s = ls_member_wait(&l->m, s, e);
    if (last) return s;
    ls_snapshot_note_held(&l->host->notes->snapshot, ls_clock_ns() - l->saved_ns);
    return s;
}

ls_status ls_save(ls_loop *l, ls_urgency u, ls_error *e) {
    bool failed = ls_snapshot_has_failed(&l->host->notes->snapshot);
    ls_loop_note_due(l);
    if (failed) ls_frozen_file_doubt(&l->m.frozen.file); /* as its writer may have found */
    LS_TRY(ls_member_wait(&l->m, ls_inputs_check(&l->data, &l->m.frozen.file, e), e));
    return l->host->runtime->save(l, u, e);
}
