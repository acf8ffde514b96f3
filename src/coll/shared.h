/* shared.h - collectives of workers that share memory: each reads what it needs from the others.
 *
 * Every worker publishes its call on its page: where its buffers lie, and a fingerprint. When all
 * have done so, each does its part of the work alone, straight from the others' memory. Four ways:
 *
 *   small    The input lies on the page, or beside it: each worker reads all inputs and computes
 *            what it needs. One wait, for the others' calls.
 *   direct   The buffers can be read: each worker reduces one block of all inputs and writes it to
 *            every output, or copies what it needs from the inputs. A second wait, until all are
 *            done. An all-reduce reads (n-1)/n of the bytes from others and writes as many to them.
 *   remote   A call that only copies, some buffer is a process's own memory, and the kernel lets
 *            every member read the others': as direct, but the kernel copies.
 *   staged   Otherwise: inputs go piece by piece through memory that can be read, three parts
 *            in turn: a worker fills the next one before it waits for the others.
 *
 * In all four ways, sums are made in tree order (tree.h), one leaf a worker. Halves are summed in
 * f32 and rounded once.
 *
 * Invariants:
 *  (1) A slot belongs to call number c while finished <= c for its worker: it is written again, for
 *      call c + SLOTS, only after all workers have finished c.
 *  (2) What a worker has shown of a call (`arrived`) does not change until it has finished it.
 *  (3) Calls are shown in the order of their numbers; staged ones run one at a time, in that order.
 *  (4) What others may still read stays when this worker leaves: its part of the arena is freed,
 *      and its page is used again, only after all have finished its calls.
 *
 * One thread at a time.
 */
#ifndef LS_COLL_SHARED_H
#define LS_COLL_SHARED_H

#include "coll/call_record.h"
#include "net/local/commons.h"
#include "tensor/kernels.h"

enum {
    LS_SHARED_SLOTS = 8,
    LS_SHARED_ELEMENTS =
        256 * 1024 /* bytes: an element of each member goes through the stage at once */
};

typedef struct ls_shared_call {
    ls_call call;
    uint32_t number;
    uint64_t print;
    const unsigned char *in;
    unsigned char *out;
    size_t nin, nout; /* bytes */
    int come;         /* members that have been seen to come */
    int left;         /* members that have been seen to be done */
    size_t round;     /* of a staged call */
    size_t base;      /* rounds of all calls before it */
    enum {
        LS_SHARED_FREE,
        LS_SHARED_COMING,
        LS_SHARED_STAGING,
        LS_SHARED_SUMMING,
        LS_SHARED_STUCK, /* remote: `left` can't be read, which is lost; its loss is found */
        LS_SHARED_LEAVING,
        LS_SHARED_DONE
    } state;
    int differs; /* a member that is in another call, or -1 */
    ls_miscount
        miscount; /* found: that member is in the same call, but two members' counts differ */
} ls_shared_call;

/* A group, as one of its members sees it. */
typedef struct ls_shared_members {
    int id;            /* its number: the area of the commons, too */
    uint32_t identity; /* which of the groups that have had this number */
    int rank, size;
    const int *ranks; /* [size] the members' ranks in the commons, or of the endpoint */
} ls_shared_members;

typedef struct ls_shared {
    ls_commons *commons;
    const ls_kernels *k;
    int area, rank, size;
    int *ranks;                 /* [size] in the commons */
    unsigned *opened;           /* [size] which opening of its page; 0: not come yet */
    struct page **pages;        /* [size] */
    uint32_t started, finished; /* calls of this worker: finished <= started */
    uint32_t all_finished;      /* as last looked up */
    ls_shared_call calls[LS_SHARED_SLOTS];
    unsigned char *small; /* [LS_SHARED_SLOTS][SMALL] in the arena (shared_inside.h) */
    unsigned char *stage; /* in the arena: parts of `part` bytes */
    size_t part;
    struct pairs *pairs; /* [LS_SHARED_SLOTS] in the arena, pairs_nbytes each */
    size_t pairs_nbytes;
    struct scratch *scratch;
    size_t staged; /* rounds of all calls so far: the parts of the stage take turns */
    struct remote *remote;
    uint64_t bytes_read;
} ls_shared;

/* LS_ENOMEM: the arena is full. */
ls_status ls_shared_open(ls_shared *, ls_commons *, const ls_kernels *, const ls_shared_members *,
                         ls_error *);
void ls_shared_close(ls_shared *);
/* The areas of closed groups whose pages others may still read: bit i for area i. */
uint64_t ls_shared_retained_areas(ls_commons *);

/* Is a slot free for another call? If not, others must be finished first. */
bool ls_shared_room(ls_shared *);
/* The member that is farthest behind: slots are in use until it has finished their calls. */
int ls_shared_behind(const ls_shared *);
/* Shows the call to the others. */
ls_shared_call *ls_shared_start(ls_shared *, const ls_call *, uint64_t print, const ls_operands *,
                                const ls_record *);
/* Makes all progress that is possible now; true when the call is done, or a member is found to
 * differ. A call that is done frees its slot. */
bool ls_shared_step(ls_shared *, ls_shared_call *);
/* The first member that this call waits for, or -1. */
int ls_shared_late(const ls_shared *, const ls_shared_call *);

/* Show what this worker has called and where it waits. ls_shared_start() shows its own call; a call
 * that runs as a program is shown here. */
void ls_shared_note(ls_shared *, const ls_record *);
void ls_shared_note_wait(ls_shared *, ls_waiting, const ls_single *);
const ls_history *ls_shared_own(const ls_shared *);
void ls_shared_history(const ls_shared *, int member, ls_history *h_p);
/* The first shows the counts that broke the group; the second reads what a member shows (found is
 * false: nothing). */
void ls_shared_note_miscount(ls_shared *, const ls_miscount *);
ls_miscount ls_shared_miscount(const ls_shared *, int member);
/* Has the member come to this call? */
bool ls_shared_has_come(const ls_shared *, const ls_shared_call *, int member);

#endif
