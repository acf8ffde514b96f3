/* unpack.h - streams of compressed bytes, unpacked piece by piece. */
#ifndef LS_SOURCE_UNPACK_H
#define LS_SOURCE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { LS_UNPACK_PIECE = 256 << 10 };

typedef struct ls_unpack {
    const char *path;    /* for messages */
    const uint8_t *data; /* [nbytes] packed; more than 0 */
    size_t nbytes;
    /* Takes the next unpacked bytes, LS_UNPACK_PIECE at most; an error ends the work and is
     * returned. */
    ls_status (*put)(void *context, const void *bytes, size_t n, ls_error *);
    void *context;
} ls_unpack;

bool ls_is_gzip(const uint8_t *data, size_t nbytes);
bool ls_is_zstd(const uint8_t *data, size_t nbytes);

/* Several streams may follow each other (gzip: members, zstd: frames). LS_EINVAL: the bytes are
 * truncated or damaged; the message has the offset in the packed file. */
ls_status ls_unpack_gzip(const ls_unpack *, ls_error *); /* by zlib */
ls_status ls_unpack_zstd(const ls_unpack *, ls_error *); /* by libzstd */

#endif
