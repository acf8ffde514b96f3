/* call_answer.h - the parts of a reply: what the model thought, what it says, and calls of tools,
 * as OpenAI's JSON. */
#ifndef LS_SERVE_CALL_ANSWER_H
#define LS_SERVE_CALL_ANSWER_H

#include "serve/answer.h"

/* A reply as far as it is written. */
typedef struct ls_answer_parts {
    const char *thought, *content; /* [nthought], [calls.ncontent] within the reply's text */
    size_t nthought;
    ls_tool_text calls; /* none, if the request has no tools; its content goes on behind them */
    bool called;        /* there are calls, and the arguments of all are JSON: none has been cut */
} ls_answer_parts;

/* Are its arguments JSON? */
bool ls_call_is_complete(const ls_tool_call *);

/* The caller frees its calls. */
ls_answer_parts ls_answer_parts_of(const ls_text_answer *, const ls_reply *);
/* Tokens of what the model thought, with the mark that ends it. */
int64_t ls_answer_thought_tokens(const ls_text_answer *, const ls_reply *);

/* The id of a call of reply i: nine letters and digits, since Mistral's templates refuse others. */
typedef struct ls_call_name {
    char text[10];
} ls_call_name;
ls_call_name ls_call_name_of(const ls_text_answer *, size_t i, size_t call);

/* The member tool_calls of reply i's message. */
ls_json *ls_calls_write(const ls_text_answer *, size_t i, const ls_tool_text *);
/* The next piece of tool_calls that a stream sends: a call's name, or a part of its arguments.
 * NULL: there is none. */
ls_json *ls_calls_next(const ls_text_answer *, size_t i, const ls_tool_text *, ls_answer_sent *);

#endif
