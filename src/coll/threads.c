/* threads.c - runs a function on each worker of a group of threads. */
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"
#include "lockstep/group.h"

typedef struct member {
    pthread_t thread;
    ls_group *group;
    ls_status (*work)(ls_group *, void *, ls_error *);
    void *arg;
    ls_status status;
    ls_error error;
    int *turn, order; /* this member was the order-th to fail; 0: it did not */
    pthread_mutex_t *mutex;
} member;

/* A worker that fails leaves the group, so that the others don't wait for it. */
static void *run(void *arg) {
    member *m = arg;
    m->status = m->work(m->group, m->arg, &m->error);
    if (m->status != LS_OK) {
        pthread_mutex_lock(m->mutex);
        m->order = ++*m->turn;
        pthread_mutex_unlock(m->mutex);
    }
    ls_group_close(m->group);
    return NULL;
}

/* Starts the members from 1 on; returns how many run, with member 0. */
static int start(member *members, int n, ls_error *e) {
    for (int i = 1; i < n; i++) {
        int why = pthread_create(&members[i].thread, NULL, run, &members[i]);
        if (why == 0) continue;
        ls_fail(e, LS_ENOMEM, "run_threads: can't start thread %d of %d: %s", i, n,
                ls_thread_why(why));
        return i;
    }
    return n;
}

/* Is `a` nearer to the cause than `b`? The first failure is the cause; the others follow from it. A
 * failure without a message follows from another worker's, even if it was the first to return. */
static bool is_nearer(const member *a, const member *b) {
    bool has = a->error.msg[0], other_has = b->error.msg[0];
    return has != other_has ? has : a->order < b->order;
}

static ls_status first_failure(const member *members, int n, ls_error *e) {
    const member *first = NULL;
    for (int i = 0; i < n; i++)
        if (members[i].order && (!first || is_nearer(&members[i], first))) first = &members[i];
    if (!first) return LS_OK;
    *e = first->error;
    return first->status;
}

ls_status ls_run_threads(int n, ls_status (*work)(ls_group *, void *, ls_error *), void *arg,
                         ls_error *e) {
    ls_error own = {0};
    if (!e) e = &own;
    if (!work) return ls_fail(e, LS_EINVAL, "run_threads: work is NULL");
    if (n < 1) return ls_fail(e, LS_EINVAL, "run_threads: %d threads; at least 1", n);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int turn = 0;
    ls_group **groups = LS_NEW_ARRAY(ls_group *, (size_t)n);
    member *members = LS_NEW_ARRAY(member, (size_t)n);
    ls_status s = ls_group_open_threads(n, NULL, groups, e);
    if (s == LS_OK) {
        for (int i = 0; i < n; i++)
            members[i] = (member){
                .group = groups[i], .work = work, .arg = arg, .turn = &turn, .mutex = &mutex};
        int running = start(members, n, e);
        if (running == n) {
            run(&members[0]); /* the calling thread is worker 0 */
        } else {
            s = LS_ENOMEM;
            ls_group_close(groups[0]);
            for (int i = running; i < n; i++) ls_group_close(groups[i]);
        }
        for (int i = 1; i < running; i++) pthread_join(members[i].thread, NULL);
        if (s == LS_OK) s = first_failure(members, n, e);
    }
    free(groups);
    free(members);
    return s;
}
