/* calls.c - the collectives of group.h: arguments are checked, then a request runs. */
#define LS_NO_CALL_SITES
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/floats.h"
#include "base/mem.h"
#include "coll/algo/tree.h"
#include "coll/request.h"
#include "coll/virtual.h"

/* In place of a count: each worker has its own, in `counts`. */
static const size_t UNEVEN = SIZE_MAX;

/* A call as the user made it. */
typedef struct asked {
    ls_call call;
    const void *in;
    void *out;
    size_t nin, nout; /* elements of each, at this worker */
    ls_in_place place;
    ls_settle settle;
} asked;

/* ---- checks ---- */

static ls_status check_reduction(const ls_group *g, const ls_call *c, ls_error *e) {
    const char *name = ls_collective_name(c->what);
    size_t nbytes = c->by->element_nbytes, all = (size_t)g->size * nbytes;
    if (!c->by->combine)
        return ls_fail(e, LS_EINVAL, "%s: the reduction, or its combine(), is NULL", name);
    if (nbytes < 1 || nbytes > LS_MOST_ELEMENT)
        return ls_fail(e, LS_EINVAL, "%s: an element of %zu bytes; a reduction's have 1 to %d",
                       name, nbytes, (int)LS_MOST_ELEMENT);
    if (all <= LS_SHARED_ELEMENTS) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: elements of %zu bytes, of %d workers together more than %d KiB; use "
                   "smaller ones",
                   name, nbytes, g->size, LS_SHARED_ELEMENTS / 1024);
}

static ls_status check_types(const ls_group *g, const ls_call *c, ls_error *e) {
    const char *name = ls_collective_name(c->what);
    if (c->by) return check_reduction(g, c, e);
    if ((unsigned)c->dtype >= LS_NDTYPES)
        return ls_fail(e, LS_EINVAL, "%s: dtype %d does not exist", name, (int)c->dtype);
    if (!ls_collective_reduces(c->what)) return LS_OK;
    if ((unsigned)c->op >= LS_NOPS)
        return ls_fail(e, LS_EINVAL, "%s: operation %d does not exist", name, (int)c->op);
    if (c->V && c->V < g->size)
        return ls_fail(e, LS_EINVAL, "%s: %d virtual workers for %d workers", name, c->V, g->size);
    if (c->op == LS_AVG && ls_collective_is_prefix(c->what))
        return ls_fail(e, LS_EINVAL, "%s: there are no averages; use LS_SUM", name);
    if (ls_op_takes(c->op, c->dtype)) return LS_OK;
    if (c->op == LS_AVG)
        return ls_fail(e, LS_EINVAL, "%s: no average of %s; use LS_SUM, or a floating-point type",
                       name, ls_dtype_name(c->dtype));
    return ls_fail(e, LS_EINVAL, "%s: no %s of %s; it is for %s", name, ls_op_name(c->op),
                   ls_dtype_name(c->dtype), ls_op_takes_what(c->op));
}

static ls_status check_rank(const ls_group *g, const char *name, const char *what, int rank,
                            ls_error *e) {
    if (rank >= 0 && rank < g->size) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s %d is not in 0..%d", name, what, rank, g->size - 1);
}

/* The bytes of all workers' blocks together must be addressable. */
static ls_status check_count(const ls_group *g, const char *name, size_t count, ls_dtype dtype,
                             ls_error *e) {
    if (count <= (size_t)PTRDIFF_MAX / ls_dtype_size(dtype) / (size_t)g->size) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %zu elements (%zd) are too many", name, count,
                   (ssize_t)count);
}

static ls_status check_buffer(const char *name, const char *what, const void *p, size_t count,
                              ls_dtype dtype, ls_error *e) {
    if (count == 0) return LS_OK;
    if (!p) return ls_fail(e, LS_EINVAL, "%s: %s is NULL, but has %zu elements", name, what, count);
    if ((uintptr_t)p % ls_dtype_align(dtype))
        return ls_fail(e, LS_EINVAL, "%s: %s is not aligned to its elements of %zu bytes", name,
                       what, ls_dtype_align(dtype));
    return LS_OK;
}

