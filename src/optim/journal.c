/* journal.c - see journal.h.
 *
 * Stores only have to keep the order of the program: whatever a killed process has stored stays in
 * memory, and the kernel reports its death after the last store.
 */
#include "optim/journal.h"

#include <string.h>

/* Copies the three streams side by side: the processor then prefetches each of them, which it does
 * not if they are copied one after the other (measured: half the time). */
typedef float quad __attribute__((vector_size(16), may_alias));

static void save(ls_journal_saved *k, const ls_journal_state *s, size_t first) {
    const quad *master = (const quad *)(s->master + first), *m = (const quad *)(s->m + first);
    const quad *v = (const quad *)(s->v + first);
    for (size_t i = 0; i < LS_BLOCK / 4; i++) {
        ((quad *)k->master)[i] = master[i];
        ((quad *)k->m)[i] = m[i];
        ((quad *)k->v)[i] = v[i];
    }
}

void ls_journal_begin(const ls_journal *j, int thread, size_t first, const ls_journal_state *s) {
    ls_journal_saved *k = &j->saved[thread];
    size_t block = first / LS_BLOCK;
    unsigned steps = atomic_load_explicit(&j->steps[block], memory_order_relaxed);
    atomic_store_explicit(&k->what, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    save(k, s, first);
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
void ls_journal_repair(const ls_journal *j, const ls_journal_state *s) {
    for (int i = 0; i < j->nthreads; i++) {
        ls_journal_saved *k = &j->saved[i];
        unsigned long long what = atomic_load(&k->what);
        size_t first = (size_t)((what >> 32) - 1) * LS_BLOCK;
        if (!what || !ls_journal_has(j, first, (uint32_t)what)) continue;
        memcpy(s->master + first, k->master, sizeof k->master);
        memcpy(s->m + first, k->m, sizeof k->m);
        memcpy(s->v + first, k->v, sizeof k->v);
    }
}
