/* show.h - a sample for people: its text, with brackets around what is trained on, or colours in
 * place of them (base/highlight.h). Such brackets in the text itself are escaped. */
#ifndef LS_CHAT_SHOW_H
#define LS_CHAT_SHOW_H

#include "base/highlight.h"
#include "chat/encode.h"

#define LS_SHOWN_BEGIN "\xe2\x9f\xa6" /* U+27E6, a white square bracket */
#define LS_SHOWN_END   "\xe2\x9f\xa7"

/* Where it is: "in colour", or "between [[ and ]]". */
const char *ls_shown_as(const ls_highlight *);

/* Appends the text of the tokens, at most about `most` bytes. */
void ls_chat_show(const ls_tokenizer *, const ls_chat_tokens *, size_t most, ls_buf *out);

#endif
