/* words.h - distinct byte strings, numbered 0, 1, 2... in the order in which they are first added.
 *
 * One owner, one writer. A zero-initialised set is empty. Strings are copied.
 */
#ifndef LS_DATA_WORDS_H
#define LS_DATA_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls_words_slot {
    uint32_t tag;   /* the upper half of the string's hash */
    uint32_t index; /* its number + 1; 0: the slot is free */
} ls_words_slot;

typedef struct ls_words {
    uint8_t *bytes; /* all strings, one after the other */
    size_t *start;  /* [n + 1] string i is bytes[start[i] .. start[i + 1]); NULL while n is 0 */
    uint32_t n;
    size_t bytes_cap, start_cap, nslots;
    ls_words_slot *slots; /* [nslots] a power of two; at most half are in use */
} ls_words;

/* The string's number. A string that is not there yet is added, and *new_p set to true. */
uint32_t ls_words_add(ls_words *, const uint8_t *bytes, size_t nbytes, bool *new_p);

/* The string's number, or UINT32_MAX if it is not there. */
uint32_t ls_words_find(const ls_words *, const uint8_t *bytes, size_t nbytes);

/* String i < n; valid until the next ls_words_add(). */
const uint8_t *ls_words_at(const ls_words *, uint32_t i, size_t *nbytes_p);

void ls_words_free(ls_words *); /* afterwards the set is empty and can be used again */

#endif
