/* metrics_test.c - metrics of models: values of each sample and of all, beside plain loops; which
 * ones a model has that asks for none; what is refused. */
#include <math.h>

#include "base/mem.h"
#include "base/random.h"
#include "infer/infer.h"
#include "model/builder.h"
#include "model/refused.h"
#include "report/evaluation.h"
#include "test.h"

enum { N = 83, CLASSES = 12 };

typedef struct sample {
    _Alignas(64) float x[CLASSES];
    _Alignas(64) int32_t label;
    _Alignas(64) float y[2];
    _Alignas(64) float weight;
} sample;

static double uniform(uint64_t which, uint64_t i) {
    return ls_random_uniform(5, LS_STREAM_FAKE, which, i);
}

/* Many scores are equal; some labels are negative. */
static void fill(sample *s) {
    for (uint64_t i = 0; i < N; i++) {
        for (uint64_t k = 0; k < CLASSES; k++)
            s[i].x[k] = (float)floor(6 * uniform(1, i * CLASSES + k));
        s[i].label = i % 9 == 4 ? -1 : (int32_t)(CLASSES * uniform(2, i));
        for (uint64_t k = 0; k < 2; k++) s[i].y[k] = (float)uniform(3, 2 * i + k);
        s[i].weight = (float)(i % 3);
    }
}

/* Records of the samples in the order in which they are given. */
static double *records_of(const ls_model *m, const sample *s, int64_t part, int threads,
                          ls_dtype type) {
    ls_compute c;
    ls_error e = {0};
    void *params = calloc(m->nfloats + 1, sizeof(float));
    char *packed = ls_alloc(N * m->sample_nbytes);
    double *records = LS_NEW_ARRAY(double, N *ls_record_size(m));
    ls_infer f = {.model = m, .compute = &c, .dtype = type, .params = params, .n = part};
    assert_ls_ok(ls_compute_init(&c, threads, ls_model_scratch_floats(m), &e), e);
    ls_pool_share_cores(c.pool);
    if (type == LS_F32) ls_model_init(m, 1, 0, m->nfloats, params);
    f.memory = ls_alloc(ls_infer_nbytes(m, type, part));
    for (size_t i = 0; i < N; i++) memcpy(packed + i * m->sample_nbytes, &s[i], m->sample_nbytes);
    assert_ls_ok(ls_infer_records(&f, N, packed, records, &e), e);
    ls_compute_close(&c);
    free(packed);
    free(f.memory);
    free(params);
    return records;
}

static double metric(const ls_evaluation *v, const char *name) {
    for (int i = 0; i < v->nmetrics; i++)
        if (strcmp(v->metrics[i].name, name) == 0) return v->metrics[i].value;
    fail_msg("there is no metric %s", name);
    return 0;
}

static ls_value *fields(ls_model *m, ls_value **label, ls_value **y) {
    ls_value *x = ls_affine(m, ls_input(m, "x", LS_F32, LS_DIMS(CLASSES)), 1, 0);
    *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    *y = ls_input(m, "y", LS_F32, LS_DIMS(2));
    return x;
}

/* ---- metrics of classes ---- */

/* Larger logits, and equal ones of lower classes, come first. */
static int64_t rank_of(const sample *s) {
    int64_t rank = 0;
    for (int k = 0; k < CLASSES; k++)
        rank += s->x[k] > s->x[s->label] || (s->x[k] == s->x[s->label] && k < s->label);
    return rank;
}

