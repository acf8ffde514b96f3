/* batch_norm_test.c - batch norm with and without ReLU: the samples of a call together, the running
 * values, evaluation by them. */
#include "layers/layer_check.h"

typedef struct norm {
    const char *name;
    int64_t pixels, C;
    bool relu;
} norm;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const norm *n = arg;
    return ls_batch_norm(m, x[0], .relu = n->relu);
}

typedef struct moments {
    double mean, variance; /* divided by count */
} moments;

/* Moments of channel c over all samples, one after the other. */
static moments moments_of(const norm *n, const double *x, int64_t c) {
    int64_t rows = CHECK_SAMPLES * n->pixels;
    moments m = {0};
    for (int64_t r = 0; r < rows; r++) m.mean += x[r * n->C + c] / (double)rows;
    for (int64_t r = 0; r < rows; r++)
        m.variance += pow(x[r * n->C + c] - m.mean, 2) / (double)rows;
    return m;
}

static void reference(const void *arg, double *const *x, double *const *p, double *y) {
    const norm *n = arg;
    for (int64_t c = 0; c < n->C; c++) {
        moments m = moments_of(n, x[0], c);
        for (int64_t i = c; i < CHECK_SAMPLES * n->pixels * n->C; i += n->C) {
            y[i] = (x[0][i] - m.mean) / sqrt(m.variance + 1e-5) * p[0][c] + p[1][c];
            if (n->relu && y[i] < 0) y[i] = 0;
        }
    }
}

static layer_case case_of(const norm *n) {
    return (layer_case){.name = n->name,
                        .arg = n,
                        .fields = {{LS_F32, LS_DIMS(n->pixels, n->C), 0, 0}},
                        .nfields = 1,
                        .build = build,
                        .joins = true,
                        .reference = reference,
                        .tolerance = 2e-5,
                        .half_units = 8};
}

static const norm norms[] = {{"batch norm", 12, 6, false},
                             {"batch norm + relu", 12, 6, true},
                             {"batch norm of 20 channels", 30, 20, true},
                             {"batch norm of vectors", 1, 33, false}};
enum { NNORMS = sizeof norms / sizeof *norms };

static void test_batch_norm(void **state) {
    (void)state;
    for (int i = 0; i < NNORMS; i++) {
        layer_case c = case_of(&norms[i]);
        layer_check(&c);
    }
}

/* ---- running values ---- */

enum { GAMMA, BETA, MEAN, VARIANCE };

static const float *grad_of(const layer_bench *b, const layer_result *r, int param) {
    return r->grads + b->model.params[param].offset;
}

/* The gradients of the running values are the means and the variances (divided by count - 1) of the
 * call, times its samples. */
static void test_gradients(void **state) {
    (void)state;
    for (int i = 0; i < NNORMS; i++) {
        const norm *n = &norms[i];
        layer_case c = case_of(n);
        layer_bench b;
        layer_doubles d;
        layer_way way = {.micro = CHECK_SAMPLES, .threads = 2, .type = LS_F32, .grads = LS_F32};
        bench_open(&b, &c);
        doubles_open(&b, &d);
        doubles_sample(&b, 0, &d);
        layer_result r = result_of(&b, &way);
        double rows = (double)(CHECK_SAMPLES * n->pixels);
        for (int64_t k = 0; k < n->C; k++) {
            moments m = moments_of(n, d.x[0], k);
            double mean = CHECK_SAMPLES * m.mean,
                   variance = CHECK_SAMPLES * m.variance * rows / (rows - 1);
            assert_true(fabs((double)grad_of(&b, &r, MEAN)[k] - mean) < 1e-6);
            assert_true(fabs((double)grad_of(&b, &r, VARIANCE)[k] - variance) < 1e-6 * variance);
        }
        result_free(&r);
        doubles_close(&d);
        bench_close(&b);
    }
}

