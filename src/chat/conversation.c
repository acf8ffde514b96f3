/* conversation.c - see conversation.h. */
#include "chat/conversation.h"

#include <stdlib.h>
#include <string.h>

const char *ls_message_role(const ls_json *m) { return ls_json_text(ls_json_get(m, "role")); }

bool ls_message_is_answer(const ls_json *m) {
    const char *role = ls_message_role(m);
    return role && strcmp(role, "assistant") == 0;
}

static ls_json *message_new(const char *role, const char *content) {
    ls_json *m = ls_json_new_object();
    ls_json_set_text(m, "role", role);
    ls_json_set_text(m, "content", content);
    return m;
}

/* ---- messages ---- */

static ls_status check_message(const ls_json *m, size_t i, ls_error *e) {
    const ls_json *content = ls_json_get(m, "content");
    const char *role = ls_message_role(m);
    if (!role)
        return ls_fail(e, LS_EINVAL, "message %zu has no \"role\", e.g. \"user\" or \"assistant\"",
                       i + 1);
    if (!content && !ls_json_get(m, "tool_calls"))
        return ls_fail(e, LS_EINVAL, "message %zu has no \"content\"", i + 1);
    if (ls_message_is_answer(m) && ls_json_text(content) && !*ls_json_text(content) &&
        !ls_json_get(m, "tool_calls"))
        return ls_fail(e, LS_EINVAL, "message %zu, the assistant's, is empty", i + 1);
    return LS_OK;
}

/* Appends the messages of an array. */
static ls_status add_messages(const ls_json *from, const char *key, ls_json *to, ls_error *e) {
    if (!ls_json_is_array(from) || ls_json_count(from) == 0)
        return ls_fail(e, LS_EINVAL, "\"%s\" is no list of messages, or it is empty", key);
    for (size_t i = 0; i < ls_json_count(from); i++) {
        LS_TRY(check_message(ls_json_at(from, i), i, e));
        ls_json_push(to, ls_json_share(ls_json_at(from, i)));
    }
    return LS_OK;
}

static void find_tools(const ls_json *line, ls_conversation *c) {
    const ls_json *tools = ls_json_get(line, "tools");
    if (tools && ls_json_is_array(tools) && ls_json_count(tools)) c->tools = tools;
}

static ls_status read_messages(const ls_json *line, ls_conversation *c, ls_error *e) {
    find_tools(line, c);
    return add_messages(ls_json_get(line, "messages"), "messages", c->messages, e);
}

static ls_status read_pair(const ls_json *line, ls_conversation *c, ls_error *e) {
    LS_TRY(add_messages(ls_json_get(line, "prompt"), "prompt", c->messages, e));
    return add_messages(ls_json_get(line, "completion"), "completion", c->messages, e);
}

/* ---- ShareGPT ---- */

static const char *role_of(const char *from) {
    static const char *const names[][2] = {{"human", "user"},          {"user", "user"},
                                           {"gpt", "assistant"},       {"chatgpt", "assistant"},
                                           {"assistant", "assistant"}, {"system", "system"}};
    for (size_t i = 0; from && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], from) == 0) return names[i][1];
    return NULL;
}

static ls_status read_sharegpt(const ls_json *line, ls_conversation *c, ls_error *e) {
    const ls_json *list = ls_json_get(line, "conversations");
    if (ls_json_get(ls_json_at(list, 0), "role"))
        return add_messages(list, "conversations", c->messages, e);
    if (!ls_json_is_array(list) || ls_json_count(list) == 0)
        return ls_fail(e, LS_EINVAL, "\"conversations\" is no list, or it is empty");
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const ls_json *m = ls_json_at(list, i);
        const char *from = ls_json_text(ls_json_get(m, "from")), *role = role_of(from);
        const char *value = ls_json_text(ls_json_get(m, "value"));
        if (!role)
            return ls_fail(e, LS_EINVAL,
                           "turn %zu is from \"%.40s\"; human, gpt and system are known", i + 1,
                           from ? from : "");
        if (!value || (!*value && strcmp(role, "assistant") == 0))
            return ls_fail(e, LS_EINVAL, "turn %zu has no \"value\", or an empty one", i + 1);
        ls_json_push(c->messages, message_new(role, value));
    }
    return LS_OK;
}

/* ---- Alpaca ---- */

static const char *text_at(const ls_json *line, const char *key) {
    const char *text = ls_json_text(ls_json_get(line, key));
    return text ? text : "";
}

