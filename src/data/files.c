/* files.c - see files.h. */
#include "data/files.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/braces.h"
#include "data/walk.h"

void ls_files_add(ls_files *f, const char *path) {
    f->paths = ls_grow(f->paths, f->n, sizeof *f->paths);
    f->paths[f->n++] = ls_strdup(path);
}

void ls_files_free(ls_files *f) {
    for (size_t i = 0; i < f->n; i++) free(f->paths[i]);
    free(f->paths);
    *f = (ls_files){0};
}

/* Where the first component of a pattern with a wildcard begins. */
static size_t fixed_part(const char *pattern) {
    size_t first = strcspn(pattern, "*?[");
    while (first && pattern[first - 1] != '/') first--;
    return first;
}

/* Does a component begin here that begins with two stars? */
static bool is_deep(const char *pattern, const char *at) {
    return (at == pattern || at[-1] == '/') && at[0] == '*' && at[1] == '*';
}

static bool has_deep(const char *pattern) {
    for (const char *at = pattern; *at; at++)
        if (is_deep(pattern, at)) return true;
    return false;
}

/* With a name at any depth, **.md, in two components: ** and *.md. The caller frees it. */
static char *in_components(const char *pattern) {
    ls_buf b = {0};
    for (const char *at = pattern; *at; at++) {
        bool name = is_deep(pattern, at) && at[2] && at[2] != '/';
        ls_buf_printf(&b, name ? "**/" : "");
        ls_buf_append(&b, at, 1);
        at += name; /* one star remains */
    }
    return b.data;
}

/* Files that a pattern with ** matches; its components are `pattern`. */
static ls_status add_deep(ls_files *f, const char *given, const char *pattern, ls_error *e) {
    size_t fixed = fixed_part(pattern), n = f->n, m = fixed;
    while (m > 1 && pattern[m - 1] == '/') m--;
    char *dir = m ? ls_format("%.*s", (int)m, pattern) : ls_strdup(".");
    size_t skip = !m ? strlen("./") : pattern[m - 1] == '/' ? m : m + 1;
    ls_walk w = {0};
    ls_status s = ls_file_is_dir(dir) ? ls_walk_below(dir, &w, e) : LS_OK;
    free(dir);
    for (size_t i = 0; i < w.files.n; i++) {
        const char *path = w.files.paths[i];
        if (ls_walk_matches(pattern + fixed, path + skip)) ls_files_add(f, m ? path : path + skip);
    }
    ls_walk_free(&w);
    if (s != LS_OK || f->n > n) return s;
    return ls_fail(e, LS_EINVAL, "no file matches %s", given);
}

/* The C library sorts by locale. Names are sorted by bytes here, so that the text is the same
 * everywhere. */
static ls_status add_matches(ls_files *f, const char *pattern, ls_error *e) {
    glob_t g = {0};
    if (has_deep(pattern)) {
        char *components = in_components(pattern);
        ls_status s = add_deep(f, pattern, components, e);
        free(components);
        return s;
    }
    int how = glob(pattern, GLOB_NOSORT, NULL, &g);
    if (how == 0) {
        qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, ls_compare_texts);
        for (size_t i = 0; i < g.gl_pathc; i++) ls_files_add(f, g.gl_pathv[i]);
    }
    globfree(&g);
    if (how == 0) return LS_OK;
    if (how == GLOB_NOMATCH && strpbrk(pattern, "*?["))
        return ls_fail(e, LS_EINVAL, "no file matches %s", pattern);
    ls_files_add(f, pattern); /* opening it reports the error */
    return LS_OK;
}

static ls_status add_path(ls_files *f, const char *path, ls_error *e) {
    if (strcmp(path, "-") == 0)
        return ls_fail(e, LS_EINVAL,
                       "-: standard input is not read; write it to a file and name that (./- is a "
                       "file of this name)");
    if (!ls_file_exists(path)) return add_matches(f, path, e);
    ls_files_add(f, path);
    return LS_OK;
}

static ls_status add_expanded(ls_files *f, const char *path, ls_error *e) {
    ls_buf names = {0};
    ls_status s = ls_braces_expand(path, &names, e);
    char *rest = names.data;
    while (s == LS_OK && rest && *rest) s = add_path(f, strsep(&rest, "\n"), e);
    ls_buf_free(&names);
    return s;
}

static int by_path_then_place(const void *a, const void *b) {
    char *const *const *x = a, *const *const *y = b;
    int order = strcmp(**x, **y);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Keeps the first of equal paths. */
static void drop_repeated(ls_files *f) {
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

ls_status ls_files_find(const char *paths, ls_files *f_p, ls_error *e) {
    ls_files f = {0};
    char *all = ls_strdup(paths), *rest = all;
    ls_status s = LS_OK;
    for (char *one; s == LS_OK && (one = strsep(&rest, "\n"));) {
        if (ls_file_exists(one) || !ls_braces_are_in(one))
            s = add_path(&f, one, e);
        else
            s = add_expanded(&f, one, e);
    }
    free(all);
    if (s != LS_OK) {
        ls_files_free(&f);
        return s;
    }
    drop_repeated(&f);
    *f_p = f;
    return LS_OK;
}
