/* unsaved.c - see unsaved.h. */
#include "storage/unsaved.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json_records.h"
#include "storage/best.h"
#include "storage/lock.h"

bool ls_unsaved_is_run(const char *dir) {
    char holder[LS_LOCK_HOLDER];
    return ls_file_exists_in(dir, "checkpoints") ||
           (ls_file_exists_in(dir, "config.yaml") && ls_file_exists_in(dir, "lock")) ||
           ls_lock_state_of(dir, holder) == LS_LOCK_TAKEN;
}

/* The last step that has a line; 0: there is none. */
static int64_t last_step(const char *dir) {
    char *path = ls_format("%s/metrics.jsonl", dir);
    ls_lines *l = NULL;
    ls_line line;
    bool there = ls_file_exists(path) && ls_lines_open(path, true, &l, NULL) == LS_OK;
    int64_t step = 0;
    free(path);
    while (there && !step && ls_lines_next(l, &line, &there, NULL) == LS_OK && there) {
        ls_json *j = ls_json_of_line(&line);
        ls_json_integer(ls_json_get(j, "step"), &step);
        ls_json_free(j);
    }
    ls_lines_close(l);
    return step;
}

/* The multiple of `every` that comes after `step`; the last step if there is none before it. */
static int64_t multiple_after(int64_t step, int64_t every, int64_t last) {
    if (step >= last) return last;
    int64_t next = every > 0 ? (step / every + 1) * every : last;
    return next < last ? next : last;
}

/* When loop.c and snapshot.c write the first checkpoint. */
static void put_due(const ls_config *c, int64_t step, ls_buf *b) {
    int64_t last = c->train.steps, next = multiple_after(step, c->checkpoint.every, last);
    int64_t best = ls_best_is_sought(c) ? multiple_after(step, c->train.eval_every, last) : last;
    if (best < next) next = best;
    if (c->checkpoint.every > 0 && step >= c->checkpoint.every)
        ls_buf_printf(b, "that of step %lld is being written, or has failed, as its log then says",
                      (long long)(step / c->checkpoint.every * c->checkpoint.every));
    else if (next < last)
        ls_buf_printf(b, "the first is due at step %lld", (long long)next);
    else
        ls_buf_printf(b, "the first is due at its end");
    if (c->checkpoint.minutes > 0)
        ls_buf_printf(b, ", or %g minutes after its start", c->checkpoint.minutes);
}

static ls_status fail_training(const char *dir, const char *holder, const ls_config *c,
                               ls_error *e) {
    int64_t step = last_step(dir);
    ls_buf due = {0};
    put_due(c, step, &due);
    ls_status s = ls_fail(
        e, LS_EIO, "%s: has no checkpoint yet: it is being trained (%s), at step %lld of %lld; %s",
        dir, holder, (long long)step, (long long)c->train.steps, due.data);
    ls_buf_free(&due);
    return s;
}

ls_status ls_unsaved_fail(const char *dir, ls_error *e) {
    char *path = ls_format("%s/config.yaml", dir), holder[LS_LOCK_HOLDER];
    ls_lock_state state = ls_lock_state_of(dir, holder);
    ls_config *c = LS_NEW(ls_config);
    bool known = ls_file_exists(path) && ls_config_read(path, c, NULL) == LS_OK;
    ls_status s = LS_EIO;
    if (state == LS_LOCK_TAKEN && known)
        s = fail_training(dir, holder, c, e);
    else if (state == LS_LOCK_TAKEN)
        ls_fail(e, s, "%s: has no checkpoint yet: its training is being started (%s)", dir, holder);
    else if (state == LS_LOCK_UNKNOWN)
        ls_fail(e, s,
                "%s: has no checkpoint yet; whether it is being trained, only its owner can see",
                dir);
    else if (known)
        ls_fail(e, s,
                "%s: has no checkpoint: its training ended after step %lld, before the first one; "
                "begin it again with 'lockstep train --resume %s'",
                dir, (long long)last_step(dir), dir);
    else
        ls_fail(e, s, "%s: has no checkpoint, and no config from which training could begin", dir);
    free(c);
    free(path);
    return s;
}
