/* shared_net.h - messages between workers that share memory: the transports "thread" and "shm".
 *
 * A message that the receiver can read where it lies is copied once, by the receiver. Other
 * messages go through the sender's arena, in parts. Short ones travel inside the note that
 * announces them.
 */
#ifndef LS_NET_LOCAL_SHARED_NET_H
#define LS_NET_LOCAL_SHARED_NET_H

#include "net/local/commons.h"
#include "net/net.h"

/* The commons must outlive it. patience: how its polls wait. */
ls_net *ls_shared_net_open(ls_commons *, const ls_patience *);

#endif
