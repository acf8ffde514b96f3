/* tool_form.c - see tool_form.h. */
#include "chat/tool_form.h"

#include <stdlib.h>
#include <string.h>

#include "chat/tool_value.h"
#include "grammar/schema.h"

/* The first by which a template's call can be read is its form. */
static const ls_tool_form forms[] = {
    {.open = "<tool_call>",
     .close = "</tool_call>",
     .object = "arguments",
     .marks = {"<tool_call>", "</tool_call>"}},
    {.open = "", .close = "", .object = "parameters"},
    {.open = "[TOOL_CALLS]",
     .close = "",
     .object = "arguments",
     .list = true,
     .marks = {"[TOOL_CALLS]"}},
    {.open = "[TOOL_CALLS]",
     .close = "",
     .name = "",
     .name_end = "[ARGS]",
     .id = "[CALL_ID]",
     .end = "",
     .marks = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"}},
    {.open = "<tool_call>",
     .close = "</tool_call>",
     .name = "<function=",
     .name_end = ">\n",
     .key = "<parameter=",
     .key_end = ">\n",
     .value_end = "\n</parameter>\n",
     .end = "</function>\n",
     .marks = {"<tool_call>", "</tool_call>"}},
    {.open = "<tool_call>",
     .close = "</tool_call>",
     .name = "",
     .name_end = "\n",
     .key = "<arg_key>",
     .key_end = "</arg_key>\n<arg_value>",
     .value_end = "</arg_value>\n",
     .end = "",
     .marks = {"<tool_call>", "</tool_call>"}},
    {.open = "<TOOLCALL>",
     .close = "</TOOLCALL>",
     .object = "arguments",
     .list = true,
     .marks = {"<TOOLCALL>", "</TOOLCALL>"}},
    {.open = "<tool_calls>",
     .close = "</tool_calls>",
     .object = "arguments",
     .list = true,
     .marks = {"<tool_calls>", "</tool_calls>"}},
    {.open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .object = "arguments",
     .list = true,
     .marks = {"<|tool_call|>", "<|/tool_call|>"}},
    {.open = "<function=", .close = "</function>", .name = "", .name_end = ">", .end = ""}};

/* A place in a text [n]. */
typedef struct call_reader {
    const char *text;
    size_t n, at;
    bool ended; /* nothing follows the text */
} call_reader;

typedef enum reading {
    READ_NOTHING, /* it is not there */
    READ_PART,    /* what follows may make it so */
    READ_ALL
} reading;

static void skip_space(call_reader *r) {
    while (r->at < r->n && ls_json_is_space(r->text[r->at])) r->at++;
}

/* Skips a mark, each \n of which may be missing. spaced: white space may stand before it. */
static reading skip_mark(call_reader *r, const char *mark, bool spaced) {
    call_reader to = *r;
    if (spaced) skip_space(&to);
    for (; *mark; mark++) {
        bool same = to.at < to.n && to.text[to.at] == *mark;
        if (to.at == to.n && !r->ended) return READ_PART;
        if (!same && *mark != '\n') return READ_NOTHING;
        to.at += same;
    }
    *r = to;
    return READ_ALL;
}

static bool skip(call_reader *r, const char *word) { return skip_mark(r, word, true) == READ_ALL; }

/* Skips the mark behind a call that is complete: it may be missing, or cut. */
static reading skip_close(call_reader *r, const char *close) {
    call_reader to = {r->text, r->n, r->at, false};
    reading now = skip_mark(&to, close, true);
    if (now == READ_PART && !r->ended) return READ_PART;
    if (now == READ_PART) r->at = r->n;
    if (now == READ_ALL) r->at = to.at;
    return READ_ALL;
}

/* ---- a call that is an object ---- */

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

/* A JSON string [n]. NULL: it is none. */
static ls_json *read_string(const char *string, size_t n) {
    ls_json *j = NULL;
    ls_error e = {0};
    if (ls_json_parse_value(string, n, "", &j, &e) != LS_OK) return NULL;
    if (ls_json_text(j)) return j;
    ls_json_free(j);
    return NULL;
}

/* Reads {"name": "f", "arguments": ... in this order; false: it is not there, or not yet. */
static bool read_head(call_reader *r, const char *arguments, ls_json **name_p) {
    char *key = ls_format("\"%s\"", arguments);
    bool complete = false, there = skip(r, "{") && skip(r, "\"name\"") && skip(r, ":");
    skip_space(r);
    size_t from = r->at, end = there ? value_end(r, &complete) : from;
    ls_json *name = there && complete ? read_string(r->text + from, end - from) : NULL;
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

static const ls_tool *find_tool(const ls_tool_names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->tools[i].name, name) == 0) return &names->tools[i];
    return NULL;
}

