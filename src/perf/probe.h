/* probe.h - one kind of work, of one size, done once more in the calling thread: to be timed.
 *
 * Operands are as in training: what a layer has just computed lies where it lay the last time;
 * weights and their gradients are each time at another place, as they are from layer to layer.
 */
#ifndef LS_PERF_PROBE_H
#define LS_PERF_PROBE_H

#include "model/work.h"
#include "tensor/compute.h"

typedef struct ls_probe {
    ls_work_kind kind;
    int64_t M, N, K; /* of a product */
    int64_t n;       /* elements of a pass; of softmax, keys: it is done for a block of queries */
} ls_probe;

/* What a thread needs. */
typedef struct ls_probe_bench {
    ls_compute compute; /* of one thread */
    float *memory;
    char *pages;
    int64_t turn;
} ls_probe_bench;

/* Operations or elements of a probe. */
double ls_probe_units(const ls_probe *);

ls_status ls_probe_open(ls_probe_bench *, ls_error *);
void ls_probe_close(ls_probe_bench *);
void ls_probe_run(ls_probe_bench *, const ls_probe *);

#endif
