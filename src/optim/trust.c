/* trust.c - LARS and LAMB: updates whose size follows the norm of the parameter.
 *
 * You, Gitman & Ginsburg, "Large batch training of convolutional networks", arXiv 1708.03888, with
 * the constants of timm's and apex's programs; You et al., "Large batch optimization for deep
 * learning: training BERT in 76 minutes", ICLR 2020, algorithm 2.
 */
#include <math.h>
#include <string.h>

#include "optim/whole_rule.h"

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
