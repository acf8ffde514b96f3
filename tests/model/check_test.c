/* check_test.c - a wrong layer of each kind is found and named; right ones are not blamed. */
/* ctest: seconds=3 */
#include "model/check.h"

#include <stdlib.h>

#include "mlp_model.h"
#include "networks/gpt2.h"
#include "test.h"

/* What the check says of the layers of a model. */
typedef struct verdict {
    int nlayers, nwrong, nopen;
    char layer[LS_NAME], wrong[256]; /* of the last wrong one */
    int64_t comparisons;
    double worst;
} verdict;

static void note(void *arg, const ls_check_result *r) {
    verdict *v = arg;
    v->nlayers++;
    v->comparisons += r->comparisons;
    if (r->worst > v->worst) v->worst = r->worst;
    if (!r->wrong) return;
    snprintf(v->layer, sizeof v->layer, "%s", r->layer->name);
    snprintf(v->wrong, sizeof v->wrong, "%s", r->wrong);
}

static verdict check(const ls_model *m) {
    verdict v = {0};
    ls_error e = {0};
    ls_check_count count = {0, 0};
    assert_ls_ok(ls_check_model(m, note, &v, &count, &e), e);
    v.nwrong = count.wrong;
    v.nopen = count.open;
    assert_int_equal(v.nlayers, m->nlayers);
    return v;
}

/* ---- layers that are right but for one fault: y = factor x^2 by element, saved: x ---- */

enum { WIDTH = 40 };
typedef enum fault {
    NOTHING,
    INPUT_GRADIENT,
    ONE_GRADIENT, /* of one element */
    PARAM_GRADIENT,
    NO_OUTPUT,
    NO_GRADIENT,
    NEIGHBOURS,
    SAMPLES,
    AGAIN,
    THREAD,
    WORK,
    SAVED,
    BESIDE_OUTPUT,
    BESIDE_GRADIENT,
    INPUT,
    NFAULTS
} fault;

static _Thread_local int calls_of_thread;
static int calls;

static const char *sizes(const ls_layer_args *a, ls_layer_sizes *s) {
    s->saved = s->work = a->in[0].count;
    return NULL;
}

static float *writable(const float *x) {
    union {
        const float *from;
        float *to;
    } u = {.from = x};
    return u.to;
}

static void forward(const ls_layer_args *a) {
    fault f = *(const fault *)a->own;
    int64_t n = a->in[0].count, all = a->samples * n;
    const float *x = a->in[0].data;
    float factor = a->param[0].data[0], mean = 0;
    for (int64_t i = 0; i < all; i++) mean += x[i] / (float)all;
    if (f == NEIGHBOURS) factor += mean;
    if (f == SAMPLES) factor += (float)a->samples;
    if (f == AGAIN) factor += (float)calls++;
    if (f == THREAD) factor += calls_of_thread++ == 0 ? 1 : 0;
    if (f == WORK) factor += a->work[n - 1] > 0.5f ? 1 : 0;
    for (int64_t i = 0; i < all; i++) {
        if (f != NO_OUTPUT || i % n != 7) a->out[i] = factor * x[i] * x[i];
        if (f != SAVED || i % n != 3) a->saved[i] = x[i];
    }
    if (f == BESIDE_OUTPUT) a->out[all] = 1;
    if (f == INPUT) writable(x)[0] = 1;
}

static void backward(const ls_layer_args *a) {
    fault f = *(const fault *)a->own;
    int64_t n = a->in[0].count, all = a->samples * n;
    float factor = a->param[0].data[0];
    for (int64_t i = 0; i < all; i++) {
        float x = a->saved[i];
        float wrong = f == INPUT_GRADIENT || (f == ONE_GRADIENT && i % n == 11) ? 1.1f : 1;
        if (f != NO_GRADIENT || i % n != 9) a->din[0][i] = wrong * 2 * factor * x * a->dout[i];
        a->dparam[0][0] += (f == PARAM_GRADIENT ? 0.5f : 1) * x * x * a->dout[i];
    }
    if (f == BESIDE_GRADIENT) a->dparam[0][-1] = 1;
}

static verdict check_fault(fault f, bool large) {
    static const ls_layer_kind square = {
        .name = "square", .nparams = 1, .forward = forward, .backward = backward, .sizes = sizes};
    ls_model m = {0};
    ls_error e = {0};
    calls_of_thread = 0; /* of this thread; others of the check's have not begun */
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(WIDTH));
    ls_value *label = ls_input(&m, "label", LS_I32, LS_SCALAR);
    x = ls_linear(&m, x, .name = "below", .out = WIDTH);
    if (large) /* more parameters than numbers: backward runs in one thread */
        x = ls_own_layer(&m, &square, x, .name = "layer", .own = &f,
                         .params = {LS_PARAM("factor", LS_ONES, WIDTH, WIDTH)});
    else
        x = ls_own_layer(&m, &square, x, .name = "layer", .own = &f,
                         .params = {LS_PARAM("factor", LS_ONES, 1)});
    ls_cross_entropy(&m, x, label, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    verdict v = check(&m);
    ls_model_free(&m);
    return v;
}

