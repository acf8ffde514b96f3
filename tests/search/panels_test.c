/* panels_test.c - a search's metric by the values of its keys. */
#include "search/panels.h"

#include <math.h>
#include <stdlib.h>

#include "report/frame_check.h"

enum { N = 5 };

/* The number behind `name`="..." of the first element after `at` that has this title. */
static double place(const char *svg, const char *title, const char *name) {
    const char *end = strstr(svg, title), *at = NULL;
    assert_non_null(end);
    for (const char *s = svg; (s = strstr(s, name)) && s < end; s++) at = s;
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

static const double values[N] = {4, 3, 5, INFINITY, NAN};

static ls_buf draw(const ls_keys_panel *panels, int n) {
    const ls_keys_picture p = {"a search", "val_loss", values, N, 1, panels, n};
    ls_buf svg = {0};
    ls_keys_svg(&p, &svg);
    ls_buf_append(&svg, "", 1);
    frame_check(svg.data);
    return svg;
}

/* Places on a logarithmic axis: 0.01 is in the middle of 0.001 and 0.1. The trial that diverged is
 * a cross, the one that has no number yet is not drawn; all are inside the frame. */
static void test_log(void **state) {
    (void)state;
    const double x[N] = {0.001, 0.01, 0.1, 1, 0.5};
    const ls_keys_panel panel = {.key = "optim.lr", .x = x, .is_log = true};
    ls_buf svg = draw(&panel, 1);
    assert_int_equal(occurrences(svg.data, "<title>"), 3);
    assert_int_equal(occurrences(svg.data, ">×<"), 1);
    assert_int_equal(occurrences(svg.data, "× diverged"), 1);
    assert_non_null(strstr(svg.data, "optim.lr (log)"));
    double a = place(svg.data, "trial 1: 4<", "cx=\""), b = place(svg.data, "trial 2: 3<", "cx=\"");
    double c = place(svg.data, "trial 3: 5<", "cx=\"");
    assert_true(fabs((b - a) - (c - b)) < 0.11 && c > b && b > a && a > 60 && c < 800);
    double high = place(svg.data, "trial 3: 5<", "cy=\""),
           low = place(svg.data, "trial 2: 3<", "cy=\"");
    assert_true(high > 60 && low > high && low < 398);
    const char *const ticks[] = {">0.001<", ">0.01<", ">0.1<", ">1<"};
    for (int i = 0; i < 4; i++) assert_non_null(strstr(svg.data, ticks[i]));
    ls_buf_free(&svg);
}

/* Values that were drawn from a range are no ticks: these are at round numbers. */
static void test_drawn(void **state) {
    (void)state;
    const double x[N] = {0.0001113, 0.0047, 0.00091, 0.0208, 0.0003};
    const ls_keys_panel panel = {.key = "optim.lr", .x = x, .is_log = true, .is_drawn = true};
    ls_buf svg = draw(&panel, 1);
    assert_non_null(strstr(svg.data, ">0.001<"));
    assert_non_null(strstr(svg.data, ">0.01<"));
    assert_null(strstr(svg.data, "0.0001113"));
    assert_null(strstr(svg.data, "0.0208"));
    ls_buf_free(&svg);
}

/* A panel a key; words in the order of their labels; a trial without the key has no dot there. */
static void test_panels(void **state) {
    (void)state;
    static const char *const words[] = {"adamw", "<lion>"};
    const double kinds[N] = {0, 1, 1, 0, 0}, decay[N] = {0, 0.1, NAN, 0.1, 0};
    const ls_keys_panel panels[] = {{"optim.optimizer", kinds, false, false, words, 2},
                                    {"optim.weight_decay", decay, false, false, NULL, 0},
                                    {"same", decay, false, false, NULL, 0}};
    ls_buf svg = draw(panels, 3);
    assert_int_equal(occurrences(svg.data, "<title>"), 3 + 2 + 2);
    assert_non_null(strstr(svg.data, "&#60;lion&#62;"));
    assert_null(strstr(svg.data, "(log)"));
    assert_int_equal(occurrences(svg.data, ">val_loss<"), 2); /* the left panels */
    ls_buf_free(&svg);
}

/* Losses that differ by more than a factor of 20 have a logarithmic axis: the small ones stay
 * apart. */
static void test_wide(void **state) {
    (void)state;
    const double x[3] = {1, 2, 3}, y[3] = {3, 4, 1e6};
    const ls_keys_panel panel = {.key = "k", .x = x};
    const ls_keys_picture p = {"a search", "val_loss", y, 3, 0, &panel, 1};
    ls_buf svg = {0};
    ls_keys_svg(&p, &svg);
    ls_buf_append(&svg, "", 1);
    frame_check(svg.data);
    assert_true(place(svg.data, "trial 1: 3<", "cy=\"") - place(svg.data, "trial 2: 4<", "cy=\"") >
                5);
    ls_buf_free(&svg);
}

/* Nothing is known yet, or all values are the same. */
static void test_empty(void **state) {
    (void)state;
    const double x[1] = {1}, y[1] = {NAN}, same[1] = {2};
    const ls_keys_panel panel = {.key = "k", .x = x, .is_log = true};
    ls_keys_picture p = {"a search", "val_loss", y, 1, -1, &panel, 1};
    ls_buf svg = {0};
    ls_keys_svg(&p, &svg);
    p.values = same;
    p.best = 0;
    ls_keys_svg(&p, &svg);
    assert_null(strstr(svg.data, "nan"));
    assert_null(strstr(svg.data, "inf"));
    assert_int_equal(occurrences(svg.data, "<title>"), 1);
    ls_buf_free(&svg);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_drawn),
                                       cmocka_unit_test(test_panels), cmocka_unit_test(test_wide),
                                       cmocka_unit_test(test_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
