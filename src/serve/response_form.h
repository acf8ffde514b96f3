/* response_form.h - a request for a response (OpenAI's POST /v1/responses) as the body of a chat
 * that asks for the same. No response is stored: what needs one is refused.
 *
 *     {"instructions": text, "input": text or [items], "max_output_tokens", "text": {"format"},
 *      "tools": [{"type": "function", "name", "description", "parameters"}], "tool_choice"}
 *
 * Items are {"role", "content"}, {"type": "function_call", "call_id", "name", "arguments"} and
 * {"type": "function_call_output", "call_id", "output"}. Other fields are those of chats.
 */
#ifndef LS_SERVE_RESPONSE_FORM_H
#define LS_SERVE_RESPONSE_FORM_H

#include "base/json.h"

/* The member of the chat's body that has text.format. */
#define LS_RESPONSE_FORMAT "text.format"

/* The caller frees the chat. LS_EINVAL: a field, *field_p, is damaged or not supported. */
ls_status ls_response_form_read(const ls_json *body, ls_json **chat_p, const char **field_p,
                                ls_error *);

#endif
