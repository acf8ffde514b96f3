/* tools.c - see tools.h. */
#include "serve/tools.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/schema.h"

enum { MOST_TOOLS = 128, MOST_CALLS = 16 };

static const char TOOLS[] = "tools", CHOICE[] = "tool_choice", PARALLEL[] = "parallel_tool_calls";

bool ls_tools_has(const char *field) {
    return strcmp(field, TOOLS) == 0 || strcmp(field, CHOICE) == 0 || strcmp(field, PARALLEL) == 0;
}

void ls_tools_free(ls_tools *t) {
    ls_json_free(t->list);
    free((void *)t->names.tools);
    *t = (ls_tools){0};
}

static const ls_json *function_of(const ls_tools *t, size_t i) {
    return ls_json_get(ls_json_at(t->list, i), "function");
}

/* A function without parameters takes none, as OpenAI has it; templates want to read them. */
static ls_json *with_parameters(const ls_json *tool) {
    const ls_json *function = ls_json_get(tool, "function");
    if (!ls_json_is_object(function) || ls_json_given(function, "parameters"))
        return ls_json_share(tool);
    ls_json *copy = ls_json_copy(tool), *inner = ls_json_copy(function);
    ls_json *none = ls_json_new_object();
    ls_json_set_text(none, "type", "object");
    ls_json_set(none, "properties", ls_json_new_object());
    ls_json_set(inner, "parameters", none);
    ls_json_set(copy, "function", inner);
    return copy;
}

static ls_status read_list(ls_tools *t, const ls_json *list, ls_error *e) {
    size_t n = ls_json_count(list);
    if (!ls_json_is_array(list) || n > MOST_TOOLS)
        return ls_fail(e, LS_EINVAL, "tools: a list of at most %d tools is expected", MOST_TOOLS);
    if (n == 0) return LS_OK;
    t->list = ls_json_new_array();
    for (size_t i = 0; i < n; i++) ls_json_push(t->list, with_parameters(ls_json_at(list, i)));
    t->names.tools = LS_NEW_ARRAY(const char *, n);
    for (; t->names.n < n; t->names.n++) {
        const char *name = ls_json_text(ls_json_get(function_of(t, t->names.n), "name"));
        if (!name || !*name)
            return ls_fail(
                e, LS_EINVAL,
                "tools: {\"type\": \"function\", \"function\": {\"name\": ...}} is expected");
        t->names.tools[t->names.n] = name;
    }
    return LS_OK;
}

static ls_status read_named(ls_tools *t, const ls_json *choice, ls_error *e) {
    const char *name = ls_json_text(ls_json_get(ls_json_get(choice, "function"), "name"));
    for (size_t i = 0; name && i < t->names.n; i++)
        if (strcmp(t->names.tools[i], name) == 0) t->only = t->names.tools[i];
    t->required = true;
    if (t->only) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "tool_choice: none, auto, required or a function of the tools is expected");
}

static ls_status read_choice(ls_tools *t, const ls_json *choice, ls_error *e) {
    const char *word = ls_json_text(choice);
    t->reads = t->list && !(word && strcmp(word, "none") == 0);
    if (!choice || (word && (strcmp(word, "none") == 0 || strcmp(word, "auto") == 0))) return LS_OK;
    if (!t->list) return ls_fail(e, LS_EINVAL, "tool_choice: there are no tools");
    if (!word || strcmp(word, "required") != 0) return read_named(t, choice, e);
    t->required = true;
    return LS_OK;
}

ls_status ls_tools_read(ls_tool_form form, const ls_json *body, ls_tools *t, const char **field_p,
                        ls_error *e) {
    const ls_json *list = ls_json_given(body, TOOLS), *parallel = ls_json_given(body, PARALLEL);
    *t = (ls_tools){.names.form = form, .parallel = !parallel || ls_json_is_true(parallel)};
    *field_p = TOOLS;
    if (list) LS_TRY(read_list(t, list, e));
    if (t->list && form == LS_TOOLS_UNKNOWN)
        return ls_fail(e, LS_EINVAL,
                       "tools: the model's chat template does not write tools, or no calls of them "
                       "that are known here");
    *field_p = CHOICE;
    return read_choice(t, ls_json_given(body, CHOICE), e);
}

/* ---- calls that are required ---- */

void ls_tools_key(const ls_tools *t, ls_buf *key) {
    ls_buf_printf(key, "%d %d %s ", (int)t->names.form, t->parallel, t->only ? t->only : "");
    ls_json_write_exact(t->list, key);
}

/* What stands before the arguments. */
static char *beginning_of(const ls_tools *t, const char *name) {
    ls_json *j = ls_json_new_text(name);
    ls_buf quoted = {0};
    ls_json_write(j, 0, &quoted);
    char *text = ls_format(
        "%s{\"name\": %s, \"%s\": ", t->names.form == LS_TOOLS_TAGGED ? LS_TOOL_TAG "\n" : "",
        quoted.data, ls_tool_form_arguments(t->names.form));
    ls_buf_free(&quoted);
    ls_json_free(j);
    return text;
}

ls_status ls_tools_grammar(const ls_tools *t, const ls_byte_set *bytes, ls_grammar **g_p,
                           ls_error *e) {
    bool tagged = t->names.form == LS_TOOLS_TAGGED;
    ls_schema_text_part *parts = LS_NEW_ARRAY(ls_schema_text_part, t->names.n);
    ls_schema_texts texts = {.list = parts, .between = "\n", .most = 1};
    if (tagged && t->parallel && !t->only) texts.most = MOST_CALLS;
    for (size_t i = 0; i < t->names.n; i++) {
        if (t->only && t->only != t->names.tools[i]) continue;
        parts[texts.n++] =
            (ls_schema_text_part){.before = beginning_of(t, t->names.tools[i]),
                                  .schema = ls_json_get(function_of(t, i), "parameters"),
                                  .after = tagged ? "}\n" LS_TOOL_TAG_END : "}"};
    }
    ls_status s = ls_grammar_of_texts(&texts, bytes, g_p, e);
    for (size_t i = 0; i < texts.n; i++) free(parts[i].before);
    free(parts);
    return s;
}
