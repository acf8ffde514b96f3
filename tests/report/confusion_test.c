/* confusion_test.c - the matrix of a classifier's mistakes, and its picture. */
#include "report/confusion.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/png.h"
#include "folder.h"
#include "report/frame_check.h"
#include "report/letters.h"
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

/* The file of the picture. */
static ls_buf draw_as(const ls_confusion_matrix *c, bool is_svg) {
    ls_canvas canvas;
    ls_buf file = {0};
    ls_error e = {0};
    char *path = ls_format("%s/picture", folder);
    ls_confusion_draw(c, is_svg, &canvas);
    assert_ls_ok(ls_canvas_write(&canvas, path, ls_file_replace, &e), e);
    assert_ls_ok(ls_file_read(path, (size_t)1 << 30, &file, &e), e);
    ls_canvas_close(&canvas);
    free(path);
    return file;
}

static ls_buf draw(const ls_confusion_matrix *c) { return draw_as(c, true); }

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

/* ---- pixels ---- */

typedef struct picture {
    uint8_t *pixels;
    ls_image_shape shape;
} picture;

static picture decode(const ls_confusion_matrix *c) {
    picture p = {0};
    ls_error e = {0};
    ls_buf png = draw_as(c, false);
    const uint8_t *data = (const uint8_t *)png.data;
    assert_ls_ok(ls_png_inspect(data, png.len, &p.shape, &e), e);
    assert_int_equal(p.shape.channels, 3);
    p.pixels = malloc((size_t)p.shape.width * (size_t)p.shape.height * 3);
    assert_ls_ok(ls_png_decode(data, png.len, p.shape, p.pixels, &e), e);
    ls_buf_free(&png);
    return p;
}

static int pixel_at(const picture *p, int x, int y) {
    const uint8_t *at = p->pixels + (y * p->shape.width + x) * 3;
    return at[0] << 16 | at[1] << 8 | at[2];
}

/* Pixels of a colour in a part of the picture. */
static int count_pixels(const picture *p, int color, int x, int y, int width, int height) {
    int n = 0;
    for (int i = 0; i < height; i++)
        for (int k = 0; k < width; k++) n += pixel_at(p, x + k, y + i) == color;
    return n;
}

/* The cells have the colours of the SVG; texts are where it has them. */
static void test_pixels(void **state) {
    (void)state;
    enum { LEFT = 16 + 7, TOP = 64 + 16, CELL = 46 };
    uint64_t counts[] = {4, 0, 1, 3};
    ls_confusion_matrix c = {.n = 2, .counts = counts};
    picture p = decode(&c);
    assert_int_equal(p.shape.width, 490);
    assert_int_equal(p.shape.height, TOP + 2 * CELL + 64);
    assert_int_equal(pixel_at(&p, LEFT + 3, TOP + 3), 0x1f77b4);
    assert_int_equal(pixel_at(&p, LEFT + CELL + 3, TOP + 3), 0xffffff);
    assert_int_equal(pixel_at(&p, LEFT + 3, TOP + CELL + 3), 0xf3b080); /* the root of a quarter */
    assert_int_equal(pixel_at(&p, LEFT, TOP), 0xe4e7eb);
    int four = 0;
    for (int y = 0; y < LS_LETTER_HEIGHT; y++)
        for (int x = 0; x < LS_LETTER_WIDTH; x++) four += ls_letter('4')[y] >> x & 1;
    assert_int_equal(four, 14);
    assert_int_equal(count_pixels(&p, 0xffffff, LEFT + 1, TOP + 1, CELL - 1, CELL - 1), four);
    assert_int_equal(count_pixels(&p, 0xffffff, LEFT + CELL + 1, TOP + 1, CELL - 1, CELL - 1),
                     (CELL - 1) * (CELL - 1)); /* a zero is not written */
    assert_true(count_pixels(&p, LS_CANVAS_INK, 0, TOP, LEFT - 1, CELL) > 5);
    assert_true(count_pixels(&p, LS_CANVAS_GREY, LEFT + 2 * CELL + 1, TOP, 60, CELL) > 20);
    assert_true(count_pixels(&p, LS_CANVAS_INK, 8, 12, 150, 14) > 100);
    free(p.pixels);
}

/* Long names are turned, and nothing is drawn outside of the picture. */
static void test_turned(void **state) {
    (void)state;
    enum { N = 30 };
    uint64_t *counts = calloc(N * N, sizeof *counts);
    char *names[N];
    for (int i = 0; i < N; i++) names[i] = "\xc3\xa4 long name \xe4\xb8\xad of it";
    for (int i = 0; i < N * N; i++) counts[i] = 1234567;
    ls_confusion_matrix c = {.n = N, .counts = counts, .names = names, .nnames = N};
    picture p = decode(&c);
    ls_buf svg = draw(&c);
    char size[64];
    snprintf(size, sizeof size, "viewBox=\"0 0 %d %d\"", p.shape.width, p.shape.height);
    has(svg.data, size);
    int left = p.shape.width - N * 26 - 64, top = p.shape.height - N * 26 - 64;
    assert_true(count_pixels(&p, LS_CANVAS_INK, left, 64, 26, top - 64) > 100);
    ls_buf_free(&svg);
    free(p.pixels);
    free(counts);
}

/* Right, taken for: of four classes b is never predicted, c has no samples, and d neither. The means
 * are those of scikit-learn's precision_recall_fscore_support(average="macro", zero_division=0) of
 * y = [0, 0, 0, 1, 1], p = [0, 0, 2, 0, 0]. */
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
        cmocka_unit_test(test_means),  cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_turned)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
