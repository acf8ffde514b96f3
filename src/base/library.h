/* library.h - functions of a shared library that is loaded when it is first used, so that a program
 * starts without it. */
#ifndef LS_BASE_LIBRARY_H
#define LS_BASE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
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
    const char *file;
    const ls_symbol *symbols; /* [nsymbols] */
    size_t nsymbols;
    void *table;
    const char *refusal; /* if it can't be loaded: this message, followed by the reason */
    ls_status code;      /* the status of that error */
    ls_status (*set_up)(ls_error *); /* called once after loading; NULL: nothing is to be set up */
    pthread_mutex_t lock;
    bool tried;
    ls_error failed; /* code LS_OK: it can be used */
} ls_library;
/* `symbols_` and `table_` are variables; the other members follow. */
#define LS_LIBRARY(file_, symbols_, table_, ...)                                                   \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .file = (file_), .symbols = (symbols_),                 \
        .nsymbols = sizeof(symbols_) / sizeof *(symbols_), .table = &(table_), __VA_ARGS__         \
    }

/* Loads it and sets it up if that has not been tried. Each call returns the first one's error. */
ls_status ls_library_need(ls_library *, ls_error *);

#endif
