/* messages.c - see messages.h. */
#include "serve/messages.h"

#include <string.h>
#include <time.h>

#include "chat/message.h"

static const char VARIABLES[] = "chat_template_kwargs", EFFORT[] = "reasoning_effort",
                  CONTINUES[] = "continue_final_message", PROMPT[] = "add_generation_prompt";

bool ls_messages_has(const char *field) {
    return strcmp(field, CONTINUES) == 0 || strcmp(field, PROMPT) == 0;
}

/* OpenAI has arguments as JSON in a text; templates read the object. */
static ls_json *call_with_object(const ls_json *call) {
    const ls_json *function = ls_json_get(call, "function");
    const char *text = ls_json_text(ls_json_get(function, "arguments"));
    ls_json *arguments = NULL;
    ls_error e = {0};
    if (!text || ls_json_parse(text, strlen(text), "", &arguments, &e) != LS_OK)
        return ls_json_share(call);
    ls_json *copy = ls_json_copy(call), *inner = ls_json_copy(function);
    ls_json_set(inner, "arguments", arguments);
    ls_json_set(copy, "function", inner);
    return copy;
}

/* "developer" is OpenAI's newer name of "system". */
static ls_status read(const ls_json *one, size_t number, ls_json **m_p, ls_error *e) {
    const char *role = ls_json_text(ls_json_get(one, "role"));
    const ls_json *calls = ls_json_get(one, "tool_calls");
    bool developer = role && strcmp(role, "developer") == 0;
    if (!developer && !ls_json_is_array(calls)) return ls_message_read(one, number, m_p, e);
    ls_json *copy = ls_json_copy(one);
    if (developer) ls_json_set_text(copy, "role", "system");
    if (ls_json_is_array(calls)) {
        ls_json *list = ls_json_new_array();
        for (size_t i = 0; i < ls_json_count(calls); i++)
            ls_json_push(list, call_with_object(ls_json_at(calls, i)));
        ls_json_set(copy, "tool_calls", list);
    }
    ls_status s = ls_message_read(copy, number, m_p, e);
    ls_json_free(copy);
    return s;
}

/* Further variables of the template. "reasoning_effort" is OpenAI's field for one. */
static ls_status read_variables(const ls_json *body, ls_json **variables_p, ls_error *e) {
    const ls_json *given = ls_json_given(body, VARIABLES), *effort = ls_json_given(body, EFFORT);
    if (given && !ls_json_is_object(given))
        return ls_fail(e, LS_EINVAL, "%s: an object is expected", VARIABLES);
    *variables_p = ls_json_copy(given);
    if (effort && !ls_json_get(given, EFFORT))
        ls_json_set(*variables_p, EFFORT, ls_json_share(effort));
    return LS_OK;
}

static ls_status read_flag(const ls_json *body, const char *field, bool *value_p, ls_error *e) {
    const ls_json *j = ls_json_given(body, field);
    if (j && !ls_json_is_bool(j))
        return ls_fail(e, LS_EINVAL, "%s: true or false is expected", field);
    if (j) *value_p = ls_json_is_true(j);
    return LS_OK;
}

/* How the prompt ends. vLLM's fields: without a beginning of an answer, or in the midst of one. */
static ls_status read_end(const ls_json *body, ls_chat_text *t, const char **field_p, ls_error *e) {
    const ls_json *list = ls_json_get(body, "messages");
    const ls_json *last = ls_json_count(list) ? ls_json_at(list, ls_json_count(list) - 1) : NULL;
    const char *role = ls_json_text(ls_json_get(last, "role"));
    t->prompt = true;
    *field_p = PROMPT;
    LS_TRY(read_flag(body, PROMPT, &t->prompt, e));
    *field_p = CONTINUES;
    LS_TRY(read_flag(body, CONTINUES, &t->continues, e));
    if (!t->continues) return LS_OK;
    if (ls_json_given(body, PROMPT) && t->prompt)
        return ls_fail(e, LS_EINVAL, "%s: %s must be false", CONTINUES, PROMPT);
    if (!role || strcmp(role, "assistant") != 0 || ls_json_given(last, "tool_calls"))
        return ls_fail(e, LS_EINVAL, "%s: the last message must be the assistant's, without calls",
                       CONTINUES);
    t->prompt = false;
    return LS_OK;
}

ls_status ls_messages_encode(const ls_chat_format *f, const ls_json *body, const ls_json *tools,
                             ls_token_list *list_p, const char **field_p, ls_error *e) {
    const ls_json *from = ls_json_get(body, "messages");
    ls_json *variables = NULL;
    ls_chat_text t = {.tools = tools};
    LS_TRY(read_end(body, &t, field_p, e));
    *field_p = VARIABLES;
    LS_TRY(read_variables(body, &variables, e));
    *field_p = "messages";
    ls_json *messages = ls_json_new_array();
    time_t now = time(NULL);
    struct tm date;
    size_t n = ls_json_is_array(from) ? ls_json_count(from) : 0;
    ls_status s =
        n ? LS_OK : ls_fail(e, LS_EINVAL, "messages: a list of at least one message is expected");
    for (size_t i = 0; s == LS_OK && i < n; i++) {
        ls_json *m = NULL;
        s = read(ls_json_at(from, i), i + 1, &m, e);
        if (s == LS_OK) ls_json_push(messages, m);
    }
    t.messages = messages;
    t.n = n;
    t.variables = variables;
    t.now = localtime_r(&now, &date);
    if (s == LS_OK) s = ls_chat_text_encode(f, &t, list_p, e);
    ls_json_free(messages);
    ls_json_free(variables);
    return s;
}
