/* links.h - the connections between supervisors: what views.h says goes over them.
 *
 * The host that leads listens; the others keep a connection to it, and try again when it is gone.
 * Each connection begins with the join key (net/secure.h) and a frame that says who calls. Nothing
 * blocks but looking up a name.
 */
#ifndef LS_TRAIN_LINKS_H
#define LS_TRAIN_LINKS_H

#include <poll.h>

#include "train/views.h"

typedef struct ls_links ls_links;

/* Listens at "host:port" or "[ipv6]:port"; an empty host, as in ":7000", means all of this host's
 * addresses; NULL: nowhere. The key is the environment's (net/key.h). LS_EINVAL: no address, no
 * key. LS_EIO: can't listen. */
ls_status ls_links_open(const char *listen, uint64_t host, ls_links **l_p, ls_error *);
void ls_links_close(ls_links *); /* NULL is fine */

/* Keeps a connection to the leader at this address; NULL: to nobody. */
ls_status ls_links_call(ls_links *, const char *address, ls_error *);

typedef struct ls_link_event {
    enum { LS_LINK_UP, LS_LINK_LOST, LS_LINK_WORDS } what; /* UP: to the leader */
    int peer; /* LS_TO_LEADER, or from 1 a host that has called */
    ls_saying words;
} ls_link_event;

/* What has happened since; false: nothing more. */
bool ls_links_next(ls_links *, ls_link_event *);

/* What can't be said is lost, as the peer is: LOST follows. */
void ls_links_say(ls_links *, int peer, const ls_saying *);
void ls_links_drop(ls_links *, int peer); /* without LOST */

/* What to poll for, at most `most` of them. Returns how many. */
int ls_links_fds(const ls_links *, struct pollfd *fds, int most);

/* An address at which the hosts that have called can reach a port of this one: "ip:port", or
 * "[ip]:port". */
void ls_links_address(const ls_links *, int port, char *text, size_t nbytes);
int ls_links_family(const ls_links *); /* of it: AF_INET or AF_INET6 */

#endif
