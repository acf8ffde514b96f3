/* journal.c - see journal.h.
 *
 * Stores only have to keep the order of the program: whatever a killed process has stored stays in
 * memory, and the kernel reports its death after the last store.
 */
#include "optim/journal.h"

#include <string.h>

/* Copies the streams side by side: the processor then prefetches each of them, which it does not if
 * they are copied one after the other (measured: half the time). */
typedef float quad __attribute__((vector_size(16), may_alias));

static inline void copy_streams(ls_journal_saved *k, const ls_flat *f, size_t first, int n) {
    for (size_t i = 0; i < LS_BLOCK / 4; i++)
        for (int s = 0; s < n; s++)
            ((quad *)k->of[s])[i] = ((const quad *)(const void *)(f->of[s] + first))[i];
}

/* Each number of streams has a loop of its own, which the compiler unrolls. */
static void save(ls_journal_saved *k, const ls_flat *f, size_t first) {
    _Static_assert(LS_FLAT_CHANGED == 6, "a case for each number of streams");
    switch (f->n) {
    case 1: copy_streams(k, f, first, 1); break;
    case 2: copy_streams(k, f, first, 2); break;
    case 3: copy_streams(k, f, first, 3); break;
    case 4: copy_streams(k, f, first, 4); break;
    case 5: copy_streams(k, f, first, 5); break;
    default: copy_streams(k, f, first, 6); break;
    }
}

void ls_journal_begin(const ls_journal *j, int thread, size_t first, const ls_flat *f) {
    ls_journal_saved *k = &j->saved[thread];
    size_t block = first / LS_BLOCK;
    unsigned steps = atomic_load_explicit(&j->steps[block], memory_order_relaxed);
    atomic_store_explicit(&k->what, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    save(k, f, first);
    atomic_store_explicit(&k->what, (unsigned long long)(block + 1) << 32 | steps,
                          memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

void ls_journal_end(const ls_journal *j, size_t first, uint32_t steps) {
    atomic_store_explicit(&j->steps[first / LS_BLOCK], steps, memory_order_release);
}

void ls_journal_set(const ls_journal *j, size_t first, size_t end, uint32_t steps) {
    for (; first < end; first += LS_BLOCK) ls_journal_end(j, first, steps);
}

/* A saved block is restored unless the block has completed its step. */
void ls_journal_repair(const ls_journal *j, const ls_flat *f) {
    for (int i = 0; i < j->nthreads; i++) {
        ls_journal_saved *k = &j->saved[i];
        unsigned long long what = atomic_load(&k->what);
        size_t first = (size_t)((what >> 32) - 1) * LS_BLOCK;
        if (!what || !ls_journal_has(j, first, (uint32_t)what)) continue;
        for (int s = 0; s < f->n && s < LS_FLAT_CHANGED; s++)
            memcpy(f->of[s] + first, k->of[s], sizeof k->of[s]);
    }
}
