/* crew.c - see crew.h. */
#include "async/crew.h"

void *ls_async_grads(const ls_async_crew *c, int worker) {
    return c->grads + (size_t)worker * c->grads_nbytes;
}

void *ls_async_gradient_of(const ls_async_crew *c, int worker) {
    return (char *)ls_async_grads(c, worker) +
           (size_t)ls_share_sum_slot(&c->plan->share, 0, 0) * c->plan->share.nbytes.slot;
}

ls_status ls_async_run_role(const void *crew, int role, ls_error *e) {
    const ls_async_crew *c = crew;
    int n = c->board->nlocal;
    if (role == n + c->nservers) return ls_gate_guard(&c->gate, e);
    ls_gate_leave(&c->gate);
    if (role >= n) return ls_async_serve(c, role - n, e);
    if (!c->nservers && role < c->board->nshards) LS_TRY(ls_async_serve_beside(c, role, e));
    return ls_async_work(c, role, e);
}

long long ls_async_pushed(const void *crew) {
    return atomic_load(&((const ls_async_crew *)crew)->board->turns);
}

void ls_async_fail(const ls_async_crew *c, const ls_error *e) {
    ls_board_fail(c->errors, e);
    ls_bell_ring(&c->board->bell);
}