static void test_faults(void **state) {
    (void)state;
    static const char *const says[NFAULTS] = {
        [INPUT_GRADIENT] = "the gradient of input 0 is wrong: element",
        [ONE_GRADIENT] = "the gradient of input 0 is wrong: element",
        [PARAM_GRADIENT] = "the gradient of parameter 'factor' is wrong: element 0 is",
        [NO_OUTPUT] = "the output has no number at element 7",
        [NO_GRADIENT] = "the gradient of input 0 has no number at element 9",
        [NEIGHBOURS] = "the output depends on other samples of the call",
        [SAMPLES] = "the output depends on the number of samples in a call",
        [AGAIN] = "the output differs when the layer is called again",
        [THREAD] = "the output depends on threads",
        [WORK] = "the output depends on memory that the layer has not written",
        [SAVED] = "the gradient of input 0 has no number at element 3",
        [BESIDE_OUTPUT] = "it writes to memory beside its output",
        [BESIDE_GRADIENT] = "it writes to ",
        [INPUT] = "it writes to its input 0",
    };
    for (fault f = 0; f < NFAULTS; f++) {
        bool large = f == BESIDE_GRADIENT;
        verdict v = check_fault(f, large);
        if (f == THREAD) /* the caller's thread begins with a count of 0, too */
            v.nwrong = strstr(v.wrong, "depends on threads") || strstr(v.wrong, "called again");
        else if (f > NOTHING && !strstr(v.wrong, says[f]))
            fail_msg("fault %d: %s", (int)f, v.wrong);
        if (v.nwrong != (f > NOTHING))
            fail_msg("fault %d: %d wrong, %s", (int)f, v.nwrong, v.wrong);
        if (f > NOTHING) assert_string_equal(v.layer, "layer");
        if (f == NOTHING) assert_in_range(v.comparisons, 50, 1000);
    }
}

static void expect_right(ls_model *m) {
    verdict v = check(m);
    if (v.nwrong) fail_msg("%s: %s", v.layer, v.wrong);
    ls_model_free(m);
}

static ls_value *add_norm(ls_model *m, ls_value *x, bool batch, bool relu) {
    x = ls_conv2d(m, x, .channels = 8, .kernel = 3, .no_bias = true);
    return batch ? ls_batch_norm(m, x, .relu = relu) : ls_group_norm(m, x, .relu = relu);
}

/* Layers with many kinks. Batch norm joins the samples of a call. */
static void test_norms(void **state) {
    (void)state;
    for (int batch = 0; batch < 2; batch++) {
        ls_model m = {0};
        ls_error e = {0};
        ls_value *x = ls_input(&m, "image", LS_U8, LS_DIMS(8, 8, 1)),
                 *label = ls_input(&m, "label", LS_I32, LS_SCALAR);
        x = add_norm(&m, ls_affine(&m, x, 1 / 127.5f, -1), batch, true);
        ls_value *y = add_norm(&m, add_norm(&m, x, batch, true), batch, false);
        x = ls_mean_pool(&m, ls_add_relu(&m, x, y));
        ls_cross_entropy(&m, ls_linear(&m, x, .out = 3), label, LS_DEFAULTS);
        assert_ls_ok(ls_build_finish(&m, &e), e);
        expect_right(&m);
    }
}

/* Layers of ours are right, with several readers of a value, and GPT's. */
static void test_right(void **state) {
    (void)state;
    ls_model m;
    ls_error e = {0};
    mlp_make(&m);
    verdict v = check(&m);
    if (v.nwrong) fail_msg("%s: %s", v.layer, v.wrong);
    assert_true(v.worst < 0.01);
    ls_model_free(&m);
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(4, 10)),
             *label = ls_input(&m, "label", LS_I32, LS_SCALAR);
    x = ls_relu(&m, ls_dropout(&m, ls_linear(&m, x, .out = 7), .rate = 0.5f));
    ls_cross_entropy(&m, ls_linear(&m, ls_flatten(&m, x), .out = 3), label, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    expect_right(&m);
    assert_ls_ok(ls_gpt_create(&(ls_gpt_config){2, 12, 3, 8, 50}, &m, &e), e);
    expect_right(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults), cmocka_unit_test(test_right),
                                       plain_unit_test(test_norms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
