/* tcp.h - messages over TCP, encrypted where there is a join key.
 *
 * A connection carries messages one way, from the worker that made it; it is made when the first
 * message is sent, or the first one is waited for. Short messages are sent at once. Long ones are
 * sent when the receiver has asked for them, and go straight into its buffer. A peer's death shows
 * as the end of its connection.
 */
#ifndef LS_NET_TCP_TCP_H
#define LS_NET_TCP_TCP_H

#include "net/local/bell.h"
#include "net/net.h"
#include "net/tcp/join.h"

/* Takes the roster's listening socket and a copy of the rest. key NULL: plain text. */
ls_status ls_tcp_open(const ls_roster *, int rank, const ls_key *, const ls_patience *,
                      ls_net **net_p, ls_error *);

#endif
