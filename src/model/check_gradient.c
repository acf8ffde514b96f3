/* check_gradient.c - see check_gradient.h.
 *
 * The layer's output, times dy, is a function f of its inputs and parameters; backward gives its
 * gradient g. For a tensor t a direction v is +1 or -1 at some elements, 0 at others: a single
 * element, or a block of the tensor, so that all elements are in some direction. With the step h
 *
 *     g . v  is compared with  D = (4 D(h/2) - D(h)) / 3,  D(h) = (f(t + h v) - f(t - h v)) / 2h
 *
 * (Richardson's extrapolation). f is summed in double precision, over outputs that differ alone.
 * What may separate the two:
 *   - 1% of the gradient's norm in the direction's elements;
 *   - how much D(h) and D(h/2) differ, and half of the difference of the one-sided derivatives: at a
 *     kink (ReLU, a maximum) any value between them is a derivative;
 *   - rounding of the outputs in f32, as NOISE times their root mean square.
 * Where many outputs pass a kink within h, their one-sided derivatives may cancel each other, and D is
 * off: a second, smaller step decides.
 */
#include "model/check_gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

enum { SAMPLES = 2, BLOCKS = 8, ELEMENTS = 16, SEED = 17 };
static const double TOLERANCE = 0.01, NOISE = 1e-6;

/* The steps: this part of the tensor's root mean square. */
enum { NSTEPS = 2 };
static const double STEPS[NSTEPS] = {64, 1024};

/* The tensor whose gradient is compared. */
typedef struct tensor {
    float *data;       /* [count], of the first SAMPLES samples, or of a parameter */
    const float *grad; /* [count] */
    size_t count;
    double rms; /* of the data; at least 1e-3 */
    double grad_rms;
    char name[80]; /* "input 0", "parameter 'beta'" */
} tensor;

/* Elements [first, first + n), each +1 or -1. */
typedef struct direction {
    size_t first, n;
    uint64_t number;
} direction;

static float sign_of(const direction *d, size_t i) {
    uint32_t words[4];
    if (d->n == 1) return 1;
    ls_random_words(SEED, LS_STREAM_FAKE, 1000 + d->number, i, words);
    return words[0] & 1 ? 1 : -1;
}

static ls_check_run run_forward(const ls_check *c) {
    return ls_check_run_layer(
        c, &(ls_check_way){.which = {0, 1}, .n = SAMPLES, .forward_alone = true});
}

/* A number of several floats has the gradient of the first. */
static double dy_of(const ls_check *c, size_t i) {
    size_t parts = c->layer->y_parts > 1 ? (size_t)c->layer->y_parts : 1;
    return (double)c->dy[i / parts * parts];
}

/* f(a) - f(b), and the squares of the terms of f(a) whose output differs. */
static double subtract(const ls_check *c, const ls_check_run *a, const ls_check_run *b,
                       double *squares) {
    const ls_layer *l = c->layer;
    double sum = 0;
    for (size_t i = 0; l->loss && i < SAMPLES; i++) {
        sum += 0.25 * (a->losses[i] - b->losses[i]); /* the loss scale of the calls */
        *squares += 0.25 * 0.25 * a->losses[i] * a->losses[i];
    }
    for (size_t i = 0; !l->loss && i < SAMPLES * l->y_floats; i++) {
        if (memcmp(&a->y[i], &b->y[i], sizeof a->y[i]) == 0) continue;
        double dy = dy_of(c, i);
        sum += dy * ((double)a->y[i] - (double)b->y[i]);
        *squares += dy * dy * (double)a->y[i] * (double)a->y[i];
    }
    return sum;
}

/* Runs forward with the tensor moved by h along the direction. *moved_p: the step that the rounded
 * elements have made, on average. */
static ls_check_run run_moved(const ls_check *c, const tensor *t, const direction *d, double h,
                              double *moved_p) {
    float *was = LS_NEW_ARRAY(float, d->n);
    double moved = 0;
    memcpy(was, t->data + d->first, d->n * sizeof *was);
    for (size_t i = 0; i < d->n; i++) {
        float sign = sign_of(d, i);
        t->data[d->first + i] += sign * (float)h;
        moved += (double)sign * ((double)t->data[d->first + i] - (double)was[i]);
    }
    *moved_p = moved / (double)d->n;
    ls_check_run r = run_forward(c);
    memcpy(t->data + d->first, was, d->n * sizeof *was);
    free(was);
    return r;
}

typedef struct difference {
    double central, left, right; /* derivatives */
    double noise;
} difference;

static difference differ(const ls_check *c, const tensor *t, const direction *d, double h,
                         const ls_check_run *at) {
    double up = 0, down = 0, squares = 0;
    ls_check_run more = run_moved(c, t, d, h, &up), less = run_moved(c, t, d, -h, &down);
    difference r = {.central = subtract(c, &more, &less, &squares) / (up - down)};
    r.right = subtract(c, &more, at, &squares) / up;
    r.left = subtract(c, at, &less, &squares) / -down;
    r.noise = NOISE * sqrt(squares) / h;
    ls_check_run_free(&more);
    ls_check_run_free(&less);
    return r;
}

/* The derivative by differences with the steps h and h / 2, and how far from it a right gradient
 * may be, beside the tolerance. */
typedef struct estimate {
    double derivative, open;
} estimate;

