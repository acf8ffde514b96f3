/* curves_test.c - several curves in one picture. */
#include "report/curves.h"

#include <math.h>

#include "test.h"

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *s = text; (s = strstr(s, what)); s += strlen(what)) n++;
    return n;
}

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
    const ls_curves c = {"two", "step", lines, 2};
    ls_buf text = {0}, svg = {0};
    ls_curves_print(&c, 80, 20, &text);
    assert_in_range(count(text.data, "#"), 1, 5);
    assert_non_null(strstr(text.data, "a rising\n"));
    assert_non_null(strstr(text.data, "b falling"));
    /* the first row has the end of the rising line, and the begin of the falling one */
    const char *row = strchr(text.data, '\n') + 1, *end = strchr(row, '\n');
    const char *b = strchr(row, 'b');
    assert_true(b && b < end && strchr(b, 'a') < end);
    assert_int_equal(count(text.data, "\n"), 18 + 1 + 2);
    ls_curves_svg(&c, &svg);
    assert_int_equal(count(svg.data, "<polyline"), 2);
    assert_int_equal(count(svg.data, "<circle"), 101);
    assert_int_equal(count(svg.data, "dasharray"), 2);
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
    const ls_curves c = {"equal", "step", lines, 4};
    ls_buf text = {0}, svg = {0};
    ls_curves_print(&c, 80, 20, &text);
    char *names = strstr(text.data, "a x\n");
    assert_non_null(names);
    *names = 0;
    assert_true(count(text.data, "#") > 50);
    assert_int_equal(count(text.data, "b"), 0);
    ls_curves_svg(&c, &svg);
    assert_null(strstr(svg.data, "nan"));
    assert_null(strstr(svg.data, "inf"));
    ls_buf_free(&text);
    ls_buf_free(&svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossing),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
