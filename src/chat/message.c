/* message.c - see message.h. */
#include "chat/message.h"

#include <stdlib.h>
#include <string.h>

const char *ls_message_role(const ls_json *m) { return ls_json_text(ls_json_get(m, "role")); }

bool ls_message_is_answer(const ls_json *m) {
    const char *role = ls_message_role(m);
    return role && strcmp(role, "assistant") == 0;
}

ls_json *ls_message_new(const char *role, const char *content) {
    ls_json *m = ls_json_new_object();
    ls_json_set_text(m, "role", role);
    ls_json_set_text(m, "content", content);
    return m;
}

/* ---- contents ---- */

static bool is_type_of_text(const char *type) {
    return !type || strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 ||
           strcmp(type, "output_text") == 0;
}

/* The text of a part; NULL: it is another kind of part. */
static const char *part_text(const ls_json *part) {
    if (ls_json_text(part)) return ls_json_text(part);
    if (!is_type_of_text(ls_json_text(ls_json_get(part, "type")))) return NULL;
    const char *text = ls_json_text(ls_json_get(part, "text"));
    return text ? text : ls_json_text(ls_json_get(part, "value")); /* as LLaMA-Factory writes it */
}

ls_json *ls_message_text(const ls_json *content) {
    if (ls_json_text(content)) return ls_json_share(content);
    if (!ls_json_is_array(content)) return NULL;
    ls_buf text = {0};
    bool whole = true;
    for (size_t i = 0; whole && i < ls_json_count(content); i++) {
        const char *part = part_text(ls_json_at(content, i));
        whole = part != NULL;
        if (part) ls_buf_append(&text, part, strlen(part));
    }
    ls_buf_append(&text, "", 1);
    ls_json *joined = whole ? ls_json_new_text(text.data) : NULL;
    ls_buf_free(&text);
    return joined;
}

static bool is_tool(const char *role) {
    return strcmp(role, "tool") == 0 || strcmp(role, "function") == 0 ||
           strcmp(role, "ipython") == 0 || strcmp(role, "observation") == 0;
}

static ls_status fail_content(const ls_json *content, size_t number, ls_error *e) {
    for (size_t i = 0; ls_json_is_array(content) && i < ls_json_count(content); i++) {
        const ls_json *part = ls_json_at(content, i);
        const char *type = ls_json_text(ls_json_get(part, "type"));
        if (part_text(part)) continue;
        if (type && is_type_of_text(type))
            return ls_fail(e, LS_EINVAL, "part %zu of message %zu, a text, has no \"text\"", i + 1,
                           number);
        return ls_fail(e, LS_EINVAL,
                       "part %zu of message %zu is %s%.40s%s; only parts of type \"text\" are "
                       "read",
                       i + 1, number, type ? "of type \"" : "no text", type ? type : "",
                       type ? "\"" : "");
    }
    return ls_fail(e, LS_EINVAL, "message %zu: \"content\" is neither a text nor a list of parts",
                   number);
}

/* Results of tools may be any value. */
static ls_status read_content(const ls_json *content, const char *role, size_t number,
                              ls_json **c_p, ls_error *e) {
    ls_json *text = ls_json_is_null(content) ? ls_json_share(content) : ls_message_text(content);
    if (!text && !is_tool(role)) return fail_content(content, number, e);
    *c_p = text ? text : ls_json_share(content);
    return LS_OK;
}

/* ---- members ---- */

bool ls_message_is_weight(const char *key) {
    return strcmp(key, "weight") == 0 || strcmp(key, "loss_weight") == 0; /* LLaMA-Factory's */
}

bool ls_message_is_silent(const ls_json *m) {
    double weight = 1;
    const ls_json *value = ls_json_get(m, "weight");
    if (!value) value = ls_json_get(m, "loss_weight");
    if (ls_json_is_bool(value)) return !ls_json_is_true(value);
    return ls_json_number(value, &weight) && weight == 0;
}

bool ls_message_is_learned(const ls_json *m) {
    return ls_message_is_answer(m) && !ls_message_is_silent(m);
}

static ls_status check_weight(const ls_json *value, size_t number, ls_error *e) {
    double weight = 0;
    if (ls_json_is_bool(value)) return LS_OK;
    if (ls_json_number(value, &weight) && (weight == 0 || weight == 1)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "message %zu: \"weight\" is 1, or 0 for an answer that is not trained on",
                   number);
}

/* {"name", "arguments"} as a list of one call. */
static ls_json *calls_of(const ls_json *function) {
    ls_json *calls = ls_json_new_array(), *call = ls_json_new_object();
    ls_json_set_text(call, "type", "function");
    ls_json_set(call, "function", ls_json_share(function));
    ls_json_push(calls, call);
    return calls;
}

static bool says_nothing(const ls_json *value) {
    return ls_json_is_null(value) || (ls_json_is_array(value) && ls_json_count(value) == 0);
}

static ls_status add_member(ls_json *m, const char *key, const ls_json *value, size_t number,
                            ls_error *e) {
    if (says_nothing(value)) return LS_OK;
    if (ls_message_is_weight(key)) LS_TRY(check_weight(value, number, e));
    if (strcmp(key, "function_call") == 0) /* what OpenAI wrote before tool_calls */
        ls_json_set(m, "tool_calls", calls_of(value));
    else
        ls_json_set(m, key, ls_json_share(value));
    return LS_OK;
}

