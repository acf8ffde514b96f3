/* not_text.h - files that people take for texts and that are none: archives, documents of other
 * programs, packings that are not read; texts in UTF-16 and UTF-32; other binary data, which have,
 * as for grep and git, a byte of zero among their first ones. */
#ifndef LS_SOURCE_NOT_TEXT_H
#define LS_SOURCE_NOT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Is it one of a known format, by its first bytes (LS_PLAIN_FIRST or more, if it has them)? */
bool ls_not_text(const uint8_t *first, size_t n);
/* LS_EINVAL: it is none; the message says what makes a text of it. */
ls_status ls_not_text_refuse(const char *path, const uint8_t *first, size_t n, ls_error *);

#endif
