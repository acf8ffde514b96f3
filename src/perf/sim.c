/* sim.c - see sim.h. */
#include "perf/sim.h"

#include <math.h>
#include <stdlib.h>

#include "plan/progress.h"

/* The state of the action at the head of a lane. */
typedef enum phase {
    IDLE,   /* it may not begin yet */
    POSTED, /* a communication that waits for the other workers */
    CPU,    /* it needs a thread, and may have to wait for it */
    WIRE,   /* it needs no thread */
} phase;

typedef struct lane {
    phase phase;
    double left; /* seconds left of the phase */
    double begin;
    double wire; /* of the communication, after its CPU phase */
} lane;

/* A message in flight: a step of the communication lane, and when it began. */
typedef struct message {
    int step;
    double begin;
} message;

/* A simulated worker. */
typedef struct follower {
    int worker;
    ls_lanes lanes;
    ls_progress at;
    lane lane[LS_NLANES];
    message messages[LS_PROGRESS_WINDOW]; /* [nmessages] in flight, by step */
    int nmessages;
    double arrives; /* when the first of these arrives; INFINITY: all wait for their other worker */
    bool awake;     /* something has happened since it could last begin nothing */
    double compute_s, comm_s, end;
    double kinds_s[LS_NACTION_KINDS];
} follower;

typedef struct walk {
    ls_pricer pricer;
    const ls_plan *p;
    follower *all;
    int n;
    double now;
    double *arrives;     /* [nactions] of a message that both have begun; 0: not yet */
    int *begun;          /* [nactions] how many of the two have begun it */
    follower **followed; /* [nworkers] NULL: it is not simulated */
    bool crowded;        /* the threads of both lanes share cores */
    bool posted;         /* a worker has posted a communication since meet() */
    ls_sim *out;
    int capacity;
} walk;

static const ls_action *action_at(const walk *w, const follower *f, ls_lane l, int step) {
    return &w->p->actions[f->lanes.steps[l][step].action];
}

static const ls_action *head_of(const walk *w, const follower *f, ls_lane l) {
    return action_at(w, f, l, f->at.at[l]);
}

/* ---- which workers are simulated ---- */

static void add_follower(walk *w, int worker) {
    follower *f = &w->all[w->n++];
    *f = (follower){.worker = worker, .arrives = INFINITY, .awake = true};
    ls_plan_project(w->p, worker, &f->lanes);
    ls_progress_begin(&f->at, &f->lanes, 0);
}

/* Two numbers; workers with the same numbers behave the same. The first worker of a stage also
 * exchanges parameters with other stages. */
static void kind_of(const ls_plan *p, int worker, int kind[2]) {
    const ls_share *sh = &p->share;
    kind[0] = sh->workers[worker].nvws * sh->ncells + sh->workers[worker].cell;
    kind[1] = ls_share_sums(sh, 0, worker) * 64 + sh->workers[worker].nslots;
    if (sh->ncells > 1 && sh->workers[worker].place == 0) kind[1] = -1;
}

static void choose_followers(walk *w, bool every) {
    const ls_plan *p = w->p;
    const ls_share *sh = &p->share;
    if (sh->task == LS_TASK_MIX) every = true; /* who sends to whom differs */
    w->all = LS_NEW_ARRAY(follower, (size_t)sh->nworkers);
    w->followed = LS_NEW_ARRAY(follower *, (size_t)sh->nworkers);
    for (int i = sh->nworkers - 1; i >= 0; i--) { /* the last ones have the larger shards */
        int own[2], other[2];
        bool known = false;
        kind_of(p, i, own);
        for (int k = 0; k < w->n && !known && !every; k++) {
            kind_of(p, w->all[k].worker, other);
            known = own[0] == other[0] && own[1] == other[1];
        }
        if (!known) add_follower(w, i);
    }
    for (int k = 0; k < w->n; k++) w->followed[w->all[k].worker] = &w->all[k];
}

/* ---- events ---- */

