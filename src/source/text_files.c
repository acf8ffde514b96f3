/* text_files.c - see text_files.h. */
#include "source/text_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/utf8.h"
#include "data/walk.h"
#include "source/ending.h"
#include "source/not_text.h"
#include "source/note.h"
#include "source/plain.h"

/* ---- endings ---- */

bool ls_text_files_is_json(const char *path) {
    static const char *const endings[] = {".json", ".jsonl", ".ndjson", NULL};
    return ls_ending_is_one_of(path, endings);
}

bool ls_text_files_is_plain(const char *path) {
    static const char *const endings[] = {".txt", ".text", ".md", ".markdown", ".rst", NULL};
    return ls_ending_is_one_of(path, endings);
}

/* Pictures in formats that are text. */
static bool is_picture(const char *path) {
    static const char *const endings[] = {".svg", ".eps", ".xpm", NULL};
    return ls_ending_is_one_of(path, endings);
}

/* ---- contents ---- */

static bool is_control(uint8_t c) { return (c < 0x20 && !strchr("\t\n\r\f\v\b\x1b", c)) || !c; }

static bool begins_as_text(const char *path) {
    uint8_t first[LS_PLAIN_FIRST];
    size_t n = 0;
    uint64_t size = 0;
    if (ls_plain_first(path, first, &n, &size, NULL) != LS_OK) return false;
    for (size_t i = 0; i < n; i++)
        if (is_control(first[i])) return false;
    if (ls_not_text(first, n)) return false;
    return ls_utf8_is_valid((const char *)first, ls_utf8_complete((const char *)first, n));
}

/* ---- the list ---- */

/* Takes the path over. */
static void add(ls_text_files *f, char *path, bool below) {
    f->below = ls_grow(f->below, f->files.n, sizeof *f->below);
    f->files.paths = ls_grow(f->files.paths, f->files.n, sizeof *f->files.paths);
    f->below[f->files.n] = below;
    f->files.paths[f->files.n++] = path;
    f->nbelow += below;
}

static ls_status fail_none(const ls_text_files *f, const char *dir, ls_error *e) {
    ls_buf has = {0};
    ls_left_out_put(&f->left_out, &has);
    ls_status s = ls_fail(e, LS_EINVAL, "%s: has no %s below it%s%s; name a directory that has",
                          dir, f->json ? "files of JSON" : "texts", has.len ? ", but " : "",
                          has.len ? has.data : "");
    ls_buf_free(&has);
    return s;
}

static bool is_wanted(const ls_text_files *f, const char *path) {
    if (f->json) return ls_text_files_is_json(path);
    return ls_text_files_is_json(path) || ls_text_files_is_plain(path) ||
           (!is_picture(path) && begins_as_text(path));
}

static ls_status add_below(ls_text_files *f, const char *dir, ls_error *e) {
    ls_walk w = {0};
    size_t before = f->files.n;
    LS_TRY(ls_walk_below(dir, &w, e));
    for (size_t i = 0; i < w.files.n; i++) {
        char *path = w.files.paths[i];
        if (is_wanted(f, path)) {
            add(f, path, true);
        } else {
            ls_left_out_add(&f->left_out, path);
            free(path);
        }
    }
    w.files.n = 0; /* their paths went on */
    ls_left_out_count(&f->left_out, "hidden", w.nhidden);
    ls_left_out_count(&f->left_out, "other than files", w.others.n);
    ls_walk_free(&w);
    return f->files.n > before ? LS_OK : fail_none(f, dir, e);
}

/* Is it the first file with this identity? One that is not there is: opening it says so. */
static bool is_new(ls_words *seen, const char *path) {
    struct stat st;
    bool fresh = false;
    if (stat(path, &st) != 0) return true;
    uint64_t id[2] = {(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    ls_words_add(seen, (const uint8_t *)id, sizeof id, &fresh);
    return fresh;
}

/* Drops files that came by several ways: other paths, links. */
static void drop_repeated(ls_text_files *f) {
    ls_words seen = {0};
    size_t n = 0;
    for (size_t i = 0; i < f->files.n; i++) {
        char *path = f->files.paths[i];
        if (is_new(&seen, path)) {
            f->below[n] = f->below[i];
            f->files.paths[n++] = path;
        } else {
            f->nbelow -= f->below[i];
            free(path);
        }
    }
    f->files.n = n;
    ls_words_free(&seen);
}

static ls_status find(const char *paths, bool json, ls_text_files *f_p, ls_error *e) {
    ls_text_files f = {.json = json};
    ls_files named = {0};
    LS_TRY(ls_files_find(paths, &named, e));
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < named.n; i++) {
        if (ls_file_is_dir(named.paths[i]))
            s = add_below(&f, named.paths[i], e);
        else
            add(&f, ls_strdup(named.paths[i]), false);
    }
    ls_files_free(&named);
    if (s == LS_OK) {
        drop_repeated(&f);
        *f_p = f;
    } else {
        ls_text_files_free(&f);
    }
    return s;
}

ls_status ls_text_files_find(const char *paths, ls_text_files *f_p, ls_error *e) {
    return find(paths, false, f_p, e);
}

ls_status ls_text_files_find_json(const char *paths, ls_text_files *f_p, ls_error *e) {
    return find(paths, true, f_p, e);
}

void ls_text_files_log(const ls_text_files *f, const char *name, size_t nless) {
    ls_buf left_out = {0};
    ls_left_out_put(&f->left_out, &left_out);
    size_t n = f->nbelow - nless;
    if (f->nbelow)
        ls_note("%s: %zu file%s read%s%s", name, n, n == 1 ? " is" : "s are",
                left_out.len ? "; not read: " : "", left_out.len ? left_out.data : "");
    ls_buf_free(&left_out);
}

void ls_text_files_free(ls_text_files *f) {
    ls_files_free(&f->files);
    ls_left_out_free(&f->left_out);
    free(f->below);
    *f = (ls_text_files){0};
}
