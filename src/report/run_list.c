/* run_list.c - see run_list.h. */
#include "report/run_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "report/run_status.h"

static void add_run(ls_run_list *l, const char *path) {
    l->runs = ls_grow(l->runs, l->n, sizeof *l->runs);
    l->runs[l->n++] = ls_strdup(path);
}

static void note_unread(ls_run_list *l, const char *path, int why) {
    if (l->nunread++) return;
    l->unread = ls_strdup(path);
    l->why = why;
}

/* The names in a directory that may be directories, sorted. False: it can't be read. */
static bool names_in(const char *dir, ls_run_list *l, char ***names_p, size_t *n_p) {
    char **names = NULL;
    size_t n = 0;
    DIR *d = opendir(dir);
    if (!d) return false;
    for (struct dirent *f; !l->cut && (f = readdir(d));) {
        if (f->d_name[0] == '.' || (f->d_type != DT_DIR && f->d_type != DT_UNKNOWN)) continue;
        l->cut = l->nnames++ >= LS_RUN_LIST_MOST;
        names = ls_grow(names, n, sizeof *names);
        names[n++] = ls_strdup(f->d_name);
    }
    closedir(d);
    if (n) qsort(names, n, sizeof *names, ls_compare_texts);
    *names_p = names;
    *n_p = n;
    return true;
}

static void look_below(const char *dir, int depth, ls_run_list *l);

static void look_at(const char *path, int depth, ls_run_list *l) {
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return;
    if (ls_run_status_is_run(path))
        add_run(l, path);
    else if (depth < LS_RUN_LIST_DEPTH)
        look_below(path, depth, l);
}

static void look_below(const char *dir, int depth, ls_run_list *l) {
    char **names = NULL;
    size_t n = 0;
    if (!names_in(dir, l, &names, &n)) note_unread(l, dir, errno);
    for (size_t i = 0; i < n; i++) {
        bool here = strcmp(dir, ".") == 0;
        bool slash = dir[strlen(dir) - 1] == '/';
        char *path =
            here ? ls_strdup(names[i]) : ls_format("%s%s%s", dir, slash ? "" : "/", names[i]);
        look_at(path, depth + 1, l);
        free(path);
        free(names[i]);
    }
    free(names);
}

ls_status ls_run_list_add(const char *dir, ls_run_list *l, ls_error *e) {
    DIR *d = opendir(dir);
    if (!d) return ls_fail(e, LS_EIO, "%s: can't be read: %s", dir, strerror(errno));
    closedir(d);
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/') len--;
    char *path = ls_format("%.*s", (int)len, dir);
    if (ls_run_status_is_run(path))
        add_run(l, path);
    else
        look_below(path, 0, l);
    free(path);
    return LS_OK;
}

void ls_run_list_free(ls_run_list *l) {
    for (size_t i = 0; i < l->n; i++) free(l->runs[i]);
    free(l->runs);
    free(l->unread);
    *l = (ls_run_list){0};
}
