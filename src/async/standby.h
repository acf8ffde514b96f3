/* standby.h - a process of a host that joins and listens: it detects that the first host is lost,
 * and that this host may take its place.
 *
 * The first host has the lock of the run directory (storage/lock.h). If its connection is lost and
 * does not come back for a few heartbeats, and the lock is free, the host is gone: a host that is
 * paused, or that can't be reached only from here, still has the lock. With sync.copies 2, a
 * standby without a copy of the state waits twice as long, so that one with a copy comes first.
 */
#ifndef LS_ASYNC_STANDBY_H
#define LS_ASYNC_STANDBY_H

#include <stdatomic.h>

#include "async/entry.h"
#include "async/shard_copy.h"

typedef struct ls_standby_config {
    ls_entry entry; /* not open yet; of its admission, the settings are set */
    const char *run;
    /* With sync.copies 2, called once there is a first host with the same settings: opens the copy
     * that this one is to have; the caller closes it. Else NULL. */
    ls_status (*begin)(void *arg, ls_shard_copy **copy_p, ls_error *);
    /* Appends the run and its data, as far as this host has them (net/tcp/admission.h). */
    ls_status (*identity)(void *arg, ls_buf *out, ls_error *);
    void *arg;
    /* Whether one of this host had a connection once: in memory that outlives the process, so that
     * one that takes the place of another is not taken for a host that came before the first
     * one. */
    atomic_bool *came;
    double silence_s;  /* without a sign of life for longer, the first host is lost */
    double patience_s; /* without a connection for longer, it gives up */
    double heartbeat_s;
} ls_standby_config;

/* Watches until the run is over (*lost_p: false), or until the first host is lost. LS_EPEER: it
 * can't be reached, but has the lock. LS_EINVAL: it has other settings. */
ls_status ls_standby_watch(ls_standby_config *, bool *lost_p, ls_error *);

#endif
