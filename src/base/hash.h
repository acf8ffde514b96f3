/* hash.h - XXH3-128 from xxHash: fast, not cryptographic. It finds damage, not attacks. */
#ifndef LS_BASE_HASH_H
#define LS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls_hash {
    uint64_t hi, lo;
} ls_hash;

typedef struct ls_hasher ls_hasher; /* one thread at a time; ls_hasher_finish() frees it */

ls_hasher *ls_hasher_new(void);
void ls_hasher_add(ls_hasher *, const void *data, size_t nbytes);
ls_hash ls_hasher_finish(ls_hasher *); /* frees the hasher */

ls_hash ls_hash_bytes(const void *data, size_t nbytes);
bool ls_hash_same(ls_hash, ls_hash);

#define LS_HASH_TEXT 33 /* 32 hexadecimal digits and a 0 */
void ls_hash_text(ls_hash, char text[LS_HASH_TEXT]);
/* False: the text is not that of a hash. */
bool ls_hash_parse(const char *text, ls_hash *h_p);

#endif
