/* own_test.c - layers of a user's program: values, gradients, bits, memory, and what is refused. */
#include "model/mixed.h"

#include <math.h>

#include "base/random.h"
#include "model/refused.h"
#include "test.h"

enum { N = 5, ROWS = 2, WIDTH = 6, OUT = 3, COUNT = ROWS * WIDTH };

/* y = (sum over columns j of w[j] x[row, j]) + scale * z[row], for each row: [ROWS, WIDTH] and
 * [ROWS] -> [ROWS]. saved: y. */
typedef struct dots {
    float scale;
} dots;

static const char *dots_sizes(const ls_layer_args *a, ls_layer_sizes *s) {
    if (a->in[0].dims[1] != WIDTH) return "six columns are needed";
    s->out = LS_DIMS(a->in[0].dims[0]);
    s->saved = a->in[0].dims[0];
    s->work = 1;
    s->flops = 2.0 * (double)a->in[0].count;
    return NULL;
}

static void dots_forward(const ls_layer_args *a) {
    const dots *o = a->own;
    int64_t rows = a->in[1].count;
    for (int64_t r = 0; r < a->samples * rows; r++) {
        float *sum = a->work + r / rows;
        *sum = 0;
        for (int64_t j = 0; j < WIDTH; j++)
            *sum += a->in[0].data[r * WIDTH + j] * a->param[0].data[j];
        a->out[r] = a->saved[r] = *sum + o->scale * a->in[1].data[r];
    }
}

static void dots_backward(const ls_layer_args *a) {
    const dots *o = a->own;
    for (int64_t r = 0; r < a->samples * a->in[1].count; r++) {
        assert_true(isfinite(a->saved[r]));
        a->din[1][r] = o->scale * a->dout[r];
        for (int64_t j = 0; j < WIDTH; j++) {
            a->din[0][r * WIDTH + j] = a->dout[r] * a->param[0].data[j];
            a->dparam[0][j] += a->dout[r] * a->in[0].data[r * WIDTH + j];
        }
        for (int64_t j = 0; a->param[1].count && j < a->param[1].count; j++)
            a->dparam[1][j] += a->dout[r]; /* of no use, but large */
    }
}

static const ls_layer_kind few = {.name = "dots",
                                  .nparams = 1,
                                  .forward = dots_forward,
                                  .backward = dots_backward,
                                  .sizes = dots_sizes};
static const ls_layer_kind many = {.name = "dots",
                                   .nparams = 2,
                                   .forward = dots_forward,
                                   .backward = dots_backward,
                                   .sizes = dots_sizes};
static void twice(const ls_layer_args *a) {
    for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
        (a->out ? a->out : a->din[0])[i] = 2 * (a->out ? a->in[0].data : a->dout)[i];
}
static const ls_layer_kind silent = {.name = "twice", .forward = twice, .backward = twice};
static const dots half = {.scale = 0.5f};

static void build(ls_model *m, const ls_layer_kind *kind) {
    ls_error e = {0};
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(ROWS, WIDTH));
    ls_value *z = ls_input(m, "z", LS_F32, LS_DIMS(ROWS));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR), *y;
    if (kind->nparams == 1)
        y = ls_own_layer(m, kind, x, .more = {z}, .own = &half,
                         .params = {LS_PARAM("w", LS_NORMAL(0.5f), WIDTH)});
    else
        y = ls_own_layer(m, kind, x, .more = {z}, .own = &half,
                         .params = {LS_PARAM("w", LS_NORMAL(0.5f), WIDTH),
                                    LS_PARAM("v", LS_CONSTANT(7), 10, 10)});
    ls_cross_entropy(m, y, label, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
}

/* One call of forward and of backward, for samples [first, end); memory begins as NaN. */
typedef struct bench {
    ls_model m;
    const ls_layer *l;
    float x[N * COUNT], z[N * ROWS], dy[N * ROWS], params[2048];
    float y[N * ROWS], dx[N * COUNT], dz[N * ROWS], grads[2048];
} bench;

