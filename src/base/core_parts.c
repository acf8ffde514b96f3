/* core_parts.c - see core_parts.h.
 *
 * One worker after the other is given to the node that then has most cores for each of its workers
 * (the rule of D'Hondt). Workers that no node has room for come last, and take the cores that
 * remain of all nodes, in order.
 */
#include "base/core_parts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

typedef struct node_part {
    int first, n; /* cores */
    int workers;
} node_part;

static int find_nodes(const int *node, int ncores, node_part *parts) {
    int n = 0;
    for (int i = 0; i < ncores; i++) {
        if (i == 0 || node[i] != node[i - 1]) parts[n++] = (node_part){.first = i};
        parts[n - 1].n++;
    }
    return n;
}

/* The node with most cores for each worker, if it gets another one; NULL: none has room. */
static node_part *find_roomy(node_part *parts, int nparts, int threads) {
    node_part *best = NULL;
    for (node_part *p = parts; p < parts + nparts; p++) {
        bool room = (p->workers + 1) * threads <= p->n;
        bool more = best && p->n * (best->workers + 1) > best->n * (p->workers + 1);
        if (room && (!best || more)) best = p;
    }
    return best;
}

void ls_core_parts(const int *node, int ncores, int workers, int threads, int *worker_p) {
    node_part *parts = LS_NEW_ARRAY(node_part, (size_t)ncores), *p;
    int nparts = find_nodes(node, ncores, parts), placed = 0, next = 0;
    for (; placed < workers && (p = find_roomy(parts, nparts, threads)); placed++) p->workers++;
    bool all = placed == workers;
    for (p = parts; p < parts + nparts; p++) {
        int each = p->workers * threads; /* cores beyond are for workers without a node */
        for (int k = 0; k < p->n; k++) {
            bool own = p->workers > 0 && (all || k < each);
            int place = all ? k * p->workers / p->n : k / threads;
            worker_p[p->first + k] = own ? next + place : -1;
        }
        next += p->workers;
    }
    for (int i = 0, has = 0; !all && i < ncores; i++) {
        if (worker_p[i] >= 0) continue;
        worker_p[i] = next;
        if (++has == threads && next + 1 < workers) next++, has = 0;
    }
    free(parts);
}
