/* async_host.c - see async_host.h. */
#include "train/async_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async/board.h"
#include "async/gradient.h"
#include "async/remote.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/plural.h"
#include "config/relations.h"
#include "exec/solo.h"
#include "net/launch/process.h"
#include "plan/memory.h"
#include "storage/reference.h"
#include "train/alone.h"

/* A worker of this host, in a process of its own. */
typedef struct worker {
    const ls_run *run;
    ls_alone *alone;         /* NULL: the run's data is not open yet */
    bool has_reference;      /* of pairs: looked for */
    void *grads;             /* of one batch, or of one virtual worker */
    ls_async_gradient batch; /* sync.mode async */
    ls_async_result result;  /* and of it */
    ls_plan solo_plan;       /* sync.mode ssp */
    ls_solo solo;
    void *params;
    double *parts;
} worker;

/* The log-probabilities of the reference: the main process has computed and saved them before the
 * first task. */
static ls_status read_reference(worker *w, ls_error *e) {
    ls_corpus *text = &w->alone->data.text;
    bool there = true;
    if (w->has_reference || !ls_config_has_pairs(&w->run->config)) return LS_OK;
    LS_TRY(ls_reference_read(w->run->dir, text->record.tokens, &text->chats, &there, e));
    if (!there) return ls_fail(e, LS_EINVAL, "%s/" LS_REFERENCE_FILE ": is missing", w->run->dir);
    w->has_reference = true;
    return LS_OK;
}

/* ---- sync.mode async: the gradient of a batch ---- */

static ls_status compute_batch(void *arg, const ls_wire_task *t, ls_error *e) {
    worker *w = arg;
    LS_TRY(read_reference(w, e));
    LS_TRY(ls_async_gradient_compute(&w->batch, t->step, &w->result.out, &w->result.update, e));
    w->result.data_wait_s = (double)ls_exec_data_wait_ns(w->batch.exec) / 1e9;
    return LS_OK;
}

static ls_status begin_batches(worker *w, ls_remote_job *job, ls_error *e) {
    const ls_config *c = &w->run->config;
    const ls_plan *p = &w->alone->host.layout.plan;
    int n = w->run->nasync, threads = (int)c->parallel.threads;
    LS_TRY(ls_map(ls_plan_grads_nbytes(p, 0), "gradients", &w->grads, e));
    const ls_async_gradient_config g = {.plan = p,
                                        .frozen = w->alone->m.frozen.values,
                                        .loader = ls_dataset_loader(&w->alone->data, c),
                                        .threads = threads,
                                        .busy = n * threads,
                                        .cores = ls_cores_among(n),
                                        .clip = c->optim.clip,
                                        .grads = w->grads};
    LS_TRY(ls_async_gradient_open(&w->batch, &g, 0, e));
    *job = (ls_remote_job){.params = ls_async_gradient_params(&w->batch),
                           .result = &w->result,
                           .gradient = ls_async_gradient_of_batch(&w->batch),
                           .compute = compute_batch};
    return LS_OK;
}

/* ---- sync.mode ssp: the gradient of a virtual worker ---- */

static ls_solo_task solo_task(const worker *w, int vw, int64_t step) {
    return (ls_solo_task){.vw = vw, .steps = step, .grads = w->grads, .parts = w->parts};
}

static ls_status compute_solo(void *arg, const ls_wire_task *t, ls_error *e) {
    worker *w = arg;
    const ls_solo_task task = solo_task(w, t->vw, t->step);
    const ls_step_in in = {.step = t->step, .updates = t->step, .loss_scale = 1};
    if (t->vw < 0 || t->vw >= w->solo_plan.c.V)
        return ls_fail(e, LS_EINVAL, "there is no virtual worker %d", t->vw);
    LS_TRY(read_reference(w, e));
    ls_solo_move(&w->solo, &task);
    return ls_exec_gradient(w->solo.exec, &in, e);
}

static ls_status begin_solo(worker *w, ls_remote_job *job, ls_error *e) {
    const ls_config *c = &w->run->config;
    const ls_plan *p = &w->alone->host.layout.plan;
    int n = w->run->nasync, threads = (int)c->parallel.threads;
    void *parts = NULL;
    LS_TRY(ls_plan_solo(p, &w->solo_plan, e));
    LS_TRY(ls_map(ls_plan_slot_nbytes(&w->solo_plan), "a gradient", &w->grads, e));
    LS_TRY(ls_map(ls_plan_scalars_nbytes(&w->solo_plan), "norms and losses", &parts, e));
    LS_TRY(ls_map(ls_plan_params_nbytes(p), "a worker's parameters", &w->params, e));
    w->parts = parts;
    const ls_solo_config how = {.plan = &w->solo_plan,
                                .params = w->params,
                                .frozen = w->alone->m.frozen.values,
                                .loader = ls_dataset_loader(&w->alone->data, c),
                                .threads = threads,
                                .busy = n * threads,
                                .cores = ls_cores_among(n)};
    const ls_solo_task first = solo_task(w, 0, 0);
    LS_TRY(ls_solo_open(&w->solo, &how, &first, e));
    *job = (ls_remote_job){
        .params = w->params, .result = w->parts, .gradient = w->grads, .compute = compute_solo};
    return LS_OK;
}