/* A call of the layer alone, with memory of its own. */
typedef struct alone {
    ls_model model;
    ls_compute compute;
    float params[4 * 16], grads[4 * 16];
    float x[32], y[32], dy[32], dx[32], saved[3 * 4 * 8], work[2 * 4 * 8];
    ls_layer_call call;
} alone;

enum { C = 4 };

static void alone_open(alone *a, int64_t n, bool training) {
    ls_error e = {0};
    *a = (alone){0};
    ls_value *x = ls_input(&a->model, "x", LS_F32, LS_DIMS(C));
    ls_batch_norm(&a->model, x, .momentum = 0.25f);
    assert_ls_ok(ls_compute_init(&a->compute, 1, 16, &e), e);
    for (int i = 0; i < 64; i++) a->params[i] = (float)(1 + i % 16 + i / 16) / 8;
    for (int i = 0; i < 32; i++) a->x[i] = (float)(i * i % 11), a->dy[i] = (float)(i * 7 % 5 - 2);
    for (int i = 0; i < 64; i++) a->grads[i] = 100;
    a->call = (ls_layer_call){.compute = &a->compute,
                              .n = n,
                              .T = 1,
                              .params = a->params,
                              .grads = a->grads,
                              .grads_start = true,
                              .x = {a->x},
                              .y = a->y,
                              .saved = a->saved,
                              .work = a->work,
                              .dy = a->dy,
                              .dx = {a->dx},
                              .training = training};
}

static void alone_run(alone *a) {
    const ls_layer *l = &a->model.layers[1];
    assert_int_equal(a->model.params[VARIANCE].offset, 48);
    ls_mixed_forward(l, &a->call);
    ls_mixed_backward(l, &a->call);
}

static void alone_close(alone *a) {
    ls_compute_close(&a->compute);
    ls_model_free(&a->model);
}

/* y, dx and the gradients of weight and bias are those of a fixed mean and variance. */
static void check_running(const alone *a) {
    const float *gamma = a->params, *beta = gamma + 16, *mean = beta + 16, *variance = mean + 16;
    for (int k = 0; k < C; k++) {
        double rstd = 1 / sqrt((double)variance[k] + 1e-5), dgamma = 0, dbeta = 0;
        for (int i = k; i < a->call.n * C; i += C) {
            double h = ((double)a->x[i] - (double)mean[k]) * rstd, dy = (double)a->dy[i];
            double y = h * (double)gamma[k] + (double)beta[k];
            assert_true(fabs((double)a->y[i] - y) < 1e-5);
            assert_true(fabs((double)a->dx[i] - dy * (double)gamma[k] * rstd) < 1e-5);
            dgamma += dy * h;
            dbeta += dy;
        }
        assert_true(fabs((double)a->grads[k] - dgamma) < 1e-4);
        assert_true(fabs((double)a->grads[16 + k] - dbeta) < 1e-5);
        assert_true(a->grads[32 + k] == (float)a->call.n * mean[k]);
        assert_true(a->grads[48 + k] == (float)a->call.n * variance[k]);
    }
}

/* Evaluation, of any number of samples, and a virtual worker that has one number a channel in
 * training: it leaves the running values what they are. */
static void test_running_values(void **state) {
    (void)state;
    alone a;
    for (int64_t n = 1; n <= 8; n++) {
        alone_open(&a, n, false);
        alone_run(&a);
        check_running(&a);
        alone_close(&a);
    }
    alone_open(&a, 1, true);
    alone_run(&a);
    check_running(&a);
    alone_close(&a);
}

