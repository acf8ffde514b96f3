/* sampler.c - see sampler.h.
 *
 * Every rule admits the first tokens in the order of their logits, and most draws need few of them.
 * So only the tokens within some distance of the best logit are sorted; where they are not enough,
 * the distance grows. Passes over all tokens are kernels; what scans logits one by one skips those
 * parts of them whose maximum is too small.
 */
#include "infer/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { BITS = 11, DIGITS = 1 << BITS, PASSES = 3, FEW = 32 };

/* The first distance, as a factor of probabilities e^-NEAR, and the last but all. */
static const double NEAR = 3, FAR = 24;

ls_sampler ls_sampler_create(size_t V, const ls_kernels *k) {
    return (ls_sampler){.V = V,
                        .k = k,
                        .logits = LS_NEW_ARRAY(float, V),
                        .weights = LS_NEW_ARRAY(float, V),
                        .maxima = LS_NEW_ARRAY(float, (V + LS_MAXIMA - 1) / LS_MAXIMA),
                        .choices = LS_NEW_ARRAY(ls_choice, V),
                        .other = LS_NEW_ARRAY(ls_choice, V)};
}

void ls_sampler_free(ls_sampler *s) {
    free(s->logits);
    free(s->weights);
    free(s->maxima);
    free(s->choices);
    free(s->other);
    *s = (ls_sampler){0};
}

/* ---- order ---- */

/* A larger x has a smaller key; -0 is 0. */
static uint32_t key_of(float x) {
    uint32_t u;
    x = x + 0.0f;
    memcpy(&u, &x, sizeof u);
    return u >> 31 ? u : ~u & 0x7fffffffu;
}

/* Sorts by the digits of the keys, the lowest digit first; each pass is stable. */
static void sort_many(ls_sampler *s) {
    static const uint32_t mask = DIGITS - 1;
    for (int pass = 0; pass < PASSES; pass++) {
        uint32_t places[DIGITS] = {0}, sum = 0;
        int shift = pass * BITS;
        for (size_t i = 0; i < s->nchoices; i++) places[s->choices[i].key >> shift & mask]++;
        for (int d = 0; d < DIGITS; d++) {
            uint32_t n = places[d];
            places[d] = sum;
            sum += n;
        }
        for (size_t i = 0; i < s->nchoices; i++)
            s->other[places[s->choices[i].key >> shift & mask]++] = s->choices[i];
        ls_choice *sorted = s->other;
        s->other = s->choices;
        s->choices = sorted;
    }
}

/* By insertion, which is stable. */
static void sort_few(ls_sampler *s) {
    for (size_t i = 1; i < s->nchoices; i++) {
        ls_choice c = s->choices[i];
        size_t k = i;
        for (; k > 0 && s->choices[k - 1].key > c.key; k--) s->choices[k] = s->choices[k - 1];
        s->choices[k] = c;
    }
}

/* Adds the tokens of one part of the logits, [first, first + LS_MAXIMA), that are at least `least`,
 * or all that may be drawn. */
static void add_choices(ls_sampler *s, const float *logits, size_t first, float least, bool all) {
    size_t end = s->V - first < LS_MAXIMA ? s->V : first + LS_MAXIMA;
    for (size_t i = first; i < end; i++)
        if (all ? logits[i] > -INFINITY : logits[i] >= least)
            s->choices[s->nchoices++] = (ls_choice){key_of(logits[i]), (uint32_t)i};
}

/* Sorts the tokens whose logits are at least `least`, or all. */
static void choose(ls_sampler *s, const float *logits, float least, bool all) {
    s->nchoices = 0;
    for (size_t i = 0; i < s->V; i += LS_MAXIMA)
        if (all || s->maxima[i / LS_MAXIMA] >= least) add_choices(s, logits, i, least, all);
    if (s->nchoices > FEW)
        sort_many(s);
    else
        sort_few(s);
}

