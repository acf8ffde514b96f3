/* gate.c - see gate.h. */
#include "async/gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "async/wire.h"
#include "base/log.h"
#include "net/tcp/guest.h"
#include "plan/memory.h"

enum { PATIENCE = 16, WAIT_MS = 500, LOOK_NS = 500 * 1000 * 1000 };

/* A worker on another host, as a thread of this process plays it. */
typedef struct envoy {
    const ls_async_crew *crew;
    ls_conn *c;
    ls_async_slot *slot; /* NULL: it has none yet */
    char name[80];       /* the worker's address */
    void *params;        /* [nfloats] */
} envoy;

static bool knows(const ls_frame *f) {
    return f->kind == LS_WIRE_HELLO && f->nbytes == sizeof(ls_wire_hello);
}

static bool is_welcome(const ls_async_crew *c, const ls_guest *g) {
    ls_wire_hello h;
    memcpy(&h, g->payload, sizeof h);
    return h.protocol == LS_WIRE_PROTOCOL && h.result_nbytes == sizeof(ls_async_result) &&
           h.params_nbytes == ls_plan_params_nbytes(c->plan) &&
           h.grads_nbytes == ls_plan_slot_nbytes(c->plan);
}

/* ---- slots ---- */

static int number_of(const envoy *v) { return (int)(v->slot - v->crew->board->slots); }

static bool enter(envoy *v) {
    ls_async_board *b = v->crew->board;
    for (int i = b->nlocal; i < b->nworkers; i++) {
        int away = LS_ASYNC_AWAY;
        if (!atomic_compare_exchange_strong(&b->slots[i].state, &away, LS_ASYNC_IDLE)) continue;
        v->slot = &b->slots[i];
        ls_bell_ring(&b->bell);
        return true;
    }
    return false;
}

/* A gradient that was pushed is applied; a batch that was not computed goes to another worker. */
static void leave(ls_async_board *b, ls_async_slot *slot) {
    int idle = LS_ASYNC_IDLE, given = LS_ASYNC_GIVEN;
    while (atomic_load(&slot->state) == LS_ASYNC_PUSHED)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (!atomic_compare_exchange_strong(&slot->state, &idle, LS_ASYNC_AWAY))
        atomic_compare_exchange_strong(&slot->state, &given, LS_ASYNC_LOST);
    ls_bell_ring(&b->bell);
}

/* ---- one worker ---- */

static bool is_given_or_over(void *arg) {
    const envoy *v = arg;
    return atomic_load(&v->slot->state) == LS_ASYNC_GIVEN || atomic_load(&v->crew->board->over);
}

/* Waits until its worker has a batch; also while the run is evaluated. */
static ls_status await_batch(envoy *v, bool *over_p, ls_error *e) {
    ls_async_board *b = v->crew->board;
    while (!ls_bell_wait(&v->slot->bell, is_given_or_over, v, &v->crew->patience, LOOK_NS))
        if (ls_wire_is_lost(v->c)) return ls_fail(e, LS_EPEER, "the connection is lost");
    *over_p = atomic_load(&b->over);
    return LS_OK;
}

static ls_status one_batch(envoy *v, ls_error *e) {
    const ls_async_crew *crew = v->crew;
    int worker = number_of(v);
    ls_frame f;
    ls_async_result r;
    uint64_t step = (uint64_t)atomic_load(&v->slot->step);
    ls_async_pull_all(crew, worker, v->params);
    LS_TRY(
        ls_wire_send(v->c, LS_WIRE_BATCH, step, v->params, ls_plan_params_nbytes(crew->plan), e));
    LS_TRY(ls_wire_next(v->c, &f, e));
    LS_TRY(ls_wire_take(v->c, &f, LS_WIRE_RESULT, &r, sizeof r, e));
    LS_TRY(ls_wire_next(v->c, &f, e));
    LS_TRY(ls_wire_take(v->c, &f, LS_WIRE_GRADIENT, ls_async_gradient_of(crew, worker),
                        ls_plan_slot_nbytes(crew->plan), e));
    if (f.tag != step)
        return ls_fail(e, LS_EPEER, "it sent the gradient of step %llu, not of %llu",
                       (unsigned long long)f.tag, (unsigned long long)step);
    v->slot->result = r;
    ls_async_push_all(crew, worker);
    return LS_OK;
}

static ls_status introduce(envoy *v, ls_error *e) {
    ls_frame f;
    const char *settings = v->crew->settings;
    LS_TRY(ls_wire_send(v->c, LS_WIRE_SETTINGS, 0, settings, strlen(settings), e));
    LS_TRY(ls_wire_next(v->c, &f, e));
    return ls_wire_take(v->c, &f, LS_WIRE_READY, NULL, 0, e);
}

static void serve_worker(envoy *v) {
    ls_error e = {0};
    bool over = false;
    ls_status s = introduce(v, &e);
    if (s != LS_OK) return; /* it has other settings, and says so there */
    if (!enter(v)) {
        ls_log("a worker at %s is sent away: there are too many", v->name);
        return;
    }
    ls_log("worker %d has come from %s", number_of(v), v->name);
    while (s == LS_OK) {
        s = await_batch(v, &over, &e);
        if (s != LS_OK || over) break;
        s = one_batch(v, &e);
    }
    if (over) ls_wire_send(v->c, LS_WIRE_END, 0, NULL, 0, &e);
    if (s != LS_OK)
        ls_log("worker %d at %s is lost (%s); the others go on", number_of(v), v->name, e.msg);
    leave(v->crew->board, v->slot);
}

static void *envoy_main(void *arg) {
    envoy *v = arg;
    v->params = ls_alloc(ls_plan_params_nbytes(v->crew->plan));
    serve_worker(v);
    ls_conn_free(v->c);
    free(v->params);
    free(v);
    return NULL;
}

static void let_in(const ls_async_crew *crew, ls_guests *gs, int i) {
    pthread_t thread;
    if (!is_welcome(crew, &gs->all[i])) {
        ls_guests_drop(gs, i, "it is another version of lockstep, or has another model");
        return;
    }
    envoy *v = LS_NEW(envoy);
    v->crew = crew;
    ls_address_text(&gs->all[i].from, v->name, sizeof v->name);
    v->c = ls_guests_release(gs, i);
    ls_socket_options(v->c->fd);
    if (pthread_create(&thread, NULL, envoy_main, v) == 0) {
        pthread_detach(thread);
        return;
    }
    ls_log("a worker at %s is sent away: no thread for it can be started", v->name);
    ls_conn_free(v->c);
    free(v);
}

/* The connections of an earlier gate ended with it. */
static void leave_all(ls_async_board *b) {
    for (int i = b->nlocal; i < b->nworkers; i++) leave(b, &b->slots[i]);
}

ls_status ls_async_guard(const ls_async_crew *crew, ls_error *e) {
    const ls_guests_options o = {.listen_fd = crew->listen_fd,
                                 .key = crew->has_key ? &crew->key : NULL,
                                 .knows = knows,
                                 .why_rejected = "it is not a worker of this version",
                                 .patience = PATIENCE,
                                 .most = LS_ASYNC_GUESTS};
    ls_guests gs;
    (void)e;
    leave_all(crew->board);
    ls_guests_open(&gs, &o);
    for (;;) {
        ls_guests_wait(&gs, -1, WAIT_MS);
        for (int i = gs.n - 1; i >= 0; i--)
            if (ls_guests_read(&gs, i) == LS_GUEST_READY) let_in(crew, &gs, i);
    }
}
