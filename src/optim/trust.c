/* trust.c - LARS, LAMB and 1-bit LAMB: updates whose size follows the norm of the parameter.
 *
 * You, Gitman & Ginsburg, "Large batch training of convolutional networks", arXiv 1708.03888, with
 * the constants of timm's and apex's programs; You et al., "Large batch optimization for deep
 * learning: training BERT in 76 minutes", ICLR 2020, algorithm 2; Li et al., "1-bit LAMB:
 * communication efficient large-scale large-batch training with LAMB's convergence speed", arXiv
 * 2104.06069, algorithm 1, with the constants of DeepSpeed's program.
 */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "optim/whole.h"

static const double TRUST = 0.001, LARS_EPS = 1e-8;

static size_t block(size_t from) { return from / LS_BLOCK; }

/* The squares of the gradient, and those of the parameter. */
static void lars_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    double *weights = arg;
    c->sums[block(from)] = (double)c->c->k->sum_squares((int64_t)n, c->grads + from);
    weights[block(from)] = (double)c->c->k->sum_squares((int64_t)n, c->params + from);
}

static double *second_sums(const ls_whole_call *c) {
    return c->sums + (c->p->count + LS_BLOCK - 1) / LS_BLOCK;
}

/* factors[0]: what multiplies gradient and decay. */
static void lars_compute(const ls_whole_call *c) {
    ls_whole_each_block(c, lars_block, second_sums(c));
    double g = sqrt(ls_whole_total(c, c->sums)) * fabs((double)c->s.grad_scale);
    double w = sqrt(ls_whole_total(c, second_sums(c)));
    double below = g + (double)c->s.weight_decay * w + LARS_EPS;
    c->factors[0] = g > 0 && w > 0 ? TRUST * w / below : 1;
}

static void lars_apply(const ls_whole_call *c, size_t from, size_t n) {
    ls_update_scalars s = c->s;
    float *states[] = {c->states[0] + from};
    s.grad_scale = (float)((double)s.grad_scale * c->factors[0]);
    s.weight_decay = (float)((double)s.weight_decay * c->factors[0]);
    c->c->k->update[LS_RULE_MOMENTUM]((int64_t)n, &s, c->grads + from, c->params + from, states);
}

const ls_whole_rule ls_lars = {ls_whole_none, ls_whole_none, lars_compute, lars_apply,
                               ls_whole_no_products};

/* The squares of Adam's ratio with decay, on copies of the states, and those of the parameter. */
static void lamb_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    double *weights = arg;
    float m[LS_BLOCK], v[LS_BLOCK], u[LS_BLOCK] = {0}, *states[] = {m, v};
    ls_update_scalars s = c->s;
    s.lr = -1;
    s.weight_decay = 0;
    memcpy(m, c->states[0] + from, n * sizeof *m);
    memcpy(v, c->states[1] + from, n * sizeof *v);
    c->c->k->update[LS_RULE_ADAMW]((int64_t)n, &s, c->grads + from, u, states);
    for (size_t i = 0; i < n; i++) u[i] += c->s.weight_decay * c->params[from + i];
    c->sums[block(from)] = (double)c->c->k->sum_squares((int64_t)n, u);
    weights[block(from)] = (double)c->c->k->sum_squares((int64_t)n, c->params + from);
}

/* factors[0]: what multiplies the learning rate. */
static void lamb_compute(const ls_whole_call *c) {
    ls_whole_each_block(c, lamb_block, second_sums(c));
    double u = sqrt(ls_whole_total(c, c->sums)), w = sqrt(ls_whole_total(c, second_sums(c)));
    c->factors[0] = u > 0 && w > 0 ? w / u : 1;
}

static void lamb_apply(const ls_whole_call *c, size_t from, size_t n) {
    ls_update_scalars s = c->s;
    float *states[] = {c->states[0] + from, c->states[1] + from};
    s.lr = (float)((double)s.lr * c->factors[0]);
    c->c->k->update[LS_RULE_ADAMW]((int64_t)n, &s, c->grads + from, c->params + from, states);
}

const ls_whole_rule ls_lamb = {ls_whole_none, ls_whole_none, lamb_compute, lamb_apply,
                               ls_whole_no_products};

/* ---- 1-bit LAMB ----
 *
 * Its first updates are LAMB's, and it averages their factors. Then gradients are parts of the new
 * first moment m (plan.h), the second moment v is frozen, and the factor is that average times a
 * ratio of v to a second moment that goes on, of gradients that m has taken up. States: m, v, the
 * one that goes on, and two numbers: the average, and the latest ratio.
 */

enum { M, SQUARES, FRESH, TRUST_PAIR, AVERAGE = 0, RATIO = 1 };

