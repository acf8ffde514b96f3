/* shard.c - see shard.h. */
#include "async/shard.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/round_up.h"
#include "tensor/dtype.h"

static ls_status make_lock(pthread_mutex_t *lock, ls_error *e) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    int failed = pthread_mutex_init(lock, &a);
    pthread_mutexattr_destroy(&a);
    return failed ? ls_fail(e, LS_ENOMEM, "no lock for a shard: %s", strerror(failed)) : LS_OK;
}

/* The end of the whole parameter that a cut would divide; else the cut itself. */
static size_t move_cut(const ls_model *m, size_t cut) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->cut.whole || p->frozen || p->offset >= cut || p->offset + p->count <= cut) continue;
        return ls_round_up(p->offset + p->count, LS_BLOCK);
    }
    return cut;
}

ls_status ls_async_shards_begin(ls_async_shard *shards, int n, const ls_model *m, ls_error *e) {
    size_t nblocks = m->nfloats / LS_BLOCK;
    for (int i = 0; i < n; i++) {
        memset(&shards[i], 0, sizeof shards[i]);
        shards[i].number = i;
        shards[i].first = i ? shards[i - 1].end : 0;
        shards[i].end = move_cut(m, nblocks * (size_t)(i + 1) / (size_t)n * LS_BLOCK);
        if (shards[i].end < shards[i].first) shards[i].end = shards[i].first;
        LS_TRY(make_lock(&shards[i].lock, e));
    }
    return LS_OK;
}

/* A process that was killed may have had the lock; `applies` shows what it left. */
static void lock(ls_async_shard *s) {
    if (pthread_mutex_lock(&s->lock) == EOWNERDEAD) pthread_mutex_consistent(&s->lock);
}

/* Locks the shard when no application is incomplete. */
static void lock_whole(ls_async_shard *s) {
    for (;;) {
        lock(s);
        if (!atomic_load(&s->applies)) return;
        pthread_mutex_unlock(&s->lock);
        nanosleep(&(struct timespec){0, 1000000}, NULL); /* until the next server has begun */
    }
}

int64_t ls_async_pull(const ls_async_parameters *p, ls_async_shard *s, void *to) {
    lock_whole(s);
    memcpy(ls_flat_at_mut(p->params_type, to, s->first),
           ls_flat_at(p->params_type, p->params, s->first),
           (s->end - s->first) * ls_dtype_size(p->params_type));
    int64_t version = atomic_load(&s->version);
    pthread_mutex_unlock(&s->lock);
    return version;
}

int64_t ls_async_version(const ls_async_shard *s) { return atomic_load(&s->version); }

double ls_async_rate(const ls_async_parameters *p, int64_t base, int64_t at) {
    double rate = ls_schedule_rate(&p->schedule, at);
    int64_t late = ls_async_staleness(base, at);
    return p->delay_aware && late > 1 ? rate / (double)late : rate;
}

void ls_async_apply(const ls_async_parameters *p, ls_async_shard *s, const ls_async_push *push,
                    int64_t at, const ls_compute *c) {
    const ls_journal journal = {.steps = p->mark, .saved = &s->saved, .nthreads = 1};
    ls_optim_update u = {.optim = p->optim,
                         .model = p->model,
                         .step = {.updates = at,
                                  .lr = ls_async_rate(p, push->base, at),
                                  .grad_scale = push->grad_scale,
                                  .samples = push->samples},
                         .grads_type = p->grads_type,
                         .params_type = p->params_type,
                         .grads = push->grads,
                         .params = p->params,
                         .flat = p->flat,
                         .journal = &journal,
                         .room = p->rooms ? p->rooms + (size_t)s->number * p->room_nbytes : NULL,
                         .steps = (uint32_t)at + 2}; /* 0 and 1: no block has had a gradient */
    lock(s);
    if (atomic_load(&s->version) == at) {
        if (atomic_load(&s->applies)) ls_journal_repair(&journal, &p->flat);
        atomic_store(&s->applies, 1);
        ls_optim_apply(&u, c, s->first, s->end);
        atomic_store(&s->version, at + 1);
    }
    atomic_store(&s->applies, 0);
    pthread_mutex_unlock(&s->lock);
}
