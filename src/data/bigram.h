/* bigram.h - the level that a model must beat: a bigram model of the same tokens.
 *
 * Counted on the training tokens, smoothed by Witten and Bell's method: p(b | a) = (c(a b) + t(a)
 * p(b)) / (c(a) + t(a)), t(a) the number of different tokens seen after a; p(b) = (c(b) + 1) / (N +
 * V). No parameter to tune. Source: Witten & Bell, IEEE Trans. Information Theory 37 (1991), method
 * C.
 */
#ifndef LS_DATA_BIGRAM_H
#define LS_DATA_BIGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Mean loss in nats a token of predicting val[1..nval) from its predecessors. nval >= 2. */
double ls_bigram_loss(const uint32_t *train, size_t ntrain, const uint32_t *val, size_t nval,
                      uint32_t vocab);

#endif
