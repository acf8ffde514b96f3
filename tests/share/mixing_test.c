/* mixing_test.c - who mixes with whom in gossip: means are exact after log2 rounds, distances
 * shrink as the formula says, and the mean by push-sum weights never changes. */
#include <math.h>
#include <string.h>

#include "share/mixing.h"
#include "test.h"

enum { MOST = LS_MIXING_MOST };

typedef struct state {
    double x[MOST];
    ls_mixing mixing;
} state;

static state begin(const ls_gossip *g) {
    state s;
    memset(&s, 0, sizeof s);
    for (int i = 0; i < g->replicas; i++) {
        s.x[i] = i * i % 7 - 0.25 * i;
        s.mixing.mass[i] = 1;
    }
    return s;
}

static void mix(const ls_gossip *g, state *s, int64_t round) {
    double was[MOST];
    memcpy(was, s->x, sizeof was);
    ls_mixing_make(g, round, s->mixing.mass, &s->mixing);
    for (int i = 0; i < g->replicas; i++) {
        s->x[i] = 0;
        for (int j = 0; j < g->replicas; j++) s->x[i] += s->mixing.of[i][j] * was[j];
    }
}

static double mean(const ls_gossip *g, const state *s) {
    double sum = 0;
    for (int i = 0; i < g->replicas; i++) sum += s->mixing.mass[i] * s->x[i];
    return sum / g->replicas;
}

/* The root of the sum of the squares of the distances from the mean. */
static double distance(const ls_gossip *g, const state *s) {
    double sum = 0, m = mean(g, s);
    for (int i = 0; i < g->replicas; i++) sum += (s->x[i] - m) * (s->x[i] - m);
    return sqrt(sum);
}

/* All graphs for which the number of replicas is possible. */
static void test_means_stay(void **arg) {
    (void)arg;
    for (int graph = 0; graph <= LS_GRAPH_RANDOM; graph++)
        for (int algorithm = 0; algorithm <= LS_GOSSIP_SGP; algorithm++)
            for (int n = 2; n <= 17; n++) {
                ls_gossip g = {(ls_sync_graph)graph, (ls_sync_algorithm)algorithm, n, 5};
                if (ls_gossip_check(&g, NULL) != LS_OK) continue;
                state s = begin(&g);
                double first = mean(&g, &s), before = distance(&g, &s);
                for (int64_t r = 0; r < 700; r++) {
                    double mass = 0;
                    mix(&g, &s, r);
                    for (int i = 0; i < n; i++) {
                        double sum = 0;
                        for (int j = 0; j < n; j++) sum += s.mixing.of[i][j];
                        assert_true(fabs(sum - 1) < 1e-12);
                        assert_true(s.mixing.of[i][i] > 0);
                        mass += s.mixing.mass[i];
                    }
                    assert_true(fabs(mass - n) < 1e-9);
                    assert_true(fabs(mean(&g, &s) - first) < 1e-9);
                }
                assert_true(distance(&g, &s) < 1e-3 * before);
            }
}

static void test_exponential(void **arg) {
    (void)arg;
    for (int n = 2, rounds = 1; n <= MOST; n *= 2, rounds++)
        for (int algorithm = 0; algorithm <= LS_GOSSIP_SGP; algorithm++) {
            ls_gossip g = {LS_GRAPH_EXPONENTIAL, (ls_sync_algorithm)algorithm, n, 0};
            assert_int_equal(ls_gossip_period(&g), rounds);
            state s = begin(&g);
            for (int64_t r = 0; r < rounds; r++) {
                int list[MOST];
                assert_true(distance(&g, &s) > 1e-3);
                mix(&g, &s, r);
                assert_int_equal(ls_mixing_terms(&s.mixing, 0, list), 2);
                assert_int_equal(list[1], algorithm ? n - (1 << r) : 1 << r);
            }
            assert_true(distance(&g, &s) < 1e-12);
        }
}

