/* confusion_test.c - the matrix of a classifier's mistakes, and its picture. */
#include "report/confusion.h"

#include <stdlib.h>

#include "test.h"

static void test_counts(void **state) {
    (void)state;
    /* predicted, right, and a number that is skipped */
    static const double pairs[] = {0, 0, 9, 1, 0, 9, 1, 0, 9, 2, 2, 9, 2, -1, 9, 0, 2, 9};
    static const uint64_t counts[] = {1, 2, 0, 0, 0, 0, 1, 0, 1};
    ls_confusion c = ls_confusion_of(pairs, 6, 3, 3);
    assert_int_equal(c.n, 3);
    assert_memory_equal(c.counts, counts, sizeof counts);
    free(c.counts);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("the picture lacks '%s'", part);
}

/* Names are escaped, and shortened between letters; classes without one are numbers. */
static void test_picture(void **state) {
    (void)state;
    uint64_t counts[] = {90, 10, 0, 0, 0, 0, 5, 0, 15};
    char *names[] = {"a<b", "a name with \xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"};
    ls_confusion c = {.n = 3, .counts = counts, .names = names, .nnames = 2};
    ls_buf svg = {0};
    ls_confusion_svg(&c, &svg);
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
        ls_confusion c = {.n = n, .counts = counts};
        ls_buf svg = {0};
        ls_confusion_svg(&c, &svg);
        has(svg.data, "0 samples, none right");
        assert_null(strstr(svg.data, "nan"));
        ls_buf_free(&svg);
        free(counts);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_picture),
                                       cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
