/* batch_svg_test.c - pictures of values by batch size: axes, error bars and the band of the
 * critical batch. */
#include <math.h>

#include "report/frame_check.h"
#include "search/batch_svg.h"
#include "test.h"

static void has(const ls_buf *svg, const char *part) {
    if (!strstr(svg->data, part)) fail_msg("the picture lacks '%s'", part);
}

/* The picture has n error bars, which end within the axes. */
static void check_bars(const char *svg, int n) {
    for (const char *s = strstr(svg, "<line "); s; s = strstr(s + 1, "<line ")) {
        double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
        int used = 0;
        sscanf(s, "<line x1=\"%lf\" y1=\"%lf\" x2=\"%lf\" y2=\"%lf\" %n", &x1, &y1, &x2, &y2,
               &used);
        if (x1 != x2 || strncmp(s + used, "stroke=\"#0072b2\"/", 17) != 0) continue;
        n--;
        assert_true(fmin(y1, y2) >= 63.9 && fmax(y1, y2) <= 398.1);
    }
    assert_int_equal(n, 0);
}

/* 1, 2 and 5 times powers of ten, beyond the lowest and the highest value. */
static void test_steps(void **state) {
    (void)state;
    static const double batches[] = {8, 16, 32}, steps[] = {15.85, 9, NAN},
                        perfect[] = {15.85, 8, 6.31};
    const ls_batch_picture p = {
        .title = "steps",
        .unit = "batch, samples",
        .batches = batches,
        .n = 3,
        .nlines = 2,
        .lines = {{"steps", steps, NULL, false}, {"perfect scaling", perfect, NULL, true}},
        .log_values = true};
    ls_buf svg = {0};
    ls_batch_svg(&p, &svg);
    frame_check(svg.data);
    static const char *const labels[] = {
        ">5<", ">10<", ">20<", ">8<", ">16<", ">32<", ">perfect scaling<"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) has(&svg, labels[i]);
    ls_buf_free(&svg);
}

/* The extremes lie between the lowest and the highest tick, whatever they are. */
static void check_range(double low, double high) {
    static const double batches[] = {1, 3};
    const double values[] = {low, high};
    const ls_batch_picture p = {.title = "t",
                                .unit = "u",
                                .batches = batches,
                                .n = 2,
                                .nlines = 1,
                                .lines = {{"v", values, NULL, false}},
                                .log_values = true};
    ls_buf svg = {0};
    double most = 0, least = INFINITY;
    int n = 0;
    ls_batch_svg(&p, &svg);
    frame_check(svg.data);
    for (const char *s = svg.data; (s = strstr(s, "text-anchor=\"end\"")); s++, n++) {
        double tick = strtod(strchr(s, '>') + 1, NULL);
        most = fmax(most, tick);
        least = fmin(least, tick);
    }
    if (n < 2 || n > 14 || least > low * (1 + 1e-4) || most < high * (1 - 1e-4))
        fail_msg("%g to %g: %d ticks from %g to %g", low, high, n, least, most);
    ls_buf_free(&svg);
}

static void test_ranges(void **state) {
    (void)state;
    for (double low = 1e-9; low < 1e9; low *= 7)
        for (double ratio = 1; ratio < 1e16; ratio *= 3.7) check_range(low, low * ratio);
    for (double ratio = 1; ratio < 3; ratio += 0.07) check_range(60, 60 * ratio);
}

static void test_branches(void **state) {
    (void)state;
    static const double batches[] = {16, 32, 64}, loss[] = {4.208, 4.2586, 4.2879},
                        errors[] = {0, 0.05, 0.3};
    ls_batch_picture p = {.title = "loss",
                          .unit = "batch, samples",
                          .batches = batches,
                          .n = 3,
                          .nlines = 1,
                          .lines = {{"loss", loss, errors, false}},
                          .mark = 18,
                          .low = 17,
                          .high = INFINITY,
                          .mark_label = "critical batch: 18 (at least 17)"};
    ls_buf svg = {0};
    ls_batch_svg(&p, &svg);
    frame_check(svg.data);
    check_bars(svg.data, 2);
    has(&svg, ">critical batch: 18 (at least 17)<");
    ls_buf_free(&svg);
    p.mark = 128, p.low = 100; /* beside the batches */
    ls_batch_svg(&p, &svg);
    frame_check(svg.data);
    ls_buf_free(&svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
