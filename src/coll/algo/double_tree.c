/* double_tree.c - all-reduce on two trees at once, half of the vector on each.
 *
 * In a binary tree the leaves, half of all workers, only send once and receive once, while the
 * inner workers carry all the rest. A second tree, in which leaves and inner workers change places,
 * shares the load: each tree carries half of the vector, in pieces, up to the root as sums and down
 * as the result.
 *
 * The first tree is the binary tree whose in-order walk is 0, 1, 2, ...: member i hangs below the
 * number that has i's lowest one-bit moved up by one place (or cleared, where there is no such
 * member); odd members are leaves. The second is its mirror image if n is even, or shifted by one
 * if n is odd.
 *
 *     all-reduce   up to 2 log2 n pieces one after the other; a worker sends at most 3 times half
 *                  the bytes, 2 times the bytes on average
 *
 * Order: along the in-order walk of each tree, (left subtree + own) + right subtree. It depends on
 * n.
 *
 * Source: Sanders, Speck & Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
 * scan", Parallel Computing 35 (2009) 581-594.
 */
#include "coll/algo/algorithm.h"

static const ls_place IN = {LS_IN, 0}, OUT = {LS_OUT, 0};

/* -1 at the root. */
static int parent_of(int i, int n) {
    if (i == 0) return -1;
    int low = i & -i, up = (i ^ low) | (low << 1);
    return up < n ? up : i ^ low;
}

/* A worker's number in a tree, and back. */
static int to_tree(int rank, int n, bool second) {
    if (!second) return rank;
    return n % 2 ? (rank + 1) % n : n - 1 - rank;
}
static int from_tree(int i, int n, bool second) {
    if (!second) return i;
    return n % 2 ? (i + n - 1) % n : n - 1 - i;
}

typedef struct place_in_tree {
    int up;          /* worker, or -1 */
    int left, right; /* workers with lower and higher numbers in the tree, or -1 */
} place_in_tree;

static place_in_tree find_place(int rank, int n, bool second) {
    int me = to_tree(rank, n, second), parent = parent_of(me, n);
    place_in_tree p = {
        .up = parent < 0 ? -1 : from_tree(parent, n, second), .left = -1, .right = -1};
    for (int i = 0; i < n; i++) {
        if (parent_of(i, n) != me) continue;
        if (i < me)
            p.left = from_tree(i, n, second);
        else
            p.right = from_tree(i, n, second);
    }
    return p;
}

/* Adds what the child sends on the left or right of own; returns where the sum is. */
static ls_place add_child(ls_coll_program *s, int child, bool left, ls_place own, ls_place acc,
                          size_t count) {
    if (child < 0) return own;
    if (s->size == 2) left = child < s->rank; /* the second tree turns the two around */
    ls_place got = ls_coll_program_temp(s, count);
    ls_coll_program_recv(s, child, got, count);
    ls_coll_program_combine(s, left ? got : own, left ? own : got, acc, count);
    return acc;
}

static void one_piece(const ls_call *c, ls_coll_program *s, const place_in_tree *p, size_t at,
                      size_t count) {
    ls_place out = ls_at(OUT, at), sum = ls_at(IN, at);
    sum = add_child(s, p->left, true, sum, out, count);
    sum = add_child(s, p->right, false, sum, out, count);
    if (p->up >= 0) {
        ls_coll_program_send(s, p->up, sum, count);
        ls_coll_program_recv(s, p->up, out, count);
    } else {
        ls_coll_program_copy(s, sum, out, count);
        ls_finish_average(c, s, out, count);
    }
    if (p->left >= 0) ls_coll_program_send(s, p->left, out, count);
    if (p->right >= 0) ls_coll_program_send(s, p->right, out, count);
}

static void make(const ls_call *c, ls_coll_program *s) {
    for (int second = 0; second < 2; second++) {
        place_in_tree p = find_place(s->rank, s->size, second);
        size_t at = ls_block(c->count, 2, second), end = ls_block(c->count, 2, second + 1);
        for (; at < end; at += ls_piece(c, end - at))
            one_piece(c, s, &p, at, ls_piece(c, end - at));
    }
}

static ls_cost cost(const ls_call *c, double nbytes, int n) {
    (void)c;
    double part = (n - 1.0) / n;
    return (ls_cost){.chain_messages = 4 * ls_floor_log2(n),
                     .chain_sent = 3 * nbytes,
                     .chain_added = 2 * nbytes,
                     .messages = 4 * part,
                     .sent = 2 * part * nbytes,
                     .added = part * nbytes};
}

const ls_algorithm ls_double_tree = {.name = "double_tree",
                                     .collectives = 1u << LS_CALL_ALL_REDUCE,
                                     .sends_sums = true,
                                     .tree_order = ls_tree_order_up_to_two,
                                     .make = make,
                                     .cost = cost,
                                     .hosts_seconds = ls_hosts_seconds_near};
