/* message.h - a message of a conversation, from the forms that files have.
 *
 *     {"role": "user", "content": "..."}          also a list of parts, which are texts
 *     {"from": "human", "value": "..."}           ShareGPT's
 *
 * Members that are null or an empty list say nothing, and are left out, except a null content. An
 * answer's "weight" says whether it is trained on: 1, or 0.
 */
#ifndef LS_CHAT_MESSAGE_H
#define LS_CHAT_MESSAGE_H

#include "base/json.h"

/* Message `number`, from 1, as templates read it: with role and content; the caller frees it.
 * LS_EINVAL: it has no role that is known, or no content; the message names it. */
ls_status ls_message_read(const ls_json *, size_t number, ls_json **m_p, ls_error *);
ls_json *ls_message_new(const char *role, const char *content);

/* A text, or the text of a list of parts; the caller frees it. NULL: it is neither. */
ls_json *ls_message_text(const ls_json *content);

const char *ls_message_role(const ls_json *message);
/* Is it the key of a message's weight? */
bool ls_message_is_weight(const char *key);
bool ls_message_is_answer(const ls_json *message);  /* is the role assistant? */
bool ls_message_is_silent(const ls_json *message);  /* it has weight 0 */
bool ls_message_is_learned(const ls_json *message); /* an answer whose weight is not 0 */

#endif
