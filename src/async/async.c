/* async.c - see async.h. */
#include "async/async.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "async/applications.h"
#include "base/cores.h"
#include "base/round_up.h"
#include "tensor/sum_order.h"

struct ls_async {
    ls_async_crew crew;
    ls_nursery nursery;
    const char *run;
    int64_t all; /* train.steps */
    ls_applications *log;
    ls_staleness staleness;
    int64_t next;         /* the step that is given out next */
    int64_t done;         /* steps that are complete */
    int64_t told;         /* steps that the watch knows */
    ls_async_step *early; /* [nearly] complete, while one before them is not */
    size_t nearly, room;
    int64_t lost[LS_ASYNC_GUESTS]; /* [nlost] steps whose workers have gone */
    int nlost;
};

ls_async_parameters ls_async_parameters_of(const ls_config *c, const ls_plan *p, const ls_world *w,
                                           atomic_uint *mark) {
    return (ls_async_parameters){.model = p->share.model,
                                 .optim = &p->share.optim,
                                 .schedule = ls_schedule_of(c, 0),
                                 .delay_aware = c->sync.delay_aware,
                                 .grads_type = p->share.reduce,
                                 .params_type = p->share.compute,
                                 .params = w->params,
                                 .flat = w->flat,
                                 .mark = mark};
}

/* ---- set-up ---- */

static ls_status take_memory(ls_async *a, const ls_async_config *c, ls_error *e) {
    ls_async_crew *crew = &a->crew;
    int nshards = crew->nservers ? crew->nservers : c->nworkers;
    if (nshards > LS_ASYNC_SHARDS) nshards = LS_ASYNC_SHARDS;
    void *grads = NULL, *rooms = NULL;
    crew->grads_nbytes = ls_round_up(ls_share_grads_nbytes(&c->plan->share, 0), 4096);
    LS_TRY(ls_async_board_open(c->nworkers, c->listen ? LS_ASYNC_GUESTS : 0, nshards,
                               c->plan->share.model, &crew->board, e));
    size_t n = (size_t)crew->board->nworkers;
    LS_TRY(ls_map_shared(n * crew->grads_nbytes, "gradients", &grads, e));
    crew->grads = grads;
    crew->parameters.room_nbytes = ls_round_up(c->plan->share.nbytes.room, 64);
    LS_TRY(ls_map_shared((size_t)nshards * crew->parameters.room_nbytes, "updates", &rooms, e));
    crew->parameters.rooms = rooms;
    for (int i = 0; i < nshards; i++) atomic_store(&crew->board->shards[i].version, c->steps);
    return ls_board_open(1, &crew->errors, e);
}

static ls_status open_gate(ls_async_crew *crew, const ls_async_config *c, ls_error *e) {
    crew->gate = (ls_gate){.ops = &ls_gate_board,
                           .crew = crew,
                           .settings = c->settings,
                           .silence_s = LS_GATE_SILENCE * crew->heartbeat_s,
                           .nlocal = c->nworkers,
                           .params_nbytes = c->plan->share.nbytes.params,
                           .result_nbytes = sizeof(ls_async_result),
                           .grads_nbytes = c->plan->share.nbytes.slot};
    return ls_gate_open(&crew->gate, c->listen, e);
}

static ls_status set_up(ls_async *a, const ls_async_config *c, ls_error *e) {
    ls_async_crew *crew = &a->crew;
    int n = c->nworkers;
    crew->plan = c->plan;
    crew->prepare = c->prepare;
    crew->prepare_arg = c->prepare_arg;
    a->run = c->run;
    a->all = c->config->train.steps;
    crew->loader = c->loader;
    crew->threads = ls_config_threads(c->config, n, ls_cores());
    crew->binds = ls_config_binds(c->config, n, crew->threads, ls_cores(), ls_cores_nodes());
    crew->clip = c->config->optim.clip;
    crew->heartbeat_s = c->config->survival.heartbeat_s;
    crew->nservers = (int)c->config->sync.servers;
    crew->parameters =
        ls_async_parameters_of(c->config, c->plan, c->world, c->world->journal.steps);
    crew->patience = ls_patience_for(n * crew->threads + n, ls_cores());
    a->next = a->done = a->told = c->steps;
    LS_TRY(take_memory(a, c, e));
    LS_TRY(open_gate(crew, c, e));
    const ls_nursery_roles roles = {.n = n + crew->nservers + (crew->gate.listen_fd >= 0),
                                    .nworkers = n,
                                    .nservers = crew->nservers,
                                    .run = ls_async_run_role,
                                    .progress = ls_async_pushed,
                                    .crew = crew,
                                    .errors = crew->errors,
                                    .bell = &crew->board->bell,
                                    .heartbeat_s = crew->heartbeat_s};
    return ls_nursery_open(&a->nursery, &roles, e);
}

