/* utf8.h - the characters of UTF-8 text, one after the other. */
#ifndef LS_BASE_UTF8_H
#define LS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the character at s [n] and its number, or 0 where there is none: no overlong forms,
 * no surrogates, nothing above U+10FFFF. Source: RFC 3629. */
size_t ls_utf8_decode(const char *s, size_t n, uint32_t *point_p);

/* Whether s [n] is UTF-8 from its first byte to its last. */
bool ls_utf8_is_valid(const char *s, size_t n);

/* Bytes of s [n] before a character that has begun at its end and is not complete; n where there
 * is none. */
size_t ls_utf8_complete(const char *s, size_t n);

#endif
