/* virtual.h - sums that do not depend on the number of workers.
 *
 *     enum { V = 8 };                                  // in each run the same, >= the workers
 *     ls_group_virtual_workers(g, V, &first, &end);    // this worker's: first .. end - 1
 *     for (int v = first; v < end; v++)
 *         gradient_of(samples of v, grads + (v - first) * n);     // n floats
 *     ls_all_reduce_virtual(g, grads, sum, n, LS_F32, LS_SUM, V, &e);
 *
 * A step's samples are cut into V parts, one for each virtual worker. The sum is made in the fixed
 * tree over virtual workers 0 .. V - 1, however they are divided among workers: with the same V and
 * the same contributions it has the same bits for any number of workers, transport and algorithm.
 * ls_all_reduce() sums over workers: with another number of them it has other bits.
 */
#ifndef LOCKSTEP_VIRTUAL_H
#define LOCKSTEP_VIRTUAL_H

#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This worker's virtual workers, [*first_p, *end_p): of worker r of n those from r V / n up to
 * (r + 1) V / n, rounded down. 0 and 0 if V or the group is not valid. */
void ls_group_virtual_workers(const ls_group *g, int virtual_workers, int *first_p, int *end_p);

/* in [own virtual workers][count]: the contributions of this worker's virtual workers, one vector
 * after the other; out [count], at all workers: the reduction of the contributions of all virtual
 * workers. LS_AVG divides by their number. Collective, blocking.
 *
 * in, out  may be the same pointer: out then replaces the first contribution, and the others are
 *          not changed. Else they don't overlap.
 * Memory   The group keeps room for one vector for each whole subtree of the tree that the worker
 *          has, up to 2 log2 V, unless each of them is a single contribution.
 * Halves   LS_BF16 and LS_F16 are rounded at each node of the tree, and not once, as in
 *          ls_all_reduce().
 * Errors   LS_EINVAL: also for fewer virtual workers than workers. LS_EDISAGREE: also if their
 *          number differs. */
ls_status ls_all_reduce_virtual(ls_group *g, const void *in, void *out, size_t count,
                                ls_dtype dtype, ls_op op, int virtual_workers, ls_error *e);

#ifndef LS_NO_CALL_SITES
#define ls_all_reduce_virtual(g, ...) ls_all_reduce_virtual(LS_CALL_SITE(g), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
