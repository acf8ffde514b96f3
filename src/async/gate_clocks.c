/* gate_clocks.c - workers of other hosts with sync.mode ssp: for each, a thread of the gate claims
 * gradients (clocks.h), as a worker of this host does. */
#include "async/clocked.h"

static ls_clocks *clocks_of(const void *crew) { return ((const ls_clocked_crew *)crew)->clocks; }

static bool enter(const void *crew, int *place_p) {
    return ls_clocks_enter(clocks_of(crew), place_p);
}

typedef struct place {
    const ls_clocks *clocks;
    int number;
} place;

static bool has_task_or_over(void *arg) {
    const place *p = arg;
    return ls_clocks_has_task(p->clocks, p->number) || atomic_load(&p->clocks->over);
}

static bool take(const void *crew, int number, ls_wire_task *t_p) {
    ls_clocks *c = clocks_of(crew);
    place p = {c, number};
    ls_clock_task t;
    const ls_patience *patience = &((const ls_clocked_crew *)crew)->patience;
    ls_bell_wait(&c->workers[number].bell, has_task_or_over, &p, patience, LS_GATE_LOOK_NS);
    if (atomic_load(&c->over) || !ls_clocks_claim(c, number, &t)) return false;
    *t_p = (ls_wire_task){.step = t.clock, .version = t.version, .vw = t.vw, .cell = t.cell};
    return true;
}

static bool is_over(const void *crew) { return atomic_load(&clocks_of(crew)->over); }

static void pull(const void *crew, int number, const ls_wire_task *t, void *params) {
    ls_clocked_pull(crew, number, t->version, params);
}

static void *result(const void *crew, int number, const ls_wire_task *t) {
    (void)number;
    return ls_clocked_parts(crew, t->cell);
}

static void *gradient(const void *crew, int number, const ls_wire_task *t) {
    (void)number;
    return ls_clocked_grads(crew, t->cell);
}

static void push(const void *crew, int number, const ls_wire_task *t) {
    const ls_clock_task task = {t->step, t->version, t->vw, t->cell};
    ls_clocks_complete(clocks_of(crew), number, &task);
}

/* The bits of a run do not depend on where it continues: no copy is needed. */
static bool mirror(const void *crew, ls_conn *c, double silence_s, ls_status *s_p, ls_error *e) {
    (void)crew;
    (void)c;
    (void)silence_s;
    (void)s_p;
    (void)e;
    return false;
}

static void reset(const void *crew) { (void)crew; }

static void leave(const void *crew, int number) { ls_clocks_leave(clocks_of(crew), number); }

const ls_gate_ops ls_gate_clocks = {.enter = enter,
                                    .take = take,
                                    .is_over = is_over,
                                    .pull = pull,
                                    .result = result,
                                    .gradient = gradient,
                                    .push = push,
                                    .mirror = mirror,
                                    .reset = reset,
                                    .leave = leave};
