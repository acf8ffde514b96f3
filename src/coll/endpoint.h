/* endpoint.h - one worker's end: the transport, the shared memory and the kernels that all its
 * groups use, and which numbers are taken by groups.
 *
 * Freed with the last group that uses it. Several threads may have groups on one endpoint: `lock`
 * guards the transport, the flights in it, and the arena; `groups_lock` the list of groups. (A
 * group has a lock of its own, for its shared calls: request.h.)
 */
#ifndef LS_COLL_ENDPOINT_H
#define LS_COLL_ENDPOINT_H

#include <pthread.h>

#include "coll/link.h"
#include "lockstep/group.h"
#include "net/local/commons.h"
#include "net/net.h"
#include "tensor/kernels.h"

typedef struct ls_endpoint {
    ls_net *net;      /* NULL: alone */
    ls_net *met_over; /* NULL, or the transport by which workers that now share memory found each
                       * other */
    struct ls_watch *watch; /* NULL, or the thread that answers for this worker where the transport
                             * has none: `net` knows it */
    ls_commons *commons;    /* NULL: none. Its ranks are places in `local` */
    int rank, size;         /* of all workers started together */
    uint32_t forks;         /* ls_forks() of the process that opened it */
    int *hosts;             /* [size] a number for each worker's host */
    int *local;             /* [size] its rank in `commons`, or -1 */
    ls_patience patience;
    ls_link link;    /* of `net`; the same at all workers */
    bool link_given; /* `link` is from worker 0's file */
    const ls_kernels *k;
    pthread_mutex_t lock;
    uint64_t taken;            /* numbers of groups: bit i, LS_COMMONS_GROUPS of them */
    atomic_int users;          /* groups */
    struct ls_request *flying; /* flights and messages, of all groups */
    atomic_int nflying;        /* their number, which is read without the lock */
    pthread_mutex_t groups_lock;
    struct ls_group *groups; /* all that use it, linked by `sibling` */
} ls_endpoint;

/* Opens the endpoint that the environment describes: started by `lockstep run` or another launcher,
 * or alone. */
ls_status ls_endpoint_open(const ls_group_options *, ls_endpoint **p_p, ls_error *);
/* One for each thread. */
ls_status ls_endpoint_open_threads(int n, const ls_group_options *, ls_endpoint **ends, ls_error *);
void ls_endpoint_close(ls_endpoint *);

#endif