static void add_span(walk *w, const follower *f, ls_lane l, int step, double begin) {
    ls_sim *s = w->out;
    if (s->nspans == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 1024;
        s->spans = ls_realloc(s->spans, (size_t)w->capacity * sizeof *s->spans);
    }
    s->spans[s->nspans++] = (ls_span){.action = f->lanes.steps[l][step].action,
                                      .worker = f->worker,
                                      .lane = l,
                                      .begin_ns = llround(begin * 1e9),
                                      .end_ns = llround(w->now * 1e9)};
}

static void complete(walk *w, follower *f, ls_lane l) {
    double seconds = w->now - f->lane[l].begin;
    add_span(w, f, l, f->at.at[l], f->lane[l].begin);
    f->kinds_s[head_of(w, f, l)->kind] += seconds;
    if (l == LS_LANE_COMM) f->comm_s += seconds;
    f->lane[l].phase = IDLE;
    f->awake = true;
    if (l == LS_LANE_COMPUTE)
        ls_progress_computed(&f->at);
    else
        ls_progress_complete(&f->at, f->at.at[l]);
    f->end = w->now;
}

/* Begins the action at the head of a lane. */
static void begin(walk *w, follower *f, ls_lane l) {
    ls_price x = ls_price_action(&w->pricer, head_of(w, f, l), f->worker);
    f->lane[l] = (lane){.phase = CPU, .left = x.cpu_s, .begin = w->now, .wire = x.wire_s};
    if (l == LS_LANE_COMPUTE) f->compute_s += x.cpu_s;
}

/* If all of the two that are simulated have begun the message, it arrives. */
static void let_arrive(walk *w, int action, double at) {
    const ls_action *a = &w->p->actions[action];
    follower *const ends[] = {w->followed[a->worker], w->followed[a->peer]};
    if (w->begun[action] < (ends[0] != NULL) + (ends[1] != NULL)) return;
    w->arrives[action] = fmax(at, 1e-15);
    for (int i = 0; i < 2; i++)
        if (ends[i]) ends[i]->arrives = fmin(ends[i]->arrives, w->arrives[action]);
}

static void add_message(follower *f, message m) {
    int at = f->nmessages++;
    for (; at > 0 && f->messages[at - 1].step > m.step; at--) f->messages[at] = f->messages[at - 1];
    f->messages[at] = m;
}

static void begin_message(walk *w, follower *f, int step) {
    int action = f->lanes.steps[LS_LANE_COMM][step].action;
    ls_price x = ls_price_action(&w->pricer, &w->p->actions[action], f->worker);
    add_message(f, (message){step, w->now});
    ls_progress_begun(&f->at, step);
    w->begun[action]++;
    let_arrive(w, action, w->now + x.cpu_s + x.wire_s);
}

/* When a message in flight arrives; 0: not all have begun it. */
static double arrival_of(const walk *w, const follower *f, const message *m) {
    return w->arrives[f->lanes.steps[LS_LANE_COMM][m->step].action];
}

static void end_message(walk *w, follower *f, const message *m) {
    add_span(w, f, LS_LANE_COMM, m->step, m->begin);
    f->kinds_s[LS_SEND] += w->now - m->begin;
    f->comm_s += w->now - m->begin;
    f->end = w->now;
    ls_progress_complete(&f->at, m->step);
}

/* Messages that have arrived are complete. */
static bool end_messages(walk *w, follower *f) {
    int left = 0, n = f->nmessages;
    if (f->arrives > w->now + 1e-12) return false;
    f->arrives = INFINITY;
    for (int i = 0; i < n; i++) {
        double arrives = arrival_of(w, f, &f->messages[i]);
        if (arrives > 0 && arrives <= w->now + 1e-12) {
            end_message(w, f, &f->messages[i]);
            continue;
        }
        if (arrives > 0) f->arrives = fmin(f->arrives, arrives);
        f->messages[left++] = f->messages[i];
    }
    f->nmessages = left;
    return left < n;
}

/* The worker begins the communications that it has reached. One with other participants than a
 * message's is posted. */