/* Moves this worker's input to its own block of out, so that the call is in place. */
static void lay_in(asked *a, size_t own_block) {
    size_t size = ls_dtype_size(a->call.dtype);
    unsigned char *own = (unsigned char *)a->out + own_block * size;
    if (own != a->in) memmove(own, a->in, a->nin * size); /* others may read what is in place */
    a->in = own;
    a->place = (ls_in_place){LS_IN_IN_OUT, own_block};
}

/* Has the result computed in this worker's own block of in, and moved to out at the end. */
static void lay_out(asked *a, size_t own_block) {
    size_t size = ls_dtype_size(a->call.dtype);
    unsigned char *own = (unsigned char *)(uintptr_t)a->in + own_block * size;
    a->settle = (ls_settle){a->out, own, a->nout * size};
    a->out = own;
    a->place = (ls_in_place){LS_OUT_IN_IN, own_block};
}

/* Allows or refuses an overlap of in and out. The answer must not depend on the worker's rank: else
 * a worker would wait for ever in a call that another one refuses. */
static ls_status check_overlap(asked *a, size_t own_block, ls_error *e) {
    size_t size = ls_dtype_size(a->call.dtype);
    const unsigned char *in = a->in, *out = a->out;
    bool disjoint =
        a->nin == 0 || a->nout == 0 || in + a->nin * size <= out || out + a->nout * size <= in;
    if (disjoint) return LS_OK;
    switch (a->call.what) {
    case LS_CALL_ALL_GATHER:
    case LS_CALL_GATHER:
    case LS_CALL_GATHER_V: lay_in(a, own_block); return LS_OK;
    case LS_CALL_REDUCE_SCATTER:
    case LS_CALL_SCATTER:
    case LS_CALL_SCATTER_V:
        if (a->call.V && out != in + own_block * size) break;
        lay_out(a, own_block);
        return LS_OK;
    case LS_CALL_ALL_REDUCE:
    case LS_CALL_REDUCE:
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN:
    case LS_CALL_ALL_TO_ALL:
        if (in != out) break;
        a->place = (ls_in_place){a->nout >= a->nin ? LS_IN_IN_OUT : LS_OUT_IN_IN, 0};
        return LS_OK;
    default: break;
    }
    return ls_fail(e, LS_EINVAL, "%s: in and out overlap", ls_collective_name(a->call.what));
}

/* ---- sizes ---- */

static size_t sum_of(const size_t *counts, int n) {
    size_t sum = 0;
    for (int i = 0; i < n; i++) sum += counts[i];
    return sum;
}

/* Inputs of this worker beyond its first: it has one for each leaf. */
static size_t more_inputs(const ls_group *g, const ls_call *c) {
    ls_node nodes[LS_TREE_MAX_COVER];
    ls_tree_parts parts = ls_call_parts(c);
    return (size_t)ls_tree_parts_cover(&parts, g->rank, g->size, nodes) - 1;
}

static size_t size_up_pairs(const ls_group *g, asked *a) {
    const ls_call *c = &a->call;
    size_t own_in = 0, own_out = 0;
    for (int i = 0; i < g->size; i++) {
        if (i == g->rank) own_in = a->nin, own_out = a->nout;
        a->nin += ls_call_sends(c, g->rank, i);
        a->nout += ls_call_receives(c, g->rank, i);
    }
    return c->what == LS_CALL_SCATTER_V ? own_in : own_out;
}

/* Fills in the elements of in and out at this worker; returns where its own block begins in the
 * larger of the two. */