static void test_classes(void **state) {
    (void)state;
    static sample s[N];
    ls_model m = {0};
    ls_error e = {0};
    ls_value *label = NULL, *y = NULL, *x = fields(&m, &label, &y);
    fill(s);
    ls_cross_entropy(&m, x, label, LS_DEFAULTS);
    ls_sample_weight(&m, ls_input(&m, "weight", LS_F32, LS_SCALAR));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.sample_nbytes, offsetof(sample, weight) + sizeof(float));
    double *r = NULL, top = 0, top5 = 0, n = 0, loss = 0, weight = 0;
    r = records_of(&m, s, 7, 1, LS_F32);
    for (int i = 0; i < N; i++) {
        if (s[i].label < 0) continue;
        double sum = 0;
        for (int k = 0; k < CLASSES; k++) sum += exp((double)s[i].x[k]);
        top += rank_of(&s[i]) < 1;
        top5 += rank_of(&s[i]) < 5;
        n++;
        loss += (double)s[i].weight * (log(sum) - (double)s[i].x[s[i].label]);
        weight += (double)s[i].weight;
    }
    ls_evaluation v = ls_evaluation_of_records(&m, r, N, 0);
    assert_int_equal(v.nmetrics, 2); /* beside the confusion matrix */
    assert_true(metric(&v, "accuracy") == top / n);
    assert_true(metric(&v, "top5") == top5 / n);
    assert_true(fabs(v.loss - loss / weight) < 1e-6);
    ls_buf text = {0};
    ls_evaluation_print(&v, &text);
    char want[64];
    snprintf(want, sizeof want, ", accuracy %.4f, top5 %.4f", top / n, top5 / n);
    assert_string_equal(text.data, want);
    ls_buf_free(&text);

    const ls_measure *confusion = &m.measures[m.nmeasures - 1];
    assert_int_equal(confusion->kind, LS_MEASURE_CONFUSION);
    assert_int_equal(confusion->classes, CLASSES);
    size_t size = ls_record_size(&m);
    for (size_t i = 0; i < N; i++) {
        assert_true(r[(i + 1) * size - 1] == (s[i].label < 0 ? -1 : s[i].label));
        if (s[i].label >= 0)
            assert_true((r[(i + 1) * size - 2] == s[i].label) == (rank_of(&s[i]) == 0));
    }
    for (int way = 0; way < 3; way++) { /* these logits have 16 bits */
        double *again = records_of(&m, s, way ? N : 1, 1 + way, way == 2 ? LS_BF16 : LS_F32);
        assert_memory_equal(r, again, N * size * sizeof *r);
        free(again);
    }
    free(r);
    ls_model_free(&m);
}

/* ---- area under the curve ---- */

static void test_auc(void **state) {
    (void)state;
    enum { STRIDE = 3 };
    for (int n = 0; n < 40; n++) {
        double pairs[40 * STRIDE] = {0}, won = 0, all = 0;
        for (int i = 0; i < n; i++) {
            pairs[i * STRIDE] = floor(7 * uniform(7, (uint64_t)(n * 40 + i))) - 3;
            pairs[i * STRIDE + 1] = floor(3 * uniform(8, (uint64_t)(n * 40 + i))) - 1;
        }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                if (pairs[i * STRIDE + 1] != 1 || pairs[k * STRIDE + 1] != 0) continue;
                double a = pairs[i * STRIDE], b = pairs[k * STRIDE];
                won += a > b ? 1 : a == b ? 0.5 : 0;
                all++;
            }
        double got = ls_evaluation_auc(pairs, (uint64_t)n, STRIDE);
        if (all > 0) assert_true(got == won / all);
        if (all == 0) assert_true(isnan(got));
    }
    double bad[] = {1, 1, NAN, 0};
    assert_true(isnan(ls_evaluation_auc(bad, 2, 2)));
}

/* ---- which metrics a model has ---- */

