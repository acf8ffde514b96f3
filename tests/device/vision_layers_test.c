/* vision_layers_test.c - layers of models of images, and of recommenders: forward and backward on a
 * device, of every kind, have the bits of the host. */
#include "device/both_sides.h"

enum { H = 9, W = 7, C = 6, CLASSES = 37, REALS = 0x40000000 }; /* REALS: below 2, as bits of f32 */

static void end(ls_model *m, ls_value *label, ls_value *x) {
    ls_cross_entropy(m, ls_linear(m, ls_flatten(m, x), .out = CLASSES), label, LS_DEFAULTS);
}

/* A label and an image. */
static ls_value *label_of(ls_model *m) { return ls_input(m, "label", LS_I32, LS_SCALAR); }
static ls_value *image_of(ls_model *m) { return ls_input(m, "image", LS_U8, LS_DIMS(H, W, C)); }

/* ---- convolutions ---- */

static const ls_conv2d_options convs[] = {
    {.channels = 5, .kernel = 3},
    {.channels = 70, .kernel = 1, .kernel_w = 4, .no_bias = true},
    {.channels = 3, .kernel = 5, .stride = 2},
    {.channels = 4, .kernel = 2, .stride = 3, .pad = LS_NO_PAD},
    {.channels = 9, .kernel = 3, .groups = 3},
    {.channels = C, .kernel = 3, .stride = 2, .groups = C},
    {.channels = 2, .kernel = 4, .pad = 3, .groups = 2, .no_bias = true}};
enum { NCONVS = sizeof convs / sizeof *convs };
static int which;

static void conv(ls_model *m) {
    ls_value *label = label_of(m);
    end(m, label, (ls_conv2d)(m, ls_affine(m, image_of(m), 0.01f, -1), convs[which]));
}
/* Of a value that is trained, so that its gradient is wanted. */
static void conv_of_value(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = C, .kernel = 1);
    end(m, label, (ls_conv2d)(m, x, convs[which]));
}
static void transposed(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = C, .kernel = 1);
    ls_conv2d_options o = convs[which];
    if (o.stride > 1 && o.pad == LS_NO_PAD) o.kernel = 3;
    if (!o.stride || o.stride == 1) o.pad = 1, o.kernel = 3, o.kernel_w = 0;
    end(m, label, (ls_conv2d_transposed)(m, x, o));
}

static void test_convolutions(void **state) {
    (void)state;
    for (which = 0; which < NCONVS; which++) {
        check(conv, CLASSES);
        check(conv_of_value, CLASSES);
        check(transposed, CLASSES);
    }
}

/* ---- pooling ---- */

static const ls_pool_options pools[] = {{.kernel = 2},
                                        {.kernel = 3, .stride = 2, .pad = 1},
                                        {.kernel = 3, .stride = 1, .pad = 2, .count_pad = true},
                                        {.kernel = 1, .kernel_w = 3, .stride = 4}};
enum { NPOOLS = sizeof pools / sizeof *pools };

static void max_pool(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = C, .kernel = 1);
    end(m, label, (ls_max_pool)(m, x, pools[which]));
}
static void average_pool(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = C, .kernel = 1);
    end(m, label, (ls_average_pool)(m, x, pools[which]));
}
static void mean_pool(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 33, .kernel = 1);
    end(m, label, ls_mean_pool(m, x));
}

static void test_pooling(void **state) {
    (void)state;
    for (which = 0; which < NPOOLS; which++) {
        check(max_pool, CLASSES);
        check(average_pool, CLASSES);
    }
    check(mean_pool, CLASSES);
}

/* ---- norms ---- */

static void group_norm(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 8, .kernel = 1);
    x = ls_group_norm(m, x, .relu = true);
    end(m, label, ls_group_norm(m, x, .groups = 8, .eps = 1e-3f));
}
/* More channels than a group of items has, in groups of more than 16. */
static void wide_group_norm(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 140, .kernel = 1);
    end(m, label, ls_group_norm(m, ls_group_norm(m, x, .groups = 4), .groups = 1, .relu = true));
}
static void batch_norm(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 70, .kernel = 1);
    end(m, label, ls_batch_norm(m, ls_batch_norm(m, x, .relu = true), .eps = 1e-3f));
}
static void fixed_batch_norm(ls_model *m) {
    batch_norm(m);
    ls_freeze(m, "*running*");
}

