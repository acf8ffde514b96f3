/* choose.h - which algorithm for a call over a transport, by a small cost model. */
#ifndef LS_COLL_CHOOSE_H
#define LS_COLL_CHOOSE_H

#include "coll/algo/algorithm.h"
#include "coll/link.h"

/* What a call takes. */
typedef struct ls_cost {
    /* Of the longest chain of things that wait for each other: messages, bytes sent, bytes added.
     */
    double chain_messages, chain_sent, chain_added;
    /* Of a worker, on average over all. */
    double messages, sent, added;
} ls_cost;

/* n workers; c->hosts is not looked at. */
ls_cost ls_choose_cost(const ls_algorithm *, const ls_call *, int n);
/* Predicted seconds: of the chain, when nothing else moves, and of all's work, when all work at
 * once; the call takes the longer one, and some of the other. */
double ls_choose_chain_seconds(const ls_cost *, const ls_link *);
double ls_choose_work_seconds(const ls_cost *, const ls_link *);
double ls_choose_seconds(const ls_algorithm *, const ls_call *, int n, const ls_link *);

/* May it be chosen? It does the call and, where it reduces, keeps the order of the tree. */
bool ls_choose_allows(const ls_algorithm *, const ls_call *, int n);
/* The cheapest of those. */
const ls_algorithm *ls_choose(const ls_call *, int n, const ls_link *);

/* How a long message is cut, in elements: so that parts overlap, and each is still worth its
 * latency. */
size_t ls_choose_piece(const ls_call *, int n);

/* Why `chosen` (NULL: the cheapest): what it costs, and the others. Cut to nbytes. */
void ls_choose_explain(const ls_algorithm *chosen, const ls_call *, int n, const ls_link *,
                       char *text, size_t nbytes);

#endif
