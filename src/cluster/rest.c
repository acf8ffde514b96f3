/* rest.c - see rest.h. */
#include "cluster/rest.h"

#include "net/launch/launch.h"

/* The supervisor notices a killed worker at once. */
static const int64_t WAIT_NS = 300 * 1000 * 1000;
static const ls_patience SLEEPS = {0, 0};

void ls_rest_recall(ls_board_slot *s) {
    atomic_store(&s->recalled, 1);
    ls_bell_ring(&s->bell);
}

void ls_rest_send_on(ls_board_slot *s, int64_t view) {
    atomic_store(&s->recalled, 0);
    atomic_store(&s->rests, 0);
    atomic_store(&s->view, view);
    ls_bell_ring(&s->bell);
}

void ls_rest_clear(ls_board_slot *s) {
    atomic_store(&s->recalled, 0);
    atomic_store(&s->rests, 0);
    atomic_store(&s->view, 0);
    s->bell = (ls_bell){0};
}

static bool is_recalled(void *arg) { return ls_board_recalled(arg); }

bool ls_rest_may(ls_board_slot *s, ls_status how) {
    if (how != LS_EPEER && how != LS_EABORT) return false;
    return ls_bell_wait(&s->bell, is_recalled, s, &SLEEPS, WAIT_NS);
}

typedef struct wait {
    const ls_board_slot *slot;
    int64_t view;
} wait;

static bool is_sent_on(void *arg) {
    const wait *w = arg;
    return atomic_load(&w->slot->view) > w->view;
}

int64_t ls_rest(ls_board_slot *s, int64_t view) {
    wait w = {s, view};
    atomic_store(&s->rests, 1);
    ls_launch_nudge();
    ls_bell_wait(&s->bell, is_sent_on, &w, &SLEEPS, -1);
    return atomic_load(&s->view);
}
