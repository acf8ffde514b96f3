/* remote.h - a model that another program serves over OpenAI's API: lockstep serve, llama.cpp's
 * server, vLLM. */
#ifndef LS_SERVE_REMOTE_H
#define LS_SERVE_REMOTE_H

#include "infer/talk.h"
#include "infer/text_form.h"
#include "infer/text_writer.h"

enum { LS_REMOTE_TOKENS = 0 }; /* the server decides how many tokens it writes */

typedef struct ls_remote ls_remote;

typedef struct ls_remote_options {
    const char *url;          /* http://HOST:PORT, with or without /v1 */
    const char *model;        /* NULL: the first that the server lists */
    const char *key_file;     /* its first line is the key; NULL: none */
    const char *authorities;  /* a PEM file (http/client.h), or NULL */
    const ls_text_form *form; /* of answers, which are checked; it outlives it */
} ls_remote_options;

/* Asks the server for its models. Errors name the server and a remedy. */
ls_status ls_remote_open(const ls_remote_options *, ls_remote **r_p, ls_error *);
void ls_remote_close(ls_remote *); /* NULL is allowed */

const char *ls_remote_model(const ls_remote *);
ls_talk *ls_remote_talk(ls_remote *); /* the conversation with it */

/* Adds the user's message, and takes the model's answer as it is written, as ls_chat_say() does.
 * Members `number`, `first`, `ends` and `special` of ls_writing are ignored, and where its rule
 * leaves a number unset, the server decides. The message is dropped after an error, or if the
 * answer is interrupted before it begins. g_p->ntokens is -1 if the server does not report it. */
ls_status ls_remote_say(ls_remote *, const char *text, const ls_writing *, ls_generated *g_p,
                        const char **answer_p, ls_error *);

#endif
