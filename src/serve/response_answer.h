/* response_answer.h - a reply as OpenAI's response: one object, or the named events of a stream. */
#ifndef LS_SERVE_RESPONSE_ANSWER_H
#define LS_SERVE_RESPONSE_ANSWER_H

#include "serve/answer.h"

/* Appends the object of an answer that is complete. */
void ls_response_write(const ls_text_answer *, ls_buf *out);
/* Appends events for what is new of its reply, after which has ended also those that end the
 * stream. */
void ls_response_stream(const ls_text_answer *, ls_answer_sent *, ls_buf *out);

#endif
