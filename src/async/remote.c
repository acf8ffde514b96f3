/* remote.c - see remote.h. */
#include "async/remote.h"

#include <unistd.h>

#include "async/beats.h"
#include "async/entry.h"
#include "base/clock.h"

enum { AGAIN_US = 250 * 1000 };

typedef struct remote {
    const ls_remote_config *c;
    ls_entry entry;
    ls_conn *conn;
    ls_remote_job job;
    bool begun, over;
    ls_beats beats; /* while it computes */
} remote;

/* ---- a connection ---- */

/* The settings match: opens the data. */
static ls_status identify(void *arg, bool joins, ls_buf *out, ls_error *e) {
    remote *r = arg;
    (void)joins;
    if (!r->begun) LS_TRY(r->c->begin(r->c->arg, &r->job, e));
    r->begun = true;
    return r->c->identity(r->c->arg, out, e);
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
    ls_beats_set(&r->beats, r->conn);
    ls_status s = r->job.compute(c->arg, &t, e);
    ls_beats_set(&r->beats, NULL);
    LS_TRY(s);
    LS_TRY(ls_wire_send(r->conn, LS_WIRE_RESULT, f.tag, r->job.result, c->result_nbytes, e));
    return ls_wire_send(r->conn, LS_WIRE_GRADIENT, f.tag, r->job.gradient, c->grads_nbytes, e);
}

/* One connection, from its beginning to its end. */
static ls_status visit(remote *r, int64_t *latest_p, ls_error *e) {
    ls_status s = ls_entry_connect(&r->entry, &r->conn, e);
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
        if (r->c->has_ended(r->c->arg)) return LS_OK;
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
    remote r = {.c = c, .entry = {.addresses = c->addresses}};
    r.entry.admission = (ls_admission){c->settings, identify, &r};
    r.entry.hello = (ls_wire_hello){.protocol = LS_WIRE_PROTOCOL,
                                    .result_nbytes = (uint32_t)c->result_nbytes,
                                    .params_nbytes = c->params_nbytes,
                                    .grads_nbytes = c->grads_nbytes};
    LS_TRY(ls_entry_open(&r.entry, e));
    ls_status s = ls_beats_open(&r.beats, c->heartbeat_s / 2, e);
    if (s == LS_OK) {
        s = work(&r, e);
        ls_beats_close(&r.beats);
    }
    ls_entry_close(&r.entry);
    return s;
}
