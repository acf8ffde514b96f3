/* hash.c - the one file that knows xxHash. */
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static ls_hash hash_from(XXH128_hash_t h) { return (ls_hash){h.high64, h.low64}; }

ls_hasher *ls_hasher_new(void) {
    XXH3_state_t *s = XXH3_createState();
    if (!s) abort();
    XXH3_128bits_reset(s);
    return (ls_hasher *)s;
}

void ls_hasher_add(ls_hasher *h, const void *data, size_t nbytes) {
    if (nbytes) XXH3_128bits_update((XXH3_state_t *)h, data, nbytes);
}

ls_hash ls_hasher_finish(ls_hasher *h) {
    XXH128_hash_t v = XXH3_128bits_digest((XXH3_state_t *)h);
    XXH3_freeState((XXH3_state_t *)h);
    return hash_from(v);
}

ls_hash ls_hash_bytes(const void *data, size_t nbytes) {
    return hash_from(XXH3_128bits(data, nbytes));
}

bool ls_hash_same(ls_hash a, ls_hash b) { return a.hi == b.hi && a.lo == b.lo; }

void ls_hash_text(ls_hash h, char text[LS_HASH_TEXT]) {
    snprintf(text, LS_HASH_TEXT, "%016llx%016llx", (unsigned long long)h.hi,
             (unsigned long long)h.lo);
}

bool ls_hash_parse(const char *text, ls_hash *h_p) {
    char again[LS_HASH_TEXT];
    unsigned long long hi = 0, lo = 0;
    if (strlen(text) != LS_HASH_TEXT - 1 || sscanf(text, "%16llx%16llx", &hi, &lo) != 2)
        return false;
    *h_p = (ls_hash){hi, lo};
    ls_hash_text(*h_p, again);
    return strcmp(text, again) == 0;
}
