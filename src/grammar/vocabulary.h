/* vocabulary.h - a tokenizer's tokens as a tree of their bytes, in the order of a walk through it.
 *
 * Without special tokens, which are no text. */
#ifndef LS_GRAMMAR_VOCABULARY_H
#define LS_GRAMMAR_VOCABULARY_H

#include "data/tokenizer.h"
#include "grammar/grammar.h"

typedef struct ls_vocabulary_node {
    uint32_t end;    /* the first node that is not below this one */
    uint32_t tokens; /* its first token */
    uint16_t depth;  /* bytes from the root, with its own */
    uint8_t byte;
} ls_vocabulary_node;

/* Constant once it is made: any threads may use it. */
typedef struct ls_vocabulary {
    const ls_tokenizer *tokenizer;
    ls_vocabulary_node *nodes; /* [n], and one behind them */
    uint32_t n;
    uint32_t *tokens;    /* [ntokens] in the order of the nodes */
    uint32_t ntokens, V; /* V: all tokens have numbers below it */
    int depth;           /* the longest token's bytes */
    ls_byte_set bytes;   /* those that are tokens of their own: any text of them can be written */
} ls_vocabulary;

/* Of the tokens below V. The tokenizer must outlive it. */
ls_vocabulary *ls_vocabulary_new(const ls_tokenizer *, uint32_t V);
void ls_vocabulary_free(ls_vocabulary *); /* NULL is allowed */

#endif
