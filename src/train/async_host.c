/* async_host.c - see async_host.h. */
#include "train/async_host.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async/gate.h"
#include "async/gradient.h"
#include "async/gradient_board.h"
#include "async/remote.h"
#include "async/standby.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/plural.h"
#include "base/thread.h"
#include "dataset/reference.h"
#include "exec/solo.h"
#include "net/address.h"
#include "net/launch/child.h"
#include "storage/best.h"
#include "storage/identity.h"
#include "train/alone.h"
#include "train/inputs.h"
#include "train/takeover.h"

/* A worker of this host, in a process of its own. */
typedef struct worker {
    const ls_run *run;
    int number;              /* of those of this host; -1: the standby */
    ls_alone *alone;         /* NULL: the run's data is not open yet */
    bool has_reference;      /* of pairs: looked for */
    void *grads;             /* of one batch, or of one virtual worker */
    ls_async_gradient batch; /* sync.mode async */
    ls_async_result result;  /* and of it */
    ls_shard_copy copy;      /* sync.copies 2: the standby\'s */
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

/* Checks the inputs before a gradient is pushed, which is final. */
static ls_status check_inputs(worker *w, ls_error *e) {
    return ls_inputs_check(&w->alone->data, &w->alone->m.frozen.file, e);
}

/* ---- sync.mode async: the gradient of a batch ---- */

static ls_status compute_batch(void *arg, const ls_wire_task *t, ls_error *e) {
    worker *w = arg;
    LS_TRY(read_reference(w, e));
    LS_TRY(ls_async_gradient_compute(&w->batch, t->step, &w->result.out, &w->result.update, e));
    w->result.data_wait_s = (double)ls_exec_data_wait_ns(w->batch.exec) / 1e9;
    return check_inputs(w, e);
}

static ls_status begin_batches(worker *w, ls_remote_job *job, ls_error *e) {
    const ls_config *c = &w->run->config;
    const ls_plan *p = &w->alone->host.layout.plan;
    int n = w->run->nasync, threads = ls_config_threads(c, n, ls_cores_among(n));
    LS_TRY(ls_map(ls_share_grads_nbytes(&p->share, 0), "gradients", &w->grads, e));
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
    if (t->vw < 0 || t->vw >= w->solo_plan.share.V)
        return ls_fail(e, LS_EINVAL, "there is no virtual worker %d", t->vw);
    LS_TRY(read_reference(w, e));
    ls_solo_move(&w->solo, &task);
    LS_TRY(ls_exec_gradient(w->solo.exec, &in, e));
    return check_inputs(w, e);
}

static ls_status begin_solo(worker *w, ls_remote_job *job, ls_error *e) {
    const ls_config *c = &w->run->config;
    const ls_plan *p = &w->alone->host.layout.plan;
    int n = w->run->nasync, threads = ls_config_threads(c, n, ls_cores_among(n));
    void *parts = NULL;
    LS_TRY(ls_plan_solo(p, &w->solo_plan, e));
    LS_TRY(ls_map(w->solo_plan.share.nbytes.slot, "a gradient", &w->grads, e));
    LS_TRY(ls_map(w->solo_plan.share.nbytes.scalars, "norms and losses", &parts, e));
    LS_TRY(ls_map(p->share.nbytes.params, "a worker's parameters", &w->params, e));
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

static void bind_threads(const worker *w, const ls_exec *x) {
    const ls_config *c = &w->run->config;
    int n = w->run->nasync, threads = ls_config_threads(c, n, ls_cores_among(n));
    if (ls_config_binds(c, n, threads, ls_cores(), ls_cores_nodes()))
        ls_exec_bind(x, w->number, n, threads);
}

static ls_status begin(void *arg, ls_remote_job *job, ls_error *e) {
    worker *w = arg;
    LS_TRY(ls_identity_require(w->run->dir, e));
    w->alone = ls_alone_new();
    w->alone->run.config = w->run->config;
    w->alone->run.dir = w->run->dir;
    LS_TRY(ls_alone_open(w->alone, e));
    LS_TRY(is_ahead(w) ? begin_solo(w, job, e) : begin_batches(w, job, e));
    if (w->number >= 0) bind_threads(w, is_ahead(w) ? w->solo.exec : w->batch.exec);
    return LS_OK;
}

/* The plan of one virtual worker alone says it. */
static ls_status result_nbytes(const worker *w, const ls_plan *p, size_t *nbytes_p, ls_error *e) {
    ls_plan solo = {0};
    *nbytes_p = sizeof(ls_async_result);
    if (!is_ahead(w)) return LS_OK;
    ls_status s = ls_plan_solo(p, &solo, e);
    if (s == LS_OK) *nbytes_p = solo.share.nbytes.scalars;
    ls_plan_free(&solo);
    return s;
}

static ls_status identity(void *arg, ls_buf *out, ls_error *e) {
    const worker *w = arg;
    return ls_identity_of_run(w->run->dir, &w->run->config, out, e);
}

/* A worker that took another's place, or lost its connection, may look for the run's host when that
 * is through: then its last checkpoint is in the run directory. */
static bool has_ended(const void *arg) {
    const worker *w = arg;
    char *path = NULL;
    int64_t step = 0;
    bool ended = ls_checkpoint_newest(w->run->dir, &path, &step, NULL) == LS_OK && path &&
                 ls_best_is_over(w->run->dir, &w->run->config, step);
    if (ended) ls_log("the run has ended, after step %lld", (long long)step);
    free(path);
    return ended;
}

/* Returns the exit code of the process, which has logged why it failed. */
static int work(const ls_host *h, const char *settings, int number) {
    const ls_plan *p = &h->layout.plan;
    worker *w = LS_NEW(worker);
    w->run = h->run;
    w->number = number;
    ls_error e = {0};
    ls_remote_config c = {.addresses = h->run->join,
                          .settings = settings,
                          .patience_s = h->run->config.survival.rejoin_s,
                          .heartbeat_s = h->run->config.survival.heartbeat_s,
                          .identity = identity,
                          .begin = begin,
                          .has_ended = has_ended,
                          .arg = w,
                          .params_nbytes = p->share.nbytes.params,
                          .grads_nbytes = p->share.nbytes.slot};
    ls_status s = result_nbytes(w, p, &c.result_nbytes, &e);
    if (s == LS_OK) s = ls_remote_work(&c, &e);
    if (s != LS_OK) ls_log("%s", e.msg);
    free(w);
    return s == LS_OK ? 0 : 1;
}

/* The exit code of a standby that has found the first host lost. */
enum { LOST = 3 };

static ls_status begin_copy(void *arg, ls_shard_copy **copy_p, ls_error *e) {
    worker *w = arg;
    ls_remote_job job;
    LS_TRY(begin(w, &job, e));
    LS_TRY(ls_shard_copy_open(&w->copy, &w->run->config, &w->alone->host.layout.plan,
                              &w->alone->m.worlds[0], e));
    *copy_p = &w->copy;
    return LS_OK;
}

/* Leaves the run directory for this host to go on. */
static ls_status take_over(worker *w, ls_error *e) {
    if (w->run->config.sync.copies < 2) return LS_OK;
    if (w->copy.plan && w->copy.steps >= 0) {
        LS_TRY(read_reference(w, e));
        return ls_takeover(w->alone, &w->copy, &w->batch, e);
    }
    ls_log("this host has no copy of the state: the run continues from its newest checkpoint");
    return LS_OK;
}

/* The standby: takes the run over when its host is lost. Returns the exit code of the process,
 * which has logged why it failed. */
static int stand_by(const ls_host *h, const char *settings, atomic_bool *came) {
    const ls_plan *p = &h->layout.plan;
    const ls_config *c = &h->run->config;
    worker *w = LS_NEW(worker);
    w->run = h->run;
    w->number = -1;
    ls_error e = {0};
    size_t result = 0;
    bool lost = false, copies = c->sync.copies > 1;
    ls_status s = result_nbytes(w, p, &result, &e);
    ls_standby_config sc = {
        .entry = {.addresses = h->run->join, .admission = {.settings = settings}},
        .run = h->run->dir,
        .came = came,
        .begin = copies ? begin_copy : NULL,
        .identity = identity,
        .arg = w,
        .silence_s = LS_GATE_SILENCE * c->survival.heartbeat_s,
        .patience_s = c->survival.rejoin_s,
        .heartbeat_s = c->survival.heartbeat_s};
    sc.entry.hello = (ls_wire_hello){.protocol = LS_WIRE_PROTOCOL,
                                     .role = copies ? LS_WIRE_COPY : LS_WIRE_STANDBY,
                                     .result_nbytes = (uint32_t)result,
                                     .params_nbytes = p->share.nbytes.params,
                                     .grads_nbytes = p->share.nbytes.slot};
    while (s == LS_OK) {
        s = ls_standby_watch(&sc, &lost, &e);
        if (s != LS_OK || !lost) break;
        s = take_over(w, &e);
        if (s != LS_EINVAL) break;
        ls_log("%s", e.msg); /* another host has taken the lock: it takes over */
        s = LS_OK;
    }
    if (s != LS_OK) ls_log("%s", e.msg);
    free(w);
    return s != LS_OK ? 1 : lost ? LOST : 0;
}

/* ---- the processes of this host ---- */

typedef struct crew {
    const ls_host *host;
    const char *settings;
    ls_child *children; /* [n] workers, and the standby */
    int n, nworkers;
    atomic_bool *came; /* the standby had a connection (standby.h); shared memory */
} crew;

static ls_status start(const crew *c, int i, ls_error *e) {
    bool stands_by = i == c->nworkers;
    pid_t pid = ls_child_start(&c->children[i], NULL);
    if (pid == 0)
        _exit(stands_by ? stand_by(c->host, c->settings, c->came) : work(c->host, c->settings, i));
    return pid > 0 ? LS_OK
                   : ls_fail(e, LS_ENOMEM, "a worker can't be started: %s", ls_thread_why(errno));
}

static void end_all(const crew *c) {
    for (int i = 0; i < c->n; i++) {
        if (!c->children[i].pid) continue;
        kill(c->children[i].pid, SIGKILL);
        waitpid(c->children[i].pid, NULL, 0);
        c->children[i].pid = 0;
    }
}

/* One of them has ended, not by a signal. */
static void note_end(const crew *c, int i, int code, int *failed, bool *lost_p) {
    c->children[i].pid = 0;
    if (i == c->nworkers && code == LOST)
        *lost_p = true;
    else
        *failed += code != 0;
}

/* Waits until all have ended, or the first host is lost. One that stays stopped is killed, and so
 * replaced. */
static ls_status watch(const crew *c, bool *lost_p, ls_error *e) {
    enum { LOOK_US = 50 * 1000 };
    int failed = 0;
    double heartbeat_s = c->host->run->config.survival.heartbeat_s;
    for (int left = c->n; left > 0 && !*lost_p; usleep(LOOK_US))
        for (int i = 0; i < c->n; i++) {
            int how = 0;
            if (!c->children[i].pid || !ls_child_ended(&c->children[i], heartbeat_s, &how))
                continue;
            if (!WIFSIGNALED(how)) {
                note_end(c, i, WEXITSTATUS(how), &failed, lost_p);
                left--;
                continue;
            }
            ls_log("a %s of this host was killed by signal %d; another takes its place",
                   i == c->nworkers ? "standby" : "worker", WTERMSIG(how));
            LS_TRY(start(c, i, e));
        }
    if (!failed || *lost_p) return LS_OK;
    return ls_fail(e, LS_EPEER, "%d of %d process%s of this host failed", failed, c->n,
                   c->n == 1 ? "" : "es");
}

/* Checks that the address to listen on is free now, although it is used only when this host takes
 * over. */
static ls_status check_listen(const ls_run *r, ls_error *e) {
    ls_address at;
    int fd = -1;
    if (!r->listen) return LS_OK;
    LS_TRY(ls_address_parse(r->listen, &at, e));
    LS_TRY(ls_address_listen(&at, &fd, e));
    close(fd);
    return LS_OK;
}

ls_status ls_async_host_run(const ls_host *h, bool *lost_p, ls_error *e) {
    ls_buf settings = {0};
    int n = h->run->nasync;
    *lost_p = false;
    LS_TRY(check_listen(h->run, e));
    ls_run_must_match(&h->run->config, &settings);
    crew c = {
        .host = h, .settings = settings.data, .n = n + (h->run->listen != NULL), .nworkers = n};
    void *came = NULL;
    c.children = LS_NEW_ARRAY(ls_child, (size_t)c.n);
    ls_log("%d worker%s for the parameter servers at %s", n, ls_plural(n), h->run->join);
    ls_status s = ls_map_shared(sizeof *c.came, "a note of the standby", &came, e);
    c.came = came;
    for (int i = 0; s == LS_OK && i < c.n; i++) s = start(&c, i, e);
    if (s == LS_OK) s = watch(&c, lost_p, e);
    end_all(&c);
    ls_unmap(came, sizeof *c.came);
    free(c.children);
    ls_buf_free(&settings);
    return s;
}
