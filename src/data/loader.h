/* loader.h - a worker's samples of each step, prepared by threads while the previous step runs.
 *
 * All samples of a data set have the same size. Two batches are in memory: the one in use and the
 * next.
 */
#ifndef LS_DATA_LOADER_H
#define LS_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "data/batches.h"

typedef struct ls_loader ls_loader;

/* Reads a sample of a data set. Any threads may call it at the same time, in any order. */
typedef ls_status ls_read_sample(const void *data, const ls_draw *, size_t nbytes, void *sample,
                                 ls_error *);

typedef struct ls_loader_config {
    ls_read_sample *read;
    const void *data; /* for read(); must outlive the loader */
    int threads;      /* that read samples; 0 means 1 */
    size_t sample_nbytes;
    ls_order order;
    uint64_t batch;     /* the largest */
    ls_batches batches; /* of steps; n 0: each step has `batch` samples */
    bool
        waits; /* reads nothing before the first ls_loader_next(): what read() needs is not there */
    int V, a, b, step; /* this worker runs virtual workers a, a + step, ... below b, of V; step 0
                        * means 1 */
} ls_loader_config;

/* The first batch is that of `step`. */
ls_status ls_loader_create(const ls_loader_config *, uint64_t step, ls_loader **l_p, ls_error *);
void ls_loader_free(ls_loader *); /* NULL is allowed */

/* Continues at `step` with the virtual workers [a, b), at most as many as before. Invalidates the
 * samples that were handed out. */
void ls_loader_seek(ls_loader *, int a, int b, uint64_t step);

/* Waits for the next step's samples. *samples_p: [..][sample_nbytes], those of the first virtual
 * worker, then those of the next, valid until the next call. Errors: those of read(), for the first
 * sample that can't be read, whatever the number of threads. */
ls_status ls_loader_next(ls_loader *, ls_batch *batch_p, const void **samples_p, ls_error *);

/* How long the latest ls_loader_next() waited, for the thread that calls it; 0: the samples were
 * ready. */
int64_t ls_loader_waited_ns(const ls_loader *);

/* The index of virtual worker v's first sample among those that ls_loader_next() returns, in a
 * batch of `count` samples; for v = b, the number of those samples. */
uint64_t ls_loader_place(const ls_loader_config *, uint64_t count, int v);

/* The samples of a step. */
ls_batch ls_loader_batch(const ls_loader_config *, uint64_t step);

/* Bytes of the two buffers of samples. */
size_t ls_loader_nbytes(const ls_loader_config *);

#endif
