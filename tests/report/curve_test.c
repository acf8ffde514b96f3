/* curve_test.c - curves of any data are drawn, inside their frame. */
#include "report/curve.h"

#include <math.h>

#include "report/frame_check.h"
#include "test.h"

/* Every coordinate of the SVG lies in the picture. */
static void check_svg(const ls_curve *c, int circles) {
    ls_buf out = {0};
    ls_curve_svg(c, &out);
    frame_check(out.data);
    assert_int_equal(occurrences(out.data, "<circle"), circles);
    for (const char *s = strstr(out.data, "points=\""); s; s = strstr(s + 1, "points=\"")) {
        double x = 0, y = 0;
        int used = 0;
        for (const char *p = s + 8; sscanf(p, "%lf,%lf %n", &x, &y, &used) == 2; p += used) {
            assert_true(x >= 71 && x <= 777);
            assert_true(y >= 47 && y <= 399);
        }
    }
    ls_buf_free(&out);
}

static void check_text(const ls_curve *c, int columns, int rows, int dots) {
    ls_buf out = {0};
    ls_curve_print(c, columns, rows, &out);
    assert_int_equal(occurrences(out.data, "●") - (c->val.n > 0), dots); /* one is the legend's */
    assert_int_equal(occurrences(out.data, "\n"), rows);
    ls_buf_free(&out);
}

static void test_usual(void **state) {
    (void)state;
    double steps[3000], values[3000], vsteps[] = {1000, 2000, 3000}, vvalues[] = {4, 3.5, 3.2};
    for (int i = 0; i < 3000; i++) {
        steps[i] = i + 1;
        values[i] = 3 + 4 * exp(-i / 300.0);
    }
    ls_curve c = {"loss", {steps, values, 3000}, {vsteps, vvalues, 3}, 3.9, "a & <b>"};
    check_svg(&c, 3);
    check_text(&c, 80, 20, 3);
    ls_buf out = {0};
    ls_curve_svg(&c, &out);
    assert_non_null(strstr(out.data, "a &#38; &#60;b&#62;")); /* escaped */
    assert_true(out.len < 40000);                             /* thinned */
    assert_non_null(strstr(out.data, ">step (each point is the mean of 4 steps)<"));
    ls_buf_free(&out);
}

static void test_odd(void **state) {
    (void)state;
    double steps[] = {1, 2, 3}, same[] = {2, 2, 2}, odd[] = {NAN, INFINITY, 5};
    ls_curve empty = {.title = ""};
    check_svg(&empty, 0);
    check_text(&empty, 80, 20, 0);
    ls_curve one = {"one", {steps, same, 1}, {steps, same, 1}, 2, "level"};
    check_svg(&one, 1);
    check_text(&one, 40, 10, 1);
    ls_curve flat = {"flat", {steps, same, 3}, {0}, 0, NULL};
    check_svg(&flat, 0);
    check_text(&flat, 120, 30, 0);
    ls_curve broken = {"broken", {steps, odd, 3}, {steps, odd, 3}, NAN, "none"};
    check_svg(&broken, 1);
    check_text(&broken, 80, 20, 1);
}

/* Losses of a run that diverges, steps below 0, and numbers with many digits: drawn in the
 * frame, and no row is wider than asked for. */
static void test_wild(void **state) {
    (void)state;
    double steps[] = {-5, 2, 3, INFINITY}, high[] = {3, 1e30, -1e308, 4},
           low[] = {1e-9, 2e-9, 3e-9, 0};
    double far[] = {1e300, -1e300, 1e6, 123456.75};
    double *const all[] = {high, low, far};
    for (int i = 0; i < 3; i++) {
        ls_curve c = {"wild", {steps, all[i], 4}, {steps, all[i], 3}, 1e-9, "level"};
        ls_buf out = {0};
        check_svg(&c, i == 1 ? 3 : i == 0 ? 2 : 1);
        ls_curve_print(&c, 80, 20, &out);
        for (const char *s = out.data, *end; (end = strchr(s, '\n')); s = end + 1) {
            int columns = 0;
            for (const char *p = s; p < end; p++) columns += (*p & 0xc0) != 0x80;
            assert_in_range(columns, 1, 80);
        }
        ls_buf_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual),
        cmocka_unit_test(test_odd),
        cmocka_unit_test(test_wild),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
