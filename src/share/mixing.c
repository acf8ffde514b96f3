/* mixing.c - see mixing.h.
 *
 * D-PSGD mixes with the neighbours in an undirected graph, in which each replica gives itself and
 * each neighbour the same weight: on a ring 1/3, on a torus 1/5, in a pair 1/2. Such weights add up
 * to 1 by rows and by columns, so the plain mean of the replicas stays the same.
 *
 * SGP sends along directed edges: each replica divides what it has among itself and the replicas
 * that it sends to, and divides a weight of its own, its mass, in the same way. What a replica has
 * is its mass times its parameters. So the mix of replica i is the mean of what arrives,
 *     of[i][j] = share of i in what j sends * mass of j / mass of i after the round.
 */
#include "share/mixing.h"

#include <string.h>

#include "base/random.h"

static int log2_up(int n) {
    int k = 0;
    while ((1 << k) < n) k++;
    return k;
}

/* The sides of the torus: rows <= columns, as near to a square as the number allows. */
static int torus_rows(int n) {
    int rows = 1;
    for (int a = 2; a * a <= n; a++)
        if (n % a == 0) rows = a;
    return rows;
}

ls_status ls_gossip_check(const ls_gossip *g, ls_error *e) {
    int n = g->replicas;
    bool even = (n & (n - 1)) == 0;
    if (n < 2)
        return ls_fail(e, LS_EINVAL,
                       "sync.mode gossip: one replica has no neighbour; set sync.replicas to 2 "
                       "or more");
    if (g->graph == LS_GRAPH_EXPONENTIAL && g->algorithm == LS_GOSSIP_DPSGD && !even)
        return ls_fail(e, LS_EINVAL,
                       "sync.graph exponential: with sync.algorithm dpsgd, partners are found "
                       "by XOR, which needs a power of two; sync.replicas is %d: use %d, "
                       "sync.algorithm sgp, or another graph",
                       n, 1 << log2_up(n));
    if (g->graph == LS_GRAPH_TORUS && torus_rows(n) == 1)
        return ls_fail(e, LS_EINVAL,
                       "sync.graph torus: sync.replicas %d is no product of two numbers above "
                       "1; use another number, or sync.graph ring",
                       n);
    return LS_OK;
}

int ls_gossip_period(const ls_gossip *g) {
    if (g->graph == LS_GRAPH_RANDOM) return 0;
    return g->graph == LS_GRAPH_EXPONENTIAL ? log2_up(g->replicas) : 1;
}

/* ---- edges: to[i][j]: replica i sends to replica j in this round ---- */

typedef bool edges[LS_MIXING_MOST][LS_MIXING_MOST];

static void draw_order(const ls_gossip *g, int64_t round, int order[LS_MIXING_MOST]) {
    for (int i = 0; i < g->replicas; i++) order[i] = i;
    for (int i = g->replicas - 1; i > 0; i--) {
        uint32_t words[4];
        ls_random_words(g->seed, LS_STREAM_GOSSIP, (uint64_t)round, (uint64_t)i, words);
        int k = (int)(words[0] % (uint32_t)(i + 1)), was = order[i];
        order[i] = order[k];
        order[k] = was;
    }
}

/* Pairs; of an odd number of replicas one has no partner. */
static void match(const ls_gossip *g, int64_t round, edges to) {
    int order[LS_MIXING_MOST];
    draw_order(g, round, order);
    for (int i = 0; i + 1 < g->replicas; i += 2)
        to[order[i]][order[i + 1]] = to[order[i + 1]][order[i]] = true;
}

/* Each replica sends to one that it draws; some may get nothing. */
static void draw_targets(const ls_gossip *g, int64_t round, edges to) {
    for (int i = 0; i < g->replicas; i++) {
        uint32_t words[4];
        ls_random_words(g->seed, LS_STREAM_GOSSIP, (uint64_t)round, (uint64_t)i, words);
        to[i][(i + 1 + (int)(words[0] % (uint32_t)(g->replicas - 1))) % g->replicas] = true;
    }
}

static void connect(const ls_gossip *g, int64_t round, edges to) {
    int n = g->replicas, columns = n / torus_rows(n);
    bool both = g->algorithm == LS_GOSSIP_DPSGD;
    int power = 1 << (round % log2_up(n));
    memset(to, 0, sizeof(edges));
    if (g->graph == LS_GRAPH_RANDOM) {
        if (both)
            match(g, round, to);
        else
            draw_targets(g, round, to);
        return;
    }
    for (int i = 0; i < n; i++) {
        int row = i / columns * columns, right = row + (i + 1) % columns, down = (i + columns) % n;
        if (g->graph == LS_GRAPH_EXPONENTIAL)
            to[i][both ? i ^ power : (i + power) % n] = true;
        else if (g->graph == LS_GRAPH_RING)
            to[i][(i + 1) % n] = true;
        else
            to[i][right] = to[i][down] = true;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; both && j < n; j++)
            if (to[i][j]) to[j][i] = true;
}

/* What replica j keeps, and what it gives each one that it sends to. */
static double share_of(const ls_gossip *g, edges to, int j) {
    int n = 1;
    for (int i = 0; i < g->replicas; i++) n += to[j][i];
    return 1.0 / n;
}

void ls_mixing_make(const ls_gossip *g, int64_t round, const double *mass, ls_mixing *m_p) {
    edges to;
    double before[LS_MIXING_MOST];
    memcpy(before, mass, (size_t)g->replicas * sizeof *mass);
    *m_p = (ls_mixing){.replicas = g->replicas};
    connect(g, round, to);
    for (int j = 0; j < g->replicas; j++) {
        double share = share_of(g, to, j);
        for (int i = 0; i < g->replicas; i++)
            if (i == j || to[j][i]) m_p->of[i][j] = share * before[j];
    }
    for (int i = 0; i < g->replicas; i++) {
        for (int j = 0; j < g->replicas; j++) m_p->mass[i] += m_p->of[i][j];
        for (int j = 0; j < g->replicas; j++) m_p->of[i][j] /= m_p->mass[i];
        if (g->algorithm == LS_GOSSIP_DPSGD) m_p->mass[i] = 1;
    }
}

int ls_mixing_terms(const ls_mixing *m, int i, int list[LS_MIXING_MOST]) {
    int n = 0;
    for (int j = 0; j < m->replicas; j++)
        if (m->of[i][j] > 0) list[n++] = j;
    return n;
}