/* Where nothing marks calls, only the tools' names do. */
static bool may_be_called(const ls_tool_names *names, const char *name) {
    return *names->form->open || find_tool(names, name);
}

/* All of the call is there, in any order: {"arguments": ..., "name": ...}. */
static bool read_whole(const call_reader *r, const ls_tool_names *names, ls_tool_text *t) {
    const char *arguments = names->form->object;
    ls_json *j = NULL;
    ls_error e = {0};
    if (ls_json_parse(r->text + r->at, r->n - r->at, "", &j, &e) != LS_OK) return false;
    const char *name = ls_json_text(ls_json_get(j, "name"));
    const ls_json *value = ls_json_get(j, arguments);
    bool right = name && value && may_be_called(names, name);
    if (right) ls_json_write_exact(value, &add_call(t, name)->arguments);
    ls_json_free(j);
    return right;
}

/* Arguments [n]. Some models write the object as a text: that is appended when all is there. */
static void put_arguments(const char *text, size_t n, bool all, ls_buf *out) {
    bool quoted = n && *text == '"';
    ls_json *inner = quoted && all ? read_string(text, n) : NULL, *object = NULL;
    const char *of = inner ? ls_json_text(inner) : "";
    ls_error e = {0};
    if (*of == '{' && ls_json_parse(of, strlen(of), "", &object, &e) == LS_OK)
        ls_buf_append(out, of, strlen(of));
    else if (!quoted || all)
        ls_buf_append(out, text, n);
    ls_json_free(object);
    ls_json_free(inner);
}

/* An object of which [r->at, r->n) is there; r->ended: no more of it will come. False: it is no
 * call, or not yet seen to be one. */
static bool read_object(call_reader r, const ls_tool_names *names, ls_tool_text *t) {
    const char *arguments = names->form->object;
    call_reader head = r;
    ls_json *name = NULL;
    bool complete = false, known;
    if (!read_head(&head, arguments, &name)) return r.ended && read_whole(&r, names, t);
    known = may_be_called(names, ls_json_text(name));
    if (known) {
        ls_tool_call *c = add_call(t, ls_json_text(name));
        size_t n = value_end(&head, &complete) - head.at;
        put_arguments(head.text + head.at, n, complete || r.ended, &c->arguments);
    }
    ls_json_free(name);
    return known;
}

/* Where the object at r ends: at the mark that is in no JSON string, or at the end of the text, but
 * for what may begin the mark there. */
static bool find_close(const call_reader *r, const char *mark, size_t *end_p) {
    const size_t full = strlen(mark);
    bool text = false;
    for (*end_p = r->at; *end_p < r->n; ++*end_p) {
        const char *at = r->text + *end_p;
        size_t left = r->n - *end_p, n = left < full ? left : full;
        if (text && *at == '\\') ++*end_p;
        if (*at == '"') text = !text;
        if (!text && memcmp(at, mark, n) == 0 && (n == full || !r->ended)) return n == full;
    }
    *end_p = r->n;
    return false;
}

/* Its end is `close`, or where that is nothing the JSON value's. */
static reading read_object_call(call_reader *r, const ls_tool_names *names, ls_tool_text *t) {
    const char *close = names->form->list ? "" : names->form->close;
    call_reader inner = *r;
    bool closed = false;
    skip_space(&inner);
    size_t end = 0;
    if (*close)
        closed = find_close(&inner, close, &end);
    else
        end = value_end(&inner, &closed);
    inner.n = end;
    r->at = inner.n + (closed ? strlen(close) : 0);
    inner.ended = closed || r->ended;
    if (!read_object(inner, names, t)) return inner.ended ? READ_NOTHING : READ_PART;
    return closed ? READ_ALL : READ_PART;
}

static reading read_list(call_reader *r, const ls_tool_names *names, ls_tool_text *t) {
    reading now = skip_mark(r, "[", true);
    while (now == READ_ALL) {
        now = read_object_call(r, names, t);
        if (now != READ_ALL || !skip(r, ",")) break;
    }
    if (now == READ_ALL) now = skip_mark(r, "]", true);
    return now == READ_ALL ? skip_close(r, names->form->close) : now;
}

/* ---- a call that is a name and arguments ---- */

