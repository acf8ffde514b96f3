/* gradient_board.c - see gradient_board.h. */
#include "async/gradient_board.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static size_t nbytes_of(int nworkers) {
    return sizeof(ls_async_board) + (size_t)nworkers * sizeof(ls_async_slot);
}

ls_status ls_async_board_open(int nlocal, int nguests, int nshards, const ls_model *m,
                              ls_async_board **b_p, ls_error *e) {
    int nworkers = nlocal + nguests;
    ls_async_board *b =
        mmap(NULL, nbytes_of(nworkers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for %d workers: %s", nworkers, strerror(errno));
    b->nworkers = nworkers;
    b->nlocal = nlocal;
    b->nshards = nshards;
    for (int i = nlocal; i < nworkers; i++) atomic_store(&b->slots[i].state, LS_ASYNC_AWAY);
    ls_status s = ls_async_shards_begin(b->shards, nshards, m, e);
    if (s == LS_OK)
        *b_p = b;
    else
        ls_async_board_close(b);
    return s;
}

void ls_async_board_close(ls_async_board *b) {
    if (b) munmap(b, nbytes_of(b->nworkers));
}

bool ls_async_is_applied(const ls_async_board *b, const ls_async_slot *slot) {
    if (atomic_load(&slot->state) != LS_ASYNC_PUSHED) return false;
    for (int i = 0; i < b->nshards; i++)
        if (!atomic_load(&slot->applied[i])) return false;
    return true;
}

bool ls_async_is_complete(const ls_async_board *b, const ls_async_slot *slot) {
    if (!ls_async_is_applied(b, slot)) return false;
    return atomic_load(&b->copy) != LS_ASYNC_COPY_PRESENT || atomic_load(&slot->copied);
}
