/* round.c - see round.h. */
#include "state/round.h"

#include <stdlib.h>

static uint64_t bit(int island) { return (uint64_t)1 << (island - 1); }

static bool lacks(const ls_world *w, int island, int64_t changes) {
    return w->ahead[island - 1] < changes;
}

/* The islands of a worker. */
static uint64_t own_islands(const ls_share *sh, int worker) {
    const ls_worker_share *x = &sh->workers[worker];
    uint64_t set = 0;
    for (int i = x->first_island; i < x->end_island; i++) set |= bit(i);
    return set;
}

/* The islands that an island mixes with, and the other islands of its workers. */
static uint64_t links_of(const ls_share *sh, int island) {
    const ls_mixing *m = sh->sync.mix;
    ls_worker_set of = sh->buckets[ls_share_bucket_in(sh, 0, island)].workers;
    uint64_t set = own_islands(sh, of.from);
    for (int i = 1; i <= sh->islands; i++)
        if (m->of[i - 1][island - 1] > 0 || m->of[island - 1][i - 1] > 0) set |= bit(i);
    return set;
}

uint64_t ls_round_islands(const ls_world *w, const ls_share *sh, int worker, int64_t changes) {
    uint64_t lacking = 0, set = 0, before = 0;
    for (int i = 1; i <= sh->islands; i++)
        if (lacks(w, i, changes)) lacking |= bit(i);
    set = own_islands(sh, worker) & lacking;
    while (set != before) {
        before = set;
        for (int i = 1; i <= sh->islands; i++)
            if (before & bit(i)) set |= links_of(sh, i) & lacking;
    }
    return set;
}

ls_status ls_round_check(const ls_world *w, const ls_share *sh, int64_t changes, ls_error *e) {
    for (int i = 1; i <= sh->islands; i++)
        for (int j = 1; j <= sh->islands; j++) {
            bool gets = sh->sync.mix->of[i - 1][j - 1] > 0;
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
static int members_of(const ls_share *sh, uint64_t islands, int worker, int *members, int *at_p) {
    int n = 0;
    for (int w = 0; w < sh->nworkers; w++) {
        if (!(own_islands(sh, w) & islands)) continue;
        if (w == worker) *at_p = n;
        members[n++] = w;
    }
    return n;
}

static ls_status swap_tokens(ls_group *g, unsigned char *tokens, int to, int from, ls_error *e) {
    ls_request *sent = NULL;
    LS_TRY(ls_send_start(g, &tokens[0], 1, LS_U8, to, &sent, e));
    LS_TRY(ls_recv(g, &tokens[1], 1, LS_U8, from, e));
    return ls_wait(&sent, -1, e);
}

ls_status ls_round_meet(const ls_world *w, const ls_share *sh, int worker, const ls_store_note *n,
                        unsigned char tokens[2], ls_error *e) {
    uint64_t islands = ls_round_islands(w, sh, worker, n->steps);
    int *members = LS_NEW_ARRAY(int, (size_t)sh->nworkers), at = 0;
    int count = members_of(sh, islands, worker, members, &at);
    ls_status s = LS_OK;
    ls_store_set_ready(w->store, worker, n, islands);
    for (int far = 1; s == LS_OK && far < count; far *= 2)
        s = swap_tokens(w->group, tokens, members[(at + far) % count],
                        members[(at + count - far) % count], e);
    free(members);
    return s;
}