static const char NOT_IN_NAMES[] = " \t\r\n<>[]{}\"";

/* Reads a word, up to what can be in none. It may go on where the text ends. */
static reading read_word(call_reader *r, const char *ends, const char **word_p, size_t *n_p) {
    size_t from = r->at;
    while (r->at < r->n && r->text[r->at] && !strchr(ends, r->text[r->at])) r->at++;
    *word_p = r->text + from;
    *n_p = r->at - from;
    if (r->at == r->n && !r->ended) return READ_PART;
    return *n_p ? READ_ALL : READ_NOTHING;
}

bool ls_tool_form_can_name(const ls_tool_form *f, const char *name) {
    return f->object || !strpbrk(name, NOT_IN_NAMES);
}

/* The mark behind all arguments. */
static const char *end_of(const ls_tool_form *f) { return *f->end ? f->end : f->close; }

/* Does an argument follow, or the end of them? */
static reading see_next(const call_reader *r, const ls_tool_form *f) {
    call_reader key = {r->text, r->n, r->at, false}, end = key;
    reading a = skip_mark(&key, f->key, true), b = skip_mark(&end, end_of(f), true);
    if (a == READ_ALL || b == READ_ALL) return READ_ALL;
    if (a == READ_NOTHING && b == READ_NOTHING) return READ_NOTHING;
    return r->ended ? READ_ALL : READ_PART;
}

/* *end_p: where the text at r ends, as far as that is known: at a mark behind which stands what may
 * follow it. */
static reading find_value_end(call_reader *r, const ls_tool_form *f, size_t *end_p) {
    for (; r->at < r->n; r->at++) {
        call_reader to = *r;
        reading now = skip_mark(&to, f->value_end, false);
        if (now == READ_ALL) now = see_next(&to, f);
        *end_p = r->at;
        if (now == READ_ALL) *r = to;
        if (now != READ_NOTHING) return now;
    }
    *end_p = r->n;
    return READ_PART;
}

/* Appends an argument. Of one that is a string its beginning, too. */
static reading read_value(call_reader *r, const ls_tool_names *names, const char *key,
                          ls_tool_call *c) {
    const ls_tool *tool = find_tool(names, c->name);
    const ls_json *root = tool ? tool->parameters : NULL, *schema = ls_tool_value_schema(root, key);
    size_t from = r->at, end = from;
    reading now = find_value_end(r, names->form, &end);
    if (now != READ_ALL && !ls_tool_value_is_text(root, schema)) return now;
    ls_buf_printf(&c->arguments, "%s\"", c->arguments.len > 1 ? ", " : "");
    ls_tool_value_quote(key, strlen(key), &c->arguments);
    ls_buf_printf(&c->arguments, "\": %s", now == READ_ALL ? "" : "\"");
    if (now == READ_ALL)
        ls_tool_value_write(root, schema, r->text + from, end - from, &c->arguments);
    else
        ls_tool_value_quote(r->text + from, end - from, &c->arguments);
    return now;
}

static reading read_argument(call_reader *r, const ls_tool_names *names, ls_tool_call *c) {
    const char *word = NULL;
    size_t n = 0;
    reading now = read_word(r, LS_SCHEMA_NOT_IN_KEYS, &word, &n);
    if (now == READ_ALL) now = skip_mark(r, names->form->key_end, false);
    if (now != READ_ALL) return now;
    char *key = ls_format("%.*s", (int)n, word);
    now = read_value(r, names, key, c);
    free(key);
    return now;
}

static reading read_texts(call_reader *r, const ls_tool_names *names, ls_tool_call *c) {
    const ls_tool_form *f = names->form;
    reading now, ends;
    ls_buf_append(&c->arguments, "{", 1);
    while ((now = skip_mark(r, f->key, true)) == READ_ALL) {
        now = read_argument(r, names, c);
        if (now != READ_ALL) return now;
    }
    call_reader to = *r;
    ends = skip_mark(&to, end_of(f), true);
    if (ends != READ_ALL) return now == READ_PART ? now : ends;
    ls_buf_append(&c->arguments, "}", 1);
    *r = to;
    return *f->end ? skip_mark(r, f->close, true) : READ_ALL;
}

/* [CALL_ID]id, if it is there. */
static reading skip_id(call_reader *r, const char *mark) {
    const char *word = NULL;
    size_t n = 0;
    reading now = skip_mark(r, mark, true);
    if (now == READ_NOTHING) return READ_ALL;
    return now == READ_ALL ? read_word(r, NOT_IN_NAMES, &word, &n) : now;
}

