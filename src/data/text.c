/* text.c - see text.h. */
#include "data/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "data/files.h"

/* Copies the files into one mapping. Fails if one is not UTF-8. */
static ls_status join(const ls_files *f, const ls_mapped *parts, ls_text *t, ls_error *e) {
    for (size_t i = 0; i < f->n; i++) t->size += parts[i].nbytes;
    if (t->size == 0) return LS_OK;
    LS_TRY(ls_map(t->size, "text", &t->joined, e));
    uint8_t *to = t->joined;
    for (size_t i = 0; i < f->n; i++) {
        const ls_mapped *m = &parts[i];
        if (m->nbytes == 0) continue;
        memcpy(to, m->data, m->nbytes);
        LS_TRY(ls_utf8_check((const char *)to, m->nbytes, f->paths[i], e));
        size_t mark = ls_utf8_mark((const char *)to, m->nbytes);
        if (mark) memmove(to, to + mark, m->nbytes - mark);
        to += m->nbytes - mark;
    }
    t->data = t->joined;
    t->nbytes = (size_t)(to - t->data);
    return LS_OK;
}

static ls_status open_several(const ls_files *f, ls_text *t, ls_error *e) {
    ls_mapped *parts = LS_NEW_ARRAY(ls_mapped, f->n);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < f->n; i++) s = ls_file_map(f->paths[i], &parts[i], e);
    if (s == LS_OK) s = join(f, parts, t, e);
    if (s == LS_OK) s = ls_guard_check(e);
    for (size_t i = 0; i < f->n; i++) ls_file_unmap(&parts[i]);
    free(parts);
    return s;
}

static ls_stamp stamp_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? ls_stamp_of(&st) : (ls_stamp){0};
}

static ls_status open_one(const char *path, ls_text *t, ls_error *e) {
    t->path = ls_strdup(path);
    t->was = stamp_of(path);
    LS_TRY(ls_file_map(path, &t->one, e));
    size_t mark = ls_utf8_mark((const char *)t->one.data, t->one.nbytes);
    t->data = mark ? t->one.data + mark : t->one.data;
    t->nbytes = t->one.nbytes - mark;
    return LS_OK;
}

static char *name_of(const ls_files *f) {
    size_t more = f->n - 1;
    if (more == 0) return ls_strdup(f->paths[0]);
    return ls_format("%s and %zu more file%s", f->paths[0], more, ls_plural((int64_t)more));
}

ls_status ls_text_open(const char *paths, ls_text *t_p, ls_error *e) {
    ls_files f = {0};
    ls_text t = {0};
    ls_status s = ls_files_find(paths, &f, e);
    if (s == LS_OK) t.name = name_of(&f);
    if (s == LS_OK) s = f.n == 1 ? open_one(f.paths[0], &t, e) : open_several(&f, &t, e);
    ls_files_free(&f);
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
    free(t->path);
    free(t->name);
    *t = (ls_text){0};
}

void ls_text_log_ends(const uint8_t *text, size_t nbytes, const char *name) {
    const uint8_t *cr = nbytes ? memchr(text, '\r', nbytes) : NULL;
    if (!cr) return;
    bool lf = cr + 1 < text + nbytes && cr[1] == '\n';
    ls_log(
        "%s: has lines that end in %s; each CR is taken as a part of the text. If it should have "
        "none, convert it: %s",
        name, lf ? "CR LF" : "CR", lf ? "sed -i 's/\\r$//' FILE" : "tr '\\r' '\\n' <FILE");
}
