/* text_cut.h - a text as its distinct words and the order in which they occur.
 *
 * The words are those of pretokens.h. A tokenizer that is trained on a text and then encodes it
 * uses one cut for both.
 */
#ifndef LS_DATA_TEXT_CUT_H
#define LS_DATA_TEXT_CUT_H

#include "base/bar.h"
#include "base/error.h"
#include "data/documents.h"
#include "data/pretokens.h"
#include "data/words.h"

#define LS_CUT_TOKEN 0x80000000u /* in order[]: added to the id of a token that is no word */

typedef struct ls_text_cut {
    ls_words words;
    uint32_t *order; /* [n] the text is word order[0], word order[1] ... */
    size_t n, cap;
    size_t *marks; /* [nmarks] where each document ends in order[], behind its end-of-text token */
    size_t nmarks; /* 0: it is one text */
    ls_bar *bar;   /* shows the bytes that were cut; NULL: nothing does */
    uint64_t nread;
} ls_text_cut;

/* Cuts a text as GPT-2 does. The caller frees it with ls_text_cut_free(). Errors: LS_EINVAL: not
 * UTF-8; `what` names the text. */
ls_status ls_text_cut_make(const uint8_t *text, size_t nbytes, const char *what, ls_text_cut *c_p,
                           ls_error *);
/* Cuts a text in documents. */
ls_status ls_text_cut_documents(const uint8_t *text, const ls_documents *, const char *what,
                                ls_text_cut *c_p, ls_error *);

/* Appends the words of the text that `p` begins with. LS_EINVAL: those of ls_pretokens_next(). */
ls_status ls_text_cut_append(ls_text_cut *, ls_pretokens *p, const char *what, ls_error *);
/* Appends a token; id < LS_CUT_TOKEN. */
void ls_text_cut_append_token(ls_text_cut *, uint32_t id);
/* Ends a document with this token. */
void ls_text_cut_end(ls_text_cut *, uint32_t end);

void ls_text_cut_free(ls_text_cut *); /* afterwards it is empty */

#endif