/* What stands before arguments that are an object; some models leave the mark out. */
static reading skip_to_object(call_reader *r, const ls_tool_form *f) {
    reading now = f->id ? skip_id(r, f->id) : READ_ALL;
    if (now == READ_ALL) now = skip_mark(r, f->name_end, true);
    if (now == READ_PART) return now;
    skip_space(r);
    if (r->at == r->n && !r->ended) return READ_PART;
    return r->at < r->n && r->text[r->at] == '{' ? READ_ALL : READ_NOTHING;
}

static reading read_named(call_reader *r, const ls_tool_names *names, ls_tool_text *t) {
    const ls_tool_form *f = names->form;
    const char *word = NULL;
    size_t n = 0;
    bool complete = false;
    reading now = skip_mark(r, f->name, true);
    if (now == READ_ALL) now = read_word(r, NOT_IN_NAMES, &word, &n);
    if (now == READ_ALL) now = f->key ? skip_mark(r, f->name_end, false) : skip_to_object(r, f);
    if (now == READ_ALL && f->key) now = see_next(r, f);
    if (now != READ_ALL) return now;
    char *name = ls_format("%.*s", (int)n, word);
    ls_tool_call *c = add_call(t, name);
    free(name);
    if (f->key) return read_texts(r, names, c);
    size_t from = r->at;
    r->at = value_end(r, &complete);
    ls_buf_append(&c->arguments, r->text + from, r->at - from);
    return complete ? skip_close(r, f->close) : READ_PART;
}

/* ---- a text ---- */

void ls_tool_text_free(ls_tool_text *t) {
    for (size_t i = 0; i < t->n; i++) {
        free(t->calls[i].name);
        ls_buf_free(&t->calls[i].arguments);
    }
    free(t->calls);
    ls_buf_free(&t->after);
    *t = (ls_tool_text){0};
}

/* What stands behind `open`. */
static reading read_call(call_reader *r, const ls_tool_names *names, ls_tool_text *t) {
    if (!names->form->object) return read_named(r, names, t);
    return names->form->list ? read_list(r, names, t) : read_object_call(r, names, t);
}

/* The place of a mark in a text, or of what may begin it at the end; with the white space before
 * it. "": the end. */
static size_t find_mark(const call_reader *r, const char *mark) {
    const char *at = r->n && *mark ? memmem(r->text, r->n, mark, strlen(mark)) : NULL;
    size_t first = at ? (size_t)(at - r->text) : r->n, k = 0;
    if (!*mark || (!at && r->ended)) return first;
    if (!at) k = strlen(mark) - 1 < first ? strlen(mark) - 1 : first;
    while (k && memcmp(r->text + first - k, mark, k) != 0) k--;
    while (k < first && ls_json_is_space(r->text[first - k - 1])) k++;
    return first - k;
}

/* Some models leave out `open` before a name that has a mark of its own. */
static bool skip_open(call_reader *r, const ls_tool_form *f) {
    call_reader to = *r;
    return skip(r, f->open) || (f->name && *f->name && skip(&to, f->name));
}

/* Text [from, to) is content. What stands behind a call is without the white space around it, but
 * for that between two contents. */
static void put_content(const call_reader *r, size_t from, size_t to, ls_tool_text *t) {
    if (t->n == 0) {
        t->ncontent = to;
        return;
    }
    while (from < to && ls_json_is_space(r->text[to - 1])) to--;
    while (!t->ncontent && !t->after.len && from < to && ls_json_is_space(r->text[from])) from++;
    ls_buf_append(&t->after, r->text + from, to - from);
}

/* Where the next call may begin, or the end. */
static size_t next_mark(const call_reader *r, const ls_tool_form *f) {
    const call_reader rest = {r->text + r->at, r->n - r->at, 0, r->ended};
    size_t open = find_mark(&rest, f->open), name = find_mark(&rest, f->name ? f->name : "");
    return r->at + (open < name ? open : name);
}

static void read_marked(const ls_tool_names *names, call_reader r, ls_tool_text *t) {
    for (;;) {
        const size_t mark = next_mark(&r, names->form), had = t->n;
        call_reader to = r;
        to.at = mark;
        put_content(&r, r.at, mark, t);
        if (!skip_open(&to, names->form)) return;
        reading now = read_call(&to, names, t);
        if (now == READ_PART && !r.ended) return;
        if (now == READ_ALL) {
            r.at = to.at;
        } else if (t->n == had) { /* the mark is content */
            r.at = mark;
            skip_space(&r);
            put_content(&r, mark, r.at + 1, t);
            r.at++;
        } else {
            return; /* cut, or damaged */
        }
    }
}

