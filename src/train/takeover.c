/* takeover.c - see takeover.h. */
#include "train/takeover.h"

#include <stdlib.h>

#include "async/applications.h"
#include "base/log.h"
#include "base/plural.h"
#include "report/history.h"
#include "report/metrics.h"
#include "train/member_state.h"

/* The first step that has no gradient in the copy: the first host may have logged another one, if
 * the copy was cut off before. */
static int64_t first_missing(const ls_shard_copy *c) {
    int64_t step = c->steps;
    while (ls_shard_copy_find(c, step)) step++;
    return step;
}

static ls_status write_step(ls_metrics *m, const ls_shard_copy *c, int64_t step, ls_error *e) {
    const ls_mirror_message *x = ls_shard_copy_find(c, step);
    int64_t staleness[LS_ASYNC_SHARDS];
    if (!x) return LS_OK;
    for (int i = 0; i < c->nshards; i++) staleness[i] = ls_async_staleness(x->base[i], x->at[i]);
    const ls_step_push push = {x->worker, staleness, c->nshards};
    const ls_step_in in = {
        .step = step, .updates = step, .lr = ls_shard_copy_rate(c, x), .loss_scale = 1};
    const ls_step_time t = {.seconds = -1, .data_wait_s = x->result.data_wait_s, .push = &push};
    return ls_metrics_step(m, step + 1, &in, &x->result.out, &t, e);
}

/* Lines that the first host has written stay, up to `keep` steps. */
static ls_status write_metrics(const ls_alone *x, const ls_shard_copy *c, int64_t keep,
                               ls_error *e) {
    ls_metrics *m = NULL;
    ls_logged logged = {0};
    LS_TRY(ls_metrics_cut(x->run.dir, keep, &logged, e));
    LS_TRY(ls_metrics_open(x->run.dir, &x->run.config, &x->host.layout.model, logged, &m, e));
    ls_metrics_set_view(m, 1, 1);
    ls_status s = LS_OK;
    for (int64_t step = logged.step; s == LS_OK && step < ls_shard_copy_steps(c); step++)
        s = write_step(m, c, step, e);
    ls_status closed = ls_metrics_close(m, s == LS_OK ? e : NULL);
    return s == LS_OK ? closed : s;
}

static ls_status write_checkpoint(const ls_alone *x, int64_t steps, ls_error *e) {
    int64_t wanted = x->run.config.train.eval_samples, most = (int64_t)x->data.nval;
    ls_best best = {.nsamples = wanted < most ? wanted : most};
    ls_best_find(&best, x->run.dir, steps);
    return ls_member_write(&x->m, steps, &best, NULL, e);
}

static ls_status write_all(ls_alone *x, ls_shard_copy *c, ls_async_gradient *g, ls_error *e) {
    int64_t missing = first_missing(c);
    int64_t lost = ls_applications_count(x->run.dir, c->steps) - (int64_t)c->n;
    LS_TRY(ls_shard_copy_fill(c, g, e));
    LS_TRY(ls_shard_copy_log(c, x->run.dir, e));
    LS_TRY(write_metrics(x, c, lost > 0 ? missing : ls_shard_copy_steps(c), e));
    LS_TRY(write_checkpoint(x, ls_shard_copy_steps(c), e));
    if (lost > 0)
        ls_log("%lld step%s that the first host applied after the copy was cut off %s lost",
               (long long)lost, ls_plural(lost), lost == 1 ? "is" : "are");
    ls_log("the copy of the state is of step %lld: the run continues from there%s",
           (long long)ls_shard_copy_steps(c),
           lost > 0 ? "" : ", and no step is lost that was logged");
    return LS_OK;
}

/* With the lock of the run directory. */
static ls_status take_over(ls_alone *x, ls_shard_copy *c, ls_async_gradient *g, ls_error *e) {
    int64_t has = ls_shard_copy_steps(c), newest = 0;
    char *path = NULL;
    LS_TRY(ls_checkpoint_newest_good(x->run.dir, &path, &newest, e));
    free(path);
    if (newest < has) return write_all(x, c, g, e);
    ls_log("the copy of the state is of step %lld, the newest checkpoint of step %lld: the run "
           "continues from that",
           (long long)has, (long long)newest);
    return LS_OK;
}

ls_status ls_takeover(ls_alone *x, ls_shard_copy *c, ls_async_gradient *g, ls_error *e) {
    ls_folder *f = NULL;
    const ls_folder_run own = ls_host_folder_run(&x->host);
    LS_TRY(ls_folder_hold(&own, &f, e));
    ls_status s = take_over(x, c, g, e);
    ls_folder_close(f, false);
    return s;
}
