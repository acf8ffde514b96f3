/* chat_format.h - how a model writes conversations: its template, its tokenizer, its special
 * tokens.
 *
 * Constant once it is made: any threads may use it. */
#ifndef LS_CHAT_CHAT_FORMAT_H
#define LS_CHAT_CHAT_FORMAT_H

#include "base/json.h"
#include "data/tokenizer.h"
#include "template/template.h"

enum { LS_CHAT_ENDS = 32 };

typedef struct ls_chat_format {
    const ls_tokenizer *tokenizer; /* not owned */
    ls_template *template;         /* NULL: the model has none */
    ls_template *tool_template;    /* of conversations with tools; NULL: `template` */
    char *bos, *eos;               /* bos_token and eos_token of the template; NULL: none */
    uint32_t end;                  /* ends a text: the token of eos, or LS_NO_TOKEN */
    uint32_t ends[LS_CHAT_ENDS];   /* [nends] tokens that end an answer */
    int nends;
} ls_chat_format;

/* Sets the ends of answers: ids [n] of the model's config, at most 16, `end`, and those that
 * templates end turns with. */
void ls_chat_format_set_ends(ls_chat_format *, const int64_t *ids, int n);
void ls_chat_format_free(ls_chat_format *);

typedef struct ls_chat_text {
    const ls_json *messages;  /* an array of {"role", "content"} */
    size_t n;                 /* of them, the first */
    const ls_json *tools;     /* NULL: none */
    bool prompt;              /* ends with the beginning of an answer */
    bool continues;           /* of a rendering: ends with the last message's content, without
                               * what the template writes behind it */
    const ls_json *variables; /* an object: further ones of the template; NULL: none */
    const struct tm *now;     /* NULL: LS_CHAT_DATE */
} ls_chat_text;

/* Appends the conversation as the template writes it. LS_EINVAL: there is no template, or it
 * refuses the conversation. */
ls_status ls_chat_write(const ls_chat_format *, const ls_chat_text *, ls_buf *out, ls_error *);

/* Does the template write this member of messages, or "tools"? That of SmolLM3 has functions as
 * xml_tools, that of Phi-4-mini as a text of the system's message, and both have calls in contents:
 * for them, tools and tool_calls become these. */
bool ls_chat_writes(const ls_template *, const char *key);

/* The date of training samples, since some templates write today's: 26 July 2024, which Llama 3's
 * template takes where it knows no other. */
extern const struct tm LS_CHAT_DATE;

#endif
