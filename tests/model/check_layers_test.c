/* check_layers_test.c - layers of a user, by the public API: right ones pass, and each wrong
 * gradient is found: off by 5%, in one element, with one term missing. */
/* ctest: seconds=3 */
#include <math.h>

#include "model/builder.h"
#include "model/check.h"
#include "test.h"

enum { WIDTH = 20 };

/* What is wrong with the gradients. */
typedef enum fault { NOTHING, FIVE_PERCENT_IN, FIVE_PERCENT_PARAM, ELEMENT, TERM, NFAULTS } fault;

/* y = f(x, p) by element: its value, and its derivatives. */
typedef struct point {
    double y, dx, dp;
} point;
typedef struct shape {
    const char *name;
    point (*at)(double x, double p);
    double initial; /* of p */
    int nparams;    /* 1: one number, 2: one for each element */
} shape;

static point prelu(double x, double p) {
    return (point){x > 0 ? x : p * x, x > 0 ? 1 : p, x > 0 ? 0 : x};
}
static point square(double x, double p) { return (point){p * x * x, 2 * p * x, x * x}; }
static point shift(double x, double p) { return (point){100 + x + 0.01 * p, 1, 0.01}; }
static point soft_sign(double x, double p) {
    double d = 1 + fabs(p * x);
    return (point){x / d, 1 / (d * d), -x * fabs(x) * (p > 0 ? 1 : -1) / (d * d)};
}
static point swish(double x, double p) {
    double s = 1 / (1 + exp(-p * x));
    return (point){x * s, s + p * x * s * (1 - s), x * x * s * (1 - s)};
}
static point wave(double x, double p) {
    return (point){sin(p * x), p * cos(p * x), x * cos(p * x)};
}
static point hard_tanh(double x, double p) {
    bool in = fabs(x) < fabs(p);
    double sign = (x > 0) == (p > 0) ? 1 : -1;
    return (point){in ? x : sign * p, in, in ? 0 : sign};
}
static point magnitude(double x, double p) { return (point){p * fabs(x), x > 0 ? p : -p, fabs(x)}; }
static point bell(double x, double p) {
    double e = exp(-x * x);
    return (point){p * e, -2 * p * x * e, e};
}
static point tiny(double x, double p) { return (point){1e-4 * p * x, 1e-4 * p, 1e-4 * x}; }

static const shape shapes[] = {
    {"prelu", prelu, 0.25, 1},      {"prelu by element", prelu, 0, 2},
    {"square", square, 1, 1},       {"square by element", square, 1, 2},
    {"shift", shift, 0, 1},         {"soft sign", soft_sign, 1, 1},
    {"swish", swish, 1, 1},         {"swish by element", swish, 1, 2},
    {"wave", wave, 1, 1},           {"wave by element", wave, 2, 2},
    {"hard tanh", hard_tanh, 1, 1}, {"hard tanh by element", hard_tanh, 2, 2},
    {"magnitude", magnitude, 1, 1}, {"bell", bell, 1, 2},
    {"tiny", tiny, 1, 2},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

typedef struct own {
    const shape *shape;
    fault fault;
} own;

static void forward(const ls_layer_args *a) {
    const own *o = a->own;
    int64_t n = a->in[0].count;
    for (int64_t i = 0; i < a->samples * n; i++) {
        float p = a->param[0].data[o->shape->nparams == 2 ? i % n : 0];
        a->out[i] = (float)o->shape->at((double)a->in[0].data[i], (double)p).y;
    }
}

static void backward(const ls_layer_args *a) {
    const own *o = a->own;
    int64_t n = a->in[0].count;
    for (int64_t i = 0; i < a->samples * n; i++) {
        int64_t k = o->shape->nparams == 2 ? i % n : 0;
        point x = o->shape->at((double)a->in[0].data[i], (double)a->param[0].data[k]);
        double dx = x.dx, dp = x.dp;
        if (o->fault == FIVE_PERCENT_IN) dx *= 0.95;
        if (o->fault == FIVE_PERCENT_PARAM) dp *= 0.95;
        if (o->fault == ELEMENT && i % n == 17) dx *= 0.95;
        if (o->fault == TERM && i % n >= n / 2) dp = 0; /* a loop that ends too early */
        a->din[0][i] = (float)(dx * (double)a->dout[i]);
        a->dparam[0][k] += (float)(dp * (double)a->dout[i]);
    }
}

/* Sums over a sample, with p: y = p (x - mean), x * sum / n, softmax, x / rms. */
typedef enum join { CENTRE, GATE, SOFTMAX, RMS, NJOINS } join;
typedef struct joined {
    join join;
    fault fault;
} joined;

static void sums_of(join kind, const float *x, int64_t n, double *y, double *sum_p) {
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < n; i++) most = fmax(most, (double)x[i]);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        sum += kind == SOFTMAX ? exp(v - most) : kind == RMS ? v * v : v;
    }
    if (kind == RMS) sum = sqrt(sum / (double)n + 1e-5);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i];
        y[i] = kind == CENTRE    ? v - sum / (double)n
               : kind == GATE    ? v * sum / (double)n
               : kind == SOFTMAX ? exp(v - most) / sum
                                 : v / sum;
    }
    *sum_p = sum;
}

