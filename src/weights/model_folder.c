/* model_folder.c - see model_folder.h. */
#include "weights/model_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* The path without slashes at its end. */
static char *trimmed(const char *path) {
    char *copy = ls_strdup(path);
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/') copy[--n] = 0;
    return copy;
}

/* The directory that a path is in. */
static char *parent_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return ls_strdup(".");
    return slash == path ? ls_strdup("/") : ls_format("%.*s", (int)(slash - path), path);
}

static ls_status make(const char *path, const char *at, ls_error *e) {
    char *parent = parent_of(path);
    ls_status s = ls_file_make_dirs(parent, e);
    free(parent);
    if (s != LS_OK || mkdir(at, 0777) == 0) return s;
    return ls_fail(e, LS_EIO, "%s: can't be created: %s", at, strerror(errno));
}

ls_status ls_model_folder_begin(const char *path, ls_model_folder *f_p, ls_error *e) {
    ls_model_folder f = {.path = trimmed(path)};
    ls_status s = LS_OK;
    f.at = ls_format("%s.%ld.new", f.path, (long)getpid());
    if (!*path || ls_file_exists(f.path))
        s = ls_fail(e, LS_EINVAL, "%s: exists; give the name of a new directory", path);
    if (s == LS_OK) s = make(f.path, f.at, e);
    if (s == LS_OK) {
        *f_p = f;
        return s;
    }
    free(f.path);
    free(f.at);
    return s;
}

static void end(ls_model_folder *f) {
    free(f->path);
    free(f->at);
    *f = (ls_model_folder){0};
}

ls_status ls_model_folder_end(ls_model_folder *f, ls_error *e) {
    char *parent = parent_of(f->path);
    ls_status s = ls_file_sync_dir(f->at, e);
    if (s == LS_OK) s = ls_file_rename_new(f->at, f->path, e);
    if (s == LS_OK) s = ls_file_sync_dir(parent, e);
    free(parent);
    if (s == LS_OK)
        end(f);
    else
        ls_model_folder_discard(f);
    return s;
}

void ls_model_folder_discard(ls_model_folder *f) {
    if (f->at) ls_file_remove_tree(f->at, NULL);
    end(f);
}
