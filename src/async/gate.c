/* gate.c - see gate.h. */
#include "async/gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "net/address.h"
#include "net/tcp/guest.h"

enum { PATIENCE = 16, WAIT_MS = 500, BEAT_US = 50 * 1000 };

ls_status ls_gate_open(ls_gate *g, const char *address, ls_error *e) {
    ls_address at;
    g->listen_fd = -1;
    if (!address) return LS_OK;
    void *standbys = NULL;
    LS_TRY(ls_map_shared(sizeof *g->standbys, "a count of hosts", &standbys, e));
    g->standbys = standbys;
    LS_TRY(ls_key_require(false, &g->key, &g->has_key, e));
    LS_TRY(ls_address_parse(address, &at, e));
    return ls_address_listen(&at, &g->listen_fd, e);
}

void ls_gate_close(ls_gate *g) {
    if (g->listen_fd >= 0) close(g->listen_fd);
    g->listen_fd = -1;
    ls_key_wipe(&g->key);
    ls_unmap(g->standbys, sizeof *g->standbys);
    g->standbys = NULL;
}

void ls_gate_leave(const ls_gate *g) {
    if (g->listen_fd >= 0) close(g->listen_fd);
}

void ls_gate_dismiss(const ls_gate *g) {
    enum { LOOKS = 2000 };
    for (int i = 0; g->standbys && i < LOOKS && atomic_load(g->standbys) > 0; i++) usleep(1000);
}

/* A worker on another host, as a thread of this process plays it. */
typedef struct envoy {
    const ls_gate *gate;
    ls_conn *c;
    ls_wire_role role;
    bool other_mode; /* it is a supervisor of sync.mode all_reduce */
    bool fits;       /* its results are as long as those of this run */
    int place;
    char name[80];   /* the worker's address */
    int64_t version; /* sync.mode ssp: of the parameters that it has; -1: none */
    void *params;    /* [params_nbytes] */
} envoy;

/* Frames of known kinds; a supervisor of sync.mode all_reduce gets an answer that says what is
 * wrong. */
static bool knows(const ls_frame *f) {
    return (f->kind == LS_WIRE_HELLO && f->nbytes == sizeof(ls_wire_hello)) ||
           (f->kind == LS_GREET_HOST && f->nbytes == LS_GREET_HOST_NBYTES);
}

static bool is_welcome(const ls_guest *g, envoy *v) {
    ls_wire_hello h;
    memcpy(&h, g->payload, sizeof h);
    v->other_mode = g->frame.kind == LS_GREET_HOST;
    v->role = (ls_wire_role)h.role;
    v->fits = h.result_nbytes == v->gate->result_nbytes &&
              h.params_nbytes == v->gate->params_nbytes && h.grads_nbytes == v->gate->grads_nbytes;
    return v->other_mode || (h.role <= LS_WIRE_COPY && h.protocol == LS_WIRE_PROTOCOL);
}

/* ---- one worker ---- */

/* Waits until its worker has a task; also while the run is evaluated. */
static ls_status await_task(const envoy *v, ls_wire_task *t_p, bool *over_p, ls_error *e) {
    const ls_gate *g = v->gate;
    *over_p = false;
    while (!g->ops->take(g->crew, v->place, t_p)) {
        *over_p = g->ops->is_over(g->crew);
        if (*over_p) return LS_OK;
        if (ls_wire_is_lost(v->c)) return ls_fail(e, LS_EPEER, "the connection is lost");
    }
    return LS_OK;
}

static ls_status send_task(envoy *v, ls_wire_task *t, ls_error *e) {
    const ls_gate *g = v->gate;
    uint64_t tag = (uint64_t)t->step;
    t->has_params = t->version < 0 || t->version != v->version;
    if (t->has_params) g->ops->pull(g->crew, v->place, t, v->params);
    LS_TRY(ls_wire_send(v->c, LS_WIRE_TASK, tag, t, sizeof *t, e));
    if (!t->has_params) return LS_OK;
    v->version = t->version;
    return ls_wire_send(v->c, LS_WIRE_PARAMS, tag, v->params, g->params_nbytes, e);
}

static ls_status do_task(envoy *v, ls_wire_task *t, ls_error *e) {
    const ls_gate *g = v->gate;
    ls_frame f;
    LS_TRY(send_task(v, t, e));
    LS_TRY(ls_wire_receive(v->c, LS_WIRE_RESULT, g->silence_s, g->ops->result(g->crew, v->place, t),
                           g->result_nbytes, e));
    LS_TRY(ls_wire_next(v->c, g->silence_s, &f, e));
    LS_TRY(ls_wire_take(v->c, &f, LS_WIRE_GRADIENT, g->ops->gradient(g->crew, v->place, t),
                        g->grads_nbytes, e));
    if (f.tag != (uint64_t)t->step)
        return ls_fail(e, LS_EPEER, "it sent the gradient of step %llu, not of %lld",
                       (unsigned long long)f.tag, (long long)t->step);
    g->ops->push(g->crew, v->place, t);
    return LS_OK;
}

/* Does its host have what this host has? */
static ls_status compare(const envoy *v, uint16_t kind, const char *theirs, ls_error *e) {
    const ls_admission g = {.settings = v->gate->settings};
    if (kind == LS_WIRE_REFUSES) return ls_fail(e, LS_EINVAL, "%s", theirs);
    LS_TRY(ls_admission_check(&g, v->name, theirs, e));
    if (v->fits) return LS_OK;
    return ls_fail(e, LS_EINVAL, "it is another version of lockstep, or has another model");
}

