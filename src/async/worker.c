/* worker.c - an asynchronous worker: pulls parameters, computes the gradient of a batch, and pushes
 * it (crew.h). It waits for no other worker. */
#include "async/crew.h"
#include "async/gradient.h"
#include "base/cores.h"

static bool is_given(void *arg) {
    const ls_async_slot *slot = arg;
    return atomic_load(&slot->state) == LS_ASYNC_GIVEN;
}

/* Workers begin with different shards, and so rarely wait for each other. */
void ls_async_pull_all(const ls_async_crew *c, int worker, void *params) {
    ls_async_board *b = c->board;
    for (int i = 0; i < b->nshards; i++) {
        int shard = (worker + i) % b->nshards;
        b->slots[worker].base[shard] = ls_async_pull(&c->parameters, &b->shards[shard], params);
    }
}

void ls_async_push_all(const ls_async_crew *c, int worker) {
    ls_async_board *b = c->board;
    ls_async_slot *slot = &b->slots[worker];
    for (int i = 0; i < b->nshards; i++) {
        slot->at[i] = -1;
        atomic_store(&slot->applied[i], 0);
    }
    atomic_store(&slot->copied, 0);
    atomic_store(&slot->turn, atomic_fetch_add(&b->turns, 1));
    atomic_store(&slot->state, LS_ASYNC_PUSHED);
    for (int i = 0; i < b->nshards; i++) ls_bell_ring(&b->shard_bells[i]);
}

static ls_status open_gradient(const ls_async_crew *c, int worker, ls_async_gradient *g,
                               ls_error *e) {
    const ls_async_slot *slot = &c->board->slots[worker];
    const ls_async_gradient_config gc = {.plan = c->plan,
                                         .loader = c->loader,
                                         .threads = c->threads,
                                         .busy = c->board->nlocal * c->threads,
                                         .cores = ls_cores_among(c->board->nlocal),
                                         .clip = c->clip,
                                         .grads = ls_async_grads(c, worker)};
    LS_TRY(ls_async_gradient_open(g, &gc, atomic_load(&slot->step), e));
    if (c->binds) ls_exec_bind(g->exec, worker, c->board->nlocal, c->threads);
    return c->prepare(c->prepare_arg, g->exec, &g->world.frozen, e);
}

ls_status ls_async_work(const ls_async_crew *c, int worker, ls_error *e) {
    ls_async_slot *slot = &c->board->slots[worker];
    ls_async_result *r = &slot->result;
    ls_async_gradient g = {0};
    ls_status s = LS_OK;
    ls_bell_wait(&slot->bell, is_given, slot, &c->patience, -1);
    s = open_gradient(c, worker, &g, e);
    while (s == LS_OK) {
        ls_bell_wait(&slot->bell, is_given, slot, &c->patience, -1);
        ls_async_pull_all(c, worker, ls_async_gradient_params(&g));
        s = ls_async_gradient_compute(&g, atomic_load(&slot->step), &r->out, &r->update, e);
        r->data_wait_s = (double)ls_exec_data_wait_ns(g.exec) / 1e9;
        if (s == LS_OK) ls_async_push_all(c, worker);
    }
    ls_async_gradient_close(&g);
    return s;
}
