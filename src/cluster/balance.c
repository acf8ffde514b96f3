/* balance.c - see balance.h. */
#include "cluster/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "base/mem.h"
#include "coll/algo/tree.h"

/* A slow worker takes this many times as long as the others; a change saves this much; a row is the
 * host's if its fastest worker takes this many times as long as usual. */
static const double SLOW = 1.5, GAIN = 0.12, NOISE = 1.3;
/* In the sum since a worker was slow, each row counts this many times as much as the next one. */
static const double FADES = 0.95;
enum { CALM = 30 /* rows without a slow worker until the last one is forgotten */ };
enum { PAUSE = 5, MOST_PAUSE = 320 };
/* A change costs a new view, and must pay off within this many steps. */
static const double VIEW_S = 0.5, PAYS_WITHIN = 100;

void ls_balance_begin(ls_balance *b, int n, int V, const int *first, int64_t step) {
    bool same = b->pause && n == b->n;
    ls_balance was = *b;
    *b = (ls_balance){.n = n,
                      .V = V,
                      .step = step,
                      .quiet_until = was.quiet_until,
                      .pause = was.pause ? was.pause : PAUSE,
                      .slow = same ? was.slow : -1,
                      .calm = same ? was.calm : 0};
    b->first = LS_NEW_ARRAY(int, (size_t)n + 1);
    b->workers = LS_NEW_ARRAY(ls_balance_worker, (size_t)n);
    for (int w = 0; w < n; w++) {
        ls_tree_range(V, first, w, n, &b->first[w], &b->first[w + 1]);
        if (same) b->workers[w].recent = was.workers[w].recent;
    }
    free(was.first);
    free(was.workers);
}

void ls_balance_free(ls_balance *b) {
    free(b->first);
    free(b->workers);
    *b = (ls_balance){0};
}

/* ---- rows ---- */

/* The worker's report of that step; NULL: there is none. */
static const ls_balance_report *report_of(const ls_balance_worker *x, int64_t steps) {
    for (int i = 0; i < x->nreports && i < LS_BALANCE_REPORTS; i++)
        if (x->reports[i].steps == steps) return &x->reports[i];
    return NULL;
}

static bool all_reported(const ls_balance *b, int64_t steps) {
    for (int w = 0; w < b->n; w++)
        if (!report_of(&b->workers[w], steps)) return false;
    return true;
}

/* The usual time of the fastest worker; 0: not known yet. */
static double usual(const ls_balance *b) {
    double x[LS_BALANCE_USUAL];
    int n = b->nfastest < LS_BALANCE_USUAL ? b->nfastest : LS_BALANCE_USUAL;
    memcpy(x, b->fastest, sizeof x);
    return n < LS_BALANCE_ROWS ? 0 : ls_median(x, (size_t)n);
}

/* Adds the row from the latest one to this step, which all workers have reported. */
static void add_row(ls_balance *b, int64_t steps) {
    double *each = LS_NEW_ARRAY(double, (size_t)b->n), fastest = 0, known = usual(b);
    for (int w = 0; w < b->n; w++) {
        ls_balance_worker *x = &b->workers[w];
        ls_balance_report now = *report_of(x, steps);
        double share = b->first[w + 1] - b->first[w];
        each[w] = (now.seconds - x->base.seconds) / (double)(now.steps - x->base.steps) / share;
        if (w == 0 || each[w] < fastest) fastest = each[w];
        x->base = now;
    }
    b->fastest[b->nfastest++ % LS_BALANCE_USUAL] = fastest;
    bool counts = known == 0 || fastest <= NOISE * known;
    for (int w = 0; w < b->n && counts; w++) {
        ls_balance_worker *x = &b->workers[w];
        x->each[b->nrows % LS_BALANCE_ROWS] = each[w];
        x->recent = FADES * x->recent + each[w];
    }
    b->nrows += counts;
    b->calm += counts;
    free(each);
}

void ls_balance_note(ls_balance *b, int w, int64_t steps, double seconds) {
    ls_balance_worker *x = &b->workers[w];
    if (steps <= x->base.steps) return;
    if (x->nreports > 0 && steps <= x->reports[(x->nreports - 1) % LS_BALANCE_REPORTS].steps)
        return;
    x->reports[x->nreports++ % LS_BALANCE_REPORTS] = (ls_balance_report){steps, seconds};
    if (all_reported(b, steps)) add_row(b, steps);
}

/* ---- slow workers ---- */

/* Seconds that each worker takes for a virtual worker: [n] each, over the latest rows. */
typedef struct speeds {
    double *least, *median, *most;
} speeds;

