/* gate.h - the process through which workers on other hosts take part (wire.h).
 *
 * It listens where `lockstep train --listen` says. A worker that has the join key, and the same
 * settings, run and data (net/tcp/admission.h), gets a place among the run's workers. A thread acts
 * for it there: it takes tasks, sends parameters, and puts the gradient that comes back where a
 * worker of this host would put it. If the connection is lost, the place is freed, and its task
 * goes to another worker.
 *
 * What a place and a task are differs between sync.mode async (gate_board.c) and ssp
 * (gate_clocks.c).
 */
#ifndef LS_ASYNC_GATE_H
#define LS_ASYNC_GATE_H

#include <stdatomic.h>

#include "async/wire.h"
#include "net/join_key.h"

enum {
    LS_ASYNC_GUESTS = 64,                /* workers of other hosts, at most */
    LS_GATE_LOOK_NS = 500 * 1000 * 1000, /* how long take() waits */
    LS_GATE_SILENCE = 3 /* heartbeats without a sign of life until a worker is lost */
};

/* How the gate takes part in the run, by its crew; from several threads, each with its place. */
typedef struct ls_gate_ops {
    /* Takes a place [nlocal, nlocal + LS_ASYNC_GUESTS). False: there is none. */
    bool (*enter)(const void *crew, int *place_p);
    /* Waits half a second at most for a task, or until the run is over. False: there is none. */
    bool (*take)(const void *crew, int place, ls_wire_task *t_p);
    bool (*is_over)(const void *crew);
    /* Copies the parameters that the task needs. */
    void (*pull)(const void *crew, int place, const ls_wire_task *, void *params);
    /* Where the task's result and gradient go. Both are complete when the task is pushed. */
    void *(*result)(const void *crew, int place, const ls_wire_task *);
    void *(*gradient)(const void *crew, int place, const ls_wire_task *);
    void (*push)(const void *crew, int place, const ls_wire_task *);
    /* With sync.copies 2, mirror() sends a host the state and then its changes, as long as it can
     * (mirror.h); false: not to this host. reset(), when a gate begins: there is no such host
     * yet. */
    bool (*mirror)(const void *crew, ls_conn *, double silence_s, ls_status *s_p, ls_error *);
    void (*reset)(const void *crew);
    /* Frees a place whose worker has gone, or that was never taken: a task that was not pushed goes
     * to another worker. */
    void (*leave)(const void *crew, int place);
} ls_gate_ops;

typedef struct ls_gate {
    const ls_gate_ops *ops;
    const void *crew;
    int listen_fd; /* -1: no workers of other hosts */
    bool has_key;
    ls_key key;
    const char *settings; /* what must match: lines of settings, and of the run */
    double silence_s;     /* a worker that computes and shows no sign of life for longer is lost */
    int nlocal;           /* places of this host's workers */
    size_t params_nbytes, result_nbytes, grads_nbytes;
    atomic_int *standbys; /* in shared memory: how many have come, and not gone (standby.h) */
} ls_gate;

extern const ls_gate_ops ls_gate_board;  /* of an ls_async_crew */
extern const ls_gate_ops ls_gate_clocks; /* of an ls_clocked_crew */

/* Listens at `address`, with the join key; NULL: only sets listen_fd to -1. The rest is the
 * caller's to set. */
ls_status ls_gate_open(ls_gate *, const char *address, ls_error *);
void ls_gate_close(ls_gate *);
/* In a process that is forked and guards nothing: closes its copy of the descriptor, which would
 * keep the address from a leader that begins again while this process still ends. */
void ls_gate_leave(const ls_gate *);

/* The run is over: waits, not long, until all standbys know it. */
void ls_gate_dismiss(const ls_gate *);

/* Lets workers in until the process ends. */
ls_status ls_gate_guard(const ls_gate *, ls_error *);

#endif
