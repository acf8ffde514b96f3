/* methods.h - how far each trial of a search is trained: the decisions of grid, random, ASHA and
 * population-based training.
 *
 * Trials are trained from one rung to the next: rungs are numbers of steps, the last one is that of
 * a whole trial. The caller reports the metric of a trial at a rung, and the search then decides
 * again. Its decisions depend only on the space and on these metrics, not on the order in which
 * they are reported:
 *
 * asha, rule promote: each rung considers the trials that reach it in a fixed order, those of the
 *     first rung by number, those of another in the order of their promotions. When m of them have
 *     metrics, the best floor(m / reduction) go on. If no more trials will come and none went on,
 *     the best one does. Source: Li et al., "A system for massively parallel hyperparameter
 *     tuning", MLSys 2020 (arXiv 1810.05934), algorithm 2, with this order in place of the
 *     arrival's.
 * asha, rule stop: in the same order; a trial goes on if it is no worse than the quantile
 *     1 - 1 / reduction of those before it, or is the first. Source: AsyncHyperBandScheduler of Ray
 *     Tune, with one trial at a time.
 * pbt: at each rung all trials wait for each other. Each of the worst `quantile` of them goes on
 *     from the checkpoint of one of the best, with changed values (ls_space_explore()). Source:
 *     Jaderberg et al. (arXiv 1711.09846); PopulationBasedTraining of Ray Tune with synch=True.
 *
 * A trial whose loss is no number any more does not go on.
 */
#ifndef LS_SEARCH_METHODS_H
#define LS_SEARCH_METHODS_H

#include "search/space.h"

typedef struct ls_search ls_search;

/* A part of a trial with the same values, in a run directory of its own. All trials begin with one
 * part; an exchange of pbt begins another. */
typedef struct ls_search_part {
    ls_space_point point;
    int first;       /* rung after which it begins; -1: it begins with step 0 */
    int source;      /* the trial whose checkpoint of that rung it begins with; -1: none */
    int source_part; /* and the part of that trial */
} ls_search_part;

typedef enum ls_search_state {
    LS_SEARCH_READY,    /* it can be trained to its next rung */
    LS_SEARCH_WAITING,  /* metrics of others are missing */
    LS_SEARCH_STOPPED,  /* others are better */
    LS_SEARCH_DIVERGED, /* its loss is no number any more */
    LS_SEARCH_DONE      /* it has all steps */
} ls_search_state;

/* `base` is the config that is searched; both live as long as the search. */
ls_search *ls_search_open(const ls_space *, const ls_config *base);
void ls_search_close(ls_search *);

int ls_search_ntrials(const ls_search *);
int ls_search_nrungs(const ls_search *);
int64_t ls_search_rung_steps(const ls_search *, int rung);

/* The metric of a trial at a rung; INFINITY or NAN: it diverged. Call ls_search_decide() after
 * it. */
void ls_search_report(ls_search *, int trial, int rung, double metric);
void ls_search_decide(ls_search *);

ls_search_state ls_search_state_of(const ls_search *, int trial);
/* The rung to which it is trained next, if it is ready. */
int ls_search_next_rung(const ls_search *, int trial);
/* The metric of a trial at a rung; NAN: not known. */
double ls_search_metric(const ls_search *, int trial, int rung);
/* The last rung that it has reached, diverged or not; -1: none. */
int ls_search_reached(const ls_search *, int trial);

int ls_search_nparts(const ls_search *, int trial);
const ls_search_part *ls_search_part_of(const ls_search *, int trial, int part);
/* The part in which it is trained to this rung. */
int ls_search_part_at(const ls_search *, int trial, int rung);

/* Steps of all trials: about as many as the method will train, but no fewer than those that it has
 * decided on. */
int64_t ls_search_expected_steps(const ls_search *);

/* How many trials came to a rung, so far. */
int ls_search_count(const ls_search *, int rung);
/* The trial with the best metric at the highest rung that any has reached, of equal ones the first;
 * -1: none. */
int ls_search_best(const ls_search *);
/* Trials [ls_search_ntrials()]: by the highest rung that each reached, then by its metric. */
void ls_search_rank(const ls_search *, int *order);

#endif