static size_t size_up(const ls_group *g, asked *a) {
    const ls_call *c = &a->call;
    size_t n = (size_t)g->size, r = (size_t)g->rank;
    size_t all = c->counts ? sum_of(c->counts, g->size) : n * c->count;
    size_t own = c->counts ? c->counts[r] : c->count;
    bool root = c->root == g->rank;
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER: a->nin = all + more_inputs(g, c) * c->stride, a->nout = own; break;
    case LS_CALL_ALL_GATHER: a->nin = own, a->nout = all; break;
    case LS_CALL_BROADCAST: a->nin = 0, a->nout = c->count; break;
    case LS_CALL_REDUCE: a->nin = c->count, a->nout = root ? c->count : 0; break;
    case LS_CALL_EXSCAN: a->nin = c->count, a->nout = r ? c->count : 0; break;
    case LS_CALL_GATHER: a->nin = c->count, a->nout = root ? all : 0; break;
    case LS_CALL_SCATTER: a->nin = root ? all : 0, a->nout = c->count; break;
    case LS_CALL_ALL_TO_ALL: a->nin = a->nout = all; break;
    case LS_CALL_ALL_TO_ALL_V:
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: return size_up_pairs(g, a);
    case LS_CALL_BARRIER:
    case LS_NCALLS: break;
    default: a->nin = c->count + more_inputs(g, c) * c->stride, a->nout = c->count; break;
    }
    return c->counts ? sum_of(c->counts, g->rank) : r * c->count;
}

static ls_status check_sum(const ls_group *g, const ls_call *c, const size_t *counts, ls_error *e) {
    size_t left = (size_t)PTRDIFF_MAX / ls_dtype_size(c->dtype);
    for (int i = 0; i < g->size; i++) {
        if (counts[i] > left)
            return ls_fail(e, LS_EINVAL, "%s: %zu elements of worker %d are too many",
                           ls_collective_name(c->what), counts[i], i);
        left -= counts[i];
    }
    return LS_OK;
}

static ls_status check_counts(const ls_group *g, const ls_call *c, ls_error *e) {
    const char *name = ls_collective_name(c->what);
    if (c->counts) return check_sum(g, c, c->counts, e);
    if (!ls_collective_is_pairwise(c->what)) return check_count(g, name, c->count, c->dtype, e);
    LS_TRY(check_count(g, name, c->own, c->dtype, e));
    if (c->sends) LS_TRY(check_sum(g, c, c->sends, e));
    if (c->receives) LS_TRY(check_sum(g, c, c->receives, e));
    size_t out = ls_call_sends(c, g->rank, g->rank), in = ls_call_receives(c, g->rank, g->rank);
    if (out == in) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: this worker, %d, sends itself %zu elements, but expects %zu from itself",
                   name, g->rank, out, in);
}

/* Bad arguments are refused here and nowhere else: outputs are untouched, the group stays usable.
 */
static ls_status check(ls_group *g, asked *a, ls_error *e) {
    const ls_call *c = &a->call;
    const char *name = ls_collective_name(c->what);
    LS_TRY(check_types(g, c, e));
    LS_TRY(check_rank(g, name, "root", c->root, e));
    LS_TRY(check_counts(g, c, e));
    size_t own_block = size_up(g, a);
    LS_TRY(check_buffer(name, "in", a->in, a->nin, c->dtype, e));
    LS_TRY(check_buffer(name, c->what == LS_CALL_BROADCAST ? "buf" : "out", a->out, a->nout,
                        c->dtype, e));
    return check_overlap(a, own_block, e);
}

/* ---- running ---- */

static ls_status start(ls_group *g, asked *a, ls_request *r, ls_error *e) {
    size_t size = ls_dtype_size(a->call.dtype);
    const ls_operands o = {a->in, a->out, a->nin * size, a->nout * size, a->place};
    return ls_request_start(g, &a->call, &o, r, e);
}

static bool lacks_counts(const ls_group *g, const ls_call *c) {
    bool all = c->what == LS_CALL_ALL_TO_ALL_V, root = c->root == g->rank;
    return ((all || (c->what == LS_CALL_SCATTER_V && root)) && !c->sends) ||
           ((all || (c->what == LS_CALL_GATHER_V && root)) && !c->receives);
}

/* r is done. */
static void settle(const ls_request *r) {
    const ls_settle *x = &r->settle;
    if (x->nbytes && x->to != x->from) memmove(x->to, x->from, x->nbytes);
}

