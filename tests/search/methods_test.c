/* methods_test.c - the decisions of searches: against the published algorithms, written here as
 * they are published, and against tables of Ray Tune; in any order of the results. */
#include "search/methods.h"

#include <math.h>

#include "base/random.h"
#include "test.h"

enum { MOST = 40, RUNGS = 8 };

static ls_config base;

static int make(void **state) {
    ls_error e = {0};
    (void)state;
    ls_config_defaults(&base);
    return ls_config_set(&base, "data.path=x", &e) == LS_OK ? 0 : -1;
}

static ls_space space_of(const char *text) {
    ls_space s;
    ls_error e = {0};
    ls_buf file = {0};
    ls_buf_printf(&file, "%s", text);
    assert_ls_ok(ls_space_parse(&file, "space.yaml", &base, &s, &e), e);
    ls_buf_free(&file);
    return s;
}

#define LR "space: {optim.lr: {uniform: [0.1, 0.2]}}\n"

/* ---- results ---- */

/* The metric of a trial at a rung: trials differ, and change their places from rung to rung. */
static double metric_of(uint64_t seed, int t, int r) {
    return ls_random_uniform(seed, LS_STREAM_FAKE, (uint64_t)t, 0) +
           0.5 * ls_random_uniform(seed, LS_STREAM_FAKE, (uint64_t)t, 1 + (uint64_t)r);
}

/* One that is ready, at random; -1: none. */
static int choose_ready(const ls_search *s, uint64_t seed, uint64_t i) {
    int ready[MOST], n = 0;
    for (int t = 0; t < ls_search_ntrials(s); t++)
        if (ls_search_state_of(s, t) == LS_SEARCH_READY) ready[n++] = t;
    if (n == 0) return -1;
    return ready[(int)(ls_random_uniform(seed, LS_STREAM_FAKE, 1000, i) * n)];
}

/* No trial is ready or waiting. */
static void assert_over(const ls_search *s) {
    for (int t = 0; t < ls_search_ntrials(s); t++)
        assert_true(ls_search_state_of(s, t) > LS_SEARCH_WAITING);
}

/* Tells metrics in a random order of the trials until the search is over. */
static void run_search(ls_search *s, uint64_t values, uint64_t order) {
    ls_search_decide(s);
    for (uint64_t i = 0;; i++) {
        int t = choose_ready(s, order, i);
        if (t < 0) break;
        int r = ls_search_next_rung(s, t);
        ls_search_report(s, t, r, metric_of(values, t, r));
        ls_search_decide(s);
    }
    assert_over(s);
}

static void expect_counts(const ls_search *s, const int *counts) {
    for (int r = 0; r < ls_search_nrungs(s); r++)
        assert_int_equal(ls_search_count(s, r), counts[r]);
}

/* ---- asha, as it is published ---- */

/* Algorithm 2 of Li et al. with one worker. came [rung][n]: in their order. */
typedef struct published {
    int came[RUNGS][MOST], n[RUNGS];
    bool promoted[RUNGS][MOST];
    int nrungs, eta, ntrials, nstarted;
    uint64_t seed;
} published;

/* Is trial t among the best k of rung r? The earlier one of equal ones is better. */
static bool is_among(const published *p, int r, int i, int k) {
    int better = 0;
    double own = metric_of(p->seed, p->came[r][i], r);
    for (int j = 0; j < p->n[r]; j++) {
        double other = metric_of(p->seed, p->came[r][j], r);
        better += other < own || (other == own && j < i);
    }
    return better < k;
}

/* The best trial that may be promoted from rung r; -1: none. */
static int promotable(const published *p, int r) {
    int best = -1, k = p->n[r] / p->eta;
    for (int i = 0; i < p->n[r]; i++) {
        if (p->promoted[r][i] || !is_among(p, r, i, k)) continue;
        if (best < 0 ||
            metric_of(p->seed, p->came[r][i], r) < metric_of(p->seed, p->came[r][best], r))
            best = i;
    }
    return best;
}

/* Runs one job; false: there is none. */
static bool get_job(published *p) {
    for (int r = p->nrungs - 2; r >= 0; r--) {
        int i = promotable(p, r);
        if (i < 0) continue;
        p->promoted[r][i] = true;
        p->came[r + 1][p->n[r + 1]++] = p->came[r][i];
        return true;
    }
    if (p->nstarted == p->ntrials) return false;
    p->came[0][p->n[0]++] = p->nstarted++;
    return true;
}

