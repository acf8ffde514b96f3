/* sentencepiece.h - what SentencePiece's tokenizers (Llama 2, Mistral) have beyond merges: a space
 * before the first word, single bytes as tokens, and merges that scores order. */
#ifndef LS_DATA_SENTENCEPIECE_H
#define LS_DATA_SENTENCEPIECE_H

#include "data/bpe.h"

/* Appends a piece of text [n] as the tokenizer sees it: U+2581 is a space, and a space may come
 * first. is_first: it begins the text. Returns false, and appends nothing, if that is the text
 * itself. */
bool ls_sentencepiece_normalize(ls_space_rule, const uint8_t *text, size_t n, bool is_first,
                                ls_buf *out);

/* Adds the merges of a vocabulary whose tokens have scores [vocab]: two neighbours whose bytes
 * joined are a normal token merge, the one with the highest score first. LS_EINVAL: two tokens that
 * merges make have the same score and are not both runs of one character, a score is no number, or
 * a token is not UTF-8 or longer than 256 bytes; `what` names the file. */
ls_status ls_sentencepiece_add_merges(ls_tokenizer *, const float *scores, const char *what,
                                      ls_error *);

/* Whether a text may be cut before each run of spaces, with the same tokens as uncut: no merge
 * joins what comes before a space with it. */
bool ls_sentencepiece_may_cut(const ls_tokenizer *);

#endif