static void join_forward(const ls_layer_args *a) {
    const joined *o = a->own;
    int64_t n = a->in[0].count;
    double y[WIDTH], sum = 0;
    for (int64_t s = 0; s < a->samples; s++) {
        sums_of(o->join, a->in[0].data + s * n, n, y, &sum);
        for (int64_t i = 0; i < n; i++)
            a->out[s * n + i] = (float)(y[i] * (double)a->param[0].data[i]);
    }
}

static void join_backward(const ls_layer_args *a) {
    const joined *o = a->own;
    int64_t n = a->in[0].count;
    double y[WIDTH], sum = 0;
    for (int64_t s = 0; s < a->samples; s++) {
        const float *x = a->in[0].data + s * n, *dout = a->dout + s * n;
        double dot = 0, all = 0;
        sums_of(o->join, x, n, y, &sum);
        for (int64_t i = 0; i < n; i++) {
            double d = (double)dout[i] * (double)a->param[0].data[i];
            dot += d * (o->join == GATE ? (double)x[i] : y[i]);
            all += d;
            double part = o->fault == FIVE_PERCENT_PARAM ? 0.95 : 1;
            a->dparam[0][i] += (float)(part * y[i] * (double)dout[i]);
        }
        if (o->fault == TERM) dot = all = 0;
        for (int64_t i = 0; i < n; i++) {
            double d = (double)dout[i] * (double)a->param[0].data[i], dx = 0;
            if (o->join == CENTRE) dx = d - all / (double)n;
            if (o->join == GATE) dx = (d * sum + dot) / (double)n;
            if (o->join == SOFTMAX) dx = y[i] * (d - dot);
            if (o->join == RMS) dx = (d - y[i] * dot / (double)n) / sum;
            if (o->fault == FIVE_PERCENT_IN || (o->fault == ELEMENT && i == 17)) dx *= 0.95;
            a->din[0][s * n + i] = (float)dx;
        }
    }
}

typedef struct verdict {
    char text[256];
    double bound;
} verdict;

static void note(void *arg, const ls_check_result *r) {
    verdict *v = arg;
    if (strcmp(r->layer->name, "layer") != 0) return;
    snprintf(v->text, sizeof v->text, "%s", r->wrong ? r->wrong : r->open);
    v->bound = r->bound;
}

/* The check of a model with one layer of this kind, and what `what` says of it. */
static ls_check_count check(const ls_layer_kind *kind, const void *what, float initial, bool whole,
                            verdict *v_p) {
    ls_model m = {0};
    ls_error e = {0};
    ls_check_count count = {0, 0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(WIDTH));
    ls_value *label = ls_input(&m, "label", LS_I32, LS_SCALAR);
    x = ls_linear(&m, x, .name = "below", .out = WIDTH, .deviation = 0.15f);
    x = ls_own_layer(&m, kind, x, .name = "layer", .own = what,
                     .params = {LS_PARAM("p", LS_CONSTANT(initial), whole ? WIDTH : 1)});
    ls_cross_entropy(&m, x, label, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    assert_ls_ok(ls_check_model(&m, note, v_p, &count, &e), e);
    ls_model_free(&m);
    return count;
}

static void expect(const char *name, fault f, ls_check_count count, const verdict *v) {
    if (count.wrong != (f != NOTHING) || count.open)
        fail_msg("%s, fault %d: %d wrong, %d not decided, bound %g: %s", name, (int)f, count.wrong,
                 count.open, v->bound, v->text);
    if (f == NOTHING) assert_true(v->bound > 0 && v->bound <= 0.03);
}

static void test_by_element(void **state) {
    (void)state;
    static const ls_layer_kind kind = {
        .name = "by element", .nparams = 1, .forward = forward, .backward = backward};
    for (int i = 0; i < NSHAPES; i++)
        for (fault f = NOTHING; f < NFAULTS; f++) {
            if (f != NOTHING && !runs_case(i + (int)f, 2)) continue; /* 30 wrong ones */
            own o = {&shapes[i], f};
            verdict v = {0};
            float initial = (float)shapes[i].initial;
            bool whole = shapes[i].nparams == 2;
            expect(shapes[i].name, f, check(&kind, &o, initial, whole, &v), &v);
            if (f != NOTHING) continue;
            shape other = shapes[i]; /* at another point, with the other kind of parameter */
            other.nparams = whole ? 1 : 2;
            o.shape = &other;
            expect(other.name, f, check(&kind, &o, initial + 1.5f, !whole, &v), &v);
        }
}

static void test_joined(void **state) {
    (void)state;
    static const char *const names[NJOINS] = {"centre", "gate", "softmax", "rms"};
    static const ls_layer_kind kind = {
        .name = "joined", .nparams = 1, .forward = join_forward, .backward = join_backward};
    for (join j = 0; j < NJOINS; j++)
        for (fault f = NOTHING; f < NFAULTS; f++) {
            joined o = {j, f};
            verdict v = {0};
            expect(names[j], f, check(&kind, &o, 1, true, &v), &v);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {plain_unit_test(test_by_element),
                                       cmocka_unit_test(test_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
