/* tools.h - the tools of a request: which the model may call, whether it must, and its calls in
 * answers.
 *
 *     {"tools": [{"type": "function", "function": {"name", "description", "parameters"}}],
 *      "tool_choice": "none", "auto", "required" or {"type": "function", "function": {"name"}},
 *      "parallel_tool_calls": true}
 */
#ifndef LS_SERVE_TOOLS_H
#define LS_SERVE_TOOLS_H

#include "chat/tool_form.h"
#include "grammar/grammar.h"

typedef struct ls_tools {
    ls_json *list;       /* as the template reads it; NULL: none */
    ls_tool_names names; /* the texts are the list's */
    bool reads;          /* calls in answers are read */
    bool required;       /* an answer is calls alone */
    const char *only;    /* of this tool; NULL: of any */
    bool parallel;       /* there may be several calls */
} ls_tools;

/* Is it one of the fields above? */
bool ls_tools_has(const char *field);

/* form: how the model's template writes calls. LS_EINVAL: a field, *field_p, is damaged, or the
 * template does not support tools. The caller calls ls_tools_free() in any case. */
ls_status ls_tools_read(ls_tool_form form, const ls_json *body, ls_tools *, const char **field_p,
                        ls_error *);
void ls_tools_free(ls_tools *);

/* The grammar of required calls. LS_EINVAL: the parameters of a tool have a keyword that is not
 * supported. */
ls_status ls_tools_grammar(const ls_tools *, const ls_byte_set *, ls_grammar **g_p, ls_error *);
/* Appends what the grammar depends on. */
void ls_tools_key(const ls_tools *, ls_buf *);

#endif
