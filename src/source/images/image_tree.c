/* image_tree.c - see image_tree.h. */
#include "source/images/image_tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "data/walk.h"
#include "source/left_out.h"
#include "source/note.h"

static const char MACOS[] = "__MACOSX"; /* what macOS adds to archives */

static bool is_image_name(const char *name) {
    static const char *const suffixes[] = {".jpg",  ".jpeg", ".jpe",  ".jfif", ".png",
                                           ".webp", ".gif",  ".bmp",  ".tif",  ".tiff",
                                           ".heic", ".heif", ".avif", ".jxl",  ".jp2"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(dot, suffixes[i]) == 0) return true;
    return false;
}

/* Does the path have such a directory? */
static bool is_of_macos(const char *path) {
    size_t n = strlen(MACOS);
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, MACOS, n) == 0 && at[n] == '/') return true;
    }
    return false;
}

void ls_image_tree_free(ls_image_tree *t) {
    for (size_t i = 0; i < t->nfiles; i++) free(t->files[i].name);
    free(t->files);
    ls_classes_free(&t->dirs);
    free(t->root);
    free(t->doubt);
    *t = (ls_image_tree){0};
}

/* What is in the directory itself. */
typedef struct entries {
    ls_files dirs;    /* their names */
    ls_files all;     /* paths of the directory and of these */
    char *image;      /* the first one; NULL: there is none */
    ls_left_out left; /* the others */
} entries;

/* ---- files ---- */

static void add_file(ls_image_tree *t, const char *name, int class) {
    t->files = ls_grow(t->files, t->nfiles, sizeof *t->files);
    t->files[t->nfiles++] = (ls_image_file){.name = ls_strdup(name), .class = class};
}

static void add_dir(ls_image_tree *t, const char *name) {
    t->dirs.names = ls_realloc(t->dirs.names, ((size_t)t->dirs.n + 2) * sizeof *t->dirs.names);
    t->dirs.names[t->dirs.n++] = ls_strdup(name);
}

void ls_image_tree_add(ls_image_tree *t, const char *path) {
    if (t->dirs.n == 0) add_dir(t, "");
    t->flat = true;
    add_file(t, path, 0);
}

/* Adds what is below a directory; class: its number; but not what links find in the root and in
 * other classes. */
static ls_status add_below(ls_image_tree *t, const char *dir, int class, entries *x, ls_error *e) {
    ls_left_out *left = &x->left;
    ls_walk w = {0};
    LS_TRY(ls_walk_beside(dir, &x->all, &w, e));
    for (size_t i = 0; i < w.files.n; i++) {
        const char *name = w.files.paths[i] + strlen(dir) + 1;
        if (is_of_macos(name))
            ls_left_out_count(left, "below __MACOSX", 1);
        else if (is_image_name(name))
            add_file(t, name, class);
        else
            ls_left_out_add(left, name);
    }
    ls_left_out_count(left, "hidden", w.nhidden);
    for (size_t i = 0; i < w.others.n; i++) /* reading one says what it is */
        if (is_image_name(w.others.paths[i]))
            add_file(t, w.others.paths[i] + strlen(dir) + 1, class);
        else
            ls_left_out_count(left, "other than files", 1);
    ls_left_out_count(left, "links to directories that are read elsewhere", w.nagain);
    ls_walk_free(&w);
    return LS_OK;
}

static void note_left_out(const ls_image_tree *t, const ls_left_out *left) {
    ls_buf b = {0};
    ls_left_out_put(left, &b);
    if (b.len) ls_note("%s: not read: %s", t->root, b.data);
    ls_buf_free(&b);
}

/* ---- classes ---- */

static void see_dir(entries *x, const char *path, const char *name) {
    if (strcmp(name, MACOS) == 0) {
        ls_left_out_count(&x->left, MACOS, 1);
        return;
    }
    ls_files_add(&x->dirs, name);
    ls_files_add(&x->all, path);
}