/* After a start of r with status s: waits for r if r_p is NULL, else hands r over to the caller. */
static ls_status wait_or_return(ls_group *g, ls_request *r, ls_status s, ls_request **r_p,
                                ls_error *e) {
    if (!r_p) {
        LS_TRY(s);
        LS_TRY(ls_request_wait(r, -1, e));
        settle(r);
        return LS_OK;
    }
    r->owned = true;
    if (s == LS_OK)
        *r_p = r;
    else
        ls_slab_give(&g->requests, r);
    return s;
}

/* Blocking if r_p is NULL. */
static ls_status run(ls_group *g, asked a, ls_request **r_p, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(ls_group_check(g, ls_collective_name(a.call.what), e));
    if (lacks_counts(g, &a.call))
        return ls_fail(e, LS_EINVAL, "%s: counts are NULL", ls_collective_name(a.call.what));
    if (a.call.what == LS_CALL_REDUCE_SCATTER || a.call.what == LS_CALL_ALL_GATHER) {
        bool uneven = a.call.count == UNEVEN;
        if (uneven && !a.call.counts)
            return ls_fail(e, LS_EINVAL, "%s: counts is NULL", ls_collective_name(a.call.what));
        if (uneven) a.call.count = 0;
    }
    LS_TRY(check(g, &a, e));
    ls_request local, *r = r_p ? ls_slab_take(&g->requests) : &local;
    ls_status s = start(g, &a, r, e);
    r->settle = a.settle;
    return wait_or_return(g, r, s, r_p, e);
}

static ls_status check_message(const ls_group *g, const ls_single_call *c, ls_error *e) {
    const char *name = c->send ? "send" : "recv";
    LS_TRY(ls_group_check(g, name, e));
    if ((unsigned)c->dtype >= LS_NDTYPES)
        return ls_fail(e, LS_EINVAL, "%s: dtype %d does not exist", name, (int)c->dtype);
    LS_TRY(check_rank(g, name, c->send ? "to" : "from", c->peer, e));
    if (c->peer == g->rank)
        return ls_fail(e, LS_EINVAL, "%s: %d is this worker itself", name, c->peer);
    LS_TRY(check_count(g, name, c->count, c->dtype, e));
    if (c->most && c->count * ls_dtype_size(c->dtype) > c->most)
        return ls_fail(e, LS_EINVAL, "%s: %zu elements of %s are more than %zu bytes", name,
                       c->count, ls_dtype_name(c->dtype), c->most);
    return check_buffer(name, "buf", c->buf, c->count, c->dtype, e);
}

/* Blocking if r_p is NULL. */
static ls_status run_message(ls_group *g, ls_single_call c, ls_request **r_p, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_message(g, &c, e));
    ls_request local, *r = r_p ? ls_slab_take(&g->requests) : &local;
    ls_status s = ls_request_start_message(g, &c, r, e);
    return wait_or_return(g, r, s, r_p, e);
}

/* ---- waiting ---- */

/* A request that is NULL is done. */
static ls_status check_request(ls_request *const *r_p, const char *name, ls_error *e) {
    if (!r_p) return ls_fail(e, LS_EINVAL, "%s: no request", name);
    if (!*r_p) return LS_OK;
    return (*r_p)->g->end ? ls_group_check((*r_p)->g, name, e)
                          : ls_fail(e, LS_EINVAL, "%s: the request's group is closed", name);
}

ls_status ls_test(ls_request **r_p, bool *done_p, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_request(r_p, "test", e));
    if (!done_p) return ls_fail(e, LS_EINVAL, "test: no place for the answer");
    if (*r_p && !(*r_p)->done) LS_TRY(ls_request_test(*r_p, e));
    *done_p = !*r_p || (*r_p)->done;
    return *done_p ? ls_wait(r_p, -1, e) : LS_OK;
}

static ls_status check_timeout(double timeout_s, const char *name, ls_error *e) {
    return isnan(timeout_s) ? ls_fail(e, LS_EINVAL, "%s: timeout_s is not a number", name) : LS_OK;
}

ls_status ls_wait(ls_request **r_p, double timeout_s, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_request(r_p, "wait", e));
    LS_TRY(check_timeout(timeout_s, "wait", e));
    if (!*r_p) return LS_OK;
    LS_TRY(ls_request_wait(*r_p, ls_clock_ns_of(timeout_s), e));
    settle(*r_p);
    ls_slab_give(&(*r_p)->g->requests, *r_p);
    *r_p = NULL;
    return LS_OK;
}

