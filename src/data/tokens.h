/* tokens.h - a text as a file of token ids, written once and read by all workers.
 *
 * The file: a header of 64 bytes, then n ids as little-endian uint32.
 *
 *     offset  0   8 bytes  "LSTOKENS"
 *             8   uint32   version: 1; 2: the validation part begins where the file says
 *            12   uint32   vocab: every id is below it
 *            16   uint64   n
 *            24   uint64   bytes of the text that was encoded
 *            32   uint64   XXH3-128 of bytes 0..31, in version 2 also 48..55, and the ids, upper
 *                          half
 *            40   uint64   its lower half
 *            48   uint64   version 2: the first token of the validation part
 *            56   8 bytes  0
 *
 * Opening reads the whole file once, checks it, and records a hash of each block of 2,048 ids.
 * Every later read is compared with these hashes. So if a file is overwritten, damaged or truncated
 * while a run trains, the first read of the changed part fails: no wrong token is ever returned,
 * and no id beyond the vocabulary.
 */
#ifndef LS_DATA_TOKENS_H
#define LS_DATA_TOKENS_H

#include "base/file.h"
#include "base/hash.h"
#include "base/stamp.h"
#include "data/order.h"

typedef struct ls_tokens {
    size_t n;
    uint32_t vocab;
    uint64_t source_bytes;
    uint64_t val_first;  /* the first token of the validation part; 0: the config decides */
    ls_hash hash;        /* of the contents, as in the header */
    const uint32_t *ids; /* [n] in the caller's memory; NULL: they are in the file */
    char *path;          /* } of an open file; NULL without one */
    int fd;              /* } */
    ls_stamp opened;     /* } its state when it was read */
    uint64_t *blocks;    /* } hash of each block of ids */
} ls_tokens;

/* Creates `path`, which must not exist, and syncs it; on failure no file is left.
 * LS_EINVAL: an id is not below vocab. LS_EIO. */
ls_status ls_tokens_save(const ls_tokens *, const char *path, ls_error *);

/* Opens the file and reads all of it once: length, hash and every id are checked.
 * Errors: LS_EIO: can't be read. LS_EINVAL: not a token file, or damaged. */
ls_status ls_tokens_open(const char *path, ls_tokens *t_p, ls_error *);
/* Tokens in the caller's memory, which must outlive them; they need not be closed. */
ls_tokens ls_tokens_of(const uint32_t *ids, size_t n, uint32_t vocab);
/* Tokens in the caller's memory, with their hash; each id must be below vocab. */
ls_tokens ls_tokens_hashed(const uint32_t *ids, size_t n, uint32_t vocab, uint64_t source_bytes);
/* Sets their hash anew, once a field has changed. */
void ls_tokens_set_hash(ls_tokens *);

/* Copies ids first to first + n - 1, which must exist, to out [n]. Any number of threads may read.
 * Errors: LS_EINVAL: the file has changed since it was opened; LS_EIO: can't be read. The message
 * names file and position. */
ls_status ls_tokens_read(const ls_tokens *, size_t first, size_t n, uint32_t *out, ls_error *);
/* Sample i = draw->sample, for the loader (data/loader.h): T + 1 ids of which the first is number
 * i T, in nbytes bytes. tokens: an ls_tokens. */
ls_status ls_tokens_window(const void *tokens, const ls_draw *, size_t nbytes, void *ids,
                           ls_error *);
/* Reads the first n tokens into new memory, which the caller frees. */
ls_status ls_tokens_read_first(const ls_tokens *, size_t n, uint32_t **out_p, ls_error *);

/* Checks that the file, if there is one, still has the tokens that were opened. If size, inode and
 * times are unchanged, this is one stat(); else the file is read again, and its new times recorded.
 * Errors: those of ls_tokens_open(); LS_EINVAL: the tokens are different. */
ls_status ls_tokens_verify(ls_tokens *, ls_error *);

void ls_tokens_close(ls_tokens *);

#endif
