/* documents.h - a text in documents: an end-of-text token behind each, which are held out for
 * validation, and the order of the others.
 *
 * A model that reads whole documents learns where a text ends, and that the next one has nothing to
 * do with it. What is held out is a function of the documents alone, as in split.h: all runs on the
 * same documents hold out the same ones, which come last. The others are in an order drawn with the
 * run's seed.
 */
#ifndef LS_DATA_DOCUMENTS_H
#define LS_DATA_DOCUMENTS_H

#include <stdint.h>

#include "data/added_tokens.h"

#define LS_END_OF_TEXT "<|endoftext|>" /* of tokenizers that are trained here, as GPT-2's */

typedef struct ls_documents {
    const ls_text_range *list; /* [n] in the order of the text */
    size_t n;
    uint32_t end; /* the token behind each */
} ls_documents;

/* The tokens of documents while they are arranged. */
typedef struct ls_documents_tokens {
    uint32_t *ids; /* [n] arranging replaces it */
    size_t n;
    const size_t *ends; /* [ndocuments] where each document ends */
    size_t ndocuments;
} ls_documents_tokens;

typedef struct ls_arranged {
    size_t val_first; /* the first token of those that are held out */
    size_t nheld;     /* documents; 0: each is longer than what is to be held out, so it is the end
                       * of the last one */
} ls_arranged;

/* Puts documents of nval tokens or more last, and the others in the order of the seed. At least
 * `least` tokens remain for these: nval + least <= n. */
ls_arranged ls_documents_arrange(ls_documents_tokens *, size_t nval, size_t least, uint64_t seed);

#endif