static ls_status check_requests(ls_request *const *requests, int n, const char *name, ls_error *e) {
    if (n < 0 || (n && !requests))
        return ls_fail(e, LS_EINVAL, "%s: no requests, or %d of them", name, n);
    for (int i = 0; i < n; i++) LS_TRY(check_request(&requests[i], name, e));
    return LS_OK;
}

/* The first that is done or can't be any more; -1: none. */
static int find_ended(ls_request *const *requests, int n) {
    for (int i = 0; i < n; i++)
        if (requests[i] && (requests[i]->done || requests[i]->g->broken)) return i;
    return -1;
}

static bool are_null(ls_request *const *requests, int n) {
    for (int i = 0; i < n; i++)
        if (requests[i]) return false;
    return true;
}

ls_status ls_wait_any(ls_request **requests, int n, double timeout_s, int *i_p, ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_requests(requests, n, "wait_any", e));
    LS_TRY(check_timeout(timeout_s, "wait_any", e));
    if (!i_p) return ls_fail(e, LS_EINVAL, "wait_any: no place for the index");
    *i_p = -1;
    if (are_null(requests, n)) return LS_OK;
    ls_status s = ls_request_wait_set(requests, n, ls_clock_ns_of(timeout_s), e);
    *i_p = find_ended(requests, n);
    return *i_p < 0 ? s : ls_wait(&requests[*i_p], -1, e);
}

/* Waits until one of the pending ones has ended; `pending` [n] has those whose status is not
 * known. */
static ls_status wait_next(ls_request **requests, ls_request **pending, int n, int64_t left_ns,
                           ls_status *statuses, ls_error *e) {
    ls_error one;
    ls_status s = ls_request_wait_set(pending, n, left_ns, &one);
    int i = find_ended(pending, n);
    if (i < 0) {
        *e = one;
        return s;
    }
    statuses[i] = ls_wait(&requests[i], -1, &one);
    pending[i] = NULL;
    return LS_OK;
}

/* The error of the first that failed. */
static ls_status result_of(ls_request **requests, const ls_status *statuses, int n, ls_error *e) {
    for (int i = 0; i < n; i++)
        if (statuses[i] != LS_OK && statuses[i] != LS_EPENDING) return ls_wait(&requests[i], -1, e);
    return LS_OK;
}

ls_status ls_wait_all(ls_request **requests, int n, double timeout_s, ls_status *statuses,
                      ls_error *e) {
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    LS_TRY(check_requests(requests, n, "wait_all", e));
    LS_TRY(check_timeout(timeout_s, "wait_all", e));
    ls_status *each = LS_NEW_ARRAY(ls_status, (size_t)n + 1), s = LS_OK;
    ls_request **pending = LS_NEW_ARRAY(ls_request *, (size_t)n + 1);
    int64_t limit_ns = ls_clock_ns_of(timeout_s), end = ls_clock_ns() + limit_ns;
    for (int i = 0; i < n; i++) pending[i] = requests[i];
    while (s == LS_OK && !are_null(pending, n)) {
        int64_t left = end - ls_clock_ns();
        s = wait_next(requests, pending, n, limit_ns < 0 ? -1 : left < 0 ? 0 : left, each, e);
    }
    for (int i = 0; i < n; i++)
        if (pending[i]) each[i] = s;
    ls_status failed = result_of(requests, each, n, e);
    if (statuses) memcpy(statuses, each, (size_t)n * sizeof *each);
    free(each);
    free(pending);
    return failed != LS_OK ? failed : s;
}

/* ---- the functions of group.h ---- */

#define ASKED(what_, ...)                                                                          \
    ((asked){.call = {.what = (what_), .dtype = dtype, __VA_ARGS__}, .in = in, .out = out})

ls_status ls_all_reduce_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_op op, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_ALL_REDUCE, .op = op, .count = count), r_p, e);
}
ls_status ls_all_reduce(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_op op, ls_error *e) {
    return ls_all_reduce_start(g, in, out, count, dtype, op, NULL, e);
}