static void test_published(void **state) {
    (void)state;
    ls_space s = space_of("method: asha\ntrials: 36\nsteps: 81\ngrace: 1\nreduction: 3\n" LR);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        published p = {.nrungs = 5, .eta = 3, .ntrials = 36, .seed = seed};
        ls_search *x = ls_search_open(&s, &base);
        while (get_job(&p)) continue;
        run_search(x, seed, seed + 7);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(ls_search_count(x, r), p.n[r]);
            for (int i = 0; i < p.n[r]; i++) assert_true(ls_search_reached(x, p.came[r][i]) >= r);
        }
        ls_search_close(x);
    }
    ls_space_free(&s);
}

/* The rungs and the numbers of trials of the papers' example: R = 9, eta = 3, 9 trials (bracket 0
 * of successive halving). With values that fall with the number, all promotions are of the best. */
static void test_counts(void **state) {
    (void)state;
    static const int want[] = {9, 3, 1};
    static const int64_t steps[] = {1, 3, 9};
    ls_space s = space_of("method: asha\ntrials: 9\nsteps: 9\ngrace: 1\nreduction: 3\n" LR);
    static const double metrics[] = {7, 8, 1, 9, 6, 2, 5, 4, 3};
    ls_search *x = ls_search_open(&s, &base);
    for (int t; (t = choose_ready(x, 1, 0)) >= 0; ls_search_decide(x))
        ls_search_report(x, t, ls_search_next_rung(x, t), metrics[t]);
    assert_int_equal(ls_search_nrungs(x), 3);
    for (int r = 0; r < 3; r++) assert_int_equal(ls_search_rung_steps(x, r), steps[r]);
    expect_counts(x, want);
    assert_int_equal(ls_search_best(x), 2);
    assert_int_equal(ls_search_reached(x, 5), 1);
    ls_search_close(x);
    ls_space_free(&s);
}

/* Ray Tune's defaults: max_t 100, grace_period 1, reduction_factor 4 give these milestones. */
static void test_milestones(void **state) {
    (void)state;
    static const int64_t want[] = {1, 4, 16, 64, 100};
    ls_space s = space_of("method: asha\ntrials: 2\nsteps: 100\n" LR);
    ls_search *x = ls_search_open(&s, &base);
    assert_int_equal(ls_search_nrungs(x), 5);
    for (int r = 0; r < 5; r++) assert_int_equal(ls_search_rung_steps(x, r), want[r]);
    ls_search_close(x);
    ls_space_free(&s);
}

/* Too few trials for a promotion: when all have come, the best goes on, to the end. */
static void test_few(void **state) {
    (void)state;
    static const int want[] = {3, 1, 1, 1, 1};
    ls_space s = space_of("method: asha\ntrials: 3\nsteps: 100\n" LR);
    ls_search *x = ls_search_open(&s, &base);
    run_search(x, 3, 3);
    expect_counts(x, want);
    ls_search_close(x);
    ls_space_free(&s);
}

/* ---- asha, as Ray Tune has it ---- */

static double ray_metric(int t, int r) {
    return (t * 7919 + r * 10007 + t * r * 131 + t * t * 37) % 1009;
}

/* How far 20 trials with these metrics come, one after the other: AsyncHyperBandScheduler of Ray
 * 2.60 with mode max. */
static void test_ray(void **state) {
    (void)state;
    static const struct {
        const char *rules;
        int reached[20];
    } tables[] = {
        {"steps: 100\n", {4, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0}},
        {"steps: 81\nreduction: 3\n", {4, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0, 0, 0}},
        {"steps: 20\nreduction: 2\n",
         {5, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 5, 0, 0, 0}}};
    for (int i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "method: asha\nrule: stop\ntrials: 20\ngrace: 1\nmode: max\n%s" LR,
                 tables[i].rules);
        ls_space s = space_of(text);
        ls_search *x = ls_search_open(&s, &base);
        for (int t; (t = choose_ready(x, 1, 0)) >= 0; ls_search_decide(x))
            ls_search_report(x, t, ls_search_next_rung(x, t),
                             ray_metric(t, ls_search_next_rung(x, t)));
        for (int t = 0; t < 20; t++)
            assert_int_equal(ls_search_reached(x, t), tables[i].reached[t]);
        ls_search_close(x);
        ls_space_free(&s);
    }
}