/* False: not known yet. Otherwise the caller frees s->least. */
static bool find_speeds(const ls_balance *b, speeds *s) {
    size_t n = (size_t)b->n;
    if (b->nrows < LS_BALANCE_ROWS) return false;
    s->least = LS_NEW_ARRAY(double, 3 * n);
    s->median = s->least + n;
    s->most = s->median + n;
    for (size_t w = 0; w < n; w++) {
        double x[LS_BALANCE_ROWS];
        memcpy(x, b->workers[w].each, sizeof x);
        s->median[w] = ls_median(x, LS_BALANCE_ROWS); /* sorts */
        s->least[w] = x[0];
        s->most[w] = x[LS_BALANCE_ROWS - 1];
    }
    return true;
}

/* The median of x [n] without that of worker w. */
static double median_of_others(const double *x, int n, int w) {
    double *others = LS_NEW_ARRAY(double, (size_t)n);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (i != w) others[m++] = x[i];
    double median = ls_median(others, (size_t)m);
    free(others);
    return median;
}

/* Has this worker been slow over the whole time since another one was found slow? */
static bool is_slow_since(const ls_balance *b, int w) {
    double *recent = LS_NEW_ARRAY(double, (size_t)b->n);
    for (int i = 0; i < b->n; i++) recent[i] = b->workers[i].recent;
    bool slow = recent[w] > SLOW * median_of_others(recent, b->n, w);
    free(recent);
    return slow;
}

static void note_slow(ls_balance *b, int w) {
    b->slow = w;
    for (int i = 0; i < b->n; i++) {
        ls_balance_worker *x = &b->workers[i];
        x->recent = 0;
        for (int k = 0; k < LS_BALANCE_ROWS; k++) x->recent += x->each[k];
    }
}

/* A worker is slow if it takes longer in its best row than the others do in their worst. */
int ls_balance_slow(ls_balance *b, double *factor_p) {
    speeds s;
    int slowest = 0;
    if (b->n < 2 || !find_speeds(b, &s)) return -1;
    for (int w = 1; w < b->n; w++)
        if (s.median[w] > s.median[slowest]) slowest = w;
    double worst = median_of_others(s.most, b->n, slowest);
    bool slow = s.least[slowest] > SLOW * worst;
    *factor_p = s.median[slowest] / worst;
    free(s.least);
    if (b->slow >= 0 && !slow && b->calm >= CALM) b->slow = -1;
    if (!slow) return -1;
    b->calm = 0;
    if (b->slow == slowest || (b->slow >= 0 && !is_slow_since(b, slowest))) return -1;
    note_slow(b, slowest);
    return slowest;
}

/* ---- ranges ---- */

/* The longest time of any worker, each with counts[w] virtual workers. */
static double longest(const double *each, const int *counts, int n) {
    double most = 0;
    for (int w = 0; w < n; w++)
        if (each[w] * counts[w] > most) most = each[w] * counts[w];
    return most;
}

/* One to each, then each further one to the worker that is then done first: the least longest
 * time. */
static void share_out(const double *each, int n, int V, int *counts) {
    for (int w = 0; w < n; w++) counts[w] = 1;
    for (int left = V - n; left > 0; left--) {
        int best = 0;
        for (int w = 1; w < n; w++)
            if (each[w] * (counts[w] + 1) < each[best] * (counts[best] + 1)) best = w;
        counts[best]++;
    }
}

/* Do the new ranges pay off even if each worker is as fast as in its best row with the old ranges,
 * and as slow as in its worst row with the new ones? */
static bool pays(const ls_balance *b, const speeds *s, const int *now, const int *better) {
    double before = longest(s->least, now, b->n), after = longest(s->most, better, b->n);
    return after < (1 - GAIN) * before && (before - after) * PAYS_WITHIN > VIEW_S;
}

bool ls_balance_propose(ls_balance *b, int *first_p) {
    int64_t step = b->step + b->workers[0].base.steps;
    speeds s;
    if (b->n == 1 || b->V == b->n || step < b->quiet_until || !find_speeds(b, &s)) return false;
    int *now = LS_NEW_ARRAY(int, 2 * (size_t)b->n), *better = now + b->n;
    for (int w = 0; w < b->n; w++) now[w] = b->first[w + 1] - b->first[w];
    share_out(s.median, b->n, b->V, better);
    bool found = pays(b, &s, now, better);
    if (found) {
        bool calm = step > b->quiet_until + 4 * b->pause;
        b->pause = calm ? PAUSE : b->pause < MOST_PAUSE ? 2 * b->pause : MOST_PAUSE;
        b->quiet_until = step + b->pause;
        first_p[0] = 0;
        for (int w = 0; w < b->n; w++) first_p[w + 1] = first_p[w] + better[w];
    }
    free(now);
    free(s.least);
    return found;
}
