/* colours_test.c - changes of colours against the same in double precision. */
#include "source/images/colours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { N = 4096 };

static uint8_t pixels[N * 3];

/* Colours of all kinds, grays and extremes among them. */
static void fill(void) {
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 3; c++) {
            int level = (i >> 4 * c & 15) * 17;
            pixels[3 * i + c] = (uint8_t)(level ^ (i % 7 == 0 ? c : 0));
        }
}

static double gray(const uint8_t *p) { return 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]; }

static void check_mixed(double factor, const uint8_t *got, const double *plain, int channels) {
    for (int i = 0; i < N * channels; i++) {
        double v = factor * pixels[i] + (1 - factor) * plain[i / channels];
        v = v < 0 ? 0 : v > 255 ? 255 : v;
        double below = 1.01 + fabs(1 - factor); /* rounded down; the gray is rounded, too */
        assert_true(got[i] <= v + fabs(1 - factor) + 0.01 && got[i] >= v - below);
    }
}

static void test_mixtures(void **state) {
    (void)state;
    static uint8_t got[N * 3];
    static double plain[N];
    static const double factors[] = {0, 0.3, 1, 1.7, 3};
    fill();
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        int32_t factor = (int32_t)(factors[k] * LS_COLOURS_ONE);
        memset(plain, 0, sizeof plain);
        memcpy(got, pixels, sizeof got);
        ls_colours_brightness(got, N, 3, factor);
        check_mixed(factors[k], got, plain, 3);
        double mean = 0;
        for (int i = 0; i < N; i++) mean += gray(pixels + 3 * i) / N;
        for (int i = 0; i < N; i++) plain[i] = mean;
        memcpy(got, pixels, sizeof got);
        ls_colours_contrast(got, N, 3, factor);
        check_mixed(factors[k], got, plain, 3);
        for (int i = 0; i < N; i++) plain[i] = gray(pixels + 3 * i);
        memcpy(got, pixels, sizeof got);
        ls_colours_saturation(got, N, factor);
        check_mixed(factors[k], got, plain, 3);
        mean = 0;
        for (int i = 0; i < N; i++) mean += (double)pixels[i] / N;
        for (int i = 0; i < N; i++) plain[i] = mean;
        memcpy(got, pixels, sizeof got);
        ls_colours_contrast(got, N, 1, factor);
        check_mixed(factors[k], got, plain, 1);
    }
}

/* By the definition of HSV. */
static void turned(const uint8_t *p, double turn, double *out) {
    double high = fmax(p[0], fmax(p[1], p[2])), low = fmin(p[0], fmin(p[1], p[2]));
    double spread = high - low, h = 0;
    if (spread > 0)
        h = p[0] == high   ? (p[1] - p[2]) / spread
            : p[1] == high ? 2 + (p[2] - p[0]) / spread
                           : 4 + (p[0] - p[1]) / spread;
    h = fmod(h + 6 * turn + 12, 6);
    for (int c = 0; c < 3; c++) {
        double k = fmod((c == 0 ? 5 : c == 1 ? 3 : 1) + h, 6);
        out[c] = high - spread * fmax(0, fmin(fmin(k, 4 - k), 1));
    }
}

static void test_hue(void **state) {
    (void)state;
    static const double turns[] = {-0.5, -0.1, 0, 1 / 3.0, 0.49};
    static uint8_t got[N * 3];
    fill();
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        memcpy(got, pixels, sizeof got);
        ls_colours_hue(got, N, (int32_t)floor(turns[k] * LS_COLOURS_ONE + 0.5));
        for (int i = 0; i < N; i++) {
            double v[3];
            turned(pixels + 3 * i, turns[k], v);
            for (int c = 0; c < 3; c++) assert_true(fabs(got[3 * i + c] - v[c]) < 0.52);
        }
        if (turns[k] == 0) assert_memory_equal(got, pixels, sizeof got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mixtures), cmocka_unit_test(test_hue)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
