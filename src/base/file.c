/* file.c - see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/utf8.h"

ls_status ls_file_open_regular(const char *path, int *fd_p, struct stat *st_p, ls_error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* don't wait for a pipe's writer */
    struct stat st = {0};
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        bool is_dir = S_ISDIR(st.st_mode), is_pipe = S_ISFIFO(st.st_mode);
        close(fd);
        return ls_fail(e, LS_EIO, "%s: is not a regular file%s", path,
                       is_dir    ? ", but a directory"
                       : is_pipe ? ", but a pipe: write what it gives to a file"
                                 : "");
    }
    *fd_p = fd;
    *st_p = st;
    return LS_OK;
}

ls_status ls_file_map(const char *path, ls_mapped *m_p, ls_error *e) {
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    const void *data = NULL;
    ls_status s = ls_guard_map(fd, path, (size_t)st.st_size, &data, e);
    close(fd);
    if (s == LS_OK) *m_p = (ls_mapped){data, (size_t)st.st_size};
    return s;
}

void ls_file_unmap(ls_mapped *m) {
    ls_guard_unmap(m->data, m->nbytes);
    *m = (ls_mapped){0};
}

ls_status ls_file_hash_first(int fd, const char *path, uint64_t nbytes, ls_hash *h_p, ls_error *e) {
    enum { PIECE = 256 << 10 };
    char *piece = ls_alloc(PIECE);
    ls_hasher *hasher = ls_hasher_new();
    ls_status s = LS_OK;
    for (uint64_t at = 0; s == LS_OK && at < nbytes;) {
        ssize_t n = pread(fd, piece, nbytes - at < PIECE ? nbytes - at : PIECE, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            s = ls_fail(e, LS_EIO, "%s: can't be read: %s", path,
                        n < 0 ? strerror(errno) : "it was truncated meanwhile");
        else
            ls_hasher_add(hasher, piece, (size_t)n);
        if (n > 0) at += (uint64_t)n;
    }
    *h_p = ls_hasher_finish(hasher);
    free(piece);
    return s;
}

ls_status ls_file_hash(const char *path, ls_hash *h_p, uint64_t *nbytes_p, ls_error *e) {
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    ls_status s = ls_file_hash_first(fd, path, (uint64_t)st.st_size, h_p, e);
    close(fd);
    if (s == LS_OK && nbytes_p) *nbytes_p = (uint64_t)st.st_size;
    return s;
}

/* Not mapped: a file that is truncated meanwhile would end the program. */
static ls_status read_whole(int fd, const char *path, size_t nbytes, ls_buf *b, ls_error *e) {
    size_t before = b->len;
    char piece[1 << 14];
    ls_buf_append(b, NULL, 0);
    for (size_t left = nbytes; left;) {
        ssize_t n = read(fd, piece, left < sizeof piece ? left : sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            b->data[b->len = before] = 0;
            return ls_fail(e, LS_EIO, "%s: can't be read: %s", path,
                           n < 0 ? strerror(errno) : "it was truncated meanwhile");
        }
        ls_buf_append(b, piece, (size_t)n);
        left -= (size_t)n;
    }
    return LS_OK;
}

ls_status ls_file_read(const char *path, size_t limit, ls_buf *b, ls_error *e) {
    int fd = -1;
    struct stat st;
    LS_TRY(ls_file_open_regular(path, &fd, &st, e));
    size_t nbytes = (size_t)st.st_size;
    ls_status s = LS_OK;
    if (nbytes > limit)
        s = ls_fail(e, LS_EINVAL, "%s: has %zu bytes, at most %zu are expected here", path, nbytes,
                    limit);
    else
        s = read_whole(fd, path, nbytes, b, e);
    close(fd);
    return s;
}

ls_status ls_file_read_text(const char *path, size_t limit, ls_buf *b, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, limit, &text, e));
    size_t mark = ls_utf8_mark(text.data, text.len);
    ls_status s = ls_utf8_check(text.data, text.len, path, e);
    if (s == LS_OK && memchr(text.data, 0, text.len))
        s = ls_fail(e, LS_EINVAL, "%s: has a zero byte, so it is no text", path);
    if (s == LS_OK) ls_buf_append(b, text.data + mark, text.len - mark);
    ls_buf_free(&text);
    return s;
}

