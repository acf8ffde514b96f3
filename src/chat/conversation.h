/* conversation.h - a line of a file of conversations: which form it has is found by its keys.
 *
 *     {"messages": [{"role": "user", "content": "..."}, ...]}
 *     {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's
 *     {"instruction": "...", "input": "...", "output": "..."}          Alpaca's; also "history"
 *     {"instruction": "...", "context": "...", "response": "..."}      Dolly's
 *     {"question": "...", "answer": "..."}                             also with "response"; and
 *                                                                      "query" or "prompt" with it
 *     {"prompt": [messages], "completion": [messages]}
 *     {"prompt": "...", "completion": "..."}                           texts, without a template
 *     {"text": "..."}                                                  the same
 *
 * Messages have the form of either of the first two lines. All forms but texts have "system", a
 * text before the messages, and "tools", a list or its JSON text ("functions": OpenAI's former
 * name).
 */
#ifndef LS_CHAT_CONVERSATION_H
#define LS_CHAT_CONVERSATION_H

#include "chat/message.h"

typedef struct ls_conversation {
    ls_json *messages;       /* NULL: `text` */
    size_t nprompt;          /* the first messages, whose answers are not trained on */
    ls_json *tools;          /* NULL: none */
    const char *prompt;      /* of `text`: what comes before; "": nothing */
    const char *text;        /* borrowed from the line, as prompt */
    const char *const *keys; /* the line's keys that are read; the last is NULL */
} ls_conversation;

/* The line must outlive the conversation. LS_EINVAL: the line has none of these forms; the message
 * names the key. */
ls_status ls_conversation_read(const ls_json *line, ls_conversation *c_p, ls_error *);
void ls_conversation_free(ls_conversation *);

/* Which form the line has: the first of its keys. NULL: none. */
const char *ls_conversation_form(const ls_json *line);

/* ---- parts, of which other lines are made ---- */

/* Begins a conversation with the line's system and tools. */
ls_status ls_conversation_begin(const ls_json *line, ls_conversation *, ls_error *);
/* Appends a list of messages, or one message; `key` names it. */
ls_status ls_conversation_add(ls_conversation *, const ls_json *list, const char *key, ls_error *);
void ls_conversation_add_text(ls_conversation *, const char *role, const char *text);
/* Appends the history and the question of a line of Alpaca's form. */
ls_status ls_conversation_ask(const ls_json *line, ls_conversation *, ls_error *);
/* Texts have no template, which would write a system message. */
ls_status ls_conversation_check_texts(const ls_json *line, ls_error *);

#endif
