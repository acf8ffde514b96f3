/* probe.h - runs one kind of work of one size in the calling thread, to be timed.
 *
 * Operands are as in training: activations are in the same memory at each run; weights and their
 * gradients are at another place in each run, as they are from layer to layer.
 */
#ifndef LS_PERF_PROBE_H
#define LS_PERF_PROBE_H

#include "model/work.h"
#include "tensor/compute.h"

typedef struct ls_probe {
    ls_work_kind kind;
    int64_t M, N, K; /* of a product */
    int64_t n;       /* elements of a pass; for softmax, keys: it runs on a block of queries */
} ls_probe;

/* The memory and state of a thread. */
typedef struct ls_probe_bench {
    ls_compute compute; /* of one thread */
    float *memory;
    uint16_t *weights_bf16; /* of successive runs, as in `memory` */
    uint16_t *first_bf16;   /* the first operand of products in bf16 */
    char *pages;
    int64_t turn;
} ls_probe_bench;

/* The update that is timed. */
extern const ls_update_scalars ls_probe_adamw;

/* The number of operations or elements of a probe. */
double ls_probe_units(const ls_probe *);

ls_status ls_probe_open(ls_probe_bench *, ls_error *);
void ls_probe_close(ls_probe_bench *);
void ls_probe_run(ls_probe_bench *, const ls_probe *);

#endif
