/* journal.h - how far the optimizer's state is, so that a worker may be killed at any instruction.
 *
 * Of each block of LS_BLOCK elements the journal says how many steps it has had. An update changes
 * one block at a time: it keeps what the block was, changes it, then says that the block is one
 * step further. Whoever comes after a worker that was killed puts back what was being changed
 * (ls_journal_repair) and does the update again: blocks that have had it are passed over.
 *
 * The memory is the caller's and outlives the worker. All zero: nothing has had a step, nothing is
 * being changed.
 */
#ifndef LS_OPTIM_JOURNAL_H
#define LS_OPTIM_JOURNAL_H

#include <stdatomic.h>

#include "model/gpt.h"

/* A block as it was, of one thread of one worker. */
typedef struct ls_journal_saved {
    _Alignas(64) atomic_ullong what; /* 1 + block, and in the lower half its steps; 0: nothing */
    _Alignas(64) float master[LS_BLOCK], m[LS_BLOCK], v[LS_BLOCK];
} ls_journal_saved;

typedef struct ls_journal {
    atomic_uint *steps;     /* [nfloats / LS_BLOCK] that each block has had */
    ls_journal_saved *kept; /* [nthreads] */
    int nthreads;
} ls_journal;

/* The flat buffers that it is about: [nfloats], aligned to 16 bytes. */
typedef struct ls_journal_state {
    float *master, *m, *v;
} ls_journal_state;

/* Has elements' block had `steps` steps? first: of an element of it. */
static inline bool ls_journal_has(const ls_journal *j, size_t first, uint32_t steps) {
    return atomic_load_explicit(&j->steps[first / LS_BLOCK], memory_order_relaxed) == steps;
}

/* Before a thread changes the block from element `first` on, and after. */
void ls_journal_begin(const ls_journal *, int thread, size_t first, const ls_journal_state *);
void ls_journal_end(const ls_journal *, size_t first, uint32_t steps);

/* Elements [first, end), multiples of LS_BLOCK, have had `steps` steps, whatever was before. */
void ls_journal_set(const ls_journal *, size_t first, size_t end, uint32_t steps);

/* Its worker is dead: blocks that it was changing become what they were. Can be done again. */
void ls_journal_repair(const ls_journal *, const ls_journal_state *);

#endif
