/* unreached.h - the worker that this process could not reach, by the network's fault.
 *
 * A worker process that ends since it has lost another one tells its supervisor so, which compares
 * what all hosts report (cluster/partition.h). Transports note what they find; the first note
 * counts.
 */
#ifndef LS_NET_UNREACHED_H
#define LS_NET_UNREACHED_H

#include <stdbool.h>

/* Does this errno mean that no packet, or no answer, came through? A process that has died answers
 * in another way; but nobody listens at its port, so ECONNREFUSED can mean either. */
bool ls_unreached_is_network(int why);
void ls_unreached_note(int worker);
/* 1 + the worker; 0: none. */
int ls_unreached_noted(void);

#endif
