/* norms_test.c - group norm, with and without ReLU, layer norm, RMS norm, normalize. */
#include "layers/layer_check.h"
#include "layers/layers.h"

typedef struct norm {
    const char *name;
    int64_t rows, C, groups; /* rows: pixels of group norm */
    bool relu;
} norm;

/* ---- group norm ---- */

static ls_value *build_group(ls_model *m, ls_value **x, const void *arg) {
    const norm *n = arg;
    return ls_group_norm(m, x[0], .groups = n->groups, .relu = n->relu);
}

/* Normalizes n numbers: number i is x[place(i)], place(i) = i / run * stride + i % run. */
static void normalize(const double *x, double *y, int64_t n, int64_t run, int64_t stride) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i / run * stride + i % run] / (double)n;
    for (int64_t i = 0; i < n; i++)
        variance += pow(x[i / run * stride + i % run] - mean, 2) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / run * stride + i % run;
        y[at] = (x[at] - mean) / sqrt(variance + 1e-5);
    }
}

static void scale(const norm *n, double *const *p, double *y) {
    for (int64_t i = 0; i < n->rows * n->C; i++) {
        y[i] = y[i] * p[0][i % n->C] + p[1][i % n->C];
        if (n->relu && y[i] < 0) y[i] = 0;
    }
}

static void reference_group(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    int64_t run = n->C / n->groups;
    for (int64_t g = 0; g < n->groups; g++)
        normalize(x[0] + g * run, y + g * run, n->rows * run, run, n->C);
    scale(n, p, y);
}

static void test_group_norm(void **state) {
    (void)state;
    static const norm norms[] = {{"group norm", 12, 6, 3, false},
                                 {"group norm + relu", 12, 6, 2, true},
                                 {"group norm of 20 channels", 6, 20, 4, true},
                                 {"instance norm", 30, 3, 3, false},
                                 {"one group", 4, 16, 1, true}};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        layer_check(
            &(layer_case){.name = norms[i].name,
                          .arg = &norms[i],
                          .fields = {{LS_F32, LS_DIMS(norms[i].rows / 2, 2, norms[i].C), 0, 0}},
                          .nfields = 1,
                          .build = build_group,
                          .reference = reference_group,
                          .tolerance = 2e-5});
}

/* ---- layer norm and RMS norm ---- */

static ls_value *build_layer(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_layer_norm(m, x[0], LS_DEFAULTS);
}

static ls_value *build_rms(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_rms_norm(m, x[0], LS_DEFAULTS);
}

static void reference_layer(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    for (int64_t r = 0; r < n->rows; r++)
        normalize(x[0] + r * n->C, y + r * n->C, n->C, n->C, n->C);
    scale(n, p, y);
}

static void reference_rms(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    for (int64_t r = 0; r < n->rows; r++) {
        double square = 0;
        for (int64_t i = r * n->C; i < (r + 1) * n->C; i++) square += x[0][i] * x[0][i];
        for (int64_t i = 0; i < n->C; i++)
            y[r * n->C + i] = x[0][r * n->C + i] / sqrt(square / (double)n->C + 1e-5) * p[0][i];
    }
}

static void test_row_norms(void **state) {
    (void)state;
    static const norm norms[] = {{"3 rows of 7", 3, 7, 0, false},
                                 {"2 rows of 33", 2, 33, 0, false}};
    for (int i = 0; i < 4; i++)
        layer_check(
            &(layer_case){.name = norms[i / 2].name,
                          .arg = &norms[i / 2],
                          .fields = {{LS_F32, LS_DIMS(norms[i / 2].rows, norms[i / 2].C), 0, 0}},
                          .nfields = 1,
                          .build = i % 2 ? build_rms : build_layer,
                          .reference = i % 2 ? reference_rms : reference_layer,
                          .tolerance = 2e-5});
}

/* x is read by the sum, too, which begins its gradient: the norm adds to it. */
static ls_value *build_residual(ls_model *m, ls_value **x, const void *arg) {
    return ls_add(m, x[0], build_rms(m, x, arg));
}

static void reference_residual(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    reference_rms(arg, x, p, y);
    for (int64_t i = 0; i < n->rows * n->C; i++) y[i] += x[0][i];
}

static void test_residual(void **state) {
    (void)state;
    static const norm n = {"x + its RMS norm", 3, 33, 0, false};
    layer_check(&(layer_case){.name = n.name,
                              .arg = &n,
                              .fields = {{LS_F32, LS_DIMS(n.rows, n.C), 0, 0}},
                              .nfields = 1,
                              .build = build_residual,
                              .reference = reference_residual,
                              .tolerance = 2e-5});
}

/* ---- the same, by weights that are a value ---- */

static ls_value *build_layer_by(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_layers_layer_norm_by(m, x[0], x[1]);
}

