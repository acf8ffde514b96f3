/* losses_test.c - losses against formulas in double precision and their central differences; the
 * same bits for any micro-batch, threads, variant and type of the operands; what is refused. */
#include <math.h>

#include "base/random.h"
#include "model/builder.h"
#include "model/mixed.h"
#include "model/refused.h"
#include "tensor/dtype.h"
#include "test.h"

enum { SAMPLES = 6, MOST = 64 };
static const float LOSS_SCALE = 0.25f;

typedef struct loss_case {
    const char *name;
    ls_loss kind;
    ls_dims dims;   /* of the input */
    ls_dims labels; /* of the field */
    ls_dtype type;  /* of the field */
    bool computed;  /* the targets are 2 t - 1, a value */
    ls_loss_options options;
} loss_case;

/* A model whose last layer is the loss. */
typedef struct setup {
    const loss_case *c;
    ls_model model;
    int64_t T, V;
    unsigned char *samples;  /* [SAMPLES][sample_nbytes] */
    float x[SAMPLES * MOST]; /* the input */
    float t[SAMPLES * MOST]; /* the targets, if they are a value */
    double weights[SAMPLES];
} setup;

static const ls_layer *loss_of(const setup *s) { return &s->model.layers[s->model.nlayers - 1]; }

static double uniform(uint64_t which, uint64_t i) {
    return ls_random_uniform(5, LS_STREAM_FAKE, which, i);
}

static void fill_targets(const setup *s, int64_t sample) {
    const ls_field *f = &s->model.inputs[1];
    unsigned char *at = s->samples + (size_t)sample * s->model.sample_nbytes + f->offset;
    int64_t n = (int64_t)(f->nbytes / ls_dtype_size(f->type));
    for (int64_t i = 0; i < n; i++) {
        double u = uniform(1, (uint64_t)(sample * n + i));
        int32_t label = (int32_t)(u * (double)s->V);
        if (s->c->kind != LS_LOSS_CROSS_ENTROPY) label = u < 0.5;
        if (s->c->kind == LS_LOSS_CROSS_ENTROPY && i % 5 == 3) label = -7;
        if (f->type == LS_U8) at[i] = (unsigned char)label;
        if (f->type == LS_I32) ((int32_t *)(void *)at)[i] = label;
        if (f->type == LS_F32) ((float *)(void *)at)[i] = (float)u;
    }
}

static setup open_case(const loss_case *c) {
    setup s = {.c = c};
    ls_error e = {0};
    ls_model *m = &s.model;
    ls_value *x = ls_affine(m, ls_input(m, "x", LS_F32, c->dims), 1, 0);
    ls_value *t = ls_input(m, "t", c->type, c->labels);
    if (c->computed) t = ls_affine(m, t, 2, -1);
    if (c->kind == LS_LOSS_CROSS_ENTROPY) (ls_cross_entropy)(m, x, t, c->options);
    if (c->kind == LS_LOSS_BINARY) (ls_binary_cross_entropy)(m, x, t, c->options);
    if (c->kind == LS_LOSS_SQUARES) (ls_mean_squared_error)(m, x, t, c->options);
    assert_ls_ok(ls_build_finish(m, &e), e);
    s.V = ls_value_last(x);
    s.T = ls_value_count(x) / s.V;
    assert_true(s.T * s.V <= MOST);
    s.samples = calloc(SAMPLES, m->sample_nbytes);
    for (int64_t i = 0; i < SAMPLES; i++) {
        fill_targets(&s, i);
        s.weights[i] = i == 2 ? 0 : 0.5 + uniform(2, (uint64_t)i);
        for (int64_t k = 0; k < s.T * s.V; k++) {
            uint64_t at = (uint64_t)(i * s.T * s.V + k);
            s.x[at] = (float)(6 * uniform(3, at) - 3);
            s.t[at] = (float)(2 * uniform(4, at) - 1);
        }
    }
    return s;
}

static void close_case(setup *s) {
    ls_model_free(&s->model);
    free(s->samples);
}