/* The waves on a ring, and on a torus, are the eigenvectors: w + w (cos a + cos b) ... */
static void test_distances(void **arg) {
    (void)arg;
    const double turn = 8 * atan(1.0);
    static const struct {
        ls_sync_graph graph;
        int n, rows;
        double factor;
    } known[] = {
        {LS_GRAPH_RING, 8, 1, 0.804738}, /* (1 + 2 cos(45 degrees)) / 3 */
        {LS_GRAPH_TORUS, 8, 2, 0.5},     /* 2 x 4: four parts; (1 + 1 + 2 cos(90 degrees)) / 4 */
        {LS_GRAPH_TORUS, 16, 4, 0.6},    /* 4 x 4: (1 + 2 + 2 cos(90 degrees)) / 5 */
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        ls_gossip g = {known[k].graph, LS_GOSSIP_DPSGD, known[k].n, 0};
        int columns = g.replicas / known[k].rows;
        state s = begin(&g);
        for (int i = 0; i < g.replicas; i++) s.x[i] = cos(turn * (i % columns) / columns);
        for (int64_t r = 0; r < 10; r++) {
            double before = distance(&g, &s);
            mix(&g, &s, r);
            assert_true(fabs(distance(&g, &s) / before - known[k].factor) < 1e-6);
        }
    }
}

/* Pairs, drawn anew in each round, and the same for the same seed. */
static void test_random(void **arg) {
    (void)arg;
    ls_gossip g = {LS_GRAPH_RANDOM, LS_GOSSIP_DPSGD, 8, 1}, other = g;
    other.seed = 2;
    state s = begin(&g), again = begin(&g), differs = begin(&g);
    int same = 0, same_seed = 0, list[MOST];
    assert_int_equal(ls_gossip_period(&g), 0);
    for (int64_t r = 0; r < 50; r++) {
        ls_mixing before = s.mixing;
        mix(&g, &s, r);
        mix(&g, &again, r);
        mix(&other, &differs, r);
        assert_memory_equal(&s.mixing, &again.mixing, sizeof s.mixing);
        same += memcmp(&s.mixing, &before, sizeof before) == 0;
        same_seed += memcmp(&s.mixing, &differs.mixing, sizeof before) == 0;
        for (int i = 0; i < 8; i++) assert_int_equal(ls_mixing_terms(&s.mixing, i, list), 2);
    }
    assert_true(same < 5 && same_seed < 5);
}

/* On a random directed graph some get nothing, and others twice: the weights show it. */
static void test_push_sum(void **arg) {
    (void)arg;
    ls_gossip g = {LS_GRAPH_RANDOM, LS_GOSSIP_SGP, 8, 1};
    state s = begin(&g);
    double least = 1, most = 1;
    for (int64_t r = 0; r < 50; r++) {
        mix(&g, &s, r);
        for (int i = 0; i < 8; i++) {
            least = fmin(least, s.mixing.mass[i]);
            most = fmax(most, s.mixing.mass[i]);
        }
    }
    assert_true(least < 0.6 && most > 1.6);
}

static void test_refused(void **arg) {
    (void)arg;
    static const struct {
        ls_gossip g;
        const char *why;
    } bad[] = {
        {{LS_GRAPH_RING, LS_GOSSIP_DPSGD, 1, 0}, "one replica has no neighbour"},
        {{LS_GRAPH_EXPONENTIAL, LS_GOSSIP_DPSGD, 6, 0}, "sync.replicas is 6: use 8"},
        {{LS_GRAPH_TORUS, LS_GOSSIP_SGP, 7, 0}, "sync.replicas 7 is no product"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_error e = {0};
        assert_int_equal(ls_gossip_check(&bad[i].g, &e), LS_EINVAL);
        assert_non_null(strstr(e.msg, bad[i].why));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_stay), cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_distances),  cmocka_unit_test(test_random),
        cmocka_unit_test(test_push_sum),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
