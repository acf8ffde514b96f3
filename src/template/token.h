/* token.h - a template's text as tokens: plain text, and what is between {{ }} and {% %}. */
#ifndef LS_TEMPLATE_TOKEN_H
#define LS_TEMPLATE_TOKEN_H

#include <stdbool.h>

#include "template/arena.h"

typedef enum ls_template_token_kind {
    LS_TTOKEN_END, /* of the template */
    LS_TTOKEN_TEXT,
    LS_TTOKEN_TAG, /* {% */
    LS_TTOKEN_TAG_END,
    LS_TTOKEN_PRINT, /* {{ */
    LS_TTOKEN_PRINT_END,
    LS_TTOKEN_NAME,
    LS_TTOKEN_STRING,
    LS_TTOKEN_INTEGER,
    LS_TTOKEN_REAL,
    LS_TTOKEN_OPERATOR
} ls_template_token_kind;

typedef struct ls_template_token {
    ls_template_token_kind kind;
    int line, column; /* from 1 */
    const char *text; /* [n], followed by a 0: a string's characters without quotes and escapes */
    size_t n;
    int64_t integer;
    double real;
} ls_template_token;

typedef struct ls_template_token_list {
    ls_template_token *list; /* [n]; the last is LS_TTOKEN_END. The caller frees it */
    size_t n;
} ls_template_token_list;

/* Tokens of text [n]; their texts are in the arena. Errors begin with `name`, line and column. */
ls_status ls_template_tokens(const char *text, size_t n, const char *name, ls_template_arena *,
                             ls_template_token_list *tokens_p, ls_error *);

#endif