static void bench_open(bench *b, const ls_layer_kind *kind) {
    *b = (bench){0};
    build(&b->m, kind);
    b->l = &b->m.layers[2]; /* after the two inputs */
    assert_true(b->m.nfloats <= 2048);
    ls_model_init(&b->m, 1, 0, b->m.nfloats, b->params);
    ls_random_normal((ls_random_place){1, LS_STREAM_FAKE, 0, 0}, N * COUNT, 1, b->x);
    ls_random_normal((ls_random_place){1, LS_STREAM_FAKE, 1, 0}, N * ROWS, 1, b->z);
    ls_random_normal((ls_random_place){1, LS_STREAM_FAKE, 2, 0}, N * ROWS, 1, b->dy);
}

static void run(bench *b, int64_t first, int64_t end, int nthreads, bool wants_dx) {
    ls_error e = {0};
    ls_compute compute;
    assert_ls_ok(ls_compute_init(&compute, nthreads, 0, &e), e);
    int64_t n = end - first;
    size_t work = ls_mixed_work_nbytes(b->l, n, LS_F32, LS_F32, false);
    size_t saved = ls_mixed_saved_nbytes(b->l, n, LS_F32);
    ls_layer_call c = {.compute = &compute, .n = n, .T = 1, .type = LS_F32, .grads_type = LS_F32};
    c.params = b->params;
    c.grads = b->grads;
    c.grads_start = first == 0;
    c.x[0] = b->x + first * COUNT;
    c.x[1] = b->z + first * ROWS;
    c.dy = b->dy + first * ROWS;
    c.y = b->y + first * ROWS;
    if (wants_dx) c.dx[0] = b->dx + first * COUNT;
    if (wants_dx) c.dx[1] = b->dz + first * ROWS;
    c.work = malloc(work);
    c.saved = malloc(saved);
    memset(c.work, 0xff, work);
    memset(c.saved, 0xff, saved);
    ls_mixed_forward(b->l, &c);
    memset(c.work, 0xff, work);
    ls_mixed_backward(b->l, &c);
    free(c.work);
    free(c.saved);
    ls_compute_close(&compute);
}

static void test_values(void **state) {
    (void)state;
    static bench b;
    bench_open(&b, &few);
    run(&b, 0, N, 1, true);
    const float *w = b.params + b.l->link.offsets[0];
    double dw[WIDTH] = {0};
    for (int r = 0; r < N * ROWS; r++) {
        double sum = 0.5 * (double)b.z[r];
        for (int j = 0; j < WIDTH; j++) {
            sum += (double)w[j] * (double)b.x[r * WIDTH + j];
            dw[j] += (double)b.dy[r] * (double)b.x[r * WIDTH + j];
            assert_true(b.dx[r * WIDTH + j] == b.dy[r] * w[j]);
        }
        assert_true(fabs(sum - (double)b.y[r]) < 1e-6 * (1 + fabs(sum)));
        assert_true(b.dz[r] == 0.5f * b.dy[r]);
    }
    for (int j = 0; j < WIDTH; j++)
        assert_true(fabs(dw[j] - (double)b.grads[b.l->link.offsets[0] + (size_t)j]) < 1e-5);
    assert_string_equal(b.m.params[0].name, "dots.w");
    assert_false(b.m.params[0].decay);
    assert_true(b.l->cost.flops == 2.0 * COUNT);
    assert_null(ls_model_without_flops(&b.m));
    assert_true(ls_model_flops(&b.m) == 2 * 2.0 * COUNT); /* and the gradient of w */
    ls_model_free(&b.m);
}

/* A layer that does not say its operations. */
static void test_without_flops(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(WIDTH));
    x = ls_own_layer(&m, &silent, ls_linear(&m, x, .out = WIDTH), .name = "mine");
    ls_mean_squared_error(&m, x, ls_input(&m, "y", LS_F32, LS_DIMS(WIDTH)), LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_string_equal(ls_model_without_flops(&m)->name, "mine");
    ls_model_free(&m);
}