static void check_names(const ls_model *m, const char *names) {
    char got[256] = "";
    for (int i = 0; i < m->nmeasures; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", m->measures[i].name);
    assert_string_equal(got, names);
}

static void binary(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    (void)y;
    ls_binary_cross_entropy(m, ls_linear(m, x, .out = 1), label, LS_DEFAULTS);
}
static void two_classes(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    (void)y;
    ls_cross_entropy(m, ls_linear(m, x, .out = 2), label, LS_DEFAULTS);
}
static void regression(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    (void)label;
    ls_mean_squared_error(m, ls_linear(m, x, .out = 2), y, LS_DEFAULTS);
}
static void two_losses(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    regression(m, x, label, y);
    ls_cross_entropy(m, x, label, LS_DEFAULTS);
}
static void own(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    ls_value *p = ls_linear(m, x, .out = 2);
    ls_metric(m, "top3", ls_is_top(m, x, label, 3));
    ls_metric(m, "mae", ls_absolute_error(m, p, y));
    ls_metric(m, "mse", ls_squared_error(m, p, y));
    ls_mean_squared_error(m, p, y, LS_DEFAULTS);
    ls_metric(m, "rmse", ls_root_squared_error(m, p, y));
}
static void matrices(ls_model *m, ls_value *x, ls_value *label, ls_value *y) {
    two_losses(m, x, label, y);
    ls_metric(m, "kinds", ls_confusion(m, x, label));
    ls_metric(m, "others", ls_confusion(m, ls_affine(m, x, -1, 0), label));
}

typedef void build(ls_model *, ls_value *x, ls_value *label, ls_value *y);

static void test_names(void **state) {
    (void)state;
    static const struct {
        build *build;
        const char *names;
    } cases[] = {{binary, "auc "},
                 {two_classes, "accuracy auc confusion "},
                 {regression, "rmse "},
                 {two_losses, ""},
                 {own, "top3 mae mse rmse "},
                 {matrices, "kinds others "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_model m = {0};
        ls_error e = {0};
        ls_value *label = NULL, *y = NULL, *x = fields(&m, &label, &y);
        cases[i].build(&m, x, label, y);
        assert_ls_ok(ls_build_finish(&m, &e), e);
        check_names(&m, cases[i].names);
        ls_model_free(&m);
    }
}

static ls_value *numbers(ls_model *m) { return ls_input(m, "v", LS_F32, LS_DIMS(3)); }
static ls_value *class_of(ls_model *m) { return ls_input(m, "c", LS_I32, LS_SCALAR); }
static void with_layer(ls_model *m) { ls_metric(m, "a", ls_gelu(m, numbers(m))); }
static void with_name(ls_model *m) {
    ls_metric(m, "a b", ls_is_top(m, numbers(m), class_of(m), 1));
}
static void with_loss_name(ls_model *m) {
    ls_metric(m, "loss", ls_is_top(m, numbers(m), class_of(m), 1));
}
static void with_twice(ls_model *m) {
    ls_value *x = numbers(m), *c = class_of(m);
    ls_metric(m, "a", ls_is_top(m, x, c, 1));
    ls_metric(m, "a", ls_is_top(m, x, c, 2));
}
static void with_no_name(ls_model *m) { ls_is_top(m, numbers(m), class_of(m), 1); }
static void with_reader(ls_model *m) { ls_gelu(m, ls_is_top(m, numbers(m), class_of(m), 1)); }
static void with_k(ls_model *m) { ls_is_top(m, numbers(m), class_of(m), 0); }
static void with_score(ls_model *m) { ls_auc(m, numbers(m), class_of(m)); }
static void with_unread(ls_model *m) {
    ls_value *x = ls_linear(m, numbers(m), .out = 2), *c = class_of(m);
    ls_cross_entropy(m, x, c, LS_DEFAULTS);
    ls_metric(m, "a", ls_is_top(m, ls_linear(m, x, .out = 3), c, 1));
}
static void with_many(ls_model *m) {
    ls_value *x = ls_input(m, "v", LS_F32, LS_DIMS(LS_MEASURE_TARGETS + 1));
    ls_metric(m, "a", ls_r2(m, x, x));
}
static void with_labels(ls_model *m) { ls_is_top(m, numbers(m), numbers(m), 1); }

static void test_refused(void **state) {
    (void)state;
    static const refused_model cases[] = {
        {with_layer, "the value is no measure, such as that of ls_is_top()"},
        {with_name, "the name 'a b' is taken, or does not have 1 to 31 letters, digits, _ or -"},
        {with_loss_name, "the name 'loss' is taken"},
        {with_twice, "another metric has the name 'a'"},
        {with_no_name, "is_top: it has no name by ls_metric()"},
        {with_reader, "an input is a metric, which no layer can read"},
        {with_k, "k is 0; it is at least 1"},
        {with_score, "the score is [3]; one number, or the logits of two classes, is needed"},
        {with_unread, "layer 'linear_2' has parameters, but no loss depends on it"},
        {with_many, "a sample has 65 targets; at most 64 are possible"},
        {with_labels, "the model has a field 'v' already"},
    };
    check_refused(cases, sizeof cases / sizeof *cases);
}

/* Errors of numbers; a value that only measures read late is not overwritten by later layers. */
static void test_numbers(void **state) {
    (void)state;
    static sample s[N];
    ls_model m = {0};
    ls_error e = {0};
    ls_value *label = NULL, *y = NULL, *x = fields(&m, &label, &y);
    fill(s);
    ls_value *one = ls_linear(&m, x, .out = 2), *two = one;
    for (int i = 0; i < 3; i++) two = ls_gelu(&m, ls_linear(&m, two, .out = 2));
    ls_mean_squared_error(&m, two, y, LS_DEFAULTS);
    ls_mean_squared_error(&m, one, y, LS_DEFAULTS);
    ls_metric(&m, "mse", ls_squared_error(&m, one, y));
    ls_metric(&m, "late", ls_squared_error(&m, two, y));
    ls_metric(&m, "rmse", ls_root_squared_error(&m, two, y));
    ls_metric(&m, "mae", ls_absolute_error(&m, two, y));
    ls_input(&m, "weight", LS_F32, LS_DIMS(1));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    double *r = records_of(&m, s, 16, 2, LS_F32);
    ls_evaluation v = ls_evaluation_of_records(&m, r, N, 0);
    assert_true(fabs(v.loss - metric(&v, "mse") - metric(&v, "late")) < 1e-6 * v.loss);
    assert_true(metric(&v, "rmse") == sqrt(metric(&v, "late")));
    assert_true(metric(&v, "mae") > 0 && metric(&v, "mae") <= metric(&v, "rmse"));
    free(r);
    ls_model_free(&m);
}

/* R2, one target and two a sample, beside its formula. */
static void test_r2(void **state) {
    (void)state;
    static sample s[N];
    ls_model m = {0};
    ls_error e = {0};
    ls_value *label = NULL, *y = NULL, *x = fields(&m, &label, &y);
    fill(s);
    ls_value *two = ls_linear(&m, x, .out = 2), *one = ls_slice(&m, two, .dim = 0, .count = 1);
    ls_value *first = ls_slice(&m, y, .dim = 0, .count = 1);
    ls_mean_squared_error(&m, two, y, LS_DEFAULTS);
    ls_metric(&m, "mse", ls_squared_error(&m, two, y));
    ls_metric(&m, "two", ls_r2(&m, two, y));
    ls_metric(&m, "one", ls_r2(&m, one, first));
    ls_metric(&m, "same", ls_r2(&m, first, ls_affine(&m, first, 0, 3)));
    ls_metric(&m, "itself", ls_r2(&m, first, first));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.nlate, 4); /* the field as numbers, two slices, the constant */
    double mean[2] = {0}, spread[2] = {0};
    double *r = records_of(&m, s, 10, 2, LS_F32);
    ls_evaluation v = ls_evaluation_of_records(&m, r, N, 0);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) mean[k] += (double)s[i].y[k] / N;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) spread[k] += pow((double)s[i].y[k] - mean[k], 2);
    double one_r2 = metric(&v, "one"), two_r2 = metric(&v, "two");
    double errors = (1 - one_r2) * spread[0] + (1 - (2 * two_r2 - one_r2)) * spread[1];
    assert_true(fabs(errors - metric(&v, "mse") * 2 * N) < 1e-9 * errors);
    assert_true(one_r2 < 0); /* the model is not trained */
    assert_true(metric(&v, "itself") == 1);
    assert_true(isnan(metric(&v, "same")));
    free(r);
    ls_model_free(&m);
}

