/* program.h - one worker's part of a collective as a list of steps, made before it runs.
 *
 * An algorithm (direct.c, ring.c, ...) writes, for one worker, a sequential program: send, receive,
 * combine, copy, over ranges of buffers. Which steps may overlap follows from the ranges:
 * ls_coll_program_finish() makes a step wait for the earlier ones that touch the same elements, if
 * one of the two writes. Algorithms name no waits and keep no state. The engine runs a program over
 * a transport; tests run it over the fake one; its messages and bytes are counted here.
 *
 * Messages from one worker to another are numbered in the order of the sender's program; the
 * receiver's program takes them in the same order, so both use the same numbers. A step of no
 * elements is left out on both sides. The exception is counted messages, for which each side knows
 * only its own count: empty ones are sent, too, and the receiver finds out whether the counts
 * differ (ls_counted_print).
 *
 * Half precisions: IN, OUT and TEMP hold the call's dtype; WIDE holds f32, in which sums are made.
 */
#ifndef LS_COLL_ALGO_PROGRAM_H
#define LS_COLL_ALGO_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/group.h"

typedef enum ls_coll_program_buffer {
    LS_IN,
    LS_OUT,
    LS_TEMP,
    LS_WIDE,
    LS_NBUFFERS
} ls_coll_program_buffer;

/* Elements of a buffer from `first` on. */
typedef struct ls_place {
    ls_coll_program_buffer buffer;
    size_t first;
} ls_place;

typedef enum ls_step_kind {
    LS_STEP_SEND,    /* a to peer                              */
    LS_STEP_RECV,    /* out from peer                          */
    LS_STEP_COMBINE, /* out = a op b; out may be a or b        */
    LS_STEP_COPY,    /* out = a; widens or narrows where the buffers' types differ */
    LS_STEP_AVERAGE, /* out = out / by                         */
} ls_step_kind;

typedef struct ls_step {
    ls_step_kind kind;
    int peer;         /* of a message */
    uint32_t message; /* its number among those to, or from, this peer */
    int by;           /* of an average */
    ls_place a, b, out;
    size_t count;
    bool counted; /* a message whose two sides compare their counts, of both directions */
    size_t back;  /* of a counted message: elements that go the other way */
    int nwaits;   /* steps that must be done before this one */
    int unblocks; /* index into program->edges: the steps that wait for this one, -1 ends */
} ls_step;

/* Does the caller's `out` lie in `in`, or the other way round? */
typedef enum ls_overlap { LS_APART, LS_OUT_IN_IN, LS_IN_IN_OUT } ls_overlap;

typedef struct ls_in_place {
    ls_overlap overlap;
    size_t first; /* element of the outer one at which the inner one begins */
} ls_in_place;

typedef struct ls_coll_program {
    ls_dtype dtype;
    ls_op op;
    int rank, size;
    ls_step *steps; /* [nsteps] */
    int nsteps;
    size_t ntemp, nwide; /* elements of TEMP and WIDE */
    int *edges;          /* lists of step indexes, each ended by -1 */
    ls_in_place place;   /* set before steps are added */
    int step_cap;
    uint32_t *sent, *received; /* [size] messages so far */
} ls_coll_program;

/* An empty program for worker `rank` of `size`. */
void ls_coll_program_begin(ls_coll_program *, ls_dtype, ls_op, int rank, int size);
/* Fresh room in TEMP or WIDE. */
ls_place ls_coll_program_temp(ls_coll_program *, size_t count);
ls_place ls_coll_program_wide(ls_coll_program *, size_t count);

void ls_coll_program_send(ls_coll_program *, int peer, ls_place a, size_t count);
void ls_coll_program_recv(ls_coll_program *, int peer, ls_place out, size_t count);
/* Counted messages: `back` elements are expected from, or sent to, the same peer. */
void ls_coll_program_send_counted(ls_coll_program *, int peer, ls_place a, size_t count,
                                  size_t back);
void ls_coll_program_recv_counted(ls_coll_program *, int peer, ls_place out, size_t count,
                                  size_t back);
void ls_coll_program_combine(ls_coll_program *, ls_place a, ls_place b, ls_place out, size_t count);
/* Nothing where a and out are the same place. */
void ls_coll_program_copy(ls_coll_program *, ls_place a, ls_place out, size_t count);
void ls_coll_program_average(ls_coll_program *, ls_place out, size_t count, int by);

/* Derives which step waits for which. No step may be added afterwards. */
void ls_coll_program_finish(ls_coll_program *);
void ls_coll_program_free(ls_coll_program *);

/* The type of a buffer's elements. */
ls_dtype ls_coll_program_dtype(const ls_coll_program *, ls_coll_program_buffer);

/* Messages and bytes that this worker sends. */
typedef struct ls_traffic {
    uint64_t messages, nbytes;
} ls_traffic;
ls_traffic ls_coll_program_traffic(const ls_coll_program *);

/* The fingerprint of a counted message: the call's, whose lower half makes room for what its sender
 * expects from its receiver. */
static inline uint64_t ls_counted_print(uint64_t print, size_t expected) {
    return (print & ~(uint64_t)UINT32_MAX) | (uint32_t)expected;
}

static inline ls_place ls_at(ls_place p, size_t offset) {
    return (ls_place){p.buffer, p.first + offset};
}

#endif
