/* conv2d_test.c - convolutions and transposed convolutions as layers. */
#include "layers/layer_check.h"

typedef struct conv {
    const char *name;
    int64_t h, w, in;
    ls_conv2d_options o;
    int64_t out_h, out_w, pad_h, pad_w; /* what must follow */
} conv;

static const conv convs[] = {
    {"3x3", 6, 5, 3, {.channels = 4, .kernel = 3}, 6, 5, 1, 1},
    {"stride 2", 7, 6, 2, {.channels = 5, .kernel = 3, .stride = 2, .no_bias = true}, 4, 3, 1, 1},
    {"oblong", 5, 7, 2, {.channels = 3, .kernel = 1, .kernel_w = 3, .pad = LS_NO_PAD}, 5, 5, 0, 0},
    {"groups", 5, 4, 6, {.channels = 4, .kernel = 2, .pad = 2, .groups = 2}, 8, 7, 2, 2},
    {"depthwise", 6, 6, 18, {.channels = 18, .kernel = 3, .groups = 18}, 6, 6, 1, 1},
    {"pointwise", 3, 3, 33, {.channels = 17, .kernel = 1, .stride = 2}, 2, 2, 0, 0},
};

static const conv transposed[] = {
    {"2x2 twice", 3, 4, 3, {.channels = 5, .kernel = 2, .stride = 2}, 6, 8, 0, 0},
    {"3x3 twice", 3, 2, 2, {.channels = 3, .kernel = 3, .stride = 2}, 6, 4, 1, 1},
    {"4x4 twice", 2, 3, 4, {.channels = 6, .kernel = 4, .stride = 2, .groups = 2}, 4, 6, 1, 1},
    {"3x3 once", 4, 4, 2, {.channels = 2, .kernel = 3, .no_bias = true}, 4, 4, 1, 1},
    {"apart", 2, 3, 2, {.channels = 1, .kernel = 2, .stride = 3}, 6, 9, 0, 0},
    {"no padding",
     3,
     3,
     2,
     {.channels = 3, .kernel = 3, .stride = 2, .pad = LS_NO_PAD},
     7,
     7,
     0,
     0},
};

static int64_t stride_of_conv(const conv *c) { return c->o.stride ? c->o.stride : 1; }

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const conv *c = arg;
    ls_value *y = (ls_conv2d)(m, x[0], c->o);
    assert_int_equal(y->dims.of[0], c->out_h);
    assert_int_equal(y->dims.of[1], c->out_w);
    assert_int_equal(y->dims.of[2], c->o.channels);
    return y;
}

static ls_value *build_transposed(ls_model *m, ls_value **x, const void *arg) {
    const conv *c = arg;
    ls_value *y = (ls_conv2d_transposed)(m, x[0], c->o);
    assert_int_equal(y->dims.of[0], c->out_h);
    assert_int_equal(y->dims.of[1], c->out_w);
    assert_int_equal(y->dims.of[2], c->o.channels);
    return y;
}

/* Calls fn for each product of an input, a weight and an output: their numbers. */
typedef struct term {
    int64_t i, j, r, s, y, x; /* pixels of the smaller image, of the kernel, of the larger image */
} term;
typedef void each_term(const conv *, const term *, double *const *x, double *const *p, double *y);

static void terms(const conv *c, const int64_t small[2], const int64_t large[2], each_term *fn,
                  double *const *x, double *const *p, double *y) {
    int64_t kernel_w = c->o.kernel_w ? c->o.kernel_w : c->o.kernel, stride = stride_of_conv(c);
    term t;
    for (t.i = 0; t.i < small[0]; t.i++)
        for (t.j = 0; t.j < small[1]; t.j++)
            for (int64_t k = 0; k < c->o.kernel * kernel_w; k++) {
                t.r = k / kernel_w, t.s = k % kernel_w;
                t.y = t.i * stride + t.r - c->pad_h;
                t.x = t.j * stride + t.s - c->pad_w;
                if (t.y >= 0 && t.y < large[0] && t.x >= 0 && t.x < large[1]) fn(c, &t, x, p, y);
            }
}

