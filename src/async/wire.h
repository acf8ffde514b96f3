/* wire.h - what a worker on another host and the host of the parameters send each other, over a
 * connection of net/tcp: with the join key and TLS, as between all hosts.
 *
 *     worker (remote.h)                      host of the parameters (gate.h)
 *     HELLO     who it is               -->
 *                                       <--  SETTINGS  what must match (net/tcp/admission.h)
 *     READY     its own; it has read    -->            or REFUSES, and why
 *               the run's data
 *                                       <--  TASK      which gradient
 *                                       <--  PARAMS    unless the worker has them already
 *     BEAT      while it computes       -->
 *     RESULT    loss, norm, ...         -->
 *     GRADIENT  of the task             -->            and so on
 *                                       <--  END       the run is over
 *
 * A standby (standby.h) computes nothing: after READY it gets BEATs until the END. One that is to
 * have the copy (sync.copies 2) gets the state, and then gradients in batches:
 *
 *     copy (shard_copy.h)                    host of the servers (mirror.h)
 *                                       <--  STATE, FLAT of each buffer
 *                                       <--  APPLIED, GRADIENT   of each step of a batch
 *     HAVE      the whole batch         -->                      and so on
 */
#ifndef LS_ASYNC_WIRE_H
#define LS_ASYNC_WIRE_H

#include "net/tcp/admission.h"
#include "net/tcp/conn.h"

typedef enum ls_wire_kind {
    LS_WIRE_HELLO = LS_GREET_WORKER,
    LS_WIRE_SETTINGS = LS_GREET_WORKER_SETTINGS,
    LS_WIRE_READY,
    LS_WIRE_TASK,
    LS_WIRE_PARAMS,
    LS_WIRE_BEAT,
    LS_WIRE_RESULT,
    LS_WIRE_GRADIENT,
    LS_WIRE_END,
    LS_WIRE_STATE,
    LS_WIRE_FLAT,
    LS_WIRE_APPLIED,
    LS_WIRE_HAVE,
    LS_WIRE_REFUSES
} ls_wire_kind;

typedef enum ls_wire_role {
    LS_WIRE_WORKER,
    LS_WIRE_STANDBY, /* gets BEATs alone, and END (standby.h) */
    LS_WIRE_COPY     /* a standby that also gets the state, and what changes it (shard_copy.h) */
} ls_wire_role;

typedef struct ls_wire_hello {
    uint32_t protocol, role;
    uint32_t unused;
    uint32_t result_nbytes; /* other versions differ in either */
    uint64_t params_nbytes, grads_nbytes;
} ls_wire_hello;
_Static_assert(sizeof(ls_wire_hello) == LS_GREET_WORKER_NBYTES, "as others know it");

typedef struct ls_wire_task {
    int64_t step;
    int64_t version;    /* sync.mode ssp: of the parameters */
    int32_t vw, cell;   /* sync.mode ssp: whose gradient, and where it goes */
    int32_t has_params; /* PARAMS follow */
    int32_t unused;
} ls_wire_task;

enum { LS_WIRE_PROTOCOL = 3 };

/* The content of STATE. */
typedef struct ls_wire_state {
    int64_t steps; /* complete, and no others */
    int32_t nshards, nflat;
} ls_wire_state;

/* Blocks until all is sent, including the handshake. LS_EPEER: the connection is lost. */
ls_status ls_wire_send(ls_conn *, ls_wire_kind, uint64_t tag, const void *data, size_t nbytes,
                       ls_error *);
/* Blocks until the next frame's header is there, silence_s at most (0: for ever), counted from the
 * last BEAT, which is no frame of interest. LS_EPEER: also if it is not there by then. */
ls_status ls_wire_next(ls_conn *, double silence_s, ls_frame *f_p, ls_error *);
/* Receives what follows the header. LS_EPEER: it is not of this kind and size. */
ls_status ls_wire_take(ls_conn *, const ls_frame *, ls_wire_kind, void *to, size_t nbytes,
                       ls_error *);
/* ls_wire_next() and ls_wire_take(), for a frame that must be the next one. */
ls_status ls_wire_receive(ls_conn *, ls_wire_kind, double silence_s, void *to, size_t nbytes,
                          ls_error *);
/* Receives the text of a frame whose header is there, of LS_ADMISSION_NBYTES at most; the caller
 * frees it. */
ls_status ls_wire_take_text(ls_conn *, const ls_frame *, char **text_p, ls_error *);
/* Has the peer closed the connection, when no frame is expected from it? */
bool ls_wire_is_lost(ls_conn *);

#endif
