/* plain.h - the bytes of a file without its packing (gzip, zstd), mapped under guard (guard.h).
 *
 * A packed file is unpacked into another one (unpacked.h). What is unpacked is checked by the
 * packing's own checksums, and limited in size and ratio. Where an index knows the file it is not
 * read for its hash.
 */
#ifndef LS_SOURCE_PLAIN_H
#define LS_SOURCE_PLAIN_H

#include "base/file.h"
#include "base/hash.h"
#include "data/files.h"
#include "source/options.h"
#include "source/source.h"

enum { LS_PLAIN_FIRST = 4096 };

typedef struct ls_plain {
    const uint8_t *data; /* [nbytes], read only; NULL when there are none */
    size_t nbytes;
    char *path;          /* for messages */
    const char *packing; /* "gzip", "zstd"; NULL: none */
    size_t file_nbytes;  /* on disk */
    ls_hash hash;        /* hash of data */
} ls_plain;

/* Where a megabyte that was never written is damage, behind the first one, which always is. In a
 * packed file it is everywhere. */
typedef enum ls_holes {
    LS_HOLES_ALLOWED, /* nowhere: copies of arrays may leave out their zeros */
    LS_HOLES_INSIDE,  /* at the end of the file: archives, whose members may have zeros */
    LS_HOLES_REFUSED  /* everywhere: texts */
} ls_holes;

/* Opens the file. options (NULL: the defaults) has the cache and the limits.
 * Errors: LS_EIO: it can't be read, or there is no room to unpack it. LS_EINVAL: it is damaged,
 * beyond a limit, or incomplete: a part of it was never written. */
ls_status ls_plain_open(const char *path, const ls_source_options *, ls_holes, ls_plain *p_p,
                        ls_error *);
/* LS_EINVAL: a megabyte of the file, which has a text, was never written. It is not read. */
ls_status ls_plain_check_text(const char *path, ls_error *);

/* Checks a file by its first bytes and its size, before it is read for its hash. */
typedef ls_status ls_plain_check(const ls_plain *, void *context, ls_error *);
ls_status ls_plain_open_checked(const char *path, const ls_source_options *, ls_plain_check *,
                                void *context, ls_plain *p_p, ls_error *);
/* Opens the file without a hash. */
ls_status ls_plain_open_unhashed(const char *path, ls_plain *p_p, ls_error *);
void ls_plain_close(ls_plain *);

/* All files of a list: *list_p [files->n], for ls_plain_close_all(). */
ls_status ls_plain_open_all(const ls_files *, const ls_source_options *, ls_holes,
                            ls_plain **list_p, ls_error *);
void ls_plain_close_all(ls_plain *list, size_t n); /* NULL is fine */
/* Sets the source's hash, and its number and bytes of files, from all files that it reads. */
void ls_plain_describe(const ls_plain *list, size_t n, ls_source *);

/* The first bytes of the unpacked file, LS_PLAIN_FIRST at most; *size_p: bytes of the unpacked
 * file, UINT64_MAX where it is packed. */
ls_status ls_plain_first(const char *path, uint8_t first[LS_PLAIN_FIRST], size_t *n_p,
                         uint64_t *size_p, ls_error *);

#endif