ls_status ls_async_open(const ls_async_config *c, ls_async **a_p, ls_error *e) {
    ls_async *a = LS_NEW(ls_async);
    a->crew.gate.listen_fd = -1;
    ls_status s = set_up(a, c, e);
    if (s == LS_OK)
        *a_p = a;
    else
        ls_async_close(a, false);
    return s;
}

/* The gate says it to the workers of other hosts. */
static void say_over(ls_async_board *b) {
    enum { LOOKS = 2000 };
    atomic_store(&b->over, 1);
    for (int i = b->nlocal; i < b->nworkers; i++) {
        ls_bell_ring(&b->slots[i].bell);
        for (int k = 0; k < LOOKS && atomic_load(&b->slots[i].state) != LS_ASYNC_AWAY; k++)
            usleep(1000);
    }
}

void ls_async_close(ls_async *a, bool over) {
    if (!a) return;
    if (over && a->crew.board) say_over(a->crew.board);
    if (over) ls_gate_dismiss(&a->crew.gate);
    ls_nursery_close(&a->nursery);
    ls_applications_close(a->log);
    ls_board_close(a->crew.errors);
    ls_gate_close(&a->crew.gate);
    if (a->crew.grads)
        ls_unmap(a->crew.grads, (size_t)a->crew.board->nworkers * a->crew.grads_nbytes);
    if (a->crew.parameters.rooms)
        ls_unmap(a->crew.parameters.rooms,
                 (size_t)a->crew.board->nshards * a->crew.parameters.room_nbytes);
    ls_async_board_close(a->crew.board);
    free(a->early);
    free(a);
}

ls_status ls_async_begin(ls_async *a, ls_error *e) {
    const ls_async_board *b = a->crew.board;
    const ls_applications_begin begin = {.shards = b->shards,
                                         .nshards = b->nshards,
                                         .nworkers = b->nworkers,
                                         .steps = a->done,
                                         .of = a->all,
                                         .sum = ls_sum_order(a->crew.parameters.params_type)};
    LS_TRY(ls_applications_cut(a->run, a->done, e));
    return ls_applications_open(a->run, &begin, &a->log, e);
}

const ls_staleness *ls_async_staleness_of(const ls_async *a) { return &a->staleness; }

/* ---- a run ---- */

static void describe(const ls_async *a, int worker, ls_async_step *s) {
    const ls_async_board *b = a->crew.board;
    const ls_async_slot *slot = &b->slots[worker];
    *s = (ls_async_step){.step = atomic_load(&slot->step),
                         .worker = worker,
                         .data_wait_s = slot->result.data_wait_s,
                         .lr = ls_async_rate(&a->crew.parameters, slot->base[0], slot->at[0]),
                         .out = slot->result.out,
                         .nshards = b->nshards};
    for (int i = 0; i < b->nshards; i++)
        s->staleness[i] = ls_async_staleness(slot->base[i], slot->at[i]);
}

static void retain(ls_async *a, const ls_async_step *s) {
    if (a->nearly == a->room) {
        a->room = a->room ? 2 * a->room : 16;
        a->early = realloc(a->early, a->room * sizeof *a->early);
        if (!a->early) abort();
    }
    a->early[a->nearly++] = *s;
}

/* The worker's gradient was applied: its slot is free again. */
static ls_status complete(ls_async *a, int worker, ls_error *e) {
    ls_async_slot *slot = &a->crew.board->slots[worker];
    ls_async_step s;
    const ls_applications_line line = {atomic_load(&slot->step), worker, a->crew.board->nshards,
                                       slot->base, slot->at};
    LS_TRY(ls_applications_add(a->log, &line, e));
    describe(a, worker, &s);
    for (int i = 0; i < s.nshards; i++) ls_staleness_add(&a->staleness, s.staleness[i]);
    retain(a, &s);
    a->done++;
    atomic_store(&slot->state, LS_ASYNC_IDLE);
    return LS_OK;
}

/* Takes the batch of a slot back whose worker has gone, for another worker. */
static void take_back(ls_async *a, ls_async_slot *slot) {
    a->lost[a->nlost++] = atomic_load(&slot->step);
    atomic_store(&slot->state, LS_ASYNC_AWAY);
}

