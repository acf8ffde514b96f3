/* crew.c - see crew.h. */
#include "async/crew.h"

#include "plan/memory.h"

void *ls_async_grads(const ls_async_crew *c, int worker) {
    return c->grads + (size_t)worker * c->grads_nbytes;
}

void *ls_async_gradient_of(const ls_async_crew *c, int worker) {
    return (char *)ls_async_grads(c, worker) +
           (size_t)ls_plan_sum_slot(c->plan, 0) * ls_plan_slot_nbytes(c->plan);
}

void ls_async_fail(const ls_async_crew *c, const ls_error *e) {
    ls_board_fail(c->errors, e);
    ls_bell_ring(&c->board->bell);
}
