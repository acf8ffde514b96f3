/* tool_form.h - how a model calls tools: the form in which its template writes calls, and those of
 * a text.
 *
 *     <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>         Hermes, Qwen
 *     {"name": "f", "parameters": {...}}                                   Llama 3
 *     [TOOL_CALLS] [{"name": "f", "arguments": {...}, "id": "9 signs"}]    Mistral
 *     [TOOL_CALLS]f[CALL_ID]id[ARGS]{...}                                  its later models
 *     <tool_call>\n<function=f>\n<parameter=x>\n...\n</parameter>\n</function>\n</tool_call>
 *                                                                          Qwen3-Coder
 *     <TOOLCALL>[{"name": "f", "arguments": {...}}]</TOOLCALL>             Nemotron
 *     <function=f>{...}</function>                                         functionary
 *     <tool_call>f\n<arg_key>x</arg_key>\n<arg_value>...</arg_value>\n</tool_call>   GLM 4.5
 */
#ifndef LS_CHAT_TOOL_FORM_H
#define LS_CHAT_TOOL_FORM_H

#include "chat/chat_format.h"

enum { LS_TOOL_MARKS = 4 };

/* A form. A call is an object, or a name and its arguments: an object, or texts. \n in its texts
 * is written, and may be missing in what is read. */
typedef struct ls_tool_form {
    const char *open, *close; /* around a call, or the list of all; "": nothing */
    const char *object;       /* the object's member with the arguments; NULL: it is a name ... */
    bool list;                /* objects stand in a list */
    const char *name, *name_end;      /* around a name */
    const char *id;                   /* may stand behind a name, with an id; NULL: there is none */
    const char *key, *key_end;        /* around an argument's name; NULL: an object has them all */
    const char *value_end, *end;      /* behind the argument's text; behind all of them */
    const char *marks[LS_TOOL_MARKS]; /* those of its texts that may be special tokens */
} ls_tool_form;

/* How a model's template writes a call. */
typedef struct ls_tool_template {
    const ls_tool_form *form; /* NULL: it does not write tools, or calls in another form */
    char lead[8];             /* what stands between `open` and the call, or the list's first */
} ls_tool_template;

/* Found out by what the template makes of a conversation with a tool and a call of it: the form by
 * which that call is read again. */
ls_tool_template ls_tool_template_of(const ls_chat_format *);

/* Can a tool of this name be called? */
bool ls_tool_form_can_name(const ls_tool_form *, const char *name);

/* A call that a text has. */
typedef struct ls_tool_call {
    char *name;       /* the owner frees it */
    ls_buf arguments; /* as JSON text: of a call that is not complete, what is there */
} ls_tool_call;

typedef struct ls_tool_text {
    size_t ncontent;     /* the first bytes of the text, which are no call */
    ls_buf after;        /* and what follows them, behind the first call: content, too */
    ls_tool_call *calls; /* [n] in order */
    size_t n;
} ls_tool_text;

/* A tool that may be called. */
typedef struct ls_tool {
    const char *name;
    const ls_json *parameters; /* a schema; NULL: none is given */
} ls_tool;

/* What is read for calls. */
typedef struct ls_tool_names {
    const ls_tool_form *form;
    const ls_tool *tools; /* [n] */
    size_t n;
} ls_tool_names;

/* The calls of text [n]; where nothing marks them only those of the tools, since JSON may be an
 * answer, too. ended: nothing follows the text. Before that, content that may be the beginning
 * of a call is held back, so what is there of content, calls and their arguments only grows.
 * What is no call by the form is content, also behind calls that are complete. Arguments that
 * are texts become values of the types that the tool's schema has for them; a text that is none
 * stays a text. */
void ls_tool_text_read(const ls_tool_names *, const char *text, size_t n, bool ended,
                       ls_tool_text *t_p);
void ls_tool_text_free(ls_tool_text *);

#endif
