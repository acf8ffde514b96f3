/* uneven.h - the collectives whose blocks have different lengths, as one worker calls and checks
 * them: for groups of threads, of processes, and under mpirun. */
#ifndef LS_TEST_UNEVEN_H
#define LS_TEST_UNEVEN_H

#include <stdlib.h>

#include "base/error.h"
#include "lockstep/group.h"

typedef struct uneven {
    size_t count; /* what blocks are made from */
    bool arena;   /* buffers of the group */
    bool async;
} uneven;

#define UNEVEN_MUST(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return ls_fail(e, LS_EIO, "worker %d of %d, count %zu: not %s", ls_group_rank(g),      \
                           ls_group_size(g), u->count, #condition);                                \
    } while (0)

/* Elements from one worker to another: none between some of them. */
static inline size_t uneven_pair(const uneven *u, int from, int to) {
    if ((from * 7 + to * 3) % 4 == 1) return 0;
    return u->count * (size_t)((from + 2 * to) % 3) / 2 + (size_t)((from + to) % 2);
}

/* Element i of what one worker has for another. */
static inline int32_t uneven_value(int from, int to, size_t i) {
    return (int32_t)(i * 3 + (size_t)from * 1000003 + (size_t)to * 7919);
}

static inline void *uneven_take(ls_group *g, const uneven *u, size_t n) {
    return u->arena ? ls_group_alloc(g, n * sizeof(int32_t)) : calloc(n + 1, sizeof(int32_t));
}
static inline void uneven_give(ls_group *g, const uneven *u, void *p) {
    if (u->arena)
        ls_group_free(g, p);
    else
        free(p);
}

static inline ls_status uneven_wait(const uneven *u, ls_request **q, ls_error *e) {
    return u->async ? ls_wait(q, -1, e) : LS_OK;
}

static inline ls_status uneven_all_to_all(ls_group *g, const uneven *u, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t sends[64], receives[64], nin = 0, nout = 0, at = 0;
    ls_request *q = NULL;
    for (int i = 0; i < n; i++) {
        nin += sends[i] = uneven_pair(u, r, i);
        nout += receives[i] = uneven_pair(u, i, r);
    }
    int32_t *in = uneven_take(g, u, nin), *out = uneven_take(g, u, nout);
    for (int to = 0; to < n; to++)
        for (size_t i = 0; i < sends[to]; i++) in[at++] = uneven_value(r, to, i);
    if (u->async)
        LS_TRY(ls_all_to_all_v_start(g, in, sends, out, receives, LS_I32, &q, e));
    else
        LS_TRY(ls_all_to_all_v(g, in, sends, out, receives, LS_I32, e));
    LS_TRY(uneven_wait(u, &q, e));
    at = 0;
    for (int from = 0; from < n; from++)
        for (size_t i = 0; i < receives[from]; i++)
            UNEVEN_MUST(out[at++] == uneven_value(from, r, i));
    LS_TRY(ls_barrier(g, e));
    uneven_give(g, u, in);
    uneven_give(g, u, out);
    return LS_OK;
}

/* Worker k's block has k * (count / 4 + 1) elements, none for worker 0. */
static inline ls_status uneven_blocks(ls_group *g, const uneven *u, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t counts[64], first[65] = {0};
    ls_request *q = NULL;
    for (int k = 0; k < n; k++) {
        counts[k] = (size_t)k * (u->count / 4 + 1);
        first[k + 1] = first[k] + counts[k];
    }
    int32_t *all = uneven_take(g, u, first[n]), *one = uneven_take(g, u, counts[r]);
    for (size_t i = 0; i < first[n]; i++) all[i] = uneven_value(r, 1, i) / 16;
    if (u->async)
        LS_TRY(ls_reduce_scatter_v_start(g, all, one, counts, LS_I32, LS_SUM, &q, e));
    else
        LS_TRY(ls_reduce_scatter_v(g, all, one, counts, LS_I32, LS_SUM, e));
    LS_TRY(uneven_wait(u, &q, e));
    for (size_t i = 0; i < counts[r]; i++) {
        int32_t sum = 0;
        for (int k = 0; k < n; k++) sum += uneven_value(k, 1, first[r] + i) / 16;
        UNEVEN_MUST(one[i] == sum);
        one[i] = uneven_value(r, 2, i);
    }
    if (u->async)
        LS_TRY(ls_all_gather_v_start(g, one, all, counts, LS_I32, &q, e));
    else
        LS_TRY(ls_all_gather_v(g, one, all, counts, LS_I32, e));
    LS_TRY(uneven_wait(u, &q, e));
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < counts[k]; i++)
            UNEVEN_MUST(all[first[k] + i] == uneven_value(k, 2, i));
    LS_TRY(ls_barrier(g, e));
    uneven_give(g, u, one);
    uneven_give(g, u, all);
    return LS_OK;
}

