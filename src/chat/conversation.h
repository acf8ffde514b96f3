/* conversation.h - a line of a file of conversations: which form it has is found by its keys.
 *
 *     {"messages": [{"role": "user", "content": "..."}, ...]}          also "tools"
 *     {"conversations": [{"from": "human", "value": "..."}, ...]}      ShareGPT's
 *     {"instruction": "...", "input": "...", "output": "..."}          Alpaca's; "system", "history"
 *     {"prompt": [messages], "completion": [messages]}
 *     {"prompt": "...", "completion": "..."}                           texts, without a template
 *     {"text": "..."}                                                  the same
 */
#ifndef LS_CHAT_CONVERSATION_H
#define LS_CHAT_CONVERSATION_H

#include "base/json.h"

typedef struct ls_conversation {
    ls_json *messages;    /* NULL: `text` */
    size_t nprompt;       /* the first messages, whose answers are not trained on */
    const ls_json *tools; /* NULL: none */
    const char *prompt;   /* of `text`: what comes before; "": nothing */
    const char *text;
} ls_conversation;

/* Borrows from the line, which must outlive it. LS_EINVAL: the line has none of these forms; the
 * message names the key. */
ls_status ls_conversation_read(const ls_json *line, ls_conversation *c_p, ls_error *);
/* The messages of the lists with these keys, one after the other; before: NULL: there is none. */
ls_status ls_conversation_of_lists(const ls_json *line, const char *before, const char *key,
                                   ls_conversation *c_p, ls_error *);
void ls_conversation_free(ls_conversation *);

/* Of a message. */
const char *ls_message_role(const ls_json *message);
bool ls_message_is_answer(const ls_json *message); /* of the assistant */

#endif
