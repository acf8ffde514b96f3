/* library.h - functions of a shared library that is loaded when it is first used, so that a program
 * starts without it. */
#ifndef LS_BASE_LIBRARY_H
#define LS_BASE_LIBRARY_H

#include <pthread.h>
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

/* A library that is loaded once, by whichever thread needs it first. */
typedef struct ls_library {
    pthread_once_t once;
    ls_error trouble; /* set by load(); code LS_OK: it can be used */
} ls_library;
#define LS_LIBRARY                                                                                 \
    { .once = PTHREAD_ONCE_INIT }

/* Calls load() unless that has been done, and returns the trouble. */
ls_status ls_library_need(ls_library *, void (*load)(void), ls_error *);

#endif
