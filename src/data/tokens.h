/* tokens.h - a text as token ids in a file: written once, read by all workers.
 *
 * The file: a header of 64 bytes, then n ids as little-endian uint32.
 *
 *     offset  0   8 bytes  "LSTOKENS"
 *             8   uint32   version, 1
 *            12   uint32   vocab: every id is below it
 *            16   uint64   n
 *            24   uint64   bytes of the text that the tokens stand for
 *            32   uint64   XXH3-128 of bytes 0..31 and the ids, upper half
 *            40   uint64   its lower half
 *            48  16 bytes  0
 *
 * Opening reads all of the file once, checks it, and remembers a hash of every 2,048 ids. Each
 * later read compares what it has read with these hashes. So a file that is overwritten, damaged or
 * cut short while a run trains is an error at the first read that touches it: no wrong token is
 * ever handed out, and no id beyond the vocabulary.
 */
#ifndef LS_DATA_TOKENS_H
#define LS_DATA_TOKENS_H

#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"

typedef struct ls_tokens {
    size_t n;
    uint32_t vocab;
    uint64_t source_bytes;
    ls_hash hash;        /* of the contents, as in the header */
    const uint32_t *ids; /* [n] in the caller's memory; NULL: they are in the file */
    char *path;          /* } of an open file; NULL without one */
    int fd;              /* } */
    struct stat opened;  /* } what the system said of it when it was read */
    uint64_t *blocks;    /* } hash of each block of ids */
} ls_tokens;

/* Creates `path`, which must not exist, and syncs it; on failure no file is left.
 * Errors: LS_EINVAL: an id is not below vocab. LS_EIO. */
ls_status ls_tokens_write(const char *path, const uint32_t *ids, size_t n, uint32_t vocab,
                          uint64_t source_bytes, ls_error *);
/* The same of tokens that are open. */
ls_status ls_tokens_save(const ls_tokens *, const char *path, ls_error *);

/* Opens the file and reads all of it once: length, hash and every id are checked.
 * Errors: LS_EIO: can't be read. LS_EINVAL: not a token file, or damaged. */
ls_status ls_tokens_open(const char *path, ls_tokens *t_p, ls_error *);
/* Tokens in memory, which must stay: nothing is to be closed. */
ls_tokens ls_tokens_of(const uint32_t *ids, size_t n, uint32_t vocab);
/* The same with their hash: each id must be below vocab. */
ls_tokens ls_tokens_hashed(const uint32_t *ids, size_t n, uint32_t vocab, uint64_t source_bytes);

/* Copies ids first to first + n - 1, which must be there: out [n]. Any number of threads may read.
 * Errors: LS_EINVAL: the file has changed since it was opened; LS_EIO: can't be read. The message
 * names file and position. */
ls_status ls_tokens_read(const ls_tokens *, size_t first, size_t n, uint32_t *out, ls_error *);
/* The same into memory that the caller frees. */
ls_status ls_tokens_read_all(const ls_tokens *, size_t first, size_t n, uint32_t **out_p,
                             ls_error *);

/* Are the tokens at the path, if there are any, still those that were opened? Costs a stat() where
 * size, inode and times are the same; else the file is read once more, and these are remembered.
 * Errors: as of ls_tokens_open(), and LS_EINVAL: they are others. */
ls_status ls_tokens_verify(ls_tokens *, ls_error *);

void ls_tokens_close(ls_tokens *);

#endif