/* Frozen running values are used in training, too, and nothing joins the samples. */
static void test_frozen(void **state) {
    (void)state;
    alone a;
    float values[2][C];
    alone_open(&a, 5, true);
    ls_model *m = &a.model;
    ls_layer *l = &m->layers[1];
    ls_frozen_value frozen[4] = {{.type = LS_BLOCK_F32}};
    for (int p = MEAN; p <= VARIANCE; p++) {
        memcpy(values[p - MEAN], a.params + 16 * p, sizeof values[0]);
        frozen[p] = (ls_frozen_value){.data = values[p - MEAN], .type = LS_BLOCK_F32};
        l->link.frozen[p] = m->params[p].frozen = true;
    }
    assert_null(ls_model_find_joining(m));
    a.call.frozen = frozen;
    for (int i = 0; i < 5; i++) a.x[i] += 100; /* far from the running mean */
    alone_run(&a);
    for (int k = 0; k < C; k++) {
        assert_true(a.grads[32 + k] == 100 && a.grads[48 + k] == 100); /* not written */
        a.grads[32 + k] = 5 * a.params[32 + k];
        a.grads[48 + k] = 5 * a.params[48 + k];
    }
    check_running(&a);
    alone_close(&a);
}

/* Half of them can't be. */
static void test_half_frozen(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(C)), *y = ls_input(&m, "y", LS_F32, LS_DIMS(C));
    ls_mean_squared_error(&m, ls_batch_norm(&m, x, .name = "norm"), y, LS_DEFAULTS);
    ls_freeze(&m, "*.running_mean");
    assert_ls_fails(ls_build_finish(&m, &e), LS_EINVAL, "some running values of layer 'norm'", e);
    ls_model_free(&m);
}

/* Without samples gradients are 0; gradients that an earlier call has begun are added to. */
static void test_sums(void **state) {
    (void)state;
    alone a, b;
    alone_open(&a, 0, true);
    alone_run(&a);
    for (int p = 0; p < 4; p++)
        for (int k = 0; k < C; k++) assert_true(a.grads[16 * p + k] == 0);
    alone_close(&a);
    alone_open(&a, 5, true);
    alone_open(&b, 5, true);
    b.call.grads_start = false;
    alone_run(&a);
    alone_run(&b);
    for (int p = 0; p < 4; p++)
        for (int k = 0; k < C; k++) assert_true(b.grads[16 * p + k] == 100 + a.grads[16 * p + k]);
    alone_close(&a);
    alone_close(&b);
}

/* ---- options and errors ---- */

static ls_value *image(ls_model *m) { return ls_input(m, "image", LS_U8, LS_DIMS(4, 4, 3)); }

static void test_params(void **state) {
    (void)state;
    static const char *const names[] = {"norm.weight", "norm.bias", "norm.running_mean",
                                        "norm.running_var"};
    static const float initial[] = {1, 0, 0, 1};
    for (int given = 0; given < 2; given++) {
        ls_model m = {0};
        ls_batch_norm(&m, image(&m), .name = "norm", .momentum = given ? 0.5f : 0);
        assert_int_equal(m.nparams, 4);
        for (int p = 0; p < 4; p++) {
            assert_string_equal(m.params[p].name, names[p]);
            assert_true(m.params[p].init.value == initial[p] && m.params[p].count == 3);
            assert_false(m.params[p].decay);
            assert_true(m.params[p].momentum == (p < MEAN ? 0 : given ? 0.5f : 0.1f));
        }
        assert_ptr_equal(ls_model_find_joining(&m), &m.layers[1]);
        ls_model_free(&m);
    }
}

static void with_eps(ls_model *m) { ls_batch_norm(m, image(m), .eps = -1); }
static void with_momentum(ls_model *m) { ls_batch_norm(m, image(m), .momentum = 1.5f); }
static void with_nan(ls_model *m) { ls_batch_norm(m, image(m), .momentum = NAN); }
static void with_null(ls_model *m) { ls_batch_norm(m, NULL, LS_DEFAULTS); }

static void test_errors(void **state) {
    (void)state;
    layer_refused(with_eps, "batch_norm': eps is -1; it is at least 0");
    layer_refused(with_momentum, "batch_norm': momentum is 1.5; it is from 0 to 1");
    layer_refused(with_nan, "momentum is nan");
    layer_refused(with_null, "batch_norm': an input is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_norm),     cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_running_values), cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_half_frozen),    cmocka_unit_test(test_sums),
        cmocka_unit_test(test_params),         cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
