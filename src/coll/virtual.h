/* virtual.h - what training asks of a group beyond group.h: sums over virtual workers, memory in
 * one copy, and messages of unknown length.
 *
 * The batch is cut for V virtual workers; worker r of n runs a contiguous range of them (tree.h;
 * first [n + 1], which must stay valid; NULL: an even one) and holds the sums of the largest whole
 * subtrees in it. Finishing the tree over all workers' sums gives the same bits for any n.
 */
#ifndef LS_COLL_VIRTUAL_H
#define LS_COLL_VIRTUAL_H

#include "coll/algo/mark.h"
#include "lockstep/group.h"

typedef struct ls_virtual_sum {
    int V;               /* >= size */
    const int *first;    /* [size + 1] */
    int chunks, context; /* as in ls_tree_parts: V counts the leaves of all chunks */
    const void *in;      /* this worker's sums, each of the whole vector */
    size_t stride;       /* elements from one of them to the next */
    void *out;
    ls_dtype dtype;
    ls_op op;             /* LS_AVG: a sum, which the caller divides */
    size_t count;         /* of an all-reduce: elements of the vector */
    const size_t *counts; /* [size] of a reduce-scatter: blocks of the vector; else NULL */
} ls_virtual_sum;

/* out [counts[rank]] = the sum over all virtual workers of block `rank`; it may be that block of
 * the first of `in`. */
ls_status ls_reduce_scatter_virtual_start(ls_group *, const ls_virtual_sum *, ls_request **r_p,
                                          ls_error *);

/* out [count] = the sum over all virtual workers, at all workers; it may be the first of `in`. */
ls_status ls_all_reduce_virtual_start(ls_group *, const ls_virtual_sum *, ls_request **r_p,
                                      ls_error *);

/* Marks this worker's next call, a sum over virtual workers in memory that all share. After a call
 * was broken off, another group can make it again: no part is summed twice, provided that none was
 * left half summed. */
void ls_group_mark_next(ls_group *, ls_call_mark);

/* Memory in one copy for all workers, zeroed, until the group's last user closes. *p_p is NULL if
 * not all share memory (or the worker is alone), if an algorithm is forced, which would send what
 * is already there, or if the first worker's arena has no room. Collective. */
ls_status ls_group_alloc_one(ls_group *, size_t nbytes, void **p_p, ls_error *);

/* Attaches memory that all workers of this host share, each at its own address: collectives then
 * read it where it lies. All attach the same memory, before it is used; the caller still owns
 * it. */
void ls_group_attach(ls_group *, void *p, size_t nbytes);
/* Would ls_group_alloc_one() give memory, if there is room? */
bool ls_group_is_one(const ls_group *);

/* A message whose sender chooses how long it is: at most as both ends say. */
typedef struct ls_some {
    void *buf;      /* [most]; only read where it is sent */
    size_t most;    /* bytes, at least one; the same at both ends */
    size_t *nbytes; /* of a send: its length; of a receive: set when its request is done */
} ls_some;
ls_status ls_send_some_start(ls_group *, const ls_some *, int to, ls_request **r_p, ls_error *);
ls_status ls_recv_some_start(ls_group *, const ls_some *, int from, ls_request **r_p, ls_error *);

/* The number of members on this worker's host, itself among them. */
int ls_group_near(const ls_group *);

/* Collective: fails on all if it failed on one, with the error of the first such worker, whose
 * message it alone has. */
ls_status ls_agree(ls_group *, ls_status own, ls_error *e);

/* Replaces timeout_s and report_s of the options from now on; < 0: no limit, no report. */
void ls_group_set_patience(ls_group *, double timeout_s, double report_s);

#endif
