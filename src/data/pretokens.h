/* pretokens.h - a text cut into words as GPT-2 cuts it, before any merge.
 *
 * Merges never cross these cuts. The words follow each other without gaps: together they are the
 * text.
 */
#ifndef LS_DATA_PRETOKENS_H
#define LS_DATA_PRETOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_pretokens ls_pretokens; /* one thread; the owner frees it; borrows the text */

/* Refuses a text that is not UTF-8, naming the place; `what` names the text. */
ls_status ls_pretokens_create(const uint8_t *text, size_t nbytes, const char *what,
                              ls_pretokens **p_p, ls_error *);

/* The next word, a part of the text; *nbytes_p is 0 at the end. */
ls_status ls_pretokens_next(ls_pretokens *, const uint8_t **word_p, size_t *nbytes_p, ls_error *);

void ls_pretokens_free(ls_pretokens *); /* NULL is fine */

#endif