static ls_value *build_rms_by(ls_model *m, ls_value **x, const void *arg) {
    (void)arg;
    return ls_layers_rms_norm_by(m, x[0], x[1], 1e-5f);
}

static void reference_layer_by(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    double *weights[] = {x[1], x[1] + n->C};
    reference_layer(arg, x, weights, y);
    (void)p;
}

static void reference_rms_by(const void *arg, double *const *x, double *const *p, double *y) {
    reference_rms(arg, x, x + 1, y);
    (void)p;
}

static void test_norms_by(void **state) {
    (void)state;
    static const norm n = {"2 rows of 33", 2, 33, 0, false};
    for (int i = 0; i < 2; i++)
        layer_check(&(layer_case){.name = i ? "RMS norm by a value" : "layer norm by a value",
                                  .arg = &n,
                                  .fields = {{LS_F32, LS_DIMS(n.rows, n.C), 0, 0},
                                             {LS_F32, i ? LS_DIMS(n.C) : LS_DIMS(2, n.C), 0, 0}},
                                  .nfields = 2,
                                  .build = i ? build_rms_by : build_layer_by,
                                  .reference = i ? reference_rms_by : reference_layer_by,
                                  .tolerance = 2e-5});
}

/* ---- normalize ---- */

enum { PIXELS = 5, CHANNELS = 3 };
static const float mean[] = {0.5f, 0.25f, -1.0f}, deviation[] = {0.5f, 0.2f, 4.0f};

typedef struct source {
    const char *name;
    ls_dtype type;
    bool is_value;
} source;

static ls_value *build_normalize(ls_model *m, ls_value **x, const void *arg) {
    const source *s = arg;
    ls_value *y = s->is_value ? ls_add(m, x[0], x[0]) : x[0];
    return ls_normalize(m, y, .mean = {0.5f, 0.25f, -1.0f}, .deviation = {0.5f, 0.2f, 4.0f});
}

static void reference_normalize(const void *arg, double *const *x, double *const *p, double *y) {
    const source *s = arg;
    (void)p;
    for (int i = 0; i < PIXELS * CHANNELS; i++) {
        double number = s->is_value ? 2 * x[0][i] : s->type == LS_U8 ? x[0][i] / 255 : x[0][i];
        y[i] = (number - (double)mean[i % CHANNELS]) / (double)deviation[i % CHANNELS];
    }
}

static void test_normalize(void **state) {
    (void)state;
    static const source sources[] = {{"bytes", LS_U8, false},
                                     {"integers", LS_I32, false},
                                     {"floats", LS_F32, false},
                                     {"a value", LS_F32, true}};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        layer_check(&(layer_case){.name = sources[i].name,
                                  .arg = &sources[i],
                                  .fields = {{sources[i].type, LS_DIMS(PIXELS, CHANNELS), 0, 256}},
                                  .nfields = 1,
                                  .build = build_normalize,
                                  .reference = reference_normalize});
}

/* ---- defaults and errors ---- */

static ls_value *image(ls_model *m, int64_t C) {
    return ls_input(m, "image", LS_U8, LS_DIMS(4, 4, C));
}

static void test_groups(void **state) {
    (void)state;
    static const int64_t cases[][2] = {{1, 1}, {4, 1}, {16, 4}, {18, 3}, {64, 16}, {256, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_model m = {0};
        ls_group_norm(&m, image(&m, cases[i][0]), LS_DEFAULTS);
        assert_int_equal(m.layers[1].memory.saved, 2 * cases[i][1]);
        assert_true(m.params[0].init.value == 1 && m.params[1].init.value == 0);
        assert_false(m.params[0].decay);
        ls_model_free(&m);
    }
}

static void with_groups(ls_model *m) { ls_group_norm(m, image(m, 6), .groups = 4); }
static void with_eps(ls_model *m) { ls_rms_norm(m, image(m, 6), .eps = -1); }
static void with_deviation(ls_model *m) {
    ls_normalize(m, image(m, 3), .mean = {0.1f, 0.2f, 0.3f}, .deviation = {1, 1});
}
static void with_channels(ls_model *m) { ls_normalize(m, image(m, 17), .deviation = {1}); }
static void with_null(ls_model *m) { ls_normalize(m, NULL, .deviation = {1}); }

static void test_errors(void **state) {
    (void)state;
    layer_refused(with_groups, "group_norm': 6 channels can't be divided into 4 groups");
    layer_refused(with_eps, "rms_norm': eps is -1; it is at least 0");
    layer_refused(with_deviation, "normalize': the deviation of channel 2 is 0");
    layer_refused(with_channels, "the input is [4, 4, 17]; at most 16 channels are possible");
    layer_refused(with_null, "normalize': an input is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_norm), cmocka_unit_test(test_row_norms),
        cmocka_unit_test(test_residual),   cmocka_unit_test(test_norms_by),
        cmocka_unit_test(test_normalize),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
