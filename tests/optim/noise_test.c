/* noise_test.c - the gradient noise scale of synthetic gradients whose covariance is known. */
/* ctest: seconds=8 */
/* ctest: long-asan: exec/exec measures the same noise */
#include "optim/noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "test.h"

enum { BLOCKS = 24, FLOATS = BLOCKS * LS_NOISE_SIGNS, MOST_V = 16, STEPS = 120 };

/* Gradients of samples are normal, with this mean and deviation of element i. */
static double mean_of(size_t i) { return 0.02 * (1 + (double)(i % 7)) * (i % 2 ? 1 : -1); }
static double deviation_of(size_t i) {
    return 0.05 + 0.3 * (double)(i % 13 == 0) + 1e-5 * (double)i;
}

static double true_scale(void) {
    double trace = 0, square = 0;
    for (size_t i = 0; i < FLOATS; i++) {
        trace += deviation_of(i) * deviation_of(i);
        square += mean_of(i) * mean_of(i);
    }
    return trace / square;
}

static double normal(uint64_t step, uint64_t vw, size_t i) {
    double u = ls_random_uniform(9, LS_STREAM_FAKE, step * MOST_V + vw, 2 * i);
    double v = ls_random_uniform(9, LS_STREAM_FAKE, step * MOST_V + vw, 2 * i + 1);
    return sqrt(-2 * log(1 - u)) * cos(2 * acos(-1.0) * v);
}

/* How virtual workers' samples depend on each other. */
typedef enum samples_kind {
    INDEPENDENT,
    PAIRS /* two virtual workers have the same */
} samples_kind;

typedef struct setting {
    int V;
    double b;      /* samples of a virtual worker */
    double factor; /* of all gradients, which `scale` undoes */
    samples_kind kind;
} setting;

static double grads[MOST_V][FLOATS];

/* One step: what workers would compute, in plain loops. */
static ls_noise_step step_of(const setting *s, int64_t step) {
    double numbers[MOST_V * LS_NOISE_NUMBERS], whole = 0;
    static ls_noise_signs signs;
    ls_noise_step out;
    ls_noise_draw(3, step, &signs);
    for (int v = 0; v < s->V; v++) {
        uint64_t draw = (uint64_t)(s->kind == PAIRS ? v / 2 : v);
        for (size_t i = 0; i < FLOATS; i++)
            grads[v][i] =
                s->factor / s->V *
                (mean_of(i) + deviation_of(i) * normal((uint64_t)step, draw, i) / sqrt(s->b));
        double bins[LS_NOISE_SUMS] = {0};
        for (size_t k = 0; k < BLOCKS; k++) {
            double sums[2] = {0, 0};
            for (size_t i = 0; i < LS_NOISE_SIGNS; i++) {
                double g = grads[v][k * LS_NOISE_SIGNS + i];
                sums[0] += g * g;
                sums[1] += g * (double)signs.signs[i];
            }
            if (ls_noise_takes(ls_noise_turns(BLOCKS), k, step))
                ls_noise_add_block(&signs, BLOCKS, k, (float[]){(float)sums[0], (float)sums[1]},
                                   bins);
        }
        ls_noise_add_up(bins, numbers + v * LS_NOISE_NUMBERS);
    }
    for (size_t i = 0; i < FLOATS; i++) {
        double sum = 0;
        if (!ls_noise_takes(ls_noise_turns(BLOCKS), i / LS_NOISE_SIGNS, step)) continue;
        for (int v = 0; v < s->V; v++) sum += grads[v][i];
        whole += sum * sum;
    }
    const ls_noise_sums n = {.V = s->V, .numbers = numbers, .whole = whole, .scale = 1 / s->factor};
    ls_noise_sums full = n;
    full.samples = (uint64_t)(s->b * s->V);
    ls_noise_of(&full, &out);
    assert_true(out.known);
    return out;
}

static ls_noise_scale scale_of(const setting *s) {
    ls_noise_mean m = {0};
    for (int64_t i = 0; i < STEPS; i++) {
        ls_noise_step one = step_of(s, i);
        ls_noise_add(&m, &one);
    }
    assert_int_equal(m.steps, STEPS);
    return ls_noise_scale_of(&m, s->V);
}

static void test_known(void **state) {
    (void)state;
    static const setting settings[] = {
        {8, 1, 1, INDEPENDENT}, {2, 4, 64, INDEPENDENT}, {5, 2, 0.5, INDEPENDENT}};
    double want = true_scale();
    assert_true(want > 1 && want < 20);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        ls_noise_scale s = scale_of(&settings[i]);
        if (!(fabs(s.simple / want - 1) < 0.03) || !(fabs(s.fit / want - 1) < 0.03))
            fail_msg("V %d: %g and %g, not %g", settings[i].V, s.simple, s.fit, want);
        if (settings[i].V == 2)
            assert_true(isnan(s.misfit)); /* a line through two points */
        else
            assert_true(s.misfit < 0.01);
    }
}

/* Gradients that are alike in pairs don't behave as samples: the misfit shows it. */
static void test_misfit(void **state) {
    (void)state;
    const setting s = {8, 1, 1, PAIRS};
    assert_true(scale_of(&s).misfit > 0.1);
}

