/* bytes.h - values one after the other in memory, as an index has them: appended to a buffer, and
 * taken from bytes that may be anything. */
#ifndef LS_SOURCE_BYTES_H
#define LS_SOURCE_BYTES_H

#include <stdbool.h>

#include "base/mem.h"

void ls_bytes_put(ls_buf *, const void *data, size_t nbytes);
void ls_bytes_put_u64(ls_buf *, uint64_t);
/* n elements with their number; n may be 0. */
void ls_bytes_put_array(ls_buf *, const void *data, size_t n, size_t size);
void ls_bytes_put_text(ls_buf *, const char *text); /* NULL is fine, and comes back as "" */

typedef struct ls_bytes {
    const uint8_t *at;
    size_t left;
    bool bad; /* a value was missing or impossible: whatever was taken is worth nothing */
} ls_bytes;

/* Once the bytes are bad, values are zeros. */
void ls_bytes_take(ls_bytes *, void *to, size_t nbytes);
/* A number over `most` is bad. */
uint64_t ls_bytes_take_u64(ls_bytes *, uint64_t most);
/* n elements, which the caller frees; NULL: there are none. */
void *ls_bytes_take_array(ls_bytes *, size_t size, size_t *n_p);
/* A text of at most `most` bytes, which the caller frees; never NULL. */
char *ls_bytes_take_text(ls_bytes *, size_t most);

#endif
