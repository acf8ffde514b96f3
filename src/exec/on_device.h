/* on_device.h - the memory of a worker's device, where layers run there, and its copies
 * (plan/copies.c).
 *
 * Parameters, states and gradients are where the world has them, in buffers of the same length;
 * samples and losses likewise. Layers and copies are queued; most copies from there are waited for
 * at once, and with them all that was queued before.
 */
#ifndef LS_EXEC_ON_DEVICE_H
#define LS_EXEC_ON_DEVICE_H

#include "plan/memory.h"
#include "tensor/compute.h"

typedef struct ls_on_device {
    ls_compute compute; /* the worker's, with its device; device NULL: the host runs the layers */
    char *arena, *work; /* as those of the executor */
    char *params, *state, *grads, *norms, *samples, *losses; /* as the world's and the loader's */
    char *sums, *incoming; /* sums over workers: those that wait, those of others (peers.c) */
    char *halves;          /* what goes between it and the host in 16 bits (ls_on_device_half()) */
    char *lent;            /* for evaluation; NULL: the arena is large enough */
    bool has_state;        /* parameters and states that outlive a step have been sent here */
    bool params_are_newer, states_are_newer; /* than the host's */
    bool has_other_params;                   /* an evaluation's, in place of the state's */
    ls_device_memory nbytes;                 /* of these */
    int64_t nbegun;                          /* copies so far that have events of their own */
    void *pinned[3];                         /* the host's memory; NULL: none */
} ls_on_device;

/* Where numbers in 16 bits lie on their way from or to memory in f32 of parameters, gradients or
 * activations; a place of its own for each. */
void *ls_on_device_half(const ls_on_device *, const char *p);

/* Opens the device (ls_device_open()). LS_ENOMEM: what does not fit. */
ls_status ls_on_device_open(ls_on_device *, const char *device, const ls_compute *host,
                            const ls_device_memory *, ls_error *);
void ls_on_device_close(ls_on_device *); /* of {0}, too */

/* Waits for all that is queued: layers, and copies both ways. Reports the first error. */
ls_status ls_on_device_await(const ls_on_device *, ls_error *); /* of {0}, too */

/* Waits for the copies that are queued; of {0}, too. */
ls_status ls_on_device_await_copies(const ls_on_device *, ls_error *);
/* Is the host's memory at p pinned? Its pages can't be dropped: the device would go on to read the
 * old ones. */
bool ls_on_device_pins(const ls_on_device *, const void *p);

/* Queues a copy, for which layers that are queued later wait. It does not wait for those before:
 * until other samples or parameters come, the losses are copied back, for which all layers are
 * waited for. */
void ls_on_device_send(const ls_on_device *, void *to, const void *from, size_t nbytes);
/* Queues a copy to where what was queued before may still compute, for which layers that are queued
 * later wait. Returns its event, for ls_device_await(): then `from` may be written anew. */
int ls_on_device_begin_give(ls_on_device *, void *to, const void *from, size_t nbytes);
/* The same, and waits. */
ls_status ls_on_device_give(ls_on_device *, void *to, const void *from, size_t nbytes, ls_error *);
/* Memory of nbytes, if the arena has less (lent). LS_ENOMEM: there is none. */
ls_status ls_on_device_need(ls_on_device *, size_t nbytes, ls_error *);
/* Pins memory of the host, if it can be, until the device is closed. */
void ls_on_device_pin(ls_on_device *, int i, void *p, size_t nbytes);
/* Queues a copy of what is queued to be computed, and returns its event, for ls_device_await().
 * What is copied must stay until then. */
int ls_on_device_begin_fetch(ls_on_device *, void *to, const void *from, size_t nbytes);
/* Copies, and waits. Reports the first error of what was queued before. */
ls_status ls_on_device_fetch(const ls_on_device *, void *to, const void *from, size_t nbytes,
                             ls_error *);

#endif
