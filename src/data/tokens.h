/* tokens.h - a text as token ids in a file: written once, mapped by all workers.
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
 */
#ifndef LS_DATA_TOKENS_H
#define LS_DATA_TOKENS_H

#include "base/file.h"

typedef struct ls_tokens {
    const uint32_t *ids; /* [n] within map, read only */
    size_t n;
    uint32_t vocab;
    uint64_t source_bytes;
    ls_mapped map; /* owned; ls_tokens_close() */
} ls_tokens;

/* Creates `path`, which must not exist, and syncs it; on failure no file is left.
 * Errors: LS_EINVAL: an id is not below vocab. LS_EIO. */
ls_status ls_tokens_write(const char *path, const uint32_t *ids, size_t n, uint32_t vocab,
                          uint64_t source_bytes, ls_error *);

/* Maps the file and reads all of it once: length, hash and every id are checked.
 * Errors: LS_EIO: can't be read. LS_EINVAL: not a token file, or damaged. */
ls_status ls_tokens_open(const char *path, ls_tokens *t_p, ls_error *);

void ls_tokens_close(ls_tokens *);

#endif
