/* pretokens.h - cuts a text into words as GPT-2 does, before any merge.
 *
 * Merges never cross a cut. The words follow each other without gaps: joined, they are the text.
 */
#ifndef LS_DATA_PRETOKENS_H
#define LS_DATA_PRETOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_pretokens ls_pretokens; /* one thread at a time; borrows the text */

/* LS_EINVAL: the text is not UTF-8; the message names the place. `what` names the text. */
ls_status ls_pretokens_create(const uint8_t *text, size_t nbytes, const char *what,
                              ls_pretokens **p_p, ls_error *);

/* The next word, a part of the text; *nbytes_p is 0 at the end. */
ls_status ls_pretokens_next(ls_pretokens *, const uint8_t **word_p, size_t *nbytes_p, ls_error *);

void ls_pretokens_free(ls_pretokens *); /* NULL is allowed */

#endif
