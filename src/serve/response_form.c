/* response_form.c - see response_form.h. */
#include "serve/response_form.h"

#include <string.h>

typedef struct form_reader {
    const ls_json *body;
    ls_json *chat, *messages; /* the messages are the chat's */
    ls_json *answer;          /* the assistant's message, if it is the last one */
    ls_buf thought;           /* of the assistant's next message */
    const char **field_p;
    ls_error *e;
} form_reader;

#define REFUSE(r, field, ...) (*(r)->field_p = (field), ls_fail((r)->e, LS_EINVAL, __VA_ARGS__))

static bool is_text(const ls_json *j, const char *text) {
    return ls_json_text(j) && strcmp(ls_json_text(j), text) == 0;
}

static void copy(ls_json *to, const ls_json *from, const char *field, const char *name) {
    const ls_json *j = ls_json_given(from, field);
    if (j) ls_json_set(to, name, ls_json_share(j));
}

/* ---- what a server needs that stores responses ---- */

static ls_status check_state(const form_reader *r) {
    static const char *const fields[] = {"previous_response_id", "conversation", "background",
                                         "store", "prompt"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ls_json *j = ls_json_given(r->body, fields[i]);
        if (j && (!ls_json_is_bool(j) || ls_json_is_true(j)))
            return REFUSE(r, fields[i],
                          "%s is not supported: nothing is stored here; send the whole "
                          "conversation as input",
                          fields[i]);
    }
    return LS_OK;
}

/* Fields of chats alone, and values that would change the answer. Reasoning is never encrypted, so
 * there is none of that to include. */
static ls_status check_others(const form_reader *r) {
    static const char *const fields[] = {"messages", "max_tokens", "max_completion_tokens",
                                         "n",        "logprobs",   "response_format"};
    const ls_json *include = ls_json_given(r->body, "include"),
                  *top = ls_json_given(r->body, "top_logprobs");
    const ls_json *text = ls_json_given(r->body, "text"),
                  *verbosity = ls_json_given(text, "verbosity");
    int64_t n = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ls_json *j = ls_json_given(r->body, fields[i]);
        if (j && !(ls_json_is_object(j) && ls_json_count(j) == 0))
            return REFUSE(r, fields[i], "%s is not supported in /v1/responses", fields[i]);
    }
    if (include && !ls_json_is_array(include))
        return REFUSE(r, "include", "include: a list of texts is expected");
    for (size_t i = 0; i < ls_json_count(include); i++) {
        const char *what = ls_json_text(ls_json_at(include, i));
        if (!what || strcmp(what, "reasoning.encrypted_content") != 0)
            return REFUSE(r, "include", "include: '%.60s' is not supported", what ? what : "?");
    }
    if (top && (!ls_json_integer(top, &n) || n))
        return REFUSE(r, "top_logprobs", "top_logprobs is not supported in /v1/responses");
    if (ls_json_given(r->body, "truncation") &&
        !is_text(ls_json_given(r->body, "truncation"), "disabled"))
        return REFUSE(r, "truncation", "truncation: only 'disabled' is supported");
    if (text && !ls_json_is_object(text)) return REFUSE(r, "text", "text: an object is expected");
    if (verbosity && !is_text(verbosity, "medium"))
        return REFUSE(r, "text", "text: verbosity is not supported");
    return LS_OK;
}

/* ---- input ---- */

static ls_json *add_message(form_reader *r, const char *role) {
    ls_json *m = ls_json_new_object();
    ls_json_set_text(m, "role", role);
    ls_json_push(r->messages, m);
    r->answer = strcmp(role, "assistant") == 0 ? m : NULL;
    if (r->answer && r->thought.len)
        ls_json_set(m, "reasoning_content", ls_json_new_bytes(r->thought.data, r->thought.len));
    r->thought.len = 0;
    return m;
}

