/* worker_device.h - which device a worker has, of those of its host (parallel.device). */
#ifndef LS_TRAIN_WORKER_DEVICE_H
#define LS_TRAIN_WORKER_DEVICE_H

#include "config/config.h"
#include "device/device.h"
#include "lockstep/group.h"

typedef struct ls_worker_device {
    char name[64]; /* for ls_device_open(): "cuda:1" */
    uint64_t id;   /* ls_device_seen.id; 0: it has none yet, or one that nobody else can have */
    int sharing;   /* workers that have this one, itself among them */
} ls_worker_device;

/* Replaces `auto` in the config by the device that this host has (device/auto.h), or by "", and
 * logs what was chosen, but of a launcher's workers only the first does. */
void ls_worker_device_resolve(ls_config *);
/* The workers that this host can have, each with a device of its own (1, if the device has a
 * number). 0: as many as it has cores for. Asks the driver once. */
int ls_worker_device_count(const ls_config *);

/* Collective, of all workers, each with the config's name of a device. A name without a number
 * means that each worker has one of its own: the first that no worker before it on this host has. A
 * worker that has one retains it. LS_EINVAL, on all: a host has fewer devices than workers. */
ls_status ls_worker_device_choose(ls_group *, const char *name, ls_worker_device *, ls_error *);

/* ---- for tests ---- */

/* What a worker tells the others. */
typedef struct ls_device_claim {
    uint64_t machine;
    uint64_t taken; /* that it has, by its number or from before; 0: none */
    int64_t n;
    uint64_t ids[LS_DEVICE_LIST]; /* [n] that it could have; [0] is 0: as many as wanted */
} ls_device_claim;
/* Sets the `taken` of all of n workers. */
ls_status ls_device_claims_settle(ls_device_claim *, int n, const char *name, ls_error *);

#endif
