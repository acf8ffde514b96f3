/* text.c - see text.h. */
#include "data/text.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"

typedef struct files {
    char **paths; /* [n] in the order in which they are read */
    size_t n;
} files;

static void add_file(files *f, const char *path) {
    f->paths = ls_grow(f->paths, f->n, sizeof *f->paths);
    f->paths[f->n++] = ls_strdup(path);
}

static void free_files(files *f) {
    for (size_t i = 0; i < f->n; i++) free(f->paths[i]);
    free(f->paths);
    *f = (files){0};
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The C library sorts by locale. Names are sorted by bytes here, so that the text is the same
 * everywhere. */
static ls_status add_matches(files *f, const char *pattern, ls_error *e) {
    glob_t g = {0};
    int how = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (how == 0) {
        qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, by_name);
        for (size_t i = 0; i < g.gl_pathc; i++) add_file(f, g.gl_pathv[i]);
    }
    globfree(&g);
    if (how == 0) return LS_OK;
    if (how == GLOB_NOMATCH && strpbrk(pattern, "*?["))
        return ls_fail(e, LS_EINVAL, "data.path: no file matches %s", pattern);
    add_file(f, pattern); /* opening it reports the error */
    return LS_OK;
}

static int by_path_then_place(const void *a, const void *b) {
    char *const *const *x = a, *const *const *y = b;
    int order = strcmp(**x, **y);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Keeps the first of equal paths. */
static void drop_repeated(files *f) {
    char ***sorted = LS_NEW_ARRAY(char **, f->n);
    for (size_t i = 0; i < f->n; i++) sorted[i] = &f->paths[i];
    qsort(sorted, f->n, sizeof *sorted, by_path_then_place);
    const char *last = f->n ? *sorted[0] : NULL;
    for (size_t i = 1; i < f->n; i++) {
        if (strcmp(last, *sorted[i]) != 0) {
            last = *sorted[i];
            continue;
        }
        free(*sorted[i]);
        *sorted[i] = NULL;
    }
    free(sorted);
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->paths[i]) f->paths[n++] = f->paths[i];
    f->n = n;
}

static ls_status find_files(const char *paths, files *f, ls_error *e) {
    char *all = ls_strdup(paths), *rest = all;
    ls_status s = LS_OK;
    for (char *one; s == LS_OK && (one = strsep(&rest, "\n"));) {
        if (ls_file_exists(one))
            add_file(f, one);
        else
            s = add_matches(f, one, e);
    }
    free(all);
    if (s == LS_OK) drop_repeated(f);
    return s;
}

/* Copies the files into one mapping. Fails if one is not UTF-8. */
static ls_status join(const files *f, const ls_mapped *parts, ls_text *t, ls_error *e) {
    t->nbytes = 0;
    for (size_t i = 0; i < f->n; i++) t->nbytes += parts[i].nbytes;
    if (t->nbytes == 0) return LS_OK;
    LS_TRY(ls_map(t->nbytes, "text", &t->joined, e));
    uint8_t *to = t->joined;
    for (size_t i = 0; i < f->n; i++) {
        const ls_mapped *m = &parts[i];
        if (m->nbytes == 0) continue;
        memcpy(to, m->data, m->nbytes);
        if (!ls_utf8_is_valid((const char *)to, m->nbytes))
            return ls_fail(e, LS_EINVAL, "%s: is not UTF-8", f->paths[i]);
        to += m->nbytes;
    }
    t->data = t->joined;
    return LS_OK;
}

static ls_status open_several(const files *f, ls_text *t, ls_error *e) {
    ls_mapped *parts = LS_NEW_ARRAY(ls_mapped, f->n);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < f->n; i++) s = ls_file_map(f->paths[i], &parts[i], e);
    if (s == LS_OK) s = join(f, parts, t, e);
    for (size_t i = 0; i < f->n; i++) ls_file_unmap(&parts[i]);
    free(parts);
    return s;
}

static ls_status open_one(const char *path, ls_text *t, ls_error *e) {
    LS_TRY(ls_file_map(path, &t->one, e));
    t->data = t->one.data;
    t->nbytes = t->one.nbytes;
    return LS_OK;
}

static char *name_of(const files *f) {
    size_t more = f->n - 1;
    if (more == 0) return ls_strdup(f->paths[0]);
    return ls_format("%s and %zu more file%s", f->paths[0], more, ls_plural((int64_t)more));
}

ls_status ls_text_open(const char *paths, ls_text *t_p, ls_error *e) {
    files f = {0};
    ls_text t = {0};
    ls_status s = find_files(paths, &f, e);
    if (s == LS_OK) t.name = name_of(&f);
    if (s == LS_OK) s = f.n == 1 ? open_one(f.paths[0], &t, e) : open_several(&f, &t, e);
    free_files(&f);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_text_close(&t);
    return s;
}

void ls_text_close(ls_text *t) {
    ls_file_unmap(&t->one);
    if (t->joined) ls_unmap(t->joined, t->nbytes);
    free(t->name);
    *t = (ls_text){0};
}
