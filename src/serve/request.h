/* request.h - what a body of POST /v1/completions, /v1/chat/completions, /v1/responses or
 * /v1/embeddings asks for.
 *
 * The fields are OpenAI's, and of vLLM's further ones those that are named here. A field that would
 * change the answer and is not supported is refused by name; others that are unknown are left out,
 * and named in the log once.
 */
#ifndef LS_SERVE_REQUEST_H
#define LS_SERVE_REQUEST_H

#include "base/json.h"
#include "chat/chat_format.h"
#include "chat/thought.h"
#include "grammar/constraint_store.h"
#include "serve/reply.h"
#include "serve/tools.h"

enum { LS_REQUEST_REPLIES = 128, LS_REQUEST_VECTORS = 2048 };

typedef enum ls_request_kind {
    LS_REQUEST_TEXT,
    LS_REQUEST_CHAT,
    LS_REQUEST_RESPONSE, /* a chat in another form (response_form.h) */
    LS_REQUEST_EMBEDDING /* vectors of texts, without any that are written */
} ls_request_kind;

/* What requests are made for. */
typedef struct ls_request_model {
    const ls_trained *trained;
    const ls_chat_format *format; /* with a template, or NULL: there are no chats */
    const char *name;             /* of the model */
    const char *const *adapters;  /* [nadapters] the names of adapters beside it */
    int nadapters;
    int64_t context;
    ls_tool_template tool_template;   /* of the format */
    ls_thought_form thought;          /* of the tokenizer */
    ls_constraint_store *constraints; /* of earlier requests */
} ls_request_model;

typedef struct ls_request_prompt {
    uint32_t *tokens; /* [n] */
    int64_t n;
    char *text; /* of completions, for echo: as it was sent; NULL: it was tokens */
} ls_request_prompt;

typedef struct ls_text_request {
    bool chat, stream, usage, echo; /* usage: a stream ends with it */
    bool usage_each;                /* and each of its events has it */
    bool base64;                    /* vectors are written so */
    ls_request_prompt *prompts;     /* [nprompts] */
    size_t nprompts;
    int64_t n; /* replies to each prompt */
    uint64_t seed;
    int adapter; /* from 1 on; 0: the model itself */
    ls_reply_rule rule;
    char *stops[LS_REPLY_STOPS];
    ls_tools tools;                   /* of chats */
    ls_json *asked;                   /* the body, if the answer is a response; else NULL */
    ls_constraint_store *constraints; /* that the rule's constraint is from */
} ls_text_request;

/* Why a request is refused. */
typedef struct ls_refusal {
    int status;        /* of HTTP */
    const char *type;  /* "invalid_request_error" */
    const char *param; /* the field; NULL: none */
    const char *code;  /* NULL: none */
    ls_error error;    /* its message */
} ls_refusal;

/* After the other fields are set: what it needs for itself. */
void ls_request_model_open(ls_request_model *);
void ls_request_model_close(ls_request_model *);
/* The name by which a request asked for the model, or for an adapter of it. */
const char *ls_request_model_name(const ls_request_model *, int adapter);

/* False: it is refused. The caller calls ls_request_free() in any case. */
bool ls_request_read(const ls_request_model *, ls_request_kind, const char *body, size_t nbytes,
                     ls_text_request *, ls_refusal *);
void ls_request_free(ls_text_request *);

/* The tokens of {"prompt" or "content": text}, as /tokenize has it. The caller frees
 * list_p->ids. */
ls_status ls_request_tokens(const ls_request_model *, const char *text, bool begin,
                            ls_token_list *list_p, ls_error *);

#endif
