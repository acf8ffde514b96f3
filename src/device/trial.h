/* trial.h - what the devices of a host can do, tried before its workers start: how much of their
 * memory is free, and whether each reads the memory of all others.
 *
 * Drivers say of some GPUs that they can read each other, and then give other bytes than were
 * written, without an error; so bytes are compared.
 */
#ifndef LS_DEVICE_TRIAL_H
#define LS_DEVICE_TRIAL_H

#include <stdbool.h>

#include "device/device.h"

typedef struct ls_device_trial {
    int n;                     /* devices that opened */
    ls_device_room room;       /* of the one with the least that is free; 0: not known */
    char device[32], name[96]; /* that one: "cuda:1", and for people */
    bool links;                /* if asked for: each reads all others */
    char why[512];             /* if not */
} ls_device_trial;

/* The devices that so many workers of this host would have, by their name (ls_device_open()). Each
 * is opened in a process of its own. Must not run beside other threads. */
void ls_device_try(const char *name, int nworkers, bool links, ls_device_trial *);

#endif
