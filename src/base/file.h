/* file.h - reading, writing and mapping files; error messages name the file.
 *
 * ls_file_write() and ls_file_sync_dir() are the steps of an atomic write: a file that must survive
 * a crash is written under another name in the same directory, synced, and renamed last.
 */
#ifndef LS_BASE_FILE_H
#define LS_BASE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"

/* Opens a regular file for reading; the caller closes *fd_p. LS_EIO: it can't be opened, or is not
 * a regular file. */
ls_status ls_file_open_regular(const char *path, int *fd_p, struct stat *st_p, ls_error *);

typedef struct ls_mapped {
    const uint8_t *data; /* [nbytes], read only; NULL when the file is empty */
    size_t nbytes;
} ls_mapped;

/* If the file is truncated while it is mapped, it reads as zeros from there on, and
 * ls_guard_check() of base/guard.h fails: call it after the last use. */
ls_status ls_file_map(const char *path, ls_mapped *m_p, ls_error *);
void ls_file_unmap(ls_mapped *);

/* The hash of all bytes, and their number (NULL: not wanted). Not mapped: a file that is truncated
 * meanwhile has another hash, and ends no program. */
ls_status ls_file_hash(const char *path, ls_hash *h_p, uint64_t *nbytes_p, ls_error *);
/* The hash of the first nbytes of an open file. LS_EIO: it has fewer. */
ls_status ls_file_hash_first(int fd, const char *path, uint64_t nbytes, ls_hash *h_p, ls_error *);

/* Appends the whole file to *b. Refuses a file over `limit` bytes. */
ls_status ls_file_read(const char *path, size_t limit, ls_buf *b, ls_error *);

/* As ls_file_read(), for a text: a byte order mark at its beginning is left out. LS_EINVAL: it is
 * not UTF-8, or has a zero byte. */
ls_status ls_file_read_text(const char *path, size_t limit, ls_buf *b, ls_error *);

/* Creates `path` (it must not exist), writes, syncs and closes. On failure the file is removed. */
ls_status ls_file_write(const char *path, const void *data, size_t nbytes, ls_error *);

/* If the rename fails, `from` is removed if it is a file; a directory stays. */
ls_status ls_file_rename(const char *from, const char *to, ls_error *);
/* Renames to a name that is not in use: if several programs do so at once, one succeeds. LS_EINVAL:
 * `to` exists. */
ls_status ls_file_rename_new(const char *from, const char *to, ls_error *);

/* Replaces or creates a file of ours atomically: writes another file beside it, syncs it and
 * renames it. On failure the old file stays. LS_EINVAL: the path is a link, a device, or anything
 * else but a regular file. */
ls_status ls_file_replace(const char *path, const void *data, size_t nbytes, ls_error *);
/* ls_file_replace() or ls_output_write() (base/output.h). */
typedef ls_status ls_file_writer(const char *path, const void *data, size_t nbytes, ls_error *);
/* The beginning of the names of files that are not yet complete. A program that is killed leaves
 * one; ls_file_remove_left() removes those of a directory that have not been written for a
 * minute. */
#define LS_FILE_FRESH ".lockstep-"
/* Then come as many hexadecimal digits, a '-' and the name; ls_fail() leaves out what comes before
 * the name. */
enum { LS_FILE_FRESH_DIGITS = 8 };
void ls_file_remove_left(const char *dir);
/* Removes the incomplete files of one file that is to be at `path`. */
void ls_file_remove_left_of(const char *path);
/* The name of an incomplete file beside `path`: free() it. It may exist. */
ls_status ls_file_fresh_name(const char *path, char **fresh_p, ls_error *);
/* The same for a file that one process writes at a time: an incomplete one that a killed process
 * left is removed. free() it. */
char *ls_file_only_fresh_name(const char *path);
/* Is it one of a file that is to be called `name`? Both without their directory. */
bool ls_file_is_fresh_name(const char *fresh, const char *name);

/* Opens a file of ours, which may be new, to append to it; the caller closes *fd_p. LS_EINVAL if
 * the path is a link, a device, or anything else but a regular file; LS_EIO. */
ls_status ls_file_open_append(const char *path, int *fd_p, ls_error *);

/* ls_file_write() in pieces: create, put as often as needed, then close, which syncs. */
typedef struct ls_file {
    int fd;
    char *path;
    bool created; /* by ls_file_create(): a failure removes it */
} ls_file;
ls_status ls_file_create(const char *path, ls_file *f_p, ls_error *);
/* Creates a file with a name of its own (ls_file_fresh_name()) in the directory of `path`, whatever
 * else is there. */
ls_status ls_file_create_beside(const char *path, ls_file *f_p, ls_error *);
ls_status ls_file_put(ls_file *, const void *data, size_t nbytes, ls_error *);
/* Pieces at any offset of an existing file, which a failure leaves where it is: open, put, then
 * close. */
ls_status ls_file_open(const char *path, ls_file *f_p, ls_error *);
ls_status ls_file_put_at(ls_file *, const void *data, size_t nbytes, size_t at, ls_error *);
/* Appends zeros until the file has nbytes bytes. */
ls_status ls_file_extend(ls_file *, size_t nbytes, ls_error *);
ls_status ls_file_close(ls_file *, ls_error *);
void ls_file_discard(ls_file *); /* closes without syncing, and removes a file that was created */

/* Cuts a file of ours off at `end`, and syncs it. */
ls_status ls_file_cut(const char *path, uint64_t end, ls_error *);
ls_status ls_file_sync_dir(const char *path, ls_error *);
/* Syncs what any process has appended to a file; one that is missing is fine. */
ls_status ls_file_sync_appended(const char *path, ls_error *);
/* Removes a directory and everything in it; no error if the path does not exist. */
ls_status ls_file_remove_tree(const char *path, ls_error *);
/* False only if the path is known not to exist: true for a path that this user may not look at, and
 * opening that says why. */
bool ls_file_exists(const char *path);
bool ls_file_exists_in(const char *folder, const char *name);
/* The path from the root, which chdir() does not change; the caller frees it. */
char *ls_file_absolute(const char *path);
/* LS_EIO: this user may not look at the path, or into the directory that is there. */
ls_status ls_file_check_allowed(const char *path, ls_error *);
/* what: "file", "directory". LS_EINVAL: it exists. LS_EIO: it can't be created. */
ls_status ls_file_check_new(const char *path, const char *what, ls_error *);
/* Bytes of the regular files in a directory, without its subdirectories. */
int64_t ls_file_folder_nbytes(const char *path);
/* The path, or its nearest parent that exists; the caller frees it. */
char *ls_file_existing(const char *path);
const char *ls_file_name(const char *path);                /* without its directories */
bool ls_file_is_dir(const char *path);                     /* or a link to one */
ls_status ls_file_make_dirs(const char *path, ls_error *); /* mkdir -p */
/* Makes the directories that a file of this name is to be in. */
ls_status ls_file_make_parent(const char *path, ls_error *);

/* Drops a synced file from the page cache, so that it is next read from the disk. */
void ls_file_forget(const char *path);

/* Does the file have exactly these bytes? False also if it can't be read. */
bool ls_file_is(const char *path, const void *bytes, size_t n);
/* Is the open file the one at the path? */
bool ls_file_is_at(int fd, const char *path);

#endif
