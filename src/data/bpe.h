/* bpe.h - the internals of a tokenizer, for the files that build one: bpe_train.c and
 * tokenizer_json.c.
 *
 * Invariants:
 *  (1) No two tokens have the same bytes; each has at least one.
 *  (2) byte_token[] is complete, so that every text can be encoded.
 *  (3) Merge i turns neighbours a, b into `id`, whose bytes are those of a followed by those of b.
 *      No two merges have the same (a, b); ranks maps (a, b) to i.
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
    ls_words tokens;          /* numbered by id */
    uint32_t byte_token[256]; /* the token of each single byte */
    ls_merge *merges;         /* [nmerges] in order of priority */
    uint32_t nmerges;
    size_t merges_cap;
    ls_pairs ranks;
    bool *added; /* [vocab] true: from added_tokens of tokenizer.json, spelt as it is; NULL: none */
};

/* Appends a merge. Returns false and does nothing if (a, b) has one already. */
bool ls_bpe_add_merge(ls_tokenizer *, uint32_t a, uint32_t b, uint32_t id);

/* GPT-2 spells each byte as one visible character: bytes that are visible in Latin-1 as themselves,
 * the 68 others, in order, as U+0100 and up. The space is U+0120. */
uint32_t ls_bpe_char_of_byte(uint8_t byte);
int ls_bpe_byte_of_char(uint32_t c); /* -1: not one of these 256 characters */

#endif
