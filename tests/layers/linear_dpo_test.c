/* linear_dpo_test.c - the loss of preferences: against its formulas in double precision, with all
 * its kinds; the same bits for any micro-batch, block of rows, threads and variant; tied to an
 * embedding. */
enum { SAMPLES = 5, ROWS = 11, WIDTH = 19, CLASSES = 37, NOTES = 6 };
#include "layers/linear_head.h"

enum { ACCURACY, MARGIN, CHOSEN, REJECTED, LOGP };
static double uniform(uint64_t which, uint64_t i) {
    return 2 * ls_random_uniform(7, LS_STREAM_FAKE, which, i) - 1;
}

/* Answers are the ends of both texts; the rest of the last rows is padding. */
static int32_t begin_of(int64_t sample) { return (int32_t)(4 + sample % 2); }
static int32_t label_of(int64_t sample, int64_t row) {
    bool prompt = row < 2 || (row >= begin_of(sample) && row < begin_of(sample) + 2);
    if (prompt || row == ROWS - 1) return -1;
    return (int32_t)((sample * 11 + row * 5) % CLASSES);
}

static ls_dpo_fields add_fields(ls_model *m) {
    return (ls_dpo_fields){ls_input(m, "targets", LS_I32, LS_DIMS(ROWS)),
                           ls_input(m, "rejected", LS_I32, LS_DIMS(1)),
                           ls_input(m, "reference", LS_F32, LS_DIMS(2))};
}

static void fill_sample(setup *s, int64_t i) {
    float *x = field_of(s, i, 0), *reference = field_of(s, i, 3);
    int32_t *label = field_of(s, i, 1), *begin = field_of(s, i, 2);
    for (int64_t k = 0; k < ROWS * WIDTH; k++)
        x[k] = (float)uniform(2, (uint64_t)(i * ROWS * WIDTH + k));
    for (int64_t r = 0; r < ROWS; r++) label[r] = label_of(i, r);
    *begin = begin_of(i);
    for (int k = 0; k < 2; k++) reference[k] = -9 + 4 * (float)uniform(6, (uint64_t)(2 * i + k));
    s->weights[i] = i == 3 ? 0 : 1 + uniform(3, (uint64_t)i) / 2;
}

static setup open_setup(ls_dpo_options o) {
    setup s = {.o = o};
    ls_error e = {0};
    ls_model *m = &s.model;
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(ROWS, WIDTH));
    ls_dpo_fields fields = add_fields(m);
    ls_linear_dpo(m, x, &fields, o);
    assert_ls_ok(ls_build_finish(m, &e), e);
    s.params = LS_NEW_ARRAY(float, m->nfloats);
    for (size_t i = 0; i < m->nfloats; i++) s.params[i] = (float)uniform(1, i);
    s.samples = ls_alloc(SAMPLES * m->sample_nbytes);
    for (int64_t i = 0; i < SAMPLES; i++) fill_sample(&s, i);
    return s;
}

/* ---- formulas ---- */

static double weight_at(const setup *s, int v, int c) {
    return (double)s->params[s->model.params[0].offset + (size_t)(v * WIDTH + c)];
}

/* The log-probability of a row's label; p [CLASSES] become the probabilities. */
static double row_logp(const setup *s, const float *x, int32_t label, double *p) {
    double sum = 0, logits[CLASSES];
    for (int v = 0; v < CLASSES; v++) {
        logits[v] = 0;
        for (int c = 0; c < WIDTH; c++) logits[v] += (double)x[c] * weight_at(s, v, c);
        sum += exp(logits[v]);
    }
    for (int v = 0; v < CLASSES; v++) p[v] = exp(logits[v]) / sum;
    return label < 0 ? 0 : logits[label] - log(sum);
}

/* The loss of a pair from its log-probabilities over the reference, and of means over n tokens. */
static double pair_loss(const ls_dpo_options *o, const double over[2], const int n[2]) {
    double x = o->beta * (over[0] - over[1]);
    if (o->loss == LS_DPO_HINGE) return fmax(0, 1 - x);
    if (o->loss == LS_DPO_IPO) return pow(over[0] / n[0] - over[1] / n[1] - 1 / (2 * o->beta), 2);
    return (1 - o->smoothing) * log1p(exp(-x)) + o->smoothing * log1p(exp(x));
}

/* By a difference: the loss is a function of two numbers. */
static double slope_of(const ls_dpo_options *o, const double over[2], const int n[2], int side) {
    double h = 1e-5, up[2] = {over[0], over[1]}, down[2] = {over[0], over[1]};
    up[side] += h;
    down[side] -= h;
    return (pair_loss(o, up, n) - pair_loss(o, down, n)) / (2 * h);
}

static void assert_near(double got, double want, const char *what) {
    if (fabs(got - want) > 3e-6 * (1 + fabs(want))) fail_msg("%s: %.9g, not %.9g", what, got, want);
}

static void check_notes(const setup *s, const result *r, int64_t i, const double over[2],
                        const double logp[2]) {
    assert_near(r->notes[MARGIN][i], s->o.beta * (over[0] - over[1]), "margin");
    assert_true(r->notes[ACCURACY][i] == (over[0] > over[1]));
    for (int side = 0; side < 2; side++) {
        assert_near(r->notes[CHOSEN + side][i], s->o.beta * over[side], "reward");
        assert_near(r->notes[LOGP + side][i], logp[side], "log-probability");
    }
}

