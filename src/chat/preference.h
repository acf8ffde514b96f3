/* preference.h - a line with two answers to a prompt, of which one is preferred.
 *
 *     {"prompt": [messages], "chosen": [messages], "rejected": [messages]}
 *     {"chosen": [messages], "rejected": [messages]}    the prompt is what both begin with
 *     {"question": "...", "chosen": "...", "rejected": "..."}    a message of the user
 *     {"instruction": "...", "input": "...", "chosen": "...", "rejected": "..."}        Alpaca's
 *     {"conversations": [messages], "chosen": message, "rejected": message}             ShareGPT's
 *     {"prompt": "...", "chosen": "...", "rejected": "..."}      texts, without a template
 *     {"chosen": "...", "rejected": "..."}                       the same
 *
 * Where answers are lists and the prompt is a text, the answers have the prompt, too. All but texts
 * have "system" and "tools", as conversations (conversation.h).
 */
#ifndef LS_CHAT_PREFERENCE_H
#define LS_CHAT_PREFERENCE_H

#include "chat/conversation.h"

enum { LS_CHOSEN, LS_REJECTED };
extern const char *const ls_preference_keys[2]; /* "chosen", "rejected" */

typedef struct ls_preference {
    ls_conversation answers[2]; /* each with the prompt */
    char *prompt;               /* of texts with a common beginning; else NULL */
    const char *const *keys;    /* the line's keys that are read; the last is NULL */
} ls_preference;

/* Does the line have both answers? */
bool ls_preference_is(const ls_json *line);
/* Borrows from the line, which must outlive it. LS_EINVAL: a key is missing, an answer is empty, or
 * the answers are the same; the message names the key. */
ls_status ls_preference_read(const ls_json *line, ls_preference *p_p, ls_error *);
void ls_preference_free(ls_preference *);

#endif