static void test_norms(void **state) {
    (void)state;
    check(group_norm, CLASSES);
    check(wide_group_norm, CLASSES);
    check(batch_norm, CLASSES);
    check(fixed_batch_norm, CLASSES);
}

/* ---- numbers one by one, and tokens ---- */

static void elements(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 8, .kernel = 1);
    ls_value *y = ls_silu(m, ls_tanh(m, ls_sigmoid(m, ls_relu(m, x))));
    end(m, label, ls_affine(m, ls_add_relu(m, x, ls_gelu(m, y)), 0.3f, -0.1f));
}
static void tokens(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_input(m, "image", LS_U8, LS_DIMS(6, 9, 2));
    x = ls_patches(m, ls_conv2d(m, x, .channels = 4, .kernel = 1), 3);
    x = ls_linear(m, x, .out = 12);
    x = ls_add(m, x, ls_learned(m, x->dims, LS_DEFAULTS));
    end(m, label, ls_mean(m, x, 0));
}
static void means(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 5, .kernel = 1);
    ls_value *y = ls_mean(m, x, 1);
    end(m, label, ls_concat(m, 0, ls_mean(m, y, 0), ls_mean(m, y, 1)));
}

/* A value that is read twice: its gradient is begun. */
static void parts(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_conv2d(m, image_of(m), .channels = 5, .kernel = 1);
    ls_value *y = ls_slice(m, x, .dim = 1, .first = 2, .count = 4);
    end(m, label, ls_concat(m, 1, y, x, ls_slice(m, x, .dim = 2, .count = 5)));
}

static void test_elements(void **state) {
    (void)state;
    check(elements, CLASSES);
    check(tokens, CLASSES);
    check(means, CLASSES);
    check(parts, CLASSES);
}

/* ---- fields ---- */

static void integers(ls_model *m) {
    ls_value *label = label_of(m), *x = ls_input(m, "x", LS_I32, LS_DIMS(5, 3));
    end(m, label, ls_add(m, ls_affine(m, x, 0.3f, 7), ls_normalize(m, x, .deviation = {1, 2, 3})));
}
static void normalized(ls_model *m) {
    ls_value *label = label_of(m), *x = image_of(m);
    x = ls_normalize(m, x, .mean = {1, 2, 3}, .deviation = {.1f, .2f, .3f, .4f, .5f, .6f});
    x = ls_conv2d(m, x, .channels = 3, .kernel = 1);
    end(m, label, ls_normalize(m, x, .mean = {1, -2, 3}, .deviation = {1, 2, 3}));
}
static void reals(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(4, 3)),
             *to = ls_input(m, "to", LS_F32, LS_DIMS(2));
    ls_value *y = ls_normalize(m, x, .mean = {1, -2, 3}, .deviation = {1, 2, 3});
    y = ls_linear(m, ls_flatten(m, ls_add(m, y, ls_affine(m, x, 3, 1))), .out = 2);
    ls_mean_squared_error(m, y, to, LS_DEFAULTS);
}

/* Columns as a table's data.normalize scales them, one of them constant. */
static void scaled(ls_model *m) {
    static const float means[] = {1, -2, 3}, deviations[] = {2, 0, 0.5f};
    ls_value *to = ls_input(m, "to", LS_F32, LS_DIMS(2)),
             *x = ls_input(m, "x", LS_F32, LS_DIMS(4, 3)),
             *i = ls_input(m, "i", LS_I32, LS_DIMS(4, 3));
    ls_value *y = ls_add(m, ls_layers_standardize(m, x, 3, means, deviations),
                         ls_layers_standardize(m, i, 1, means, deviations));
    ls_mean_squared_error(m, ls_linear(m, ls_flatten(m, y), .out = 2), to, LS_DEFAULTS);
}

