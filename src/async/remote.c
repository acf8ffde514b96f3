/* remote.c - see remote.h. */
#include "async/remote.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "async/entry.h"
#include "base/clock.h"

enum { AGAIN_US = 250 * 1000 };

typedef struct remote {
    const ls_remote_config *c;
    ls_entry entry;
    ls_conn *conn;
    ls_remote_job job;
    bool begun, over;
    /* While `computes`, a thread shows on the connection that this process runs. */
    pthread_t beats;
    pthread_mutex_t lock;
    bool computes;
} remote;

/* ---- signs of life ---- */

static void *beat(void *arg) {
    remote *r = arg;
    int64_t ns = (int64_t)(r->c->heartbeat_s / 2 * 1e9);
    for (;;) {
        ls_error none = {0};
        nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
        pthread_mutex_lock(&r->lock);
        if (r->computes) ls_wire_send(r->conn, LS_WIRE_BEAT, 0, NULL, 0, &none);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static void set_computes(remote *r, bool on) {
    pthread_mutex_lock(&r->lock);
    r->computes = on;
    pthread_mutex_unlock(&r->lock);
}

static ls_status start_beats(remote *r, ls_error *e) {
    pthread_mutex_init(&r->lock, NULL);
    int failed = pthread_create(&r->beats, NULL, beat, r);
    if (!failed) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "a thread can't be started: %s", strerror(failed));
}

static void stop_beats(remote *r) {
    set_computes(r, false);
    pthread_cancel(r->beats);
    pthread_join(r->beats, NULL);
    pthread_mutex_destroy(&r->lock);
}

/* ---- a connection ---- */

static ls_status introduce(remote *r, ls_error *e) {
    LS_TRY(ls_entry_connect(&r->entry, &r->conn, e));
    if (!r->begun) LS_TRY(r->c->begin(r->c->arg, &r->job, e));
    r->begun = true;
    return ls_wire_send(r->conn, LS_WIRE_READY, 0, NULL, 0, e);
}

static ls_status do_task(remote *r, ls_error *e) {
    const ls_remote_config *c = r->c;
    ls_wire_task t = {0};
    ls_frame f;
    LS_TRY(ls_wire_next(r->conn, 0, &f, e));
    r->over = f.kind == LS_WIRE_END;
    if (r->over) return LS_OK;
    LS_TRY(ls_wire_take(r->conn, &f, LS_WIRE_TASK, &t, sizeof t, e));
    if (t.has_params)
        LS_TRY(ls_wire_receive(r->conn, LS_WIRE_PARAMS, 0, r->job.params, c->params_nbytes, e));
    set_computes(r, true);
    ls_status s = r->job.compute(c->arg, &t, e);
    set_computes(r, false);
    LS_TRY(s);
    LS_TRY(ls_wire_send(r->conn, LS_WIRE_RESULT, f.tag, r->job.result, c->result_nbytes, e));
    return ls_wire_send(r->conn, LS_WIRE_GRADIENT, f.tag, r->job.gradient, c->grads_nbytes, e);
}

/* One connection, from its beginning to its end. */
static ls_status visit(remote *r, int64_t *latest_p, ls_error *e) {
    ls_status s = introduce(r, e);
    while (s == LS_OK && !r->over) {
        *latest_p = ls_clock_ns();
        s = do_task(r, e);
    }
    ls_conn_free(r->conn);
    r->conn = NULL;
    return s;
}

static ls_status work(remote *r, ls_error *e) {
    int64_t latest = ls_clock_ns();
    ls_status s = visit(r, &latest, e);
    while (s == LS_EPEER && (double)(ls_clock_ns() - latest) / 1e9 < r->c->patience_s) {
        usleep(AGAIN_US);
        *e = (ls_error){0};
        s = visit(r, &latest, e);
    }
    if (s != LS_EPEER) return s;
    ls_error why = *e;
    return ls_fail(e, LS_EPEER, "no host of parameter servers for %.0f s (survival.rejoin_s): %s",
                   r->c->patience_s, why.msg);
}

ls_status ls_remote_work(const ls_remote_config *c, ls_error *e) {
    remote r = {.c = c, .entry = {.addresses = c->addresses, .settings = c->settings}};
    r.entry.hello = (ls_wire_hello){.protocol = LS_WIRE_PROTOCOL,
                                    .result_nbytes = (uint32_t)c->result_nbytes,
                                    .params_nbytes = c->params_nbytes,
                                    .grads_nbytes = c->grads_nbytes};
    LS_TRY(ls_entry_open(&r.entry, e));
    ls_status s = start_beats(&r, e);
    if (s == LS_OK) {
        s = work(&r, e);
        stop_beats(&r);
    }
    ls_entry_close(&r.entry);
    return s;
}