/* What is wrong with it is logged; a connection that is lost is not. */
static ls_status introduce(const envoy *v, ls_error *e) {
    const char *settings = v->gate->settings;
    uint16_t kind = v->other_mode ? LS_GREET_HOST_SETTINGS : LS_WIRE_SETTINGS;
    char *theirs = NULL;
    ls_frame f;
    LS_TRY(ls_wire_send(v->c, (ls_wire_kind)kind, 0, settings, strlen(settings), e));
    if (v->other_mode) return ls_fail(e, LS_EINVAL, "it has another sync.mode");
    LS_TRY(ls_wire_next(v->c, 0, &f, e));
    if (f.kind != LS_WIRE_READY && f.kind != LS_WIRE_REFUSES) return LS_EPEER;
    LS_TRY(ls_wire_take_text(v->c, &f, &theirs, e));
    ls_status s = compare(v, f.kind, theirs, e);
    free(theirs);
    return s;
}

static bool is_let_in(const envoy *v) {
    ls_error e = {0};
    ls_status s = introduce(v, &e);
    if (s != LS_OK && s != LS_EPEER)
        ls_log("a worker at %s does not take part: %s", v->name, e.msg);
    return s == LS_OK;
}

static void serve_worker(envoy *v) {
    const ls_gate *g = v->gate;
    ls_error e = {0};
    ls_wire_task t;
    bool over = false;
    ls_status s = LS_OK;
    if (!g->ops->enter(g->crew, &v->place)) {
        ls_log("a worker at %s is sent away: there are too many", v->name);
        return;
    }
    ls_log("worker %d has come from %s", v->place, v->name);
    while (s == LS_OK) {
        s = await_task(v, &t, &over, &e);
        if (s != LS_OK || over) break;
        s = do_task(v, &t, &e);
    }
    if (over) ls_wire_send(v->c, LS_WIRE_END, 0, NULL, 0, &e);
    if (s != LS_OK)
        ls_log("worker %d at %s is lost (%s); the others continue", v->place, v->name, e.msg);
    g->ops->leave(g->crew, v->place);
}

/* Shows the standby that this host lives, until the run is over; or makes it the copy of the state,
 * as soon as there is no other. *copies_p: it was. */
static ls_status attend(const envoy *v, bool *copies_p, ls_error *e) {
    const ls_gate *g = v->gate;
    ls_status s = LS_OK;
    while (!g->ops->is_over(g->crew)) {
        *copies_p = v->role == LS_WIRE_COPY && g->ops->mirror(g->crew, v->c, g->silence_s, &s, e);
        if (*copies_p) return s;
        usleep(BEAT_US);
        if (ls_wire_is_lost(v->c)) return ls_fail(e, LS_EPEER, "the connection is lost");
        LS_TRY(ls_wire_send(v->c, LS_WIRE_BEAT, 0, NULL, 0, e));
    }
    return LS_OK;
}

static void serve_standby(envoy *v) {
    ls_error e = {0};
    bool copies = false;
    ls_log("a host that can take over has come from %s", v->name);
    atomic_fetch_add(v->gate->standbys, 1);
    if (attend(v, &copies, &e) == LS_OK)
        ls_wire_send(v->c, LS_WIRE_END, 0, NULL, 0, &e);
    else
        ls_log("the host at %s, which could take over, is lost (%s)%s", v->name, e.msg,
               copies ? "; the run has one copy of its state" : "");
    atomic_fetch_sub(v->gate->standbys, 1);
}

static void *envoy_main(void *arg) {
    envoy *v = arg;
    v->params = ls_alloc(v->gate->params_nbytes);
    if (is_let_in(v)) (v->role == LS_WIRE_WORKER ? serve_worker : serve_standby)(v);
    ls_conn_free(v->c);
    free(v->params);
    free(v);
    return NULL;
}

static void let_in(const ls_gate *gate, ls_guests *gs, int i) {
    pthread_t thread;
    envoy *v = LS_NEW(envoy);
    *v = (envoy){.gate = gate, .version = -1};
    if (!is_welcome(&gs->all[i], v)) {
        ls_guests_drop(gs, i, "it is another version of lockstep");
        free(v);
        return;
    }
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
static void leave_all(const ls_gate *g) {
    for (int i = 0; i < LS_ASYNC_GUESTS; i++) g->ops->leave(g->crew, g->nlocal + i);
}

ls_status ls_gate_guard(const ls_gate *g, ls_error *e) {
    const ls_guests_options o = {.listen_fd = g->listen_fd,
                                 .key = g->has_key ? &g->key : NULL,
                                 .knows = knows,
                                 .why_rejected = "it is not a worker of this version",
                                 .patience = PATIENCE,
                                 .most = LS_ASYNC_GUESTS};
    ls_guests gs;
    (void)e;
    g->ops->reset(g->crew);
    leave_all(g);
    atomic_store(g->standbys, 0);
    ls_guests_open(&gs, &o);
    for (;;) {
        ls_guests_wait(&gs, -1, WAIT_MS);
        for (int i = gs.n - 1; i >= 0; i--)
            if (ls_guests_read(&gs, i) == LS_GUEST_READY) let_in(g, &gs, i);
    }
}
