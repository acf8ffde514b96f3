/* bpe.h - the inside of a tokenizer, for the files that make one: bpe_train.c and tokenizer_json.c.
 *
 * Invariants:
 *  (1) Tokens have different bytes, at least one each.
 *  (2) byte_token[] is complete: there is no text without tokens.
 *  (3) Merge i turns neighbours a, b into `id`, whose bytes are those of a, then those of b. No two
 *      merges have the same (a, b); ranks maps (a, b) to i.
 */
#ifndef LS_DATA_BPE_H
#define LS_DATA_BPE_H

#include <stdbool.h>

#include "data/pairs.h"
#include "data/tokenizer.h"
#include "data/words.h"

typedef struct ls_merge {
    uint32_t a, b, id;
} ls_merge;

struct ls_tokenizer {
    ls_words tokens;          /* a token's number is its id */
    uint32_t byte_token[256]; /* the token of each single byte */
    ls_merge *merges;         /* [nmerges] the first is tried first */
    uint32_t nmerges;
    size_t merges_cap;
    ls_pairs ranks;
    bool *added; /* [vocab] spelt as it stands in tokenizer.json's added_tokens; NULL: none is */
};

/* Appends a merge; false, and nothing done, where (a, b) has one already. */
bool ls_bpe_add_merge(ls_tokenizer *, uint32_t a, uint32_t b, uint32_t id);

/* GPT-2 spells each byte as one visible character. Bytes that are visible in Latin-1 stand for
 * themselves; the 68 others, in their order, are U+0100 and up: the space is U+0120. */
uint32_t ls_bpe_char_of_byte(uint8_t byte);
int ls_bpe_byte_of_char(uint32_t c); /* -1: not one of the 256 */

#endif
