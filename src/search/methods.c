/* methods.c - see methods.h. */
#include "search/methods.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"

typedef struct trial {
    double *costs;         /* [nrungs] lower is better; NAN: not known; INFINITY: diverged */
    int allowed;           /* it may be trained to the rungs below this one */
    ls_search_part *parts; /* [nparts] */
    int nparts;
} trial;

/* asha: the trials that come to a rung, in their order. */
typedef struct rung {
    int *order;  /* [n] */
    int *ranked; /* [nseen] the first of them, whose metrics are known, best first */
    int n, nseen, npromoted;
    bool closed; /* no more trials come, and all have been considered */
} rung;

struct ls_search {
    const ls_space *space;
    const ls_config *base;
    int ntrials, nrungs;
    int64_t *steps; /* [nrungs] */
    trial *trials;  /* [ntrials] */
    rung *rungs;    /* [nrungs] of asha */
    int nexchanged; /* pbt: rungs after which trials have been exchanged */
};

/* ---- rungs ---- */

static void add_rung(ls_search *s, int64_t steps) {
    s->steps = ls_grow(s->steps, (size_t)s->nrungs, sizeof *s->steps);
    s->steps[s->nrungs++] = steps;
}

static void make_rungs(ls_search *s) {
    const ls_space_rules *u = &s->space->rules;
    if (u->method == LS_SPACE_ASHA)
        for (int64_t n = u->grace; n < u->steps; n *= u->reduction) add_rung(s, n);
    if (u->method == LS_SPACE_PBT)
        for (int64_t n = u->interval; n < u->steps; n += u->interval) add_rung(s, n);
    add_rung(s, u->steps);
}

static void arrive(ls_search *s, int r, int t) {
    s->rungs[r].order[s->rungs[r].n++] = t;
    s->trials[t].allowed = r + 1;
}

ls_search *ls_search_open(const ls_space *space, const ls_config *base) {
    ls_search *s = LS_NEW(ls_search);
    *s = (ls_search){.space = space, .base = base, .ntrials = (int)space->rules.trials};
    make_rungs(s);
    size_t ntrials = (size_t)s->ntrials, nrungs = (size_t)s->nrungs;
    s->trials = LS_NEW_ARRAY(trial, ntrials);
    s->rungs = LS_NEW_ARRAY(rung, nrungs);
    for (size_t r = 0; r < nrungs; r++) {
        s->rungs[r].order = LS_NEW_ARRAY(int, ntrials);
        s->rungs[r].ranked = LS_NEW_ARRAY(int, ntrials);
    }
    for (int t = 0; t < s->ntrials; t++) {
        trial *x = &s->trials[t];
        x->costs = LS_NEW_ARRAY(double, nrungs);
        for (size_t r = 0; r < nrungs; r++) x->costs[r] = NAN;
        x->parts = ls_grow(NULL, 0, sizeof *x->parts);
        x->parts[x->nparts++] = (ls_search_part){.first = -1, .source = -1};
        ls_space_point_of(space, t, &x->parts[0].point);
        arrive(s, 0, t);
    }
    return s;
}

void ls_search_close(ls_search *s) {
    if (!s) return;
    for (int t = 0; t < s->ntrials; t++) {
        for (int i = 0; i < s->trials[t].nparts; i++)
            ls_space_point_free(&s->trials[t].parts[i].point);
        free(s->trials[t].parts);
        free(s->trials[t].costs);
    }
    for (int r = 0; r < s->nrungs; r++) {
        free(s->rungs[r].order);
        free(s->rungs[r].ranked);
    }
    free(s->trials);
    free(s->rungs);
    free(s->steps);
    free(s);
}

/* ---- asha ---- */

static double cost_of(const ls_search *s, int t, int r) { return s->trials[t].costs[r]; }

/* Trials with the same metric are ranked in the order in which they came. */
static void rank(ls_search *s, int r, int t) {
    rung *g = &s->rungs[r];
    int i = g->nseen++;
    for (; i > 0 && cost_of(s, g->ranked[i - 1], r) > cost_of(s, t, r); i--)
        g->ranked[i] = g->ranked[i - 1];
    g->ranked[i] = t;
}

static void promote(ls_search *s, int r, int t) {
    s->rungs[r].npromoted++;
    arrive(s, r + 1, t);
}

/* The best n of those seen go on, unless they already have, or diverged. */
static void promote_best(ls_search *s, int r, int n) {
    for (int i = 0; i < n; i++) {
        int t = s->rungs[r].ranked[i];
        if (s->trials[t].allowed == r + 1 && isfinite(cost_of(s, t, r))) promote(s, r, t);
    }
}

