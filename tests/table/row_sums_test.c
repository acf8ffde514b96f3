/* row_sums_test.c - sums of virtual workers, folded on the workers and then by a row's owner,
 * beside the tree written as a recursion. */
#include "table/row_sums.h"

#include "coll/algo/tree.h"
#include "test.h"

enum { WIDTH = 3, ROWS = 12, MAX_V = 21 };

/* Does virtual worker v have gradients of the row, and what is their sum? */
static bool has(int v, int row, int seed) {
    return ls_id_mix((uint64_t)(v * 100 + row + seed * 10000)) % 3 != 0;
}
static float value(int v, int row, int k) {
    return (float)(ls_id_mix((uint64_t)(v * 1000 + row * 10 + k)) % 100000) / 7.0f;
}

/* The sum over [lo, hi); false: none has gradients. */
static bool tree(int lo, int hi, int row, int k, int seed, float *sum) {
    float left = 0, right = 0;
    if (hi - lo == 1) {
        *sum = value(lo, row, k);
        return has(lo, row, seed);
    }
    int middle = ls_tree_split(lo, hi);
    bool l = tree(lo, middle, row, k, seed, &left), r = tree(middle, hi, row, k, seed, &right);
    *sum = l && r ? left + right : l ? left : right;
    return l || r;
}

static void append(ls_sums *s, const ls_sum_head *head, const float *row) {
    ls_error e = {0};
    assert_ls_ok(ls_sums_reserve(s, s->n + 1, &e), e);
    s->heads[s->n] = *head;
    memcpy(s->rows + s->n++ * WIDTH, row, WIDTH * sizeof *row);
}

/* What the worker of [a, b) sends. */
static void send(int V, int a, int b, int seed, ls_sums *to) {
    ls_sums s = {.width = WIDTH};
    ls_id_map map = {0};
    ls_error e = {0};
    for (int v = a; v < b; v++)
        for (int row = 0; row < ROWS; row++) {
            float x[WIDTH];
            for (int k = 0; k < WIDTH; k++) x[k] = value(v, row, k);
            if (has(v, row, seed)) append(&s, &(ls_sum_head){(uint64_t)row, 1, v}, x);
        }
    assert_ls_ok(ls_sums_fold(&s, &map, V, a, b, &e), e);
    for (size_t i = 0; i < s.n; i++) append(to, &s.heads[i], s.rows + i * WIDTH);
    ls_sums_free(&s);
    ls_id_map_free(&map);
}

/* Returns the number of sums that were sent. */
static size_t finish(int V, int nworkers, int seed) {
    ls_sums s = {.width = WIDTH};
    ls_id_map map = {0};
    ls_error e = {0};
    for (int w = 0; w < nworkers; w++) send(V, w * V / nworkers, (w + 1) * V / nworkers, seed, &s);
    size_t sent = s.n;
    assert_ls_ok(ls_sums_fold(&s, &map, V, 0, V, &e), e);
    for (size_t i = 0; i < s.n; i++) {
        int row = (int)s.heads[i].id, count = 0;
        for (int v = 0; v < V; v++) count += has(v, row, seed);
        assert_int_equal(s.heads[i].count, count);
        for (int k = 0; k < WIDTH; k++) {
            float want = 0;
            assert_true(tree(0, V, row, k, seed, &want));
            assert_memory_equal(&s.rows[i * WIDTH + (size_t)k], &want, sizeof want);
        }
    }
    ls_sums_free(&s);
    ls_id_map_free(&map);
    return sent;
}

static void test_any_number_of_workers(void **state) {
    (void)state;
    for (int V = 1; V <= MAX_V; V++)
        for (int n = 1; n <= V; n++)
            for (int seed = 0; seed < 3; seed++) finish(V, n, seed);
}

/* A worker that has a whole subtree sends one sum of each row. */
static void test_few_are_sent(void **state) {
    (void)state;
    assert_true(finish(16, 1, 0) <= ROWS);
    assert_true(finish(16, 4, 0) <= 4 * ROWS);
}

static void test_add(void **state) {
    (void)state;
    ls_gradients all = {.sums.width = 2, .virtual_worker = 7};
    const ls_sums *s = &all.sums;
    ls_error e = {0};
    const int64_t ids[] = {5, -1, 5, 5};
    const float g[] = {1, 2, 3, 4, 1e8f, 6, -1e8f, 8};
    assert_ls_ok(ls_gradients_add(&all, ids, 4, g, &e), e);
    assert_int_equal(s->n, 2);
    assert_int_equal(s->heads[0].count, 3);
    assert_int_equal(s->heads[0].first, 7);
    assert_true(s->heads[1].id == UINT64_MAX);
    assert_true(s->rows[0] == 0 && s->rows[1] == 16); /* (1 + 1e8) - 1e8 in f32 */
    assert_true(s->rows[2] == 3 && s->rows[3] == 4);
    ls_gradients_clear(&all);
    assert_ls_ok(ls_gradients_add(&all, ids, 1, g, &e), e);
    assert_true(s->n == 1 && s->rows[0] == 1);
    ls_gradients_free(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_workers),
        cmocka_unit_test(test_few_are_sent),
        cmocka_unit_test(test_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
