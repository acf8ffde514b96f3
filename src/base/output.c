/* output.c - see output.h. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { MOST_LINKS = 40 }; /* as many as the kernel follows */

/* A link of /proc names an open file, and not a path: /dev/stdout leads to one. */
static bool is_open_file(const char *link) {
    struct statfs fs;
    int fd = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool of_proc = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
    if (fd >= 0) close(fd);
    return of_proc;
}

/* Where a link leads; NULL if it can't be read. */
static char *target_of(const char *link) {
    char to[4096];
    ssize_t n = readlink(link, to, sizeof to - 1);
    if (n <= 0) return NULL;
    to[n] = 0;
    const char *slash = strrchr(link, '/');
    if (*to == '/' || !slash) return ls_strdup(to);
    return ls_format("%.*s/%s", (int)(slash - link), link, to);
}

/* The name at the end of the links that begin at `path`; a link of /proc is an end. */
static char *end_of(const char *path) {
    char *at = ls_strdup(path), *to;
    struct stat st;
    for (int i = 0; i < MOST_LINKS && lstat(at, &st) == 0 && S_ISLNK(st.st_mode); i++) {
        if (is_open_file(at) || !(to = target_of(at))) break;
        free(at);
        at = to;
    }
    return at;
}

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISBLK(mode)) return "a disk";
    return "a socket";
}

static ls_status fail_kind(const char *path, mode_t mode, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: is %s; give the name of a file", path, kind_of(mode));
}

static bool is_written_into(mode_t mode) { return S_ISCHR(mode) || S_ISFIFO(mode); }

ls_status ls_output_check(const char *path, ls_error *e) {
    char *at = end_of(path), *slash = strrchr(at, '/');
    struct stat st = {.st_mode = S_IFREG}, link;
    bool there = stat(at, &st) == 0;
    int failed = there || errno == ENOENT ? 0 : errno;
    ls_status s = LS_OK;
    bool is_open = there && lstat(at, &link) == 0 && S_ISLNK(link.st_mode);
    if (is_open) { /* as open_into() appends to it */
    } else if (!failed && !is_written_into(st.st_mode) && !S_ISREG(st.st_mode)) {
        s = fail_kind(path, st.st_mode, e);
    } else if (!failed && is_written_into(st.st_mode)) {
        if (access(at, W_OK) != 0) failed = errno;
    } else if (!failed && ls_file_make_parent(at, e) != LS_OK) {
        s = LS_EIO;
    } else if (!failed) { /* the directory that it is in */
        if (slash) slash[slash == at] = 0;
        if (access(slash ? at : ".", W_OK | X_OK) != 0) failed = errno;
    }
    if (failed) s = ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(failed));
    free(at);
    return s;
}

/* ---- writing ---- */

struct ls_output {
    char *at;     /* the name at the end of the links */
    bool is_into; /* it is written into what is there */
    mode_t mode;  /* permissions of the file that is replaced; 0: there is none */
    ls_file file; /* with another name beside it, unless is_into */
};

static void free_output(ls_output *o) {
    free(o->at);
    free(o);
}

/* At the end of what is there already: /dev/stdout may be a file that has more output. */
static ls_status open_into(ls_output *o, ls_error *e) {
    o->is_into = true;
    o->file = (ls_file){.fd = open(o->at, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC)};
    if (o->file.fd < 0)
        return ls_fail(e, LS_EIO, "%s: can't be opened: %s", o->at, strerror(errno));
    o->file.path = ls_strdup(o->at);
    return LS_OK;
}

/* Opens an incomplete file beside the path, and removes those that killed programs left. */
static ls_status open_beside(ls_output *o, ls_error *e) {
    LS_TRY(ls_file_make_parent(o->at, e));
    ls_file_remove_left_of(o->at);
    return ls_file_create_beside(o->at, &o->file, e);
}

ls_status ls_output_open(const char *path, ls_output **o_p, ls_error *e) {
    ls_output *o = LS_NEW(ls_output);
    struct stat st = {.st_mode = S_IFREG}, link; /* a new file */
    ls_status s = LS_OK;
    o->at = end_of(path);
    bool is_link =
        lstat(o->at, &link) == 0 && S_ISLNK(link.st_mode); /* of /proc, or one too many */
    if (stat(o->at, &st) != 0 && errno != ENOENT)
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(errno));
    else if (is_link || is_written_into(st.st_mode))
        s = open_into(o, e);
    else if (S_ISREG(st.st_mode))
        s = open_beside(o, e);
    else
        s = fail_kind(path, st.st_mode, e);
    o->mode = st.st_mode & 0777;
    if (s == LS_OK)
        *o_p = o;
    else
        free_output(o);
    return s;
}

ls_status ls_output_put(ls_output *o, const void *data, size_t nbytes, ls_error *e) {
    if (ls_file_put(&o->file, data, nbytes, NULL) == LS_OK) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", o->at, strerror(errno));
}

void ls_output_drop(ls_output *o) {
    if (!o) return;
    ls_file_discard(&o->file);
    free_output(o);
}

static ls_status replace(ls_output *o, ls_error *e) {
    char *fresh = ls_strdup(o->file.path);
    ls_status s = LS_OK;
    if (o->mode && fchmod(o->file.fd, o->mode) != 0)
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", o->at, strerror(errno));
    if (s == LS_OK)
        s = ls_file_close(&o->file, e);
    else
        ls_file_discard(&o->file);
    if (s == LS_OK) s = ls_file_rename(fresh, o->at, e);
    free(fresh);
    return s;
}

ls_status ls_output_end(ls_output *o, ls_error *e) {
    ls_status s = LS_OK;
    if (o->is_into)
        ls_file_discard(&o->file);
    else
        s = replace(o, e);
    free_output(o);
    return s;
}

ls_status ls_output_write(const char *path, const void *data, size_t nbytes, ls_error *e) {
    ls_output *o = NULL;
    LS_TRY(ls_output_open(path, &o, e));
    ls_status s = ls_output_put(o, data, nbytes, e);
    if (s == LS_OK) return ls_output_end(o, e);
    ls_output_drop(o);
    return s;
}
