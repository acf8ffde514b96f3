/* check_gradient.c - see check_gradient.h.
 *
 * The layer's output, times dy, is a function f of its inputs and parameters; backward gives its
 * gradient g. For a tensor t a direction v is +1 or -1 at some elements, 0 at others: a single
 * element, or a block of the tensor, so that all elements are in some direction. With the step h
 *
 *     g . v  is compared with  E(h/2),  E(h) = (4 D(h/2) - D(h)) / 3,
 *                                      D(h) = (f(t + h v) - f(t - h v)) / 2h
 *
 * (Richardson's extrapolation). f is summed in double precision, over outputs that differ alone.
 * The bound on what may separate the two:
 *   - 1% of the gradient's norm in the direction's elements;
 *   - three times what E(h) and E(h/2) differ by: curvature, and rounding inside of the layer;
 *   - one rounding of each output in f32;
 *   - half of the difference of the one-sided derivatives: at a kink (ReLU, a maximum) any value
 *     between them is a derivative.
 * A bound above DECISIVE decides nothing: a gradient that is wrong by 5% would pass. It is so wide
 * where the terms of f cancel each other, or outputs pass a kink. Then another dy is taken, of the
 * same absolute values: with the signs of the outputs' differences, so that all terms of D have one
 * sign, and 0 at outputs whose one-sided differences differ; and the layer runs backward with it.
 * The first single elements are always compared in this way, too: a term that sums over dy, and is
 * missing, may be small for a random dy. Steps are tried until a bound decides. Losses have no dy.
 */
#include "model/check_gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

enum { SAMPLES = 2, BLOCKS = 8, ELEMENTS = 16, ALIGNED = 2, MOST = 256, SEED = 17 };
/* One rounding to f32; a loss is a sum in double precision, of many that are rounded. */
static const double NOISE = 6e-8, LOSS_ROUNDING = 0.25;
static const double TOLERANCE = 0.01, DECISIVE = 0.03;
/* Outputs whose one-sided differences differ by more than this part of them pass a kink. */
static const double KINK = 0.1;
/* Floats that a tensor's directions may read and write, and the part of them that may stay open. */
static const double BUDGET = 5e5, OPEN_PART = 0.1;

/* The steps: this part of the tensor's root mean square. */
enum { NSTEPS = 6 };
static const double STEPS[NSTEPS] = {64, 24, 8, 1024, 1, 0.25};

