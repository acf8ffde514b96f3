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
    free((void *)(uintptr_t)t->names.tools);
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
    ls_tool *tools = LS_NEW_ARRAY(ls_tool, n);
    t->names.tools = tools;
    for (; t->names.n < n; t->names.n++) {
        const char *name = ls_json_text(ls_json_get(function_of(t, t->names.n), "name"));
        if (!name || !*name)
            return ls_fail(
                e, LS_EINVAL,
                "tools: {\"type\": \"function\", \"function\": {\"name\": ...}} is expected");
        if (t->names.form && !ls_tool_form_can_name(t->names.form, name))
            return ls_fail(e, LS_EINVAL,
                           "tools: the name '%.40s' can't be written in the calls of this model",
                           name);
        tools[t->names.n] = (ls_tool){name, ls_json_get(function_of(t, t->names.n), "parameters")};
    }
    return LS_OK;
}

static ls_status read_named(ls_tools *t, const ls_json *choice, ls_error *e) {
    const char *name = ls_json_text(ls_json_get(ls_json_get(choice, "function"), "name"));
    for (size_t i = 0; name && i < t->names.n; i++)
        if (strcmp(t->names.tools[i].name, name) == 0) t->only = t->names.tools[i].name;
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

ls_status ls_tools_read(const ls_tool_template *written, const ls_json *body, ls_tools *t,
                        const char **field_p, ls_error *e) {
    const ls_json *list = ls_json_given(body, TOOLS), *parallel = ls_json_given(body, PARALLEL);
    *t = (ls_tools){.written = written,
                    .names.form = written->form,
                    .parallel = !parallel || ls_json_is_true(parallel)};
    *field_p = TOOLS;
    if (list) LS_TRY(read_list(t, list, e));
    if (t->list && !written->form)
        return ls_fail(e, LS_EINVAL,
                       "tools: the model's chat template does not write tools, or no calls of them "
                       "that are known here; serve it with another: --template FILE");
    *field_p = CHOICE;
    return read_choice(t, ls_json_given(body, CHOICE), e);
}

/* ---- calls that are required ---- */

void ls_tools_key(const ls_tools *t, ls_buf *key) {
    ls_buf_printf(key, "%p %s %d %s ", (const void *)t->names.form, t->written->lead, t->parallel,
                  t->only ? t->only : "");
    ls_json_write_exact(t->list, key);
}

/* Appends a text of the form: a mark in it that is a special token is that token. */
static void put_text(const ls_tools *t, const ls_tokenizer *tokenizer, const char *text,
                     ls_buf *out) {
    for (size_t n = 1; *text; text += n, n = 1) {
        const char *const *marks = t->names.form->marks;
        uint8_t digits[LS_TOKEN_DIGITS];
        const uint8_t *bytes = (const uint8_t *)text;
        size_t nbytes = 1;
        for (int i = 0; i < LS_TOOL_MARKS && marks[i]; i++) {
            uint32_t token = ls_tokenizer_find(tokenizer, marks[i]);
            if (token == LS_NO_TOKEN || strncmp(text, marks[i], strlen(marks[i])) != 0) continue;
            n = strlen(marks[i]);
            bytes = ls_token_tree_bytes(tokenizer, token, digits, &nbytes);
            break;
        }
        ls_buf_append(out, bytes, nbytes);
    }
}

/* The texts [n] one after the other; the caller frees the result. */
static char *joined(const ls_tools *t, const ls_tokenizer *tokenizer, const char *const *texts,
                    size_t n) {
    ls_buf text = {0};
    for (size_t i = 0; i < n; i++) put_text(t, tokenizer, texts[i], &text);
    ls_buf_append(&text, "", 1);
    return text.data;
}

/* Without marks in it. */
static void put_name(const ls_tool_form *f, const char *name, ls_buf *out) {
    ls_json *j = f->object ? ls_json_new_text(name) : NULL;
    if (j)
        ls_json_write(j, 0, out);
    else
        ls_buf_append(out, name, strlen(name));
    ls_json_free(j);
}

/* What stands before a call's arguments. */
static char *beginning_of(const ls_tools *t, const ls_tokenizer *tokenizer, const char *name) {
    const ls_tool_form *f = t->names.form;
    ls_buf text = {0};
    if (!f->list) put_text(t, tokenizer, f->open, &text);
    if (!f->list) put_text(t, tokenizer, t->written->lead, &text);
    put_text(t, tokenizer, f->object ? "{\"name\": " : f->name, &text);
    put_name(f, name, &text);
    if (f->object)
        ls_buf_printf(&text, ", \"%s\": ", f->object);
    else
        put_text(t, tokenizer, f->name_end, &text);
    ls_buf_append(&text, "", 1);
    return text.data;
}

ls_status ls_tools_grammar(const ls_tools *t, const ls_token_tree *v, ls_grammar **g_p,
                           ls_error *e) {
    const ls_tool_form *f = t->names.form;
    const char *lead = t->written->lead;
    const char *const first[] = {f->list ? f->open : "", f->list ? lead : ""};
    const char *const after[] = {f->object ? "}" : f->end, f->object && !f->list ? lead : "",
                                 f->list ? "" : f->close};
    const char *const behind[] = {f->list ? "]" : "", f->list ? f->close : ""};
    char *begin = joined(t, v->tokenizer, first, 2), *end = joined(t, v->tokenizer, after, 3);
    char *last = joined(t, v->tokenizer, behind, 2);
    const ls_schema_marks marks = {f->key, f->key_end, f->value_end};
    ls_schema_text_part *parts = LS_NEW_ARRAY(ls_schema_text_part, t->names.n);
    ls_schema_texts texts = {.list = parts, .first = begin, .most = 1};
    texts.between = f->list ? ", " : *f->close ? "\n" : "";
    texts.last = last;
    if (f->key) texts.marks = &marks;
    if ((*f->open || f->list) && t->parallel && !t->only) texts.most = MOST_CALLS;
    for (size_t i = 0; i < t->names.n; i++) {
        const ls_tool *tool = &t->names.tools[i];
        if (t->only && t->only != tool->name) continue;
        parts[texts.n++] =
            (ls_schema_text_part){.before = beginning_of(t, v->tokenizer, tool->name),
                                  .schema = tool->parameters,
                                  .after = end};
    }
    ls_status s = ls_grammar_of_texts(&texts, &v->bytes, g_p, e);
    for (size_t i = 0; i < texts.n; i++) free(parts[i].before);
    free(parts);
    free(begin);
    free(end);
    free(last);
    return s;
}

int ls_tools_shown(const ls_tools *t, const ls_tokenizer *tokenizer,
                   uint32_t shown[LS_TOOL_MARKS]) {
    int n = 0;
    for (int i = 0; t->reads && i < LS_TOOL_MARKS && t->names.form->marks[i]; i++) {
        uint32_t token = ls_tokenizer_find(tokenizer, t->names.form->marks[i]);
        if (token != LS_NO_TOKEN) shown[n++] = token;
    }
    return n;
}
