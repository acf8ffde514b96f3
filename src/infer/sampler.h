/* sampler.h - draws a token from logits. */
#ifndef LS_INFER_SAMPLER_H
#define LS_INFER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/kernels.h"

typedef struct ls_choice {
    uint32_t key, token;
} ls_choice;

typedef struct ls_sampler {
    size_t V;
    const ls_kernels *k;
    float *logits, *weights;    /* [V] of each token: with penalties; its probability */
    float *maxima;              /* of each LS_MAXIMA logits: parts without choices are skipped */
    ls_choice *choices, *other; /* [V] of each: the likeliest tokens, in order */
    size_t nchoices;
} ls_sampler;

ls_sampler ls_sampler_create(size_t V, const ls_kernels *);
void ls_sampler_free(ls_sampler *);

/* Which tokens may be drawn. */
typedef struct ls_sampler_rule {
    double temperature; /* 0: always the likeliest */
    int64_t top_k;      /* the k likeliest; 0: all */
    double top_p;       /* of these, the fewest likeliest whose probabilities add up to at least p;
                         * 0 or 1: all. Source: Holtzman et al., ICLR 2020 (nucleus sampling) */
    double min_p;       /* of these, those at least min_p times as likely as the likeliest. Source:
                         * Nguyen et al., ICLR 2025 */
    double penalty;     /* logits of tokens that were there are divided by it, negative ones are
                         * multiplied; 0 or 1: unchanged. Source: Keskar et al., arXiv 1909.05858 */
} ls_sampler_rule;

/* Tokens that were there. */
typedef struct ls_sampler_seen {
    const uint32_t *tokens; /* [n] */
    int64_t n;
} ls_sampler_seen;

/* Draws from softmax(logits / temperature) over the tokens that the rule admits, with u uniform in
 * [0, 1): the likeliest token has the first part of [0, 1). Among equal logits the token with the
 * lower number comes first. A token whose logit is -INFINITY is never drawn, unless all are. The
 * token is the same on any machine. */
uint32_t ls_sampler_draw(ls_sampler *, const float *logits, const ls_sampler_rule *,
                         ls_sampler_seen, double u);

#endif
