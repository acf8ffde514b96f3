/* virtual.c - lockstep/virtual.h: a sum to which each virtual worker gives a whole
 * vector.
 *
 * A worker adds up the vectors of the largest whole subtrees in its range (its cover, algo/tree.h);
 * the group then finishes the tree over the covers of all workers (coll/virtual.h). A worker whose
 * subtrees are single vectors passes them on where they lie.
 */
#define LS_NO_CALL_SITES
#include "lockstep/virtual.h"
#include "base/round_up.h"

#include <stdlib.h>

#include "base/floats.h"
#include "coll/algo/tree.h"
#include "coll/request.h"
#include "coll/virtual.h"

enum { ALIGN = 64 };

typedef struct virtual_sum {
    const unsigned char *in; /* [end - first][count] */
    void *out;               /* [count] */
    size_t count, nbytes;    /* elements and bytes of a vector */
    ls_dtype dtype;
    ls_op op;
    int V, first, end; /* virtual workers: of all, and the range of this worker */
} virtual_sum;

void ls_group_virtual_workers(const ls_group *g, int virtual_workers, int *first_p, int *end_p) {
    int first = 0, end = 0;
    if (ls_group_size(g) > 0 && virtual_workers > 0)
        ls_tree_range(virtual_workers, NULL, g->rank, g->size, &first, &end);
    if (first_p) *first_p = first;
    if (end_p) *end_p = end;
}

static ls_status check_types(const virtual_sum *x, ls_error *e) {
    if ((unsigned)x->dtype >= LS_NDTYPES)
        return ls_fail(e, LS_EINVAL, "all_reduce_virtual: dtype %d does not exist", (int)x->dtype);
    if ((unsigned)x->op >= LS_NOPS)
        return ls_fail(e, LS_EINVAL, "all_reduce_virtual: operation %d does not exist", (int)x->op);
    if (ls_op_takes(x->op, x->dtype)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "all_reduce_virtual: no %s of %s; it is for %s", ls_op_name(x->op),
                   ls_dtype_name(x->dtype), ls_op_takes_what(x->op));
}

static ls_status check_buffers(const virtual_sum *x, ls_error *e) {
    size_t own = (size_t)(x->end - x->first), align = ls_dtype_align(x->dtype);
    const unsigned char *out = x->out;
    if (x->count == 0) return LS_OK;
    if (x->count > (size_t)PTRDIFF_MAX / ls_dtype_size(x->dtype) / own)
        return ls_fail(e, LS_EINVAL, "all_reduce_virtual: %zu elements are too many", x->count);
    if (!x->in || !out)
        return ls_fail(e, LS_EINVAL, "all_reduce_virtual: %s is NULL, but has %zu elements",
                       x->in ? "out" : "in", x->in ? x->count : own * x->count);
    if ((uintptr_t)x->in % align || (uintptr_t)out % align)
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_virtual: %s is not aligned to its elements of %zu bytes",
                       (uintptr_t)x->in % align ? "in" : "out", align);
    if (x->in == out || out + x->nbytes <= x->in || x->in + own * x->nbytes <= out) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "all_reduce_virtual: in and out overlap, and are not the same pointer");
}

static ls_status check(const ls_group *g, const virtual_sum *x, ls_error *e) {
    if (x->V < g->size)
        return ls_fail(e, LS_EINVAL,
                       "all_reduce_virtual: %d virtual workers for %d workers; each needs one",
                       x->V, g->size);
    LS_TRY(check_types(x, e));
    return check_buffers(x, e);
}

/* The sum of a subtree's vectors, of which `from` [leaves] and `leaf` [leaves] are work memory. */
static void sum_node(const ls_group *g, const virtual_sum *x, ls_node node, ls_node *leaf,
                     const void **from, void *to) {
    int leaves = node.hi - node.lo;
    for (int v = 0; v < leaves; v++) {
        leaf[v] = (ls_node){v, v + 1};
        from[v] = x->in + (size_t)(node.lo - x->first + v) * x->nbytes;
    }
    const ls_tree_sum t = {x->dtype, x->op, leaves, leaves, leaf, from, NULL};
    ls_tree_sum_run(&t, g->end->k, 0, x->count, to);
}

/* *sums_p [n]: the sums of the cover's nodes, one vector after the other. */
static ls_status sum_cover(ls_group *g, const virtual_sum *x, const ls_node *nodes, int n,
                           const void **sums_p, ls_error *e) {
    size_t own = (size_t)(x->end - x->first), lists = own * (sizeof(void *) + sizeof(ls_node));
    lists = ls_round_up(lists, ALIGN);
    LS_TRY(ls_group_grow_work(g, lists + (size_t)n * x->nbytes, "all_reduce_virtual", e));
    const void **from = g->work;
    unsigned char *sums = (unsigned char *)g->work + lists;
    for (int i = 0; i < n; i++)
        sum_node(g, x, nodes[i], (ls_node *)(void *)(from + own), from,
                 sums + (size_t)i * x->nbytes);
    *sums_p = sums;
    return LS_OK;
}

static ls_status run(ls_group *g, const virtual_sum *x, ls_error *e) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int n = ls_tree_cover(x->V, x->first, x->end, nodes);
    const void *sums = x->in;
    if (n < x->end - x->first) LS_TRY(sum_cover(g, x, nodes, n, &sums, e));
    LS_TRY(ls_all_reduce_virtual_start(g,
                                       &(ls_virtual_sum){.V = x->V,
                                                         .in = sums,
                                                         .stride = x->count,
                                                         .out = x->out,
                                                         .dtype = x->dtype,
                                                         .op = x->op,
                                                         .count = x->count},
                                       NULL, e));
    if (x->op == LS_AVG) g->end->k->average(x->dtype, x->count, x->V, x->out);
    return LS_OK;
}

ls_status ls_all_reduce_virtual(ls_group *g, const void *in, void *out, size_t count,
                                ls_dtype dtype, ls_op op, int virtual_workers, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    virtual_sum x = {
        .in = in, .out = out, .count = count, .dtype = dtype, .op = op, .V = virtual_workers};
    if (!e) e = &own;
    LS_TRY(ls_group_check(g, "all_reduce_virtual", e));
    x.nbytes = count * ls_dtype_size(dtype);
    ls_group_virtual_workers(g, x.V, &x.first, &x.end);
    LS_TRY(check(g, &x, e));
    g->form = LS_FORM_VIRTUAL;
    ls_status s = run(g, &x, e);
    g->form = LS_FORM_PLAIN;
    return s;
}
