/* cut.h - a text as its distinct words and the order in which they occur.
 *
 * The words are those of pretokens.h. A tokenizer that is trained on a text and then encodes it
 * uses one cut for both.
 */
#ifndef LS_DATA_CUT_H
#define LS_DATA_CUT_H

#include "base/error.h"
#include "data/words.h"

typedef struct ls_cut {
    ls_words words;
    uint32_t *order; /* [n] the text is word order[0], word order[1] ... */
    size_t n, cap;
} ls_cut;

/* The caller frees it with ls_cut_free(). Errors: LS_EINVAL: not UTF-8; `what` names the text. */
ls_status ls_cut_make(const uint8_t *text, size_t nbytes, const char *what, ls_cut *c_p,
                      ls_error *);

void ls_cut_free(ls_cut *); /* afterwards it is empty */

#endif
