/* guard.h - files mapped for reading whose bytes may disappear: another program truncates the file,
 * or its disk fails.
 *
 * Without a guard such a read ends the program by SIGBUS. Here a handler puts zeros in the place of
 * the lost pages and notes it. So a reader can continue, and finds out by ls_guard_check(), which
 * it calls after each use, that what it read is worthless. Faults elsewhere are passed to the
 * handler that was there before, or end the program as ever.
 *
 * Any thread. A child of fork() inherits mappings, notes and handler.
 */
#ifndef LS_BASE_GUARD_H
#define LS_BASE_GUARD_H

#include <stddef.h>

#include "base/error.h"

/* Maps the first nbytes (0: *data_p is NULL) of a file; `path` names it in messages. LS_EIO. */
ls_status ls_guard_map(int fd, const char *path, size_t nbytes, const void **data_p, ls_error *);
void ls_guard_unmap(const void *data, size_t nbytes); /* NULL is fine */

/* LS_EIO: bytes of a file that is mapped now were lost; the message names the file and the offset.
 * It takes a nanosecond if nothing is lost. */
ls_status ls_guard_check(ls_error *);

#endif