/* Layers that only metrics depend on run in evaluation alone, after the others. */
static void test_late(void **state) {
    (void)state;
    static sample s[N];
    ls_model m = {0};
    ls_error e = {0};
    ls_value *label = NULL, *y = NULL, *x = fields(&m, &label, &y);
    fill(s);
    ls_value *p = ls_linear(&m, x, .name = "first", .out = 2);
    ls_value *minus = ls_affine(&m, p, -1, 0), *half = ls_affine(&m, minus, -0.5f, 0);
    ls_value *q = ls_linear(&m, ls_gelu(&m, p), .name = "second", .out = 2);
    ls_mean_squared_error(&m, q, y, LS_DEFAULTS);
    ls_metric(&m, "p", ls_squared_error(&m, p, y));
    ls_metric(&m, "again", ls_squared_error(&m, ls_affine(&m, half, 2, 0), y));
    ls_metric(&m, "sum", ls_absolute_error(&m, ls_add(&m, minus, p), ls_add(&m, half, minus)));
    ls_metric(&m, "parts", ls_absolute_error(&m, half, ls_affine(&m, half, 0, 0)));
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.nlate, 6);
    assert_true(m.layers[m.nlayers - 1].traits.loss);
    for (int i = 0; i < m.nlayers; i++) assert_null(strstr(m.layers[i].name, "affine_2"));
    for (int64_t part = 1; part < N + 9; part += 9) {
        double *r = records_of(&m, s, part, 2, LS_F32);
        ls_evaluation v = ls_evaluation_of_records(&m, r, N, 0);
        assert_true(metric(&v, "again") == metric(&v, "p"));
        assert_true(metric(&v, "sum") == metric(&v, "parts")); /* |p / 2| both */
        assert_true(metric(&v, "parts") > 0);
        free(r);
    }
    ls_model_free(&m);
}

/* The parts of a metric are one in the line, by their range; others are as they are, one without a
 * value as "-". */
static void test_parts(void **state) {
    (void)state;
    ls_evaluation v = {.nmetrics = 8,
                       .metrics = {{"router/balance", 1.02},
                                   {"router/load/0", 0.25},
                                   {"router/load/1", 0.0625},
                                   {"router/load/2", 0.5},
                                   {"router/dropped", 0.125},
                                   {"top/5", 0.5},
                                   {"other/0", 0.75},
                                   {"auc", NAN}}};
    ls_buf text = {0};
    ls_evaluation_print(&v, &text);
    assert_string_equal(text.data, ", router/balance 1.0200, router/load of 3 from 0.0625 to 0.5000"
                                   ", router/dropped 0.1250, top/5 0.5000, other/0 0.7500, auc -");
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_auc),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_r2),
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_late)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