/* What the model thought before its next item: that begins a message. */
static ls_status add_thought(form_reader *r, const ls_json *item, size_t number) {
    const ls_json *content = ls_json_given(item, "content");
    for (size_t i = 0; i < ls_json_count(content); i++) {
        const char *text = ls_json_text(ls_json_get(ls_json_at(content, i), "text"));
        if (!text)
            return REFUSE(r, "input", "input: item %zu, reasoning, has content without a text",
                          number);
        ls_buf_append(&r->thought, text, strlen(text));
    }
    r->answer = NULL;
    return LS_OK;
}

/* "refusal" parts of earlier answers are texts, too. */
static ls_json *content_of(const ls_json *content) {
    if (!ls_json_is_array(content)) return ls_json_share(content);
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < ls_json_count(content); i++) {
        const ls_json *part = ls_json_at(content, i), *refusal = ls_json_given(part, "refusal");
        ls_json *text = ls_json_new_object();
        if (refusal) ls_json_set(text, "text", ls_json_share(refusal));
        ls_json_push(list, refusal ? text : ls_json_share(part));
        if (!refusal) ls_json_free(text);
    }
    return list;
}

/* Calls belong to the assistant's message before them. */
static ls_status add_call(form_reader *r, const ls_json *item, size_t number) {
    if (!ls_json_text(ls_json_get(item, "name")) || !ls_json_text(ls_json_get(item, "arguments")))
        return REFUSE(r, "input", "input: item %zu, a function_call, has no name or no arguments",
                      number);
    ls_json *m = r->answer, *call = ls_json_new_object(), *function = ls_json_new_object();
    if (!m) {
        m = add_message(r, "assistant");
        ls_json_set(m, "content", ls_json_new_null());
    }
    if (!ls_json_get(m, "tool_calls")) ls_json_set(m, "tool_calls", ls_json_new_array());
    copy(function, item, "name", "name");
    copy(function, item, "arguments", "arguments");
    copy(call, item, "call_id", "id");
    ls_json_set_text(call, "type", "function");
    ls_json_set(call, "function", function);
    ls_json_push((ls_json *)(uintptr_t)ls_json_get(m, "tool_calls"), call);
    return LS_OK;
}

static ls_status add_output(form_reader *r, const ls_json *item, size_t number) {
    if (!ls_json_given(item, "output"))
        return REFUSE(r, "input", "input: item %zu, a function_call_output, has no output", number);
    ls_json *m = add_message(r, "tool");
    copy(m, item, "call_id", "tool_call_id");
    ls_json_set(m, "content", content_of(ls_json_get(item, "output")));
    return LS_OK;
}

static ls_status add_item(form_reader *r, const ls_json *item, size_t number) {
    const ls_json *type = ls_json_given(item, "type");
    const char *role = ls_json_text(ls_json_get(item, "role"));
    if (is_text(type, "reasoning")) return add_thought(r, item, number);
    if (is_text(type, "function_call")) return add_call(r, item, number);
    if (is_text(type, "function_call_output")) return add_output(r, item, number);
    if (type && !is_text(type, "message"))
        return REFUSE(r, "input",
                      "input: item %zu has the type '%.40s'; message, reasoning, function_call "
                      "and function_call_output are supported",
                      number, ls_json_text(type) ? ls_json_text(type) : "");
    if (!role || !ls_json_given(item, "content"))
        return REFUSE(r, "input", "input: item %zu has no role or no content", number);
    ls_json *m = add_message(r, role);
    ls_json_set(m, "content", content_of(ls_json_get(item, "content")));
    return LS_OK;
}

static ls_status read_input(form_reader *r) {
    const ls_json *input = ls_json_given(r->body, "input"),
                  *instructions = ls_json_given(r->body, "instructions");
    if (instructions && !ls_json_text(instructions))
        return REFUSE(r, "instructions", "instructions: a text is expected");
    if (instructions) copy(add_message(r, "system"), r->body, "instructions", "content");
    if (ls_json_text(input)) {
        copy(add_message(r, "user"), r->body, "input", "content");
        return LS_OK;
    }
    if (!ls_json_is_array(input) || ls_json_count(input) == 0)
        return REFUSE(r, "input", "input: a text or a list of items is expected");
    for (size_t i = 0; i < ls_json_count(input); i++)
        LS_TRY(add_item(r, ls_json_at(input, i), i + 1));
    return LS_OK;
}

