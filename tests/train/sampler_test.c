/* sampler_test.c - what is drawn, against a sort by comparing and sums of the C library's. */
#include "train/sampler.h"

#include <math.h>

#include "base/random.h"
#include "test.h"

static const float *sorted_logits;

static int by_logit(const void *a, const void *b) {
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    float x = sorted_logits[i], y = sorted_logits[j];
    if (x != y) return x > y ? -1 : 1;
    return i < j ? -1 : i > j;
}

/* The places at which u changes the token: sums of the likeliest tokens' shares. */
static void check(const float *logits, size_t V, double temperature, int64_t top_k) {
    ls_sampler s = ls_sampler_create(V);
    uint32_t *order = malloc(V * sizeof *order);
    for (size_t i = 0; i < V; i++) order[i] = (uint32_t)i;
    sorted_logits = logits;
    qsort(order, V, sizeof *order, by_logit);
    size_t n = top_k > 0 && (size_t)top_k < V ? (size_t)top_k : V;
    double sum = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)(logits[order[i]] - logits[order[0]]) / temperature);
    for (size_t i = 0; i < n; i++) {
        double share = exp((double)(logits[order[i]] - logits[order[0]]) / temperature) / sum;
        if (share > 1e-9)
            assert_int_equal(ls_sampler_draw(&s, logits, temperature, top_k, before + share / 2),
                             order[i]);
        before += share;
    }
    assert_int_equal(ls_sampler_draw(&s, logits, 0, top_k, 0.999), order[0]);
    free(order);
    ls_sampler_free(&s);
}

static void test_draw(void **state) {
    enum { V = 3000 };
    static float logits[V];
    (void)state;
    ls_random_normal(5, LS_STREAM_SAMPLE, 0, 0, V, 3.0f, logits);
    check(logits, V, 1.0, 0);
    check(logits, V, 0.5, 40);
    check(logits, V, 2.0, 1);
    check(logits, 17, 1.0, 100);
    check(logits, 1, 1.0, 0);
}

/* Equal ones by number, zeros of both signs among them; large and small ones in order. */
static void test_order(void **state) {
    static const float logits[] = {-0.0f, 0.0f, -1.5f, 1.5f, 0.0f, -0.0f, 1.5f, 1e-40f, -1e-40f};
    (void)state;
    check(logits, sizeof logits / sizeof *logits, 1.0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_draw), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
