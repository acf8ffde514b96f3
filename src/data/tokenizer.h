/* tokenizer.h - text to token ids and back, as GPT-2, Llama, Mistral, Qwen and SmolLM do it.
 *
 * A tokenizer is a vocabulary, an ordered list of merges, and rules for how a text is normalized
 * and cut into words before. It is trained on a text (GPT-2's kind), read from Hugging Face's
 * tokenizer.json, or made from the parts that a model file lists (GGUF), and doesn't change
 * afterwards: any number of threads may use one const tokenizer at the same time. The caller owns
 * it and frees it with ls_tokenizer_free().
 *
 * `what` names a text in messages, e.g. its path. A text must be UTF-8.
 */
#ifndef LS_DATA_TOKENIZER_H
#define LS_DATA_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "data/added_tokens.h"
#include "data/text_cut.h"

typedef struct ls_tokenizer ls_tokenizer;

/* ---- making and writing ---- */

/* Learns `vocab` tokens from a text: 0..255 are the bytes, in GPT-2's order; the others follow in
 * the order in which they were merged. If the cut has documents, the last token is that which ends
 * them, LS_END_OF_TEXT, and its id must be vocab - 1 in the cut. The same text always gives the
 * same tokenizer, that of Hugging Face's trainer. LS_EINVAL: vocab is below 256, or larger than the
 * text has merges for. */
ls_status ls_tokenizer_train_cut(const ls_text_cut *, const char *what, uint32_t vocab,
                                 ls_tokenizer **t_p, ls_error *);

/* Reads the text of a tokenizer.json. LS_EINVAL: it is damaged, or has settings that are not
 * supported (tokenizer_json.c lists those that are); the message names the key. */
ls_status ls_tokenizer_parse(const char *json, size_t nbytes, const char *what, ls_tokenizer **t_p,
                             ls_error *);
ls_status ls_tokenizer_load(const char *path, ls_tokenizer **t_p, ls_error *);

/* Appends a tokenizer.json that Hugging Face's tokenizers and ls_tokenizer_parse() can read, with
 * the same ids for every text. */
void ls_tokenizer_write(const ls_tokenizer *, ls_buf *);

void ls_tokenizer_free(ls_tokenizer *); /* NULL is allowed */

/* ---- encoding ---- */

typedef struct ls_token_list {
    uint32_t *ids; /* [n] the caller frees it, also if n is 0 */
    size_t n;
    size_t dropped; /* bytes of the text that are left out: the vocabulary has no token for them */
    size_t *ends;   /* where the tokens of each document end; the caller frees it; NULL: one text */
} ls_token_list;

typedef struct ls_encoding {
    const char *what; /* names the text in messages */
    /* Names of special tokens, such as <|endoftext|>, become these tokens; else they are ordinary
     * text, so that data can't forge them. */
    bool special;
    /* Except in these parts of the text [nplain], in ascending order: the contents of messages
     * within a chat template. */
    const ls_text_range *plain;
    size_t nplain;
    bool begin, end; /* add what the tokenizer puts before a text (often BOS), and after it */
    const ls_documents *documents; /* each is a text of its own; NULL: all is one */
    ls_bar *bar;                   /* shows the bytes that are done; NULL: nothing does */
} ls_encoding;

/* The text's tokens. LS_EINVAL: the text is not UTF-8, or an expression of the tokenizer backtracks
 * too often on it. */
ls_status ls_tokenizer_encode(const ls_tokenizer *, const uint8_t *text, size_t nbytes,
                              const ls_encoding *, ls_token_list *list_p, ls_error *);

/* The tokens of a text that is already cut, as GPT-2 cuts, by a tokenizer that was trained. */
ls_status ls_tokenizer_encode_cut(const ls_tokenizer *, const ls_text_cut *, const char *what,
                                  ls_token_list *list_p, ls_error *);

/* Logs that bytes of the text were left out, if there are any. */
void ls_token_list_log_dropped(const ls_token_list *, const char *what);

/* ---- decoding ---- */

/* The bytes of a token, [*nbytes_p]; valid while the tokenizer lives. A token may be only a part of
 * a character. An id that is not below vocab has none: models may have more rows than tokens. */
const uint8_t *ls_tokenizer_bytes(const ls_tokenizer *, uint32_t token, size_t *nbytes_p);

/* Decodes a text token by token. Set the first two fields, and the others to 0. */
typedef struct ls_decoding {
    const ls_tokenizer *tokenizer;
    bool skip_special;
    bool begun;      /* the text has begun: a space that comes now is part of it */
    uint8_t nheld;   /* } the first bytes of a character whose last */
    uint8_t held[4]; /* } bytes are in the next token */
} ls_decoding;

/* Appends the characters that the token completes, and bytes that belong to no character. */
void ls_decoding_add(ls_decoding *, uint32_t token, ls_buf *out);
/* Appends the bytes of a character that was not completed. */
void ls_decoding_end(ls_decoding *, ls_buf *out);

/* ---- the vocabulary ---- */

const char *ls_tokenizer_kind(const ls_tokenizer *); /* "byte-level BPE" or "SentencePiece BPE" */
uint32_t ls_tokenizer_vocab(const ls_tokenizer *);
/* The vocabulary without the unused tokens at its end, which only fill up a model's rows. */
uint32_t ls_tokenizer_used(const ls_tokenizer *);
uint32_t ls_tokenizer_merges(const ls_tokenizer *); /* the number of merges */
const ls_added_tokens *ls_tokenizer_added(const ls_tokenizer *);

/* Bytes of a text that the token stands for: none, if it is special. */
size_t ls_tokenizer_text_nbytes(const ls_tokenizer *, uint32_t token);

/* The token that ends a document, by the names that published models have for it, or
 * LS_NO_TOKEN. */
uint32_t ls_tokenizer_end_of_text(const ls_tokenizer *);

/* The id of an added token, e.g. "<|im_end|>", or LS_NO_TOKEN. */
uint32_t ls_tokenizer_find(const ls_tokenizer *, const char *content);

#endif
