/* lookup.h - guesses the next tokens of a text: those that followed its last tokens at an earlier
 * place.
 *
 * Several tokens of a text are then computed in one step, and each is right if the draw at its
 * place gives it. Since a draw is a function of the seed and the place, this changes no token, at
 * any temperature. Source: Saxena, "Prompt lookup decoding", 2023; Leviathan et al., ICML 2023.
 */
#ifndef LS_SERVE_LOOKUP_H
#define LS_SERVE_LOOKUP_H

#include <stdint.h>

/* Finds the latest earlier place where the last three of tokens [n] stand, and copies up to `most`
 * tokens that follow it. Returns how many. */
int64_t ls_lookup(const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guesses);

#endif
