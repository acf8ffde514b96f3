/* device_nccl.h - bytes between devices `cuda` of any hosts, by NCCL. */
#ifndef LS_DEVICE_DEVICE_NCCL_H
#define LS_DEVICE_DEVICE_NCCL_H

#include "device/device.h"
#include "device/nccl.h"

typedef struct ls_device_nccl ls_device_nccl;

/* Either of the two pointers. */
typedef struct ls_device_message {
    int peer;
    const void *from; /* this device's memory, which is sent */
    void *to;         /* where what is received comes */
    size_t nbytes;
} ls_device_message;

/* One worker makes it, and gives it to all. LS_EINVAL: there is no NCCL. */
ls_status ls_device_nccl_id(ls_nccl_id *id_p, ls_error *);
/* Collective. LS_EINVAL: the device is not cuda. */
ls_status ls_device_nccl_open(ls_device *, const ls_nccl_id *, int rank, int n,
                              ls_device_nccl **x_p, ls_error *);
/* Whatever is still queued ends with an error; NULL is fine. */
void ls_device_nccl_close(ls_device_nccl *);

/* Queues messages on the stream that computes, which go at the same time; those between two workers
 * in their order. */
ls_status ls_device_nccl_exchange(ls_device_nccl *, const ls_device_message *, int n, ls_error *);

#endif
