/* check_replay.c - see check_replay.h. */
#include "train/check_replay.h"

#include <stdlib.h>

#include "async/replay.h"
#include "base/log.h"
#include "config/relations.h"
#include "storage/frozen_file.h"
#include "storage/origin.h"
#include "storage/unsaved.h"
#include "tensor/sum_order.h"
#include "train/alone.h"

static ls_status read_config(const char *dir, ls_config *c, ls_error *e) {
    char *path = ls_format("%s/config.yaml", dir);
    ls_status s = ls_config_load_saved(path, NULL, 0, c, e);
    if (s == LS_OK && c->sync.mode != LS_SYNC_ASYNC)
        s = ls_fail(e, LS_EINVAL,
                    "%s: sync.mode is not async: such a run makes the same bits each time, and has "
                    "no log to replay; run it again instead",
                    path);
    free(path);
    if (s == LS_OK) s = ls_origin_resolve(c, dir, e);
    return s == LS_OK ? ls_origin_complete(c, dir, e) : s;
}

static ls_status find_checkpoint(const char *dir, int64_t step, ls_replay *r, ls_error *e) {
    if (step > 0)
        r->checkpoint = ls_checkpoint_path(dir, step);
    else
        LS_TRY(ls_checkpoint_newest_good(dir, &r->checkpoint, &step, e));
    if (!r->checkpoint) return ls_unsaved_fail(dir, e);
    LS_TRY(ls_checkpoint_verify(r->checkpoint, &r->saved, e));
    r->steps = r->saved.step;
    return LS_OK;
}

static void on_step(void *arg, int64_t steps) {
    const ls_replay *r = arg;
    if (ls_log_is_terminal())
        ls_log_status("replayed %lld of %lld", (long long)steps, (long long)r->steps);
}

/* The hashes of the state, as a checkpoint of it would have them. */
static ls_status hash(const ls_alone *x, ls_replay *r, ls_error *e) {
    const ls_plan *p = &x->host.layout.plan;
    const ls_train_state s = {.model = p->share.model,
                              .optim = &p->share.optim,
                              .step = r->steps,
                              .flat = x->m.worlds[0].flat};
    ls_safetensors frozen = {0};
    if (p->share.model->frozen_count) {
        char *path = ls_format("%s/" LS_FROZEN_FILE, r->checkpoint);
        ls_status opened = ls_safetensors_open_stored(path, &frozen, e);
        free(path);
        LS_TRY(opened);
    }
    ls_state_tensors weights = ls_state_weights(&s), states = ls_state_optimizer(&s);
    r->weights = ls_state_hash_weights(weights.list, weights.n, &frozen);
    r->optimizer = ls_state_hash_optimizer(states.list, states.n, r->steps, &s.scaler);
    ls_state_tensors_free(&weights);
    ls_state_tensors_free(&states);
    ls_safetensors_close(&frozen);
    return LS_OK;
}

static ls_status run_replay(ls_alone *x, ls_replay *r, ls_error *e) {
    const ls_plan *p = &x->host.layout.plan;
    ls_applications_read log;
    const ls_applications_run run = {x->run.dir, r->steps, p->share.model->nfloats,
                                     ls_sum_order(p->share.compute)};
    LS_TRY(ls_applications_load(&run, &log, e));
    const ls_async_replay_config c = {.config = &x->run.config,
                                      .plan = p,
                                      .world = &x->m.worlds[0],
                                      .frozen = x->m.frozen.values,
                                      .loader = ls_dataset_loader(&x->data, &x->run.config),
                                      .log = &log,
                                      .done = on_step,
                                      .arg = r};
    ls_status s = ls_async_replay(&c, e);
    ls_applications_free(&log);
    LS_TRY(s);
    ls_log_end_status();
    return hash(x, r, e);
}

ls_status ls_replay_run(const char *dir, int64_t step, ls_replay *r, ls_error *e) {
    ls_alone *x = ls_alone_new();
    *r = (ls_replay){0};
    x->run.dir = dir;
    ls_status s = read_config(dir, &x->run.config, e);
    if (s == LS_OK) s = find_checkpoint(dir, step, r, e);
    if (s == LS_OK) s = ls_alone_open(x, e);
    if (s == LS_OK) s = run_replay(x, r, e);
    ls_alone_close(x);
    if (s == LS_OK) return LS_OK;
    free(r->checkpoint);
    r->checkpoint = NULL;
    return s;
}

bool ls_replay_is_same(const ls_replay *r) {
    return ls_hash_same(r->weights, r->saved.weights) &&
           ls_hash_same(r->optimizer, r->saved.optimizer);
}
