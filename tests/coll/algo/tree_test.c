/* tree_test.c - the order of summation does not depend on which worker runs which virtual workers.
 */
#include "coll/algo/tree.h"

#include "base/random.h"
#include "test.h"

enum { N = 1500, MAX_V = 17 };

/* Whether [lo, hi) is a node of the tree over [a, b). */
static bool is_node(int a, int b, int lo, int hi) {
    if (a == lo && b == hi) return true;
    if (b - a < 2) return false;
    int middle = ls_tree_split(a, b);
    assert_true(middle > a && middle < b);
    return hi <= middle ? is_node(a, middle, lo, hi) : lo >= middle && is_node(middle, b, lo, hi);
}

static void test_split(void **state) {
    (void)state;
    static const int want[] = {0, 0, 1, 2, 2, 4, 4, 4, 4, 8, 8};
    for (int n = 2; n <= 10; n++) {
        assert_int_equal(ls_tree_split(0, n), want[n]);
        assert_int_equal(ls_tree_split(100, 100 + n), 100 + want[n]);
    }
    assert_int_equal(ls_tree_split(0, 1 << 30), 1 << 29);
}

static void test_cover(void **state) {
    (void)state;
    for (int V = 1; V <= MAX_V; V++)
        for (int a = 0; a <= V; a++)
            for (int b = a; b <= V; b++) {
                ls_node nodes[LS_TREE_MAX_COVER];
                int n = ls_tree_cover(V, a, b, nodes), at = a;
                for (int i = 0; i < n; i++) {
                    assert_int_equal(nodes[i].lo, at);
                    assert_true(is_node(0, V, nodes[i].lo, nodes[i].hi));
                    at = nodes[i].hi;
                    if (i) /* the largest: no two of them are siblings */
                        assert_false(is_node(0, V, nodes[i - 1].lo, nodes[i].hi));
                }
                assert_int_equal(at, b);
            }
}

/* The stack that folds describe ends as the cover. */
static void test_fold(void **state) {
    (void)state;
    for (int V = 1; V <= MAX_V; V++)
        for (int a = 0; a < V; a++) {
            ls_node stack[LS_TREE_MAX_COVER], nodes[LS_TREE_MAX_COVER];
            int depth = 0, most = 0;
            for (int v = a; v < V; v++) {
                int slot = -1, folds = ls_tree_fold(V, a, v, &slot);
                assert_int_equal(slot, depth);
                stack[depth++] = (ls_node){v, v + 1};
                if (depth > most) most = depth;
                for (; folds > 0; folds--, depth--) stack[depth - 2].hi = stack[depth - 1].hi;
                int n = ls_tree_cover(V, a, v + 1, nodes);
                assert_int_equal(n, depth);
                assert_memory_equal(nodes, stack, (size_t)n * sizeof *nodes);
                assert_int_equal(ls_tree_slots(V, a, v + 1), most);
            }
        }
}

static float leaves[MAX_V][N]; /* of each virtual worker */

static void reference(int lo, int hi, float *out) {
    if (hi - lo == 1) {
        memcpy(out, leaves[lo], sizeof leaves[lo]);
        return;
    }
    float right[N];
    int middle = ls_tree_split(lo, hi);
    reference(lo, middle, out);
    reference(middle, hi, right);
    for (int i = 0; i < N; i++) out[i] += right[i];
}

/* Cuts the tree over V for n workers, with the sums of their covers. */
static ls_tree_sum cut(int V, int n, ls_node *nodes, float (*sums)[N], const void **data) {
    ls_tree_sum s = {.dtype = LS_F32, .V = V, .nodes = nodes, .data = data};
    for (int r = 0; r < n; r++) {
        int a = 0, b = 0;
        ls_tree_range(V, NULL, r, n, &a, &b);
        s.nleaves += ls_tree_cover(V, a, b, nodes + s.nleaves);
    }
    for (int i = 0; i < s.nleaves; i++) {
        reference(nodes[i].lo, nodes[i].hi, sums[i]);
        data[i] = sums[i];
    }
    return s;
}

static void test_sum(void **state) {
    (void)state;
    static float sums[MAX_V][N], want[N], out[N], chain[N];
    const ls_kernels *k = NULL;
    ls_error e;
    assert_ls_ok(ls_kernels_pick(&k, &e), e);
    for (uint64_t v = 0; v < MAX_V; v++)
        ls_random_normal((ls_random_place){1, LS_STREAM_SAMPLE, v, 0}, N, 1.0f, leaves[v]);
    int others_differ = 0;
    for (int V = 1; V <= MAX_V; V++) {
        reference(0, V, want);
        for (int n = 1; n <= V; n++) {
            ls_node nodes[MAX_V + LS_TREE_MAX_COVER];
            const void *data[MAX_V];
            ls_tree_sum s = cut(V, n, nodes, sums, data);
            ls_tree_sum_run(&s, k, 0, N, out);
            assert_memory_equal(out, want, sizeof want);
            ls_tree_sum_run(&s, k, 3, N - 7, out); /* a part */
            assert_memory_equal(out, want + 3, (N - 7) * sizeof(float));
            for (size_t i = 0; i < N; i++) { /* in the order of the leaves */
                chain[i] = 0;
                for (int l = 0; l < s.nleaves; l++) chain[i] += sums[l][i];
            }
            others_differ += memcmp(chain, want, sizeof want) != 0;
            int own = s.nleaves / 2; /* into one of the leaves */
            ls_tree_sum_run(&s, k, 0, N, sums[own]);
            assert_memory_equal(sums[own], want, sizeof want);
        }
    }
    assert_true(others_differ > 20); /* so the comparison can fail */
}

static void test_range(void **state) {
    (void)state;
    for (int V = 1; V <= 40; V++)
        for (int n = 1; n <= V; n++)
            for (int r = 0, at = 0; r < n; r++) {
                int a = 0, b = 0;
                ls_tree_range(V, NULL, r, n, &a, &b);
                assert_int_equal(a, at);
                assert_true(b > a); /* no worker is idle */
                at = b;
                if (r == n - 1) assert_int_equal(at, V);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split), cmocka_unit_test(test_cover), cmocka_unit_test(test_fold),
        cmocka_unit_test(test_sum),   cmocka_unit_test(test_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
