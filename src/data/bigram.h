/* bigram.h - the baseline that a model must beat: a bigram model of the same tokens.
 *
 * Counts come from the training tokens and are smoothed by Witten and Bell's method:
 *
 *     p(b | a) = (c(a b) + t(a) p(b)) / (c(a) + t(a)), t(a): number of distinct tokens seen after a
 *     p(b) = (c(b) + 1) / (N + V)
 *
 * There is no parameter to tune. Source: Witten & Bell, IEEE Trans. Information Theory 37 (1991),
 * method C.
 */
#ifndef LS_DATA_BIGRAM_H
#define LS_DATA_BIGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Mean loss, in nats a token, when each of val[1..nval) is predicted from the one before it.
 * nval >= 2. */
double ls_bigram_loss(const uint32_t *train, size_t ntrain, const uint32_t *val, size_t nval,
                      uint32_t vocab);

#endif
