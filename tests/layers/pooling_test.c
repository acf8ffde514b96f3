/* pooling_test.c - maximum and average of windows, the mean over pixels, softmax. */
#include "layers/layer_check.h"

typedef struct window {
    const char *name;
    bool average;
    int64_t h, w, C;
    ls_pool_options o;
    int64_t out_h, out_w;
} window;

static const window windows[] = {
    {"max 2", false, 6, 5, 3, {.kernel = 2}, 3, 2},
    {"max 3 / 2", false, 7, 6, 18, {.kernel = 3, .stride = 2, .pad = 1}, 4, 3},
    {"max 1 x 3", false, 3, 8, 2, {.kernel = 1, .kernel_w = 3}, 3, 2},
    {"average 2", true, 4, 6, 3, {.kernel = 2}, 2, 3},
    {"average 3", true, 5, 4, 2, {.kernel = 3, .stride = 1, .pad = 1}, 5, 4},
    {"average 3, all",
     true,
     5,
     4,
     2,
     {.kernel = 3, .stride = 1, .pad = 1, .count_pad = true},
     5,
     4},
};

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const window *p = arg;
    ls_value *y = p->average ? (ls_average_pool)(m, x[0], p->o) : (ls_max_pool)(m, x[0], p->o);
    assert_int_equal(y->dims.of[0], p->out_h);
    assert_int_equal(y->dims.of[1], p->out_w);
    return y;
}

/* The output pixel (i, j) of channel c. */
static double pooled(const window *p, const double *x, int64_t i, int64_t j, int64_t c) {
    int64_t kernel_w = p->o.kernel_w ? p->o.kernel_w : p->o.kernel, count = 0;
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < p->o.kernel * kernel_w; k++) {
        int64_t row = i * (p->o.stride ? p->o.stride : p->o.kernel) + k / kernel_w - p->o.pad;
        int64_t col = j * (p->o.stride ? p->o.stride : kernel_w) + k % kernel_w - p->o.pad;
        if (row < 0 || row >= p->h || col < 0 || col >= p->w) continue;
        double at = x[(row * p->w + col) * p->C + c];
        most = fmax(most, at);
        sum += at;
        count++;
    }
    return p->average ? sum / (double)(p->o.count_pad ? p->o.kernel * kernel_w : count) : most;
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    const window *p = arg;
    (void)params;
    for (int64_t i = 0; i < p->out_h * p->out_w; i++)
        for (int64_t c = 0; c < p->C; c++)
            y[i * p->C + c] = pooled(p, x[0], i / p->out_w, i % p->out_w, c);
}

static void test_windows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        layer_check(&(layer_case){
            .name = windows[i].name,
            .arg = &windows[i],
            .fields = {{LS_F32, LS_DIMS(windows[i].h, windows[i].w, windows[i].C), 0, 0}},
            .nfields = 1,
            .build = build,
            .reference = reference});
}

/* ---- over all pixels, over a row ---- */

enum { ROWS = 6, C = 19 };

static ls_value *build_mean(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_mean_pool(m, x[0]);
}
static void reference_mean(const void *arg, double *const *x, double *const *p, double *y) {
    (void)arg, (void)p;
    for (int c = 0; c < C; c++) y[c] = 0;
    for (int i = 0; i < ROWS * C; i++) y[i % C] += x[0][i] / ROWS;
}

static ls_value *build_softmax(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_softmax(m, x[0]);
}
static void reference_softmax(const void *arg, double *const *x, double *const *p, double *y) {
    (void)arg, (void)p;
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = r * C; i < (r + 1) * C; i++) sum += exp(x[0][i]);
        for (int i = r * C; i < (r + 1) * C; i++) y[i] = exp(x[0][i]) / sum;
    }
}

static void test_rows(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = "mean",
                              .fields = {{LS_F32, LS_DIMS(2, 3, C), 0, 0}},
                              .nfields = 1,
                              .build = build_mean,
                              .reference = reference_mean});
    layer_check(&(layer_case){.name = "softmax",
                              .fields = {{LS_F32, LS_DIMS(2, 3, C), 0, 0}},
                              .nfields = 1,
                              .build = build_softmax,
                              .reference = reference_softmax});
}

/* ---- errors ---- */

static ls_value *image(ls_model *m) { return ls_input(m, "image", LS_U8, LS_DIMS(8, 9, 4)); }
static void with_vector(ls_model *m) { ls_max_pool(m, ls_flatten(m, image(m)), .kernel = 2); }
static void with_no_kernel(ls_model *m) { ls_average_pool(m, image(m), .stride = 2); }
static void with_pad(ls_model *m) { ls_max_pool(m, image(m), .kernel = 2, .pad = 2); }
static void with_large(ls_model *m) { ls_max_pool(m, image(m), .kernel = 10); }
static void with_huge(ls_model *m) { ls_max_pool(m, image(m), .kernel = INT64_MAX); }

static void test_errors(void **state) {
    (void)state;
    layer_refused(with_vector, "max_pool': the input is [288]; an image");
    layer_refused(with_no_kernel, "kernel 0 x 0, stride 2, pad 0: the kernel is at least 1");
    layer_refused(with_pad, "pad 2 is not less than the kernel of 2 x 2");
    layer_refused(with_large, "the kernel of 10 x 10 is larger than the padded image of 8 x 9");
    layer_refused(with_huge, "has more than 65536 pixels");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_windows), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
