/* round.c - see round.h. */
#include "exec/round.h"

#include <stdlib.h>

static uint64_t bit(int island) { return (uint64_t)1 << (island - 1); }

static bool lacks(const ls_world *w, int island, int64_t changes) {
    return w->ahead[island - 1] < changes;
}

/* Those that the worker has. */
static uint64_t own_islands(const ls_plan *p, int worker) {
    int first = 0, end = 0;
    uint64_t set = 0;
    ls_plan_islands_of(p, worker, &first, &end);
    for (int i = first; i < end; i++) set |= bit(i);
    return set;
}

/* Those that an island mixes with, and those that its workers have, too. */
static uint64_t links_of(const ls_plan *p, int island) {
    const ls_mixing *m = p->c.mix;
    ls_worker_set of = ls_plan_workers_of(p, ls_plan_bucket_in(p, 0, island));
    uint64_t set = own_islands(p, of.from);
    for (int i = 1; i <= p->c.islands; i++)
        if (m->of[i - 1][island - 1] > 0 || m->of[island - 1][i - 1] > 0) set |= bit(i);
    return set;
}

uint64_t ls_round_islands(const ls_world *w, const ls_plan *p, int worker, int64_t changes) {
    uint64_t lacking = 0, set = 0, before = 0;
    for (int i = 1; i <= p->c.islands; i++)
        if (lacks(w, i, changes)) lacking |= bit(i);
    set = own_islands(p, worker) & lacking;
    while (set != before) {
        before = set;
        for (int i = 1; i <= p->c.islands; i++)
            if (before & bit(i)) set |= links_of(p, i) & lacking;
    }
    return set;
}

ls_status ls_round_check(const ls_world *w, const ls_plan *p, int64_t changes, ls_error *e) {
    for (int i = 1; i <= p->c.islands; i++)
        for (int j = 1; j <= p->c.islands; j++) {
            bool gets = p->c.mix->of[i - 1][j - 1] > 0;
            if (!gets || !lacks(w, i, changes) || lacks(w, j, changes)) continue;
            ls_store_set_finding(w->store, LS_STORE_LOST);
            return ls_fail(
                e, LS_EPEER,
                "the state in memory is incomplete: replica %d needs what replica %d was "
                "before a round that it has had",
                i - 1, j - 1);
        }
    return LS_OK;
}

/* members [nworkers]: the workers of the islands; *at_p: this one's place. Returns their number. */
static int members_of(const ls_plan *p, uint64_t islands, int worker, int *members, int *at_p) {
    int n = 0;
    for (int w = 0; w < p->c.nworkers; w++) {
        if (!(own_islands(p, w) & islands)) continue;
        if (w == worker) *at_p = n;
        members[n++] = w;
    }
    return n;
}

static ls_status swap_tokens(ls_exec *x, int to, int from, ls_error *e) {
    ls_group *g = x->c.world->group;
    ls_request *sent = NULL;
    LS_TRY(ls_send_start(g, &x->tokens[0], 1, LS_U8, to, &sent, e));
    LS_TRY(ls_recv(g, &x->tokens[1], 1, LS_U8, from, e));
    return ls_wait(&sent, -1, e);
}

ls_status ls_round_meet(ls_exec *x, const ls_store_note *n, ls_error *e) {
    const ls_plan *p = x->c.plan;
    uint64_t islands = ls_round_islands(x->c.world, p, x->c.worker, n->steps);
    int *members = LS_NEW_ARRAY(int, (size_t)p->c.nworkers), at = 0;
    int count = members_of(p, islands, x->c.worker, members, &at);
    ls_status s = LS_OK;
    ls_store_set_ready(x->c.world->store, x->c.worker, n, islands);
    for (int far = 1; s == LS_OK && far < count; far *= 2)
        s = swap_tokens(x, members[(at + far) % count], members[(at + count - far) % count], e);
    free(members);
    return s;
}
