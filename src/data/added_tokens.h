/* added_tokens.h - tokens with a name that is looked for in the text, before it is cut into words:
 * <|im_start|>, or words that were added to a vocabulary.
 *
 * Where several names match, the leftmost counts, and of those the longest. Names of special tokens
 * are recognised on request only, so that data can't forge them; the other ones always are.
 */
#ifndef LS_DATA_ADDED_TOKENS_H
#define LS_DATA_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_added_token {
    char *content; /* [nbytes], followed by a 0 */
    size_t nbytes;
    uint32_t id;
    bool special;        /* skipped by decoders on request */
    bool single_word;    /* not within a word */
    bool lstrip, rstrip; /* takes the white space before, after it */
    bool normalized;     /* looked for in the normalized text */
} ls_added_token;

typedef struct ls_name_node {
    uint32_t child, next; /* the first child, the next child of its parent; 0: none */
    uint32_t token;       /* index of the token whose name ends here, + 1; 0: none */
    uint8_t byte;
} ls_name_node;

/* Names as a tree of bytes. */
typedef struct ls_name_tree {
    ls_name_node *nodes; /* [n] node 0 is the root; NULL: there are no names */
    uint32_t n;
    uint32_t first[256]; /* the root's child for a byte; 0: none */
} ls_name_tree;

/* One owner. A zero-initialised list is empty. Constant while a tokenizer uses it. */
typedef struct ls_added_tokens {
    ls_added_token *tokens; /* [n] */
    uint32_t n;
    ls_name_tree raw, normalized;
} ls_added_tokens;

/* A part of a text. */
typedef struct ls_text_range {
    size_t from, to; /* bytes */
} ls_text_range;

typedef struct ls_added_span {
    size_t from, to;
    uint32_t id; /* LS_NO_TOKEN: text between tokens */
} ls_added_span;
#define LS_NO_TOKEN UINT32_MAX

typedef struct ls_added_spans {
    ls_added_span *spans; /* [n] */
    size_t n;
} ls_added_spans;

/* What is looked for. */
typedef struct ls_added_query {
    bool normalized;            /* the text is normalized: names of `normalized`, else of `raw` */
    bool special;               /* special tokens, too */
    const ls_text_range *plain; /* [nplain] ascending: no special token is recognised in these */
    size_t nplain;
} ls_added_query;

/* Appends a copy of the token. `pattern` [npattern] is what is looked for: its content, or what the
 * normalizer makes of that. LS_EINVAL: another token has the same pattern, or it is empty or longer
 * than 1024 bytes; `what` names the file. */
ls_status ls_added_tokens_add(ls_added_tokens *, const ls_added_token *, const char *pattern,
                              size_t npattern, const char *what, ls_error *);

/* The token with this content, or NULL. */
const ls_added_token *ls_added_tokens_find(const ls_added_tokens *, const char *content, size_t n);

/* Appends the parts of text [n]: tokens, and what is between them. Tokens with lstrip or rstrip
 * cover the white space that they take. */
void ls_added_tokens_split(const ls_added_tokens *, const uint8_t *text, size_t n,
                           const ls_added_query *, ls_added_spans *out);

void ls_added_tokens_free(ls_added_tokens *);

#endif
