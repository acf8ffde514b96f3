/* shape_test.c - layers that move numbers: other shapes, ranges, patches, means over a
 * dimension. */
#include "layers/fork.h"
#include "layers/layer_check.h"
#include "layers/row_parts.h"

enum { A = 4, B = 3, C = 5 };

/* ---- ranges of a dimension ---- */

typedef struct range {
    int dim;
    int64_t first, count;
    int64_t outer, size, inner, taken; /* what they are of [A, B, C] */
} range;

static ls_value *build_slice(ls_model *m, ls_value **x, const void *arg) {
    const range *r = arg;
    return ls_slice(m, x[0], .dim = r->dim, .first = r->first, .count = r->count);
}

static void slice(const void *arg, double *const *x, double *const *params, double *y) {
    const range *r = arg;
    (void)params;
    for (int64_t o = 0; o < r->outer; o++)
        for (int64_t i = 0; i < r->taken; i++)
            for (int64_t k = 0; k < r->inner; k++)
                *y++ = x[0][(o * r->size + r->first + i) * r->inner + k];
}

static void test_slice(void **state) {
    (void)state;
    static const range ranges[] = {{0, 1, 2, 1, A, B * C, 2},
                                   {1, 0, 1, A, B, C, 1},
                                   {-1, 2, 0, A * B, C, 1, C - 2},
                                   {2, 0, 0, A * B, C, 1, C}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        layer_check(&(layer_case){.name = "slice",
                                  .arg = &ranges[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(A, B, C)}},
                                  .nfields = 1,
                                  .build = build_slice,
                                  .reference = slice});
}

/* Two ranges that overlap, and the whole: gradients of ranges are added to that of the whole. */
static ls_value *build_ranges(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    ls_value *y = ls_add(m, x[0], x[0]);
    ls_value *low = ls_slice(m, y, .dim = 1, .count = 2);
    return ls_concat(m, 1, low, y, ls_slice(m, y, .dim = 1, .first = 1));
}

static void ranges(const void *arg, double *const *x, double *const *params, double *y) {
    static const int from[] = {0, 1, 0, 1, 2, 1, 2};
    (void)arg, (void)params;
    for (int64_t a = 0; a < A; a++)
        for (int64_t b = 0; b < 7; b++)
            for (int64_t c = 0; c < C; c++) *y++ = 2 * x[0][(a * B + from[b]) * C + c];
}

static void test_ranges(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "ranges",
                              .fields = {{.type = LS_F32, .dims = LS_DIMS(A, B, C)}},
                              .nfields = 1,
                              .build = build_ranges,
                              .reference = ranges});
}

/* ---- rows that slices divide ---- */

enum { ROWS = 18, WIDTH = 2 };

/* Slice k has part k of the sum of the slices' x + x and x; all slices read the rows again. */
static ls_value *build_rows(ls_model *m, ls_value **x, const void *arg) {
    ls_value *of[LS_SLICES_MOST] = {0}, *all[LS_SLICES_MOST];
    int n = *(const int *)arg;
    for (int k = 0; k < n; k++) of[k] = k % 2 ? ls_add(m, x[0], x[0]) : x[0];
    ls_layers_scatter_rows(m, of, n, of);
    ls_layers_gather_rows(m, of, n, all);
    for (int k = 1; k < n; k++) all[0] = ls_add(m, all[0], all[k]);
    return all[0];
}

static void rows(const void *arg, double *const *x, double *const *params, double *y) {
    int n = *(const int *)arg;
    (void)params;
    for (int64_t i = 0; i < ROWS * WIDTH; i++) y[i] = n * (n / 2 * 2 + (n + 1) / 2) * x[0][i];
}

/* With 9 slices sums and rows are joined by halves. */
static void test_rows(void **state) {
    (void)state;
    static const int slices[] = {2, 3, 9};
    for (int i = 0; i < 3; i++)
        layer_check(&(layer_case){.name = "rows of slices",
                                  .arg = &slices[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(ROWS, WIDTH)}},
                                  .nfields = 1,
                                  .build = build_rows,
                                  .reference = rows,
                                  .half_units = 16});
}

/* ---- concat ---- */

/* [A, 1, C], [A, 3, C] and the first again: [A, 5, C]. */
static ls_value *build_concat(ls_model *m, ls_value **x, const void *arg) {
    return ls_concat(m, *(const int *)arg, x[0], x[1], x[0]);
}

static void concat(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int64_t a = 0; a < A; a++)
        for (int64_t b = 0; b < 5; b++)
            for (int64_t c = 0; c < C; c++)
                *y++ = b % 4 == 0 ? x[0][a * C + c] : x[1][(a * 3 + b - 1) * C + c];
}

static void test_concat(void **state) {
    (void)state;
    static const int dims[] = {1, -2};
    for (int i = 0; i < 2; i++)
        layer_check(&(layer_case){.name = "concat",
                                  .arg = &dims[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(A, 1, C)},
                                             {.type = LS_F32, .dims = LS_DIMS(A, 3, C)}},
                                  .nfields = 2,
                                  .build = build_concat,
                                  .reference = concat});
}

/* Single numbers, and a vector. */
static ls_value *build_numbers(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_concat(m, 0, x[0], x[1], x[2]);
}