/* The weight [r, s, c of its group, k]: c channels of the larger image, k of the smaller one. */
static double weight(const conv *c, const term *t, const double *w, int64_t depth, int64_t at,
                     int64_t out, int64_t k) {
    int64_t kernel_w = c->o.kernel_w ? c->o.kernel_w : c->o.kernel;
    return w[((t->r * kernel_w + t->s) * depth + at) * out + k];
}

static void add_plain(const conv *c, const term *t, double *const *x, double *const *p, double *y) {
    int64_t groups = c->o.groups ? c->o.groups : 1, depth = c->in / groups, out = c->o.channels;
    for (int64_t k = 0; k < out; k++)
        for (int64_t d = 0; d < depth; d++) {
            int64_t from = k / (out / groups) * depth + d;
            y[(t->i * c->out_w + t->j) * out + k] +=
                x[0][(t->y * c->w + t->x) * c->in + from] * weight(c, t, p[0], depth, d, out, k);
        }
}

static void add_transposed(const conv *c, const term *t, double *const *x, double *const *p,
                           double *y) {
    int64_t groups = c->o.groups ? c->o.groups : 1, out = c->o.channels, depth = out / groups;
    for (int64_t k = 0; k < c->in; k++)
        for (int64_t d = 0; d < depth; d++) {
            int64_t to = k / (c->in / groups) * depth + d;
            y[(t->y * c->out_w + t->x) * out + to] +=
                x[0][(t->i * c->w + t->j) * c->in + k] * weight(c, t, p[0], depth, d, c->in, k);
        }
}

static void begin(const conv *c, double *const *p, double *y) {
    for (int64_t i = 0; i < c->out_h * c->out_w * c->o.channels; i++)
        y[i] = c->o.no_bias ? 0 : p[1][i % c->o.channels];
}

static void reference(const void *arg, double *const *x, double *const *p, double *y) {
    const conv *c = arg;
    begin(c, p, y);
    terms(c, (int64_t[]){c->out_h, c->out_w}, (int64_t[]){c->h, c->w}, add_plain, x, p, y);
}

static void reference_transposed(const void *arg, double *const *x, double *const *p, double *y) {
    const conv *c = arg;
    begin(c, p, y);
    terms(c, (int64_t[]){c->h, c->w}, (int64_t[]){c->out_h, c->out_w}, add_transposed, x, p, y);
}

static void test_plain(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        layer_check(
            &(layer_case){.name = convs[i].name,
                          .arg = &convs[i],
                          .fields = {{LS_F32, LS_DIMS(convs[i].h, convs[i].w, convs[i].in), 0, 0}},
                          .nfields = 1,
                          .build = build,
                          .reference = reference});
}

static void test_transposed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof transposed / sizeof *transposed; i++)
        layer_check(&(layer_case){
            .name = transposed[i].name,
            .arg = &transposed[i],
            .fields = {{LS_F32, LS_DIMS(transposed[i].h, transposed[i].w, transposed[i].in), 0, 0}},
            .nfields = 1,
            .build = build_transposed,
            .reference = reference_transposed});
}

/* ---- a value that other layers read, too: the gradient is added to theirs ---- */

static const conv twice = {"residual", 4, 4, 2, {.channels = 2, .kernel = 3}, 4, 4, 1, 1};

/* x + its convolution + its transposed convolution. */
static ls_value *build_residual(ls_model *m, ls_value **x, const void *arg) {
    const conv *c = arg;
    ls_value *a = (ls_conv2d)(m, x[0], c->o), *b = (ls_conv2d_transposed)(m, x[0], c->o);
    return ls_add(m, ls_add(m, a, b), x[0]);
}

