/* prompt.h - a conversation as a model reads it before it answers.
 *
 * Names of special tokens in messages are ordinary text: a message can't forge another one. */
#ifndef LS_CHAT_PROMPT_H
#define LS_CHAT_PROMPT_H

#include "chat/chat_format.h"

typedef struct ls_chat_message {
    const char *role;
    char *text;
} ls_chat_message;

/* An array of objects with "role" and "content". */
ls_json *ls_chat_messages_json(const ls_chat_message *messages, size_t n);

typedef struct ls_chat_prompt {
    const ls_chat_message *messages; /* [n] */
    size_t n;
    const struct tm *now; /* NULL: LS_CHAT_DATE */
} ls_chat_prompt;

/* The tokens of the messages and of an answer's beginning; the caller frees list_p->ids. LS_EINVAL:
 * the template refuses the messages. */
ls_status ls_chat_prompt_encode(const ls_chat_format *, const ls_chat_prompt *,
                                ls_token_list *list_p, ls_error *);

/* The same of a text with any messages (chat/message.h). */
ls_status ls_chat_text_encode(const ls_chat_format *, const ls_chat_text *, ls_token_list *list_p,
                              ls_error *);

#endif
