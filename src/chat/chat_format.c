/* chat_format.c - see chat_format.h. */
#include "chat/chat_format.h"

#include <stdlib.h>
#include <string.h>

const struct tm LS_CHAT_DATE = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5};

static void add_end(ls_chat_format *f, uint32_t token) {
    for (int i = 0; i < f->nends; i++)
        if (f->ends[i] == token) return;
    f->ends[f->nends++] = token;
}

void ls_chat_format_set_ends(ls_chat_format *f, const int64_t *ids, int n) {
    static const char *const names[] = {"<|im_end|>", "<|eot_id|>",    "<|eom_id|>",   "<|end|>",
                                        "</s>",       "<end_of_turn>", "<|endoftext|>"};
    f->nends = 0;
    for (int i = 0; i < n; i++) add_end(f, (uint32_t)ids[i]);
    if (f->end != LS_NO_TOKEN) add_end(f, f->end);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t token = ls_tokenizer_find(f->tokenizer, names[i]);
        if (token != LS_NO_TOKEN) add_end(f, token);
    }
}

void ls_chat_format_free(ls_chat_format *f) {
    ls_template_free(f->template);
    ls_template_free(f->tool_template);
    free(f->bos);
    free(f->eos);
    *f = (ls_chat_format){0};
}

/* ---- writing ---- */

/* How templates have tools. All but the first write no tool_calls, which stand in contents. */
typedef enum tools_form {
    TOOLS_GIVEN, /* as tools */
    TOOLS_XML,   /* as xml_tools: SmolLM3 */
    TOOLS_SYSTEM /* as a text of the system's message: Phi-4-mini */
} tools_form;

static tools_form tools_form_of(const ls_template *t) {
    bool tools = ls_template_mentions(t, "tools"), marks = ls_template_mentions(t, "<|tool|>");
    if (ls_template_mentions(t, "xml_tools") && !tools) return TOOLS_XML;
    return tools && marks && !ls_template_mentions(t, "tool_calls") ? TOOLS_SYSTEM : TOOLS_GIVEN;
}

bool ls_chat_writes(const ls_template *t, const char *key) {
    bool of_tools = strcmp(key, "tools") == 0 || strcmp(key, "tool_calls") == 0;
    return ls_template_mentions(t, key) || (of_tools && tools_form_of(t) != TOOLS_GIVEN);
}

/* Functions without what stands around them: {"name", "description", "parameters"}. */
static ls_json *functions_of(const ls_json *tools) {
    ls_json *functions = ls_json_new_array();
    for (size_t i = 0; i < ls_json_count(tools); i++) {
        const ls_json *tool = ls_json_at(tools, i), *function = ls_json_get(tool, "function");
        ls_json_push(functions, ls_json_share(function ? function : tool));
    }
    return functions;
}

/* {"name": ..., "arguments": ...} */
static void write_call(const ls_json *call, ls_buf *out) {
    const ls_json *function = ls_json_get(call, "function");
    const ls_json *name = ls_json_get(function, "name");
    const ls_json *arguments = ls_json_get(function, "arguments");
    ls_buf_printf(out, "{\"name\": ");
    if (name) ls_json_write(name, 0, out);
    ls_buf_printf(out, ", \"arguments\": ");
    if (ls_json_text(arguments))
        ls_buf_printf(out, "%s", ls_json_text(arguments));
    else if (arguments)
        ls_json_write(arguments, 0, out);
    ls_buf_printf(out, "}");
}

/* SmolLM3's calls are a text each, Phi-4-mini's a list. */
static void write_calls(tools_form form, const ls_json *calls, ls_buf *out) {
    size_t n = ls_json_count(calls);
    for (size_t i = 0; i < n; i++) {
        if (form == TOOLS_XML)
            ls_buf_printf(out, "%s<tool_call>\n", out->len ? "\n" : "");
        else
            ls_buf_printf(out, "%s", i ? ", " : "<|tool_call|>[");
        write_call(ls_json_at(calls, i), out);
        if (form == TOOLS_XML) ls_buf_printf(out, "\n</tool_call>");
    }
    if (n && form != TOOLS_XML) ls_buf_printf(out, "]<|/tool_call|>");
}

/* The content with the calls behind it. */
static ls_json *with_calls(tools_form form, const ls_json *message) {
    const char *content = ls_json_text(ls_json_get(message, "content"));
    ls_json *copy = ls_json_copy(message);
    ls_buf text = {0};
    if (content) ls_buf_append(&text, content, strlen(content));
    write_calls(form, ls_json_get(message, "tool_calls"), &text);
    ls_buf_append(&text, "", 1);
    ls_json_set_text(copy, "content", text.data);
    ls_buf_free(&text);
    return copy;
}