static void test_levels(void **state) {
    (void)state;
    assert_int_equal(ls_noise_nlevels(2), 2);
    assert_int_equal(ls_noise_nlevels(8), 4);
    assert_int_equal(ls_noise_nlevels(5), 4); /* 1, 2, 4, 5 */
    assert_int_equal(ls_noise_level_size(5, 2), 4);
    assert_int_equal(ls_noise_level_size(5, 3), 5);
    assert_int_equal(ls_noise_level_size(8, 3), 8);
    assert_int_equal(ls_noise_nlevels(4096), 13);
    assert_int_equal(ls_noise_nlevels(4095), 13);
}

/* Each block is taken once in as many steps as there are turns; the signs change, and half of them
 * are -1. */
static void test_turns(void **state) {
    (void)state;
    ls_noise_signs a, b;
    int sum = 0, differ = 0;
    assert_true(ls_noise_turns(1) == 1 && ls_noise_turns(127) == 1 && ls_noise_turns(128) == 2);
    assert_true(ls_noise_turns(1000000) == 8);
    for (size_t block = 0; block < 40; block++) {
        int n = 0;
        for (int64_t step = 5; step < 13; step++) n += ls_noise_takes(8, block, step);
        assert_int_equal(n, 1);
        assert_true(ls_noise_takes(1, block, 3));
    }
    ls_noise_draw(1, 0, &a);
    ls_noise_draw(1, 1, &b);
    for (int i = 0; i < LS_NOISE_SIGNS; i++) {
        assert_true(a.signs[i] == 1 || a.signs[i] == -1);
        sum += (int)a.signs[i];
        differ += a.signs[i] != b.signs[i];
    }
    assert_in_range(sum + 130, 0, 260);
    assert_in_range(differ, 400, 624);
}

/* Floats of all magnitudes, added in another order and by several workers: the same bits, and those
 * of the sum of integers. */
static void test_exact(void **state) {
    (void)state;
    enum { N = 3000, WORKERS = 3 };
    static ls_noise_signs signs; /* of blocks that all have the sign of key 0: -1 */
    static float list[N][2];
    double one[LS_NOISE_SUMS] = {0}, parts[WORKERS][LS_NOISE_SUMS] = {{0}}, a[LS_NOISE_NUMBERS],
           b[LS_NOISE_NUMBERS];
    for (uint64_t i = 0; i < N; i++) {
        double sign = ls_random_uniform(5, LS_STREAM_FAKE, 0, 3 * i) < 0.5 ? -1 : 1;
        double power = 180 * ls_random_uniform(5, LS_STREAM_FAKE, 0, 3 * i + 1) - 80;
        list[i][0] = (float)exp2(power);
        list[i][1] =
            (float)(sign * exp2(power) * (1 + ls_random_uniform(5, LS_STREAM_FAKE, 0, 3 * i + 2)));
        ls_noise_add_block(&signs, N, i, list[i], one);
    }
    for (size_t i = N; i-- > 0;) ls_noise_add_block(&signs, N, i, list[i], parts[i % 7 % WORKERS]);
    for (int k = 0; k < LS_NOISE_SUMS; k++) parts[2][k] += parts[0][k] + parts[1][k];
    assert_memory_equal(one, parts[2], sizeof one);
    ls_noise_add_up(one, a);
    ls_noise_add_up(parts[2], b);
    assert_memory_equal(a, b, sizeof a);

    /* 2^100 + 2^50 - 2^100 + 3: a chain of doubles would lose the 3 */
    static const float values[] = {0x1p100f, 0x1p50f, -0x1p100f, 3, 0x1p-97f, 0};
    double few[LS_NOISE_SUMS] = {0};
    for (size_t i = 0; i < 6; i++)
        ls_noise_add_block(&signs, 1, 0, (float[]){values[i], values[i]}, few);
    ls_noise_add_up(few, a);
    assert_true(a[0] == 0x1p50 + 3 && a[1] == -(0x1p50 + 3) && a[2] == 0);
    ls_noise_add_block(&signs, 1, 0, (float[]){INFINITY, NAN}, few);
    ls_noise_add_up(few, a);
    assert_true(isinf(a[0]) && isnan(a[1]));
}

/* What can't be compared is not taken for an estimate. */
static void test_unknown(void **state) {
    (void)state;
    double numbers[3 * LS_NOISE_NUMBERS] = {0};
    ls_noise_step out;
    ls_noise_mean m = {0};
    ls_noise_of(&(ls_noise_sums){.V = 3, .numbers = numbers, .scale = 1, .samples = 7}, &out);
    assert_false(out.known);
    numbers[0] = INFINITY;
    ls_noise_of(&(ls_noise_sums){.V = 3, .numbers = numbers, .scale = 1, .samples = 6}, &out);
    assert_false(out.known);
    ls_noise_add(&m, &out);
    assert_int_equal(m.steps, 0);
    assert_true(isnan(ls_noise_scale_of(&m, 3).simple));
    ls_noise_add(&m, &(ls_noise_step){.known = true, .samples = 2, .trace = 1, .square = -1});
    assert_true(isnan(ls_noise_scale_of(&m, 3).simple));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known), cmocka_unit_test(test_misfit), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_turns), cmocka_unit_test(test_exact),  cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