/* ---- a worker ---- */

static bool is_ahead(const worker *w) { return w->run->config.sync.mode == LS_SYNC_SSP; }

static ls_status begin(void *arg, ls_remote_job *job, ls_error *e) {
    worker *w = arg;
    w->alone = ls_alone_new();
    w->alone->run.config = w->run->config;
    w->alone->run.dir = w->run->dir;
    LS_TRY(ls_alone_open(w->alone, e));
    return is_ahead(w) ? begin_solo(w, job, e) : begin_batches(w, job, e);
}

/* The plan of one virtual worker alone says it. */
static ls_status result_nbytes(const worker *w, const ls_plan *p, size_t *nbytes_p, ls_error *e) {
    ls_plan solo = {0};
    *nbytes_p = sizeof(ls_async_result);
    if (!is_ahead(w)) return LS_OK;
    ls_status s = ls_plan_solo(p, &solo, e);
    if (s == LS_OK) *nbytes_p = ls_plan_scalars_nbytes(&solo);
    ls_plan_free(&solo);
    return s;
}

/* Returns the exit code of the process, which has logged why it failed. */
static int work(const ls_host *h, const char *settings) {
    const ls_plan *p = &h->layout.plan;
    worker w = {.run = h->run};
    ls_error e = {0};
    ls_remote_config c = {.address = h->run->join,
                          .settings = settings,
                          .patience_s = h->run->config.survival.rejoin_s,
                          .heartbeat_s = h->run->config.survival.heartbeat_s,
                          .begin = begin,
                          .arg = &w,
                          .params_nbytes = ls_plan_params_nbytes(p),
                          .grads_nbytes = ls_plan_slot_nbytes(p)};
    ls_status s = result_nbytes(&w, p, &c.result_nbytes, &e);
    if (s == LS_OK) s = ls_remote_work(&c, &e);
    if (s != LS_OK) ls_log("%s", e.msg);
    return s == LS_OK ? 0 : 1;
}

static ls_status start(const ls_host *h, const char *settings, ls_child *child, ls_error *e) {
    pid_t pid = ls_child_start(child, NULL);
    if (pid == 0) _exit(work(h, settings));
    return pid > 0 ? LS_OK
                   : ls_fail(e, LS_ENOMEM, "a worker can't be started: %s", strerror(errno));
}

/* Waits until all have ended. One that stays stopped is killed, and so replaced. */
static ls_status watch(const ls_host *h, const char *settings, ls_child *children, ls_error *e) {
    enum { LOOK_US = 50 * 1000 };
    int n = h->run->nasync, failed = 0;
    double heartbeat_s = h->run->config.survival.heartbeat_s;
    for (int left = n; left > 0; usleep(LOOK_US))
        for (int i = 0; i < n; i++) {
            int how = 0;
            if (!children[i].pid || !ls_child_ended(&children[i], heartbeat_s, &how)) continue;
            children[i].pid = 0;
            if (!WIFSIGNALED(how)) {
                failed += WEXITSTATUS(how) != 0;
                left--;
                continue;
            }
            ls_log("a worker of this host was killed by signal %d; another takes its place",
                   WTERMSIG(how));
            LS_TRY(start(h, settings, &children[i], e));
        }
    if (!failed) return LS_OK;
    return ls_fail(e, LS_EPEER, "%d of %d worker%s of this host failed", failed, n, ls_plural(n));
}

ls_status ls_async_host_run(const ls_host *h, ls_error *e) {
    ls_buf settings = {0};
    size_t n = (size_t)h->run->nasync;
    ls_child *children = LS_NEW_ARRAY(ls_child, n);
    ls_config_must_match(&h->run->config, &settings);
    ls_log("%d worker%s for the parameter servers at %s", (int)n, ls_plural((int64_t)n),
           h->run->join);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < n; i++) s = start(h, settings.data, &children[i], e);
    if (s == LS_OK) s = watch(h, settings.data, children, e);
    free(children);
    ls_buf_free(&settings);
    return s;
}