/* Gives the worker the next batch, if it is still there. */
static void give(ls_async *a, ls_async_slot *slot) {
    int idle = LS_ASYNC_IDLE;
    atomic_store(&slot->step, a->nlost ? a->lost[a->nlost - 1] : a->next);
    if (!atomic_compare_exchange_strong(&slot->state, &idle, LS_ASYNC_GIVEN)) return;
    if (a->nlost)
        a->nlost--;
    else
        a->next++;
    ls_bell_ring(&slot->bell);
}

/* Passes steps on, as far as all before them are complete. */
static ls_status report(ls_async *a, const ls_async_watch *w, ls_error *e) {
    for (size_t i = 0; i < a->nearly;) {
        if (a->early[i].step != a->told) {
            i++;
            continue;
        }
        ls_async_step s = a->early[i];
        a->early[i] = a->early[--a->nearly];
        a->told++;
        LS_TRY(w->step(w->arg, &s, e));
        i = 0;
    }
    return LS_OK;
}

static bool has_news(void *arg) {
    const ls_async *a = arg;
    ls_error none;
    if (ls_board_failed(a->crew.errors, &none) || ls_board_lost(a->crew.errors, &none)) return true;
    int copy = atomic_load(&a->crew.board->copy);
    if (copy == LS_ASYNC_COPY_WANTED && a->done == a->next) return true;
    for (int i = 0; i < a->crew.board->nworkers; i++) {
        const ls_async_slot *slot = &a->crew.board->slots[i];
        if (ls_async_is_complete(a->crew.board, slot)) return true;
        if (atomic_load(&slot->state) == LS_ASYNC_LOST) return true;
    }
    return false;
}

static ls_status check(ls_async *a, ls_error *e) {
    if (ls_board_failed(a->crew.errors, e) || ls_board_lost(a->crew.errors, e)) return e->code;
    return ls_nursery_check(&a->nursery, e);
}

static bool is_lent(void *arg) {
    const ls_async *a = arg;
    return atomic_load(&a->crew.board->copy) != LS_ASYNC_COPY_DRAINED;
}

/* All gradients are applied, and logged: the gate sends the state to the host that is to have the
 * copy. */
static ls_status lend_state(ls_async *a, ls_error *e) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    ls_async_board *b = a->crew.board;
    int wanted = LS_ASYNC_COPY_WANTED;
    LS_TRY(ls_applications_sync(a->log, e));
    atomic_store(&b->whole, a->done);
    if (!atomic_compare_exchange_strong(&b->copy, &wanted, LS_ASYNC_COPY_DRAINED)) return LS_OK;
    ls_bell_ring(&b->copy_bell);
    while (!ls_bell_wait(&b->bell, is_lent, a, &a->crew.patience, LOOK_NS)) LS_TRY(check(a, e));
    return LS_OK;
}

/* Until all steps that were given out are complete. */
static ls_status run(ls_async *a, int64_t until, const ls_async_watch *w, ls_error *e) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    ls_async_board *b = a->crew.board;
    while (a->done < until) {
        bool drains = atomic_load(&b->copy) == LS_ASYNC_COPY_WANTED;
        for (int i = 0; i < b->nworkers; i++) {
            ls_async_slot *slot = &b->slots[i];
            if (ls_async_is_complete(b, slot)) LS_TRY(complete(a, i, e));
            if (atomic_load(&slot->state) == LS_ASYNC_LOST) take_back(a, slot);
            if (w->stops(w->arg)) until = a->next;
            bool more = a->nlost || (!drains && a->next < until);
            if (more && atomic_load(&slot->state) == LS_ASYNC_IDLE) give(a, slot);
        }
        LS_TRY(report(a, w, e));
        if (a->done == until) break;
        if (drains && a->done == a->next) {
            LS_TRY(lend_state(a, e));
            continue;
        }
        ls_bell_wait(&b->bell, has_news, a, &a->crew.patience, LOOK_NS);
        LS_TRY(check(a, e));
    }
    return ls_applications_sync(a->log, e);
}

ls_status ls_async_run(ls_async *a, int64_t until, const ls_async_watch *w, int64_t *steps_p,
                       ls_error *e) {
    atomic_store(&a->crew.board->whole, a->done);
    LS_TRY(run(a, until, w, e));
    *steps_p = a->done;
    return LS_OK;
}
