/* team.h - runs a function on every worker of a group of threads or of processes, for tests. */
#ifndef LS_TEST_TEAM_H
#define LS_TEST_TEAM_H

#include <pthread.h>

#include "lockstep/group.h"
#include "net/launch/launch.h"
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

/* At the beginning of a test whose workers are processes alone: the thread sanitizer sees the
 * threads of one process. A test with both runs its threads there. */
static inline void need_processes(void) {
#if defined(__SANITIZE_THREAD__)
    skip_because("its workers are processes, which the thread sanitizer does not see");
#endif
}

typedef struct team_process {
    const ls_group_options *o;
    team_fn *fn;
    void *arg;
} team_process;

static inline int team_process_main(void *arg) {
    const team_process *p = arg;
    ls_group *g = NULL;
    ls_error e = {0};
    ls_status s = ls_group_open(p->o, &g, &e);
    if (s == LS_OK) s = p->fn(g, p->arg, &e);
    if (s != LS_OK) fprintf(stderr, "%s\n", e.msg);
    ls_group_close(g);
    return s == LS_OK ? 0 : 1;
}

/* Runs the function in n processes, as `lockstep run` starts them. Errors fail the test. */
static inline void run_processes(int n, const ls_group_options *o, team_fn *fn, void *arg) {
#if defined(__SANITIZE_THREAD__)
    if (n > 0) return; /* see need_processes() */
#endif
    team_process p = {o, fn, arg};
    ls_launch_options l = {.nworkers = n, .main = team_process_main, .arg = &p};
    l.arena_nbytes = o && o->arena_nbytes ? o->arena_nbytes : (size_t)64 << 20;
    ls_error e = {0};
    int code = 0;
    assert_ls_ok(ls_launch_run(&l, &code, &e), e);
    if (code) print_error("%s\n", e.msg);
    assert_int_equal(code, 0);
}

#endif
