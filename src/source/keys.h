/* keys.h - texts, and a number for each. The texts belong to the caller, and stay where they are. */
#ifndef LS_SOURCE_KEYS_H
#define LS_SOURCE_KEYS_H

#include <stddef.h>

typedef struct ls_key {
    const char *text; /* NULL: the slot is empty */
    size_t number;
} ls_key;

typedef struct ls_keys {
    ls_key *slots;    /* [nslots] by the hashes of the texts */
    size_t n, nslots; /* nslots: a power of 2 */
} ls_keys;

/* The number of this text; SIZE_MAX: there is none. */
size_t ls_keys_find(const ls_keys *, const char *text);
/* Sets the number of this text. */
void ls_keys_set(ls_keys *, const char *text, size_t number);
void ls_keys_free(ls_keys *);

#endif
