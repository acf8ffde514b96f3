/* project.c - one worker's two lanes, and where a step of one must wait for the other.
 *
 * A step waits for the latest earlier step of the other lane that uses the same buffer, if at least
 * one of the two writes it. Within a lane the order suffices.
 *
 * No buffer becomes live sooner than the plan says. A gather waits for all actions before it, and so
 * does who gets a message that arrives late (ls_plan_arrives_late()). The
 * Backward that begins a bucket with transient gradients waits for the Frees before it, except
 * those of the latest reduction, which may run beside it.
 */
#include <stdlib.h>

#include "plan/plan.h"

typedef struct last_use {
    int read[LS_NLANES], written[LS_NLANES]; /* position of the step in its lane; 0: none */
} last_use;

typedef struct walk {
    last_use *last; /* [nbuffers] */
    ls_lane lane;
    int position; /* in its lane, from 1 */
    int wait;
    int own; /* messages: steps of this lane that must be complete */
    const ls_plan *p;
    int freed;         /* the latest Free of a gradient, in the communication lane */
    int freed_earlier; /* the latest one before the latest reduction */
} walk;

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    last_use *u = &w->last[buffer];
    int other = !w->lane;
    ls_buffer_kind kind = ls_plan_buffer_of(w->p, buffer).kind;
    bool begins = kind == LS_BUF_GRAD && how == LS_USE_WRITE && w->lane == LS_LANE_COMPUTE;
    if (begins && w->freed_earlier > w->wait) w->wait = w->freed_earlier;
    if (u->written[other] > w->wait) w->wait = u->written[other];
    if ((how & LS_USE_WRITE) && u->read[other] > w->wait) w->wait = u->read[other];
    if (u->written[w->lane] > w->own) w->own = u->written[w->lane];
    if ((how & LS_USE_WRITE) && u->read[w->lane] > w->own) w->own = u->read[w->lane];
    if (how & LS_USE_READ) u->read[w->lane] = w->position;
    if (how & LS_USE_WRITE) u->written[w->lane] = w->position;
}

void ls_plan_project(const ls_plan *p, int worker, ls_lanes *l_p) {
    ls_lanes l = {0};
    for (int lane = 0; lane < LS_NLANES; lane++)
        l.steps[lane] = LS_NEW_ARRAY(ls_lane_step, (size_t)p->nactions);
    walk w = {.p = p, .last = LS_NEW_ARRAY(last_use, (size_t)ls_plan_nbuffers(p))};
    int single = 0; /* the latest step of the communication lane that is no message */
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        if (!ls_action_concerns(a, worker)) continue;
        w.lane = ls_plan_lane(p, a);
        w.position = l.n[w.lane] + 1;
        bool begins = a->kind == LS_ALL_GATHER || /* its buffer becomes live */
                      (a->peer == worker && ls_plan_arrives_late(p, a));
        w.wait = begins ? l.n[LS_LANE_COMPUTE] : 0;
        w.own = single;
        ls_action_uses(p, a, worker, on_use, &w);
        bool message = a->kind == LS_SEND;
        if (!message) w.own = l.n[w.lane];
        if (!message && w.lane == LS_LANE_COMM) single = w.position;
        l.steps[w.lane][l.n[w.lane]++] = (ls_lane_step){i, w.wait, w.own};
        bool reduces = a->kind == LS_REDUCE_SCATTER || a->kind == LS_EXCHANGE;
        if (reduces) w.freed_earlier = w.freed;
        if (a->kind == LS_FREE && w.lane == LS_LANE_COMM) w.freed = w.position;
    }
    free(w.last);
    *l_p = l;
}

void ls_lanes_free(ls_lanes *l) {
    for (int lane = 0; lane < LS_NLANES; lane++) free(l->steps[lane]);
    *l = (ls_lanes){0};
}
