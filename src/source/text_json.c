/* text_json.c - texts in files of JSON: see text_builder.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json_records.h"
#include "base/utf8.h"
#include "chat/chat_lines.h"
#include "source/ending.h"
#include "source/text_builder.h"

/* The members that usually have a text. */
static const char *const usual[] = {"text", "content"};
enum { NUSUAL = sizeof usual / sizeof *usual };

typedef struct json_file {
    ls_text_builder *b;
    const ls_plain *p;
    const char *text; /* [n] without a byte order mark */
    size_t n;
    const char *column; /* NULL: elements are texts themselves */
    ls_json *whole;     /* the file is one object in several lines; NULL: it is not */
} json_file;

/* Is it one object over several lines? */
static ls_json *whole_of(const char *text, size_t n) {
    size_t blank = 0;
    ls_json *one = NULL;
    while (blank < n && strchr(" \t\r\n", text[blank])) blank++;
    if (blank == n || text[blank] != '{') return NULL;
    return ls_json_parse(text, n, "", &one, NULL) == LS_OK ? one : NULL;
}

/* The first object or text that can be read; the caller frees it. NULL: the error says why. */
static ls_status find_first(const json_file *f, ls_json **first_p, ls_error *e) {
    enum { TRIED = 100 };
    ls_json_records r = ls_json_records_of(f->text, f->n);
    ls_status s = LS_EINVAL;
    *first_p = f->whole ? ls_json_share(f->whole) : NULL;
    if (*first_p) return LS_OK;
    for (int i = 0; s != LS_OK && i < TRIED && ls_json_records_next(&r); i++) {
        ls_error why = {0};
        s = ls_json_records_parse(&r, first_p, &why);
        if (s != LS_OK && i == 0) ls_json_records_fail(&r, f->p->path, why.msg, e);
    }
    return s;
}

static void put_keys(const ls_json *object, ls_buf *out) {
    enum { MOST = 200 };
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = ls_json_next(object, NULL, &key, &value); it && out->len < MOST;
         it = ls_json_next(object, it, &key, &value))
        if (ls_json_text(value)) ls_buf_printf(out, "%s'%.40s'", out->len ? ", " : "", key);
}

static ls_status fail_no_column(const json_file *f, const ls_json *first, ls_error *e) {
    ls_buf keys = {0};
    put_keys(first, &keys);
    ls_status s = ls_fail(e, LS_EINVAL,
                          "%s: is JSON, and its first object has no text '%s'%s%s; name the member "
                          "that has the text with data.text, or set data.format: text to read the "
                          "JSON itself",
                          f->p->path, f->column ? f->column : "text' or 'content",
                          keys.len ? ", but " : "", keys.len ? keys.data : "");
    ls_buf_free(&keys);
    return s;
}

/* The usual member that this object has; NULL: none. */
static const char *usual_of(const ls_json *object) {
    for (int i = 0; i < NUSUAL; i++)
        if (ls_json_text(ls_json_get(object, usual[i]))) return usual[i];
    return NULL;
}

/* Finds the member that has the text. *taken_p false: the file is a text as it is. */
static ls_status find_column(json_file *f, const ls_json *first, bool *taken_p, ls_error *e) {
    const ls_text_options *o = f->b->o;
    *taken_p = true;
    f->column = o->column && *o->column ? o->column : NULL;
    bool found = ls_json_text(ls_json_get(first, o->column ? o->column : "")) || o->skip_damaged;
    if (f->column) return found ? LS_OK : fail_no_column(f, first, e);
    if (ls_json_text(first)) return LS_OK;
    const char *chat = ls_chat_object_key(first);
    if (!chat || strcmp(chat, usual[0]) == 0) f->column = usual_of(first);
    if (f->column) return LS_OK;
    *taken_p = false;
    return chat ? ls_text_builder_refuse_chats(f->b, f->p->path, chat, e)
                : fail_no_column(f, first, e);
}

static ls_status add_value(const json_file *f, const ls_json *value, ls_error *why) {
    const ls_json *text =
        ls_json_is_object(value) && f->column ? ls_json_get(value, f->column) : value;
    const char *s = ls_json_text(text);
    if (s) return ls_text_builder_add(f->b, s, strlen(s), why);
    if (!f->column) return ls_fail(why, LS_EINVAL, "is no text, as the first one is");
    return ls_fail(why, LS_EINVAL, "has no text '%s'", f->column);
}

static ls_status add_records(const json_file *f, ls_error *e) {
    ls_json_records r = ls_json_records_of(f->text, f->n);
    while (ls_json_records_next(&r)) {
        ls_error why = {0}, at = {0};
        ls_json *value = NULL;
        ls_status s = ls_json_records_parse(&r, &value, &why);
        if (s == LS_OK) s = add_value(f, value, &why);
        ls_json_free(value);
        if (s == LS_OK) continue;
        if (s == LS_EINVAL) ls_json_records_fail(&r, f->p->path, why.msg, &at);
        LS_TRY(ls_text_builder_damaged(f->b, s == LS_EINVAL ? &at : &why, e));
    }
    if (!r.wrong) return LS_OK;
    ls_error at = {0};
    ls_json_records_fail(&r, f->p->path, r.wrong, &at);
    return ls_text_builder_damaged(f->b, &at, e);
}

static ls_status add_whole(const json_file *f, ls_error *e) {
    ls_error why = {0}, at = {0};
    ls_status s = add_value(f, f->whole, &why);
    if (s == LS_OK) return LS_OK;
    ls_fail(&at, s, "%s: %s", f->p->path, why.msg);
    return ls_text_builder_damaged(f->b, &at, e);
}

/* Counts a file below a directory that has no texts, as one of its ending. */
static void leave_out_file(const json_file *f) {
    size_t n = 0;
    const char *ending = ls_ending_of(f->p->path, &n);
    char *kind = ls_format("%.*s without 'text' or 'content'", (int)n, ending);
    ls_left_out_count(f->b->left_out, kind, 1);
    free(kind);
}

static ls_status add_file(json_file *f, bool below, bool *taken_p, ls_error *e) {
    ls_json *first = NULL;
    ls_error why = {0};
    bool fresh = false, named = f->b->o->column && *f->b->o->column;
    *taken_p = true;
    if (find_first(f, &first, &why) != LS_OK && !why.code) return LS_OK; /* it is empty */
    bool has_text = named || ls_json_text(first) || usual_of(first) || ls_chat_object_key(first);
    if (below && !has_text) {
        leave_out_file(f);
        f->b->nleft_out++;
        ls_json_free(first);
        return LS_OK;
    }
    if (!first) return ls_text_builder_damaged(f->b, &why, e);
    ls_status s = find_column(f, first, taken_p, e);
    ls_json_free(first);
    if (s != LS_OK || !*taken_p) return s;
    f->b->t->njson++;
    if (f->column)
        ls_words_add(&f->b->columns, (const uint8_t *)f->column, strlen(f->column), &fresh);
    return f->whole ? add_whole(f, e) : add_records(f, e);
}

ls_status ls_text_json_add(ls_text_builder *b, const ls_plain *p, bool below, bool *taken_p,
                           ls_error *e) {
    const char *text = p->nbytes ? (const char *)p->data : "";
    size_t mark = ls_utf8_mark(text, p->nbytes);
    json_file f = {.b = b, .p = p, .text = text + mark, .n = p->nbytes - mark};
    f.whole = whole_of(f.text, f.n);
    ls_status s = add_file(&f, below, taken_p, e);
    ls_json_free(f.whole);
    return s;
}