/* ---- the reference ---- */

static double target_of(const setup *s, int64_t sample, int64_t i) {
    const ls_field *f = &s->model.inputs[1];
    const unsigned char *at = s->samples + (size_t)sample * s->model.sample_nbytes + f->offset;
    if (s->c->computed) return (double)s->t[sample * s->T * s->V + i];
    if (f->type == LS_U8) return at[i];
    if (f->type == LS_I32) return ((const int32_t *)(const void *)at)[i];
    return (double)((const float *)(const void *)at)[i];
}

/* A row's cross-entropy; *n_p counts it unless its label is ignored. */
static double row_loss(const setup *s, const double *x, double label, int64_t *n_p) {
    double sum = 0, loss = 0, smoothing = (double)s->c->options.smoothing, V = (double)s->V;
    int32_t ignored = s->c->options.ignore;
    if (label < 0 || (ignored && (int32_t)label == ignored)) return 0;
    for (int64_t k = 0; k < s->V; k++) sum += exp(x[k]);
    for (int64_t k = 0; k < s->V; k++)
        loss += ((k == (int64_t)label ? 1 - smoothing : 0) + smoothing / V) * (log(sum) - x[k]);
    ++*n_p;
    return loss;
}

/* A sample's loss. */
static double reference(const setup *s, int64_t sample, const double *x) {
    double sum = 0, factor = s->c->options.factor > 0 ? (double)s->c->options.factor : 1;
    int64_t n = 0;
    if (s->c->kind == LS_LOSS_CROSS_ENTROPY) {
        for (int64_t r = 0; r < s->T; r++)
            sum += row_loss(s, x + r * s->V, target_of(s, sample, r), &n);
        return n ? factor * sum / (double)n : 0;
    }
    for (; n < s->T * s->V; n++) {
        double t = target_of(s, sample, n), p = 1 / (1 + exp(-x[n]));
        sum += s->c->kind == LS_LOSS_BINARY ? -t * log(p) - (1 - t) * log(1 - p)
                                            : (x[n] - t) * (x[n] - t);
    }
    return factor * sum / (double)n;
}

/* ---- one result ---- */

typedef struct way {
    int64_t micro;
    int threads;
    const ls_kernels *k; /* NULL: the fastest */
    bool half;           /* the operands are in LS_BF16 */
    bool plain;          /* without weights */
} way;

typedef struct result {
    double losses[SAMPLES], forward[SAMPLES];
    float dx[SAMPLES * MOST];
} result;

static void narrow(const ls_kernels *k, ls_dtype type, const float *x, void *y, size_t n) {
    if (type == LS_F32)
        memcpy(y, x, n * sizeof *x);
    else
        k->narrow(type, n, x, y);
}

/* Samples [i, i + n): forward, and backward. */
static void run_part(const setup *s, const way *w, const ls_compute *compute, int64_t i, int64_t n,
                     result *r) {
    const ls_layer *l = loss_of(s);
    ls_dtype type = w->half ? LS_BF16 : LS_F32;
    size_t count = (size_t)(n * s->T * s->V), at = (size_t)(i * s->T * s->V);
    size_t nbytes = ls_mixed_work_nbytes(l, n, type, LS_F32, false);
    float *x = calloc(count + 1, sizeof *x), *t = calloc(count + 1, sizeof *t);
    float *dx = calloc(count + 1, sizeof *dx);
    void *work = malloc(nbytes + 1);
    memset(work, 0xff, nbytes); /* NaN */
    narrow(compute->k, type, s->x + at, x, count);
    narrow(compute->k, type, s->t + at, t, count);
    ls_layer_call c = {.compute = compute,
                       .n = n,
                       .T = l->T,
                       .samples = s->samples + (size_t)i * s->model.sample_nbytes,
                       .sample_nbytes = s->model.sample_nbytes,
                       .type = type,
                       .grads_type = LS_F32,
                       .x = {x, t},
                       .work = work,
                       .losses = r->forward + i};
    ls_mixed_forward(l, &c);
    c.loss_scale = LOSS_SCALE;
    c.losses = r->losses + i;
    c.dx[0] = dx;
    c.weights = w->plain ? NULL : s->weights + i;
    ls_mixed_backward(l, &c);
    if (type == LS_F32)
        memcpy(r->dx + at, dx, count * sizeof *dx);
    else
        compute->k->widen(type, count, dx, r->dx + at);
    free(x), free(t), free(dx), free(work);
}

