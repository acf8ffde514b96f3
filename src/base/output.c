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

/* At the end of what is there already: /dev/stdout may be a file that has more output. */
static ls_status write_into(const char *path, const void *data, size_t nbytes, ls_error *e) {
    int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", path, strerror(errno));
    ls_file f = {.fd = fd, .path = (char *)(uintptr_t)path};
    ls_status s = ls_file_put(&f, data, nbytes, e);
    close(fd);
    return s;
}

/* Also removes what a program that was killed here left. */
static ls_status replace(const char *at, const void *data, size_t nbytes, mode_t mode,
                         ls_error *e) {
    ls_file_remove_left_of(at);
    return ls_file_replace_as(at, data, nbytes, mode, e);
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
    if (is_open) { /* as write_into() appends to it */
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

ls_status ls_output_write(const char *path, const void *data, size_t nbytes, ls_error *e) {
    char *at = end_of(path);
    struct stat st = {.st_mode = S_IFREG}, link; /* a new file */
    ls_status s = LS_OK;
    bool is_link = lstat(at, &link) == 0 && S_ISLNK(link.st_mode); /* of /proc, or one too many */
    if (stat(at, &st) != 0 && errno != ENOENT)
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(errno));
    else if (is_link || is_written_into(st.st_mode))
        s = write_into(at, data, nbytes, e);
    else if (S_ISREG(st.st_mode) && ls_file_make_parent(at, e) != LS_OK)
        s = LS_EIO;
    else if (S_ISREG(st.st_mode))
        s = replace(at, data, nbytes, st.st_mode & 0777, e);
    else
        s = fail_kind(path, st.st_mode, e);
    free(at);
    return s;
}
