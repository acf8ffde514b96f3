/* text.c - see text.h. */
#include "source/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "chat/chat_lines.h"
#include "data/words.h"
#include "source/fetch.h"
#include "source/not_text.h"
#include "source/note.h"
#include "source/text_builder.h"

/* ---- building ---- */

/* Makes room for n more bytes. LS_ENOMEM. */
static ls_status reserve(ls_text_builder *b, size_t n, ls_error *e) {
    ls_text *t = b->t;
    void *larger = NULL;
    if (t->size - t->nbytes >= n) return LS_OK;
    size_t size = 2 * t->size > t->nbytes + n ? 2 * t->size : t->nbytes + n;
    LS_TRY(ls_map(size, "text", &larger, e));
    if (t->nbytes) memcpy(larger, t->joined, t->nbytes);
    if (t->joined) ls_unmap(t->joined, t->size);
    t->data = t->joined = larger;
    t->size = size;
    return LS_OK;
}

static void add_document(ls_text_builder *b, const char *text, size_t n) {
    ls_text *t = b->t;
    if (n == 0) {
        b->nempty++;
        return;
    }
    memcpy((char *)t->joined + t->nbytes, text, n);
    t->documents = ls_grow(t->documents, t->ndocuments, sizeof *t->documents);
    t->documents[t->ndocuments++] = (ls_text_range){t->nbytes, t->nbytes + n};
    t->nbytes += n;
}

ls_status ls_text_builder_add(ls_text_builder *b, const char *text, size_t n, ls_error *e) {
    const char *separator = b->separator.data, *end = text + n;
    size_t m = b->separator.len;
    LS_TRY(reserve(b, n, e));
    for (const char *at; m && (at = memmem(text, (size_t)(end - text), separator, m));) {
        add_document(b, text, (size_t)(at - text));
        text = at + m;
        b->t->nseparators++;
    }
    add_document(b, text, (size_t)(end - text));
    return LS_OK;
}

ls_status ls_text_builder_damaged(ls_text_builder *b, const ls_error *why, ls_error *e) {
    bool advised = why->code == LS_EINVAL && strstr(why->msg, "; ");
    if (advised && !b->o->skip_damaged)
        return ls_fail(e, LS_EINVAL, "%s, or leave such files out (data.damaged: skip)", why->msg);
    if (why->code != LS_EINVAL || !b->o->skip_damaged) return ls_source_refuse(why, e);
    ls_damage_add(&b->t->damage, why->msg);
    return LS_OK;
}

/* The separator with line breaks and tabs for \n and \t, which some files of YAML and command lines
 * have in their place. */
static void put_separator(const char *s, ls_buf *out) {
    for (; s && *s; s++) {
        bool n = s[0] == '\\' && s[1] == 'n', t = s[0] == '\\' && s[1] == 't';
        ls_buf_append(out, n ? "\n" : t ? "\t" : s, 1);
        s += n || t;
    }
}

/* ---- one file ---- */

/* A text that is meant to be conversations would be trained on with its brackets and quotes. */
ls_status ls_text_builder_refuse_chats(const ls_text_builder *b, const char *path, const char *key,
                                       ls_error *e) {
    if (b->o->json == LS_TEXT_JSON_EITHER) {
        ls_log("%s: is evaluated as the text that it is, with its JSON; --chat reads conversations",
               path);
        return LS_OK;
    }
    return ls_fail(
        e, LS_EINVAL,
        "%s: is JSON with \"%s\": set data.format: chat to train on what it contains "
        "(with a published model, model.from), or data.format: text to train on the JSON "
        "itself; data.text names a member that has a text",
        path, key);
}

static ls_status check_is_text(const ls_text_builder *b, const char *path, const uint8_t *data,
                               size_t n, ls_error *e) {
    if (b->o->json == LS_TEXT_JSON_AS_IS) return LS_OK;
    const char *key = ls_chat_lines_key((const char *)data, n);
    return key ? ls_text_builder_refuse_chats(b, path, key, e) : LS_OK;
}

static ls_status add_plain(ls_text_builder *b, const ls_plain *p, ls_error *e) {
    ls_error why = {0};
    const char *text = p->nbytes ? (const char *)p->data : "";
    if (ls_not_text_refuse(p->path, p->data, p->nbytes, &why) != LS_OK ||
        ls_utf8_check(text, p->nbytes, p->path, &why) != LS_OK)
        return ls_text_builder_damaged(b, &why, e);
    size_t mark = ls_utf8_mark(text, p->nbytes);
    return ls_text_builder_add(b, text + mark, p->nbytes - mark, e);
}