static ls_status add_history(const ls_json *history, ls_json *messages, ls_error *e) {
    for (size_t i = 0; history && i < ls_json_count(history); i++) {
        const ls_json *pair = ls_json_at(history, i);
        const char *asked = ls_json_text(ls_json_at(pair, 0)),
                   *said = ls_json_text(ls_json_at(pair, 1));
        if (!asked || !said || !*said)
            return ls_fail(e, LS_EINVAL, "\"history\" is no list of [question, answer]");
        ls_json_push(messages, message_new("user", asked));
        ls_json_push(messages, message_new("assistant", said));
    }
    return LS_OK;
}

static ls_status read_alpaca(const ls_json *line, ls_conversation *c, ls_error *e) {
    const char *input = text_at(line, "input"), *output = text_at(line, "output");
    const char *asked = text_at(line, "instruction");
    if (!*output) return ls_fail(e, LS_EINVAL, "\"output\" is no text, or it is empty");
    if (*text_at(line, "system"))
        ls_json_push(c->messages, message_new("system", text_at(line, "system")));
    LS_TRY(add_history(ls_json_get(line, "history"), c->messages, e));
    char *both = ls_format("%s%s%s", asked, *asked && *input ? "\n\n" : "", input);
    ls_json_push(c->messages, message_new("user", both));
    ls_json_push(c->messages, message_new("assistant", output));
    free(both);
    return LS_OK;
}

/* ---- texts ---- */

static ls_status read_text(const ls_json *line, ls_conversation *c, ls_error *e) {
    bool pair = ls_json_get(line, "completion") != NULL;
    const char *text = ls_json_text(ls_json_get(line, pair ? "completion" : "text"));
    const char *prompt = pair ? ls_json_text(ls_json_get(line, "prompt")) : "";
    if (!text || !*text || !prompt)
        return ls_fail(e, LS_EINVAL, "%s is no text, or it is empty",
                       pair ? "\"prompt\" or \"completion\"" : "\"text\"");
    c->text = text;
    c->prompt = prompt;
    ls_json_free(c->messages);
    c->messages = NULL;
    return LS_OK;
}

/* ---- which form ---- */

static ls_status fail_form(const ls_json *line, ls_error *e) {
    ls_buf keys = {0};
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(line, NULL, &key, &value); it && keys.len < 100;
         it = ls_json_next(line, it, &key, &value))
        ls_buf_printf(&keys, "%s\"%.30s\"", keys.len ? ", " : "", key);
    ls_status s = ls_fail(
        e, LS_EINVAL,
        "a line has messages, conversations, instruction and output, prompt and completion, or "
        "text; this one has %s",
        keys.len ? keys.data : "no keys");
    ls_buf_free(&keys);
    return s;
}

static ls_status read(const ls_json *line, ls_conversation *c, ls_error *e) {
    if (ls_json_get(line, "chosen") && ls_json_get(line, "rejected"))
        return ls_fail(
            e, LS_EINVAL,
            "has chosen and rejected answers; set train.loss: dpo to train on such pairs");
    if (ls_json_get(line, "messages")) return read_messages(line, c, e);
    if (ls_json_get(line, "conversations")) return read_sharegpt(line, c, e);
    if (ls_json_get(line, "prompt") && ls_json_get(line, "completion"))
        return ls_json_is_array(ls_json_get(line, "prompt")) ? read_pair(line, c, e)
                                                             : read_text(line, c, e);
    if (ls_json_get(line, "instruction") && ls_json_get(line, "output"))
        return read_alpaca(line, c, e);
    return ls_json_get(line, "text") ? read_text(line, c, e) : fail_form(line, e);
}

ls_status ls_conversation_read(const ls_json *line, ls_conversation *c_p, ls_error *e) {
    ls_conversation c = {.messages = ls_json_new_array()};
    ls_status s =
        ls_json_is_object(line) ? read(line, &c, e) : ls_fail(e, LS_EINVAL, "is not a JSON object");
    if (s == LS_OK)
        *c_p = c;
    else
        ls_conversation_free(&c);
    return s;
}

ls_status ls_conversation_of_lists(const ls_json *line, const char *before, const char *key,
                                   ls_conversation *c_p, ls_error *e) {
    ls_conversation c = {.messages = ls_json_new_array()};
    find_tools(line, &c);
    ls_status s = LS_OK;
    if (before) s = add_messages(ls_json_get(line, before), before, c.messages, e);
    if (s == LS_OK) s = add_messages(ls_json_get(line, key), key, c.messages, e);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_conversation_free(&c);
    return s;
}

void ls_conversation_free(ls_conversation *c) {
    ls_json_free(c->messages);
    *c = (ls_conversation){0};
}
