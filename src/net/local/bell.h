/* bell.h - how a worker waits until another has done something, in memory that they share.
 *
 * Any worker rings; the owner checks what it waits for, and sleeps if it isn't there yet:
 *
 *     ls_bell_wait(&bell, ready, arg, &patience)
 *
 * A wait spins for a while (if each worker has a core), then yields its core between two looks,
 * then sleeps in the kernel (futex) until the bell is rung. How long it spins and yields also
 * depends on how the thread's latest waits went: bell.c adapts to other processes on the same
 * cores.
 */
#ifndef LS_NET_LOCAL_BELL_H
#define LS_NET_LOCAL_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ls_bell {
    _Alignas(64) atomic_uint rung;
    atomic_uint sleeping;
} ls_bell;

/* How a worker waits; see ls_patience_for(). */
typedef struct ls_patience {
    int looks;  /* with nothing in between */
    int yields; /* looks with a sched_yield() before each */
} ls_patience;

/* For `workers` that share `cores` cores, by the policy of base/wait_policy.h. */
ls_patience ls_patience_for(int workers, int cores);

/* To be called after storing what the owner waits for. Costs a fence and a load if it is awake. */
void ls_bell_ring(ls_bell *);

/* Until ready(arg) or timeout_ns (< 0: for ever) has passed; returns the last ready(arg). Only the
 * bell's owner. */
bool ls_bell_wait(ls_bell *, bool (*ready)(void *), void *arg, const ls_patience *,
                  int64_t timeout_ns);

#endif
