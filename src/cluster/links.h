/* links.h - the connections between supervisors; they carry the messages of views.h.
 *
 * The leading host listens; each other host keeps a connection to it, and connects again when that
 * is lost. A connection begins with the join key (net/tcp/secure.h) and a frame that names the
 * caller. Only the lookup of a name blocks.
 *
 * Both compare their settings, and which run and data they have (net/tcp/admission.h). A host that
 * does not match says so, and disconnects; what it says is logged.
 */
#ifndef LS_CLUSTER_LINKS_H
#define LS_CLUSTER_LINKS_H

#include <poll.h>
#include <sys/socket.h>

#include "cluster/views.h"
#include "net/tcp/admission.h"

typedef struct ls_links ls_links;

/* Listens at "host:port" or "[ipv6]:port"; an empty host, as in ":7000", means all addresses of
 * this host; NULL: does not listen. The key comes from the environment (net/join_key.h). The
 * admission is not copied. Forked processes have none of its descriptors. LS_EINVAL: not an
 * address, or no key. LS_EIO: can't listen. */
ls_status ls_links_open(const char *listen, uint64_t host, const ls_admission *, ls_links **l_p,
                        ls_error *);
void ls_links_close(ls_links *); /* NULL is fine */

/* Keeps a connection to the leader at this address; NULL: there is no leader. */
ls_status ls_links_call(ls_links *, const char *address, ls_error *);
/* Why there is no connection to the leader; "": not known, or there is a connection. */
const char *ls_links_trouble(const ls_links *);

typedef struct ls_link_event {
    /* UP: connected to the leader. OTHER: not connected, since this host does not match the leader,
     * as ls_links_trouble() says; the next attempt follows. */
    enum { LS_LINK_UP, LS_LINK_OTHER, LS_LINK_LOST, LS_LINK_MESSAGE } what;
    int peer; /* LS_TO_LEADER, or from 1 a host that has connected to this one */
    ls_host_message message;
} ls_link_event;

/* The next event; false: there is none. */
bool ls_links_next(ls_links *, ls_link_event *);

/* If a message can't be sent, the peer is lost: LOST follows. */
void ls_links_send(ls_links *, int peer, const ls_host_message *);
void ls_links_drop(ls_links *, int peer); /* without LOST */

/* The address of a host that is connected, or was the last one with this number: at most
 * LS_PEER_NAME bytes. */
void ls_links_name(const ls_links *, int peer, char *text);

/* Fills in what to poll for, at most `most` entries. Returns their number. */
int ls_links_fds(const ls_links *, struct pollfd *fds, int most);

/* The address at which hosts that have connected can reach this host; port 0. If they have reached
 * it at several, all of this host. */
void ls_links_address(const ls_links *, struct sockaddr_storage *a_p);
/* The address of this host, or of the leader, and that of this host in their connection. False:
 * there is none. */
bool ls_links_addresses(const ls_links *, int peer, struct sockaddr_storage *its_p,
                        struct sockaddr_storage *own_p);

#endif
