/* flight.h - a program while it runs over a transport; many can run at a time.
 *
 * A flight posts every message whose waits are over, and combines what has arrived. It never
 * blocks: ls_flight_work() does one computation that is ready, ls_flight_done() takes the messages
 * that a poll returned. The caller polls (request.c).
 */
#ifndef LS_COLL_FLIGHT_H
#define LS_COLL_FLIGHT_H

#include "coll/call_record.h"
#include "net/net.h"
#include "tensor/kernels.h"

/* One run of a program. */
typedef struct ls_flight_call {
    const void *in; /* the caller's buffers, placed as the program expects */
    void *out;
    uint16_t group;
    uint32_t number;
    uint64_t print;
    const ls_reduction *by; /* in place of the program's operation; NULL: none */
} ls_flight_call;

typedef struct ls_flight {
    const ls_coll_program *program;
    ls_net *net;
    const ls_kernels *k;
    const int
        *ranks; /* [size] worker of the transport for each rank of the program; NULL: itself */
    unsigned char *buffers[LS_NBUFFERS];
    ls_flight_call call;
    int left;   /* steps not done */
    int *waits; /* [nsteps] */
    int *ready; /* [nsteps] a queue of computations that can be done */
    int ready_first, nready;
    ls_message *messages; /* [nsteps] */
    void *temp, *wide;    /* the flight's own memory */
    void *owner;          /* of its messages: the caller's own */
    ls_miscount miscount; /* of the counted message that ended it; number and what are not set */
} ls_flight;

/* Room for any run of this program. */
void ls_flight_open(ls_flight *, const ls_coll_program *, ls_net *, const ls_kernels *,
                    const int *ranks);
void ls_flight_free(ls_flight *);

/* Posts what can be posted. */
ls_status ls_flight_start(ls_flight *, const ls_flight_call *, ls_error *);
/* Does one computation, if one is ready. */
ls_status ls_flight_work(ls_flight *, bool *did_p, ls_error *);
/* A message of this flight is done. LS_EDISAGREE: the sender was in another call, or
 * (miscount.found) counts differ. */
ls_status ls_flight_done(ls_flight *, const ls_message *, ls_error *);

/* Is step i, a message, posted and not done? */
bool ls_flight_waits(const ls_flight *, int i);

static inline bool ls_flight_finished(const ls_flight *f) { return f->left == 0; }

#endif