ls_status ls_reduce_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          ls_op op, int root, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_REDUCE, .op = op, .count = count, .root = root), r_p, e);
}
ls_status ls_reduce(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                    int root, ls_error *e) {
    return ls_reduce_start(g, in, out, count, dtype, op, root, NULL, e);
}

ls_status ls_reduce_scatter_start(ls_group *g, const void *in, void *out, size_t count,
                                  ls_dtype dtype, ls_op op, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_REDUCE_SCATTER, .op = op, .count = count), r_p, e);
}
ls_status ls_reduce_scatter(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                            ls_op op, ls_error *e) {
    return ls_reduce_scatter_start(g, in, out, count, dtype, op, NULL, e);
}
ls_status ls_reduce_scatter_v_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                    ls_dtype dtype, ls_op op, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_REDUCE_SCATTER, .op = op, .count = UNEVEN, .counts = counts), r_p,
               e);
}
ls_status ls_reduce_scatter_v(ls_group *g, const void *in, void *out, const size_t *counts,
                              ls_dtype dtype, ls_op op, ls_error *e) {
    return ls_reduce_scatter_v_start(g, in, out, counts, dtype, op, NULL, e);
}

ls_status ls_all_gather_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_ALL_GATHER, .count = count), r_p, e);
}
ls_status ls_all_gather(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_error *e) {
    return ls_all_gather_start(g, in, out, count, dtype, NULL, e);
}
ls_status ls_all_gather_v_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                ls_dtype dtype, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_ALL_GATHER, .count = UNEVEN, .counts = counts), r_p, e);
}
ls_status ls_all_gather_v(ls_group *g, const void *in, void *out, const size_t *counts,
                          ls_dtype dtype, ls_error *e) {
    return ls_all_gather_v_start(g, in, out, counts, dtype, NULL, e);
}

static asked asked_virtual(const ls_virtual_sum *x, ls_collective what, size_t count) {
    return (asked){.call = {.what = what,
                            .dtype = x->dtype,
                            .op = x->op,
                            .count = count,
                            .counts = x->counts,
                            .V = x->V,
                            .first = x->first,
                            .chunks = x->chunks,
                            .context = x->context,
                            .stride = x->stride},
                   .in = x->in,
                   .out = x->out};
}
ls_status ls_reduce_scatter_virtual_start(ls_group *g, const ls_virtual_sum *x, ls_request **r_p,
                                          ls_error *e) {
    return run(g, asked_virtual(x, LS_CALL_REDUCE_SCATTER, UNEVEN), r_p, e);
}
ls_status ls_all_reduce_virtual_start(ls_group *g, const ls_virtual_sum *x, ls_request **r_p,
                                      ls_error *e) {
    return run(g, asked_virtual(x, LS_CALL_ALL_REDUCE, x->count), r_p, e);
}

/* A call with a reduction of the caller's own. */
static asked asked_by(ls_collective what, const void *in, void *out, const ls_reduction *by) {
    static const ls_reduction none = {.name = "own"};
    asked a = {.call = {.what = what, .by = by ? by : &none}, .in = in, .out = out};
    size_t nbytes = a.call.by->element_nbytes;
    a.call.dtype = ls_dtype_own(nbytes <= LS_MOST_ELEMENT ? nbytes : 0);
    return a;
}

ls_status ls_all_reduce_by_start(ls_group *g, const void *in, void *out, size_t count,
                                 const ls_reduction *by, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_ALL_REDUCE, in, out, by);
    a.call.count = count;
    return run(g, a, r_p, e);
}
ls_status ls_all_reduce_by(ls_group *g, const void *in, void *out, size_t count,
                           const ls_reduction *by, ls_error *e) {
    return ls_all_reduce_by_start(g, in, out, count, by, NULL, e);
}

ls_status ls_reduce_by_start(ls_group *g, const void *in, void *out, size_t count,
                             const ls_reduction *by, int root, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_REDUCE, in, out, by);
    a.call.count = count;
    a.call.root = root;
    return run(g, a, r_p, e);
}
ls_status ls_reduce_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                       int root, ls_error *e) {
    return ls_reduce_by_start(g, in, out, count, by, root, NULL, e);
}

