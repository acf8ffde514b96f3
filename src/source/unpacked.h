/* unpacked.h - a packed file's bytes, unpacked piece by piece into a file, and mapped.
 *
 * With a cache the file is a copy that stays there, for later openings and other processes: its
 * last bytes say which state of which file it is, and what its hash is. It is used if the packed
 * file is still in that state and the copy has its hash: opening reads it (0.2 s a GB that is in
 * memory). While it is open, the index watches it (ls_index_watch()). Without, or where the cache
 * can't be written, the file has no name and is gone when the program ends; it is under $TMPDIR, or
 * /var/tmp.
 */
#ifndef LS_SOURCE_UNPACKED_H
#define LS_SOURCE_UNPACKED_H

#include "source/index.h"
#include "source/options.h"
#include "source/unpack.h"

typedef struct ls_packed {
    const char *path; /* for messages */
    const uint8_t *data;
    size_t nbytes;
    ls_stamp stamp;
    ls_status (*unpack)(const ls_unpack *, ls_error *);
} ls_packed;

typedef struct ls_unpacked {
    const void *data; /* [nbytes], for ls_guard_unmap() */
    size_t nbytes;
    ls_hash hash;
} ls_unpacked;

/* Errors: LS_EINVAL: it is damaged, or beyond a limit of the options. LS_EIO: there is no room. */
ls_status ls_unpacked_open(const ls_packed *, const ls_source_options *, ls_unpacked *u_p,
                           ls_error *);

#endif