static result run(const setup *s, way w) {
    result r = {0};
    ls_compute compute;
    ls_error e = {0};
    assert_ls_ok(ls_compute_init(&compute, w.threads, ls_model_scratch_floats(&s->model), &e), e);
    ls_pool_share_cores(compute.pool);
    if (w.k) compute.k = w.k;
    for (int64_t i = 0; i < SAMPLES; i += w.micro)
        run_part(s, &w, &compute, i, SAMPLES - i < w.micro ? SAMPLES - i : w.micro, &r);
    ls_compute_close(&compute);
    return r;
}

/* ---- checks ---- */

static void check_sample(const setup *s, const result *r, int64_t i) {
    int64_t n = s->T * s->V;
    double x[MOST], want = 0;
    for (int64_t k = 0; k < n; k++) x[k] = (double)s->x[i * n + k];
    want = reference(s, i, x);
    if (fabs(r->losses[i] - want) > 1e-6 * (1 + want))
        fail_msg("%s: loss %.9g, not %.9g", s->c->name, r->losses[i], want);
    assert_true(r->losses[i] == r->forward[i]);
    for (int64_t k = 0; k < n; k++) {
        double h = 1e-4, at = x[k], scale = (double)LOSS_SCALE * s->weights[i];
        x[k] = at + h;
        double above = reference(s, i, x);
        x[k] = at - h;
        double slope = scale * (above - reference(s, i, x)) / (2 * h);
        x[k] = at;
        if (fabs((double)r->dx[i * n + k] - slope) > 1e-7 + 1e-5 * fabs(slope))
            fail_msg("%s: dx[%lld] %.9g, not %.9g", s->c->name, (long long)k,
                     (double)r->dx[i * n + k], slope);
    }
}

static void assert_same(const loss_case *c, const result *a, const result *b, const char *what) {
    if (memcmp(a, b, sizeof *a) != 0) fail_msg("%s: the bits depend on %s", c->name, what);
}

/* Rounded operands give the loss of these operands, and its rounded gradient. */
static void check_half(setup *s) {
    const ls_kernels *k = ls_kernels_at(0);
    uint16_t half[SAMPLES * MOST];
    size_t n = (size_t)(SAMPLES * s->T * s->V);
    k->narrow(LS_BF16, n, s->x, half);
    k->widen(LS_BF16, n, half, s->x);
    k->narrow(LS_BF16, n, s->t, half);
    k->widen(LS_BF16, n, half, s->t);
    result f32 = run(s, (way){.micro = SAMPLES, .threads = 1});
    result mixed = run(s, (way){.micro = 2, .threads = 1, .half = true});
    k->narrow(LS_BF16, n, f32.dx, half);
    k->widen(LS_BF16, n, half, f32.dx);
    assert_same(s->c, &f32, &mixed, "the operands' type");
}

static void check_case(const loss_case *c) {
    setup s = open_case(c);
    result r = run(&s, (way){.micro = SAMPLES, .threads = 1});
    for (int64_t i = 0; i < SAMPLES; i++) check_sample(&s, &r, i);
    for (int64_t micro = 1; micro < SAMPLES; micro += 3)
        for (int threads = 1; threads < 4; threads += 2) {
            result again = run(&s, (way){.micro = micro, .threads = threads});
            assert_same(c, &r, &again, "micro-batch or threads");
        }
    for (int i = 0; ls_kernels_at(i); i++) {
        result again = run(&s, (way){.micro = SAMPLES, .threads = 1, .k = ls_kernels_at(i)});
        assert_same(c, &r, &again, "the variant of the kernels");
    }
    for (int i = 0; i < SAMPLES; i++) s.weights[i] = 1;
    r = run(&s, (way){.micro = SAMPLES, .threads = 1});
    result plain = run(&s, (way){.micro = SAMPLES, .threads = 1, .plain = true});
    assert_same(c, &r, &plain, "weights of 1");
    check_half(&s);
    close_case(&s);
}