/* The first of the largest; the first of all if there is none. */
static uint32_t likeliest(const ls_sampler *s, const float *logits) {
    size_t nparts = (s->V + LS_MAXIMA - 1) / LS_MAXIMA, best = 0;
    for (size_t i = 1; i < nparts; i++)
        if (s->maxima[i] > s->maxima[best]) best = i;
    for (size_t i = best * LS_MAXIMA; i < s->V; i++)
        if (logits[i] == s->maxima[best]) return (uint32_t)i;
    return 0;
}

/* ---- rules ---- */

static const float *penalize(ls_sampler *s, const float *logits, double penalty,
                             ls_sampler_seen seen) {
    if (penalty <= 0 || penalty == 1 || seen.n == 0) return logits;
    memcpy(s->logits, logits, s->V * sizeof *logits);
    for (int64_t i = 0; i < seen.n; i++) {
        double x = (double)logits[seen.tokens[i]];
        s->logits[seen.tokens[i]] = (float)(x < 0 ? x * penalty : x / penalty);
    }
    return s->logits;
}

/* The first choices that a rule admits: their number and sum. False: more choices are needed. */
typedef struct admitted {
    size_t n;
    double sum;
} admitted;

static double weight_of(const ls_sampler *s, size_t i) {
    return (double)s->weights[s->choices[i].token];
}

static bool admit_top_k(const ls_sampler *s, int64_t top_k, admitted *a) {
    if (top_k <= 0 || (size_t)top_k >= a->n) return true;
    if (s->nchoices < (size_t)top_k) return false;
    *a = (admitted){(size_t)top_k, 0};
    for (size_t i = 0; i < a->n; i++) a->sum += weight_of(s, i);
    return true;
}

static bool admit_top_p(const ls_sampler *s, double top_p, admitted *a) {
    double wanted = top_p * a->sum, sum = 0;
    if (top_p <= 0 || top_p >= 1) return true;
    for (size_t i = 0; i < s->nchoices && i < a->n; i++) {
        sum += weight_of(s, i);
        if (sum < wanted) continue;
        *a = (admitted){i + 1, sum};
        return true;
    }
    return s->nchoices >= a->n;
}

static bool admit_min_p(const ls_sampler *s, double min_p, admitted *a) {
    double sum = 0;
    if (min_p <= 0) return true;
    for (size_t i = 0; i < s->nchoices && i < a->n; i++) {
        if (weight_of(s, i) < min_p * weight_of(s, 0)) {
            *a = (admitted){i, sum};
            return true;
        }
        sum += weight_of(s, i);
    }
    if (s->nchoices < a->n) return false;
    a->sum = sum;
    return true;
}

/* Draws among the n tokens of `a`, all that may be drawn. False: more choices are needed. */
static bool draw(const ls_sampler *s, const ls_sampler_rule *rule, admitted a, double u,
                 uint32_t *token_p) {
    if (!s->nchoices || !admit_top_k(s, rule->top_k, &a) || !admit_top_p(s, rule->top_p, &a) ||
        !admit_min_p(s, rule->min_p, &a))
        return false;
    double left = u * a.sum;
    size_t n = s->nchoices < a.n ? s->nchoices : a.n;
    for (size_t i = 0; i < n; i++) {
        *token_p = s->choices[i].token;
        left -= weight_of(s, i);
        if (left < 0) return true;
    }
    return n == a.n;
}

uint32_t ls_sampler_draw(ls_sampler *s, const float *given, const ls_sampler_rule *rule,
                         ls_sampler_seen seen, double u) {
    const float *logits = penalize(s, given, rule->penalty, seen);
    s->k->maxima((int64_t)s->V, logits, s->maxima);
    uint32_t best = likeliest(s, logits), token = best;
    if (rule->temperature <= 0) return best;
    double by = 1 / rule->temperature, top = (double)logits[best];
    double total = s->k->draw_weights((int64_t)s->V, logits, logits[best], (float)by, s->weights);
    for (double distance = NEAR; distance <= FAR; distance *= 2) {
        choose(s, logits, (float)(top - distance * rule->temperature), false);
        if (draw(s, rule, (admitted){s->V, total}, u, &token)) return token;
    }
    choose(s, logits, 0, true);
    draw(s, rule, (admitted){s->nchoices, total}, u, &token);
    return token;
}
