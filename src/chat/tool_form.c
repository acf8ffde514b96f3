/* tool_form.c - see tool_form.h. */
#include "chat/tool_form.h"

#include <stdlib.h>
#include <string.h>

const char *ls_tool_form_arguments(ls_tool_form f) {
    return f == LS_TOOLS_BARE ? "parameters" : "arguments";
}

/* ---- the form ---- */

static const char PROBE[] =
    "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"probetool\", "
    "\"description\": "
    "\"It probes.\", \"parameters\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": "
    "\"string\", \"description\": \"It.\"}}, \"required\": [\"x\"]}}}], \"messages\": [{\"role\": "
    "\"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": "
    "[{\"id\": \"callprobe\", \"type\": \"function\", \"function\": {\"name\": \"probecall\", "
    "\"arguments\": {\"x\": \"y\"}}}]}, {\"role\": \"tool\", \"name\": \"probecall\", "
    "\"tool_call_id\": \"callprobe\", \"content\": \"z\"}]}";

static bool writes(const ls_buf *text, const char *word) {
    return text->len && memmem(text->data, text->len, word, strlen(word));
}

ls_tool_form ls_tool_form_of(const ls_chat_format *f) {
    ls_json *probe = NULL;
    ls_buf text = {0};
    ls_error e = {0};
    ls_tool_form form = LS_TOOLS_UNKNOWN;
    if (ls_json_parse(PROBE, sizeof PROBE - 1, "it", &probe, &e) != LS_OK) abort();
    const ls_chat_text t = {.messages = ls_json_get(probe, "messages"),
                            .n = 3,
                            .tools = ls_json_get(probe, "tools"),
                            .prompt = true};
    if (ls_chat_write(f, &t, &text, &e) == LS_OK && writes(&text, "probetool")) {
        if (writes(&text, LS_TOOL_TAG) &&
            writes(&text, "{\"name\": \"probecall\", \"arguments\": {"))
            form = LS_TOOLS_TAGGED;
        else if (writes(&text, "{\"name\": \"probecall\", \"parameters\": {"))
            form = LS_TOOLS_BARE;
    }
    ls_buf_free(&text);
    ls_json_free(probe);
    return form;
}

/* ---- a text ---- */

void ls_tool_text_free(ls_tool_text *t) {
    for (size_t i = 0; i < t->n; i++) {
        free(t->calls[i].name);
        ls_buf_free(&t->calls[i].arguments);
    }
    free(t->calls);
    *t = (ls_tool_text){0};
}

/* A place in a text [n]. */
typedef struct call_reader {
    const char *text;
    size_t n, at;
} call_reader;

static void skip_space(call_reader *r) {
    while (r->at < r->n && strchr(" \t\r\n", r->text[r->at]) && r->text[r->at]) r->at++;
}

