/* server.c - a parameter server: applies the gradients that workers push to its shard (crew.h).
 *
 * Gradients are applied one by one, in the order in which they were pushed. Before an application
 * begins, the version that it makes from is recorded in the gradient's slot: if this process is
 * killed, the next server of the shard begins with that gradient.
 */
#include <pthread.h>
#include <stdlib.h>

#include "async/crew.h"
#include "base/thread.h"

typedef struct server {
    const ls_async_crew *crew;
    int shard;
    ls_async_slot *next; /* whose gradient is applied next */
} server;

static bool waits(const ls_async_slot *slot, int shard) {
    return atomic_load(&slot->state) == LS_ASYNC_PUSHED && !atomic_load(&slot->applied[shard]);
}

/* Is there a gradient to apply? One that an earlier server began comes first. */
static bool find_next(void *arg) {
    server *s = arg;
    ls_async_board *b = s->crew->board;
    s->next = NULL;
    for (int i = 0; i < b->nworkers; i++) {
        ls_async_slot *slot = &b->slots[i];
        if (!waits(slot, s->shard)) continue;
        bool first = !s->next || atomic_load(&slot->turn) < atomic_load(&s->next->turn);
        if (first || slot->at[s->shard] >= 0) s->next = slot;
        if (slot->at[s->shard] >= 0) break;
    }
    return s->next != NULL;
}

static void apply(const server *s, const ls_compute *c) {
    const ls_async_crew *crew = s->crew;
    ls_async_board *b = crew->board;
    ls_async_shard *shard = &b->shards[s->shard];
    ls_async_slot *slot = s->next;
    int worker = (int)(slot - b->slots);
    const ls_async_push push = {.grads = ls_async_gradient_of(crew, worker),
                                .grad_scale = slot->result.update.grad_scale,
                                .samples = slot->result.update.samples,
                                .base = slot->base[s->shard]};
    if (slot->at[s->shard] < 0) slot->at[s->shard] = ls_async_version(shard);
    ls_async_apply(&crew->parameters, shard, &push, slot->at[s->shard], c);
    atomic_store(&slot->applied[s->shard], 1);
    ls_bell_ring(&b->bell);
    if (atomic_load(&b->copy) == LS_ASYNC_COPY_PRESENT) ls_bell_ring(&b->copy_bell);
}

ls_status ls_async_serve(const ls_async_crew *crew, int shard, ls_error *e) {
    server s = {.crew = crew, .shard = shard};
    ls_compute c;
    LS_TRY(ls_compute_init(&c, 1, ls_model_scratch_floats(crew->plan->share.model), e));
    for (;;) {
        ls_bell_wait(&crew->board->shard_bells[shard], find_next, &s, &crew->patience, -1);
        apply(&s, &c);
    }
}

static void *serve(void *arg) {
    const server *s = arg;
    ls_error e = {0};
    if (ls_async_serve(s->crew, s->shard, &e) != LS_OK) ls_async_fail(s->crew, &e);
    return NULL;
}

ls_status ls_async_serve_beside(const ls_async_crew *crew, int shard, ls_error *e) {
    pthread_t thread;
    server *s = LS_NEW(server); /* for the thread, which lives as long as the process */
    *s = (server){.crew = crew, .shard = shard};
    int failed = pthread_create(&thread, NULL, serve, s);
    if (!failed) return LS_OK;
    free(s);
    return ls_fail(e, LS_ENOMEM, "the server of shard %d can't be started: %s", shard,
                   ls_thread_why(failed));
}