static void check_sample(const setup *s, const result *r, int64_t i, double (*dw)[WIDTH]) {
    const float *x = field_of(s, i, 0), *reference = field_of(s, i, 3);
    double p[ROWS][CLASSES], over[2], logp[2] = {0, 0};
    int n[2] = {0, 0};
    for (int t = 0; t < ROWS; t++) {
        int side = t >= begin_of(i);
        logp[side] += row_logp(s, x + t * WIDTH, label_of(i, t), p[t]);
        n[side] += label_of(i, t) >= 0;
    }
    for (int k = 0; k < 2; k++) over[k] = logp[k] - (double)reference[k];
    assert_near(r->losses[i], pair_loss(&s->o, over, n), "loss");
    assert_true(r->forward[i] == r->losses[i]);
    check_notes(s, r, i, over, logp);
    for (int t = 0; t < ROWS; t++) {
        int32_t label = label_of(i, t);
        double slope = slope_of(&s->o, over, n, t >= begin_of(i)), dx[WIDTH] = {0};
        double scale = label < 0 ? 0 : (double)LOSS_SCALE * s->weights[i] * slope;
        for (int v = 0; v < CLASSES; v++)
            for (int c = 0; c < WIDTH; c++) {
                double d = scale * ((v == label) - p[t][v]);
                dx[c] += d * weight_at(s, v, c);
                dw[v][c] += d * (double)x[t * WIDTH + c];
            }
        for (int c = 0; c < WIDTH; c++) assert_near((double)r->dx[i][t][c], dx[c], "dx");
    }
}

static void check(ls_dpo_options o) {
    o.name = "head";
    o.classes = CLASSES;
    setup s = open_setup(o);
    result *r = run(&s, SAMPLES, 1, NULL);
    double dw[CLASSES][WIDTH] = {{0}};
    for (int64_t i = 0; i < SAMPLES; i++) check_sample(&s, r, i, dw);
    for (int v = 0; v < CLASSES; v++)
        for (int c = 0; c < WIDTH; c++) assert_near((double)r->dw[v][c], dw[v][c], "dw");
    free(r);
    close_setup(&s);
}

static void test_formulas(void **state) {
    (void)state;
    check((ls_dpo_options){.beta = 0.1});
    check((ls_dpo_options){.beta = 2});
    check((ls_dpo_options){.beta = 0.5, .smoothing = 0.2});
    check((ls_dpo_options){.beta = 0.1, .loss = LS_DPO_HINGE});
    check((ls_dpo_options){.beta = 0.5, .loss = LS_DPO_IPO});
}

/* A model that is its own reference: the loss is log 2 to the last bit, and both answers have the
 * same weight. */
static void test_beginning(void **state) {
    (void)state;
    setup s = open_setup((ls_dpo_options){.beta = 0.1, .classes = CLASSES});
    result *first = run(&s, SAMPLES, 1, NULL);
    for (int64_t i = 0; i < SAMPLES; i++) {
        float *reference = field_of(&s, i, 3);
        for (int k = 0; k < 2; k++) reference[k] = (float)first->notes[LOGP + k][i];
    }
    result *r = run(&s, SAMPLES, 1, NULL);
    for (int64_t i = 0; i < SAMPLES; i++) {
        assert_near(r->losses[i], 0.69314718055994531, "loss");
        assert_true(r->notes[MARGIN][i] == 0 && r->notes[ACCURACY][i] == 0);
    }
    free(first), free(r);
    close_setup(&s);
}

static void test_bits(void **state) {
    (void)state;
    setup s = open_setup((ls_dpo_options){.beta = 0.3, .classes = CLASSES});
    result *one = run(&s, SAMPLES, 1, NULL);
    check_variants(&s, one);
    for (int64_t rows = 1; rows < 50; rows += 6) { /* two passes over blocks of rows */
        s.model.layers[s.model.nlayers - 1].memory.block_rows = rows;
        result *r = run(&s, 1 + rows % 4, 2, NULL);
        assert_memory_equal(r, one, sizeof *r);
        free(r);
    }
    free(one);
    close_setup(&s);
}

/* ---- tied to an embedding ---- */

static void test_tied(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *ids = ls_input(&m, "ids", LS_I32, LS_DIMS(ROWS));
    ls_dpo_fields fields = add_fields(&m);
    ls_value *embedding = ls_embedding(&m, ids, .rows = CLASSES, .width = WIDTH);
    ls_value *x = ls_rms_norm(&m, embedding, LS_DEFAULTS);
    ls_linear_dpo(&m, x, &fields, (ls_dpo_options){.tied = embedding, .beta = 0.1});
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.nparams, 2);
    assert_int_equal(m.nnotes, NOTES);
    assert_string_equal(m.notes[MARGIN], "rewards/margins");
    check_all_layers(&m);
    ls_model_free(&m);
}

static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(ROWS, WIDTH)); }
static void with_classes(ls_model *m) {
    ls_dpo_fields f = add_fields(m);
    ls_linear_dpo(m, rows(m), &f, (ls_dpo_options){.beta = 1});
}
static void with_beta(ls_model *m) {
    ls_dpo_fields f = add_fields(m);
    ls_linear_dpo(m, rows(m), &f, (ls_dpo_options){.classes = CLASSES});
}
static void with_reference(ls_model *m) {
    ls_dpo_fields f = add_fields(m);
    f.reference = f.rejected;
    ls_linear_dpo(m, rows(m), &f, (ls_dpo_options){.classes = CLASSES, .beta = 1});
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_classes, "classes is 0; 1 to 2147483647 are possible");
    layer_refused(with_beta, "beta is 0; it is above 0");
    layer_refused(with_reference, "the reference none of two f32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas), cmocka_unit_test(test_beginning),
        cmocka_unit_test(test_bits), cmocka_unit_test(test_tied), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