static bool reads_json(const ls_text_options *o, const char *path) {
    bool names = o->column && *o->column;
    return ls_text_files_is_json(path) && (names || o->json != LS_TEXT_JSON_AS_IS);
}

static ls_status add_opened(ls_text_builder *b, const ls_plain *p, bool below, ls_error *e) {
    bool taken = false;
    if (reads_json(b->o, p->path))
        LS_TRY(ls_text_json_add(b, p, below, &taken, e));
    else
        LS_TRY(check_is_text(b, p->path, p->data, p->nbytes, e));
    return taken ? LS_OK : add_plain(b, p, e);
}

static ls_status add_file(ls_text_builder *b, const char *path, bool below, ls_error *e) {
    ls_plain p = {0};
    ls_error why = {0};
    const ls_source_options how = {.cache = b->o->cache};
    if (ls_plain_open(path, &how, LS_HOLES_REFUSED, &p, &why) != LS_OK)
        return ls_text_builder_damaged(b, &why, e);
    ls_status s = add_opened(b, &p, below, e);
    if (s == LS_OK) s = ls_guard_check(e);
    ls_plain_close(&p);
    return s;
}

/* ---- all files ---- */

static ls_stamp stamp_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? ls_stamp_of(&st) : (ls_stamp){0};
}

/* Is it one file that is a text as it is? Then it is not copied. */
static bool is_plain(const ls_text_files *f, const ls_text_options *o) {
    uint8_t first[LS_PLAIN_FIRST];
    size_t n = 0;
    uint64_t size = 0;
    if (f->files.n != 1 || f->nbelow || (o->separator && *o->separator)) return false;
    if (reads_json(o, f->files.paths[0])) return false;
    return ls_plain_first(f->files.paths[0], first, &n, &size, NULL) == LS_OK && size != UINT64_MAX;
}

static ls_status open_one(const char *path, const ls_text_options *o, ls_text *t, ls_error *e) {
    t->path = ls_strdup(path);
    t->was = stamp_of(path);
    LS_TRY(ls_plain_check_text(path, e));
    LS_TRY(ls_file_map(path, &t->one, e));
    LS_TRY(ls_not_text_refuse(path, t->one.data, t->one.nbytes, e));
    LS_TRY(check_is_text(&(ls_text_builder){.t = t, .o = o}, path, t->one.data, t->one.nbytes, e));
    size_t mark = ls_utf8_mark((const char *)t->one.data, t->one.nbytes);
    t->data = mark ? t->one.data + mark : t->one.data;
    t->nbytes = t->one.nbytes - mark;
    t->documents = LS_NEW_ARRAY(ls_text_range, 1);
    t->documents[0] = (ls_text_range){0, t->nbytes};
    t->ndocuments = t->nbytes > 0;
    return LS_OK;
}

/* The members of JSON objects that were read. */
static void note_columns(const ls_text_builder *b) {
    ls_buf names = {0};
    for (uint32_t i = 0; i < b->columns.n; i++) {
        size_t n = 0;
        const uint8_t *name = ls_words_at(&b->columns, i, &n);
        ls_buf_printf(&names, "%s'%.*s'", i ? " and " : "", (int)n, (const char *)name);
    }
    if (names.len) ls_note("%s: of JSON, the texts are %s of the objects", b->t->name, names.data);
    ls_buf_free(&names);
}

/* What was found, and what not. */
static void note_read(const ls_text_builder *b, const ls_text_files *f) {
    ls_text_files_log(f, b->t->name, b->nleft_out);
    note_columns(b);
    if (b->nempty)
        ls_note("%s: %llu empty document%s left out", b->t->name, (unsigned long long)b->nempty,
                b->nempty == 1 ? " is" : "s are");
    ls_damage_note(&b->t->damage, b->t->name);
}

static ls_status open_several(ls_text_files *f, const ls_text_options *o, ls_text *t, ls_error *e) {
    ls_text_builder b = {.t = t, .o = o, .left_out = &f->left_out};
    ls_status s = LS_OK;
    put_separator(o->separator, &b.separator);
    for (size_t i = 0; s == LS_OK && i < f->files.n; i++)
        s = add_file(&b, f->files.paths[i], f->below[i], e);
    if (s == LS_OK && t->damage.n && t->ndocuments == 0)
        s = ls_fail(e, LS_EINVAL, "%s: all %llu texts are damaged; the first: %s", t->name,
                    (unsigned long long)t->damage.n, t->damage.named[0]);
    if (s == LS_OK) note_read(&b, f);
    ls_words_free(&b.columns);
    ls_buf_free(&b.separator);
    return s;
}

