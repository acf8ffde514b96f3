/* inside.h - what plugin.c (messages) and leave.c (peers that close) share of the transport. */
#ifndef LS_NET_MPI_INSIDE_H
#define LS_NET_MPI_INSIDE_H

#include <stdatomic.h>
#include <time.h>

#include "net/mpi/plugin.h"

enum { CONTROL_TAG = 0, FIRST_DATA_TAG = 1, NLISTEN = 16 };
/* The size of a control message, header included. Both MPIs send this much at once between
 * processes of one host, where their limit is lowest: 4 KiB with the MPI's own header. */
enum { SLOT = 4000 };
/* Bytes of a long message that one MPI call moves; they must fit into an int. */
enum { PART = 16 << 20 };

/* How long to wait for messages that were given up to end, and at the close for unsent data. */
static const int64_t PATIENCE_NS = 1000000000, BROKEN_PATIENCE_NS = 10000000000;

typedef enum kind { SHORT, LONG, READY, DROP, LEFT } kind;

typedef struct header {
    uint64_t tag, print, nbytes; /* of the message. LEFT: tag counts MPI's own collectives */
    uint64_t id; /* LONG: the sender's number for it. READY, DROP: the same. LEFT: control messages
                  * before it */
    uint32_t kind;
    int32_t data_tag; /* READY. LEFT: the worker that the sender has lost; -1: none */
} header;

enum { SHORT_MOST = SLOT - sizeof(header) };

/* A control message, sent or received. */
typedef struct slot {
    header h; /* } these two travel */
    unsigned char data[SHORT_MOST];
    int from; /* of an early one */
    struct slot *next;
} slot;

/* A long send, or a receive, that is not done. */
typedef struct transfer {
    ls_message *m; /* NULL: forgotten */
    const void *owner;
    int peer, data_tag;
    uint64_t id, nbytes;
    bool receives;
    int left;               /* parts on their way */
    int touching;           /* of these, the ones from or to the owner's memory */
    unsigned char *scratch; /* [nbytes] where the data of a forgotten receive go */
    struct transfer *next;
} transfer;

/* What one of MPI's requests is for. */
typedef struct action {
    enum { ENDED, LISTEN, CONTROL, DATA, NATIVE } what;
    slot *s;            /* LISTEN, CONTROL */
    ls_mpi_native *own; /* NATIVE */
    transfer *t;        /* DATA: bytes [at, at + n) */
    uint64_t at;
    int n;
    bool on_scratch;
} action;

/* What is known of another worker. */
typedef struct peer {
    uint64_t sent, received; /* control messages, without LEFT */
    bool left;               /* LEFT has come. From it: */
    uint64_t last;           /* control messages that it has sent */
    uint64_t natives;        /* MPI's own collectives that it has begun */
    int lost;                /* the worker that it has lost; -1: none */
    int64_t left_ns;
} peer;

typedef struct mpi_net {
    ls_mpi mpi;  /* first */
    peer *peers; /* [size] */
    int nleft;   /* of these */
    int lost;    /* the first that was reported as lost; -1: none */
    uint64_t natives;
    int last_tag, next_tag;
    uint64_t next_id;
    MPI_Request *requests; /* } [cap], of which the first `nactions` are used */
    action *actions;       /* } */
    int *ended;            /* } for MPI_Testsome */
    MPI_Status *statuses;  /* } */
    int nactions, cap;
    slot *free_slots, *early, **early_end;
    transfer *announced; /* long sends that wait for READY */
    transfer *wanted, **wanted_end;
    transfer *moving; /* both kinds, while their data are on the way */
    ls_message_queue done;
    int64_t idle_ns; /* time spent in polls since something last moved */
} mpi_net;

static inline bool is_broken(const mpi_net *x) { return x->mpi.broken.code != LS_OK; }

static inline int64_t ls_mpi_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- plugin.c ---- */

slot *ls_mpi_slot(mpi_net *); /* a free one */
void ls_mpi_send_control(mpi_net *, int to, slot *, size_t ndata);
/* Handles everything that MPI has finished; true if there was something. */
bool ls_mpi_move(mpi_net *);
/* Pauses between two tests, after idle_ns without a movement, for most_ns at most; < 0: no
 * limit. */
void ls_mpi_rest(int64_t idle_ns, int64_t most_ns);

/* ---- leave.c ---- */

/* Sends LEFT to all others: this worker sends nothing more. */
void ls_mpi_send_left(mpi_net *);
void ls_mpi_record_left(mpi_net *, int from, const header *);
/* A peer that has left, and that something here waits for; -1: none. */
int ls_mpi_find_lost(const mpi_net *);
ls_status ls_mpi_check_lost(mpi_net *, ls_error *);
/* Waits for every peer's LEFT, since some MPIs report messages that were never received when they
 * end. limit_ns < 0: as long as it takes. */
void ls_mpi_await_left(mpi_net *, int64_t limit_ns);

#endif