static bool skip(call_reader *r, const char *word) {
    size_t n = strlen(word);
    skip_space(r);
    if (r->n - r->at < n || memcmp(r->text + r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

/* The end of the JSON value at r, or the end of the text if it is not complete. */
static size_t value_end(const call_reader *r, bool *complete_p) {
    int depth = 0;
    bool text = false;
    size_t i = r->at;
    *complete_p = false;
    for (; i < r->n; i++) {
        char c = r->text[i];
        if (text && c == '\\') i++;
        if (c == '"' && i < r->n) text = !text;
        if (!text && (c == '{' || c == '[')) depth++;
        if (!text && depth == 0 && (c == ',' || c == '}' || c == ']')) break;
        if (!text && (c == '}' || c == ']')) depth--;
        *complete_p = !text && depth == 0 && (c == '}' || c == ']' || c == '"');
        if (*complete_p) return i + 1;
    }
    *complete_p = i < r->n;
    return i < r->n ? i : r->n;
}

/* The text of a JSON string [n], in a list, since that is what a JSON text may be. NULL: it is
 * none. */
static ls_json *read_name(const char *string, size_t n) {
    char *list = ls_format("[%.*s]", (int)n, string);
    ls_json *j = NULL, *name = NULL;
    ls_error e = {0};
    if (ls_json_parse(list, strlen(list), "", &j, &e) == LS_OK && ls_json_text(ls_json_at(j, 0)))
        name = ls_json_share(ls_json_at(j, 0));
    ls_json_free(j);
    free(list);
    return name;
}

/* Reads {"name": "f", "arguments": ... in this order; false: it is not there, or not yet. */
static bool read_head(call_reader *r, const char *arguments, ls_json **name_p) {
    char *key = ls_format("\"%s\"", arguments);
    bool complete = false, there = skip(r, "{") && skip(r, "\"name\"") && skip(r, ":");
    skip_space(r);
    size_t from = r->at, end = there ? value_end(r, &complete) : from;
    ls_json *name = there && complete ? read_name(r->text + from, end - from) : NULL;
    r->at = end;
    there = name && skip(r, ",") && skip(r, key) && skip(r, ":");
    skip_space(r);
    free(key);
    if (there && r->at < r->n) {
        *name_p = name;
        return true;
    }
    ls_json_free(name);
    return false;
}

static ls_tool_call *add_call(ls_tool_text *t, const char *name) {
    t->calls = ls_grow(t->calls, t->n, sizeof *t->calls);
    t->calls[t->n] = (ls_tool_call){.name = ls_strdup(name)};
    return &t->calls[t->n++];
}

/* All of the call is there, in any order: {"arguments": ..., "name": ...}. */
static bool read_whole(const call_reader *r, const char *arguments, ls_tool_text *t) {
    ls_json *j = NULL;
    ls_error e = {0};
    if (ls_json_parse(r->text + r->at, r->n - r->at, "", &j, &e) != LS_OK) return false;
    const char *name = ls_json_text(ls_json_get(j, "name"));
    const ls_json *value = ls_json_get(j, arguments);
    bool right = name && value;
    if (right) ls_json_write(value, 0, &add_call(t, name)->arguments);
    ls_json_free(j);
    return right;
}

static bool is_known(const ls_tool_names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->tools[i], name) == 0) return true;
    return names->form == LS_TOOLS_TAGGED;
}

/* A call of which [r->at, r->n) is there. closed: no more of it will come. False: it is none, or
 * not yet seen to be one. */
static bool read_call(call_reader r, const ls_tool_names *names, bool closed, ls_tool_text *t) {
    const char *arguments = ls_tool_form_arguments(names->form);
    call_reader head = r;
    ls_json *name = NULL;
    bool complete = false, known;
    if (!read_head(&head, arguments, &name)) return closed && read_whole(&r, arguments, t);
    known = is_known(names, ls_json_text(name));
    if (known) {
        ls_tool_call *c = add_call(t, ls_json_text(name));
        ls_buf_append(&c->arguments, head.text + head.at, value_end(&head, &complete) - head.at);
    }
    ls_json_free(name);
    return known;
}

/* How many bytes at the end may begin the tag, with white space before it. */
static size_t held_back(const char *text, size_t n) {
    size_t k = sizeof LS_TOOL_TAG - 2;
    if (k > n) k = n;
    while (k && memcmp(text + n - k, LS_TOOL_TAG, k) != 0) k--;
    while (k < n && text[n - k - 1] && strchr(" \t\r\n", text[n - k - 1])) k++;
    return k;
}

/* Where the call at r ends: at the tag that is in no JSON string, or at the end of the text, but
 * for what may begin the tag there. */
static bool find_end(const call_reader *r, bool ended, size_t *end_p) {
    const size_t full = sizeof LS_TOOL_TAG_END - 1;
    bool text = false;
    for (*end_p = r->at; *end_p < r->n; ++*end_p) {
        const char *at = r->text + *end_p;
        size_t left = r->n - *end_p, n = left < full ? left : full;
        if (text && *at == '\\') ++*end_p;
        if (*at == '"') text = !text;
        if (!text && memcmp(at, LS_TOOL_TAG_END, n) == 0 && (n == full || !ended)) return n == full;
    }
    *end_p = r->n;
    return false;
}

static void read_tagged(const ls_tool_names *names, call_reader r, bool ended, ls_tool_text *t) {
    const char *tag = r.n ? memmem(r.text, r.n, LS_TOOL_TAG, sizeof LS_TOOL_TAG - 1) : NULL;
    size_t first = tag ? (size_t)(tag - r.text) : r.n;
    t->ncontent = tag || !ended ? first - held_back(r.text, first) : first;
    for (r.at = first; r.at < r.n && skip(&r, LS_TOOL_TAG);) {
        call_reader inner = {r.text, 0, r.at};
        bool closed = find_end(&r, ended, &inner.n);
        if (!read_call(inner, names, closed || ended, t) && (closed || ended)) {
            if (t->n == 0) t->ncontent = r.n; /* no calls are in it */
            return;
        }
        r.at = closed ? inner.n + sizeof LS_TOOL_TAG_END - 1 : r.n;
    }
}

static void read_bare(const ls_tool_names *names, call_reader r, bool ended, ls_tool_text *t) {
    skip_space(&r);
    bool may_be = r.at == r.n || r.text[r.at] == '{';
    t->ncontent = r.n;
    if (!may_be || (r.at == r.n && ended)) return;
    if (read_call(r, names, ended, t) || !ended) t->ncontent = 0;
    if (t->n && !is_known(names, t->calls[0].name)) {
        ls_tool_text_free(t);
        t->ncontent = r.n;
    }
}

void ls_tool_text_read(const ls_tool_names *names, const char *text, size_t n, bool ended,
                       ls_tool_text *t_p) {
    *t_p = (ls_tool_text){.ncontent = n};
    const call_reader r = {.text = text, .n = n};
    if (names->form == LS_TOOLS_TAGGED) read_tagged(names, r, ended, t_p);
    if (names->form == LS_TOOLS_BARE) read_bare(names, r, ended, t_p);
}
