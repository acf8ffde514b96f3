/* tool_form.h - how a model calls tools: the form in which its template writes calls, and those of
 * a text.
 *
 *     <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>     Hermes, Qwen
 *     {"name": "f", "parameters": {...}}                               Llama 3
 */
#ifndef LS_CHAT_TOOL_FORM_H
#define LS_CHAT_TOOL_FORM_H

#include "chat/chat_format.h"

typedef enum ls_tool_form {
    LS_TOOLS_UNKNOWN, /* the template does not write tools, or calls of them in another form */
    LS_TOOLS_TAGGED,
    LS_TOOLS_BARE
} ls_tool_form;

#define LS_TOOL_TAG     "<tool_call>"
#define LS_TOOL_TAG_END "</tool_call>"

/* Found out by what the template makes of a conversation with a tool and a call of it. */
ls_tool_form ls_tool_form_of(const ls_chat_format *);
const char *ls_tool_form_arguments(ls_tool_form); /* the member's name */

/* A call that a text has. */
typedef struct ls_tool_call {
    char *name;       /* the owner frees it */
    ls_buf arguments; /* as JSON text: of a call that is not complete, what is there */
} ls_tool_call;

typedef struct ls_tool_text {
    size_t ncontent;     /* the first bytes of the text, which are no call */
    ls_tool_call *calls; /* [n] in order */
    size_t n;
} ls_tool_text;

/* What is read for calls. */
typedef struct ls_tool_names {
    ls_tool_form form;
    const char **tools; /* [n] the tools' names */
    size_t n;
} ls_tool_names;

/* The calls of text [n]; of LS_TOOLS_BARE only those of the tools, since JSON may be an answer,
 * too. ended: nothing follows the text. Before that, content that may be the beginning of a call is
 * held back, so what is there of content, calls and their arguments only grows. A call that is no
 * JSON with a name and arguments is content. */
void ls_tool_text_read(const ls_tool_names *, const char *text, size_t n, bool ended,
                       ls_tool_text *t_p);
void ls_tool_text_free(ls_tool_text *);

#endif
