/* messages.h - the conversation of a request, as the model reads it before it answers. */
#ifndef LS_SERVE_MESSAGES_H
#define LS_SERVE_MESSAGES_H

#include "chat/prompt.h"

/* Is it a field about the end of the prompt? */
bool ls_messages_has(const char *field);

/* The tokens of body's "messages", of the tools (NULL: none), and of the beginning of an answer;
 * the caller frees list_p->ids. Arguments of calls may be a text that contains the JSON. The
 * members of "chat_template_kwargs" are variables of the template, beside those that it has
 * anyway. With "continue_final_message" the last message goes on, and with
 * "add_generation_prompt" false no answer begins. A template that writes a date writes today's.
 * *field_p: the field that an error is about. LS_EINVAL: a message is damaged, or the template
 * refuses it. */
ls_status ls_messages_encode(const ls_chat_format *, const ls_json *body, const ls_json *tools,
                             ls_token_list *list_p, const char **field_p, ls_error *);

#endif
