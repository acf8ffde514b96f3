/* linear_cross_entropy_test.c - the fused end of a language model: against formulas in double
 * precision, the same bits for any micro-batch, threads and variant, tied to an embedding. The
 * whole step, with weights of samples: exec/weights_test. */
enum { SAMPLES = 5, ROWS = 7, WIDTH = 19, CLASSES = 37, NOTES = 0 };
#include "layers/linear_head.h"

static double uniform(uint64_t which, uint64_t i) {
    return 2 * ls_random_uniform(5, LS_STREAM_FAKE, which, i) - 1;
}

/* Sample 2 has no label, and others miss some. */
static int32_t label_of(int64_t sample, int64_t row) {
    if (sample == 2 || (sample + row) % 3 == 0) return -1;
    return (int32_t)((sample * 11 + row * 5) % CLASSES);
}

static setup open_setup(void) {
    setup s = {0};
    ls_error e = {0};
    ls_model *m = &s.model;
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(ROWS, WIDTH));
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(ROWS));
    ls_linear_cross_entropy(m, x, labels, .name = "head", .classes = CLASSES);
    assert_ls_ok(ls_build_finish(m, &e), e);
    s.params = LS_NEW_ARRAY(float, m->nfloats);
    for (size_t i = 0; i < m->nfloats; i++) s.params[i] = (float)uniform(1, i);
    s.samples = ls_alloc(SAMPLES * m->sample_nbytes);
    for (int64_t i = 0; i < SAMPLES; i++) {
        float *values = field_of(&s, i, 0);
        int32_t *label = field_of(&s, i, 1);
        for (int64_t r = 0; r < ROWS; r++) label[r] = label_of(i, r);
        for (int64_t k = 0; k < ROWS * WIDTH; k++)
            values[k] = (float)uniform(2, (uint64_t)(i * ROWS * WIDTH + k));
        s.weights[i] = i == 3 ? 0 : 1 + uniform(3, (uint64_t)i) / 2;
    }
    return s;
}

/* ---- formulas ---- */

/* A row's logits, and its loss; p becomes the probabilities. */
static double row_loss(const setup *s, const float *x, int32_t label, double *logits, double *p) {
    double sum = 0;
    for (int v = 0; v < CLASSES; v++) {
        logits[v] = 0;
        for (int c = 0; c < WIDTH; c++)
            logits[v] += (double)x[c] *
                         (double)s->params[s->model.params[0].offset + (size_t)(v * WIDTH + c)];
        sum += exp(logits[v]);
    }
    for (int v = 0; v < CLASSES; v++) p[v] = exp(logits[v]) / sum;
    return label < 0 ? 0 : log(sum) - logits[label];
}

static void assert_near(double got, double want, const char *what) {
    if (fabs(got - want) > 2e-6 * (1 + fabs(want))) fail_msg("%s: %.9g, not %.9g", what, got, want);
}

static void check_sample(const setup *s, const result *r, int64_t i, double (*dw)[WIDTH]) {
    double loss = 0, logits[CLASSES], p[CLASSES];
    int n = 0;
    for (int64_t t = 0; t < ROWS; t++) n += label_of(i, t) >= 0;
    for (int64_t t = 0; t < ROWS; t++) {
        const float *x = (const float *)field_of(s, i, 0) + t * WIDTH;
        int32_t label = label_of(i, t);
        double dx[WIDTH] = {0}, scale = label < 0 ? 0 : (double)LOSS_SCALE * s->weights[i] / n;
        loss += n ? row_loss(s, x, label, logits, p) / n : 0;
        if (!n) row_loss(s, x, label, logits, p);
        for (int v = 0; v < CLASSES; v++) {
            double d = scale * (p[v] - (v == label));
            assert_near((double)r->logits[i][t][v], logits[v], "logit");
            for (int c = 0; c < WIDTH; c++) {
                dx[c] += d * (double)s->params[s->model.params[0].offset + (size_t)(v * WIDTH + c)];
                dw[v][c] += d * (double)x[c];
            }
        }
        for (int c = 0; c < WIDTH; c++) assert_near((double)r->dx[i][t][c], dx[c], "dx");
    }
    assert_near(r->losses[i], loss, "loss");
    assert_true(r->forward[i] == r->losses[i]);
}

static void test_formulas(void **state) {
    (void)state;
    setup s = open_setup();
    result *r = run(&s, SAMPLES, 1, NULL);
    double dw[CLASSES][WIDTH] = {{0}};
    for (int64_t i = 0; i < SAMPLES; i++) check_sample(&s, r, i, dw);
    for (int v = 0; v < CLASSES; v++)
        for (int c = 0; c < WIDTH; c++) assert_near((double)r->dw[v][c], dw[v][c], "dw");
    assert_true(r->losses[2] == 0);
    free(r);
    close_setup(&s);
}