/* The example of Ray Tune's documentation: after the metrics 2 and 4 the limit is 3, so a trial
 * with 1 ends. */
static void test_ray_example(void **state) {
    (void)state;
    static const double metrics[] = {2, 4, 1, 2};
    static const bool stops[] = {false, false, true, false}; /* then it is 2 */
    ls_space s = space_of("method: asha\nrule: stop\ntrials: 4\nsteps: 10\ngrace: 1\nreduction: 2\n"
                          "mode: max\n" LR);
    ls_search *x = ls_search_open(&s, &base);
    for (int t = 0; t < 4; t++) {
        ls_search_report(x, t, 0, metrics[t]);
        ls_search_decide(x);
        assert_int_equal(ls_search_state_of(x, t), stops[t] ? LS_SEARCH_STOPPED : LS_SEARCH_READY);
    }
    ls_search_close(x);
    ls_space_free(&s);
}

/* ---- any order ---- */

static void same_decisions(const ls_search *a, const ls_search *b) {
    for (int t = 0; t < ls_search_ntrials(a); t++) {
        assert_int_equal(ls_search_reached(a, t), ls_search_reached(b, t));
        assert_int_equal(ls_search_nparts(a, t), ls_search_nparts(b, t));
        for (int i = 0; i < ls_search_nparts(a, t); i++) {
            const ls_search_part *p = ls_search_part_of(a, t, i), *q = ls_search_part_of(b, t, i);
            assert_true(p->first == q->first && p->source == q->source);
            assert_int_equal(p->source_part, q->source_part);
            assert_string_equal(p->point.values[0], q->point.values[0]);
        }
    }
    assert_int_equal(ls_search_best(a), ls_search_best(b));
}

static void test_orders(void **state) {
    (void)state;
    static const char *const texts[] = {
        "method: random\ntrials: 7\n" LR, "method: asha\ntrials: 40\nsteps: 100\n" LR,
        "method: asha\ntrials: 40\nsteps: 100\nrule: stop\nreduction: 2\n" LR,
        "method: pbt\ntrials: 12\nsteps: 50\ninterval: 7\n" LR};
    for (int i = 0; i < 4; i++) {
        ls_space s = space_of(texts[i]);
        for (uint64_t values = 1; values <= 5; values++) {
            ls_search *first = ls_search_open(&s, &base);
            run_search(first, values, 1);
            for (uint64_t order = 2; order <= 10; order++) {
                ls_search *x = ls_search_open(&s, &base);
                run_search(x, values, order);
                same_decisions(first, x);
                ls_search_close(x);
            }
            ls_search_close(first);
        }
        ls_space_free(&s);
    }
}

/* Told all at once, as by a journal, it decides what it had decided. */
static void test_again(void **state) {
    (void)state;
    ls_space s = space_of("method: pbt\ntrials: 12\nsteps: 50\ninterval: 7\n" LR);
    ls_search *first = ls_search_open(&s, &base), *x = ls_search_open(&s, &base);
    run_search(first, 4, 4);
    for (int t = 0; t < 12; t++)
        for (int r = 0; r < ls_search_nrungs(x); r++) ls_search_report(x, t, r, metric_of(4, t, r));
    ls_search_decide(x);
    assert_over(x);
    same_decisions(first, x);
    ls_search_close(first);
    ls_search_close(x);
    ls_space_free(&s);
}

/* ---- pbt ---- */

/* Of 8 trials the worst 2 go on from the best 2; of 5 the worst 2; of 3 the worst. With quantile
 * 0.28 the worst 7 of 25. */