static const double TRUST_BETA = 0.9, LEAST_RATIO = 0.5, MOST_RATIO = 4, MOST_CHANGE = 0.1;

/* The second moment that goes on, for elements [from, from + n): it begins as the frozen one. */
static void go_on(const ls_whole_call *c, size_t from, size_t n, float *fresh) {
    const float *m = c->states[M] + from, *next = c->grads + from;
    const float *before = c->states[c->s.first_frozen ? SQUARES : FRESH] + from;
    float beta1 = c->s.beta1, beta2 = c->s.beta2;
    for (size_t i = 0; i < n; i++) {
        float g = (next[i] * c->s.grad_scale - beta1 * m[i]) / (1.0f - beta1);
        fresh[i] = beta2 * before[i] + (1.0f - beta2) * g * g;
    }
}

/* [blocks] */
static float *most_ratios(const ls_whole_call *c) { return c->scratch; }

static size_t ratios_floats(const ls_param *p) { return (p->count + LS_BLOCK - 1) / LS_BLOCK; }

/* The squares of Adam's ratio and of that with decay, and the largest ratio of second moments. */
static void frozen_block(const ls_whole_call *c, void *arg, size_t from, size_t n) {
    double *decayed = arg;
    float fresh[LS_BLOCK], u[LS_BLOCK], most = 0;
    go_on(c, from, n, fresh);
    for (size_t i = 0; i < n; i++) {
        float below = sqrtf(c->states[SQUARES][from + i] * c->s.correct2) + c->s.eps;
        float ratio = below / (sqrtf(fresh[i] * c->s.correct2) + c->s.eps);
        most = ratio > most ? ratio : most;
        u[i] = c->grads[from + i] * c->s.grad_scale * c->s.correct1 / below;
    }
    most_ratios(c)[block(from)] = most;
    c->sums[block(from)] = (double)c->c->k->sum_squares((int64_t)n, u);
    for (size_t i = 0; i < n; i++) u[i] += c->s.weight_decay * c->params[from + i];
    decayed[block(from)] = (double)c->c->k->sum_squares((int64_t)n, u);
}

static double between(double x, double least, double most) {
    return x < least ? least : x > most ? most : x;
}

static double ratio_of(const ls_whole_call *c) {
    double last = c->s.first_frozen ? 1 : (double)c->states[TRUST_PAIR][RATIO], most = 0;
    ls_whole_each_block(c, frozen_block, second_sums(c));
    double plain = sqrt(ls_whole_total(c, c->sums));
    double decayed = sqrt(ls_whole_total(c, second_sums(c)));
    for (size_t i = 0; i < ratios_floats(c->p); i++)
        most = (double)most_ratios(c)[i] > most ? (double)most_ratios(c)[i] : most;
    double share = decayed > 0 && plain < decayed ? plain / decayed : 1; /* what is not decay */
    double ratio = between(most * share + (1 - share), LEAST_RATIO, MOST_RATIO);
    return between(ratio, last * (1 - MOST_CHANGE), last * (1 + MOST_CHANGE));
}

/* factors[0]: what multiplies the learning rate; then the two numbers of the state. */
static void onebit_lamb_compute(const ls_whole_call *c) {
    double average = (double)c->states[TRUST_PAIR][AVERAGE];
    if (c->s.frozen) {
        c->factors[2] = ratio_of(c);
        c->factors[1] = average;
        c->factors[0] = average * c->factors[2];
        return;
    }
    lamb_compute(c);
    double t = 1 - ls_math_pow_int(TRUST_BETA, (uint64_t)c->updates + 1);
    c->factors[1] = average + (c->factors[0] - average) * (1 - TRUST_BETA) / t;
    c->factors[2] = 1;
}

static void onebit_lamb_apply(const ls_whole_call *c, size_t from, size_t n) {
    ls_update_scalars s = c->s;
    float *states[] = {c->states[M] + from, c->states[SQUARES] + from};
    s.lr = (float)((double)s.lr * c->factors[0]);
    if (s.frozen) {
        go_on(c, from, n, c->states[FRESH] + from);
        s.beta1 = 0;
        s.beta2 = 1;
    }
    c->c->k->update[LS_RULE_ADAMW]((int64_t)n, &s, c->grads + from, c->params + from, states);
    if (from > 0) return;
    c->states[TRUST_PAIR][AVERAGE] = (float)c->factors[1];
    c->states[TRUST_PAIR][RATIO] = (float)c->factors[2];
}

const ls_whole_rule ls_onebit_lamb = {ls_whole_none, ratios_floats, onebit_lamb_compute,
                                      onebit_lamb_apply, ls_whole_no_products};