static void see_entry(entries *x, const char *root, const char *name) {
    char *path = ls_format("%s/%s", root, name);
    if (name[0] == '.') {
        ls_left_out_count(&x->left, "hidden", strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    } else if (ls_file_is_dir(path)) {
        see_dir(x, path, name);
    } else if (!is_image_name(name)) {
        ls_left_out_add(&x->left, name);
    } else if (!x->image || strcmp(name, x->image) < 0) {
        free(x->image);
        x->image = ls_strdup(name);
    }
    free(path);
}

static ls_status list_root(const char *root, entries *x, ls_error *e) {
    DIR *d = opendir(root);
    if (!d) return ls_fail(e, LS_EIO, "%s: can't be listed: %s", root, strerror(errno));
    for (struct dirent *entry; (entry = readdir(d));) see_entry(x, root, entry->d_name);
    closedir(d);
    ls_files_add(&x->all, root);
    if (x->dirs.n) qsort(x->dirs.paths, x->dirs.n, sizeof *x->dirs.paths, ls_compare_texts);
    return LS_OK;
}

static ls_status add_class(ls_image_tree *t, const char *name, entries *x, ls_error *e) {
    char *dir = ls_format("%s/%s", t->root, name);
    size_t before = t->nfiles;
    add_dir(t, name);
    ls_status s = add_below(t, dir, t->dirs.n - 1, x, e);
    if (s == LS_OK && t->nfiles == before)
        s = ls_fail(e, LS_EINVAL,
                    "%s: has no images (.jpg, .jpeg or .png): remove it, or put images of this "
                    "class there",
                    dir);
    free(dir);
    return s;
}

static ls_status add_classes(ls_image_tree *t, entries *x, ls_error *e) {
    if (x->dirs.n == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no images; they are expected as DIR/CLASS/NAME.jpg or .png",
                       t->root);
    for (size_t i = 0; i < x->dirs.n; i++) LS_TRY(add_class(t, x->dirs.paths[i], x, e));
    return LS_OK;
}

/* Without classes. */
static ls_status add_all(ls_image_tree *t, entries *x, ls_error *e) {
    t->flat = true;
    add_dir(t, "");
    ls_left_out_free(&x->left); /* they are found again */
    ls_files_free(&x->all);
    LS_TRY(add_below(t, t->root, 0, x, e));
    if (x->dirs.n)
        ls_note("%s/%s: an image outside of the sub-directories, so no image has a class; to have "
                "classes, move it into the sub-directory of its class",
                t->root, x->image);
    else
        ls_note("%s: its images are in no sub-directories, so they have no classes", t->root);
    return LS_OK;
}

/* ---- directories that are no classes ---- */

/* Names that data sets give to their parts. */
static bool is_part_name(const char *name) {
    static const char *const parts[] = {"train", "training", "val",     "valid", "validation",
                                        "test",  "testing",  "holdout", "dev",   "eval"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasecmp(name, parts[i]) == 0) return true;
    return false;
}

static bool are_all_nested(const ls_image_tree *t) {
    for (size_t i = 0; i < t->nfiles; i++)
        if (!strchr(t->files[i].name, '/')) return false;
    return true;
}

/* In a class, directories that are classes themselves. */
static void find_doubt(ls_image_tree *t) {
    int nparts = 0;
    if (t->flat || !are_all_nested(t)) return;
    for (int i = 0; i < t->dirs.n; i++) nparts += is_part_name(t->dirs.names[i]);
    if (nparts == t->dirs.n && nparts > 1)
        t->doubt =
            ls_format("%s: its sub-directories, %s and %s, are the parts of a data set and no "
                      "classes; set data.path and data.val_path to one of them each",
                      t->root, t->dirs.names[0], t->dirs.names[1]);
    else if (t->dirs.n == 1)
        t->doubt =
            ls_format("%s: has one sub-directory, %s, which would be the only class; if those "
                      "below it are the classes, set data.path to %s/%s",
                      t->root, t->dirs.names[0], t->root, t->dirs.names[0]);
}

ls_status ls_image_tree_find(ls_image_tree *t, ls_error *e) {
    entries x = {0};
    ls_status s = list_root(t->root, &x, e);
    if (s == LS_OK) s = x.image ? add_all(t, &x, e) : add_classes(t, &x, e);
    if (s == LS_OK) note_left_out(t, &x.left);
    if (s == LS_OK) find_doubt(t);
    ls_files_free(&x.dirs);
    ls_files_free(&x.all);
    free(x.image);
    ls_left_out_free(&x.left);
    return s;
}

bool ls_image_tree_is(const char *dir) {
    ls_walk w = {0};
    bool is = false;
    if (ls_walk_below(dir, &w, NULL) != LS_OK) return false;
    for (size_t i = 0; i < w.files.n && !is; i++) is = is_image_name(w.files.paths[i]);
    ls_walk_free(&w);
    return is;
}
