/* wire.c - see wire.h. */
#include "async/wire.h"

#include <stdlib.h>

#include "base/clock.h"
#include "net/tcp/guest.h"

enum { STALL_S = 15 }; /* as long as the system waits for an acknowledgment (net/address.c) */

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

static ls_status next_header(ls_conn *c, double silence_s, ls_frame *f_p, ls_error *e) {
    int64_t began = ls_clock_ns();
    LS_TRY(shake_hands(c, e));
    ls_io io = ls_conn_next(c, f_p, e);
    for (; is_waiting(io); io = ls_conn_next(c, f_p, e)) {
        if (silence_s > 0 && (double)(ls_clock_ns() - began) / 1e9 > silence_s)
            return ls_fail(e, LS_EPEER, "no sign of life for %.1f s", silence_s);
        ls_conn_await(c, io);
    }
    return io == LS_IO_DONE ? LS_OK : lost(e);
}

ls_status ls_wire_next(ls_conn *c, double silence_s, ls_frame *f_p, ls_error *e) {
    LS_TRY(next_header(c, silence_s, f_p, e));
    while (f_p->kind == LS_WIRE_BEAT) {
        LS_TRY(ls_wire_take(c, f_p, LS_WIRE_BEAT, NULL, 0, e));
        LS_TRY(next_header(c, silence_s, f_p, e));
    }
    return LS_OK;
}

ls_status ls_wire_take(ls_conn *c, const ls_frame *f, ls_wire_kind kind, void *to, size_t nbytes,
                       ls_error *e) {
    if (f->kind != kind || f->nbytes != nbytes)
        return ls_fail(e, LS_EPEER, "a frame of kind %d with %llu bytes came, not %d with %zu",
                       f->kind, (unsigned long long)f->nbytes, kind, nbytes);
    ls_conn_take(c, to, nbytes);
    int64_t began = ls_clock_ns();
    size_t left = c->left;
    ls_io io = ls_conn_payload(c, e);
    for (; is_waiting(io); io = ls_conn_payload(c, e)) {
        if (c->left < left) began = ls_clock_ns();
        if ((double)(ls_clock_ns() - began) / 1e9 > STALL_S)
            return ls_fail(e, LS_EPEER, "no byte of a frame came for %d s", STALL_S);
        left = c->left;
        ls_conn_await(c, io);
    }
    return io == LS_IO_DONE ? LS_OK : lost(e);
}

ls_status ls_wire_receive(ls_conn *c, ls_wire_kind kind, double silence_s, void *to, size_t nbytes,
                          ls_error *e) {
    ls_frame f;
    LS_TRY(ls_wire_next(c, silence_s, &f, e));
    return ls_wire_take(c, &f, kind, to, nbytes, e);
}

ls_status ls_wire_take_text(ls_conn *c, const ls_frame *f, char **text_p, ls_error *e) {
    if (f->nbytes > LS_ADMISSION_NBYTES)
        return ls_fail(e, LS_EPEER, "a text of %llu bytes came, not of %d at most",
                       (unsigned long long)f->nbytes, LS_ADMISSION_NBYTES);
    size_t n = (size_t)f->nbytes;
    char *text = LS_NEW_ARRAY(char, n + 1);
    ls_status s = ls_wire_take(c, f, (ls_wire_kind)f->kind, text, n, e);
    if (s == LS_OK)
        *text_p = text;
    else
        free(text);
    return s;
}

bool ls_wire_is_lost(ls_conn *c) {
    ls_frame f;
    ls_error none = {0};
    return !is_waiting(ls_conn_next(c, &f, &none));
}
