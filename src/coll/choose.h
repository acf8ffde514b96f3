/* choose.h - which algorithm for a call over a transport, by a small cost model. */
#ifndef LS_COLL_CHOOSE_H
#define LS_COLL_CHOOSE_H

#include "coll/algorithm.h"

/* What the links and the machine can do. */
typedef struct ls_link {
    double latency_s; /* of a message */
    double byte_s;    /* a byte, one way */
    double reduce_s;  /* a byte that is added */
} ls_link;

/* Measured on loopback TCP; see docs/collectives.md. */
extern const ls_link ls_link_default;

/* Predicted seconds of a call with n workers. */
double ls_choose_cost(const ls_algorithm *, const ls_call *, int n, const ls_link *);

/* The cheapest of those that do the call and, where it reduces, keep the order of the tree. */
const ls_algorithm *ls_choose(const ls_call *, int n, const ls_link *);

/* How a long message is cut, in elements: so that parts overlap, and each is still worth its
 * latency. */
size_t ls_choose_piece(const ls_call *, int n);

#endif
