/* walk.c - see walk.h. */
#include "data/walk.h"

#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "data/words.h"

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Is it the first visit of this directory? */
static bool is_new(ls_words *seen, const struct stat *st) {
    uint64_t id[2] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
    bool fresh = false;
    ls_words_add(seen, (const uint8_t *)id, sizeof id, &fresh);
    return fresh;
}

void ls_walk_free(ls_walk *w) {
    ls_files_free(&w->files);
    ls_files_free(&w->others);
    *w = (ls_walk){0};
}

static ls_status visit(FTS *tree, FTSENT *at, ls_words *seen, ls_walk *w, ls_error *e) {
    int what = at->fts_info;
    bool below = at->fts_level > FTS_ROOTLEVEL;
    if (what == FTS_DNR || what == FTS_ERR || what == FTS_NS)
        return ls_fail(e, LS_EIO, "%s: can't be read: %s", at->fts_path, strerror(at->fts_errno));
    if (what == FTS_DP) return LS_OK;
    if (below && at->fts_name[0] == '.') {
        w->nhidden++;
        if (what == FTS_D) fts_set(tree, at, FTS_SKIP);
    } else if (what == FTS_DC || (what == FTS_D && !is_new(seen, at->fts_statp) && below)) {
        w->nagain++;
        if (what == FTS_D) fts_set(tree, at, FTS_SKIP);
    } else if (what == FTS_D) {
        return LS_OK;
    } else {
        ls_files_add(what == FTS_F ? &w->files : &w->others, at->fts_path);
    }
    return LS_OK;
}

static ls_status visit_all(FTS *tree, const char *dir, const ls_files *others, ls_walk *w,
                           ls_error *e) {
    ls_words seen = {0};
    ls_status s = LS_OK;
    FTSENT *at = NULL;
    struct stat st;
    for (size_t i = 0; i < others->n; i++)
        if (stat(others->paths[i], &st) == 0) is_new(&seen, &st);
    for (size_t n = 0; s == LS_OK && (errno = 0, at = fts_read(tree)); n++) {
        s = visit(tree, at, &seen, w, e);
        if (s == LS_OK && n > LS_WALK_MOST)
            s = ls_fail(e, LS_EINVAL, "%s: has more than %d names below it", dir, LS_WALK_MOST);
    }
    if (s == LS_OK && errno) s = ls_fail(e, LS_EIO, "%s: can't be read: %s", dir, strerror(errno));
    ls_words_free(&seen);
    return s;
}

ls_status ls_walk_below(const char *dir, ls_walk *w_p, ls_error *e) {
    return ls_walk_beside(dir, &(ls_files){0}, w_p, e);
}

ls_status ls_walk_beside(const char *dir, const ls_files *others, ls_walk *w_p, ls_error *e) {
    ls_walk w = {0};
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--; /* else paths have two slashes */
    char *root = ls_format("%.*s", (int)n, dir);
    char *const roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    ls_status s = tree ? visit_all(tree, root, others, &w, e)
                       : ls_fail(e, LS_EIO, "%s: can't be read: %s", root, strerror(errno));
    if (tree) fts_close(tree);
    free(root);
    if (s != LS_OK) {
        ls_walk_free(&w);
        return s;
    }
    if (w.files.n) qsort(w.files.paths, w.files.n, sizeof *w.files.paths, ls_compare_texts);
    *w_p = w;
    return LS_OK;
}

/* ---- patterns ---- */

static bool component_matches(const char *pattern, size_t n, const char *name, size_t m) {
    char *a = ls_format("%.*s", (int)n, pattern), *b = ls_format("%.*s", (int)m, name);
    bool same = fnmatch(a, b, FNM_PERIOD) == 0;
    free(a);
    free(b);
    return same;
}

bool ls_walk_matches(const char *pattern, const char *path) {
    for (;;) {
        size_t n = strcspn(pattern, "/"), m = strcspn(path, "/");
        if (n == 2 && strncmp(pattern, "**", n) == 0) break;
        if (!component_matches(pattern, n, path, m)) return false;
        if (!pattern[n] || !path[m]) return !pattern[n] && !path[m];
        pattern += n + 1;
        path += m + 1;
    }
    if (!pattern[2]) return true;
    for (pattern += 3; *path; path += strcspn(path, "/"), path += *path == '/')
        if (ls_walk_matches(pattern, path)) return true;
    return false;
}
