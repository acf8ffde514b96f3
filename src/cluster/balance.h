/* balance.h - how virtual workers are best shared out among workers of different speed.
 *
 * Each worker tells how long it computed in a step. Once a few steps of all are known, and other
 * shares would make the slowest worker's step clearly shorter, they are proposed; not again soon
 * after, and the later, the more often they changed. Results don't depend on shares.
 */
#ifndef LS_CLUSTER_BALANCE_H
#define LS_CLUSTER_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_BALANCE_STEPS = 3 /* that count, the latest */ };

typedef struct ls_balance_worker {
    int64_t step; /* the latest that is known; -1: none */
    double seconds[LS_BALANCE_STEPS];
    int n; /* steps known */
} ls_balance_worker;

typedef struct ls_balance {
    int n, V;
    int *first;                 /* [n + 1] the shares now (tree.h) */
    ls_balance_worker *workers; /* [n] */
    int64_t quiet_until;        /* the step before which nothing is proposed */
    int64_t pause;              /* steps of quiet after the next change */
    int told;                   /* the worker that was named as slow; -1: none */
} ls_balance;

/* n workers begin with these shares (NULL: even ones), at a step. How fast others were before is
 * forgotten; how often shares changed, and who was told to be slow, is not. */
void ls_balance_begin(ls_balance *, int n, int V, const int *first, int64_t step);
void ls_balance_free(ls_balance *);

/* Worker w computed for so long in that step. */
void ls_balance_note(ls_balance *, int w, int64_t step, double seconds);

/* A worker that takes much longer for a virtual worker than the others do, and is not the one that
 * was told last: its number, and by what factor; else -1. */
int ls_balance_slow(ls_balance *, double *factor_p);

/* Better shares: first_p [n + 1]. */
bool ls_balance_propose(ls_balance *, int *first_p);

#endif