static bool post(walk *w, follower *f) {
    bool moved = end_messages(w, f);
    for (int step; f->lane[LS_LANE_COMM].phase == IDLE && (step = ls_progress_next(&f->at)) >= 0;) {
        const ls_action *a = action_at(w, f, LS_LANE_COMM, step);
        moved = true;
        if (a->kind == LS_SEND)
            begin_message(w, f, step);
        else if (a->worker != LS_ALL_WORKERS)
            begin(w, f, LS_LANE_COMM);
        else {
            f->lane[LS_LANE_COMM] = (lane){.phase = POSTED, .begin = w->now};
            w->posted = true;
        }
    }
    return moved;
}

static bool has_posted(const walk *w, const follower *f, const ls_action *a) {
    return f->lane[LS_LANE_COMM].phase == POSTED && head_of(w, f, LS_LANE_COMM) == a;
}

/* All workers that take part in a communication have posted it. */
static bool meet_at(walk *w, const ls_action *a) {
    for (int i = 0; i < w->n; i++)
        if (ls_action_concerns(a, w->all[i].worker) && !has_posted(w, &w->all[i], a)) return false;
    for (int i = 0; i < w->n; i++) {
        follower *f = &w->all[i];
        lane *l = &f->lane[LS_LANE_COMM];
        if (!ls_action_concerns(a, f->worker)) continue;
        ls_price x = ls_price_action(&w->pricer, a, f->worker);
        l->phase = CPU;
        l->left = x.cpu_s;
        l->wire = x.wire_s;
    }
    return true;
}

/* None more than before can have met unless one has posted. */
static bool meet(walk *w) {
    bool moved = false, posted = w->posted;
    w->posted = false;
    for (int i = 0; i < w->n && posted; i++) {
        const follower *f = &w->all[i];
        if (f->lane[LS_LANE_COMM].phase == POSTED && meet_at(w, head_of(w, f, LS_LANE_COMM)))
            moved = true;
    }
    return moved;
}

static bool start_compute(walk *w, follower *f) {
    if (f->lane[LS_LANE_COMPUTE].phase != IDLE || !ls_progress_may_compute(&f->at)) return false;
    begin(w, f, LS_LANE_COMPUTE);
    return true;
}

/* With one thread, communication that needs it goes first, but only between two computations. */
static bool start_one(walk *w, follower *f) {
    if (f->lane[LS_LANE_COMPUTE].phase == CPU) return false;
    bool moved = post(w, f);
    if (meet(w)) moved = true;
    if (f->lane[LS_LANE_COMM].phase == CPU) return moved;
    return start_compute(w, f) || moved;
}

static bool start_two(walk *w, follower *f) {
    bool moved = post(w, f);
    if (meet(w)) moved = true;
    return start_compute(w, f) || moved;
}

/* The speed at which a lane's phase advances now; 1: full speed. */
static double rate_of(const walk *w, const follower *f, ls_lane l) {
    bool two = w->pricer.site->overlap;
    phase own = f->lane[l].phase, other = f->lane[!l].phase;
    if (own == WIRE) return 1;
    if (own != CPU) return 0;
    if (other != CPU) return 1;
    if (two) return w->crowded ? 0.5 : 1;
    return l == LS_LANE_COMPUTE; /* the communication arrived during a computation */
}

/* One thread sees to messages between two computations. */
static bool may_end_messages(const walk *w, const follower *f) {
    return w->pricer.site->overlap || f->lane[LS_LANE_COMPUTE].phase != CPU;
}

static double next_event(const walk *w) {
    double least = INFINITY;
    for (int i = 0; i < w->n; i++)
        for (int l = 0; l < LS_NLANES; l++) {
            double rate = rate_of(w, &w->all[i], (ls_lane)l);
            if (rate > 0) least = fmin(least, w->all[i].lane[l].left / rate);
        }
    for (int i = 0; i < w->n; i++) {
        const follower *f = &w->all[i];
        if (may_end_messages(w, f)) least = fmin(least, fmax(0, f->arrives - w->now));
    }
    return least;
}

/* Advances a lane's phase, and ends it if nothing of it is left. */
static void advance(walk *w, follower *f, ls_lane l, double rate, double seconds) {
    lane *x = &f->lane[l];
    x->left -= rate * seconds;
    if (rate == 0 || x->left > 1e-12) return;
    if (x->phase == CPU && x->wire > 0) {
        x->phase = WIRE;
        x->left = x->wire;
        f->awake = true; /* its thread is free */
        return;
    }
    complete(w, f, l);
}

