/* wire.c - see wire.h. */
#include "async/wire.h"

#include "net/tcp/guest.h"

static ls_status lost(ls_error *e) {
    return e && e->msg[0] ? LS_EPEER : ls_fail(e, LS_EPEER, "the connection is lost");
}

static bool is_waiting(ls_io io) { return io == LS_IO_AGAIN_READ || io == LS_IO_AGAIN_WRITE; }

static ls_status shake_hands(ls_conn *c, ls_error *e) {
    ls_io io = ls_conn_handshake(c, e);
    for (; is_waiting(io); io = ls_conn_handshake(c, e)) ls_conn_await(c, io);
    return io == LS_IO_DONE ? LS_OK : lost(e);
}

ls_status ls_wire_send(ls_conn *c, ls_wire_kind kind, uint64_t tag, const void *data, size_t nbytes,
                       ls_error *e) {
    const ls_frame f = {.kind = (uint16_t)kind, .tag = tag, .nbytes = nbytes};
    LS_TRY(shake_hands(c, e));
    ls_io io = ls_conn_put(c, &f, data, nbytes, c, e);
    while (io == LS_IO_DONE || is_waiting(io)) {
        void *token = NULL; /* the connection stands for the only long frame */
        if (is_waiting(io)) ls_conn_await(c, io);
        if (!ls_conn_busy(c)) return LS_OK;
        io = ls_conn_flush(c, &token, e);
    }
    return lost(e);
}

ls_status ls_wire_next(ls_conn *c, ls_frame *f_p, ls_error *e) {
    LS_TRY(shake_hands(c, e));
    ls_io io = ls_conn_next(c, f_p, e);
    for (; is_waiting(io); io = ls_conn_next(c, f_p, e)) ls_conn_await(c, io);
    return io == LS_IO_DONE ? LS_OK : lost(e);
}

ls_status ls_wire_take(ls_conn *c, const ls_frame *f, ls_wire_kind kind, void *to, size_t nbytes,
                       ls_error *e) {
    if (f->kind != kind || f->nbytes != nbytes)
        return ls_fail(e, LS_EPEER, "a frame of kind %d with %llu bytes came, not %d with %zu",
                       f->kind, (unsigned long long)f->nbytes, kind, nbytes);
    ls_conn_take(c, to, nbytes);
    ls_io io = ls_conn_payload(c, e);
    for (; is_waiting(io); io = ls_conn_payload(c, e)) ls_conn_await(c, io);
    return io == LS_IO_DONE ? LS_OK : lost(e);
}

bool ls_wire_is_lost(ls_conn *c) {
    ls_frame f;
    ls_error none = {0};
    return !is_waiting(ls_conn_next(c, &f, &none));
}