/* paths: a directory alone has its own name. */
static char *name_of(const char *paths, const ls_files *f) {
    size_t more = f->n - 1;
    if (ls_file_is_dir(paths)) return ls_strdup(paths);
    if (more == 0) return ls_strdup(f->paths[0]);
    return ls_format("%s and %zu more file%s", f->paths[0], more, ls_plural((int64_t)more));
}

static ls_status open_files(const char *paths, const ls_text_options *o, ls_text *t, ls_error *e) {
    ls_text_files f = {0};
    LS_TRY(ls_text_files_find(paths, &f, e));
    t->name = name_of(paths, &f.files);
    ls_status s = is_plain(&f, o) ? open_one(f.files.paths[0], o, t, e) : open_several(&f, o, t, e);
    ls_text_files_free(&f);
    return s;
}

ls_status ls_text_open(const char *paths, const ls_text_options *o, ls_text *t_p, ls_error *e) {
    char *local = NULL;
    ls_text t = {0};
    LS_TRY(ls_fetch_paths(paths, o->cache, LS_FETCH_NBYTES, &local, e));
    ls_status s = open_files(local, o, &t, e);
    free(local);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_text_close(&t);
    return s;
}

/* One that was removed, or has got another one in its place, is still there for us. */
ls_status ls_text_check(const ls_text *t, ls_error *e) {
    ls_stamp now = t->path ? stamp_of(t->path) : (ls_stamp){0};
    LS_TRY(ls_guard_check(e));
    if (!ls_stamp_is_written(&t->was, &now)) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: was written to while it was read; start again", t->path);
}

void ls_text_close(ls_text *t) {
    ls_file_unmap(&t->one);
    if (t->joined) ls_unmap(t->joined, t->size);
    free(t->documents);
    free(t->path);
    free(t->name);
    *t = (ls_text){0};
}

static ls_hash hash_of(const ls_text *t, size_t i) {
    const ls_text_range *d = &t->documents[i];
    return ls_hash_bytes(t->data + d->from, d->to - d->from);
}

uint64_t ls_text_count_shared(const ls_text *all, const ls_text *some) {
    ls_words seen = {0};
    uint64_t shared = 0;
    for (size_t i = 0; i < all->ndocuments + some->ndocuments; i++) {
        bool fresh = false, later = i >= all->ndocuments;
        ls_hash h = later ? hash_of(some, i - all->ndocuments) : hash_of(all, i);
        if (later)
            shared += ls_words_find(&seen, (const uint8_t *)&h, sizeof h) != UINT32_MAX;
        else
            ls_words_add(&seen, (const uint8_t *)&h, sizeof h, &fresh);
    }
    ls_words_free(&seen);
    return shared;
}

static void log_ends(const ls_text *t) {
    const uint8_t *text = t->data, *cr = t->nbytes ? memchr(text, '\r', t->nbytes) : NULL;
    if (!cr) return;
    bool lf = cr + 1 < text + t->nbytes && cr[1] == '\n';
    ls_log(
        "%s: has lines that end in %s; each CR is taken as a part of the text. If it should have "
        "none, convert it: %s",
        t->name, lf ? "CR LF" : "CR", lf ? "sed -i 's/\\r$//' FILE" : "tr '\\r' '\\n' <FILE");
}

/* The first bytes have none (not_text.h). */
static void log_zeros(const ls_text *t) {
    const uint8_t *end = t->data + t->nbytes, *first = NULL;
    size_t n = 0;
    for (const uint8_t *at = t->data; at < end && (at = memchr(at, 0, (size_t)(end - at))); at++)
        if (n++ == 0) first = at;
    if (n)
        ls_log("%s: has %zu zero byte%s, the first at byte %zu; each is taken as a character of "
               "the text. If it should have none, remove them: tr -d '\\0' <FILE",
               t->name, n, ls_plural((int64_t)n), (size_t)(first - t->data));
}

void ls_text_log_remarks(const ls_text *t) {
    log_ends(t);
    log_zeros(t);
}
