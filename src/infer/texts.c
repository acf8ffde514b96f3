/* texts.c - see texts.h. */
#include "infer/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/lines.h"
#include "data/files.h"

enum { MOST_NBYTES = 1 << 30 }; /* of a file */

typedef struct ls_texts_text {
    char *text;
    size_t file, line; /* from 1 */
} text;

static void add(ls_texts *t, size_t file, size_t line, const char *s) {
    t->list = ls_grow(t->list, t->n, sizeof *t->list);
    t->list[t->n++] = (text){ls_strdup(s), file, line};
}

/* ---- reading ---- */

/* The member of an object that is its text; NULL: none. */
static const char *member_of(const ls_json *o) {
    static const char *const names[] = {"text", "prompt", "content"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *s = ls_json_text(ls_json_get(o, names[i]));
        if (s) return s;
    }
    return NULL;
}

static ls_status add_json(ls_texts *t, size_t file, size_t line, const char *s, ls_error *e) {
    char *what = ls_format("%s:%zu", t->files[file], line);
    ls_json *o = NULL;
    ls_status status = ls_json_parse(s, strlen(s), what, &o, e);
    const char *member = status == LS_OK ? member_of(o) : NULL;
    if (member && *member)
        add(t, file, line, member);
    else if (status == LS_OK)
        status = ls_fail(e, LS_EINVAL,
                         "%s: has no text: a member text, prompt or content that is one", what);
    ls_json_free(o);
    free(what);
    return status;
}

static bool is_jsonl(const char *path) {
    size_t n = strlen(path);
    return n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
}

static ls_status read_file(ls_texts *t, size_t file, ls_error *e) {
    ls_buf b = {0};
    LS_TRY(ls_file_read_text(t->files[file], MOST_NBYTES, &b, e));
    ls_buf_append(&b, "", 1);
    ls_status s = LS_OK;
    char *rest = b.data, *line;
    bool json = is_jsonl(t->files[file]);
    for (size_t number = 1; s == LS_OK && (line = ls_lines_split(&rest)); number++) {
        if (!*line) continue;
        if (json)
            s = add_json(t, file, number, line, e);
        else
            add(t, file, number, line);
    }
    ls_buf_free(&b);
    return s;
}

ls_status ls_texts_open(const char *paths, const ls_tokenizer *tokenizer, ls_texts *t_p,
                        ls_error *e) {
    ls_files files = {0};
    LS_TRY(ls_files_find(paths, &files, e));
    ls_texts t = {.tokenizer = tokenizer, .files = files.paths, .nfiles = files.n};
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < t.nfiles; i++) s = read_file(&t, i, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_texts_close(&t);
    return s;
}

void ls_texts_close(ls_texts *t) {
    for (size_t i = 0; i < t->n; i++) free(t->list[i].text);
    free(t->list);
    ls_files_free(&(ls_files){t->files, t->nfiles});
    *t = (ls_texts){0};
}

const char *ls_texts_file(const ls_texts *t, uint64_t i) { return t->files[t->list[i].file]; }

/* ---- tokens ---- */

ls_status ls_texts_tokens(const ls_texts *t, uint64_t i, int64_t most, ls_token_list *list_p,
                          ls_error *e) {
    const text *x = &t->list[i];
    char *what = ls_format("%s:%zu", t->files[x->file], x->line);
    const ls_encoding how = {.what = what, .begin = true};
    ls_token_list list = {0};
    ls_status s = ls_tokenizer_encode_as(t->tokenizer, (const uint8_t *)x->text, strlen(x->text),
                                         &how, &list, e);
    if (s == LS_OK && list.n == 0)
        s = ls_fail(e, LS_EINVAL, "%s: the tokenizer has no tokens for it", what);
    if (s == LS_OK && list.n > (size_t)most) {
        memmove(list.ids, list.ids + (list.n - (size_t)most), (size_t)most * sizeof *list.ids);
        list.n = (size_t)most;
    }
    free(what);
    if (s == LS_OK)
        *list_p = list;
    else
        free(list.ids);
    return s;
}
