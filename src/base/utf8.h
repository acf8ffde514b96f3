/* utf8.h - decodes UTF-8 text, one character at a time. */
#ifndef LS_BASE_UTF8_H
#define LS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the character at s [n], with its code point in *point_p, or 0 if there is
 * no valid one: overlong forms, surrogates and code points above U+10FFFF are not. Source: RFC
 * 3629. */
size_t ls_utf8_decode(const char *s, size_t n, uint32_t *point_p);

/* The length of the valid UTF-8 at the beginning of s [n]. */
size_t ls_utf8_valid(const char *s, size_t n);

/* True if all of s [n] is valid UTF-8. */
bool ls_utf8_is_valid(const char *s, size_t n);

/* The length of s [n] without an incomplete character at its end. */
size_t ls_utf8_complete(const char *s, size_t n);

#endif
