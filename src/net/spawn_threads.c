/* spawn_threads.c - workers as threads of one process. A second interrupt ends the process. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/supervise.h"

typedef struct team team;

typedef struct member {
    team *t;
    int worker;
    pthread_t thread;
} member;

struct team {
    const ls_launch *l;
    member *members;
    atomic_int alive;
};

static void *member_main(void *arg) {
    member *m = arg;
    const ls_launch *l = m->t->l;
    ls_error e = {0};
    atomic_store(&l->region->header->workers[m->worker].pid, getpid());
    if (l->main(m->worker, l->arg, &e) != LS_OK) ls_region_fail(l->region, m->worker, &e);
    if (atomic_fetch_sub(&m->t->alive, 1) == 1) kill(getpid(), SIGCHLD); /* wakes the supervisor */
    return NULL;
}

static ls_status run(const ls_launch *l, ls_error *e) {
    team t = {.l = l, .members = LS_NEW_ARRAY(member, (size_t)l->nworkers)};
    ls_supervisor s;
    ls_supervisor_begin(&s, l->region);
    int started = 0;
    for (; started < l->nworkers; started++) {
        member *m = &t.members[started];
        m->t = &t;
        m->worker = started;
        atomic_fetch_add(&t.alive, 1);
        int failed = pthread_create(&m->thread, NULL, member_main, m);
        if (!failed) continue;
        atomic_fetch_sub(&t.alive, 1);
        ls_fail(e, LS_ENOMEM, "worker %d can't be started: %s", started, strerror(failed));
        ls_region_fail(l->region, -1, e);
        break;
    }
    while (atomic_load(&t.alive) > 0)
        if (ls_supervisor_wait(&s) == LS_SUPERVISOR_END_NOW) {
            ls_log("interrupted twice: ended at once, without a checkpoint");
            _exit(1);
        }
    for (int i = 0; i < started; i++) pthread_join(t.members[i].thread, NULL);
    free(t.members);
    return ls_supervisor_end(&s, e);
}

const ls_spawn ls_spawn_threads = {.name = "thread", .shared = false, .run = run};