ls_status ls_file_create(const char *path, ls_file *f_p, ls_error *e) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be created: %s", path, strerror(errno));
    *f_p = (ls_file){fd, ls_strdup(path), true};
    return LS_OK;
}

ls_status ls_file_put(ls_file *f, const void *data, size_t nbytes, ls_error *e) {
    const char *p = data;
    while (nbytes) {
        ssize_t n = write(f->fd, p, nbytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(e, LS_EIO, "%s: can't be written: %s", f->path, strerror(errno));
        p += n;
        nbytes -= (size_t)n;
    }
    return LS_OK;
}

ls_status ls_file_open(const char *path, ls_file *f_p, ls_error *e) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", path, strerror(errno));
    *f_p = (ls_file){fd, ls_strdup(path), false};
    return LS_OK;
}

ls_status ls_file_put_at(ls_file *f, const void *data, size_t nbytes, size_t at, ls_error *e) {
    const char *p = data;
    while (nbytes) {
        ssize_t n = pwrite(f->fd, p, nbytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(e, LS_EIO, "%s: can't be written: %s", f->path, strerror(errno));
        p += n;
        at += (size_t)n;
        nbytes -= (size_t)n;
    }
    return LS_OK;
}

ls_status ls_file_extend(ls_file *f, size_t nbytes, ls_error *e) {
    if (ftruncate(f->fd, (off_t)nbytes) == 0) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", f->path, strerror(errno));
}

ls_status ls_file_close(ls_file *f, ls_error *e) {
    int failed = fsync(f->fd) != 0 ? errno : 0;
    if (close(f->fd) != 0 && !failed) failed = errno;
    ls_status s = LS_OK;
    if (failed) {
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", f->path, strerror(failed));
        if (f->created) unlink(f->path);
    }
    free(f->path);
    return s;
}

void ls_file_discard(ls_file *f) {
    close(f->fd);
    if (f->created) unlink(f->path);
    free(f->path);
}

ls_status ls_file_write(const char *path, const void *data, size_t nbytes, ls_error *e) {
    ls_file f;
    LS_TRY(ls_file_create(path, &f, e));
    ls_status s = ls_file_put(&f, data, nbytes, e);
    if (s == LS_OK) return ls_file_close(&f, e);
    ls_file_discard(&f);
    return s;
}

static ls_status fail_rename(const char *from, int why, ls_error *e) {
    unlink(from); /* fails if it is a directory */
    return ls_fail(e, LS_EIO, "%s: can't be renamed: %s", from, strerror(why));
}

ls_status ls_file_rename(const char *from, const char *to, ls_error *e) {
    return rename(from, to) == 0 ? LS_OK : fail_rename(from, errno, e);
}

/* Some file systems can't refuse to replace: there, two programs at the same moment can. */
ls_status ls_file_rename_new(const char *from, const char *to, ls_error *e) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return LS_OK;
    bool unknown = errno == EINVAL || errno == ENOSYS;
    if (unknown && !ls_file_exists(to)) return ls_file_rename(from, to, e);
    if (!unknown && errno != EEXIST) return fail_rename(from, errno, e);
    unlink(from);
    return ls_fail(e, LS_EINVAL,
                   "%s: exists; another program has made it meanwhile: give another name", to);
}

enum { MOST_NAME = 200, DIGITS = LS_FILE_FRESH_DIGITS }; /* MOST_NAME: bytes of the name */

static char *fresh_name(const char *path, uint32_t number) {
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0; /* the directory's part of the path */
    return ls_format("%.*s" LS_FILE_FRESH "%0*x-%.*s", n, path, DIGITS, number, MOST_NAME,
                     path + n);
}