ls_status ls_reduce_scatter_by_start(ls_group *g, const void *in, void *out, size_t count,
                                     const ls_reduction *by, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_REDUCE_SCATTER, in, out, by);
    a.call.count = count;
    return run(g, a, r_p, e);
}
ls_status ls_reduce_scatter_by(ls_group *g, const void *in, void *out, size_t count,
                               const ls_reduction *by, ls_error *e) {
    return ls_reduce_scatter_by_start(g, in, out, count, by, NULL, e);
}

ls_status ls_reduce_scatter_v_by_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                       const ls_reduction *by, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_REDUCE_SCATTER, in, out, by);
    a.call.count = UNEVEN;
    a.call.counts = counts;
    return run(g, a, r_p, e);
}
ls_status ls_reduce_scatter_v_by(ls_group *g, const void *in, void *out, const size_t *counts,
                                 const ls_reduction *by, ls_error *e) {
    return ls_reduce_scatter_v_by_start(g, in, out, counts, by, NULL, e);
}

ls_status ls_scan_by_start(ls_group *g, const void *in, void *out, size_t count,
                           const ls_reduction *by, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_SCAN, in, out, by);
    a.call.count = count;
    return run(g, a, r_p, e);
}
ls_status ls_scan_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                     ls_error *e) {
    return ls_scan_by_start(g, in, out, count, by, NULL, e);
}

ls_status ls_exscan_by_start(ls_group *g, const void *in, void *out, size_t count,
                             const ls_reduction *by, ls_request **r_p, ls_error *e) {
    asked a = asked_by(LS_CALL_EXSCAN, in, out, by);
    a.call.count = count;
    return run(g, a, r_p, e);
}
ls_status ls_exscan_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                       ls_error *e) {
    return ls_exscan_by_start(g, in, out, count, by, NULL, e);
}

ls_status ls_broadcast_start(ls_group *g, void *buf, size_t count, ls_dtype dtype, int root,
                             ls_request **r_p, ls_error *e) {
    const void *in = NULL;
    void *out = buf;
    return run(g, ASKED(LS_CALL_BROADCAST, .count = count, .root = root), r_p, e);
}
ls_status ls_broadcast(ls_group *g, void *buf, size_t count, ls_dtype dtype, int root,
                       ls_error *e) {
    return ls_broadcast_start(g, buf, count, dtype, root, NULL, e);
}

ls_status ls_gather_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          int root, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_GATHER, .count = count, .root = root), r_p, e);
}
ls_status ls_gather(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, int root,
                    ls_error *e) {
    return ls_gather_start(g, in, out, count, dtype, root, NULL, e);
}

ls_status ls_scatter_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                           int root, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_SCATTER, .count = count, .root = root), r_p, e);
}
ls_status ls_scatter(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, int root,
                     ls_error *e) {
    return ls_scatter_start(g, in, out, count, dtype, root, NULL, e);
}

ls_status ls_all_to_all_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_ALL_TO_ALL, .count = count), r_p, e);
}
ls_status ls_all_to_all(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_error *e) {
    return ls_all_to_all_start(g, in, out, count, dtype, NULL, e);
}

ls_status ls_all_to_all_v_start(ls_group *g, const void *in, const size_t *in_counts, void *out,
                                const size_t *out_counts, ls_dtype dtype, ls_request **r_p,
                                ls_error *e) {
    return run(g, ASKED(LS_CALL_ALL_TO_ALL_V, .sends = in_counts, .receives = out_counts), r_p, e);
}
ls_status ls_all_to_all_v(ls_group *g, const void *in, const size_t *in_counts, void *out,
                          const size_t *out_counts, ls_dtype dtype, ls_error *e) {
    return ls_all_to_all_v_start(g, in, in_counts, out, out_counts, dtype, NULL, e);
}

/* counts at the root; NULL elsewhere, where they are ignored. */
static const size_t *at_root(const ls_group *g, int root, const size_t *counts) {
    return g && g->rank == root ? counts : NULL;
}