static void test_quantiles(void **state) {
    (void)state;
    static const int trials[] = {8, 5, 3, 2, 25}, replaced[] = {2, 2, 1, 1, 7};
    for (int i = 0; i < 5; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "method: pbt\ntrials: %d\nsteps: 20\ninterval: 10\nquantile: %s\n" LR, trials[i],
                 i < 4 ? "0.25" : "0.28");
        ls_space s = space_of(text);
        ls_search *x = ls_search_open(&s, &base);
        int n = 0;
        for (int t = 0; t < trials[i]; t++) {
            assert_int_equal(ls_search_state_of(x, t), LS_SEARCH_READY);
            ls_search_report(x, t, 0, t); /* trial 0 is the best */
            assert_int_equal(ls_search_state_of(x, t), LS_SEARCH_WAITING);
        }
        ls_search_decide(x);
        for (int t = 0; t < trials[i]; t++) {
            int last = ls_search_nparts(x, t) - 1;
            const ls_search_part *p = ls_search_part_of(x, t, last);
            n += last;
            assert_int_equal(last > 0, t >= trials[i] - replaced[i]);
            if (last) assert_true(p->first == 0 && p->source < replaced[i] && p->source_part == 0);
        }
        assert_int_equal(n, replaced[i]);
        ls_search_close(x);
        ls_space_free(&s);
    }
}

/* ---- losses that are no numbers ---- */

static void test_diverged(void **state) {
    (void)state;
    static const int want[] = {6, 1, 1};
    ls_space s = space_of("method: asha\ntrials: 6\nsteps: 9\ngrace: 1\nreduction: 3\n" LR);
    ls_search *x = ls_search_open(&s, &base);
    for (int t = 0; t < 6; t++) ls_search_report(x, t, 0, t == 4 ? 5 : NAN);
    ls_search_decide(x);
    ls_search_report(x, 4, 1, 4);
    ls_search_decide(x);
    ls_search_report(x, 4, 2, 3);
    ls_search_decide(x);
    expect_counts(x, want);
    assert_over(x);
    assert_int_equal(ls_search_state_of(x, 3), LS_SEARCH_DIVERGED);
    assert_int_equal(ls_search_state_of(x, 4), LS_SEARCH_DONE);
    assert_int_equal(ls_search_best(x), 4);
    ls_search_close(x);
    ls_space_free(&s);
    /* pbt replaces all of them; if all trials are such, it ends */
    s = space_of("method: pbt\ntrials: 4\nsteps: 20\ninterval: 10\n" LR);
    x = ls_search_open(&s, &base);
    for (int t = 0; t < 4; t++) ls_search_report(x, t, 0, t == 2 ? 5 : NAN);
    ls_search_decide(x);
    for (int t = 0; t < 4; t++) assert_int_equal(ls_search_nparts(x, t), t == 2 ? 1 : 2);
    for (int t = 0; t < 4; t++) ls_search_report(x, t, 1, INFINITY);
    ls_search_decide(x);
    assert_over(x);
    assert_int_equal(ls_search_state_of(x, 2), LS_SEARCH_DIVERGED);
    assert_int_equal(ls_search_best(x), -1);
    ls_search_close(x);
    ls_space_free(&s);
}

/* mode max: the highest is the best, and metrics are what was told. */
static void test_maximize(void **state) {
    (void)state;
    ls_space s = space_of("method: asha\ntrials: 4\nsteps: 2\ngrace: 1\nreduction: 2\nmode: max\n"
                          "metric: val_accuracy\n" LR);
    ls_search *x = ls_search_open(&s, &base);
    for (int t = 0; t < 4; t++) ls_search_report(x, t, 0, 0.1 * t);
    ls_search_decide(x);
    assert_int_equal(ls_search_state_of(x, 0), LS_SEARCH_STOPPED);
    assert_int_equal(ls_search_state_of(x, 3), LS_SEARCH_READY);
    ls_search_report(x, 3, 1, 0.7);
    assert_true(ls_search_metric(x, 3, 1) == 0.7);
    assert_int_equal(ls_search_best(x), 3);
    ls_search_close(x);
    ls_space_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),  cmocka_unit_test(test_counts),
        cmocka_unit_test(test_milestones), cmocka_unit_test(test_few),
        cmocka_unit_test(test_ray),        cmocka_unit_test(test_ray_example),
        cmocka_unit_test(test_orders),     cmocka_unit_test(test_again),
        cmocka_unit_test(test_quantiles),  cmocka_unit_test(test_diverged),
        cmocka_unit_test(test_maximize),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