static void numbers(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    y[0] = x[0][0];
    y[1] = x[1][0];
    y[2] = x[1][1];
    y[3] = x[2][0];
}

static void test_concat_numbers(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "concat",
                              .fields = {{.type = LS_F32, .dims = LS_SCALAR},
                                         {.type = LS_F32, .dims = LS_DIMS(2)},
                                         {.type = LS_F32, .dims = LS_SCALAR}},
                              .nfields = 3,
                              .build = build_numbers,
                              .reference = numbers});
}

/* ---- reshape, mean ---- */

static const int64_t SIZES[] = {A, B, C};

static ls_value *build_mean(ls_model *m, ls_value **x, const void *arg) {
    return ls_mean(m, ls_reshape(m, x[0], LS_DIMS(A, -1, C)), *(const int *)arg);
}

static void mean(const void *arg, double *const *x, double *const *params, double *y) {
    int dim = *(const int *)arg;
    int64_t inner = 1, size = SIZES[dim];
    (void)params;
    for (int i = dim + 1; i < 3; i++) inner *= SIZES[i];
    for (int64_t i = 0; i < A * B * C / size; i++) {
        y[i] = 0;
        for (int64_t k = 0; k < size; k++)
            y[i] += x[0][(i / inner * size + k) * inner + i % inner] / (double)size;
    }
}

static void test_mean(void **state) {
    (void)state;
    static const int dims[] = {0, 1, 2};
    for (int i = 0; i < 3; i++)
        layer_check(&(layer_case){.name = "mean",
                                  .arg = &dims[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(C * B, A)}},
                                  .nfields = 1,
                                  .build = build_mean,
                                  .reference = mean});
}

/* ---- patches ---- */

enum { H = 6, W = 9, P = 3, CH = 2 };

static ls_value *build_patches(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_patches(m, x[0], P);
}

static void patches(const void *arg, double *const *x, double *const *params, double *y) {
    (void)arg, (void)params;
    for (int64_t p = 0; p < H / P * (W / P); p++)
        for (int64_t i = 0; i < P * P * CH; i++) {
            int64_t row = p / (W / P) * P + i / (P * CH), column = p % (W / P) * P + i / CH % P;
            *y++ = x[0][(row * W + column) * CH + i % CH];
        }
}

static void test_patches(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "patches",
                              .fields = {{.type = LS_F32, .dims = LS_DIMS(H, W, CH)}},
                              .nfields = 1,
                              .build = build_patches,
                              .reference = patches});
}

/* ---- refusals ---- */

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(4, 3, 5)); }
static void with_numbers(ls_model *m) { ls_reshape(m, field(m), LS_DIMS(-1, 7)); }
static void with_two(ls_model *m) { ls_reshape(m, field(m), LS_DIMS(-1, -1)); }
static void with_large(ls_model *m) {
    ls_reshape(m, field(m), LS_DIMS(INT64_MAX, INT64_MAX, INT64_MAX));
}
static void with_dim(ls_model *m) { ls_slice(m, field(m), .dim = -4); }
static void with_scalar(ls_model *m) { ls_mean(m, ls_input(m, "x", LS_F32, LS_SCALAR), 0); }
static void with_range(ls_model *m) { ls_slice(m, field(m), .dim = 1, .first = 2, .count = 2); }
static void with_count(ls_model *m) { ls_slice(m, field(m), .first = 1, .count = INT64_MAX); }
static void with_one(ls_model *m) { ls_concat(m, 0, field(m)); }
static void with_null(ls_model *m) {
    ls_value *x = field(m);
    ls_concat(m, 0, x, NULL, x);
}
static void with_shapes(ls_model *m) {
    ls_value *x = field(m);
    ls_concat(m, 0, x, ls_slice(m, x, .dim = 1, .count = 1));
}
static void with_patches(ls_model *m) { ls_patches(m, field(m), 2); }
static void with_vector(ls_model *m) { ls_patches(m, ls_flatten(m, field(m)), 2); }

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_numbers, "reshape: [4, 3, 5] has 60 numbers, which don't fit into [-1, 7]");
    layer_refused(with_two, "don't fit into [-1, -1]");
    layer_refused(with_large, "reshape: [4, 3, 5] has 60 numbers");
    layer_refused(with_dim, "slice 'slice': [4, 3, 5] has no dimension -4");
    layer_refused(with_scalar, "mean 'mean': [] has no dimension 0");
    layer_refused(with_range, "first is 2, count 2; dimension 1 of [4, 3, 5] has 3");
    layer_refused(with_count,
                  "first is 1, count 9223372036854775807; dimension 0 of [4, 3, 5] has 4");
    layer_refused(with_one, "concat: at least two values are needed");
    layer_refused(with_null, "concat 'concat': an input is NULL");
    layer_refused(with_shapes, "[4, 3, 5] and [4, 1, 5] differ in more than dimension 0");
    layer_refused(with_patches, "[4, 3, 5] is no whole number of patches of 2 x 2");
    layer_refused(with_vector, "the input is [60]; an image, [height, width, channels], is needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice),          cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_concat),
        cmocka_unit_test(test_concat_numbers), cmocka_unit_test(test_mean),
        cmocka_unit_test(test_patches),        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