static void test_fields(void **state) {
    (void)state;
    check(integers, CLASSES);
    check(normalized, CLASSES);
    check(reals, REALS);
    check(scaled, REALS);
}

/* ---- losses ---- */

/* A label for each row, of more than 256 rows, some of which do not count. */
static void classes_of_rows(ls_model *m) {
    ls_value *label = ls_input(m, "label", LS_I32, LS_DIMS(300));
    ls_value *x = ls_input(m, "x", LS_U8, LS_DIMS(300, 4));
    x = ls_linear(m, ls_affine(m, x, 0.01f, 0), .out = CLASSES);
    ls_cross_entropy(m, x, label, .smoothing = 0.1f, .ignore = 3, .factor = 0.7f);
}
static void many_classes(ls_model *m) {
    ls_value *label = label_of(m), *x = image_of(m);
    ls_cross_entropy(m, ls_linear(m, ls_flatten(m, x), .out = 300), label, LS_DEFAULTS);
}
/* Targets are fields of each type. */
static void chances(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(3, 4)), .out = 300);
    ls_binary_cross_entropy(m, x, ls_input(m, "a", LS_F32, LS_DIMS(3, 300)), .factor = 3);
    ls_mean_squared_error(m, x, ls_input(m, "b", LS_F32, LS_DIMS(3, 300)), LS_DEFAULTS);
}
static void integer_targets(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_U8, LS_DIMS(3, 4)), .out = 5);
    ls_binary_cross_entropy(m, x, ls_input(m, "a", LS_U8, LS_DIMS(3, 5)), LS_DEFAULTS);
    ls_mean_squared_error(m, x, ls_input(m, "b", LS_I32, LS_DIMS(3, 5)), .factor = 2);
}
/* Targets are a value. */
static void values(ls_model *m) {
    ls_value *x = ls_affine(m, ls_input(m, "x", LS_U8, LS_DIMS(3, 5)), 0.01f, 0);
    ls_value *y = ls_linear(m, x, .out = 5);
    ls_binary_cross_entropy(m, y, x, LS_DEFAULTS);
    ls_mean_squared_error(m, y, x, LS_DEFAULTS);
}

static void test_losses(void **state) {
    (void)state;
    check(classes_of_rows, CLASSES);
    check(many_classes, 300);
    check(chances, REALS);
    check(integer_targets, 2);
    check(values, 200);
}

/* ---- recommenders ---- */

static void scores(ls_model *m) {
    ls_value *u = ls_linear(m, ls_input(m, "u", LS_U8, LS_DIMS(4)), .out = 21);
    ls_value *v = ls_linear(m, ls_input(m, "v", LS_U8, LS_DIMS(5, 4)), .out = 21);
    ls_bpr(m, ls_dot(m, u, v), ls_input(m, "chosen", LS_I32, LS_DIMS(5)), .factor = 0.7f);
}
/* Most samples have scores of both kinds. */
static void many_scores(ls_model *m) {
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_U8, LS_DIMS(4)), .out = 300);
    ls_bpr(m, x, ls_input(m, "chosen", LS_U8, LS_DIMS(300)), LS_DEFAULTS);
}
static void pairs(ls_model *m) {
    ls_value *to = ls_input(m, "to", LS_I32, LS_DIMS(1));
    ls_value *x = ls_linear(m, ls_input(m, "x", LS_U8, LS_DIMS(7, 4)), .out = 19);
    x = ls_linear(m, ls_interaction(m, x), .out = 1);
    ls_binary_cross_entropy(m, x, to, LS_DEFAULTS);
}

static void test_recommenders(void **state) {
    (void)state;
    check(scores, 2);
    check(many_scores, 1u << 31);
    check(pairs, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions), cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_norms),        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_fields),       cmocka_unit_test(test_losses),
        cmocka_unit_test(test_recommenders)};
    return run_layers_on_devices(tests, sizeof tests / sizeof *tests);
}
