/* team.h - runs a function on every worker of a group of threads or of processes, for tests. */
#ifndef LS_TEST_TEAM_H
#define LS_TEST_TEAM_H

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/group.h"
#include "net/commons.h"
#include "test.h"

/* What one worker does; `arg` is the same for all. In a process, a failed check ends it with an
 * exit code that is not 0; returns LS_OK when all is well. */
typedef ls_status team_fn(ls_group *g, void *arg, ls_error *e);

typedef struct team_thread {
    pthread_t thread;
    ls_group *g;
    team_fn *fn;
    void *arg;
    ls_status status;
    ls_error e;
} team_thread;

static inline void *team_thread_main(void *arg) {
    team_thread *t = arg;
    t->status = t->fn(t->g, t->arg, &t->e);
    ls_group_close(t->g);
    return NULL;
}

/* errors [n] (or NULL): of each worker; else an error fails the test. */
static inline void run_threads(int n, const ls_group_options *o, team_fn *fn, void *arg,
                               ls_error *errors) {
    ls_group *groups[64];
    team_thread t[64] = {0};
    ls_error e = {0};
    assert_ls_ok(ls_group_open_threads(n, o, groups, &e), e);
    for (int i = 0; i < n; i++) {
        t[i] = (team_thread){.g = groups[i], .fn = fn, .arg = arg};
        pthread_create(&t[i].thread, NULL, team_thread_main, &t[i]);
    }
    for (int i = 0; i < n; i++) pthread_join(t[i].thread, NULL);
    for (int i = 0; i < n; i++) {
        if (errors)
            errors[i] = t[i].e;
        else if (t[i].status != LS_OK) {
            print_error("worker %d of %d: %s\n", i, n, t[i].e.msg);
            fail();
        }
    }
}

static inline _Noreturn void process_main(int rank, int n, int fd, const ls_group_options *o,
                                          team_fn *fn, void *arg) {
    char text[32];
    ls_group *g = NULL;
    ls_error e = {0};
    snprintf(text, sizeof text, "%d", rank);
    setenv("LOCKSTEP_RANK", text, 1);
    snprintf(text, sizeof text, "%d", n);
    setenv("LOCKSTEP_SIZE", text, 1);
    snprintf(text, sizeof text, "%d", fd);
    setenv("LOCKSTEP_SHM", text, 1);
    ls_status s = ls_group_open(o, &g, &e);
    if (s == LS_OK) s = fn(g, arg, &e);
    if (s != LS_OK) fprintf(stderr, "worker %d of %d: %s\n", rank, n, e.msg);
    ls_group_close(g);
    _exit(s == LS_OK ? 0 : 1);
}

/* The same with processes that share memory as `lockstep run` sets it up. Errors fail the test. */
static inline void run_processes(int n, const ls_group_options *o, team_fn *fn, void *arg) {
    ls_commons c;
    ls_error e = {0};
    pid_t pids[64];
    size_t arena = o && o->arena_nbytes ? o->arena_nbytes : (size_t)64 << 20;
    assert_ls_ok(ls_commons_create(n, arena, false, &c, &e), e);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) process_main(i, n, c.fd, o, fn, arg);
    }
    int bad = 0;
    for (int i = 0; i < n; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        bad += status != 0;
    }
    ls_commons_close(&c);
    assert_int_equal(bad, 0);
}

#endif
