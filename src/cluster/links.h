/* links.h - the connections between supervisors; they carry the messages of views.h.
 *
 * The leading host listens; the others keep a connection to it, and connect again when it is lost.
 * Each connection begins with the join key (net/tcp/secure.h) and a frame that names the caller.
 * Only looking up a name blocks.
 *
 * The leader answers with the settings that must match on all hosts; a host with other settings
 * disconnects.
 */
#ifndef LS_CLUSTER_LINKS_H
#define LS_CLUSTER_LINKS_H

#include <poll.h>
#include <sys/socket.h>

#include "cluster/views.h"

typedef struct ls_links ls_links;

/* Listens at "host:port" or "[ipv6]:port"; an empty host, as in ":7000", means all of this host's
 * addresses; NULL: nowhere. The key is the environment's (net/key.h). must_match:
 * settings that are the same on all hosts, lines of a name, a space, and a value,
 * LS_MUST_MATCH_NBYTES at most; not copied.
 * LS_EINVAL: no address, no key. LS_EIO: can't listen. */
enum { LS_MUST_MATCH_NBYTES = 4096 };
ls_status ls_links_open(const char *listen, uint64_t host, const char *must_match, ls_links **l_p,
                        ls_error *);
void ls_links_close(ls_links *); /* NULL is fine */

/* Keeps a connection to the leader at this address; NULL: to no host. */
ls_status ls_links_call(ls_links *, const char *address, ls_error *);
/* Why there is no connection to the leader; "": not known, or there is one. */
const char *ls_links_trouble(const ls_links *);

typedef struct ls_link_event {
    /* UP: to the leader. OTHER: no link, since settings of the leader differ, as ls_links_trouble()
     * says; it is called again. */
    enum { LS_LINK_UP, LS_LINK_OTHER, LS_LINK_LOST, LS_LINK_MESSAGE } what;
    int peer; /* LS_TO_LEADER, or from 1 a host that has called */
    ls_host_message message;
} ls_link_event;

/* The next event; false: there is none. */
bool ls_links_next(ls_links *, ls_link_event *);

/* If a message can't be sent, the peer is lost: LOST follows. */
void ls_links_send(ls_links *, int peer, const ls_host_message *);
void ls_links_drop(ls_links *, int peer); /* without LOST */

/* What to poll for, at most `most` of them. Returns how many. */
int ls_links_fds(const ls_links *, struct pollfd *fds, int most);

/* The address of this host at which those that have called can reach it; port 0. */
void ls_links_address(const ls_links *, struct sockaddr_storage *a_p);

#endif
