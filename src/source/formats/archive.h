/* archive.h - the members of a tar archive in memory, by libarchive, which is loaded when it is
 * first used: with its dependencies that takes some milliseconds.
 *
 * All kinds of tar are read: ustar, pax, GNU and V7, and archives that were concatenated.
 */
#ifndef LS_SOURCE_FORMATS_ARCHIVE_H
#define LS_SOURCE_FORMATS_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_archive ls_archive;

typedef struct ls_archive_entry {
    const char *name; /* as in the archive; valid until the next call */
    const char *what; /* "a link", "a device", ...; NULL: a regular file */
    bool is_dir;
    uint64_t at, nbytes; /* where a regular file's bytes are, within the archive */
} ls_archive_entry;

/* data [nbytes], which must outlive the archive; `path` names it in messages. LS_EIO: libarchive is
 * not there. */
ls_status ls_archive_open(const uint8_t *data, size_t nbytes, const char *path, ls_archive **a_p,
                          ls_error *);
/* *there_p: true if there is another member, which is then in *m_p. LS_EINVAL: the archive is
 * damaged or truncated from here on; ls_archive_next() can't be called again. */
ls_status ls_archive_next(ls_archive *, ls_archive_entry *m_p, bool *there_p, ls_error *);
void ls_archive_close(ls_archive *); /* NULL is fine */

#endif