/* The same bits for any micro-batch and threads, with few parameters and with many. */
static void test_bits(void **state) {
    (void)state;
    static bench b, whole;
    for (int large = 0; large < 2; large++) {
        bench_open(&b, large ? &many : &few);
        run(&b, 0, N, 1, true);
        whole = b;
        if (large) assert_true(b.m.params[1].decay && b.params[b.l->link.offsets[1]] == 7);
        for (int cut = 1; cut <= N; cut++) {
            memset(b.grads, 0xff, sizeof b.grads);
            memset(b.y, 0xff, sizeof b.y);
            memset(b.dx, 0xff, sizeof b.dx);
            run(&b, 0, cut, cut, true);
            if (cut < N) run(&b, cut, N, 1, true);
            for (int p = 0; p < b.l->nparams; p++)
                assert_memory_equal(b.grads + b.l->link.offsets[p],
                                    whole.grads + b.l->link.offsets[p],
                                    b.l->counts[p] * sizeof(float));
            assert_memory_equal(b.y, whole.y, sizeof b.y);
            assert_memory_equal(b.dx, whole.dx, sizeof b.dx);
        }
        run(&b, 0, 0, 2, true); /* a virtual worker without samples */
        for (int p = 0; p < b.l->nparams; p++)
            for (size_t i = 0; i < b.l->counts[p]; i++)
                assert_true(b.grads[b.l->link.offsets[p] + i] == 0);
        run(&b, 0, N, 2, false); /* the inputs' gradients are not wanted */
        assert_memory_equal(b.grads + b.l->link.offsets[0], whole.grads + b.l->link.offsets[0],
                            b.l->counts[0] * sizeof(float));
        ls_model_free(&b.m);
    }
}

/* ---- what is refused ---- */

static ls_value *input(ls_model *m, int64_t columns) {
    return ls_input(m, "x", LS_F32, LS_DIMS(ROWS, columns));
}
static void no_kind(ls_model *m) { ls_own_layer(m, NULL, input(m, WIDTH), LS_DEFAULTS); }
static void no_backward(ls_model *m) {
    static const ls_layer_kind kind = {.name = "half", .forward = dots_forward};
    ls_own_layer(m, &kind, input(m, WIDTH), LS_DEFAULTS);
}
static void no_param(ls_model *m) { ls_own_layer(m, &few, input(m, WIDTH), LS_DEFAULTS); }
static void bad_shape(ls_model *m) {
    ls_own_layer(m, &few, input(m, 5), .name = "d", .params = {LS_PARAM("w", LS_ONES, WIDTH)});
}
static const char *bad_sizes(const ls_layer_args *a, ls_layer_sizes *s) {
    s->saved = -a->in[0].count;
    return NULL;
}
static void bad_saved(ls_model *m) {
    static const ls_layer_kind kind = {
        .name = "bad", .forward = dots_forward, .backward = dots_backward, .sizes = bad_sizes};
    ls_own_layer(m, &kind, input(m, WIDTH), LS_DEFAULTS);
}
static void bad_param(ls_model *m) {
    ls_own_layer(m, &few, input(m, WIDTH), .params = {LS_PARAM("w", LS_ZEROS, 2, -3)});
}

static void test_refused(void **state) {
    (void)state;
    static const refused_model cases[] = {
        {no_kind, "a layer's kind has a name, forward and backward; one of them is NULL"},
        {no_backward, "a layer's kind has a name, forward and backward; one of them is NULL"},
        {no_param, "dots: the kind's nparams is 1; the call gives 0"},
        {bad_shape, "dots 'd': six columns are needed"},
        {bad_saved, "bad 'bad': sizes: an output of [2, 6], -12 floats saved"},
        {bad_param, "parameter 'w': [2, -3] is not possible"},
    };
    check_refused(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_without_flops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
