/* sampler.h - draws a token from logits. */
#ifndef LS_TRAIN_SAMPLER_H
#define LS_TRAIN_SAMPLER_H

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

/* Draws from softmax(logits / temperature) over the top_k likeliest (0: all), with u uniform in
 * [0, 1). Temperature 0: the likeliest. Of equal logits the token of the lower number comes first.
 * The same token on any machine. */
uint32_t ls_sampler_draw(ls_sampler *, const float *logits, double temperature, int64_t top_k,
                         double u);

#endif
