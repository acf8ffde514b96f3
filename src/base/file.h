/* file.h - files, whole or mapped, with errors that name them.
 *
 * ls_file_write() and ls_file_sync_dir() are the steps of an atomic write: everything that must
 * survive a crash is written beside its final name, synced, and renamed last.
 */
#ifndef LS_BASE_FILE_H
#define LS_BASE_FILE_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct ls_mapped {
    const uint8_t *data; /* [nbytes], read only; NULL when the file is empty */
    size_t nbytes;
} ls_mapped;

ls_status ls_file_map(const char *path, ls_mapped *m_p, ls_error *);
void ls_file_unmap(ls_mapped *);

/* Appends the whole file to *b. Refuses a file over `limit` bytes. */
ls_status ls_file_read(const char *path, size_t limit, ls_buf *b, ls_error *);

/* Creates `path` (it must not exist), writes, syncs and closes. On failure the file is removed. */
ls_status ls_file_write(const char *path, const void *data, size_t nbytes, ls_error *);

/* A file that can't be renamed is removed; a folder stays. */
ls_status ls_file_rename(const char *from, const char *to, ls_error *);

/* Replaces `path`, or creates it, in one move: written beside it as path.new, synced and renamed.
 * On failure the old file stays. */
ls_status ls_file_replace(const char *path, const void *data, size_t nbytes, ls_error *);

/* ls_file_write() in pieces: create, write as often as needed, then close (which syncs). */
typedef struct ls_file {
    int fd;
    char *path;
} ls_file;
ls_status ls_file_create(const char *path, ls_file *f_p, ls_error *);
ls_status ls_file_put(ls_file *, const void *data, size_t nbytes, ls_error *);
/* Pieces at any place of a file that is there: open, then put, then close. */
ls_status ls_file_open(const char *path, ls_file *f_p, ls_error *);
ls_status ls_file_put_at(ls_file *, const void *data, size_t nbytes, size_t at, ls_error *);
/* Zeros behind what was written so far, until the file has so many bytes. */
ls_status ls_file_extend(ls_file *, size_t nbytes, ls_error *);
ls_status ls_file_close(ls_file *, ls_error *);
void ls_file_discard(ls_file *); /* closes and removes what was written */

ls_status ls_file_sync_dir(const char *path, ls_error *);
/* Removes a folder and all in it; a path that does not exist is fine. */
ls_status ls_file_remove_tree(const char *path, ls_error *);
bool ls_file_exists(const char *path);
/* Bytes of the regular files in a folder, not of those in its folders. */
int64_t ls_file_folder_nbytes(const char *path);
bool ls_file_is_dir(const char *path);                     /* or a link to one */
ls_status ls_file_make_dirs(const char *path, ls_error *); /* mkdir -p */

/* What the system has of a synced file in memory may go, so that it is read from the disk. */
void ls_file_forget(const char *path);

#endif