static estimate estimate_at(const ls_check *c, const tensor *t, const direction *d, double h,
                            const ls_check_run *at) {
    difference far = differ(c, t, d, h, at), near = differ(c, t, d, h / 2, at);
    return (estimate){(4 * near.central - far.central) / 3, fabs(near.central - far.central) +
                                                                fabs(near.right - near.left) / 2 +
                                                                4 * near.noise};
}

/* False: the gradient is wrong in this direction. */
static bool compare(const ls_check *c, const tensor *t, const direction *d, const ls_check_run *at,
                    ls_check_result *result, char wrong[LS_CHECK_TEXT]) {
    double g = 0, squares = 0, off = 0, central = 0;
    for (size_t i = 0; i < d->n; i++) {
        double x = (double)t->grad[d->first + i];
        g += (double)sign_of(d, i) * x;
        squares += x * x;
    }
    double norm = sqrt(squares), least = t->grad_rms * sqrt((double)d->n);
    double scale = norm > least ? norm : least;
    bool good = false;
    for (int i = 0; !good && i < NSTEPS; i++) {
        estimate e = estimate_at(c, t, d, t->rms / STEPS[i], at);
        central = e.derivative;
        off = fabs(g - central);
        good = off <= TOLERANCE * scale + e.open;
    }
    result->comparisons++;
    if (scale > 0 && off / scale > result->worst) result->worst = off / scale;
    if (good) return true;
    if (d->n == 1)
        snprintf(wrong, LS_CHECK_TEXT,
                 "the gradient of %s is wrong: element %zu is %.6g, and central differences give "
                 "%.6g",
                 t->name, d->first, g, central);
    else
        snprintf(wrong, LS_CHECK_TEXT,
                 "the gradient of %s is wrong: elements %zu to %zu, each with a random sign, sum "
                 "up to %.6g, and central differences give %.6g",
                 t->name, d->first, d->first + d->n - 1, g, central);
    return false;
}

static double rms_of(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return n ? sqrt(sum / (double)n) : 0;
}

/* Single elements first: their message is the clearer one. */
static bool compare_tensor(const ls_check *c, tensor *t, ls_check_result *result,
                           char wrong[LS_CHECK_TEXT]) {
    ls_check_run at = run_forward(c);
    size_t nelements = t->count < ELEMENTS ? t->count : ELEMENTS;
    size_t nblocks = t->count <= ELEMENTS ? 0 : BLOCKS;
    bool good = true;
    t->rms = rms_of(t->data, t->count);
    if (t->rms < 1e-3) t->rms = 1e-3;
    t->grad_rms = rms_of(t->grad, t->count);
    for (size_t i = 0; good && i < nelements; i++) {
        double place = ls_random_uniform(SEED, LS_STREAM_FAKE, 1, i);
        size_t first = t->count <= ELEMENTS ? i : (size_t)(place * (double)t->count);
        good = compare(c, t, &(direction){first, 1, i}, &at, result, wrong);
    }
    for (size_t i = 0; good && i < nblocks; i++) {
        size_t first = i * t->count / nblocks, end = (i + 1) * t->count / nblocks;
        good = compare(c, t, &(direction){first, end - first, i}, &at, result, wrong);
    }
    ls_check_run_free(&at);
    return good;
}

const char *ls_check_param_name(const ls_check *c, int p) {
    const char *name = c->model->params[c->layer->params[p]].name;
    size_t n = strlen(c->layer->name);
    return strncmp(name, c->layer->name, n) == 0 && name[n] == '.' ? name + n + 1 : name;
}

/* The gradient of an input, each float's that of the number which it is a part of. */
static float *input_grad(const ls_check *c, const ls_check_run *r, int k) {
    const ls_layer *l = c->layer;
    size_t n = SAMPLES * l->input_floats[k];
    int y_parts = c->model->layers[l->inputs[k]].y_parts;
    size_t parts = y_parts > 1 ? (size_t)y_parts : 1;
    float *grad = LS_NEW_ARRAY(float, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < parts; j++) grad[i] += r->dx[k][i / parts * parts + j];
    return grad;
}

bool ls_check_gradients(ls_check *c, ls_check_result *result, char wrong[LS_CHECK_TEXT]) {
    const ls_layer *l = c->layer;
    ls_check_run r = ls_check_run_layer(c, &(ls_check_way){.which = {0, 1}, .n = SAMPLES});
    bool good = true;
    for (int k = 0; good && k < l->ninputs; k++) {
        float *grad = input_grad(c, &r, k);
        tensor t = {.data = c->x[k], .grad = grad, .count = SAMPLES * l->input_floats[k]};
        snprintf(t.name, sizeof t.name, "input %d", k);
        good = compare_tensor(c, &t, result, wrong);
        free(grad);
    }
    for (int p = 0; good && p < l->nparams; p++) {
        if (l->frozen[p]) continue;
        size_t offset = l->offsets[p];
        if (c->model->params[l->params[p]].momentum > 0) continue; /* no gradient trains it */
        tensor t = {.data = c->params + offset, .grad = r.grads + offset, .count = l->counts[p]};
        snprintf(t.name, sizeof t.name, "parameter '%s'", ls_check_param_name(c, p));
        good = compare_tensor(c, &t, result, wrong);
    }
    ls_check_run_free(&r);
    return good;
}
