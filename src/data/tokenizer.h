/* tokenizer.h - text to token ids and back: byte-level BPE, as in GPT-2.
 *
 * A tokenizer is a vocabulary of byte strings, which includes the 256 single bytes, and an ordered
 * list of merges. It is trained on a text or read from Hugging Face's tokenizer.json, and doesn't
 * change afterwards: any number of threads may use one const tokenizer at the same time.
 * The caller owns it and frees it with ls_tokenizer_free().
 *
 * `what` names a text in messages, e.g. its path. A text must be UTF-8.
 */
#ifndef LS_DATA_TOKENIZER_H
#define LS_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "data/cut.h"

typedef struct ls_tokenizer ls_tokenizer;

/* Learns `vocab` tokens from a text: 0..255 are the bytes, in GPT-2's order; the others follow in
 * the order in which they were merged. The same text always gives the same tokenizer, that of
 * Hugging Face's trainer. LS_EINVAL: vocab is below 256, or larger than the text has merges for. */
ls_status ls_tokenizer_train_cut(const ls_cut *, const char *what, uint32_t vocab,
                                 ls_tokenizer **t_p, ls_error *);

/* Reads the text of a tokenizer.json. LS_EINVAL: it is damaged, or has settings that GPT-2 does not
 * (a normalizer, another pre-tokenizer, dropout...). */
ls_status ls_tokenizer_parse(const char *json, size_t nbytes, const char *what, ls_tokenizer **t_p,
                             ls_error *);
ls_status ls_tokenizer_load(const char *path, ls_tokenizer **t_p, ls_error *);

/* Appends a tokenizer.json that Hugging Face's tokenizers and ls_tokenizer_parse() can read. */
void ls_tokenizer_write(const ls_tokenizer *, ls_buf *);

typedef struct ls_token_list {
    uint32_t *ids; /* [n] the caller frees it, also if n is 0 */
    size_t n;
} ls_token_list;

/* The text's tokens. Names of added tokens, such as <|endoftext|>, are ordinary text here, so that
 * data can't forge them. LS_EINVAL: the text is not UTF-8. */
ls_status ls_tokenizer_encode(const ls_tokenizer *, const uint8_t *text, size_t nbytes,
                              const char *what, ls_token_list *list_p, ls_error *);

/* The same for a text that is already cut. */
ls_status ls_tokenizer_encode_cut(const ls_tokenizer *, const ls_cut *, const char *what,
                                  ls_token_list *list_p, ls_error *);

/* The bytes of a token < vocab, [*nbytes_p]; valid while the tokenizer lives. A token may be only a
 * part of a character. */
const uint8_t *ls_tokenizer_bytes(const ls_tokenizer *, uint32_t token, size_t *nbytes_p);

uint32_t ls_tokenizer_vocab(const ls_tokenizer *);

void ls_tokenizer_free(ls_tokenizer *); /* NULL is allowed */

#endif
