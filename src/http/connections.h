/* connections.h - the open connections of a server, and which clients have gone away.
 *
 * libmicrohttpd uses edge-triggered events. If a client sends a part of a request and closes its
 * connection before the part is read, both are one event, and the library may wait for the rest
 * until its time limit (seen in 0.9.75). Many of these would fill the server.
 */
#ifndef LS_HTTP_CONNECTIONS_H
#define LS_HTTP_CONNECTIONS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls_connection {
    int fd;
    bool asks;      /* the header of a request has come, whose answer is not yet complete */
    bool uploads;   /* that request has a body, which is read before it is answered */
    bool complete;  /* all of that request has come */
    bool answered;  /* there is an answer, which is being sent */
    bool ended;     /* it has been shut down */
    uint64_t since; /* the later a connection began to wait for a request, the larger */
    size_t place;   /* in the list */
} ls_connection;

typedef struct ls_connections {
    ls_connection **list; /* [n] */
    size_t n;
    struct pollfd *polls; /* [n] */
    uint64_t now;         /* counts beginnings of waits */
} ls_connections;

ls_connection *ls_connections_add(ls_connections *, int fd);
void ls_connections_remove(ls_connections *, ls_connection *);
/* The connection's request is answered, or given up. */
void ls_connections_waits(ls_connections *, ls_connection *);
/* Shuts the connections down whose clients send no more, where nothing is left to be read and no
 * request is complete: the library then closes them. */
void ls_connections_end_gone(ls_connections *);
/* Shuts down the n connections that have waited longest for the header of a request, then for the
 * rest of its body, so that others find room. */
void ls_connections_end_oldest(ls_connections *, int n);
void ls_connections_free(ls_connections *);

#endif
