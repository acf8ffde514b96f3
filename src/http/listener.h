/* listener.h - the socket at which a server listens. */
#ifndef LS_HTTP_LISTENER_H
#define LS_HTTP_LISTENER_H

#include "base/error.h"

typedef struct ls_listener {
    int fd;
    int port; /* the system's choice, if 0 was asked for */
} ls_listener;

/* Listens at an address of this host, by number or by name. LS_EINVAL: it is none. LS_EIO: the port
 * is in use, or is not allowed. The caller closes l_p->fd. */
ls_status ls_listener_open(const char *address, int port, ls_listener *l_p, ls_error *);

#endif
