/* signal.h - a counter in shared memory that workers wait for.
 *
 * One worker posts rising values; any number wait for a value. A wait spins briefly where each
 * worker has a core, then sleeps in the kernel (futex), so that more workers than cores still do
 * well.
 */
#ifndef LS_NET_SIGNAL_H
#define LS_NET_SIGNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_signal {
    _Alignas(64) atomic_uint value;
    atomic_uint sleepers;
} ls_signal;

/* How a worker waits; set up once. */
typedef struct ls_waiter {
    const atomic_int *aborted; /* ends all waits when it is not 0 */
    int spins;                 /* looks before sleeping; 0 where cores are short */
    int64_t timeout_ns;        /* of one wait; -1 for ever */
} ls_waiter;

void ls_signal_post(ls_signal *, unsigned value);

/* Until the value is `want` or later (values wrap). LS_OK, LS_EABORT, LS_ETIMEOUT; no message. */
ls_status ls_signal_wait(ls_signal *, unsigned want, const ls_waiter *);

/* Spins that pay when `busy` threads share `cores` cores. */
int ls_waiter_spins(int busy, int cores);

#endif
