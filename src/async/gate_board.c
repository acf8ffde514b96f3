/* gate_board.c - workers of other hosts with sync.mode async: each has a slot of the board
 * (gradient_board.h), for which a thread of the gate pulls and pushes. */
#include <time.h>

#include "async/mirror.h"

static ls_async_slot *slot_of(const void *crew, int place) {
    return &((const ls_async_crew *)crew)->board->slots[place];
}

static bool enter(const void *crew, int *place_p) {
    ls_async_board *b = ((const ls_async_crew *)crew)->board;
    for (int i = b->nlocal; i < b->nworkers; i++) {
        int away = LS_ASYNC_AWAY;
        if (!atomic_compare_exchange_strong(&b->slots[i].state, &away, LS_ASYNC_IDLE)) continue;
        *place_p = i;
        ls_bell_ring(&b->bell);
        return true;
    }
    return false;
}

typedef struct place {
    const ls_async_crew *crew;
    const ls_async_slot *slot;
} place;

static bool is_given_or_over(void *arg) {
    const place *p = arg;
    return atomic_load(&p->slot->state) == LS_ASYNC_GIVEN || atomic_load(&p->crew->board->over);
}

static bool take(const void *crew, int number, ls_wire_task *t_p) {
    ls_async_slot *slot = slot_of(crew, number);
    place p = {crew, slot};
    ls_bell_wait(&slot->bell, is_given_or_over, &p, &p.crew->patience, LS_GATE_LOOK_NS);
    if (atomic_load(&slot->state) != LS_ASYNC_GIVEN) return false;
    *t_p = (ls_wire_task){.step = atomic_load(&slot->step), .version = -1};
    return true;
}

static bool is_over(const void *crew) {
    return atomic_load(&((const ls_async_crew *)crew)->board->over);
}

static void pull(const void *crew, int number, const ls_wire_task *t, void *params) {
    (void)t;
    ls_async_pull_all(crew, number, params);
}

static void *result(const void *crew, int number, const ls_wire_task *t) {
    (void)t;
    return &slot_of(crew, number)->result;
}

static void *gradient(const void *crew, int number, const ls_wire_task *t) {
    (void)t;
    return ls_async_gradient_of(crew, number);
}

static void push(const void *crew, int number, const ls_wire_task *t) {
    (void)t;
    ls_async_push_all(crew, number);
}

/* A gradient that was pushed is applied first; a batch that was not computed is lost. */
static void leave(const void *crew, int number) {
    ls_async_slot *slot = slot_of(crew, number);
    int idle = LS_ASYNC_IDLE, given = LS_ASYNC_GIVEN;
    while (atomic_load(&slot->state) == LS_ASYNC_PUSHED)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (!atomic_compare_exchange_strong(&slot->state, &idle, LS_ASYNC_AWAY))
        atomic_compare_exchange_strong(&slot->state, &given, LS_ASYNC_LOST);
    ls_bell_ring(&((const ls_async_crew *)crew)->board->bell);
}

const ls_gate_ops ls_gate_board = {.enter = enter,
                                   .take = take,
                                   .is_over = is_over,
                                   .pull = pull,
                                   .result = result,
                                   .gradient = gradient,
                                   .push = push,
                                   .mirror = ls_async_mirror,
                                   .reset = ls_async_mirror_reset,
                                   .leave = leave};
