/* suffix.h - how a name ends. */
#ifndef LS_BASE_SUFFIX_H
#define LS_BASE_SUFFIX_H

#include <stdbool.h>
#include <string.h>

static inline bool ls_has_suffix(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

#endif