char *ls_file_only_fresh_name(const char *path) {
    char *fresh = fresh_name(path, 0);
    unlink(fresh);
    return fresh;
}

ls_status ls_file_fresh_name(const char *path, char **fresh_p, ls_error *e) {
    uint32_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return ls_fail(e, LS_EIO, "%s: no random numbers: %s", path, strerror(errno));
    *fresh_p = fresh_name(path, number);
    return LS_OK;
}

bool ls_file_is_fresh_name(const char *fresh, const char *name) {
    size_t begin = strlen(LS_FILE_FRESH);
    if (strncmp(fresh, LS_FILE_FRESH, begin) != 0) return false;
    fresh += begin;
    return strspn(fresh, "0123456789abcdef") == DIGITS && fresh[DIGITS] == '-' &&
           strncmp(fresh + DIGITS + 1, name, MOST_NAME) == 0;
}

ls_status ls_file_create_beside(const char *path, ls_file *f_p, ls_error *e) {
    for (;;) {
        char *fresh = NULL;
        LS_TRY(ls_file_fresh_name(path, &fresh, e));
        int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        *f_p = (ls_file){fd, fresh, true};
        if (fd >= 0) return LS_OK;
        int why = errno;
        free(fresh);
        if (why != EEXIST)
            return ls_fail(e, LS_EIO, "%s: can't be created: %s", path, strerror(why));
    }
}

/* Refuses a path at which there is a link, a device, or anything else but a regular file: whoever
 * can write into a directory of ours must not lead us elsewhere. */
static ls_status check_own(const char *path, ls_error *e) {
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is %s, where a file of Lockstep's own is to be; remove it",
                   path, S_ISLNK(st.st_mode) ? "a link" : "not a regular file");
}

ls_status ls_file_replace(const char *path, const void *data, size_t nbytes, ls_error *e) {
    ls_file f;
    LS_TRY(check_own(path, e));
    LS_TRY(ls_file_create_beside(path, &f, e));
    char *fresh = ls_strdup(f.path);
    ls_status s = ls_file_put(&f, data, nbytes, e);
    if (s == LS_OK)
        s = ls_file_close(&f, e);
    else
        ls_file_discard(&f);
    if (s == LS_OK) s = ls_file_rename(fresh, path, e);
    free(fresh);
    return s;
}

/* name: of that file alone; NULL: of all. */
static void remove_left(const char *dir, const char *name) {
    enum { OLD_S = 60 };
    DIR *d = opendir(dir);
    struct stat st;
    time_t now = time(NULL);
    for (struct dirent *f; d && (f = readdir(d));)
        if (strncmp(f->d_name, LS_FILE_FRESH, strlen(LS_FILE_FRESH)) == 0 &&
            (!name || ls_file_is_fresh_name(f->d_name, name)) &&
            fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            now - st.st_mtime > OLD_S)
            unlinkat(dirfd(d), f->d_name, 0);
    if (d) closedir(d);
}

void ls_file_remove_left(const char *dir) { remove_left(dir, NULL); }

void ls_file_remove_left_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *dir = slash ? ls_format("%.*s", (int)(slash - path) + 1, path) : ls_strdup(".");
    remove_left(dir, ls_file_name(path));
    free(dir);
}

ls_status ls_file_open_append(const char *path, int *fd_p, ls_error *e) {
    LS_TRY(check_own(path, e));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", path, strerror(errno));
    *fd_p = fd;
    return LS_OK;
}

ls_status ls_file_cut(const char *path, uint64_t end, ls_error *e) {
    LS_TRY(check_own(path, e));
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    int failed = fd < 0 || ftruncate(fd, (off_t)end) != 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (!failed) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be written: %s", path, strerror(failed));
}

ls_status ls_file_sync_dir(const char *path, ls_error *e) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 ? errno : fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (failed) return ls_fail(e, LS_EIO, "%s: can't be synced: %s", path, strerror(failed));
    return LS_OK;
}

