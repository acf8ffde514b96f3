/* curves_test.c - several curves in one picture. */
#include "report/curves.h"

#include <math.h>

#include "report/frame_check.h"
#include "test.h"

/* Two lines that cross at step 50 have each its letter, and # where they meet. */
static void test_crossing(void **state) {
    (void)state;
    double steps[101], up[101], down[101];
    for (int i = 0; i <= 100; i++) {
        steps[i] = i;
        up[i] = i;
        down[i] = 100 - i;
    }
    const ls_curve_line lines[] = {{"rising", {steps, up, 101}, false, false},
                                   {"falling <&>", {steps, down, 101}, true, true}};
    const ls_curves c = {"two", "step", lines, 2, false, 0, 0};
    ls_buf text = {0}, svg = {0};
    ls_curves_print(&c, 80, 20, &text);
    assert_in_range(occurrences(text.data, "#"), 1, 5);
    assert_non_null(strstr(text.data, "a rising\n"));
    assert_non_null(strstr(text.data, "b falling"));
    /* the first row has the end of the rising line, and the begin of the falling one */
    const char *row = strchr(text.data, '\n') + 1, *end = strchr(row, '\n');
    const char *b = strchr(row, 'b');
    assert_true(b && b < end && strchr(b, 'a') < end);
    assert_int_equal(occurrences(text.data, "\n"), 18 + 1 + 2);
    ls_curves_svg(&c, &svg);
    assert_int_equal(occurrences(svg.data, "<polyline"), 2);
    assert_int_equal(occurrences(svg.data, "<circle"), 101);
    assert_int_equal(occurrences(svg.data, "dasharray"), 2);
    assert_non_null(strstr(svg.data, "falling &#60;&#38;&#62;"));
    ls_buf_free(&text);
    ls_buf_free(&svg);
}

/* Equal lines are # alone; lines without points are drawn as nothing. */
static void test_equal(void **state) {
    (void)state;
    double steps[] = {1, 50, 100}, values[] = {3, 2, 1}, none[] = {NAN, INFINITY, NAN};
    const ls_curve_line lines[] = {{"x", {steps, values, 3}, false, false},
                                   {"y", {steps, values, 3}, false, false},
                                   {"z", {steps, none, 3}, false, false},
                                   {"w", {NULL, NULL, 0}, false, false}};
    const ls_curves c = {"equal", "step", lines, 4, false, 0, 0};
    ls_buf text = {0}, svg = {0};
    ls_curves_print(&c, 80, 20, &text);
    char *names = strstr(text.data, "a x\n");
    assert_non_null(names);
    *names = 0;
    assert_true(occurrences(text.data, "#") > 50);
    assert_int_equal(occurrences(text.data, "b"), 0);
    ls_curves_svg(&c, &svg);
    frame_check(svg.data);
    /* the second is drawn in dashes, between which the first is seen; the others are not named */
    assert_int_equal(occurrences(svg.data, "<polyline"), 2);
    assert_int_equal(occurrences(svg.data, "stroke-dasharray=\"10 10\""), 2);
    assert_non_null(strstr(svg.data, ">y</text>"));
    assert_null(strstr(svg.data, ">z</text>"));
    ls_buf_free(&text);
    ls_buf_free(&svg);
}

static double *values_of(int n, double (*f)(int)) {
    double *list = calloc((size_t)n, sizeof *list);
    for (int i = 0; i < n; i++) list[i] = f(i);
    return list;
}

static double step_of(int i) { return i + 1; }
static double noise_of(int i) { return 3 + i % 2; }

/* The distance of the lowest and the highest point of the i-th line. */
static double spread_of(const char *svg, int i) {
    double x = 0, y = 0, low = INFINITY, high = -INFINITY;
    const char *s = svg;
    for (; i >= 0; i--) s = strstr(s + 1, "points=\"");
    s += 8;
    for (int used = 0; sscanf(s, "%lf,%lf %n", &x, &y, &used) == 2; s += used) {
        low = fmin(low, y);
        high = fmax(high, y);
    }
    return high - low;
}

/* A long and a short line of the same noise have means of as many steps, so they look alike. */
static void test_same_means(void **state) {
    (void)state;
    enum { LONG = 6400, BRIEF = 320 };
    double *steps = values_of(LONG, step_of), *values = values_of(LONG, noise_of);
    const ls_curve_line lines[] = {{"long", {steps, values, LONG}, false, false},
                                   {"short", {steps, values, BRIEF}, false, false}};
    const ls_curves c = {"noise", "step", lines, 2, false, 0, 0};
    ls_buf svg = {0};
    ls_curves_svg(&c, &svg);
    frame_check(svg.data);
    assert_non_null(strstr(svg.data, ">step (each point is the mean of 8 steps)<"));
    assert_true(spread_of(svg.data, 0) < 180 && spread_of(svg.data, 1) < 180); /* raw: 334 */
    ls_buf_free(&svg);
    free(steps);
    free(values);
}

/* Workers: a logarithmic axis with a tick at each of their numbers, and 0 to 100 percent. */
static void test_logarithmic(void **state) {
    (void)state;
    double workers[] = {8, 64, 512}, percent[] = {100, 94, 83};
    const ls_curve_line lines[] = {{"measured", {NULL, NULL, 0}, false, true},
                                   {"simulated", {workers, percent, 3}, true, true}};
    const ls_curves c = {"efficiency, %", "workers", lines, 2, true, 0, 100};
    ls_buf svg = {0}, text = {0};
    double x[3] = {0};
    ls_curves_svg(&c, &svg);
    frame_check(svg.data);
    const char *s = svg.data;
    for (int i = 0; i < 3; i++) {
        s = strstr(s + 1, "<circle cx=\"");
        assert_non_null(s);
        x[i] = strtod(s + 12, NULL);
    }
    assert_true(fabs((x[1] - x[0]) - (x[2] - x[1])) < 0.2); /* both are 8 times as many */
    static const char *const labels[] = {">8<", ">64<", ">512<", ">0<", ">100<", ">simulated<"};
    for (int i = 0; i < 6; i++) assert_non_null(strstr(svg.data, labels[i]));
    assert_null(strstr(svg.data, ">measured<"));
    ls_curves_print(&c, 80, 20, &text);
    assert_non_null(strstr(text.data, "a measured (has no value)\n"));
    ls_buf_free(&svg);
    ls_buf_free(&text);
}

/* Eight lines on each other, with long names and large steps: all in the frame, all with dashes of
 * their own. */
static void test_crowded(void **state) {
    (void)state;
    enum { N = 3 };
    double steps[N] = {0, 5e8, 1e9}, values[N] = {-123456, 0, 1e-7};
    char name[400];
    ls_curve_line lines[LS_CURVES_MOST];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    for (int i = 0; i < LS_CURVES_MOST; i++)
        lines[i] = (ls_curve_line){name, {steps, values, N}, false, false};
    const ls_curves c = {name, "step", lines, LS_CURVES_MOST, false, 0, 0};
    ls_buf svg = {0};
    ls_curves_svg(&c, &svg);
    frame_check(svg.data);
    for (int i = 1; i < LS_CURVES_MOST; i++) {
        char dashes[64];
        snprintf(dashes, sizeof dashes, "stroke-dasharray=\"10 %d\"", 10 * i);
        assert_int_equal(occurrences(svg.data, dashes), 2);
    }
    ls_buf_free(&svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossing),   cmocka_unit_test(test_equal),
        cmocka_unit_test(test_same_means), cmocka_unit_test(test_logarithmic),
        cmocka_unit_test(test_crowded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
