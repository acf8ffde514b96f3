/* conversation.c - see conversation.h. */
#include "chat/conversation.h"

#include <stdlib.h>
#include <string.h>

/* Does the line have this key, with a value that is not null? */
static bool has(const ls_json *line, const char *key) {
    const ls_json *value = ls_json_get(line, key);
    return value && !ls_json_is_null(value);
}

/* ---- system and tools ---- */

/* NULL: the line has none, or an empty one. */
static ls_status find_system(const ls_json *line, ls_json **text_p, ls_error *e) {
    *text_p = NULL;
    if (!has(line, "system")) return LS_OK;
    ls_json *text = ls_message_text(ls_json_get(line, "system"));
    if (!text) return ls_fail(e, LS_EINVAL, "\"system\" is no text");
    if (*ls_json_text(text))
        *text_p = text;
    else
        ls_json_free(text);
    return LS_OK;
}

static ls_status parse_tools(const char *text, const char *key, ls_json **j_p, ls_error *e) {
    ls_error why = {0};
    *j_p = NULL;
    if (!text[strspn(text, " \t\r\n")]) return LS_OK;
    if (ls_json_parse(text, strlen(text), "", j_p, &why) == LS_OK) return LS_OK;
    return ls_fail(e, LS_EINVAL, "\"%s\": its text %s", key, why.msg);
}

/* Appends a tool, or a list of tools; either may be written as JSON text. */
static ls_status add_tools(const ls_json *value, const char *key, int depth, ls_json *tools,
                           ls_error *e) {
    ls_json *parsed = NULL;
    ls_status s = LS_OK;
    if (ls_json_text(value)) {
        LS_TRY(parse_tools(ls_json_text(value), key, &parsed, e));
        if (!parsed) return LS_OK;
        value = parsed;
    }
    if (ls_json_is_object(value))
        ls_json_push(tools, ls_json_share(value));
    else if (!ls_json_is_array(value) || depth == 1)
        s = ls_fail(e, LS_EINVAL, "\"%s\" is no list of tools, and no JSON text of one", key);
    else
        for (size_t i = 0; s == LS_OK && i < ls_json_count(value); i++)
            s = add_tools(ls_json_at(value, i), key, depth + 1, tools, e);
    ls_json_free(parsed);
    return s;
}

/* OpenAI's functions became tools: {"type": "function", "function": ...}. */
static ls_json *tools_of_functions(const ls_json *functions) {
    ls_json *tools = ls_json_new_array();
    for (size_t i = 0; i < ls_json_count(functions); i++) {
        ls_json *tool = ls_json_new_object();
        ls_json_set_text(tool, "type", "function");
        ls_json_set(tool, "function", ls_json_share(ls_json_at(functions, i)));
        ls_json_push(tools, tool);
    }
    return tools;
}

static ls_status find_tools(const ls_json *line, ls_conversation *c, ls_error *e) {
    bool old = !has(line, "tools");
    const char *key = old ? "functions" : "tools";
    const ls_json *value = ls_json_get(line, key);
    if (!has(line, key)) return LS_OK;
    ls_json *tools = ls_json_new_array();
    ls_status s = add_tools(value, key, 0, tools, e);
    if (s == LS_OK && ls_json_count(tools))
        c->tools = old ? tools_of_functions(tools) : ls_json_share(tools);
    ls_json_free(tools);
    return s;
}

ls_status ls_conversation_begin(const ls_json *line, ls_conversation *c, ls_error *e) {
    ls_json *system = NULL;
    c->messages = ls_json_new_array();
    LS_TRY(find_tools(line, c, e));
    LS_TRY(find_system(line, &system, e));
    if (system) ls_conversation_add_text(c, "system", ls_json_text(system));
    ls_json_free(system);
    return LS_OK;
}

/* ---- messages ---- */

void ls_conversation_add_text(ls_conversation *c, const char *role, const char *text) {
    ls_json_push(c->messages, ls_message_new(role, text));
}

/* Appends message `number` of a list. */
static ls_status add_message(ls_conversation *c, const ls_json *from, size_t number, ls_error *e) {
    ls_json *m = NULL;
    LS_TRY(ls_message_read(from, number, &m, e));
    const char *before = ls_message_role(ls_json_at(c->messages, 0));
    bool twice = number == 1 && ls_json_count(c->messages) == 1 && before &&
                 strcmp(before, "system") == 0 && strcmp(ls_message_role(m), "system") == 0;
    ls_json_push(c->messages, m);
    if (!twice) return LS_OK;
    return ls_fail(e, LS_EINVAL, "has \"system\", and message 1 is the system's, too; remove one");
}