/* All to all, which every second worker calls in place. */
static inline ls_status uneven_in_place(ls_group *g, const uneven *u, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t count = u->count / 3, all = count * (size_t)n;
    int32_t *in = uneven_take(g, u, all), *out = r % 2 ? uneven_take(g, u, all) : in;
    ls_request *q = NULL;
    for (size_t i = 0; i < all; i++) in[i] = uneven_value(r, 5, i);
    if (u->async)
        LS_TRY(ls_all_to_all_start(g, in, out, count, LS_I32, &q, e));
    else
        LS_TRY(ls_all_to_all(g, in, out, count, LS_I32, e));
    LS_TRY(uneven_wait(u, &q, e));
    for (size_t i = 0; i < all; i++)
        UNEVEN_MUST(out[i] == uneven_value((int)(i / count), 5, (size_t)r * count + i % count));
    LS_TRY(ls_barrier(g, e));
    if (out != in) uneven_give(g, u, out);
    uneven_give(g, u, in);
    return LS_OK;
}

/* Blocks of k * (count / 4 + 1) elements to the root, and others from it; the root's own block lies
 * in place. */
static inline ls_status uneven_rooted(ls_group *g, const uneven *u, int root, ls_error *e) {
    int r = ls_group_rank(g), n = ls_group_size(g);
    size_t counts[64], all = 0, at = 0;
    ls_request *q = NULL;
    for (int k = 0; k < n; k++) all += counts[k] = (size_t)k * (u->count / 4 + 1);
    size_t own = counts[r], *known = r == root ? counts : NULL;
    int32_t *whole = r == root ? uneven_take(g, u, all) : NULL, *one = whole;
    if (r != root) one = uneven_take(g, u, own);
    for (int k = 0; k < root && r == root; k++) one += counts[k];
    for (size_t i = 0; i < own; i++) one[i] = uneven_value(r, 3, i);
    if (u->async)
        LS_TRY(ls_gather_v_start(g, one, own, whole, known, LS_I32, root, &q, e));
    else
        LS_TRY(ls_gather_v(g, one, own, whole, known, LS_I32, root, e));
    LS_TRY(uneven_wait(u, &q, e));
    for (int k = 0; k < n && r == root; k++)
        for (size_t i = 0; i < counts[k]; i++) {
            UNEVEN_MUST(whole[at] == uneven_value(k, 3, i));
            whole[at++] = uneven_value(k, 4, i);
        }
    if (u->async)
        LS_TRY(ls_scatter_v_start(g, whole, known, one, own, LS_I32, root, &q, e));
    else
        LS_TRY(ls_scatter_v(g, whole, known, one, own, LS_I32, root, e));
    LS_TRY(uneven_wait(u, &q, e));
    for (size_t i = 0; i < own; i++) UNEVEN_MUST(one[i] == uneven_value(r, 4, i));
    LS_TRY(ls_barrier(g, e));
    uneven_give(g, u, r == root ? whole : one);
    return LS_OK;
}

static inline ls_status uneven_all(ls_group *g, void *arg, ls_error *e) {
    const uneven *u = arg;
    LS_TRY(uneven_all_to_all(g, u, e));
    LS_TRY(uneven_blocks(g, u, e));
    LS_TRY(uneven_in_place(g, u, e));
    LS_TRY(uneven_rooted(g, u, 0, e));
    return uneven_rooted(g, u, ls_group_size(g) - 1, e);
}

#endif
