/* device_room.h - what is known of a run's devices before its workers start: do they read each
 * other's memory, and is there room for the plan? */
#ifndef LS_TRAIN_DEVICE_ROOM_H
#define LS_TRAIN_DEVICE_ROOM_H

#include "config/config.h"
#include "device/trial.h"
#include "plan/plan.h"

/* Tries the devices of workers that this process will start, all on this host. Where they can't
 * read each other, parallel.device_link auto becomes host, and a line says so; LS_EINVAL: it is
 * peers. *t_p is for ls_device_room_fits(); {0} without a device. */
ls_status ls_device_room_try(ls_config *c, int nworkers, ls_device_trial *t_p, ls_error *);

/* LS_ENOMEM: the plan needs more of a device's memory than is free. What is not known fits. */
ls_status ls_device_room_fits(const ls_config *, const ls_plan *, const ls_device_trial *,
                              ls_error *);

#endif
