/* standby.c - see standby.h. */
#include "async/standby.h"

#include <unistd.h>

#include "base/clock.h"
#include "storage/lock.h"

enum { AGAIN_US = 250 * 1000 };

typedef struct standby {
    ls_standby_config *c;
    bool came, over;   /* it had a connection once; the run is over */
    int64_t latest_ns; /* when there was the latest sign of life */
} standby;

static double silent_s(const standby *b) { return (double)(ls_clock_ns() - b->latest_ns) / 1e9; }

/* One connection, from its beginning to its end. */
static ls_status visit(standby *b, ls_error *e) {
    ls_conn *c = NULL;
    ls_frame f;
    LS_TRY(ls_entry_connect(&b->c->entry, &c, e));
    ls_status s = ls_wire_send(c, LS_WIRE_READY, 0, NULL, 0, e);
    if (s == LS_OK) {
        b->came = true;
        s = ls_wire_next(c, b->c->silence_s, &f, e);
        b->over = s == LS_OK && f.kind == LS_WIRE_END;
        b->latest_ns = ls_clock_ns();
    }
    ls_conn_free(c);
    return s == LS_OK && !b->over ? ls_fail(e, LS_EPEER, "a frame of kind %d came", f.kind) : s;
}

static ls_status watch(standby *b, bool *lost_p, ls_error *e) {
    ls_error none;
    for (;; usleep(AGAIN_US)) {
        *e = (ls_error){0};
        ls_status s = visit(b, e);
        if (s != LS_EPEER) return s;
        *lost_p =
            b->came && silent_s(b) > b->c->silence_s && ls_lock_look(b->c->run, &none) == LS_OK;
        if (*lost_p) return LS_OK;
        if (silent_s(b) > b->c->patience_s) return s;
    }
}

ls_status ls_standby_watch(ls_standby_config *c, bool *lost_p, ls_error *e) {
    standby b = {.c = c, .latest_ns = ls_clock_ns()};
    *lost_p = false;
    LS_TRY(ls_entry_open(&c->entry, e));
    ls_status s = watch(&b, lost_p, e);
    ls_entry_close(&c->entry);
    return s;
}
