/* index.h - what opening a source has found, in a file of the cache, so that the files need not be
 * read again: their hashes, and whatever the reader knows (offsets of samples, fields, labels).
 *
 *     DIR/index/NAME         an index; NAME: a hash of the format, the options that matter, the
 *                            paths
 *     DIR/index/NAME.plain   the bytes of a packed file (unpacked.h); NAME: a hash of its path
 *     DIR/index/lock         a process that makes one of them locks it; others wait, then use it
 *
 * An index is used only while each of its files has the size, times and inode that it had: else the
 * index is made again. So is one that is damaged, was written by another version, or says what
 * can't be: a reader checks everything that it takes, and an opening that fails is repeated
 * without. Data below a megabyte have no index.
 *
 * One thread at a time, but ls_index_verify().
 */
#ifndef LS_SOURCE_INDEX_H
#define LS_SOURCE_INDEX_H

#include "base/stamp.h"
#include "data/files.h"
#include "source/bytes.h"
#include "source/source.h"

/* What is known of a file. */
typedef struct ls_index_file {
    ls_stamp stamp;
    ls_hash hash;    /* hash of the unpacked bytes */
    uint64_t nbytes; /* number of unpacked bytes */
} ls_index_file;

/* Never NULL; ls_index_free(). decides: what else than labels, limits and damage decides what is
 * found. With `fresh` an index that is there is not used, but made again. */
ls_index *ls_index_open(const char *format, const ls_files *, const ls_source_options *,
                        const ls_buf *decides);
void ls_index_free(ls_index *); /* NULL is fine */

/* ---- for readers; x may be NULL: then nothing is known, and nothing is saved ---- */

/* True: the reader takes what it needs from ls_index_in(). False: it puts the same into
 * ls_index_out(), which is NULL where nothing will be saved. */
bool ls_index_is_known(const ls_index *);
ls_bytes *ls_index_in(ls_index *);
ls_buf *ls_index_out(ls_index *);

/* The file as it is now, opened for reading. If the index is known: sets *f_p, LS_EINVAL: the file
 * has changed. Else waits until a change of the file would be seen in its times. */
ls_status ls_index_find(ls_index *, const char *path, int fd, ls_index_file *f_p, ls_error *);
/* Adds a file that the index does not know yet. */
void ls_index_add(ls_index *, const char *path, const ls_index_file *);

/* A file whose state the reader itself puts: nothing is saved if it could change unseen. */
void ls_index_note_state(ls_index *, const struct stat *);

/* The directory for the unpacked copy of a file of nbytes packed bytes; NULL: it is not worth
 * it. */
const char *ls_index_copies(const ls_index *, uint64_t nbytes);
/* From now on ls_index_verify() also finds that this copy, in the state `st` as it was opened, is
 * written to. The file may be removed or replaced: then no process writes to what is mapped. */
void ls_index_watch(ls_index *, const char *path, const struct stat *st, uint64_t nbytes, ls_hash);
/* Notes a failure to write to the cache, which matters only for a large source. */
void ls_index_note_trouble(ls_index *, const ls_error *);

/* ---- for ls_source_open() ---- */

/* Forgets all that is known: the source is opened again, and then saved. */
void ls_index_forget(ls_index *);
/* Saves what was put, if that is worth while; sets s->index_use. */
void ls_index_save(ls_index *, ls_source *);
/* LS_EIO: a file has changed since it was opened. */
ls_status ls_index_verify(const ls_index *, ls_error *);

#endif