/* ---- tools ---- */

static ls_status read_tools(form_reader *r) {
    static const char *const members[] = {"name", "description", "parameters", "strict"};
    const ls_json *tools = ls_json_given(r->body, "tools"),
                  *choice = ls_json_given(r->body, "tool_choice");
    ls_json *list = ls_json_new_array();
    ls_json_set(r->chat, "tools", list);
    for (size_t i = 0; i < ls_json_count(tools); i++) {
        const ls_json *one = ls_json_at(tools, i), *type = ls_json_get(one, "type");
        if (!is_text(type, "function"))
            return REFUSE(r, "tools", "tools: the type '%.40s' is not supported; 'function' is",
                          ls_json_text(type) ? ls_json_text(type) : "");
        ls_json *tool = ls_json_new_object(), *function = ls_json_new_object();
        for (size_t k = 0; k < sizeof members / sizeof *members; k++)
            copy(function, one, members[k], members[k]);
        ls_json_set_text(tool, "type", "function");
        ls_json_set(tool, "function", function);
        ls_json_push(list, tool);
    }
    if (tools && !ls_json_is_array(tools)) ls_json_set(r->chat, "tools", ls_json_share(tools));
    if (!choice) return LS_OK;
    ls_json *named = ls_json_new_object();
    if (is_text(ls_json_get(choice, "type"), "function")) {
        ls_json_set(named, "function", ls_json_share(choice));
        choice = named;
    }
    ls_json_set(r->chat, "tool_choice", ls_json_share(choice));
    ls_json_free(named);
    return LS_OK;
}

/* ---- the whole ---- */

/* How long it is to think, which a template may know; summaries are never made. */
static ls_status read_reasoning(const form_reader *r) {
    const ls_json *given = ls_json_given(r->body, "reasoning"), *value = NULL;
    const char *key = NULL;
    if (given && !ls_json_is_object(given))
        return REFUSE(r, "reasoning", "reasoning: an object is expected");
    for (void *it = ls_json_next(given, NULL, &key, &value); it;
         it = ls_json_next(given, it, &key, &value)) {
        bool effort = strcmp(key, "effort") == 0, none = ls_json_is_null(value);
        bool summary = strcmp(key, "summary") == 0 && is_text(value, "auto");
        if (!none && !summary && !(effort && ls_json_text(value)))
            return REFUSE(r, "reasoning", "reasoning: %.40s is not supported; effort is", key);
    }
    copy(r->chat, given, "effort", "reasoning_effort");
    return LS_OK;
}

/* Fields that chats have by the same name. */
static void copy_others(const form_reader *r) {
    static const char *const done[] = {
        "input",  "instructions", "text",       "tools",        "tool_choice",    "include",
        "prompt", "reasoning",    "truncation", "top_logprobs", "stream_options", "max_tool_calls"};
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = ls_json_next(r->body, NULL, &key, &value); it;
         it = ls_json_next(r->body, it, &key, &value)) {
        bool is_done = false;
        for (size_t i = 0; i < sizeof done / sizeof *done; i++)
            is_done = is_done || strcmp(done[i], key) == 0;
        if (!is_done) ls_json_set(r->chat, key, ls_json_share(value));
    }
}

ls_status ls_response_form_read(const ls_json *body, ls_json **chat_p, const char **field_p,
                                ls_error *e) {
    form_reader r = {.body = body, .field_p = field_p, .e = e};
    LS_TRY(check_state(&r));
    LS_TRY(check_others(&r));
    r.chat = ls_json_new_object();
    r.messages = ls_json_new_array();
    copy_others(&r);
    copy(r.chat, ls_json_get(body, "text"), "format", LS_RESPONSE_FORMAT);
    ls_json_set(r.chat, "messages", r.messages);
    ls_status s = read_reasoning(&r);
    if (s == LS_OK) s = read_input(&r);
    if (s == LS_OK) s = read_tools(&r);
    if (s == LS_OK)
        *chat_p = r.chat;
    else
        ls_json_free(r.chat);
    ls_buf_free(&r.thought);
    return s;
}
