/* async_host.c - see async_host.h. */
#include "train/async_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async/remote.h"
#include "base/cores.h"
#include "base/log.h"
#include "base/plural.h"
#include "config/relations.h"
#include "net/launch/process.h"
#include "plan/memory.h"
#include "train/alone.h"

/* A worker of this host, in a process of its own. */
typedef struct worker {
    const ls_run *run;
    ls_alone *alone; /* NULL: the run's data is not open yet */
    void *grads;
    ls_async_gradient gradient;
} worker;

static ls_status begin(void *arg, ls_async_gradient **g_p, ls_error *e) {
    worker *w = arg;
    const ls_config *c = &w->run->config;
    int n = w->run->nasync, threads = (int)c->parallel.threads;
    w->alone = ls_alone_new();
    w->alone->run.config = *c;
    w->alone->run.dir = w->run->dir;
    LS_TRY(ls_alone_open(w->alone, e));
    const ls_plan *p = &w->alone->host.layout.plan;
    LS_TRY(ls_map(ls_plan_grads_nbytes(p, 0), "gradients", &w->grads, e));
    const ls_async_gradient_config g = {.plan = p,
                                        .frozen = w->alone->m.frozen.values,
                                        .loader = ls_dataset_loader(&w->alone->data, c),
                                        .threads = threads,
                                        .busy = n * threads,
                                        .cores = ls_cores_among(n),
                                        .clip = c->optim.clip,
                                        .grads = w->grads};
    LS_TRY(ls_async_gradient_open(&w->gradient, &g, 0, e));
    *g_p = &w->gradient;
    return LS_OK;
}

/* Returns the exit code of the process, which has logged why it failed. */
static int work(const ls_host *h, const char *settings) {
    worker w = {.run = h->run};
    ls_error e = {0};
    const ls_remote_config c = {.address = h->run->join,
                                .settings = settings,
                                .patience_s = h->run->config.survival.rejoin_s,
                                .begin = begin,
                                .arg = &w,
                                .params_nbytes = ls_plan_params_nbytes(&h->layout.plan),
                                .grads_nbytes = ls_plan_slot_nbytes(&h->layout.plan)};
    ls_status s = ls_remote_work(&c, &e);
    if (s != LS_OK) ls_log("%s", e.msg);
    return s == LS_OK ? 0 : 1;
}

static ls_status start(const ls_host *h, const char *settings, ls_child *child, ls_error *e) {
    pid_t pid = ls_child_start(child, NULL);
    if (pid == 0) _exit(work(h, settings));
    return pid > 0 ? LS_OK
                   : ls_fail(e, LS_ENOMEM, "a worker can't be started: %s", strerror(errno));
}

/* Waits until all have ended. */
static ls_status watch(const ls_host *h, const char *settings, ls_child *children, ls_error *e) {
    int n = h->run->nasync, failed = 0;
    for (int left = n; left > 0;) {
        int how = 0, i = 0;
        pid_t pid = waitpid(-1, &how, 0);
        while (i < n && children[i].pid != pid) i++;
        if (pid < 0 || i == n) continue;
        if (WIFSIGNALED(how)) {
            ls_log("a worker of this host was killed by signal %d; another takes its place",
                   WTERMSIG(how));
            LS_TRY(start(h, settings, &children[i], e));
            continue;
        }
        failed += WEXITSTATUS(how) != 0;
        left--;
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