ls_status ls_file_sync_appended(const char *path, ls_error *e) {
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return LS_OK;
    int failed = fd < 0 ? errno : fsync(fd) != 0 ? errno : 0;
    if (fd >= 0) close(fd);
    if (failed) return ls_fail(e, LS_EIO, "%s: can't be synced: %s", path, strerror(failed));
    return LS_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

ls_status ls_file_remove_tree(const char *path, ls_error *e) {
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT &&
        errno != ENOTDIR)
        return ls_fail(e, LS_EIO, "%s: can't be removed: %s", path, strerror(errno));
    return LS_OK;
}

bool ls_file_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

char *ls_file_absolute(const char *path) {
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    char *whole = here ? ls_format("%s/%s", here, path) : ls_strdup(path);
    free(here);
    return whole;
}

bool ls_file_exists_in(const char *folder, const char *name) {
    char *path = ls_format("%s/%s", folder, name);
    bool there = ls_file_exists(path);
    free(path);
    return there;
}

ls_status ls_file_check_allowed(const char *path, ls_error *e) {
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (!there && (errno == ENOENT || errno == ENOTDIR)) return LS_OK;
    if (there && (!S_ISDIR(st.st_mode) || euidaccess(path, X_OK) == 0)) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be read: %s", path, strerror(errno));
}

ls_status ls_file_check_new(const char *path, const char *what, ls_error *e) {
    struct stat st;
    if (lstat(path, &st) == 0)
        return ls_fail(e, LS_EINVAL, "%s: exists; give the name of a new %s", path, what);
    if (errno == ENOENT && *path) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: can't be created: %s", path, strerror(errno));
}

const char *ls_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool ls_file_is_at(int fd, const char *path) {
    struct stat held, there;
    return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
           held.st_ino == there.st_ino;
}

bool ls_file_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int64_t ls_file_folder_nbytes(const char *path) {
    DIR *d = opendir(path);
    int64_t nbytes = 0;
    struct stat st;
    for (struct dirent *f; d && (f = readdir(d));)
        if (fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            nbytes += st.st_size;
    if (d) closedir(d);
    return nbytes;
}

ls_status ls_file_make_dirs(const char *path, ls_error *e) {
    char *p = ls_strdup(path);
    struct stat st;
    int failed = *p ? 0 : ENOENT;
    for (char *s = p + 1; !failed; s++) {
        char c = *s;
        if (c != '/' && c != 0) continue;
        *s = 0;
        if (mkdir(p, 0755) != 0 && errno != EEXIST) failed = errno;
        *s = c;
        if (!c) break;
    }
    free(p);
    if (!failed && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))) failed = ENOTDIR;
    if (failed) return ls_fail(e, LS_EIO, "%s: can't be created: %s", path, strerror(failed));
    return LS_OK;
}

char *ls_file_existing(const char *path) {
    char *p = ls_strdup(path);
    while (*p && access(p, F_OK) != 0) {
        char *slash = strrchr(p, '/');
        if (!slash) break;
        if (slash == p) slash++;
        if (!*slash) break;
        *slash = 0;
    }
    if (access(p, F_OK) == 0) return p;
    free(p);
    return ls_strdup(".");
}

ls_status ls_file_make_parent(const char *path, ls_error *e) {
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return LS_OK;
    char *parent = ls_format("%.*s", (int)(slash - path), path);
    ls_status s = ls_file_is_dir(parent) ? LS_OK : ls_file_make_dirs(parent, e);
    free(parent);
    return s;
}

void ls_file_forget(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

bool ls_file_is(const char *path, const void *bytes, size_t n) {
    ls_buf was = {0};
    bool same = ls_file_read(path, n + 1, &was, NULL) == LS_OK && was.len == n &&
                (n == 0 || memcmp(was.data, bytes, n) == 0);
    ls_buf_free(&was);
    return same;
}
