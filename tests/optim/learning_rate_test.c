/* learning_rate_test.c - the learning rate's end points, its shape, and its formula. */
#include "optim/learning_rate.h"

#include <math.h>
#include <stdio.h>

#include "test.h"

static void assert_near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * (fabs(want) + 1e-3)))
        print_error("%.17g, not %.17g\n", got, want);
    assert_true(fabs(got - want) <= 1e-12 * (fabs(want) + 1e-3));
}

#define COSINE(top, low, w, n, decay, every, factor)                                               \
    (ls_schedule) {                                                                                \
        .kind = LS_SCHEDULE_COSINE, .lr = top, .min_lr = low, .warmup = w, .steps = n,             \
        .decay_fraction = decay, .step_every = every, .step_factor = factor                        \
    }

static void test_end_points(void **state) {
    (void)state;
    const ls_schedule s = COSINE(3e-4, 3e-5, 100, 1100, 0, 1, 0);
    assert_near(ls_schedule_rate(&s, 0), 3e-6);
    assert_near(ls_schedule_rate(&s, 49), 1.5e-4);
    assert_near(ls_schedule_rate(&s, 99), 3e-4);
    assert_near(ls_schedule_rate(&s, 100), 3e-4);
    assert_near(ls_schedule_rate(&s, 600), (3e-4 + 3e-5) / 2);
    assert_near(ls_schedule_rate(&s, 1100), 3e-5);
    assert_near(ls_schedule_rate(&s, 1000000), 3e-5);
}

/* The rate at the end of the warm-up, and after the last step. */
static void assert_rates(const ls_config *c, double lr, double min_lr) {
    const ls_schedule s = ls_schedule_of(c, 0);
    assert_near(ls_schedule_rate(&s, s.warmup), lr);
    assert_near(ls_schedule_rate(&s, s.steps), min_lr);
}

/* The batch of a config is 4 times that which its rates are for. */
static void test_scaled(void **state) {
    (void)state;
    static const char *const scales[] = {"optim.scale_lr=linear", "optim.scale_lr=sqrt"};
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    c.train.batch = 256;
    c.optim.lr = 3e-3;
    c.optim.min_lr = 3e-4;
    assert_rates(&c, 3e-3, 3e-4);
    assert_ls_ok(ls_config_set(&c, "optim.scale_batch=64", &e), e);
    for (int i = 0; i < 2; i++) {
        double want = i ? 2 : 4;
        assert_ls_ok(ls_config_set(&c, scales[i], &e), e);
        assert_rates(&c, want * 3e-3, want * 3e-4);
    }
}

static void set(ls_config *c, const char *what) {
    ls_error e = {0};
    assert_ls_ok(ls_config_set(c, what, &e), e);
}

/* Where the batch grows, the rate goes along, and the curve by samples: 10 steps of 8 samples, then
 * 20 of 32. */
static void test_phases(void **state) {
    (void)state;
    ls_config c;
    ls_config_defaults(&c);
    set(&c, "train.batch=[[0, 8], [10, 32]]");
    set(&c, "train.steps=30");
    set(&c, "optim.schedule=linear");
    set(&c, "optim.lr=1");
    set(&c, "optim.min_lr=0");
    set(&c, "optim.warmup=0");
    ls_schedule s = ls_schedule_of(&c, 0);
    for (int64_t i = 0; i < 30; i++) {
        double samples = i < 10 ? 8.0 * (double)i : 80 + 32.0 * (double)(i - 10);
        assert_near(ls_schedule_rate(&s, i), 1 - samples / 720);
    }
    set(&c, "optim.scale_lr=sqrt");
    set(&c, "optim.scale_batch=8");
    s = ls_schedule_of(&c, 0);
    assert_near(ls_schedule_rate(&s, 9), 1 - 72.0 / 720);
    assert_near(ls_schedule_rate(&s, 10), 2 * (1 - 80.0 / 720));
}

/* As many steps as take the samples, or the part of the epochs, of a set of 100 samples. */
static void test_warmup(void **state) {
    (void)state;
    static const struct {
        const char *batch, *warmup;
        int64_t steps;
    } rows[] = {{"8", "20 steps", 20},
                {"8", "0 samples", 0},
                {"8", "1 samples", 1},
                {"8", "80 samples", 10},
                {"8", "81 samples", 11},
                {"8", "0.5 epochs", 7},
                {"1", "0.07 epochs", 7},
                {"8", "2 epochs", 26}, /* 13 steps each: the last has 4 samples */
                {"8", "auto", 50},     /* of 1000 steps */
                {"[[0, 8], [5, 20]]", "80 samples", 7},
                {"[[0, 8], [5, 20]]", "1 epochs", 8}};
    ls_config c;
    ls_error e = {0};
    ls_config_defaults(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        snprintf(text, sizeof text, "train.batch=%s", rows[i].batch);
        set(&c, text);
        snprintf(text, sizeof text, "optim.warmup=%s", rows[i].warmup);
        set(&c, text);
        assert_int_equal(ls_schedule_of(&c, 100).warmup, rows[i].steps);
        assert_ls_ok(ls_schedule_check(&c, 100, &e), e);
    }
    set(&c, "train.batch=8");
    set(&c, "train.steps=25");
    set(&c, "optim.warmup=2 epochs");
    assert_int_equal(ls_schedule_check(&c, 100, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "optim.warmup 2 epochs: train.steps 25 are fewer"));
    set(&c, "optim.warmup=201 samples");
    assert_int_equal(ls_schedule_check(&c, 100, &e), LS_EINVAL);
    set(&c, "optim.warmup=200 samples");
    assert_ls_ok(ls_schedule_check(&c, 100, &e), e);
}