ls_status ls_gather_v_start(ls_group *g, const void *in, size_t count, void *out,
                            const size_t *counts, ls_dtype dtype, int root, ls_request **r_p,
                            ls_error *e) {
    return run(
        g,
        ASKED(LS_CALL_GATHER_V, .own = count, .receives = at_root(g, root, counts), .root = root),
        r_p, e);
}
ls_status ls_gather_v(ls_group *g, const void *in, size_t count, void *out, const size_t *counts,
                      ls_dtype dtype, int root, ls_error *e) {
    return ls_gather_v_start(g, in, count, out, counts, dtype, root, NULL, e);
}

ls_status ls_scatter_v_start(ls_group *g, const void *in, const size_t *counts, void *out,
                             size_t count, ls_dtype dtype, int root, ls_request **r_p,
                             ls_error *e) {
    return run(
        g, ASKED(LS_CALL_SCATTER_V, .own = count, .sends = at_root(g, root, counts), .root = root),
        r_p, e);
}
ls_status ls_scatter_v(ls_group *g, const void *in, const size_t *counts, void *out, size_t count,
                       ls_dtype dtype, int root, ls_error *e) {
    return ls_scatter_v_start(g, in, counts, out, count, dtype, root, NULL, e);
}

ls_status ls_scan_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_op op, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_SCAN, .op = op, .count = count), r_p, e);
}
ls_status ls_scan(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                  ls_error *e) {
    return ls_scan_start(g, in, out, count, dtype, op, NULL, e);
}

ls_status ls_exscan_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          ls_op op, ls_request **r_p, ls_error *e) {
    return run(g, ASKED(LS_CALL_EXSCAN, .op = op, .count = count), r_p, e);
}
ls_status ls_exscan(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                    ls_error *e) {
    return ls_exscan_start(g, in, out, count, dtype, op, NULL, e);
}

ls_status ls_barrier_start(ls_group *g, ls_request **r_p, ls_error *e) {
    const ls_dtype dtype = LS_U8;
    const void *in = NULL;
    void *out = NULL;
    return run(g, ASKED(LS_CALL_BARRIER, .count = 0), r_p, e);
}
ls_status ls_barrier(ls_group *g, ls_error *e) { return ls_barrier_start(g, NULL, e); }

ls_status ls_send_start(ls_group *g, const void *buf, size_t count, ls_dtype dtype, int to,
                        ls_request **r_p, ls_error *e) {
    const ls_single_call c = {
        .send = true, .peer = to, .buf = (void *)(uintptr_t)buf, .count = count, .dtype = dtype};
    return run_message(g, c, r_p, e);
}
ls_status ls_send(ls_group *g, const void *buf, size_t count, ls_dtype dtype, int to, ls_error *e) {
    return ls_send_start(g, buf, count, dtype, to, NULL, e);
}
ls_status ls_recv_start(ls_group *g, void *buf, size_t count, ls_dtype dtype, int from,
                        ls_request **r_p, ls_error *e) {
    const ls_single_call c = {.peer = from, .buf = buf, .count = count, .dtype = dtype};
    return run_message(g, c, r_p, e);
}
ls_status ls_recv(ls_group *g, void *buf, size_t count, ls_dtype dtype, int from, ls_error *e) {
    return ls_recv_start(g, buf, count, dtype, from, NULL, e);
}

ls_status ls_send_some_start(ls_group *g, const ls_some *s, int to, ls_request **r_p, ls_error *e) {
    const ls_single_call c = {.send = true,
                              .peer = to,
                              .buf = s->buf,
                              .count = *s->nbytes,
                              .dtype = LS_U8,
                              .most = s->most};
    return run_message(g, c, r_p, e);
}
ls_status ls_recv_some_start(ls_group *g, const ls_some *s, int from, ls_request **r_p,
                             ls_error *e) {
    const ls_single_call c = {.peer = from,
                              .buf = s->buf,
                              .count = s->most,
                              .dtype = LS_U8,
                              .most = s->most,
                              .nbytes_p = s->nbytes};
    return run_message(g, c, r_p, e);
}
