/* scratch.h - memory backed by a file, which may be larger than the machine's memory.
 *
 * The file has no name, so it is gone when the program ends, however that happens.
 */
#ifndef LS_BASE_SCRATCH_H
#define LS_BASE_SCRATCH_H

#include <stddef.h>

#include "base/error.h"

/* A file of zeros in directory `dir`; it takes no space on the disk yet. Close it once mapped. */
ls_status ls_scratch_open(const char *dir, size_t nbytes, int *file_p, ls_error *);

/* Reserves space on the disk for a part of the file. LS_EIO: there is not enough. Without the
 * reservation, a write to a mapped page could find the disk full and end the program (SIGBUS). */
ls_status ls_scratch_reserve(int file, const char *dir, size_t first, size_t nbytes, ls_error *);

/* Maps the whole file; the caller unmaps it with ls_unmap(). */
ls_status ls_scratch_map(int file, const char *dir, size_t nbytes, void **p_p, ls_error *);

#endif
