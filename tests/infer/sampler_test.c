/* sampler_test.c - the drawn tokens, compared with a comparison sort and sums with exp(). */
#include "infer/sampler.h"

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

static uint32_t draw(ls_sampler *s, const float *logits, ls_sampler_rule rule, double u) {
    return ls_sampler_draw(s, logits, &rule, (ls_sampler_seen){NULL, 0}, u);
}

/* Draws with u in the middle of each token's range; the ranges end at sums of the likeliest tokens'
 * probabilities. */
static void check_rule(const float *logits, size_t V, ls_sampler_rule rule) {
    ls_sampler s = ls_sampler_create(V, ls_kernels_at(0));
    uint32_t *order = malloc(V * sizeof *order);
    for (size_t i = 0; i < V; i++) order[i] = (uint32_t)i;
    sorted_logits = logits;
    qsort(order, V, sizeof *order, by_logit);
    size_t n = rule.top_k > 0 && (size_t)rule.top_k < V ? (size_t)rule.top_k : V;
    double sum = 0, before = 0, temperature = rule.temperature;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)(logits[order[i]] - logits[order[0]]) / temperature);
    if (rule.top_p > 0 && rule.top_p < 1) {
        double part = 0;
        size_t m = 0;
        while (part < rule.top_p * sum)
            part += exp((double)(logits[order[m++]] - logits[order[0]]) / temperature);
        n = m;
        sum = part;
    }
    if (rule.min_p > 0) {
        double part = 0, least = log(rule.min_p) * temperature + (double)logits[order[0]];
        size_t m = 0;
        for (; m < n && (double)logits[order[m]] >= least; m++)
            part += exp((double)(logits[order[m]] - logits[order[0]]) / temperature);
        n = m;
        sum = part;
    }
    for (size_t i = 0; i < n; i++) {
        double share = exp((double)(logits[order[i]] - logits[order[0]]) / temperature) / sum;
        if (share > 1e-5) assert_int_equal(draw(&s, logits, rule, before + share / 2), order[i]);
        before += share;
    }
    rule.temperature = 0;
    assert_int_equal(draw(&s, logits, rule, 0.999), order[0]);
    free(order);
    ls_sampler_free(&s);
}

static void check(const float *logits, size_t V, double temperature, int64_t top_k) {
    check_rule(logits, V, (ls_sampler_rule){.temperature = temperature, .top_k = top_k});
}

static void test_draw(void **state) {
    enum { V = 3000 };
    static float logits[V];
    (void)state;
    ls_random_normal((ls_random_place){5, LS_STREAM_SAMPLE, 0, 0}, V, 3.0f, logits);
    check(logits, V, 1.0, 0);
    check(logits, V, 0.5, 40);
    check(logits, V, 2.0, 1);
    check(logits, 17, 1.0, 100);
    check(logits, 1, 1.0, 0);
}

/* 0.5, 0.25, 0.125 ...: how many tokens make up a probability is known. */
static void test_top_p(void **state) {
    static float logits[3000];
    enum { V = 8 };
    float halves[V];
    (void)state;
    for (int i = 0; i < V; i++) halves[i] = (float)(-i * log(2));
    static const struct {
        double top_p;
        uint32_t last;
    } known[] = {{0.4, 0}, {0.6, 1}, {0.8, 2}, {0.95, 4}, {1, V - 1}, {0, V - 1}, {1e-9, 0}};
    ls_sampler s = ls_sampler_create(V, ls_kernels_at(0));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ls_sampler_rule rule = {.temperature = 1, .top_p = known[i].top_p};
        assert_int_equal(draw(&s, halves, rule, 0.999999), known[i].last);
    }
    ls_sampler_free(&s);
    ls_random_normal((ls_random_place){6, LS_STREAM_SAMPLE, 0, 0}, 3000, 2.0f, logits);
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 0.8, .top_p = 0.9});
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1.5, .top_k = 50, .top_p = 0.5});
}

static void test_min_p(void **state) {
    static float logits[3000];
    (void)state;
    ls_random_normal((ls_random_place){8, LS_STREAM_SAMPLE, 0, 0}, 3000, 2.0f, logits);
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1, .min_p = 0.1});
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 3, .min_p = 0.001});
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1.5, .min_p = 0.01, .top_k = 20});
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1.2, .min_p = 0.02, .top_p = 0.95});
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1, .min_p = 1});
}

/* Flat logits: all tokens are needed. */
static void test_flat(void **state) {
    static float logits[3000];
    (void)state;
    for (int i = 0; i < 3000; i++) logits[i] = -40.0f * (float)i / 3000;
    check(logits, 3000, 1.0, 0);
    check(logits, 3000, 100.0, 0);
    for (int i = 0; i < 3000; i++) logits[i] = 1;
    check(logits, 3000, 1.0, 0);
    check_rule(logits, 3000, (ls_sampler_rule){.temperature = 1, .top_p = 0.5});
}

/* A token that was there counts once, whatever its sign. */
static void test_penalty(void **state) {
    static const float logits[] = {2, 1.5f, -1, 1}, changed[] = {1, 1.5f, -2, 1};
    const uint32_t tokens[] = {0, 2, 0, 0, 2};
    (void)state;
    ls_sampler s = ls_sampler_create(4, ls_kernels_at(0));
    ls_sampler_rule rule = {.temperature = 1, .penalty = 2}, plain = {.temperature = 1};
    for (int i = 0; i < 100; i++) {
        double u = i / 100.0;
        assert_int_equal(ls_sampler_draw(&s, logits, &rule, (ls_sampler_seen){tokens, 5}, u),
                         draw(&s, changed, plain, u));
    }
    rule.temperature = 0;
    assert_int_equal(ls_sampler_draw(&s, logits, &rule, (ls_sampler_seen){tokens, 5}, 0), 1);
    ls_sampler_free(&s);
}

/* Equal ones by number, zeros of both signs among them; large and small ones in order. */
static void test_order(void **state) {
    static const float logits[] = {-0.0f, 0.0f, -1.5f, 1.5f, 0.0f, -0.0f, 1.5f, 1e-40f, -1e-40f};
    (void)state;
    check(logits, sizeof logits / sizeof *logits, 1.0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw), cmocka_unit_test(test_top_p), cmocka_unit_test(test_order),
        plain_unit_test(test_min_p), plain_unit_test(test_flat),   cmocka_unit_test(test_penalty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
