/* bigram_test.c - the loss, against Witten and Bell's formula with a table of all pairs. */
#include "data/bigram.h"

#include <math.h>

#include "base/mem.h"
#include "test.h"

/* p(b | a) for every pair, by counting: table [V, V]. */
static double *table_of(const uint32_t *train, size_t n, uint32_t V) {
    double *p = LS_NEW_ARRAY(double, (size_t)V *V), *single = LS_NEW_ARRAY(double, V);
    for (size_t i = 0; i < n; i++) single[train[i]] += 1;
    for (size_t i = 0; i + 1 < n; i++) p[train[i] * V + train[i + 1]] += 1;
    for (uint32_t a = 0; a < V; a++) {
        double after = 0, kinds = 0;
        for (uint32_t b = 0; b < V; b++) {
            after += p[a * V + b];
            kinds += p[a * V + b] > 0;
        }
        for (uint32_t b = 0; b < V; b++) {
            double alone = (single[b] + 1) / ((double)n + V);
            p[a * V + b] = after > 0 ? (p[a * V + b] + kinds * alone) / (after + kinds) : alone;
        }
    }
    free(single);
    return p;
}

static uint32_t *text(size_t n, uint32_t below, uint32_t seed) {
    uint32_t *t = LS_NEW_ARRAY(uint32_t, n);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        t[i] = (seed >> 16) % below * ((seed >> 8) % 3) / 2 % below; /* not uniform */
    }
    return t;
}

static void check(size_t ntrain, size_t nval, uint32_t V, uint32_t seen) {
    uint32_t *train = text(ntrain, seen, 1), *val = text(nval, V, 2);
    double *p = table_of(train, ntrain, V), want = 0;
    for (uint32_t a = 0; a < V; a++) { /* check of the reference */
        double sum = 0;
        for (uint32_t b = 0; b < V; b++) sum += p[a * V + b];
        assert_true(fabs(sum - 1) < 1e-12);
    }
    for (size_t i = 1; i < nval; i++) want -= log(p[val[i - 1] * V + val[i]]);
    want /= (double)(nval - 1);
    double got = ls_bigram_loss(train, ntrain, val, nval, V);
    assert_true(fabs(got - want) <= 1e-12 * want);
    free(train), free(val), free(p);
}

static void test_against_table(void **state) {
    (void)state;
    check(5000, 700, 40, 40);
    check(200, 700, 40, 40);
    check(300, 100, 17, 9); /* tokens that do not occur in training */
    check(1000, 200, 1, 1); /* one token: nothing to predict */
    check(2, 2, 3, 3);
}

/* Without training, all tokens are equally likely. */
static void test_without_training(void **state) {
    (void)state;
    const uint32_t one[] = {3}, val[] = {0, 1, 2, 3, 4};
    assert_true(fabs(ls_bigram_loss(one, 0, val, 5, 8) - log(8)) < 1e-12);
    /* one token: 3 has 2 / 9, the others 1 / 9 */
    double want = (3 * log(9) + log(4.5)) / 4;
    assert_true(fabs(ls_bigram_loss(one, 1, val, 5, 8) - want) < 1e-12);
}

/* a b a b ...: after training the next token is nearly certain. */
static void test_certain(void **state) {
    (void)state;
    uint32_t train[1000];
    for (uint32_t i = 0; i < 1000; i++) train[i] = i % 2;
    assert_true(ls_bigram_loss(train, 1000, train, 1000, 2) < 2e-3);
    const uint32_t unlike[] = {0, 0, 0};
    assert_true(ls_bigram_loss(train, 1000, unlike, 3, 2) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_table),
        cmocka_unit_test(test_without_training),
        cmocka_unit_test(test_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
