/* output.h - a file that a user names for an output: a picture, a timeline, a machine's speeds.
 *
 * What is at the name decides how it is written:
 *     nothing                     the file is made, and the directories above it
 *     a regular file              replaced as a whole: what was there stays until the new content
 *                                 is complete and synced, and keeps its permissions
 *     a symbolic link             what it leads to, in the same way; the link stays
 *     a device, a pipe            written into, as by a shell's >; so is /dev/stdout
 *     a directory, a socket, a disk       refused
 *
 * Files of a run directory are not outputs: ls_file_replace() follows no link.
 */
#ifndef LS_BASE_OUTPUT_H
#define LS_BASE_OUTPUT_H

#include <stddef.h>

#include "base/error.h"

/* LS_EINVAL: refused. LS_EIO: it can't be written; a regular file is as before. */
ls_status ls_output_write(const char *path, const void *data, size_t nbytes, ls_error *);
/* Writes in pieces, as the content comes: end it, or drop it. */
typedef struct ls_output ls_output;
ls_status ls_output_open(const char *path, ls_output **o_p, ls_error *);
ls_status ls_output_put(ls_output *, const void *data, size_t nbytes, ls_error *);
/* Completes the content. Frees the output, also on failure. */
ls_status ls_output_end(ls_output *, ls_error *);
/* Drops the content: a regular file is as before. NULL is fine. */
void ls_output_drop(ls_output *);
/* Checks for the errors of ls_output_write(), before the work whose result will be written. */
ls_status ls_output_check(const char *path, ls_error *);

#endif