/* Objects, which a semicolon may part. */
static void read_bare(const ls_tool_names *names, call_reader r, ls_tool_text *t) {
    bool complete = true;
    while (complete) {
        call_reader to = r;
        if (t->n) (void)skip(&to, ";");
        skip_space(&to);
        if (to.at < to.n ? to.text[to.at] != '{' : to.ended) {
            if (t->n) r = to;
            break;
        }
        if (!t->n) t->ncontent = 0;
        if (!read_object(to, names, t)) {
            if (!to.ended) return;
            break;
        }
        to.at = value_end(&to, &complete);
        r = to;
    }
    if (complete) put_content(&r, r.at, r.n, t);
}

void ls_tool_text_read(const ls_tool_names *names, const char *text, size_t n, bool ended,
                       ls_tool_text *t_p) {
    *t_p = (ls_tool_text){.ncontent = n};
    const call_reader r = {.text = text, .n = n, .ended = ended};
    if (!names->form) return;
    if (*names->form->open)
        read_marked(names, r, t_p);
    else
        read_bare(names, r, t_p);
}

/* ---- the form of a template ---- */

static const char PROBE[] =
    "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"probetool\", "
    "\"description\": "
    "\"It probes.\", \"parameters\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": "
    "\"string\", \"description\": \"It.\"}}, \"required\": [\"x\"]}}}], \"messages\": [{\"role\": "
    "\"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": "
    "[{\"id\": \"callprobe\", \"type\": \"function\", \"function\": {\"name\": \"probecall\", "
    "\"arguments\": {\"x\": \"y\"}}}]}, {\"role\": \"tool\", \"name\": \"probecall\", "
    "\"tool_call_id\": \"callprobe\", \"content\": \"z\"}]}";

/* Is it the probe's? */
static bool is_probe(const ls_tool_text *t) {
    ls_json *j = NULL;
    ls_error e = {0};
    const ls_buf *text = t->n ? &t->calls[0].arguments : NULL;
    if (!text || strcmp(t->calls[0].name, "probecall") != 0) return false;
    if (ls_json_parse(text->data, text->len, "", &j, &e) != LS_OK) return false;
    const char *x = ls_json_text(ls_json_get(j, "x"));
    bool same = ls_json_count(j) == 1 && x && strcmp(x, "y") == 0;
    ls_json_free(j);
    return same;
}

/* Can the probe's call be read in a text by this form? */
static bool find_probe(const ls_tool_form *f, const ls_buf *text, ls_tool_template *t_p) {
    static const ls_tool tool = {.name = "probecall"};
    const ls_tool_names names = {f, &tool, 1};
    const char *open = *f->open ? f->open : "{", *at = text->data, *end = at + text->len;
    for (; (at = memmem(at, (size_t)(end - at), open, strlen(open))); at++) {
        const char *behind = at + strlen(f->open);
        call_reader r = {.text = behind, .n = (size_t)(end - behind)};
        ls_tool_text t = {0};
        read_call(&r, &names, &t);
        bool found = is_probe(&t);
        ls_tool_text_free(&t);
        if (!found) continue;
        *t_p = (ls_tool_template){.form = f};
        for (size_t i = 0;
             i + 1 < sizeof t_p->lead && (ls_json_is_space(*behind) || *behind == '['); i++)
            t_p->lead[i] = *behind++;
        return true;
    }
    return false;
}

ls_tool_template ls_tool_template_of(const ls_chat_format *f) {
    ls_json *probe = NULL;
    ls_buf text = {0};
    ls_error e = {0};
    ls_tool_template found = {0};
    if (ls_json_parse(PROBE, sizeof PROBE - 1, "it", &probe, &e) != LS_OK) abort();
    const ls_chat_text t = {.messages = ls_json_get(probe, "messages"),
                            .n = 3,
                            .tools = ls_json_get(probe, "tools"),
                            .prompt = true};
    bool writes = ls_chat_write(f, &t, &text, &e) == LS_OK;
    ls_buf_append(&text, "", 1);
    writes = writes && strstr(text.data, "probetool");
    for (size_t i = 0; writes && i < sizeof forms / sizeof *forms; i++)
        if (find_probe(&forms[i], &text, &found)) break;
    ls_buf_free(&text);
    ls_json_free(probe);
    return found;
}