/* The quantile 1 / reduction of the costs seen, between two of them by a straight line: numpy's,
 * which Ray Tune takes. */
static double limit_of(const ls_search *s, int r) {
    const rung *g = &s->rungs[r];
    int n = 0;
    while (n < g->nseen && isfinite(cost_of(s, g->ranked[n], r))) n++;
    if (n == 0) return INFINITY;
    double at = (double)(n - 1) / (double)s->space->rules.reduction, part = at - floor(at);
    int i = (int)at;
    double low = cost_of(s, g->ranked[i], r);
    return i + 1 < n ? low + part * (cost_of(s, g->ranked[i + 1], r) - low) : low;
}

static void consider(ls_search *s, int r, int t) {
    const ls_space_rules *u = &s->space->rules;
    if (u->rule == LS_SPACE_STOP) {
        bool good = isfinite(cost_of(s, t, r)) && cost_of(s, t, r) <= limit_of(s, r);
        rank(s, r, t);
        if (good) promote(s, r, t);
    } else {
        rank(s, r, t);
        promote_best(s, r, s->rungs[r].nseen / (int)u->reduction);
    }
}

static void advance(ls_search *s, int r) {
    rung *g = &s->rungs[r];
    while (g->nseen < g->n && !isnan(cost_of(s, g->order[g->nseen], r)))
        consider(s, r, g->order[g->nseen]);
    bool all_came = r == 0 || s->rungs[r - 1].closed;
    if (g->closed || !all_came || g->nseen < g->n) return;
    if (!g->npromoted && g->n > 0) promote_best(s, r, 1);
    g->closed = true;
}

/* ---- pbt ---- */

static bool all_known(const ls_search *s, int r) {
    for (int t = 0; t < s->ntrials; t++)
        if (isnan(cost_of(s, t, r)) && s->trials[t].allowed > r) return false;
    return true;
}

/* order [ntrials]: the best first; of equal ones the one with the lower number. */
static void sort_at(const ls_search *s, int r, int *order) {
    for (int t = 0; t < s->ntrials; t++) {
        int i = t;
        for (; i > 0 && cost_of(s, order[i - 1], r) > cost_of(s, t, r); i--)
            order[i] = order[i - 1];
        order[i] = t;
    }
}

/* Trials at each end of the order: Ray Tune's. */
static int quantile_of(const ls_search *s) {
    int n = (int)ceil(ls_math_times(s->space->rules.quantile, s->ntrials));
    return n > s->ntrials / 2 ? s->ntrials / 2 : n;
}

/* Trial t goes on from the checkpoint of `source` after rung r. */
static void copy_trial(ls_search *s, int t, int source, int r) {
    trial *x = &s->trials[t];
    int from = ls_search_part_at(s, source, r);
    const ls_space_explorer explorer = {s->base, t, r};
    ls_search_part part = {.first = r, .source = source, .source_part = from};
    ls_space_explore(s->space, &explorer, &s->trials[source].parts[from].point, &part.point);
    x->parts = ls_grow(x->parts, (size_t)x->nparts, sizeof *x->parts);
    x->parts[x->nparts++] = part;
}

/* The parts of this rung, from which copies are made, are still the trials' last ones. */
static void exchange(ls_search *s, int r) {
    int *order = LS_NEW_ARRAY(int, (size_t)s->ntrials), n = quantile_of(s), ngood = 0;
    sort_at(s, r, order);
    while (ngood < s->ntrials && isfinite(cost_of(s, order[ngood], r))) ngood++;
    int nbest = n > 0 ? n : 1;
    if (nbest > ngood) nbest = ngood;
    int nstay = s->ntrials - n < ngood ? s->ntrials - n : ngood;
    for (int i = 0; i < s->ntrials && ngood > 0; i++) {
        int t = order[i];
        if (i >= nstay) copy_trial(s, t, order[ls_space_pick(s->space, t, r, nbest)], r);
        s->trials[t].allowed = r + 2;
    }
    free(order);
}

/* ---- decisions ---- */

void ls_search_report(ls_search *s, int t, int r, double metric) {
    double cost = s->space->rules.maximize ? -metric : metric;
    s->trials[t].costs[r] = isfinite(cost) ? cost : INFINITY;
}

void ls_search_decide(ls_search *s) {
    int last = s->nrungs - 1;
    if (s->space->rules.method == LS_SPACE_ASHA)
        for (int r = 0; r < last; r++) advance(s, r);
    if (s->space->rules.method == LS_SPACE_PBT)
        for (; s->nexchanged < last && all_known(s, s->nexchanged); s->nexchanged++)
            exchange(s, s->nexchanged);
}

/* ---- what is known ---- */

