/* address.h - TCP addresses, and sockets that listen at them or connect to them.
 *
 * Every socket made here is one of ours: see ls_socket_flags().
 */
#ifndef LS_NET_ADDRESS_H
#define LS_NET_ADDRESS_H

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

/* HOST:PORT, as users write it. */
typedef struct ls_address {
    char host[256]; /* without the brackets of "[::1]"; "": none was given */
    int port;
} ls_address;

/* LS_EINVAL: it is not HOST:PORT. HOST may be missing. */
ls_status ls_address_parse(const char *text, ls_address *a_p, ls_error *);
/* Returns NULL, and *list_p is for freeaddrinfo(); or the reason why it failed, and *list_p is not
 * set. flags: AI_PASSIVE, to listen there ("" is then every address of this host), or 0. */
const char *ls_address_look_up(const char *host, int port, int flags, struct addrinfo **list_p);
/* A numeric address and its port, without a look-up; false: it is a name. */
bool ls_address_numeric(const ls_address *, struct sockaddr_storage *a_p);
/* A socket that listens there: of several addresses, at the first that this host has. LS_EINVAL: it
 * can't be looked up. LS_EIO: it can't listen. */
ls_status ls_address_listen(const ls_address *, int *fd_p, ls_error *);
/* "10.0.0.2:7000" or "[::1]:7000" */
void ls_address_text(const struct sockaddr_storage *, char *text, size_t nbytes);

/* Non-blocking, closed on exec, no delay: every socket of ours. */
void ls_socket_flags(int fd);
/* Sets these flags, and has a dead peer noticed in about 15 s even if the network reports nothing:
 * for every socket of a group. */
void ls_socket_options(int fd);

/* A socket that listens at this address and port (0: any). LS_EIO, with errno: it can't listen. */
ls_status ls_socket_listen(const struct sockaddr_storage *, int *fd_p, ls_error *);
/* A socket that begins to connect; -1 with errno. */
int ls_socket_connect(const struct sockaddr *, socklen_t);
/* A socket that has connected to the first of `list` that answers, each within limit_ms; -1: none,
 * with errno of the last one, ETIMEDOUT if it did not answer. from: this host's address to connect
 * from; if it is AF_UNSPEC or stands for all addresses, the system chooses. */
int ls_socket_reach(const struct addrinfo *list, const struct sockaddr_storage *from, int limit_ms);
/* A group's socket that begins to connect; -1 with errno. */
int ls_socket_dial(const struct sockaddr_storage *);

/* Where a socket is bound, and the peer that it is connected to; false: there is none. */
bool ls_socket_own(int fd, struct sockaddr_storage *a_p);
bool ls_socket_peer(int fd, struct sockaddr_storage *a_p);
/* The port that it is bound to; 0: none. */
int ls_socket_port(int fd);

/* Ports don't count. */
bool ls_address_is_same(const struct sockaddr_storage *, const struct sockaddr_storage *);
/* 0.0.0.0, ::, or no address. */
bool ls_address_is_any(const struct sockaddr_storage *);
bool ls_address_is_loopback(const struct sockaddr_storage *);
int ls_address_port(const struct sockaddr_storage *);
void ls_address_set_port(struct sockaddr_storage *, int port);

#endif