static void test_formula(void **state) {
    (void)state;
    const ls_schedule s = COSINE(1e-2, 1e-4, 7, 93, 0, 1, 0);
    for (int64_t i = 0; i < 110; i++) {
        double done = fmin((double)(i - 7) / 86.0, 1.0);
        double want = i < 7 ? 1e-2 * (double)(i + 1) / 7.0
                            : 1e-4 + (1e-2 - 1e-4) * (1 + cos(acos(-1.0) * done)) / 2;
        assert_near(ls_schedule_rate(&s, i), want);
    }
}

static void test_monotone(void **state) {
    (void)state;
    for (int64_t warmup = 0; warmup <= 30; warmup += 15) {
        const ls_schedule s = COSINE(1, 0.1, warmup, 200, 0, 1, 0);
        for (int64_t i = 1; i < 220; i++) {
            double before = ls_schedule_rate(&s, i - 1), now = ls_schedule_rate(&s, i);
            if (i < warmup) assert_true(now > before);
            if (i > warmup && i <= 200) assert_true(now < before);
            assert_true(now > 0 && now <= 1);
            if (i >= warmup) assert_true(now >= 0.1);
        }
    }
}

/* No warm-up starts at the full rate; all warm-up ends there; a run of no steps is the floor. */
static void test_extremes(void **state) {
    (void)state;
    assert_near(ls_schedule_rate(&COSINE(0.5, 0.1, 0, 10, 0, 1, 0), 0), 0.5);
    assert_near(ls_schedule_rate(&COSINE(0.5, 0.1, 10, 10, 0, 1, 0), 9), 0.5);
    assert_near(ls_schedule_rate(&COSINE(0.5, 0.1, 10, 10, 0, 1, 0), 10), 0.1);
    assert_near(ls_schedule_rate(&COSINE(0.5, 0.1, 0, 0, 0, 1, 0), 0), 0.1);
    assert_near(ls_schedule_rate(&COSINE(0.5, 0.5, 0, 10, 0, 1, 0), 5), 0.5);
}

static double rate(ls_schedule s, ls_schedule_kind kind, int64_t step) {
    s.kind = kind;
    return ls_schedule_rate(&s, step);
}

/* Each curve at points that are easy to compute by hand. */
static void test_curves(void **state) {
    (void)state;
    const ls_schedule s = COSINE(1, 0.1, 10, 110, 0.5, 40, 0.25);
    for (int kind = LS_SCHEDULE_COSINE; kind <= LS_SCHEDULE_WSD; kind++) {
        assert_near(rate(s, (ls_schedule_kind)kind, 4), 0.5); /* the same warm-up */
        assert_near(rate(s, (ls_schedule_kind)kind, 10), 1);
    }
    assert_near(rate(s, LS_SCHEDULE_LINEAR, 60), 0.55);
    assert_near(rate(s, LS_SCHEDULE_LINEAR, 85), 0.325);
    assert_near(rate(s, LS_SCHEDULE_LINEAR, 110), 0.1);
    assert_near(rate(s, LS_SCHEDULE_CONSTANT, 109), 1);
    assert_near(rate(s, LS_SCHEDULE_CONSTANT, 1000), 1);
    assert_near(rate(s, LS_SCHEDULE_STEP, 49), 1);
    assert_near(rate(s, LS_SCHEDULE_STEP, 50), 0.25);
    assert_near(rate(s, LS_SCHEDULE_STEP, 89), 0.25);
    assert_near(rate(s, LS_SCHEDULE_STEP, 90), 0.0625);
    assert_near(rate(s, LS_SCHEDULE_WSD, 54), 1);
    assert_near(rate(s, LS_SCHEDULE_WSD, 55), 1);
    assert_near(rate(s, LS_SCHEDULE_WSD, 66), 0.82);
    assert_near(rate(s, LS_SCHEDULE_WSD, 110), 0.1);
    ls_schedule all = s; /* the decay begins after the warm-up at the earliest */
    all.decay_fraction = 1;
    assert_near(rate(all, LS_SCHEDULE_WSD, 10), 1);
    assert_near(rate(all, LS_SCHEDULE_WSD, 60), 0.55);
}

/* The last k of 100 steps decay where decay_fraction is k / 100. */
static void test_decay(void **state) {
    (void)state;
    ls_schedule s = COSINE(1, 0, 0, 100, 0.5, 40, 0.25);
    for (int k = 1; k <= 100; k++) {
        s.decay_fraction = k / 100.0;
        assert_true(rate(s, LS_SCHEDULE_WSD, 100 - k) == 1);
        assert_near(rate(s, LS_SCHEDULE_WSD, 101 - k), 1 - 1.0 / k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaled),   cmocka_unit_test(test_phases),
        cmocka_unit_test(test_warmup),   cmocka_unit_test(test_end_points),
        cmocka_unit_test(test_formula),  cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_extremes), cmocka_unit_test(test_curves),
        cmocka_unit_test(test_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