/* The system's message, or an empty one, with the functions. */
static ls_json *with_tools(const ls_json *message, const ls_json *tools) {
    ls_json *copy = message ? ls_json_copy(message) : ls_json_new_object();
    ls_json *functions = functions_of(tools);
    ls_buf text = {0};
    if (!message) ls_json_set_text(copy, "role", "system");
    if (!message) ls_json_set_text(copy, "content", "");
    ls_json_write(functions, 0, &text);
    ls_json_set_text(copy, "tools", text.data);
    ls_json_free(functions);
    ls_buf_free(&text);
    return copy;
}

static bool is_system(const ls_json *message) {
    const char *role = ls_json_text(ls_json_get(message, "role"));
    return role && strcmp(role, "system") == 0;
}

static ls_json *with_content(const ls_json *message, const char *content) {
    ls_json *copy = ls_json_copy(message);
    ls_json_set_text(copy, "content", content);
    return copy;
}

static bool is_null(const ls_json *message) {
    return ls_json_is_null(ls_json_get(message, "content"));
}

/* empty: a content that is null is written as an empty text. */
static ls_status render(const ls_chat_format *f, const ls_chat_text *t, bool empty, ls_buf *out,
                        ls_error *e) {
    ls_json *globals = ls_json_copy(t->variables), *messages = ls_json_new_array();
    const ls_template *of = t->tools && f->tool_template ? f->tool_template : f->template;
    const tools_form form = tools_form_of(of);
    const ls_json *in_system = form == TOOLS_SYSTEM ? t->tools : NULL;
    if (in_system && !is_system(ls_json_at(t->messages, 0)))
        ls_json_push(messages, with_tools(NULL, in_system));
    for (size_t i = 0; i < t->n; i++) {
        const ls_json *m = ls_json_at(t->messages, i);
        bool calls = form != TOOLS_GIVEN && ls_json_get(m, "tool_calls");
        ls_json_push(messages, calls                                 ? with_calls(form, m)
                               : in_system && i == 0 && is_system(m) ? with_tools(m, in_system)
                               : empty && is_null(m)                 ? with_content(m, "")
                                                                     : ls_json_share(m));
    }
    ls_json_set(globals, "messages", messages);
    ls_json_set_bool(globals, "add_generation_prompt", t->prompt);
    if (f->bos) ls_json_set_text(globals, "bos_token", f->bos);
    if (f->eos) ls_json_set_text(globals, "eos_token", f->eos);
    if (t->tools && form == TOOLS_XML)
        ls_json_set(globals, "xml_tools", functions_of(t->tools));
    else if (t->tools && form == TOOLS_GIVEN)
        ls_json_set(globals, "tools", ls_json_share(t->tools));
    ls_status s = ls_template_render(of, globals, t->now ? t->now : &LS_CHAT_DATE, out, e);
    ls_json_free(globals);
    return s;
}

static size_t count_none(const ls_buf *text) {
    static const char none[] = "None";
    size_t n = 0;
    const char *at = text->data, *end = at ? at + text->len : at;
    while (at && (at = memmem(at, (size_t)(end - at), none, sizeof none - 1))) {
        at += sizeof none - 1;
        n++;
    }
    return n;
}

/* A content that is null is what a call of tools has. Some templates ask for it, others would write
 * "None" or fail: for these it is an empty text. */
static ls_status render_nulls(const ls_chat_format *f, const ls_chat_text *t, ls_buf *out,
                              ls_error *e) {
    ls_buf null = {0}, empty = {0};
    ls_error why = {0};
    ls_status s = render(f, t, false, &null, e);
    bool better = render(f, t, true, &empty, &why) == LS_OK &&
                  (s != LS_OK || count_none(&empty) < count_none(&null));
    const ls_buf *best = better ? &empty : &null;
    ls_buf_append(out, best->data, best->len);
    ls_buf_free(&null);
    ls_buf_free(&empty);
    return better ? LS_OK : s;
}

ls_status ls_chat_write(const ls_chat_format *f, const ls_chat_text *t, ls_buf *out, ls_error *e) {
    bool has_null = false;
    if (!f->template)
        return ls_fail(e, LS_EINVAL,
                       "the model has no chat template; name a file with one: data.template");
    for (size_t i = 0; i < t->n; i++) has_null = has_null || is_null(ls_json_at(t->messages, i));
    return has_null ? render_nulls(f, t, out, e) : render(f, t, false, out, e);
}
