/* loader.h - a worker's samples of each step, made ready by a thread while the step before runs.
 *
 * A sample is T + 1 consecutive tokens: sample i of the file begins at token i T. Two batches are
 * kept: the one in use and the next.
 */
#ifndef LS_DATA_LOADER_H
#define LS_DATA_LOADER_H

#include <stddef.h>

#include "base/error.h"
#include "data/order.h"

typedef struct ls_loader ls_loader;

typedef struct ls_loader_config {
    const uint32_t *tokens; /* [nsamples * T + 1], outlives the loader */
    uint64_t nsamples, seed, batch;
    int64_t T;
    int V, a, b; /* this worker runs virtual workers [a, b) of V */
} ls_loader_config;

/* Starts at `step`. */
ls_status ls_loader_create(const ls_loader_config *, uint64_t step, ls_loader **l_p, ls_error *);
void ls_loader_free(ls_loader *); /* NULL is fine */

/* Waits for the next step's samples. *tokens_p: [end - first][T + 1] of the batch's samples
 * [*first_p, *end_p), valid until the next call. */
void ls_loader_next(ls_loader *, ls_batch *batch_p, uint64_t *first_p, uint64_t *end_p,
                    const uint32_t **tokens_p);

/* Bytes of token buffers. */
size_t ls_loader_nbytes(const ls_loader_config *);

/* Copies sample i: out [T + 1]. */
void ls_sample_copy(const uint32_t *tokens, int64_t T, uint64_t i, uint32_t *out);

#endif
