/* library.h - functions of a shared library that is loaded when it is first used, so that a program
 * starts without it. */
#ifndef LS_BASE_LIBRARY_H
#define LS_BASE_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/* A function, and the offset of the pointer to it in a table. */
typedef struct ls_symbol {
    const char *name;
    size_t at;
} ls_symbol;

/* Loads the library, e.g. "libcurl.so.4", which stays loaded, and sets the pointers of `table`.
 * LS_EIO: it is not installed, or lacks one of the n functions. */
ls_status ls_library_load(const char *file, const ls_symbol *symbols, size_t n, void *table,
                          ls_error *);

#endif
