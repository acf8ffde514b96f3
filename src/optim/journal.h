/* journal.h - records how far the optimizer's state is updated, so that a worker may be killed at
 * any instruction.
 *
 * For each block of LS_BLOCK elements the journal has the number of steps that it has had. An
 * update changes one block at a time: it saves the block, changes it, then records that it has had
 * the step. The successor of a killed worker restores blocks that were being changed
 * (ls_journal_repair) and repeats the update, which skips blocks that have had it.
 *
 * The memory belongs to the caller and outlives the worker. All zeros mean: no block has had a step
 * or is being changed.
 */
#ifndef LS_OPTIM_JOURNAL_H
#define LS_OPTIM_JOURNAL_H

#include <stdatomic.h>

#include "optim/flat.h"

/* The block that a thread of a worker is changing, as it was before. */
typedef struct ls_journal_saved {
    _Alignas(64) atomic_ullong what; /* 1 + block, in the lower half its steps; 0: none */
    _Alignas(64) float of[LS_FLAT_CHANGED][LS_BLOCK];
} ls_journal_saved;

typedef struct ls_journal {
    atomic_uint *steps;      /* [nfloats / LS_BLOCK] steps that each block has had */
    ls_journal_saved *saved; /* [nthreads] */
    int nthreads;
} ls_journal;

/* True if the block of element `first` has had `steps` steps. */
static inline bool ls_journal_has(const ls_journal *j, size_t first, uint32_t steps) {
    return atomic_load_explicit(&j->steps[first / LS_BLOCK], memory_order_relaxed) == steps;
}

/* Called before and after a thread changes the block from element `first` on. */
void ls_journal_begin(const ls_journal *, int thread, size_t first, const ls_flat *);
void ls_journal_end(const ls_journal *, size_t first, uint32_t steps);

/* Records that elements [first, end), multiples of LS_BLOCK, have had `steps` steps. */
void ls_journal_set(const ls_journal *, size_t first, size_t end, uint32_t steps);

/* After the death of its worker: restores the blocks that were being changed. May be repeated. */
void ls_journal_repair(const ls_journal *, const ls_flat *);

#endif
