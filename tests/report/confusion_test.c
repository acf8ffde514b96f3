/* confusion_test.c - the matrix of a classifier's mistakes, and its picture. */
#include "report/confusion.h"

#include <stdlib.h>

#include "report/frame_check.h"
#include "test.h"

static void test_counts(void **state) {
    (void)state;
    /* predicted, right, and a number that is skipped */
    static const double pairs[] = {0, 0, 9, 1, 0, 9, 1, 0, 9, 2, 2, 9, 2, -1, 9, 0, 2, 9};
    static const uint64_t counts[] = {1, 2, 0, 0, 0, 0, 1, 0, 1};
    ls_confusion_matrix c = ls_confusion_of(pairs, 6, 3, 3);
    assert_int_equal(c.n, 3);
    assert_memory_equal(c.counts, counts, sizeof counts);
    free(c.counts);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("the picture lacks '%s'", part);
}

static ls_buf draw(const ls_confusion_matrix *c) {
    ls_buf svg = {0};
    ls_confusion_svg(c, &svg);
    return svg;
}

/* Names are escaped, and shortened between letters; classes without one are numbers. */
static void test_picture(void **state) {
    (void)state;
    uint64_t counts[] = {90, 10, 0, 0, 0, 0, 5, 0, 15};
    char *names[] = {"a<b", "a name with \xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"};
    ls_confusion_matrix c = {.n = 3, .counts = counts, .names = names, .nnames = 2};
    ls_buf svg = draw(&c);
    has(svg.data, "120 samples, 87.5% right");
    has(svg.data, ">a&#60;b</text>");
    has(svg.data, ">a name with \xc3\xa4 \xc3\xa4\xc3\xa4\xe2\x80\xa6</text>");
    has(svg.data, ">2 taken for a&#60;b: 5</title>");
    has(svg.data, ">90.0%</text>"); /* recall of the first class */
    has(svg.data, ">94.7%</text>"); /* its precision */
    has(svg.data, ">75.0%</text>");
    assert_string_equal(svg.data + svg.len - 7, "</svg>\n");
    ls_buf_free(&svg);
}

/* No samples, one class, many classes. */
static void test_sizes(void **state) {
    (void)state;
    for (int n = 1; n < 101; n += 33) {
        uint64_t *counts = calloc((size_t)(n * n), sizeof *counts);
        ls_confusion_matrix c = {.n = n, .counts = counts};
        ls_buf svg = draw(&c);
        has(svg.data, "0 samples, none right");
        frame_check(svg.data);
        ls_buf_free(&svg);
        free(counts);
    }
}

/* Counts that are wider than their cells are in thousands and millions. */
static void test_large_counts(void **state) {
    (void)state;
    enum { N = 20 };
    char *names[N];
    uint64_t *counts = calloc((size_t)N * N, sizeof *counts);
    for (int i = 0; i < N; i++) names[i] = "\xe7\x8b\x97\xe7\x8b\x97\xe7\x8b\x97\xe7\x8b\x97 long";
    for (int i = 0; i < N * N; i++) counts[i] = i % 3 ? 12345 : 1234567;
    ls_confusion_matrix c = {.n = N, .counts = counts, .names = names, .nnames = N};
    ls_buf svg = draw(&c);
    frame_check(svg.data);
    has(svg.data, ">12k</text>");
    has(svg.data, ">1M</text>");
    has(svg.data, ": 1234567</title>");
    ls_buf_free(&svg);
    free(counts);
}

/* Cells are coloured by their parts of the row: wrong ones by the root. A zero is not written. */
static void test_colours(void **state) {
    (void)state;
    uint64_t counts[] = {4, 0, 1, 3};
    ls_confusion_matrix c = {.n = 2, .counts = counts};
    ls_buf svg = draw(&c);
    has(svg.data, "fill=\"#1f77b4\" stroke=\"#e4e7eb\"><title>0 taken for 0: 4<");
    has(svg.data, "fill=\"#ffffff\" stroke=\"#e4e7eb\"><title>0 taken for 1: 0<");
    has(svg.data, "fill=\"#f3b080\" stroke=\"#e4e7eb\"><title>1 taken for 0: 1<");
    has(svg.data, "fill=\"#ffffff\">4</text>");
    assert_null(strstr(svg.data, ">0</text>\n<rect"));
    ls_buf_free(&svg);
}

/* Right, taken for: of four classes b is never predicted, c has no samples, and d neither. The
 * means are those of scikit-learn's precision_recall_fscore_support(average="macro",
 * zero_division=0) of y = [0, 0, 0, 1, 1], p = [0, 0, 2, 0, 0]. */
static void test_means(void **state) {
    (void)state;
    uint64_t counts[16] = {2, 0, 1, 0, 2};
    ls_confusion_matrix c = {.n = 4, .counts = counts};
    ls_buf table = {0};
    ls_confusion_table(&c, &table);
    const char *mean = strstr(table.data, "mean");
    double precision = 0, recall = 0, f1 = 0;
    assert_non_null(mean);
    assert_int_equal(sscanf(mean, "mean 5 %lf %lf %lf", &precision, &recall, &f1), 3);
    assert_true(precision == 0.1667 && recall == 0.2222 && f1 == 0.1905);
    ls_buf_free(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_picture),
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_large_counts),
        cmocka_unit_test(test_means),  cmocka_unit_test(test_colours)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
