/* nursery.c - see nursery.h. */
#include "async/nursery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

enum {
    LOOK_US = 50 * 1000,
    TRIES = 5
}; /* of a process that is killed before there is any progress */

typedef struct nursery {
    ls_nursery_roles roles;
    ls_child *children; /* [roles.n] */
    int *tries;         /* [roles.n] */
    long long *began;   /* [roles.n] the progress when it was last started */
} nursery;

static const char *kind_of(const nursery *n, int role) {
    int nworkers = n->roles.nworkers;
    return role < nworkers ? "worker" : role < nworkers + n->roles.nservers ? "server" : "gate";
}

static int number_of(const nursery *n, int role) {
    int nworkers = n->roles.nworkers, nservers = n->roles.nservers;
    return role < nworkers ? role : role < nworkers + nservers ? role - nworkers : 0;
}

static void fail(const nursery *n, const ls_error *why) {
    ls_board_fail(n->roles.errors, why);
    ls_bell_ring(n->roles.bell);
}

/* Returns in the parent only. */
static ls_status start(nursery *n, int role, ls_error *e) {
    pid_t pid = ls_child_start(&n->children[role], NULL);
    n->began[role] = n->roles.progress(n->roles.crew);
    if (pid > 0) return LS_OK;
    if (pid < 0)
        return ls_fail(e, LS_ENOMEM, "%s %d can't be started: %s", kind_of(n, role),
                       number_of(n, role), ls_thread_why(errno));
    ls_error why = {0};
    char rank[16];
    snprintf(rank, sizeof rank, "%d", role);
    if (role < n->roles.nworkers) setenv("LOCKSTEP_RANK", rank, 1); /* as launchers set it */
    if (n->roles.run(n->roles.crew, role, &why) != LS_OK) fail(n, &why);
    _exit(1);
}

/* A process that ends by itself has recorded why. */
static ls_status replace(nursery *n, int role, int how, ls_error *e) {
    bool progress = n->roles.progress(n->roles.crew) > n->began[role];
    if (!WIFSIGNALED(how))
        return ls_fail(e, LS_EPEER, "%s %d has ended", kind_of(n, role), number_of(n, role));
    n->tries[role] = progress ? 1 : n->tries[role] + 1;
    if (n->tries[role] > TRIES)
        return ls_fail(e, LS_EINVAL,
                       "%s %d was killed by signal %d %d times in a row; continue from the last "
                       "checkpoint with --resume, which begins again where there is none",
                       kind_of(n, role), number_of(n, role), WTERMSIG(how), TRIES);
    ls_log("%s %d was killed by signal %d; another takes its place, and the others continue",
           kind_of(n, role), number_of(n, role), WTERMSIG(how));
    return start(n, role, e);
}

/* Looks at all processes again and again. One that stays stopped is killed, and so replaced. */
static ls_status watch(nursery *n, ls_error *e) {
    for (int i = 0; i < n->roles.n; i++) LS_TRY(start(n, i, e));
    for (;; usleep(LOOK_US))
        for (int i = 0; i < n->roles.n; i++) {
            int how = 0;
            if (ls_child_ended(&n->children[i], n->roles.heartbeat_s, &how))
                LS_TRY(replace(n, i, how, e));
        }
}

/* The main process gets the signals that ask to stop, and ends this process at the end. */
static _Noreturn void run_nursery(const ls_nursery_roles *roles) {
    size_t nroles = (size_t)roles->n;
    nursery n = {.roles = *roles};
    ls_error e = {0};
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    n.children = LS_NEW_ARRAY(ls_child, nroles);
    n.tries = LS_NEW_ARRAY(int, nroles);
    n.began = LS_NEW_ARRAY(long long, nroles);
    if (watch(&n, &e) != LS_OK) fail(&n, &e);
    for (;;) pause(); /* the main process reads the error, and ends all */
}

ls_status ls_nursery_open(ls_nursery *n, const ls_nursery_roles *roles, ls_error *e) {
    pid_t pid = ls_child_start(&n->child, NULL);
    if (pid == 0) run_nursery(roles);
    if (pid > 0) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "workers can't be started: %s", ls_thread_why(errno));
}

ls_status ls_nursery_check(ls_nursery *n, ls_error *e) {
    int how = 0;
    if (!n->child.pid || waitpid(n->child.pid, &how, WNOHANG) != n->child.pid) return LS_OK;
    n->child.pid = 0;
    return ls_fail(
        e, LS_EPEER,
        "the process that starts the workers was killed, and they with it; "
        "continue from the last checkpoint with --resume, which begins again where there "
        "is none");
}

void ls_nursery_close(ls_nursery *n) {
    if (!n->child.pid) return;
    kill(n->child.pid, SIGKILL); /* its children end with it */
    waitpid(n->child.pid, NULL, 0);
    n->child.pid = 0;
}
