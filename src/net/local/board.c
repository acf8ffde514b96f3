/* board.c - see board.h. */
#include "net/local/board.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static size_t nbytes_of(int nworkers) {
    return sizeof(ls_board) + (size_t)nworkers * sizeof(ls_board_slot);
}

ls_status ls_board_open(int nworkers, ls_board **b_p, ls_error *e) {
    ls_board *b =
        mmap(NULL, nbytes_of(nworkers), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return ls_fail(e, LS_ENOMEM, "no memory for %d workers: %s", nworkers, strerror(errno));
    b->nworkers = nworkers;
    ls_board_reset(b);
    *b_p = b;
    return LS_OK;
}

void ls_board_reset(ls_board *b) {
    atomic_store(&b->own.state, 0);
    atomic_store(&b->lost.state, 0);
    for (int i = 0; i < b->nworkers; i++) {
        atomic_store(&b->slots[i].action, -1);
        atomic_store(&b->slots[i].step, 0);
        atomic_store(&b->slots[i].beat_ns, 0);
        atomic_store(&b->slots[i].measured, 0);
        atomic_store(&b->slots[i].asked, LS_ASKED_NOTHING);
        atomic_store(&b->slots[i].gives_up, 0);
        atomic_store(&b->slots[i].leaves, 0);
        atomic_store(&b->slots[i].renews, 0);
        atomic_store(&b->slots[i].unreached, 0);
    }
}

void ls_board_close(ls_board *b) {
    if (b) munmap(b, nbytes_of(b->nworkers));
}

void ls_board_fail(ls_board *b, const ls_error *e) {
    struct ls_board_note *n = e->code == LS_EPEER || e->code == LS_EABORT ? &b->lost : &b->own;
    int none = 0;
    if (!e->msg[0]) return; /* another worker reports it */
    if (!atomic_compare_exchange_strong(&n->state, &none, 1)) return;
    n->error = *e;
    atomic_store(&n->state, 2);
}

static bool read_note(const struct ls_board_note *n, ls_error *e_p) {
    if (atomic_load(&n->state) != 2) return false;
    *e_p = n->error;
    return true;
}

bool ls_board_failed(const ls_board *b, ls_error *e_p) { return read_note(&b->own, e_p); }
bool ls_board_lost(const ls_board *b, ls_error *e_p) { return read_note(&b->lost, e_p); }