static void reference_residual(const void *arg, double *const *x, double *const *p, double *y) {
    double a[4 * 4 * 2], b[4 * 4 * 2];
    reference(arg, x, p, a);
    reference_transposed(arg, x, p + 2, b);
    for (int i = 0; i < 4 * 4 * 2; i++) y[i] = a[i] + b[i] + x[0][i];
}

static void test_residual(void **state) {
    (void)state;
    layer_check(&(layer_case){.name = twice.name,
                              .arg = &twice,
                              .fields = {{LS_F32, LS_DIMS(twice.h, twice.w, twice.in), 0, 0}},
                              .nfields = 1,
                              .build = build_residual,
                              .reference = reference_residual});
}

/* ---- names, initial weights, errors ---- */

static ls_value *image(ls_model *m) { return ls_input(m, "image", LS_U8, LS_DIMS(8, 9, 4)); }

static void test_parameters(void **state) {
    (void)state;
    ls_model m = {0};
    ls_value *x = ls_conv2d(&m, image(&m), .name = "stem", .channels = 6, .kernel = 3, .groups = 2);
    ls_conv2d_transposed(&m, x, .channels = 10, .kernel = 2, .stride = 2, .no_bias = true);
    assert_true(ls_build_is_good(&m));
    assert_int_equal(m.nparams, 3);
    assert_string_equal(m.params[0].name, "stem.weight");
    assert_string_equal(m.params[2].name, "conv2d_transposed.weight");
    const int64_t first[] = {3, 3, 2, 6}, last[] = {2, 2, 10, 6};
    assert_memory_equal(m.params[0].dims, first, sizeof first);
    assert_memory_equal(m.params[2].dims, last, sizeof last);
    assert_true(fabs((double)m.params[0].init.std - sqrt(2 / 18.0)) < 1e-6);
    assert_true(fabs((double)m.params[2].init.std - sqrt(2 / 6.0)) < 1e-6);
    assert_true(m.layers[1].cost.flops == 2.0 * 8 * 9 * 6 * 18);
    assert_true(m.layers[2].cost.flops == 2.0 * 8 * 9 * 6 * 40);
    ls_model_free(&m);
}

static void with_vector(ls_model *m) {
    ls_conv2d(m, ls_flatten(m, image(m)), .channels = 3, .kernel = 3);
}
static void with_no_kernel(ls_model *m) { ls_conv2d(m, image(m), .channels = 3); }
static void with_no_channels(ls_model *m) { ls_conv2d(m, image(m), .kernel = 3); }
static void with_groups(ls_model *m) {
    ls_conv2d(m, image(m), .channels = 6, .kernel = 3, .groups = 3);
}
static void with_pad(ls_model *m) { ls_conv2d(m, image(m), .channels = 6, .kernel = 3, .pad = -2); }
static void with_large(ls_model *m) {
    ls_conv2d(m, image(m), .channels = 6, .kernel = 9, .pad = LS_NO_PAD);
}
static void with_no_output(ls_model *m) {
    ls_conv2d_transposed(m, image(m), .channels = 6, .kernel = 3, .pad = 6);
}
static void with_even(ls_model *m) {
    ls_conv2d_transposed(m, image(m), .channels = 6, .kernel = 2);
}

static void test_errors(void **state) {
    (void)state;
    layer_refused(with_vector, "conv2d 'conv2d': the input is [288]; an image [height, width, "
                               "channels] is needed");
    layer_refused(with_no_kernel, "the kernel's height is 0; it must be between 1 and 1048576");
    layer_refused(with_no_channels, "the number of output channels is 0");
    layer_refused(with_groups, "4 input and 6 output channels can't be divided into 3 groups");
    layer_refused(with_pad, "the padding is -2");
    layer_refused(with_large, "the kernel of 9 x 9 is larger than the padded image of 8 x 9");
    layer_refused(with_even, "an even kernel with stride 1 can't keep the size; give a padding");
    layer_refused(with_no_output, "the image's height is -2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_residual), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
