/* reach.h - tries whether two hosts reach each other at ports of the system's choice, as their
 * workers have to: a socket that accepts connections and closes them, and attempts to connect to
 * such sockets of other hosts. Nothing blocks. Nothing is sent, so anyone may connect.
 */
#ifndef LS_CLUSTER_REACH_H
#define LS_CLUSTER_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls_reach ls_reach;

/* Listens at a port of this address ("": all of this host). Without a socket nothing can be tried,
 * and others don't try to reach this host. Forked processes have none of its descriptors. */
ls_reach *ls_reach_open(const char *host);
void ls_reach_close(ls_reach *); /* NULL is fine */

/* The address at which it listens, e.g. "10.0.0.2:41712", or "[::]:41712" for all addresses of this
 * host; "": it does not. */
void ls_reach_place(const ls_reach *, char *text, size_t nbytes);

/* Tries to connect to a numeric address; of too many at once, the oldest one fails. */
void ls_reach_try(ls_reach *, int32_t number, const char *address);
/* Accepts who has come. True: an attempt has ended. */
bool ls_reach_next(ls_reach *, int32_t *number_p, bool *reached_p);

#endif
