/* join.h - how workers on several hosts find each other.
 *
 * Worker 0 listens at an address that all workers know. Every other worker connects, proves that it
 * has the join key, and sends its rank, the address where it listens itself, and its host. When all
 * have come, worker 0 sends the roster to all, and the connections end. A peer that connects
 * without the key, or sends nonsense, or nothing, is dropped with a log line; the others continue.
 */
#ifndef LS_NET_TCP_JOIN_H
#define LS_NET_TCP_JOIN_H

#include <stdint.h>

#include "net/address.h"
#include "net/join_key.h"

/* One worker as the others see it. */
typedef struct ls_roster_entry {
    struct sockaddr_storage address; /* where it listens */
    uint64_t host;                   /* equal for workers of one host */
    int pid;
} ls_roster_entry;

typedef struct ls_roster {
    int size;
    ls_roster_entry *members; /* [size] */
    uint64_t nonce[2];        /* of this group: it distinguishes workers of other runs */
    int listen_fd;            /* this worker's own, bound to its address */
} ls_roster;

typedef struct ls_join {
    int rank, size;
    const char *host; /* of worker 0; a name or an address */
    /* Worker 0 listens at the first free one of the ports [port, port + nports); the others try all
     * of them. With nports above 1 a neighbour may be another group's worker 0: `meeting` (0 to
     * 65535) is the same for workers of one group, and differs between the groups of a host. */
    int port, nports, meeting;
    int inherited_fd;  /* worker 0's listening socket, made by the launcher; -1: none */
    int shared_fd;     /* the launcher's memory (net/local/commons.h), which says who has ended
                        * without joining; 0: none */
    const ls_key *key; /* NULL: plain text */
    double timeout_s;  /* for all to join; < 0: none */
    bool listens;      /* worker 0 listens already: who can't connect soon fails (unreached.h) */
} ls_join;

/* Collective. A wait that takes long is logged (base/waiting.h). LS_ETIMEOUT: the message names the
 * workers that did not come. LS_EPEER: worker 0 can't be reached, or refuses, or a worker has ended
 * without joining; the message says why. */
ls_status ls_join_run(const ls_join *, ls_roster *r_p, ls_error *);
void ls_roster_free(ls_roster *);

/* Equal for processes that can share memory and see each other in /proc: one boot of one kernel,
 * and one namespace of processes, which containers have of their own. Never 0. */
uint64_t ls_host_number(void);

#endif