ls_status ls_conversation_add(ls_conversation *c, const ls_json *list, const char *key,
                              ls_error *e) {
    if (ls_json_is_object(list)) return add_message(c, list, 1, e);
    if (!ls_json_is_array(list) || ls_json_count(list) == 0)
        return ls_fail(e, LS_EINVAL, "\"%s\" is no list of messages, or it is empty", key);
    for (size_t i = 0; i < ls_json_count(list); i++)
        LS_TRY(add_message(c, ls_json_at(list, i), i + 1, e));
    return LS_OK;
}

static ls_status read_list(const ls_json *line, const char *key, ls_conversation *c, ls_error *e) {
    LS_TRY(ls_conversation_begin(line, c, e));
    return ls_conversation_add(c, ls_json_get(line, key), key, e);
}

static ls_status read_messages(const ls_json *line, ls_conversation *c, ls_error *e) {
    return read_list(line, "messages", c, e);
}

static ls_status read_sharegpt(const ls_json *line, ls_conversation *c, ls_error *e) {
    return read_list(line, "conversations", c, e);
}

/* ---- Alpaca ---- */

static const char *text_at(const ls_json *line, const char *key) {
    const char *text = ls_json_text(ls_json_get(line, key));
    return text ? text : "";
}

static ls_status add_history(const ls_json *line, ls_conversation *c, ls_error *e) {
    const ls_json *history = ls_json_get(line, "history");
    if (has(line, "history") && !ls_json_is_array(history))
        return ls_fail(e, LS_EINVAL, "\"history\" is no list of [question, answer]");
    for (size_t i = 0; i < ls_json_count(history); i++) {
        const ls_json *pair = ls_json_at(history, i);
        const char *asked = ls_json_text(ls_json_at(pair, 0)),
                   *said = ls_json_text(ls_json_at(pair, 1));
        if (!asked || !said || !*said)
            return ls_fail(e, LS_EINVAL, "\"history\" is no list of [question, answer]");
        ls_conversation_add_text(c, "user", asked);
        ls_conversation_add_text(c, "assistant", said);
    }
    return LS_OK;
}

/* A question, and what it is about. */
static void ask(ls_conversation *c, const char *asked, const char *about) {
    char *both = ls_format("%s%s%s", asked, *asked && *about ? "\n\n" : "", about);
    ls_conversation_add_text(c, "user", both);
    free(both);
}

ls_status ls_conversation_ask(const ls_json *line, ls_conversation *c, ls_error *e) {
    LS_TRY(add_history(line, c, e));
    ask(c, text_at(line, "instruction"), text_at(line, "input"));
    return LS_OK;
}

static ls_status read_alpaca(const ls_json *line, ls_conversation *c, ls_error *e) {
    const char *output = text_at(line, "output");
    if (!*output) return ls_fail(e, LS_EINVAL, "\"output\" is no text, or it is empty");
    LS_TRY(ls_conversation_begin(line, c, e));
    LS_TRY(ls_conversation_ask(line, c, e));
    ls_conversation_add_text(c, "assistant", output);
    return LS_OK;
}

/* ---- a question and an answer ---- */

/* The first two of the form's keys; the third one may be "context". */
static ls_status read_question(const ls_json *line, ls_conversation *c, ls_error *e) {
    const char *const *keys = c->keys;
    for (int i = 0; i < 2; i++)
        if (!*text_at(line, keys[i]))
            return ls_fail(e, LS_EINVAL, "\"%s\" is no text, or it is empty", keys[i]);
    bool has_context = strcmp(keys[2], "context") == 0;
    LS_TRY(ls_conversation_begin(line, c, e));
    ask(c, text_at(line, keys[0]), has_context ? text_at(line, keys[2]) : "");
    ls_conversation_add_text(c, "assistant", text_at(line, keys[1]));
    return LS_OK;
}

/* ---- texts ---- */

ls_status ls_conversation_check_texts(const ls_json *line, ls_error *e) {
    ls_json *system = NULL;
    LS_TRY(find_system(line, &system, e));
    if (!system) return LS_OK;
    ls_json_free(system);
    return ls_fail(e, LS_EINVAL,
                   "has \"system\" beside texts, which are trained on without a template; write "
                   "lists of messages, or remove it");
}

static ls_status read_text(const ls_json *line, ls_conversation *c, ls_error *e) {
    static const char *const keys[] = {"text", "system", NULL}, *const of_pairs[] = {
                                                                    "prompt", "completion",
                                                                    "system", NULL};
    bool pair = ls_json_get(line, "completion") != NULL;
    const char *text = ls_json_text(ls_json_get(line, pair ? "completion" : "text"));
    const char *prompt = pair ? ls_json_text(ls_json_get(line, "prompt")) : "";
    if (!text || !*text || !prompt)
        return ls_fail(e, LS_EINVAL, "%s is no text, or it is empty",
                       pair ? "\"prompt\" or \"completion\"" : "\"text\"");
    c->text = text;
    c->prompt = prompt;
    c->keys = pair ? of_pairs : keys;
    return ls_conversation_check_texts(line, e);
}

