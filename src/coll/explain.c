/* explain.c - how a group makes a call, and why, in words: ls_group_explain(), LOCKSTEP_EXPLAIN. */
#define LS_NO_CALL_SITES
#include <stdio.h>
#include <string.h>

#include "base/floats.h"
#include "base/locale.h"
#include "base/log.h"
#include "coll/choose.h"
#include "coll/request.h"

enum { LINE = 1024 };

const char *ls_route_name(const ls_route *c) {
    if (c->way == LS_BY_SHARED_MEMORY) return "shared memory";
    return c->way == LS_BY_NATIVE ? "native" : c->algorithm->name;
}

/* "all_reduce f32 sum, 262144 elements of 4 workers: " */
static size_t put_call(const ls_group *g, const ls_call *c, char *text, size_t nbytes) {
    bool reduces = ls_collective_reduces(c->what);
    size_t count = 0;
    for (int i = 0; c->counts && i < g->size; i++) count += c->counts[i];
    bool pairwise = ls_collective_is_pairwise(c->what) && (c->sends || c->receives || c->own);
    for (int i = 0; pairwise && i < g->size; i++)
        count += ls_call_sends(c, g->rank, i) + ls_call_receives(c, g->rank, i);
    if (pairwise && c->what == LS_CALL_ALL_TO_ALL_V) count /= 2;
    bool uneven = c->counts || pairwise;
    char type[32] = "";
    if (c->by) snprintf(type, sizeof type, "of %zu-byte elements", c->by->element_nbytes);
    count = uneven ? count / (size_t)g->size : c->count;
    int n = c->what == LS_CALL_BARRIER
                ? snprintf(text, nbytes, "barrier of %d workers: ", g->size)
                : snprintf(text, nbytes,
                           "%s %s%s%s, %zu elements%s of %d workers: ", ls_collective_name(c->what),
                           c->by ? type : ls_dtype_name(c->dtype), reduces ? " " : "",
                           c->by     ? "by the caller's own reduction"
                           : reduces ? ls_op_name(c->op)
                                     : "",
                           count, uneven ? " on average" : "", g->size);
    return n < 0 ? 0 : (size_t)n < nbytes ? (size_t)n : nbytes - 1;
}

void ls_route_explain(const ls_group *g, const ls_call *c, char *text, size_t nbytes) {
    ls_route x = ls_group_route(g, c);
    size_t at = put_call(g, c, text, nbytes);
    if (g->size == 1)
        snprintf(text + at, nbytes - at, "nothing is sent");
    else if (x.way == LS_BY_SHARED_MEMORY)
        snprintf(text + at, nbytes - at, "shared memory");
    else if (x.way == LS_BY_NATIVE)
        snprintf(text + at, nbytes - at, "native, which is forced: the transport %s's own",
                 g->end->net->ops->name);
    else {
        if (x.forced) at += (size_t)snprintf(text + at, nbytes - at, "forced: ");
        if (at < nbytes)
            ls_choose_explain(x.algorithm, c, g->size, &g->end->link, text + at, nbytes - at);
    }
}

ls_status ls_group_explain(const ls_group *g, const char *collective, size_t count, ls_dtype dtype,
                           char *text, size_t nbytes, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_call c = {.dtype = dtype, .count = count, .hosts = g ? g->hosts : NULL};
    if (!g || !collective || !text || nbytes == 0)
        return ls_fail(e, LS_EINVAL, "group_explain: no group, no collective or no room for text");
    LS_TRY(ls_group_check(g, "group_explain", e));
    if (!ls_collective_from_name(collective, &c.what))
        return ls_fail(e, LS_EINVAL, "group_explain: there is no collective '%.40s'", collective);
    if ((unsigned)dtype >= LS_NDTYPES)
        return ls_fail(e, LS_EINVAL, "group_explain: dtype %d does not exist", (int)dtype);
    ls_route_explain(g, &c, text, nbytes);
    return LS_OK;
}

/* A number for each route: first the two ways without an algorithm, then the algorithms. */
static unsigned number_of(const ls_route *c) {
    unsigned i = 0;
    while (c->algorithm && ls_algorithms[i] != c->algorithm) i++;
    return c->way == LS_BY_MESSAGES ? 2 + i : (unsigned)c->way;
}

void ls_route_log(ls_group *g, const ls_call *c) {
    char text[LINE];
    unsigned size = 0;
    if (g->rank) return;
    while (size < 63 && c->count >> size > 1) size++;
    ls_route x = ls_group_route(g, c);
    uint32_t bit = 1u << number_of(&x), *logged = &g->logged[(size_t)c->what * 64 + size];
    if (*logged & bit) return;
    *logged |= bit;
    ls_route_explain(g, c, text, sizeof text);
    ls_log("%s", text);
}
