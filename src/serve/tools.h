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
#include "grammar/token_tree.h"

typedef struct ls_tools {
    ls_json *list;                   /* as the template reads it; NULL: none */
    const ls_tool_template *written; /* how the model writes calls */
    ls_tool_names names;             /* what they point to is the list's */
    bool reads;                      /* calls in answers are read */
    bool required;                   /* an answer is calls alone */
    const char *only;                /* of this tool; NULL: of any */
    bool parallel;                   /* there may be several calls */
} ls_tools;

/* Is it one of the fields above? */
bool ls_tools_has(const char *field);

/* The template must outlive the tools. LS_EINVAL: a field, *field_p, is damaged, or the
 * template does not support tools. The caller calls ls_tools_free() in any case. */
ls_status ls_tools_read(const ls_tool_template *, const ls_json *body, ls_tools *,
                        const char **field_p, ls_error *);
void ls_tools_free(ls_tools *);

/* The grammar of required calls. LS_EINVAL: the parameters of a tool have a keyword that is not
 * supported. */
ls_status ls_tools_grammar(const ls_tools *, const ls_token_tree *, ls_grammar **g_p, ls_error *);
/* The tokens of marks by which calls are read, [returned]. */
int ls_tools_shown(const ls_tools *, const ls_tokenizer *, uint32_t shown[LS_TOOL_MARKS]);
/* Appends what the grammar depends on. */
void ls_tools_key(const ls_tools *, ls_buf *);

#endif
