/* standby.c - see standby.h. */
#include "async/standby.h"

#include <unistd.h>

#include "base/clock.h"
#include "storage/lock.h"

enum { AGAIN_US = 250 * 1000 };

typedef struct standby {
    ls_standby_config *c;
    ls_shard_copy *copy; /* NULL: not open */
    ls_beats beats;
    int64_t latest_ns; /* when there was the latest sign of life */
} standby;

static double silent_s(const standby *b) { return (double)(ls_clock_ns() - b->latest_ns) / 1e9; }

/* Until the run is over, or the connection is lost. */
static ls_status attend(standby *b, ls_conn *conn, ls_error *e) {
    ls_frame f;
    if (b->copy) return ls_shard_copy_serve(b->copy, conn, b->c->silence_s, &b->beats, e);
    LS_TRY(ls_wire_next(conn, b->c->silence_s, &f, e));
    return f.kind == LS_WIRE_END ? LS_OK : ls_fail(e, LS_EPEER, "a frame of kind %d came", f.kind);
}

/* The settings match: opens the copy. */
static ls_status identify(void *arg, bool joins, ls_buf *out, ls_error *e) {
    standby *b = arg;
    (void)joins;
    if (b->c->begin && !b->copy) LS_TRY(b->c->begin(b->c->arg, &b->copy, e));
    return b->c->identity(b->c->arg, out, e);
}

/* One connection, from its beginning to its end. */
static ls_status visit(standby *b, ls_error *e) {
    ls_conn *conn = NULL;
    LS_TRY(ls_entry_connect(&b->c->entry, &conn, e));
    atomic_store(b->c->came, true);
    ls_status s = attend(b, conn, e);
    b->latest_ns = ls_clock_ns();
    ls_conn_free(conn);
    return s;
}

/* How long the first host may be silent before this one takes its place. */
static double limit_s(const standby *b) {
    bool lacks = b->c->begin && (!b->copy || b->copy->steps < 0);
    return lacks ? 2 * b->c->silence_s : b->c->silence_s;
}

static ls_status watch(standby *b, bool *lost_p, ls_error *e) {
    ls_error none;
    for (;; usleep(AGAIN_US)) {
        *e = (ls_error){0};
        ls_status s = visit(b, e);
        if (s != LS_EPEER) return s;
        *lost_p = atomic_load(b->c->came) && silent_s(b) > limit_s(b) &&
                  ls_lock_look(b->c->run, &none) == LS_OK;
        if (*lost_p) return LS_OK;
        if (silent_s(b) > b->c->patience_s) return s;
    }
}

ls_status ls_standby_watch(ls_standby_config *c, bool *lost_p, ls_error *e) {
    standby b = {.c = c, .latest_ns = ls_clock_ns()};
    *lost_p = false;
    c->entry.admission.identity = identify;
    c->entry.admission.arg = &b;
    LS_TRY(ls_entry_open(&c->entry, e));
    ls_status s = ls_beats_open(&b.beats, c->heartbeat_s / 2, e);
    if (s == LS_OK) {
        s = watch(&b, lost_p, e);
        ls_beats_close(&b.beats);
    }
    ls_entry_close(&c->entry);
    return s;
}
