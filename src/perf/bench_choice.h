/* bench_choice.h - lockstep bench comm --algorithm all: every algorithm for an operation,
 * measured alternately, beside the chosen one.
 *
 * Round k of all algorithms precedes round k + 1 of any: a change of the machine's load affects
 * all of them.
 */
#ifndef LS_PERF_BENCH_CHOICE_H
#define LS_PERF_BENCH_CHOICE_H

#include "bench/measure.h"
#include "coll/request.h"

enum { LS_BENCH_CHOICES = 16 };

/* An algorithm, and a group on which it is forced. */
typedef struct ls_bench_choice {
    const char *name;
    bool keeps_order; /* sums in the tree's order for this number of workers: it may be chosen */
    bool chosen;      /* for the size measured last */
    ls_group *group;
    bool owned;    /* the group is closed with this choice */
    double *times; /* [rounds] */
    bench_result result;
} ls_bench_choice;

typedef struct ls_bench_choices {
    ls_bench_choice all[LS_BENCH_CHOICES];
    int n;
    ls_group *chooser; /* the group on which no algorithm is forced */
} ls_bench_choices;

/* Collective on g, on which no algorithm is forced: opens all algorithms for `what`, including
 * shared memory and the transport's own collectives if available. */
ls_status ls_bench_choices_open(ls_bench_choices *, ls_group *g, ls_collective what, int rounds,
                                ls_error *);
void ls_bench_choices_close(ls_bench_choices *);

/* Collective. Measures one size; *group_p is the group that the peer's run() uses. */
void ls_bench_choices_measure(ls_bench_choices *, bench_peer *, const bench_job *, int rounds,
                              ls_group **group_p);

#endif
