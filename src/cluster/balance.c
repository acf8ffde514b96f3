/* balance.c - see balance.h. */
#include "cluster/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/median.h"
#include "base/mem.h"
#include "coll/algo/tree.h"

/* A slow worker takes so many times as long as the median; shares are changed for so much. */
static const double SLOW = 1.5, GAIN = 0.12;
enum { PAUSE = 5, MOST_PAUSE = 320 };
/* A change costs a new view, and is to pay within so many steps. */
static const double VIEW_S = 0.5, PAYS_WITHIN = 100;

void ls_balance_begin(ls_balance *b, int n, int V, const int *first, int64_t step) {
    int64_t pause = b->pause ? b->pause : PAUSE, quiet = b->quiet_until;
    int told = b->pause && n == b->n ? b->told : -1;
    free(b->first);
    free(b->workers);
    *b = (ls_balance){.n = n, .V = V, .quiet_until = quiet, .pause = pause, .told = told};
    b->first = LS_NEW_ARRAY(int, (size_t)n + 1);
    b->workers = LS_NEW_ARRAY(ls_balance_worker, (size_t)n);
    for (int w = 0; w < n; w++) {
        ls_tree_range(V, first, w, n, &b->first[w], &b->first[w + 1]);
        b->workers[w].step = step - 1;
    }
}

void ls_balance_free(ls_balance *b) {
    free(b->first);
    free(b->workers);
    *b = (ls_balance){0};
}

void ls_balance_note(ls_balance *b, int w, int64_t step, double seconds) {
    ls_balance_worker *x = &b->workers[w];
    if (step <= x->step) return;
    x->step = step;
    x->seconds[x->n++ % LS_BALANCE_STEPS] = seconds;
}

/* Seconds that each worker takes for a virtual worker: [n] each, of the latest steps. */
typedef struct speeds {
    double *least, *median, *most;
} speeds;

/* False: not known yet. Otherwise the caller frees it by s->least. */
static bool find_speeds(const ls_balance *b, speeds *s) {
    size_t n = (size_t)b->n;
    for (size_t w = 0; w < n; w++)
        if (b->workers[w].n < LS_BALANCE_STEPS) return false;
    s->least = LS_NEW_ARRAY(double, 3 * n);
    s->median = s->least + n;
    s->most = s->median + n;
    for (size_t w = 0; w < n; w++) {
        double x[LS_BALANCE_STEPS], share = b->first[w + 1] - b->first[w];
        memcpy(x, b->workers[w].seconds, sizeof x);
        s->median[w] = ls_median(x, LS_BALANCE_STEPS) / share; /* sorts */
        s->least[w] = x[0] / share;
        s->most[w] = x[LS_BALANCE_STEPS - 1] / share;
    }
    return true;
}

/* Slow is who takes longer in its best step than the others do in their worst. */
int ls_balance_slow(ls_balance *b, double *factor_p) {
    speeds s;
    int slowest = 0, others = 0;
    if (b->n < 2 || !find_speeds(b, &s)) return -1;
    for (int w = 1; w < b->n; w++)
        if (s.median[w] > s.median[slowest]) slowest = w;
    double *most = LS_NEW_ARRAY(double, (size_t)b->n);
    for (int w = 0; w < b->n; w++)
        if (w != slowest) most[others++] = s.most[w];
    double worst = ls_median(most, (size_t)others);
    *factor_p = s.median[slowest] / worst;
    bool is_slow = s.least[slowest] > SLOW * worst, told = b->told == slowest;
    if (is_slow || told) b->told = *factor_p > 1 ? slowest : -1;
    free(most);
    free(s.least);
    return is_slow && !told ? slowest : -1;
}

/* The longest time of any worker, each with shares[w] virtual workers. */
static double longest(const double *each, const int *shares, int n) {
    double most = 0;
    for (int w = 0; w < n; w++)
        if (each[w] * shares[w] > most) most = each[w] * shares[w];
    return most;
}

/* One to each, then each further one to whoever is then done first: the least longest time. */
static void share_out(const double *each, int n, int V, int *shares) {
    for (int w = 0; w < n; w++) shares[w] = 1;
    for (int left = V - n; left > 0; left--) {
        int best = 0;
        for (int w = 1; w < n; w++)
            if (each[w] * (shares[w] + 1) < each[best] * (shares[best] + 1)) best = w;
        shares[best]++;
    }
}

static int64_t latest_step(const ls_balance *b) {
    int64_t step = b->workers[0].step;
    for (int w = 1; w < b->n; w++)
        if (b->workers[w].step < step) step = b->workers[w].step;
    return step;
}

/* Does it pay, even if fast workers are as slow, and slow ones as fast, as they have been? */
static bool pays(const ls_balance *b, const speeds *s, const int *now, const int *better) {
    double before = longest(s->least, now, b->n), after = longest(s->most, better, b->n);
    return after < (1 - GAIN) * before && (before - after) * PAYS_WITHIN > VIEW_S;
}

bool ls_balance_propose(ls_balance *b, int *first_p) {
    int64_t step = latest_step(b);
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
