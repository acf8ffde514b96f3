/* texts.c - see texts.h. */
#include "infer/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/json_records.h"
#include "base/lines.h"
#include "base/utf8.h"
#include "data/files.h"
#include "source/plain.h"
#include "source/text_files.h"

enum { MOST_NBYTES = 1 << 30 }; /* of a file */

typedef struct ls_texts_text {
    char *text;           /* NULL: tokens */
    ls_token_list tokens; /* in place of a text */
    size_t file;
    uint64_t line; /* from 1 */
    ls_record_at record;
} text;

/* A file while it is read. */
typedef struct reading {
    ls_texts *t;
    size_t file;
    uint64_t line, row; /* from 1; from 0 */
    uint64_t first;     /* row of all files */
} reading;

static void add(reading *r, text x) {
    ls_texts *t = r->t;
    x.file = r->file;
    x.line = r->line;
    x.record = (ls_record_at){r->first + r->row, r->row};
    t->list = ls_grow(t->list, t->n, sizeof *t->list);
    t->list[t->n++] = x;
}

/* ---- tokens ---- */

static ls_status add_token(const ls_texts *t, int64_t id, ls_token_list *list, ls_error *why) {
    int64_t vocab = t->model->config.model.vocab;
    if (id < 0 || id >= vocab)
        return ls_fail(why, LS_EINVAL, "has the token %lld; the model has tokens from 0 to %lld",
                       (long long)id, (long long)vocab - 1);
    list->ids = ls_grow(list->ids, list->n, sizeof *list->ids);
    list->ids[list->n++] = (uint32_t)id;
    return LS_OK;
}

static ls_status fail_tokens(const ls_texts *t, ls_error *why) {
    return ls_fail(why, LS_EINVAL,
                   "is no row of tokens: %s was trained on files of tokens, without a tokenizer; a "
                   "row has numbers, as in 17 4 212, or in JSON [17, 4, 212] or {\"tokens\": [17, "
                   "4, 212]}",
                   t->model->path);
}

/* A line of numbers; brackets around them are allowed. */
static ls_status tokens_of_line(const ls_texts *t, const char *s, ls_token_list *list,
                                ls_error *why) {
    static const char between[] = " \t,[]";
    for (s += strspn(s, between); *s; s += strspn(s, between)) {
        size_t digits = strspn(s, "0123456789");
        if (digits == 0 || digits > 10 || (s[digits] && !strchr(between, s[digits])))
            return fail_tokens(t, why);
        LS_TRY(add_token(t, strtoll(s, NULL, 10), list, why));
        s += digits;
    }
    return list->n ? LS_OK : fail_tokens(t, why);
}

static ls_status tokens_of_json(const ls_texts *t, const ls_json *array, ls_token_list *list,
                                ls_error *why) {
    for (size_t i = 0; i < ls_json_count(array); i++) {
        int64_t id = 0;
        if (!ls_json_integer(ls_json_at(array, i), &id)) return fail_tokens(t, why);
        LS_TRY(add_token(t, id, list, why));
    }
    return list->n ? LS_OK : ls_fail(why, LS_EINVAL, "has no token");
}

/* ---- reading ---- */

static ls_status add_line(reading *r, const char *s, ls_error *why) {
    text x = {0};
    if (r->t->model->tokenizer) {
        x.text = ls_strdup(s);
    } else {
        ls_status status = tokens_of_line(r->t, s, &x.tokens, why);
        if (status != LS_OK) {
            free(x.tokens.ids);
            return status;
        }
    }
    add(r, x);
    return LS_OK;
}

static ls_status read_lines(reading *r, char *rest, ls_error *e) {
    const char *path = r->t->files[r->file], *line;
    uint64_t nempty = 0;
    for (r->line = 1; (line = ls_lines_split(&rest)); r->line++, r->row++) {
        ls_error why = {0};
        if (!*line) {
            nempty++;
            continue;
        }
        r->t->nempty += nempty;
        nempty = 0;
        ls_status s = add_line(r, line, &why);
        if (s != LS_OK)
            return ls_fail(e, s, "%s:%llu: %s", path, (unsigned long long)r->line, why.msg);
    }
    return LS_OK;
}

/* The first member of an object that there is; NULL: none. */
static const ls_json *member_of(const ls_json *o, const char *const *names, int n) {
    const ls_json *found = NULL;
    for (int i = 0; i < n && !found && ls_json_is_object(o); i++) found = ls_json_get(o, names[i]);
    return found;
}

static ls_status add_value(reading *r, const ls_json *value, ls_error *why) {
    static const char *const texts[] = {"text", "prompt", "content"}, *const tokens[] = {
                                                                          "tokens", "input_ids"};
    bool object = ls_json_is_object(value);
    const ls_json *of = object ? member_of(value, texts, 3) : value,
                  *ids = object ? member_of(value, tokens, 2) : value;
    const char *s = r->t->model->tokenizer ? ls_json_text(of) : NULL;
    text x = {0};
    if (s && *s) {
        x.text = ls_strdup(s);
    } else if (ls_json_is_array(ids)) {
        ls_status status = tokens_of_json(r->t, ids, &x.tokens, why);
        if (status != LS_OK) {
            free(x.tokens.ids);
            return status;
        }
    } else {
        return r->t->model->tokenizer
                   ? ls_fail(why, LS_EINVAL,
                             "has no text: a member text, prompt or content that is one")
                   : fail_tokens(r->t, why);
    }
    add(r, x);
    return LS_OK;
}

