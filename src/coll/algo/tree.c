/* tree.c - see tree.h. */
#include "coll/algo/tree.h"

#include <stdlib.h>

#include "base/copy.h"
#include "base/mem.h"

enum { BLOCK = 4096, SCRATCH = 32 << 10 }; /* bytes */

int ls_tree_split(int lo, int hi) {
    int half = 1;
    while (half < (hi - lo + 1) / 2) half *= 2;
    return lo + half;
}

static void cover(int lo, int hi, int a, int b, ls_node *nodes, int *n) {
    if (b <= lo || hi <= a) return;
    if (a <= lo && hi <= b) {
        nodes[(*n)++] = (ls_node){lo, hi};
        return;
    }
    int middle = ls_tree_split(lo, hi);
    cover(lo, middle, a, b, nodes, n);
    cover(middle, hi, a, b, nodes, n);
}

int ls_tree_cover(int V, int a, int b, ls_node nodes[LS_TREE_MAX_COVER]) {
    int n = 0;
    if (a < b) cover(0, V, a, b, nodes, &n);
    return n;
}

void ls_tree_range(int V, const int *first, int r, int n, int *a_p, int *b_p) {
    *a_p = first ? first[r] : (int)((long long)r * V / n);
    *b_p = first ? first[r + 1] : (int)((long long)(r + 1) * V / n);
}

/* The stack while `v` runs is the cover of [a, v); after it, that of [a, v + 1). */
int ls_tree_fold(int V, int a, int v, int *slot_p) {
    ls_node nodes[LS_TREE_MAX_COVER];
    int before = ls_tree_cover(V, a, v, nodes);
    int after = ls_tree_cover(V, a, v + 1, nodes);
    *slot_p = before;
    return before + 1 - after;
}

int ls_tree_slots(int V, int a, int b) {
    int most = 0;
    for (int v = a; v < b; v++) {
        int slot = 0;
        ls_tree_fold(V, a, v, &slot);
        if (slot + 1 > most) most = slot + 1;
    }
    return most;
}

void ls_tree_chunks(int chunks, int context, int i, int *first_p, int *end_p) {
    *first_p = (i * chunks + context - 1) / context;
    *end_p = ((i + 1) * chunks + context - 1) / context;
}

int ls_tree_parts_cover(const ls_tree_parts *p, int worker, int nworkers,
                        ls_node nodes[LS_TREE_MAX_COVER]) {
    int chunks = p->chunks > 1 ? p->chunks : 1, context = p->context > 1 ? p->context : 1;
    int each = p->V / chunks, a = 0, b = 0, from = 0, to = 1, n = 0;
    if (p->V == 0) {
        nodes[0] = (ls_node){worker, worker + 1};
        return 1;
    }
    ls_tree_range(each, p->first, worker / context, nworkers / context, &a, &b);
    if (chunks > 1) ls_tree_chunks(chunks, context, worker % context, &from, &to);
    if (b - a == each) return ls_tree_cover(p->V, from * each, to * each, nodes);
    for (int k = from; k < to; k++) n += ls_tree_cover(p->V, k * each + a, k * each + b, nodes + n);
    return n;
}

typedef struct found_leaf {
    ls_node node;
    int worker, slot;
} found_leaf;

static int from_left(const void *a, const void *b) {
    const found_leaf *x = a, *y = b;
    return (x->node.lo > y->node.lo) - (x->node.lo < y->node.lo);
}

void ls_leaves_make(const ls_tree_parts *p, int nworkers, ls_leaves *l_p) {
    ls_leaves l = {.V = p->V ? p->V : nworkers};
    found_leaf *list = NULL;
    for (int w = 0; w < nworkers; w++) {
        ls_node nodes[LS_TREE_MAX_COVER];
        int n = ls_tree_parts_cover(p, w, nworkers, nodes);
        if (n > l.most) l.most = n;
        for (int i = 0; i < n; i++) {
            list = ls_grow(list, (size_t)l.n, sizeof *list);
            list[l.n++] = (found_leaf){nodes[i], w, i};
        }
    }
    if (p->chunks > 1) qsort(list, (size_t)l.n, sizeof *list, from_left);
    l.nodes = LS_NEW_ARRAY(ls_node, (size_t)l.n);
    l.worker = LS_NEW_ARRAY(int, (size_t)l.n);
    l.slot = LS_NEW_ARRAY(int, (size_t)l.n);
    for (int i = 0; i < l.n; i++) {
        l.nodes[i] = list[i].node;
        l.worker[i] = list[i].worker;
        l.slot[i] = list[i].slot;
    }
    free(list);
    *l_p = l;
}

void ls_leaves_free(ls_leaves *l) {
    free(l->nodes);
    free(l->worker);
    free(l->slot);
    *l = (ls_leaves){0};
}

int ls_leaves_of(const ls_leaves *l, int worker) {
    int n = 0;
    for (int i = 0; i < l->n; i++) n += l->worker[i] == worker;
    return n;
}

typedef struct walk {
    const ls_tree_sum *s;
    const ls_kernels *k;
    size_t first, count;                         /* bytes before, elements */
    int leaf;                                    /* the next leaf, from left to right */
    size_t block;                                /* bytes of a level's scratch */
    _Alignas(64) unsigned char scratch[SCRATCH]; /* on the stack, which may be small */
} walk;

/* A high tree has smaller blocks, down to 512 bytes. */
static size_t block_of(int V) {
    size_t levels = 3, block = BLOCK; /* one is left over, and a leaf may be at depth 0 */
    for (int n = 1; n<V; n = n> V / 2 ? V : 2 * n) levels++;
    while (block * levels > SCRATCH) block /= 2;
    return block;
}

/* The sum of node [lo, hi): a leaf's data, or computed into out. Uses scratch from `depth` on: the
 * left child's sum waits in scratch[depth] while the right child uses the rest. */
static const void *walk_node(walk *w, int lo, int hi, int depth, void *out) {
    const ls_node *leaf = &w->s->nodes[w->leaf];
    if (leaf->lo == lo && leaf->hi == hi)
        return (const unsigned char *)w->s->data[w->leaf++] + w->first;
    int middle = ls_tree_split(lo, hi);
    const void *left = walk_node(w, lo, middle, depth, w->scratch + (size_t)depth * w->block);
    const void *right =
        walk_node(w, middle, hi, depth + 1, w->scratch + ((size_t)depth + 1) * w->block);
    const ls_reduction *by = w->s->by;
    if (by)
        by->combine(by->arg, w->count, left, right, out);
    else
        w->k->combine(w->s->dtype, w->s->op, w->count, left, right, out);
    return out;
}

void ls_tree_sum_run(const ls_tree_sum *s, const ls_kernels *k, size_t first, size_t count,
                     void *out) {
    walk w;
    w.s = s;
    w.k = k;
    w.block = block_of(s->V);
    size_t size = ls_dtype_size(s->dtype), most = w.block / size;
    unsigned char *to = out;
    for (size_t at = 0; at < count; at += most, to += most * size) {
        w.first = (first + at) * size;
        w.count = count - at < most ? count - at : most;
        w.leaf = 0;
        const void *sum = walk_node(&w, 0, s->V, 0, to);
        if (sum != to) ls_copy(to, sum, w.count * size);
    }
}
