/* balance.h - how virtual workers are best divided among the workers of a host that differ in
 * speed.
 *
 * Each worker reports how long it has computed. Two reports of the same step from all workers make
 * a row: what each took for a virtual worker, in the same steps. The latest rows decide:
 *
 *   slow     one worker takes much longer than the others, in each of these rows
 *   propose  other ranges make the slowest worker's step clearly shorter. After a change, none is
 *            proposed for a while; the more often ranges have changed, the longer
 *
 * Noise is no worker's fault. If even the fastest worker is much slower than usual in a row, the
 * host was slow, and the row does not count. Soon after one worker was slow, another one counts as
 * slow only if it was slow over that whole time: slowness that moves from worker to worker comes
 * from none of them.
 *
 * Results of training don't depend on the ranges.
 */
#ifndef LS_CLUSTER_BALANCE_H
#define LS_CLUSTER_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LS_BALANCE_ROWS = 3,    /* the latest rows, which decide */
    LS_BALANCE_REPORTS = 4, /* a worker's, until the others have reported the same steps */
    LS_BALANCE_USUAL = 9    /* rows that show how fast the host usually is */
};

/* How long a worker has computed in its first `steps` steps of the view. */
typedef struct ls_balance_report {
    int64_t steps;
    double seconds;
} ls_balance_report;

typedef struct ls_balance_worker {
    ls_balance_report reports[LS_BALANCE_REPORTS]; /* a ring */
    int nreports;
    ls_balance_report base;       /* at the latest row */
    double each[LS_BALANCE_ROWS]; /* a ring: seconds for a virtual worker, a step */
    double recent; /* sum of these since a worker was found slow; older ones count less */
} ls_balance_worker;

typedef struct ls_balance {
    int n, V;
    int *first;                       /* [n + 1] the current ranges (tree.h) */
    ls_balance_worker *workers;       /* [n] */
    int64_t step;                     /* at the beginning of the view */
    int nrows;                        /* rows that count */
    double fastest[LS_BALANCE_USUAL]; /* a ring: the fastest worker's time in each row */
    int nfastest;
    int64_t quiet_until; /* the step before which nothing is proposed */
    int64_t pause;       /* steps of quiet after the next change */
    int slow;            /* the worker that was found last; -1: none */
    int calm;            /* rows since one was slow */
} ls_balance;

/* A view of n workers begins at `step` with these ranges (NULL: even ones). Forgets how fast
 * workers were before, but not how often ranges changed and which workers were slow. */
void ls_balance_begin(ls_balance *, int n, int V, const int *first, int64_t step);
void ls_balance_free(ls_balance *);

/* Worker w has computed for `seconds` in the first `steps` steps of the view, in total. */
void ls_balance_note(ls_balance *, int w, int64_t steps, double seconds);

/* Returns the number of a worker that takes much longer for a virtual worker than the others do,
 * and was not found before, and the factor; -1: there is none. */
int ls_balance_slow(ls_balance *, double *factor_p);

/* Are there better ranges? first_p [n + 1]. */
bool ls_balance_propose(ls_balance *, int *first_p);

#endif
