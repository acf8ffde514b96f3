/* leave.c - workers that close their transport, and peers that wait for them: see plugin.c. */
#include <stdio.h>

#include "net/mpi/inside.h"

void ls_mpi_record_left(mpi_net *x, int from, const header *h) {
    peer *p = &x->peers[from];
    x->nleft += !p->left;
    p->left = true;
    p->last = h->id;
    p->natives = h->tag;
    p->lost = h->data_tag;
    p->left_ns = ls_mpi_now_ns();
}

static bool is_gone(const mpi_net *x, int rank) {
    const peer *p = &x->peers[rank];
    return p->left && p->received == p->last;
}

static int find_gone(const mpi_net *x, const transfer *t) {
    for (; t; t = t->next)
        if (is_gone(x, t->peer)) return t->peer;
    return -1;
}

/* A peer that has left, and to which data are still on the way: they arrive soon, or never. */
static int find_stuck(const mpi_net *x) {
    for (const transfer *t = x->moving; t; t = t->next)
        if (!t->receives && t->m && is_gone(x, t->peer) &&
            ls_mpi_now_ns() - x->peers[t->peer].left_ns > PATIENCE_NS)
            return t->peer;
    return -1;
}

/* A peer that has left without joining a collective of MPI's own that is on its way here. */
static int find_absent(const mpi_net *x) {
    uint64_t latest = 0;
    for (int i = 0; i < x->nactions; i++) {
        const action *a = &x->actions[i];
        if (a->what == NATIVE && a->own->m && a->own->number > latest) latest = a->own->number;
    }
    for (int i = 0; i < x->mpi.net.size; i++)
        if (x->peers[i].left && x->peers[i].natives < latest) return i;
    return -1;
}

int ls_mpi_find_lost(const mpi_net *x) {
    if (x->nleft == 0) return -1;
    int lost = find_gone(x, x->wanted);
    if (lost < 0) lost = find_gone(x, x->announced);
    if (lost < 0) lost = find_absent(x);
    return lost < 0 ? find_stuck(x) : lost;
}

ls_status ls_mpi_check_lost(mpi_net *x, ls_error *e) {
    int rank = ls_mpi_find_lost(x);
    char cause[64] = "";
    if (rank < 0) return LS_OK;
    const peer *p = &x->peers[rank];
    if (x->lost < 0) x->lost = p->lost >= 0 ? p->lost : rank;
    if (p->lost >= 0) snprintf(cause, sizeof cause, "; before, it had lost worker %d", p->lost);
    return ls_fail(e, LS_EPEER, "worker %d lost worker %d: it has left%s", x->mpi.net.rank, rank,
                   cause);
}

void ls_mpi_send_left(mpi_net *x) {
    for (int i = 0; i < x->mpi.net.size && !is_broken(x); i++) {
        if (i == x->mpi.net.rank) continue;
        slot *s = ls_mpi_slot(x);
        s->h =
            (header){.kind = LEFT, .id = x->peers[i].sent, .tag = x->natives, .data_tag = x->lost};
        ls_mpi_send_control(x, i, s, 0);
    }
}

void ls_mpi_await_left(mpi_net *x, int64_t limit_ns) {
    int64_t start = ls_mpi_now_ns(), waited = 0;
    while (x->nleft < x->mpi.net.size - 1 && !is_broken(x) && (limit_ns < 0 || waited < limit_ns)) {
        ls_mpi_rest(waited, -1);
        ls_mpi_move(x);
        waited = ls_mpi_now_ns() - start;
    }
}
