/* spans.h - a conversation as text, and which parts of it are trained on.
 *
 * The parts are found by comparing what the template writes for more and more messages: an answer
 * is what it adds to the prompt before it. So the end of a turn belongs to the answer, and is
 * learned. */
#ifndef LS_CHAT_SPANS_H
#define LS_CHAT_SPANS_H

#include "chat/chat_format.h"
#include "chat/conversation.h"
#include "config/choices.h"

typedef struct ls_chat_spans {
    ls_buf text;
    ls_text_range *trained; /* [ntrained] ascending parts of the text, none empty */
    size_t ntrained;
    ls_text_range *plain; /* [nplain] ascending: names of special tokens are text there */
    size_t nplain;
    bool ends;     /* the token that ends a text comes after it */
    bool separate; /* the template writes answers in another way when messages follow: each needs a
                    * text of its own, ls_chat_spans_answer(), and nothing else is set */
} ls_chat_spans;

/* LS_EINVAL: the template refuses the conversation, or nothing of it is trained on. */
ls_status ls_chat_spans_find(const ls_chat_format *, const ls_conversation *, ls_chat_loss,
                             ls_chat_spans *s_p, ls_error *);
/* The conversation up to message i, an answer, which alone is trained on. LS_EINVAL: the answer
 * can't be told from its prompt. */
ls_status ls_chat_spans_answer(const ls_chat_format *, const ls_conversation *, size_t i,
                               ls_chat_spans *s_p, ls_error *);
void ls_chat_spans_free(ls_chat_spans *);

#endif