/* Is the first line an array of numbers? Then each line is a row; else an array has all rows. */
static bool has_rows(const char *all, size_t n) {
    ls_json_records c = ls_json_lines_of(all, n);
    ls_json *row = NULL;
    int64_t id = 0;
    if (!ls_json_records_next(&c) || *c.text != '[') return false;
    bool has = ls_json_records_parse(&c, &row, NULL) == LS_OK && ls_json_count(row) &&
               ls_json_integer(ls_json_at(row, 0), &id);
    ls_json_free(row);
    return has;
}

static ls_status read_json(reading *r, const char *all, size_t n, ls_error *e) {
    const char *path = r->t->files[r->file];
    ls_json_records c = has_rows(all, n) ? ls_json_lines_of(all, n) : ls_json_records_of(all, n);
    for (; ls_json_records_next(&c); r->row++) {
        ls_error why = {0};
        ls_json *value = NULL;
        ls_status s = ls_json_records_parse(&c, &value, &why);
        r->line = c.line;
        if (s == LS_OK) s = add_value(r, value, &why);
        ls_json_free(value);
        if (s != LS_OK) return ls_json_records_fail(&c, path, why.msg, e);
    }
    return c.wrong ? ls_json_records_fail(&c, path, c.wrong, e) : LS_OK;
}

/* Copies the text of a file, without a byte order mark. */
static ls_status copy_text(const ls_plain *p, ls_buf *b, ls_error *e) {
    const char *data = p->nbytes ? (const char *)p->data : "";
    size_t mark = ls_utf8_mark(data, p->nbytes);
    if (p->nbytes > MOST_NBYTES)
        return ls_fail(e, LS_EINVAL, "%s: has %zu bytes; at most %d are read at once", p->path,
                       p->nbytes, MOST_NBYTES);
    ls_buf_append(b, data + mark, p->nbytes - mark);
    ls_buf_append(b, "", 1);
    LS_TRY(ls_guard_check(e));
    LS_TRY(ls_utf8_check(b->data, b->len - 1, p->path, e));
    if (!memchr(b->data, 0, b->len - 1)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: has a zero byte, which no text has", p->path);
}

static ls_status read_file(ls_texts *t, size_t file, uint64_t *first, ls_error *e) {
    const ls_config *c = &t->model->config;
    const ls_source_options o = {.cache = *c->data.cache ? c->data.cache : NULL};
    reading r = {.t = t, .file = file, .first = *first};
    ls_plain p;
    ls_buf b = {0};
    LS_TRY(ls_plain_open(t->files[file], &o, LS_HOLES_REFUSED, &p, e));
    ls_error own = {0};
    ls_status s = copy_text(&p, &b, &own);
    ls_plain_close(&p);
    if (s == LS_EINVAL && !t->model->tokenizer) {
        ls_error why = {0};
        fail_tokens(t, &why);
        s = ls_fail(e, s, "%.200s %.300s", t->files[file], why.msg);
    } else if (s != LS_OK) {
        ls_fail(e, s, "%s", own.msg);
    }
    if (s == LS_OK)
        s = ls_text_files_is_json(t->files[file]) ? read_json(&r, b.data, b.len - 1, e)
                                                  : read_lines(&r, b.data, e);
    ls_buf_free(&b);
    *first += r.row;
    return s;
}

ls_status ls_texts_open(const char *paths, const ls_trained *model, ls_texts *t_p, ls_error *e) {
    ls_files files = {0};
    LS_TRY(ls_files_find(paths, &files, e));
    ls_texts t = {.model = model, .files = files.paths, .nfiles = files.n};
    ls_status s = LS_OK;
    uint64_t first = 0;
    for (size_t i = 0; s == LS_OK && i < t.nfiles; i++) s = read_file(&t, i, &first, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_texts_close(&t);
    return s;
}

void ls_texts_close(ls_texts *t) {
    for (size_t i = 0; i < t->n; i++) {
        free(t->list[i].text);
        free(t->list[i].tokens.ids);
    }
    free(t->list);
    ls_files_free(&(ls_files){t->files, t->nfiles});
    *t = (ls_texts){0};
}

const char *ls_texts_file(const ls_texts *t, uint64_t i) { return t->files[t->list[i].file]; }

ls_record_at ls_texts_record(const ls_texts *t, uint64_t i) { return t->list[i].record; }

/* ---- tokens of a text ---- */

static ls_status encode(const ls_texts *t, const text *x, ls_token_list *list, ls_error *e) {
    char *what = ls_format("%s:%llu", t->files[x->file], (unsigned long long)x->line);
    const ls_encoding how = {.what = what, .begin = true};
    ls_status s = ls_tokenizer_encode(t->model->tokenizer, (const uint8_t *)x->text,
                                      strlen(x->text), &how, list, e);
    if (s == LS_OK && list->n == 0)
        s = ls_fail(e, LS_EINVAL, "%s: the tokenizer has no tokens for it", what);
    if (s == LS_OK) ls_token_list_log_dropped(list, what);
    free(what);
    return s;
}

ls_status ls_texts_tokens(const ls_texts *t, uint64_t i, ls_token_list *list_p, ls_error *e) {
    const text *x = &t->list[i];
    ls_token_list all = x->tokens, own = {0};
    size_t most = (size_t)t->model->config.model.context;
    if (x->text) {
        ls_status s = encode(t, x, &own, e);
        if (s != LS_OK) {
            free(own.ids);
            return s;
        }
        all = own;
    }
    size_t n = all.n < most ? all.n : most;
    list_p->ids = LS_NEW_ARRAY(uint32_t, n);
    list_p->n = n;
    memcpy(list_p->ids, all.ids + (all.n - n), n * sizeof *all.ids);
    free(own.ids);
    return LS_OK;
}