static void test_losses(void **state) {
    (void)state;
    const loss_case cases[] = {
        {"one label", LS_LOSS_CROSS_ENTROPY, LS_DIMS(7), LS_SCALAR, LS_I32, false, {0}},
        {"ten labels", LS_LOSS_CROSS_ENTROPY, LS_DIMS(5, 2, 6), LS_DIMS(5, 2), LS_I32, false, {0}},
        {"options",
         LS_LOSS_CROSS_ENTROPY,
         LS_DIMS(10, 3),
         LS_DIMS(10),
         LS_I32,
         false,
         {.smoothing = 0.1f, .factor = 3, .ignore = 2}},
        {"a label above the classes is ignored",
         LS_LOSS_CROSS_ENTROPY,
         LS_DIMS(10, 3),
         LS_DIMS(10),
         LS_I32,
         false,
         {.ignore = 255}},
        {"all ignored",
         LS_LOSS_CROSS_ENTROPY,
         LS_DIMS(2),
         LS_DIMS(1),
         LS_I32,
         false,
         {.ignore = 1}},
        {"binary", LS_LOSS_BINARY, LS_SCALAR, LS_SCALAR, LS_F32, false, {0}},
        {"binary bytes", LS_LOSS_BINARY, LS_DIMS(19), LS_DIMS(19), LS_U8, false, {.factor = 0.5f}},
        {"binary integers", LS_LOSS_BINARY, LS_DIMS(3, 17), LS_DIMS(51), LS_I32, false, {0}},
        {"squares", LS_LOSS_SQUARES, LS_DIMS(1), LS_SCALAR, LS_F32, false, {0}},
        {"squares of rows",
         LS_LOSS_SQUARES,
         LS_DIMS(4, 5),
         LS_DIMS(20),
         LS_F32,
         false,
         {.factor = 7}},
        {"squares of a value", LS_LOSS_SQUARES, LS_DIMS(3, 5), LS_DIMS(15), LS_U8, true, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

/* A target in a field is not rounded with the operands. */
static void test_exact_targets(void **state) {
    (void)state;
    const loss_case c = {"exact", LS_LOSS_SQUARES, LS_DIMS(1), LS_SCALAR, LS_F32, false, {0}};
    setup s = open_case(&c);
    float target = 4097, x = 4096;
    for (int i = 0; i < SAMPLES; i++) {
        memcpy(s.samples + (size_t)i * s.model.sample_nbytes + s.model.inputs[1].offset, &target,
               sizeof target);
        s.x[i] = x;
    }
    result r = run(&s, (way){.micro = SAMPLES, .threads = 1, .half = true, .plain = true});
    assert_true(r.losses[0] == 1 && r.dx[0] == -2 * LOSS_SCALE);
    close_case(&s);
}

/* ---- weights of samples ---- */

static void test_weights(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    struct sample {
        _Alignas(64) int32_t labels[4];
        _Alignas(64) float weight;
    } s = {{0, -1, 2, 1}, 1.5f};
    ls_value *labels = ls_input(&m, "label", LS_I32, LS_DIMS(4));
    ls_value *weight = ls_input(&m, "weight", LS_F32, LS_SCALAR);
    ls_value *x = ls_affine(&m, ls_input(&m, "x", LS_F32, LS_DIMS(4, 3)), 1, 0);
    ls_cross_entropy(&m, x, labels, .ignore = 2);
    ls_sample_weight(&m, weight);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.inputs[1].offset, 64);
    double w = 0;
    assert_ls_ok(ls_weigh(&m.weighing, &s, &w, &e), e);
    assert_true(w == 0.75); /* two of four targets count */
    static const float bad[] = {-1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        s.weight = bad[i];
        assert_ls_fails(ls_weigh(&m.weighing, &s, &w, &e), LS_EINVAL, "a weight is at least 0", e);
    }
    ls_model_free(&m);
    m = (ls_model){0};
    labels = ls_input(&m, "label", LS_I32, LS_SCALAR);
    x = ls_affine(&m, ls_input(&m, "x", LS_F32, LS_DIMS(3)), 1, 0);
    ls_cross_entropy(&m, x, labels, LS_DEFAULTS);
    ls_cross_entropy(&m, x, labels, .factor = 2);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_int_equal(m.nlosses, 2);
    assert_false(ls_weighing_is_on(&m.weighing)); /* each sample has its own mean */
    ls_model_free(&m);
}

/* ---- what is refused ---- */

static ls_value *vector(ls_model *m, int64_t n) {
    return ls_linear(m, ls_input(m, "x", LS_F32, LS_DIMS(2)), .out = n);
}
static void with_targets(ls_model *m) {
    ls_mean_squared_error(m, vector(m, 3), ls_input(m, "y", LS_F32, LS_DIMS(2)), LS_DEFAULTS);
}
static void with_learned(ls_model *m) {
    ls_value *x = vector(m, 3);
    ls_mean_squared_error(m, x, ls_gelu(m, x), LS_DEFAULTS);
}
static void with_labels(ls_model *m) {
    ls_cross_entropy(m, vector(m, 3), ls_input(m, "y", LS_I32, LS_DIMS(3)), LS_DEFAULTS);
}
static void with_smoothing(ls_model *m) {
    ls_cross_entropy(m, vector(m, 3), ls_input(m, "y", LS_I32, LS_SCALAR), .smoothing = 1);
}
static void with_factor(ls_model *m) {
    ls_cross_entropy(m, vector(m, 3), ls_input(m, "y", LS_I32, LS_SCALAR), .factor = -1);
}
static void with_ignore(ls_model *m) {
    ls_cross_entropy(m, vector(m, 3), ls_input(m, "y", LS_I32, LS_SCALAR), .ignore = -3);
}
static void with_option(ls_model *m) {
    ls_binary_cross_entropy(m, vector(m, 1), ls_input(m, "y", LS_U8, LS_SCALAR), .ignore = 2);
}
static void with_null(ls_model *m) { ls_binary_cross_entropy(m, vector(m, 1), NULL, LS_DEFAULTS); }
static void with_byte_weight(ls_model *m) {
    ls_sample_weight(m, ls_input(m, "w", LS_U8, LS_SCALAR));
}
static void with_weights(ls_model *m) {
    ls_sample_weight(m, ls_input(m, "v", LS_F32, LS_SCALAR));
    ls_sample_weight(m, ls_input(m, "w", LS_F32, LS_SCALAR));
}

static void test_refused(void **state) {
    (void)state;
    static const refused_model cases[] = {
        {with_targets, "the targets are [2]; of [3] as many numbers are needed"},
        {with_learned, "the targets depend on parameters that are trained"},
        {with_labels,
         "the logits are [3], and the labels [3]; one row of logits a label is needed"},
        {with_smoothing, "smoothing is 1; it is at least 0 and below 1"},
        {with_factor, "factor is -1; it is above 0, or 0 for 1"},
        {with_ignore, "ignore is -3; negative labels are ignored anyway"},
        {with_option, "smoothing and ignore are options of cross_entropy alone"},
        {with_null, "an input is NULL"},
        {with_byte_weight, "the weight is no field of one f32 or i32"},
        {with_weights, "samples have a weight already"},
    };
    check_refused(cases, sizeof cases / sizeof *cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses), cmocka_unit_test(test_exact_targets),
        cmocka_unit_test(test_weights), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