static ls_status read_pair(const ls_json *line, ls_conversation *c, ls_error *e) {
    if (!ls_json_is_array(ls_json_get(line, "prompt"))) return read_text(line, c, e);
    LS_TRY(read_list(line, "prompt", c, e));
    c->nprompt = ls_json_count(c->messages);
    return ls_conversation_add(c, ls_json_get(line, "completion"), "completion", e);
}

/* ---- which form ---- */

#define FOR_TEMPLATES "system", "tools", "functions"

typedef struct form {
    const char *needs[2]; /* NULL: nothing more */
    ls_status (*read)(const ls_json *line, ls_conversation *, ls_error *);
    const char *keys[8]; /* that are read, unless the function sets others */
} form;

static const form forms[] = {
    {{"messages", NULL}, read_messages, {"messages", FOR_TEMPLATES}},
    {{"conversations", NULL}, read_sharegpt, {"conversations", FOR_TEMPLATES}},
    {{"prompt", "completion"}, read_pair, {"prompt", "completion", FOR_TEMPLATES}},
    {{"instruction", "output"},
     read_alpaca,
     {"instruction", "input", "output", "history", FOR_TEMPLATES}},
    {{"text", NULL}, read_text, {NULL}},
    {{"instruction", "response"},
     read_question,
     {"instruction", "response", "context", FOR_TEMPLATES}},
    {{"question", "answer"}, read_question, {"question", "answer", FOR_TEMPLATES}},
    {{"question", "response"}, read_question, {"question", "response", FOR_TEMPLATES}},
    {{"query", "response"}, read_question, {"query", "response", FOR_TEMPLATES}},
    {{"prompt", "response"}, read_question, {"prompt", "response", FOR_TEMPLATES}},
};

static const form *form_of(const ls_json *line) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *const *needs = forms[i].needs;
        if (has(line, needs[0]) && (!needs[1] || has(line, needs[1]))) return &forms[i];
    }
    return NULL;
}

/* Other objects may have these members, too: tables questions as numbers, records of files a "text"
 * with its size. */
const char *ls_conversation_form(const ls_json *line) {
    const form *f = ls_json_is_object(line) ? form_of(line) : NULL;
    bool needs_text = f && (f->read == read_question || f->read == read_text);
    bool is = f && (!needs_text || ls_json_text(ls_json_get(line, f->needs[0])));
    return is ? f->needs[0] : NULL;
}

static ls_status fail_form(const ls_json *line, ls_error *e) {
    ls_buf keys = {0};
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(line, NULL, &key, &value); it && keys.len < 100;
         it = ls_json_next(line, it, &key, &value))
        ls_buf_printf(&keys, "%s\"%.30s\"", keys.len ? ", " : "", key);
    ls_status s = ls_fail(
        e, LS_EINVAL,
        "a line has messages, conversations, instruction and output, prompt and completion, "
        "question and answer, or text (all forms: docs/reference/conversations.md); this one has "
        "%s",
        keys.len ? keys.data : "no keys");
    ls_buf_free(&keys);
    return s;
}

static ls_status read(const ls_json *line, ls_conversation *c, ls_error *e) {
    if (!ls_json_is_object(line)) return ls_fail(e, LS_EINVAL, "is not a JSON object");
    if (has(line, "chosen") && has(line, "rejected"))
        return ls_fail(
            e, LS_EINVAL,
            "has chosen and rejected answers; set train.loss: dpo to train on such pairs");
    const form *f = form_of(line);
    if (!f) return fail_form(line, e);
    const ls_json *label = ls_json_get(line, "label");
    if (ls_json_is_bool(label) && !ls_json_is_true(label))
        return ls_fail(
            e, LS_EINVAL,
            "has \"label\": false, an answer that is not wanted (data for KTO); leave such "
            "lines out, e.g. by data.damaged: skip");
    c->keys = f->keys;
    return f->read(line, c, e);
}

ls_status ls_conversation_read(const ls_json *line, ls_conversation *c_p, ls_error *e) {
    ls_conversation c = {0};
    ls_status s = read(line, &c, e);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_conversation_free(&c);
    return s;
}

void ls_conversation_free(ls_conversation *c) {
    ls_json_free(c->messages);
    ls_json_free(c->tools);
    *c = (ls_conversation){0};
}
