/* sampler.h - draws a token from logits. */
#ifndef LS_INFER_SAMPLER_H
#define LS_INFER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

typedef struct ls_choice {
    uint32_t key, token;
} ls_choice;

typedef struct ls_sampler {
    size_t V;
    ls_choice *choices, *other; /* [V] of each */
    double *weights;            /* [V] */
} ls_sampler;

ls_sampler ls_sampler_create(size_t V);
void ls_sampler_free(ls_sampler *);

/* Which tokens may be drawn. */
typedef struct ls_sampler_rule {
    double temperature; /* 0: always the likeliest */
    int64_t top_k;      /* the k likeliest; 0: all */
    double top_p;       /* of these, the fewest likeliest whose probabilities add up to at least p;
                           0 or 1: all. Source: Holtzman et al., ICLR 2020 (nucleus sampling) */
} ls_sampler_rule;

/* Draws from softmax(logits / temperature) over the tokens that the rule admits, with u uniform in
 * [0, 1). Among equal logits the token with the lower number comes first. The same token on any
 * machine. */
uint32_t ls_sampler_draw(ls_sampler *, const float *logits, ls_sampler_rule, double u);

#endif