/* The tensor whose gradient is compared. */
typedef struct tensor {
    float *data;       /* [count], of the first SAMPLES samples, or of a parameter */
    const float *grad; /* [count] */
    size_t count;
    int input, param; /* its number; the other is -1 */
    double rms;       /* root mean square of the data; at least 1e-3 */
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
    for (size_t i = 0; l->traits.loss && i < SAMPLES; i++) {
        double loss = LOSS_ROUNDING * 0.25 * a->losses[i]; /* the loss scale of the calls */
        if (memcmp(&a->losses[i], &b->losses[i], sizeof a->losses[i]) == 0) continue;
        sum += 0.25 * (a->losses[i] - b->losses[i]);
        *squares += loss * loss;
    }
    for (size_t i = 0; !l->traits.loss && i < SAMPLES * l->y_floats; i++) {
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

/* ---- points of f, and the derivative between them ---- */

/* The layer's results at t, and moved to both sides by h, h / 2 and h / 4. */
enum { LEVELS = 3 };
typedef struct points {
    const ls_check_run *at;
    ls_check_run more[LEVELS], less[LEVELS];
    double up[LEVELS], down[LEVELS]; /* the steps that were made */
} points;

static points points_at(const ls_check *c, const tensor *t, const direction *d, double h,
                        const ls_check_run *at) {
    points p = {.at = at};
    for (int i = 0; i < LEVELS; i++, h /= 2) {
        p.more[i] = run_moved(c, t, d, h, &p.up[i]);
        p.less[i] = run_moved(c, t, d, -h, &p.down[i]);
    }
    return p;
}

static void points_free(points *p) {
    for (int i = 0; i < LEVELS; i++) {
        ls_check_run_free(&p->more[i]);
        ls_check_run_free(&p->less[i]);
    }
}

typedef struct difference {
    double central, left, right; /* derivatives */
    double noise;
} difference;

static difference differ(const ls_check *c, const points *p, int level) {
    double squares = 0, unused = 0, up = p->up[level], down = p->down[level];
    const ls_check_run *more = &p->more[level], *less = &p->less[level];
    difference r = {.central = subtract(c, more, less, &squares) / (up - down)};
    r.right = subtract(c, more, p->at, &unused) / up;
    r.left = subtract(c, p->at, less, &unused) / -down;
    r.noise = 2 * NOISE * sqrt(squares) / (up - down);
    return r;
}

/* The derivative by differences with the steps h, h / 2 and h / 4, and how far from it a right
 * gradient may be, beside the tolerance. */
typedef struct estimate {
    double derivative, open;
} estimate;

/* kinks: outputs that pass one are among those of f. */
static estimate estimate_of(const ls_check *c, const points *p, bool kinks) {
    difference d[LEVELS];
    for (int i = 0; i < LEVELS; i++) d[i] = differ(c, p, i);
    double first = (4 * d[1].central - d[0].central) / 3,
           next = (4 * d[2].central - d[1].central) / 3;
    double open = 3 * fabs(next - first) + 4 * d[1].noise;
    /* Without the curvature, which falls with the step. */
    if (kinks) open += fabs(2 * (d[2].right - d[2].left) - (d[1].right - d[1].left)) / 2;
    return (estimate){next, open};
}

/* ---- what a comparison says ---- */

typedef enum verdict { RIGHT, OPEN, WRONG } verdict;

typedef struct comparison {
    verdict verdict;
    double g, derivative;
    double off, bound; /* relative to the scale */
} comparison;

static comparison compare_with(double g, estimate e, double scale) {
    double off = fabs(g - e.derivative), bound = TOLERANCE * scale + e.open;
    comparison r = {.g = g, .derivative = e.derivative};
    r.verdict = off > bound ? WRONG : bound <= DECISIVE * scale ? RIGHT : OPEN;
    if (scale > 0) r.off = off / scale, r.bound = bound / scale;
    if (scale <= 0 && e.open <= 0 && off <= 0) r.verdict = RIGHT; /* nothing depends on it */
    return r;
}

static double along(const float *grad, const direction *d, double *norm_p) {
    double g = 0, squares = 0;
    for (size_t i = 0; i < d->n; i++) {
        double x = (double)grad[d->first + i];
        g += (double)sign_of(d, i) * x;
        squares += x * x;
    }
    *norm_p = sqrt(squares);
    return g;
}

/* With the dy of the check. Right if one step says so, wrong if all do. */
static comparison compare_usual(const ls_check *c, const tensor *t, const direction *d,
                                const ls_check_run *at) {
    double norm = 0, g = along(t->grad, d, &norm), least = t->grad_rms * sqrt((double)d->n);
    comparison r = {.verdict = WRONG};
    for (int i = 0; i < NSTEPS && r.verdict != RIGHT; i++) {
        points p = points_at(c, t, d, t->rms / STEPS[i], at);
        comparison x = compare_with(g, estimate_of(c, &p, true), norm > least ? norm : least);
        points_free(&p);
        if (i == 0 || x.verdict < r.verdict) r = x;
    }
    return r;
}

/* ---- with a dy whose terms don't cancel ---- */

static float *gradient_of(const ls_check *c, const ls_check_run *r, const tensor *t);

/* dy [SAMPLES * y_floats]. The numbers of several floats have theirs at the first. */
static void align(const ls_check *c, const points *p, float *dy) {
    const ls_layer *l = c->layer;
    size_t parts = l->y_parts > 1 ? (size_t)l->y_parts : 1;
    for (size_t i = 0; i < SAMPLES * l->y_floats; i += parts) {
        double right = 0, left = 0, size = 0;
        for (size_t k = i; k < i + parts && k < SAMPLES * l->y_floats; k++) {
            right += (double)p->more[0].y[k] - (double)p->at->y[k];
            left += (double)p->at->y[k] - (double)p->less[0].y[k];
            size += fabs((double)p->at->y[k]);
        }
        double both = fabs(right) + fabs(left);
        bool kink = fabs(right - left) > KINK * both + 4 * NOISE * size;
        dy[i] = kink ? 0 : copysignf(fabsf(c->dy[i]), (float)(right + left));
    }
}

static comparison compare_step(const ls_check *c, const tensor *t, const direction *d, double h,
                               const ls_check_run *at) {
    ls_check with = *c;
    points p = points_at(c, t, d, h, at);
    float *dy = LS_NEW_ARRAY(float, LS_CHECK_SAMPLES * c->layer->y_floats + 1);
    align(c, &p, dy);
    with.dy = dy;
    ls_check_run r = ls_check_run_layer(&with, &(ls_check_way){.which = {0, 1}, .n = SAMPLES});
    float *grad = gradient_of(&with, &r, t);
    estimate e = estimate_of(&with, &p, false);
    double norm = 0, g = along(grad, d, &norm), least = t->grad_rms * sqrt((double)d->n);
    comparison x = compare_with(g, e, fabs(e.derivative) > least ? fabs(e.derivative) : least);
    free(grad);
    free(dy);
    ls_check_run_free(&r);
    points_free(&p);
    return x;
}

/* The step with the least bound decides. */
static comparison compare_aligned(const ls_check *c, const tensor *t, const direction *d,
                                  const ls_check_run *at) {
    comparison r = {.verdict = OPEN};
    for (int i = 0; i < NSTEPS && (i == 0 || r.verdict == OPEN || r.bound > DECISIVE); i++) {
        comparison x = compare_step(c, t, d, t->rms / STEPS[i], at);
        if (i == 0 || x.bound < r.bound) r = x;
    }
    return r;
}

static void describe(const tensor *t, const direction *d, const comparison *x,
                     char wrong[LS_CHECK_TEXT]) {
    if (d->n == 1)
        snprintf(wrong, LS_CHECK_TEXT,
                 "the gradient of %s is wrong: element %zu is %.6g, and central differences give "
                 "%.6g",
                 t->name, d->first, x->g, x->derivative);
    else
        snprintf(wrong, LS_CHECK_TEXT,
                 "the gradient of %s is wrong: elements %zu to %zu, each with a random sign, sum "
                 "up to %.6g, and central differences give %.6g",
                 t->name, d->first, d->first + d->n - 1, x->g, x->derivative);
}

/* A direction that the usual dy leaves open, or calls wrong at kinks, is decided by the other
 * one. */
static comparison compare(const ls_check *c, const tensor *t, const direction *d,
                          const ls_check_run *at) {
    comparison x = compare_usual(c, t, d, at);
    bool more = d->n == 1 && d->number < ALIGNED;
    if (c->layer->traits.loss || (x.verdict == RIGHT && !more)) return x;
    comparison y = compare_aligned(c, t, d, at);
    if (y.verdict == OPEN) return x;
    return y.verdict == WRONG || x.verdict != RIGHT ? y : x;
}

static double rms_of(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return n ? sqrt(sum / (double)n) : 0;
}

/* As many directions as the work of a call allows: all elements of a small layer. */
static size_t count_directions(const ls_check *c) {
    const ls_layer *l = c->layer;
    double work = SAMPLES * ((double)l->y_floats + l->cost.flops / 8);
    for (int k = 0; k < l->ninputs; k++) work += SAMPLES * (double)l->input_floats[k];
    for (int p = 0; p < l->nparams; p++) work += (double)l->counts[p];
    double n = BUDGET / (work + 1);
    if (n > MOST) n = MOST;
    return n > ELEMENTS + BLOCKS ? (size_t)n : ELEMENTS + BLOCKS;
}

/* The directions of a tensor: single elements first, whose message is the clearer one, then
 * blocks. */
typedef struct directions {
    size_t nelements, nblocks;
    bool all; /* every element is one */
} directions;

static directions directions_of(const ls_check *c, const tensor *t) {
    size_t n = count_directions(c);
    directions d = {.all = t->count <= n, .nelements = n * 2 / 3, .nblocks = n - n * 2 / 3};
    if (d.all) d.nelements = t->count;
    if (d.all) d.nblocks = t->count <= ELEMENTS ? 0 : BLOCKS;
    return d;
}

static direction direction_at(const directions *all, const tensor *t, size_t i) {
    if (i < all->nelements) {
        double place = ls_random_uniform(SEED, LS_STREAM_FAKE, 1, i);
        return (direction){all->all ? i : (size_t)(place * (double)t->count), 1, i};
    }
    size_t k = i - all->nelements, n = all->nblocks;
    size_t first = k * t->count / n, end = (k + 1) * t->count / n;
    return (direction){first, end - first, k};
}

/* False: it is wrong, or too much of it is not decided. */
static bool compare_tensor(const ls_check *c, tensor *t, ls_check_result *result,
                           char wrong[LS_CHECK_TEXT]) {
    ls_check_run at = run_forward(c);
    directions all = directions_of(c, t);
    size_t n = all.nelements + all.nblocks, nopen = 0;
    bool good = true;
    t->rms = rms_of(t->data, t->count);
    if (t->rms < 1e-3) t->rms = 1e-3;
    t->grad_rms = rms_of(t->grad, t->count);
    for (size_t i = 0; good && i < n; i++) {
        direction d = direction_at(&all, t, i);
        comparison x = compare(c, t, &d, &at);
        result->comparisons++;
        good = x.verdict != WRONG;
        nopen += x.verdict == OPEN;
        if (!good) describe(t, &d, &x, wrong);
        if (x.verdict != RIGHT) continue;
        if (x.off > result->worst) result->worst = x.off;
        if (x.bound > result->bound) result->bound = x.bound;
    }
    ls_check_run_free(&at);
    result->nopen += (int64_t)nopen;
    if (good && (double)nopen > OPEN_PART * (double)n && !*result->open)
        snprintf(result->open, sizeof result->open,
                 "the gradient of %s: %zu of %zu comparisons are not closer than %.0f%%", t->name,
                 nopen, n, 100 * DECISIVE);
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

/* The caller frees it. */
static float *gradient_of(const ls_check *c, const ls_check_run *r, const tensor *t) {
    if (t->input >= 0) return input_grad(c, r, t->input);
    float *grad = LS_NEW_ARRAY(float, t->count);
    memcpy(grad, r->grads + c->layer->link.offsets[t->param], t->count * sizeof *grad);
    return grad;
}

bool ls_check_gradients(ls_check *c, ls_check_result *result, char wrong[LS_CHECK_TEXT]) {
    const ls_layer *l = c->layer;
    ls_check_run r = ls_check_run_layer(c, &(ls_check_way){.which = {0, 1}, .n = SAMPLES});
    bool good = true;
    for (int k = 0; good && k < l->ninputs; k++) {
        float *grad = input_grad(c, &r, k);
        tensor t = {.data = c->x[k],
                    .grad = grad,
                    .count = SAMPLES * l->input_floats[k],
                    .input = k,
                    .param = -1};
        snprintf(t.name, sizeof t.name, "input %d", k);
        good = compare_tensor(c, &t, result, wrong);
        free(grad);
    }
    for (int p = 0; good && p < l->nparams; p++) {
        if (l->link.frozen[p]) continue;
        size_t offset = l->link.offsets[p];
        if (c->model->params[l->params[p]].momentum > 0) continue; /* no gradient trains it */
        tensor t = {.data = c->params + offset,
                    .grad = r.grads + offset,
                    .count = l->counts[p],
                    .input = -1,
                    .param = p};
        snprintf(t.name, sizeof t.name, "parameter '%s'", ls_check_param_name(c, p));
        good = compare_tensor(c, &t, result, wrong);
    }
    ls_check_run_free(&r);
    return good;
}
