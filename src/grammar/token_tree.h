/* token_tree.h - a tokenizer's tokens as a tree of their bytes, in the order of a walk through it.
 *
 * A special token is no text: its bytes are its number, in digits that no text has as bytes. So a
 * grammar allows it only where it says so.
 */
#ifndef LS_GRAMMAR_TOKEN_TREE_H
#define LS_GRAMMAR_TOKEN_TREE_H

#include "data/tokenizer.h"
#include "grammar/grammar.h"

typedef struct ls_token_node {
    uint32_t end;    /* the first node that is not below this one */
    uint32_t tokens; /* its first token */
    uint16_t depth;  /* bytes from the root, with its own */
    uint8_t byte;
} ls_token_node;

/* Constant once it is made: any threads may use it. */
typedef struct ls_token_tree {
    const ls_tokenizer *tokenizer;
    ls_token_node *nodes; /* [n], and one behind them */
    uint32_t n;
    uint32_t *tokens;    /* [ntokens] in the order of the nodes */
    uint32_t ntokens, V; /* V: all tokens have numbers below it */
    int depth;           /* the longest token's bytes */
    ls_byte_set bytes;   /* those that are tokens of their own: any text of them can be written */
} ls_token_tree;

/* Of the tokens below V. The tokenizer must outlive it. */
ls_token_tree *ls_token_tree_new(const ls_tokenizer *, uint32_t V);
void ls_token_tree_free(ls_token_tree *); /* NULL is allowed */

enum { LS_TOKEN_DIGITS = 8 };

/* The bytes of a token in the tree, [*n_p]: the tokenizer's, or digits. */
const uint8_t *ls_token_tree_bytes(const ls_tokenizer *, uint32_t token,
                                   uint8_t digits[LS_TOKEN_DIGITS], size_t *n_p);

#endif
