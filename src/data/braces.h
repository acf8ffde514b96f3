/* braces.h - names with {000..127} and {a,b}, as a shell expands them. */
#ifndef LS_DATA_BRACES_H
#define LS_DATA_BRACES_H

#include <stdbool.h>

#include "base/mem.h"

/* True if the name has a pair of braces that stands for several names. */
bool ls_braces_are_in(const char *name);

/* Appends the names that it stands for, each with a line break: {00..12} are the numbers from the
 * first to the second, forwards or backwards, with as many digits as the longer of those that begin
 * with 0; {a,b,} are texts, which may have braces themselves. Other braces stand for themselves.
 *
 * LS_EINVAL: more than LS_BRACES_MOST names, or too many braces. */
enum { LS_BRACES_MOST = 100000 };
ls_status ls_braces_expand(const char *name, ls_buf *names, ls_error *);

#endif
