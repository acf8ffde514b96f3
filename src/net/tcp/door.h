/* door.h - where a worker listens for the others: at the configured address only.
 *
 *     LOCKSTEP_LISTEN=ADDRESS  at this address of its host, of a name's the first that it has;
 *                              0.0.0.0 and :: mean all of them
 *     worker 0                 else at the address that all others know
 *     the others               else at the address from which they reach worker 0
 *
 * The supervisor of a host with --listen sets LOCKSTEP_LISTEN for its workers.
 */
#ifndef LS_NET_TCP_DOOR_H
#define LS_NET_TCP_DOOR_H

#include "net/address.h"

/* LOCKSTEP_LISTEN's address, with port 0; ss_family AF_UNSPEC: it is not set. LS_EINVAL: it can't
 * be looked up. */
ls_status ls_door_configured(struct sockaddr_storage *a_p, ls_error *);

/* Worker 0's socket, at the first of nports ports, from `port` on, that no other socket uses. If
 * `host` is not an address of this host (but a forwarded one), is a name that means the loopback
 * here and may mean something else elsewhere, or one of several addresses of this host, of which
 * others may reach any, the socket listens at all addresses, and a log line says so. */
ls_status ls_door_first(const char *host, int port, int nports, int *fd_p, ls_error *);

/* The socket of a worker that has reached worker 0 through the socket `reached`; any port. */
ls_status ls_door_other(int reached, int *fd_p, ls_error *);

#endif
