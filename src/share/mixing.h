/* mixing.h - gossip: which replicas mix their parameters in a round, and by which weights.
 *
 * D-PSGD: Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", 2017.
 * SGP: Assran et al., "Stochastic Gradient Push for Distributed Deep Learning", 2019, with the
 * push-sum weights of Kempe, Dobra & Gehrke, 2003.
 *
 * All of it follows from the config and the number of the round.
 */
#ifndef LS_SHARE_MIXING_H
#define LS_SHARE_MIXING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "config/choices.h"

enum { LS_MIXING_MOST = 64 /* replicas */ };

typedef struct ls_gossip {
    ls_sync_graph graph;
    ls_sync_algorithm algorithm;
    int replicas;
    uint64_t seed; /* of random graphs */
} ls_gossip;

/* A round. A replica's mix is a mean: the weights of one replica add up to 1. */
typedef struct ls_mixing {
    int replicas;
    double of[LS_MIXING_MOST]
             [LS_MIXING_MOST]; /* of[i][j]: of replica j's parameters in the mix of i */
    /* The push-sum weights after the round; by D-PSGD they are 1. The mean of the replicas by these
     * weights is the same after each round. */
    double mass[LS_MIXING_MOST];
} ls_mixing;

/* LS_EINVAL: the graph does not exist for this number of replicas. */
ls_status ls_gossip_check(const ls_gossip *, ls_error *);

/* mass [replicas]: the push-sum weights before the round, all 1 before the first one; may be those
 * of *m_p. */
void ls_mixing_make(const ls_gossip *, int64_t round, const double *mass, ls_mixing *m_p);

/* Rounds after which the graph repeats; 0: never. */
int ls_gossip_period(const ls_gossip *);

/* The replicas in the mix of replica i, in ascending order, itself among them; returns their
 * number. */
int ls_mixing_terms(const ls_mixing *, int i, int list[LS_MIXING_MOST]);

#endif