static ls_status check_content(const ls_json *m, size_t number, ls_error *e) {
    const ls_json *content = ls_json_get(m, "content");
    const char *text = ls_json_text(content);
    if (ls_json_get(m, "tool_calls")) return LS_OK;
    if (!content || ls_json_is_null(content))
        return ls_fail(e, LS_EINVAL, "message %zu has no \"content\"", number);
    if (ls_message_is_answer(m) && text && !*text)
        return ls_fail(e, LS_EINVAL, "message %zu, the assistant's, is empty", number);
    return LS_OK;
}

/* ---- {"role", "content"} ---- */

static ls_status check_role(const char *role, size_t number, ls_error *e) {
    static const char *const roles[] = {"system", "developer", "user",    "assistant",
                                        "tool",   "function",  "ipython", "observation"};
    if (!role)
        return ls_fail(e, LS_EINVAL, "message %zu has no \"role\", e.g. \"user\" or \"assistant\"",
                       number);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i], role) == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "message %zu has the role \"%.40s\"; known are system, developer, user, "
                   "assistant, tool, function, ipython and observation",
                   number, role);
}

static ls_status read_message(const ls_json *from, size_t number, ls_json *m, ls_error *e) {
    const char *role = ls_message_role(from), *key;
    const ls_json *value;
    ls_json *content = NULL;
    LS_TRY(check_role(role, number, e));
    for (void *it = ls_json_next(from, NULL, &key, &value); it;
         it = ls_json_next(from, it, &key, &value)) {
        if (strcmp(key, "content") != 0) {
            LS_TRY(add_member(m, key, value, number, e));
            continue;
        }
        LS_TRY(read_content(value, role, number, &content, e));
        ls_json_set(m, key, content);
    }
    return check_content(m, number, e);
}

/* ---- {"from", "value"} ---- */

static const char CALL[] = "function_call"; /* value: the call as JSON */

static const char *role_of(const char *from) {
    static const char *const names[][2] = {
        {"human", "user"},          {"user", "user"},      {"gpt", "assistant"},
        {"chatgpt", "assistant"},   {"bing", "assistant"}, {"bard", "assistant"},
        {"assistant", "assistant"}, {CALL, "assistant"},   {"system", "system"},
        {"observation", "tool"},    {"tool", "tool"}};
    for (size_t i = 0; from && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], from) == 0) return names[i][1];
    return NULL;
}

/* One call, or a list of them. */
static ls_status read_calls(const char *text, size_t number, ls_json **calls_p, ls_error *e) {
    ls_json *value = NULL, *calls = ls_json_new_array();
    ls_error why = {0};
    bool right = ls_json_parse(text, strlen(text), "", &value, &why) == LS_OK;
    bool list = ls_json_is_array(value);
    size_t n = list ? ls_json_count(value) : right;
    for (size_t i = 0; right && i < n; i++) {
        const ls_json *call = list ? ls_json_at(value, i) : value;
        right = ls_json_text(ls_json_get(call, "name")) && ls_json_get(call, "arguments");
        ls_json *one = right ? calls_of(call) : NULL;
        if (right) ls_json_push(calls, ls_json_share(ls_json_at(one, 0)));
        ls_json_free(one);
    }
    ls_json_free(value);
    *calls_p = calls;
    if (right && n) return LS_OK;
    ls_json_free(calls);
    return ls_fail(e, LS_EINVAL,
                   "turn %zu is a function_call, and its \"value\" is no JSON text of {\"name\", "
                   "\"arguments\"}",
                   number);
}

static ls_status set_value(ls_json *m, const ls_json *turn, size_t number, ls_error *e) {
    const char *from = ls_json_text(ls_json_get(turn, "from"));
    const char *value = ls_json_text(ls_json_get(turn, "value"));
    ls_json *calls = NULL;
    if (!value || (!*value && ls_message_is_answer(m)))
        return ls_fail(e, LS_EINVAL, "turn %zu has no \"value\", or an empty one", number);
    if (strcmp(from, CALL) != 0) {
        ls_json_set_text(m, "content", value);
        return LS_OK;
    }
    LS_TRY(read_calls(value, number, &calls, e));
    ls_json_set_text(m, "content", "");
    ls_json_set(m, "tool_calls", calls);
    return LS_OK;
}

static ls_status read_turn(const ls_json *turn, size_t number, ls_json *m, ls_error *e) {
    const char *from = ls_json_text(ls_json_get(turn, "from")), *role = role_of(from);
    const char *key;
    const ls_json *value;
    if (!role)
        return ls_fail(e, LS_EINVAL,
                       "turn %zu is from \"%.40s\"; human, gpt, system, function_call, observation "
                       "and tool are known",
                       number, from ? from : "");
    ls_json_set_text(m, "role", role);
    LS_TRY(set_value(m, turn, number, e));
    for (void *it = ls_json_next(turn, NULL, &key, &value); it;
         it = ls_json_next(turn, it, &key, &value))
        if (strcmp(key, "from") != 0 && strcmp(key, "value") != 0 && !ls_json_get(m, key))
            LS_TRY(add_member(m, key, value, number, e));
    return LS_OK;
}

ls_status ls_message_read(const ls_json *from, size_t number, ls_json **m_p, ls_error *e) {
    ls_json *m = ls_json_new_object();
    bool turn = ls_json_get(from, "from") && !ls_json_get(from, "role");
    ls_status s = turn ? read_turn(from, number, m, e) : read_message(from, number, m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_json_free(m);
    return s;
}
