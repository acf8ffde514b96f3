/* choose.h - chooses the algorithm of a call over a transport: the cheapest by the cost model
 * (algo/cost.h) among those that keep the order of sums.
 *
 * All that it uses of an algorithm is in the algorithm's table (ls_algorithm).
 */
#ifndef LS_COLL_CHOOSE_H
#define LS_COLL_CHOOSE_H

#include "coll/algo/algorithm.h"

/* The cheapest of those that may be chosen. */
const ls_algorithm *ls_choose(const ls_call *, int n, const ls_link *);
/* The cheapest of a list (NULL-terminated; the first makes every call), over hosts. */
const ls_algorithm *ls_choose_among(const ls_algorithm *const *all, const ls_call *,
                                    const ls_hosts *);

/* Explains `chosen` (NULL: the cheapest): its cost, and those of the others. Cut to nbytes. */
void ls_choose_explain(const ls_algorithm *chosen, const ls_call *, int n, const ls_link *,
                       char *text, size_t nbytes);

#endif
