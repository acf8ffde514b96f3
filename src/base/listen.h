/* listen.h - sockets that listen. */
#ifndef LS_BASE_LISTEN_H
#define LS_BASE_LISTEN_H

#include <netdb.h>
#include <sys/socket.h>

/* A TCP socket that listens there, non-blocking and closed on exec; -1 with errno. */
int ls_listen(const struct sockaddr *, socklen_t);
/* The same for a name: at the first of its addresses that this host has. */
int ls_listen_first(const struct addrinfo *list);

#endif
