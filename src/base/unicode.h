/* unicode.h - properties of characters, and the normal form NFC; the one file that knows utf8proc.
 */
#ifndef LS_BASE_UNICODE_H
#define LS_BASE_UNICODE_H

#include <stdbool.h>

#include "base/mem.h"

/* Appends text [n], valid UTF-8, in NFC. Returns false, and appends nothing, if no character of the
 * text could change. Takes O(n) also for long runs of marks. Source: Unicode Standard Annex #15. */
bool ls_unicode_compose(const uint8_t *text, size_t n, ls_buf *out);

/* The property White_Space. */
bool ls_unicode_is_space(uint32_t point);

/* Characters of words: alphabetic, marks, decimal digits, connectors and joiners, as in \w of
 * Unicode Technical Standard #18. */
bool ls_unicode_is_word(uint32_t point);

/* Python's str.isprintable(), of one character. */
bool ls_unicode_is_printable(uint32_t point);

/* A letter of upper, lower or title case. */
bool ls_unicode_is_cased(uint32_t point);

/* The character in upper case ('u'), lower case ('l') or title case ('t'). False: it would become
 * several, or one that depends on its neighbours. */
bool ls_unicode_case(uint32_t point, char which, uint32_t *cased_p);

#endif
