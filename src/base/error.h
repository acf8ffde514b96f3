/* error.h - errors are values.
 *
 * The function that first decides an error fills in the message, with the numbers and names that a
 * user needs to fix it; callers pass the code up with LS_TRY. assert() is for our own bugs only.
 * A message is one line without control characters, whatever names it contains (escape.h).
 */
#ifndef LS_BASE_ERROR_H
#define LS_BASE_ERROR_H

#include "lockstep/lockstep.h"

/* Fills in *e (which may be NULL) and returns `code`. The first to call it decides. */
#define ls_fail(e, code, ...) ls_fail_at((e), (code), __FILE__, __LINE__, __VA_ARGS__)

#define LS_TRY(call)                                                                               \
    do {                                                                                           \
        ls_status status_ = (call);                                                                \
        if (status_ != LS_OK) return status_;                                                      \
    } while (0)

ls_status ls_fail_at(ls_error *e, ls_status code, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
