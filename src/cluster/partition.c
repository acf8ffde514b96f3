/* partition.c - see partition.h. */
#include "cluster/partition.h"

#include <stdio.h>
#include <string.h>

/* MOST_DOUBLINGS: 256 times the first pause. FORGET: a cut that was not blamed for this many first
 * pauses counts as a new one. Between two attempts an eighth of the time since the blame passes, at
 * most MOST_PAUSE first pauses. EXACT: hosts among whom all choices are compared. */
enum { MOST_DOUBLINGS = 8, FORGET = 2000, MOST_PAUSE = 6, EXACT = 12 };

/* ---- cuts ---- */

static bool is_between(const ls_partition *c, uint64_t a, uint64_t b) {
    return (c->hosts[0] == a && c->hosts[1] == b) || (c->hosts[0] == b && c->hosts[1] == a);
}

static ls_partition *find(ls_partitions *k, uint64_t a, uint64_t b) {
    for (int i = 0; i < k->n; i++)
        if (is_between(&k->all[i], a, b)) return &k->all[i];
    return NULL;
}

/* Room for a new one: if there is none, the one that was not blamed for the longest time. */
static ls_partition *make_room(ls_partitions *k) {
    if (k->n < LS_PARTITIONS_MAX) return &k->all[k->n++];
    ls_partition *oldest = &k->all[0];
    for (int i = 1; i < k->n; i++)
        if (k->all[i].blamed_ns < oldest->blamed_ns) oldest = &k->all[i];
    return oldest;
}

void ls_partitions_blame(ls_partitions *k, const uint64_t by_of[2], const char *why, int64_t now,
                         int64_t retry_ns) {
    ls_partition *c = find(k, by_of[0], by_of[1]);
    if (c && c->blames && c->blamed_ns == now) return; /* each blames the other, in one view */
    bool again = c && now - c->blamed_ns < FORGET * retry_ns;
    int blames = 1; /* gcc 14 would read c->blames of a NULL for `again ? c->blames + 1 : 1` */
    if (again) blames += c->blames;
    if (!c) c = make_room(k);
    *c = (ls_partition){.hosts = {by_of[0], by_of[1]}, .number = ++k->numbers, .blames = blames};
    int doublings = blames - 1 < MOST_DOUBLINGS ? blames - 1 : MOST_DOUBLINGS;
    c->blamed_ns = now;
    c->due_ns = now + (retry_ns << doublings);
    snprintf(c->why, sizeof c->why, "%s", why);
}

const ls_partition *ls_partitions_find(const ls_partitions *k, uint64_t a, uint64_t b) {
    for (int i = 0; i < k->n; i++)
        if (is_between(&k->all[i], a, b)) return k->all[i].open ? NULL : &k->all[i];
    return NULL;
}

ls_partition *ls_partitions_due(ls_partitions *k, int64_t now, int64_t retry_ns) {
    for (int i = 0; i < k->n; i++) {
        ls_partition *c = &k->all[i];
        if (c->open || now < c->due_ns) continue;
        int64_t pause = (now - c->blamed_ns) / 8, most = MOST_PAUSE * retry_ns;
        if (pause > most) pause = most;
        c->due_ns = now + (pause > retry_ns ? pause : retry_ns);
        c->reached[0] = c->reached[1] = false;
        return c;
    }
    return NULL;
}

bool ls_partitions_reached(ls_partitions *k, int32_t number, uint64_t by) {
    for (int i = 0; i < k->n; i++) {
        ls_partition *c = &k->all[i];
        if (c->number != number || c->open) continue;
        for (int side = 0; side < 2; side++) c->reached[side] |= c->hosts[side] == by;
        c->open = c->reached[0] && c->reached[1];
        return c->open;
    }
    return false;
}

/* ---- the choice ---- */

static bool are_cut(const ls_partitions *k, const ls_partition_host *a,
                    const ls_partition_host *b) {
    return !a->out && !b->out && ls_partitions_find(k, a->host, b->host);
}

static int count_cuts(const ls_partitions *k, const ls_partition_host *hosts, int n, int i) {
    int count = 0;
    for (int j = 0; j < n; j++) count += j != i && are_cut(k, &hosts[i], &hosts[j]);
    return count;
}

/* Leaves out the host with the most cuts, of these one with the fewest workers, the last one. */
static bool leave_one_out(const ls_partitions *k, ls_partition_host *hosts, int n) {
    int worst = -1, most = 0;
    for (int i = 1; i < n; i++) {
        int count = count_cuts(k, hosts, n, i);
        bool is_worse = worst >= 0 && count == most && hosts[i].workers <= hosts[worst].workers;
        if (count == 0 || (count <= most && !is_worse)) continue;
        worst = i;
        most = count;
    }
    if (worst >= 0) hosts[worst].out = true;
    return worst >= 0;
}

typedef struct choice {
    const ls_partitions *k;
    ls_partition_host *hosts;
    int m; /* hosts with cuts */
    int at[EXACT];
    int newest; /* hosts with the newest state that have no cuts */
} choice;

/* Bit i of `out` stands for the host at[i]. */
static bool is_possible(const choice *c, unsigned out) {
    for (int i = 0; i < c->m; i++)
        for (int j = 0; j < i; j++)
            if (!(out >> i & 1) && !(out >> j & 1) &&
                are_cut(c->k, &c->hosts[c->at[i]], &c->hosts[c->at[j]]))
                return false;
    return true;
}

/* Is what `out` leaves better than what `best` leaves? */
static bool is_better(const choice *c, unsigned out, unsigned best) {
    int workers[2] = {0}, newest[2] = {c->newest, c->newest};
    for (int i = 0; i < c->m; i++)
        for (int k = 0; k < 2; k++) {
            if ((k ? best : out) >> i & 1) continue;
            workers[k] += c->hosts[c->at[i]].workers;
            newest[k] += c->hosts[c->at[i]].newest;
        }
    if ((newest[0] > 0) != (newest[1] > 0)) return newest[0] > 0;
    if (workers[0] != workers[1]) return workers[0] > workers[1];
    if (newest[0] != newest[1]) return newest[0] > newest[1];
    return out > best; /* the last ones are left out */
}

static void choose_best(choice *c) {
    unsigned all = (1u << c->m) - 1, best = all;
    for (unsigned out = 0; out < all; out++)
        if (is_possible(c, out) && is_better(c, out, best)) best = out;
    for (int i = 0; i < c->m; i++) c->hosts[c->at[i]].out = best >> i & 1;
}

void ls_partitions_choose(const ls_partitions *k, ls_partition_host *hosts, int n) {
    choice c = {.k = k, .hosts = hosts};
    for (int i = 0; i < n; i++) hosts[i].out = false;
    for (int i = 1; i < n; i++) hosts[i].out = are_cut(k, &hosts[0], &hosts[i]);
    int involved = 0;
    for (int i = 0; i < n; i++) {
        bool has_cuts = count_cuts(k, hosts, n, i) > 0;
        if (has_cuts && involved < EXACT) c.at[involved] = i;
        involved += has_cuts;
        c.newest += !hosts[i].out && !has_cuts && hosts[i].newest;
    }
    c.m = involved;
    if (involved > EXACT)
        while (leave_one_out(k, hosts, n)) {
        }
    else if (involved)
        choose_best(&c);
}
