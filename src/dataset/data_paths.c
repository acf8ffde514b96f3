/* data_paths.c - see data_paths.h. */
#include "dataset/data_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/files.h"
#include "dataset/mixture.h"
#include "source/fetch.h"

/* A key's files, and a directory that may have them. */
typedef struct place {
    const char *key, *dir;
    char *missing; /* the first path that is not there, the caller's to free; NULL: all are */
} place;

static void check_one(place *p, char *path) {
    ls_files f = {0};
    bool there = ls_is_url(path) || ls_files_find(path, &f, NULL) == LS_OK;
    for (size_t i = 0; there && i < f.n; i++) there = ls_file_exists(f.paths[i]);
    if (!there) p->missing = ls_strdup(path);
    ls_files_free(&f);
}

static void check_paths(place *p, const char *key, const char *paths) {
    char *all = ls_paths_from(paths, p->dir), *rest = *all ? all : NULL;
    for (char *one; !p->missing && (one = strsep(&rest, "\n"));) check_one(p, one);
    if (p->missing && !p->key) p->key = key;
    free(all);
}

static ls_status check_mix(place *p, const ls_config *c, ls_error *e) {
    ls_mixture m;
    if (!*c->data.mix) return LS_OK;
    LS_TRY(ls_mixture_read(c->data.mix, &m, e));
    for (int k = 0; k < m.n; k++) {
        check_paths(p, "data.mix", m.parts[k].path);
        if (m.parts[k].labels) check_paths(p, "data.mix", m.parts[k].labels);
    }
    ls_mixture_free(&m);
    return LS_OK;
}

static ls_status check_place(place *p, const ls_config *c, ls_error *e) {
    LS_TRY(check_mix(p, c, e));
    check_paths(p, "data.path", c->data.path);
    check_paths(p, "data.labels", c->data.labels);
    check_paths(p, "data.val_path", c->data.val_path);
    check_paths(p, "data.val_labels", c->data.val_labels);
    return LS_OK;
}

static ls_status fail_missing(const place *here, const char *began, ls_error *e) {
    bool is_relative = *here->missing != '/' && *began;
    return ls_fail(e, LS_EIO,
                   "%s: %.200s: is %s%.150s%s; restore the files, or --set %s=%s names their new "
                   "place",
                   here->key, here->missing, is_relative ? "neither here nor in " : "not there",
                   is_relative ? began : "", is_relative ? ", where the run began" : "", here->key,
                   strcmp(here->key, "data.mix") == 0 ? "LIST" : "FILE");
}

ls_status ls_data_paths_find(const ls_config *c, const char *began, const char **dir_p,
                             ls_error *e) {
    place here = {0}, there = {.dir = began};
    ls_status s = check_place(&here, c, e);
    if (s == LS_OK && here.missing && *began) s = check_place(&there, c, e);
    if (s == LS_OK && here.missing && (!*began || there.missing)) s = fail_missing(&here, began, e);
    if (s == LS_OK) *dir_p = here.missing ? began : NULL;
    free(here.missing);
    free(there.missing);
    return s;
}

/* ---- a new run ---- */

static ls_status check_new(const char *key, const char *paths, ls_error *e) {
    ls_files f = {0};
    ls_status s = LS_OK;
    char *all = ls_strdup(paths), *rest = *all ? all : NULL;
    for (char *one; s == LS_OK && (one = strsep(&rest, "\n"));) {
        if (ls_is_url(one) || ls_file_exists(one)) continue;
        if (ls_files_find(one, &f, NULL) != LS_OK) continue; /* opening reports */
        for (size_t i = 0; s == LS_OK && i < f.n; i++)
            if (!ls_file_exists(f.paths[i]))
                s = ls_fail(e, LS_EIO, "%s: %.250s: is not there; --set %s=FILE names another%s",
                            key, f.paths[i], key,
                            strcmp(key, "data.val_path") == 0 ? ", --set data.val_path= none" : "");
        ls_files_free(&f);
    }
    free(all);
    return s;
}

ls_status ls_data_paths_check(const ls_config *c, ls_error *e) {
    LS_TRY(check_new("data.path", c->data.path, e));
    LS_TRY(check_new("data.labels", c->data.labels, e));
    LS_TRY(check_new("data.val_path", c->data.val_path, e));
    return check_new("data.val_labels", c->data.val_labels, e);
}
