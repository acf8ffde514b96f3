/* escapes.h - escapes in a template's strings, which are those of Python. */
#ifndef LS_TEMPLATE_ESCAPES_H
#define LS_TEMPLATE_ESCAPES_H

#include <stdbool.h>
#include <stddef.h>

/* Writes what s [n] stands for to out, which has room for n bytes. A backslash that begins no
 * escape stays. False: an escape is no character. */
bool ls_template_unescape(const char *s, size_t n, char *out, size_t *n_p);

#endif