int ls_search_ntrials(const ls_search *s) { return s->ntrials; }
int ls_search_nrungs(const ls_search *s) { return s->nrungs; }
int64_t ls_search_rung_steps(const ls_search *s, int r) { return s->steps[r]; }

int ls_search_reached(const ls_search *s, int t) {
    int r = s->nrungs - 1;
    while (r >= 0 && isnan(cost_of(s, t, r))) r--;
    return r;
}

int ls_search_next_rung(const ls_search *s, int t) { return ls_search_reached(s, t) + 1; }

double ls_search_metric(const ls_search *s, int t, int r) {
    return s->space->rules.maximize ? -cost_of(s, t, r) : cost_of(s, t, r);
}

/* Has it been decided whether the trial goes on from this rung, not the last one? */
static bool is_decided(const ls_search *s, int t, int r) {
    const rung *g = &s->rungs[r];
    bool at_once = s->space->rules.rule == LS_SPACE_STOP || !isfinite(cost_of(s, t, r));
    if (s->space->rules.method == LS_SPACE_PBT) return s->nexchanged > r;
    for (int i = 0; at_once && i < g->nseen; i++)
        if (g->order[i] == t) return true;
    return g->closed;
}

ls_search_state ls_search_state_of(const ls_search *s, int t) {
    int r = ls_search_reached(s, t);
    if (r + 1 < s->trials[t].allowed) return LS_SEARCH_READY;
    if (r == s->nrungs - 1) return isfinite(cost_of(s, t, r)) ? LS_SEARCH_DONE : LS_SEARCH_DIVERGED;
    if (!is_decided(s, t, r)) return LS_SEARCH_WAITING;
    return isfinite(cost_of(s, t, r)) ? LS_SEARCH_STOPPED : LS_SEARCH_DIVERGED;
}

int ls_search_nparts(const ls_search *s, int t) { return s->trials[t].nparts; }

const ls_search_part *ls_search_part_of(const ls_search *s, int t, int part) {
    return &s->trials[t].parts[part];
}

int ls_search_part_at(const ls_search *s, int t, int r) {
    int i = s->trials[t].nparts - 1;
    while (s->trials[t].parts[i].first >= r) i--;
    return i;
}

int ls_search_count(const ls_search *s, int r) {
    int n = 0;
    for (int t = 0; t < s->ntrials; t++) n += ls_search_reached(s, t) >= r;
    return n;
}

/* Does trial a stand before trial b? Those that diverged stand last. */
static bool is_before(const ls_search *s, int a, int b) {
    int ra = ls_search_reached(s, a), rb = ls_search_reached(s, b);
    double x = ra < 0 ? INFINITY : cost_of(s, a, ra), y = rb < 0 ? INFINITY : cost_of(s, b, rb);
    if (isfinite(x) != isfinite(y)) return isfinite(x);
    if (ra != rb) return ra > rb;
    return x != y ? x < y : a < b;
}

void ls_search_rank(const ls_search *s, int *order) {
    for (int t = 0; t < s->ntrials; t++) {
        int i = t;
        for (; i > 0 && is_before(s, t, order[i - 1]); i--) order[i] = order[i - 1];
        order[i] = t;
    }
}

int ls_search_best(const ls_search *s) {
    int best = -1;
    for (int t = 0; t < s->ntrials; t++) {
        int r = ls_search_reached(s, t);
        if (r < 0 || !isfinite(cost_of(s, t, r))) continue;
        if (best < 0 || is_before(s, t, best)) best = t;
    }
    return best;
}

/* ---- how long it takes ---- */

/* Steps of a trial by what is decided so far; whole: one that goes on is trained to the end. */
static int64_t decided_steps(const ls_search *s, int t, bool whole) {
    int reached = ls_search_reached(s, t);
    ls_search_state state = ls_search_state_of(s, t);
    bool over = state == LS_SEARCH_STOPPED || state == LS_SEARCH_DIVERGED;
    if (!over && whole) return s->steps[s->nrungs - 1];
    if (!over && state == LS_SEARCH_READY) return s->steps[ls_search_next_rung(s, t)];
    return reached < 0 ? 0 : s->steps[reached];
}

int64_t ls_search_expected_steps(const ls_search *s) {
    bool whole = s->space->rules.method != LS_SPACE_ASHA;
    double expected = 0, part = (double)s->ntrials;
    int64_t decided = 0;
    for (int t = 0; t < s->ntrials; t++) decided += decided_steps(s, t, whole);
    if (whole) return decided;
    for (int r = 0; r < s->nrungs; r++) {
        expected += part * (double)(s->steps[r] - (r ? s->steps[r - 1] : 0));
        part /= (double)s->space->rules.reduction;
    }
    return (int64_t)expected > decided ? (int64_t)expected : decided;
}
