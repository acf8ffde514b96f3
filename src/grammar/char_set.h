/* char_set.h - a set of characters, and its members' bytes in UTF-8. */
#ifndef LS_GRAMMAR_CHAR_SET_H
#define LS_GRAMMAR_CHAR_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LS_LAST_CHAR = 0x10ffff };

typedef struct ls_char_range {
    uint32_t first, last;
} ls_char_range;

/* Initially {0}, which is empty. */
typedef struct ls_char_set {
    ls_char_range *ranges; /* [n] ascending, with gaps between them; the owner frees it */
    size_t n;
} ls_char_set;

void ls_char_set_add(ls_char_set *, uint32_t first, uint32_t last);
void ls_char_set_add_all(ls_char_set *, const ls_char_set *);
/* All characters that it lacks. */
void ls_char_set_invert(ls_char_set *);
void ls_char_set_remove(ls_char_set *, uint32_t first, uint32_t last);
bool ls_char_set_has(const ls_char_set *, uint32_t);
void ls_char_set_free(ls_char_set *);

/* Characters whose bytes [n] are first[i] to last[i] each, in any combination. */
typedef struct ls_byte_ranges {
    uint8_t first[4], last[4];
    int n;
} ls_byte_ranges;

/* Calls fn for ranges that have each member's bytes once. Surrogates are no characters, and left
 * out. */
void ls_char_set_bytes(const ls_char_set *, void (*fn)(void *arg, const ls_byte_ranges *),
                       void *arg);

#endif
