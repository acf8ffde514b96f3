/* project.c - one worker's two lanes, and where a step of one must wait for the other.
 *
 * A step waits for the latest earlier step of the other lane that uses the same buffer, if at least
 * one of the two writes it, and so for all before that one. Messages, of which several are in
 * flight, are waited for one by one: by computations and by other messages. All other
 * communications wait for all before them in their lane.
 *
 * No buffer becomes live sooner than the plan says. A gather waits for all actions before it, and
 * so does who gets a message that arrives late (ls_plan_arrives_late()). The Backward that begins a
 * bucket with transient gradients waits for the Frees before it, except those of the latest
 * reduction, which may run beside it.
 */
#include <stdlib.h>

#include "plan/plan.h"

/* Uses of a buffer. Positions in a lane begin at 1; 0: none. */
typedef struct last_use {
    int read[LS_NLANES], written[LS_NLANES]; /* by the latest step that is no message */
    int received; /* by the latest message, if nothing has overwritten it */
    int senders;  /* messages that have read it since: in a chain of walk.senders; 0: none */
} last_use;

typedef struct sender {
    int position, next;
} sender;

typedef struct walk {
    last_use *last;  /* [nbuffers] */
    sender *senders; /* [1 + messages] from 1 on */
    int nsenders;
    int *latest; /* [nworkers][2] messages to and from a worker */
    ls_lanes l;
    ls_lane lane;
    int position; /* in its lane, from 1 */
    bool message;
    int wait;
    int first_need;
    int single; /* the latest step of the communication lane that is no message */
    const ls_plan *p;
    int freed;         /* the latest Free of a gradient, in the communication lane */
    int freed_earlier; /* the latest one before the latest reduction */
} walk;

/* Adds a message to those that the step needs. Other communications come after all messages. */
static void need(walk *w, int position) {
    ls_lanes *l = &w->l;
    if (!position || (w->lane == LS_LANE_COMM && !w->message)) return;
    for (int i = w->first_need; i < l->nneeds; i++)
        if (l->needs[i] == position - 1) return;
    l->needs = ls_grow(l->needs, (size_t)l->nneeds, sizeof *l->needs);
    l->needs[l->nneeds++] = position - 1;
}

static void need_messages(walk *w, last_use *u, ls_use how) {
    need(w, u->received);
    if (!(how & LS_USE_WRITE)) return;
    for (int i = u->senders; i; i = w->senders[i].next) need(w, w->senders[i].position);
    u->received = u->senders = 0;
}

static void note_message(walk *w, last_use *u, ls_use how) {
    if (how & LS_USE_WRITE) {
        u->received = w->position;
        return;
    }
    w->senders[++w->nsenders] = (sender){w->position, u->senders};
    u->senders = w->nsenders;
}

static void on_use(int buffer, ls_use how, void *arg) {
    walk *w = arg;
    last_use *u = &w->last[buffer];
    int other = !w->lane;
    ls_buffer_kind kind = ls_plan_buffer_of(w->p, buffer).kind;
    bool begins = kind == LS_BUF_GRAD && how == LS_USE_WRITE && w->lane == LS_LANE_COMPUTE;
    if (begins && w->freed_earlier > w->wait) w->wait = w->freed_earlier;
    if (u->written[other] > w->wait) w->wait = u->written[other];
    if ((how & LS_USE_WRITE) && u->read[other] > w->wait) w->wait = u->read[other];
    need_messages(w, u, how);
    if (w->message) {
        note_message(w, u, how);
        return;
    }
    if (how & LS_USE_READ) u->read[w->lane] = w->position;
    if (how & LS_USE_WRITE) u->written[w->lane] = w->position;
}

/* The message before this one to the same worker, or from the same. */
static int find_before(walk *w, const ls_action *a, int worker) {
    bool sends = a->worker == worker;
    int *latest = &w->latest[2 * (sends ? a->peer : a->worker) + sends], before = *latest - 1;
    *latest = w->position;
    return before;
}

static void add_step(walk *w, int action, int worker) {
    const ls_plan *p = w->p;
    const ls_action *a = &p->actions[action];
    ls_lanes *l = &w->l;
    w->lane = ls_plan_lane(p, a);
    w->position = l->n[w->lane] + 1;
    w->message = a->kind == LS_SEND;
    w->first_need = l->nneeds;
    bool begins = a->kind == LS_ALL_GATHER || /* its buffer becomes live */
                  (a->peer == worker && ls_plan_arrives_late(p, a));
    w->wait = begins ? l->n[LS_LANE_COMPUTE] : 0;
    ls_action_uses(p, a, worker, on_use, w);
    l->steps[w->lane][l->n[w->lane]] =
        (ls_lane_step){.action = action,
                       .wait = w->wait,
                       .own = w->message ? w->single : l->n[w->lane],
                       .first_need = w->first_need,
                       .end_need = l->nneeds,
                       .is_message = w->message,
                       .after = w->message ? find_before(w, a, worker) : -1};
    l->n[w->lane]++;
    if (!w->message && w->lane == LS_LANE_COMM) w->single = w->position;
    if (ls_action_reduces(a)) w->freed_earlier = w->freed;
    if (a->kind == LS_FREE && w->lane == LS_LANE_COMM) w->freed = w->position;
}

void ls_plan_project(const ls_plan *p, int worker, ls_lanes *l_p) {
    walk w = {.p = p, .last = LS_NEW_ARRAY(last_use, (size_t)ls_plan_nbuffers(p))};
    size_t messages = 0;
    for (int i = 0; i < p->nactions; i++) messages += p->actions[i].kind == LS_SEND;
    w.senders = LS_NEW_ARRAY(sender, messages + 1);
    w.latest = LS_NEW_ARRAY(int, 2 * (size_t)p->share.nworkers);
    for (int lane = 0; lane < LS_NLANES; lane++)
        w.l.steps[lane] = LS_NEW_ARRAY(ls_lane_step, (size_t)p->nactions);
    for (int i = 0; i < p->nactions; i++)
        if (ls_action_concerns(&p->actions[i], worker)) add_step(&w, i, worker);
    free(w.last);
    free(w.senders);
    free(w.latest);
    *l_p = w.l;
}

void ls_lanes_free(ls_lanes *l) {
    for (int lane = 0; lane < LS_NLANES; lane++) free(l->steps[lane]);
    free(l->needs);
    *l = (ls_lanes){0};
}
