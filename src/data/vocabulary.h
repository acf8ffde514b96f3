/* vocabulary.h - builds the vocabulary of a tokenizer from tokens as files spell them, and checks
 * the invariants of bpe.h. For tokenizer_json.c and tokenizer_parts.c. */
#ifndef LS_DATA_VOCABULARY_H
#define LS_DATA_VOCABULARY_H

#include "data/bpe.h"

/* Adds the next token, whose kind is set already: kinds[tokens.n]. text [n] is its spelling; of an
 * added token, its content. LS_EINVAL: it is empty, not spelt as tokens of this kind are, or stands
 * for the same bytes as another; `what` names the file. */
ls_status ls_vocabulary_add(ls_tokenizer *, const char *text, size_t n, const char *what,
                            ls_error *);

/* Adds a token, which ls_vocabulary_add() adds too, to the list of those that are looked for in the
 * text. Its content is copied. */
ls_status ls_vocabulary_name(ls_tokenizer *, const ls_added_token *, const char *what, ls_error *);

/* After tokens and merges: checks that texts can be encoded, and finds out where they may be cut.
 * LS_EINVAL: a byte or character has no token. */
ls_status ls_vocabulary_finish(ls_tokenizer *, const char *what, ls_error *);

#endif
