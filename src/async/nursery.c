/* nursery.c - see nursery.h. */
#include "async/nursery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "async/gate.h"
#include "base/log.h"

enum {
    LOOK_US = 50 * 1000,
    TRIES = 5
}; /* of a process that is killed before any gradient is pushed */

/* Roles: the workers of this host, the servers, and the gate. */
typedef struct nursery {
    const ls_async_crew *crew;
    ls_child *children; /* [nroles] */
    int *tries;         /* [nroles] */
    long long *turns;   /* [nroles] gradients pushed in all when it was last started */
    int nroles;
} nursery;

static const char *kind_of(const nursery *n, int role) {
    int nlocal = n->crew->board->nlocal;
    return role < nlocal ? "worker" : role < nlocal + n->crew->nservers ? "server" : "gate";
}

static int number_of(const nursery *n, int role) {
    int nlocal = n->crew->board->nlocal, nservers = n->crew->nservers;
    return role < nlocal ? role : role < nlocal + nservers ? role - nlocal : 0;
}

static ls_status run_role(const ls_async_crew *c, int role, ls_error *e) {
    int n = c->board->nlocal;
    if (role == n + c->nservers) return ls_async_guard(c, e);
    if (role >= n) return ls_async_serve(c, role - n, e);
    if (!c->nservers && role < c->board->nshards) LS_TRY(ls_async_serve_beside(c, role, e));
    return ls_async_work(c, role, e);
}

/* Returns in the parent only. */
static ls_status start(nursery *n, int role, ls_error *e) {
    pid_t pid = ls_child_start(&n->children[role], NULL);
    n->turns[role] = atomic_load(&n->crew->board->turns);
    if (pid > 0) return LS_OK;
    if (pid < 0)
        return ls_fail(e, LS_ENOMEM, "%s %d can't be started: %s", kind_of(n, role),
                       number_of(n, role), strerror(errno));
    ls_error why = {0};
    char rank[16];
    snprintf(rank, sizeof rank, "%d", role);
    if (role < n->crew->board->nlocal) setenv("LOCKSTEP_RANK", rank, 1); /* as launchers set it */
    if (run_role(n->crew, role, &why) != LS_OK) ls_async_fail(n->crew, &why);
    _exit(1);
}

/* A process that ends by itself has recorded why. */
static ls_status replace(nursery *n, int role, int how, ls_error *e) {
    bool pushed = atomic_load(&n->crew->board->turns) > n->turns[role];
    if (!WIFSIGNALED(how))
        return ls_fail(e, LS_EPEER, "%s %d has ended", kind_of(n, role), number_of(n, role));
    n->tries[role] = pushed ? 1 : n->tries[role] + 1;
    if (n->tries[role] > TRIES)
        return ls_fail(e, LS_EINVAL,
                       "%s %d was killed by signal %d %d times in a row; continue from the last "
                       "checkpoint with --resume",
                       kind_of(n, role), number_of(n, role), WTERMSIG(how), TRIES);
    ls_log("%s %d was killed by signal %d; another takes its place, and the others go on",
           kind_of(n, role), number_of(n, role), WTERMSIG(how));
    return start(n, role, e);
}

/* Looks at all processes again and again. One that stays stopped is killed, and so replaced. */
static ls_status watch(nursery *n, ls_error *e) {
    for (int i = 0; i < n->nroles; i++) LS_TRY(start(n, i, e));
    for (;; usleep(LOOK_US))
        for (int i = 0; i < n->nroles; i++) {
            int how = 0;
            if (ls_child_ended(&n->children[i], n->crew->heartbeat_s, &how))
                LS_TRY(replace(n, i, how, e));
        }
}

/* The coordinator gets the signals that ask to stop, and ends this process at the end. */
static _Noreturn void run_nursery(const ls_async_crew *c) {
    int nroles = c->board->nlocal + c->nservers + (c->listen_fd >= 0);
    nursery n = {.crew = c, .nroles = nroles};
    ls_error e = {0};
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    n.children = LS_NEW_ARRAY(ls_child, (size_t)nroles);
    n.tries = LS_NEW_ARRAY(int, (size_t)nroles);
    n.turns = LS_NEW_ARRAY(long long, (size_t)nroles);
    if (watch(&n, &e) != LS_OK) ls_async_fail(c, &e);
    for (;;) pause(); /* the coordinator reads the error, and ends all */
}

ls_status ls_async_nursery_open(ls_async_nursery *n, const ls_async_crew *c, ls_error *e) {
    pid_t pid = ls_child_start(&n->child, NULL);
    if (pid == 0) run_nursery(c);
    if (pid > 0) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "workers can't be started: %s", strerror(errno));
}

ls_status ls_async_nursery_check(ls_async_nursery *n, ls_error *e) {
    int how = 0;
    if (!n->child.pid || waitpid(n->child.pid, &how, WNOHANG) != n->child.pid) return LS_OK;
    n->child.pid = 0;
    return ls_fail(e, LS_EPEER,
                   "the process that starts the workers was killed, and with it the parameter "
                   "servers; continue from the last checkpoint with --resume");
}

void ls_async_nursery_close(ls_async_nursery *n) {
    if (!n->child.pid) return;
    kill(n->child.pid, SIGKILL); /* its children end with it */
    waitpid(n->child.pid, NULL, 0);
    n->child.pid = 0;
}