static void test_bits(void **state) {
    (void)state;
    setup s = open_setup();
    result *one = run(&s, SAMPLES, 1, NULL);
    check_variants(&s, one);
    free(one);
    close_setup(&s);
}

/* ---- tied to an embedding ---- */

static void test_tied(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *ids = ls_input(&m, "ids", LS_I32, LS_DIMS(ROWS));
    ls_value *labels = ls_input(&m, "labels", LS_I32, LS_DIMS(ROWS));
    ls_value *embedding = ls_embedding(&m, ids, .rows = CLASSES, .width = WIDTH);
    ls_linear_cross_entropy(&m, ls_rms_norm(&m, embedding, LS_DEFAULTS), labels, .tied = embedding);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.nparams, 2);
    check_all_layers(&m);
    ls_model_free(&m);
}

/* The embedding's backward adds to the gradient that the loss has begun. */
static void test_continued(void **state) {
    (void)state;
    enum { ID = 5 };
    ls_model m = {0};
    ls_error e = {0};
    ls_value *ids = ls_input(&m, "ids", LS_I32, LS_DIMS(ROWS));
    ls_value *embedding = ls_embedding(&m, ids, .rows = CLASSES, .width = WIDTH);
    ls_linear_cross_entropy(&m, embedding, ids, .tied = embedding);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    ls_compute compute;
    assert_ls_ok(ls_compute_init(&compute, 2, ls_model_scratch_floats(&m), &e), e);
    int32_t sample[ROWS] = {ID, ID, 1, 2, ID, 3, 4};
    float *params = LS_NEW_ARRAY(float, m.nfloats), x[ROWS * WIDTH], begun[CLASSES * WIDTH];
    float *grads = nans(m.nfloats * sizeof *grads);
    double loss = 0;
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)uniform(4, (uint64_t)i);
    ls_layer_call c = {.compute = &compute,
                       .n = 1,
                       .T = ROWS,
                       .samples = sample,
                       .sample_nbytes = sizeof sample,
                       .params = params,
                       .grads = grads,
                       .grads_start = true,
                       .first = true,
                       .last = true,
                       .x = {x},
                       .dy = x,
                       .loss_scale = 1,
                       .losses = &loss};
    for (int i = m.nlayers - 1; i >= 0; i--) {
        c.work = nans(ls_mixed_work_nbytes(&m.layers[i], 1, LS_F32, LS_F32, false));
        c.T = m.layers[i].T;
        ls_mixed_backward(&m.layers[i], &c);
        free(c.work);
        if (i) memcpy(begun, grads, sizeof begun);
    }
    for (int v = 0; v < CLASSES; v++)
        for (int k = 0; k < WIDTH; k++) {
            double want = (double)begun[v * WIDTH + k];
            for (int t = 0; t < ROWS; t++) want += sample[t] == v ? (double)x[t * WIDTH + k] : 0;
            assert_near((double)grads[v * WIDTH + k], want, "gradient");
        }
    ls_compute_close(&compute);
    ls_model_free(&m);
    free(params), free(grads);
}

static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(4, 8)); }
static ls_value *labels(ls_model *m, int64_t n) {
    return ls_input(m, "labels", LS_I32, LS_DIMS(n));
}
static void with_labels(ls_model *m) {
    ls_linear_cross_entropy(m, rows(m), labels(m, 3), .classes = 5);
}
static void with_classes(ls_model *m) {
    ls_linear_cross_entropy(m, rows(m), labels(m, 4), LS_DEFAULTS);
}
static void with_other_tie(ls_model *m) {
    ls_value *x = ls_gelu(m, rows(m));
    ls_linear_cross_entropy(m, x, labels(m, 4), .tied = x);
}
static void with_width(ls_model *m) {
    ls_value *y = labels(m, 4), *e = ls_embedding(m, y, .rows = 9, .width = 7);
    ls_linear_cross_entropy(m, rows(m), y, .tied = e);
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_labels, "the labels are no field of 4 i32, one for each row");
    layer_refused(with_classes, "classes is 0; 1 to 2147483647 are possible");
    layer_refused(with_other_tie, "tied is no value of ls_embedding()");
    layer_refused(with_width, "tied is an embedding with rows of 7; rows of 8 are needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas), cmocka_unit_test(test_bits), cmocka_unit_test(test_tied),
        cmocka_unit_test(test_continued), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