static void step_time(walk *w, double seconds) {
    w->now += seconds;
    for (int i = 0; i < w->n; i++) {
        follower *f = &w->all[i];
        double rates[LS_NLANES];
        for (int l = 0; l < LS_NLANES; l++) rates[l] = rate_of(w, f, (ls_lane)l);
        for (int l = 0; l < LS_NLANES; l++) advance(w, f, (ls_lane)l, rates[l], seconds);
    }
}

static void run(walk *w) {
    bool two = w->pricer.site->overlap;
    for (;;) {
        for (bool moved = true; moved;) {
            moved = false;
            for (int i = 0; i < w->n; i++) {
                follower *f = &w->all[i];
                if (!f->awake && f->arrives > w->now + 1e-12) continue;
                f->awake = two ? start_two(w, f) : start_one(w, f);
                moved = moved || f->awake;
            }
        }
        double seconds = next_event(w);
        if (isinf(seconds)) return;
        step_time(w, seconds);
    }
}

static int by_worker(const void *a, const void *b) {
    const ls_span *x = a, *y = b;
    if (x->worker != y->worker) return x->worker < y->worker ? -1 : 1;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->action > y->action) - (x->action < y->action);
}

/* The time in which the worker has a message in flight, or (any) communicates; spans are sorted. */
static double sending_s(const ls_plan *p, const ls_sim *s, int worker, bool any) {
    int64_t sum = 0, end = 0;
    for (int i = 0; i < s->nspans; i++) {
        const ls_span *x = &s->spans[i];
        bool send = p->actions[x->action].kind == LS_SEND;
        if (x->worker != worker || !(send || (any && x->lane == LS_LANE_COMM))) continue;
        int64_t begin = x->begin_ns > end ? x->begin_ns : end;
        if (x->end_ns > begin) sum += x->end_ns - begin;
        if (x->end_ns > end) end = x->end_ns;
    }
    return (double)sum * 1e-9;
}

ls_status ls_sim_run(const ls_plan *p, const ls_site *site, bool every, ls_sim *s_p, ls_error *e) {
    ls_sim s = {0};
    walk w = {.p = p, .out = &s};
    LS_TRY(ls_pricer_open(p, site, &w.pricer, e));
    w.crowded = 2 * w.pricer.busy > site->machine->cores;
    w.arrives = LS_NEW_ARRAY(double, (size_t)p->nactions);
    w.begun = LS_NEW_ARRAY(int, (size_t)p->nactions);
    choose_followers(&w, every);
    run(&w);
    free(w.arrives);
    free(w.begun);
    const follower *last = &w.all[0];
    for (int i = 1; i < w.n; i++)
        if (w.all[i].end > last->end) last = &w.all[i];
    s.least_s = s.most_s = last->compute_s;
    for (int i = 0; i < w.n; i++) {
        s.least_s = fmin(s.least_s, w.all[i].compute_s);
        s.most_s = fmax(s.most_s, w.all[i].compute_s);
    }
    double rows_s = ls_price_rows(&w.pricer);
    s.step_s = w.now + rows_s;
    s.compute_s = last->compute_s;
    s.exposed_s = s.step_s - last->compute_s;
    s.comm_s = last->comm_s + rows_s;
    s.nfollowed = w.n;
    for (int k = 0; k < LS_NACTION_KINDS; k++) s.kinds_s[k] = last->kinds_s[k];
    qsort(s.spans, (size_t)s.nspans, sizeof *s.spans, by_worker);
    if (s.kinds_s[LS_SEND] > 0) { /* of messages that overlap */
        s.comm_s = sending_s(p, &s, last->worker, true) + rows_s;
        s.kinds_s[LS_SEND] = sending_s(p, &s, last->worker, false);
    }
    for (int i = 0; i < w.n; i++) ls_lanes_free(&w.all[i].lanes);
    free(w.all);
    free(w.followed);
    *s_p = s;
    return LS_OK;
}

void ls_sim_free(ls_sim *s) {
    free(s->spans);
    *s = (ls_sim){0};
}
